#ifndef FL_SERVER_WORK_OFFERS_H
#define FL_SERVER_WORK_OFFERS_H

/*
 * Data summaries, which clients send before the first round (FedMix). The core lets a client be
 * selected once its summary is on disk. With the first selection the collection of them is fixed:
 * from then on no client is waited for, and one that comes later has sent none. A summary whose
 * values are out of the range of the others is left out. A client that is removed takes its summary
 * along, and an operator can drop one: the collection is made again without it. Clients know it by
 * its SHA-256, so they fetch the new one with the next task.
 */

#include "server/work/commit.h"

/* Are offers taken (still)? */
bool fl_offering_wanted(const struct fl_federation *federation, const struct fl_progress *progress);
/* Is this client waited for: offers are taken, and there is none of it? */
bool fl_offering_waits(const struct fl_federation *federation, const struct fl_progress *progress,
                       const char *client);
/*
 * On the store's thread: check an offer and keep it. Without bytes nothing is offered, but the
 * client is there, and that is kept; too late, or of a client whose summary was dropped, it is not.
 * fl_offering_is_theirs(): the client's fault.
 */
FL_MUST_CHECK int fl_offering_take(const struct fl_federation *federation, const char *client,
                                   const void *data, size_t len, struct fl_err *err);
bool fl_offering_is_theirs(int code);
/* What was fixed before, for an opening; nothing of it is FL_OK. What is damaged is fixed again; a
   removal that was cut short is finished. */
FL_MUST_CHECK int fl_offering_open(const struct fl_federation *federation, struct fl_offered *ret,
                                   struct fl_err *err);
/*
 * On the store's thread: write down who is selected. Before anybody is, what was offered is fixed
 * for good; `offers` NULL: it is already, or not wanted.
 */
FL_MUST_CHECK int fl_offering_select(const struct fl_federation *federation,
                                     const struct fl_selection *selection,
                                     struct fl_offered *offers, struct fl_err *err);
/*
 * On the store's thread: these clients are gone, and so are their summaries. `*ret` has the new
 * collection, if it is another. Durable; on an error fl_offering_open() or _select() finishes what
 * was begun.
 */
FL_MUST_CHECK int fl_offering_forget(const struct fl_federation *federation,
                                     const struct fl_client_rec *clients, size_t n,
                                     struct fl_offered *ret, struct fl_err *err);
/* The same of a client that stays; no other is taken of it. FL_ENOENT: it has none; FL_ESTATE. */
FL_MUST_CHECK int fl_offering_drop(const struct fl_federation *federation, const char *client,
                                   struct fl_offered *ret, struct fl_err *err);
/* On the store's thread: all summaries and what becomes of them. FL_ESTATE: the algorithm has none.
 */
FL_MUST_CHECK int fl_offering_list(const struct fl_federation *federation, fl_offers_list_cb *cb,
                                   void *ctx, struct fl_err *err);

#endif
