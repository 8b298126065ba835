#ifndef FL_SERVER_WORK_OFFERS_H
#define FL_SERVER_WORK_OFFERS_H

/*
 * What clients tell of their data before the first round (FedMix). The core lets a client be
 * selected once its offer is on disk. With the first selection the offers are fixed: from then on
 * nobody is waited for any more, and who comes late has offered nothing.
 */

#include "server/work/commit.h"

/* Are offers taken (still)? */
bool fl_offering_wanted(const struct fl_federation *federation, const struct fl_progress *progress);
/* Is this client waited for: offers are taken, and there is none of it? */
bool fl_offering_waits(const struct fl_federation *federation, const struct fl_progress *progress,
                       const char *client);
/*
 * On the store's thread: check an offer and keep it. Without bytes nothing is offered, but the
 * client is there, and that is kept. fl_offering_is_theirs(): the client's fault.
 */
FL_MUST_CHECK int fl_offering_take(const struct fl_federation *federation, const char *client,
                                   const void *data, size_t len, struct fl_err *err);
bool fl_offering_is_theirs(int code);
/* What was fixed before, for an opening; nothing of it is FL_OK. What is damaged is fixed anew. */
FL_MUST_CHECK int fl_offering_open(const struct fl_federation *federation, struct fl_offered *ret,
                                   struct fl_err *err);
/*
 * On the store's thread: write down who is selected. Before anybody is, what was offered is fixed
 * for good; `offers` NULL: it is already, or not wanted.
 */
FL_MUST_CHECK int fl_offering_select(const struct fl_federation *federation,
                                     const struct fl_selection *selection,
                                     struct fl_offered *offers, struct fl_err *err);

#endif
