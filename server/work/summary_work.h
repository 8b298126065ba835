#ifndef FL_SERVER_WORK_SUMMARY_WORK_H
#define FL_SERVER_WORK_SUMMARY_WORK_H

/*
 * Data summaries, which clients send before the first round (FedMix). The coordinator lets a client
 * be selected once its summary is on disk. The first selection fixes the collection of them: from
 * then on no client is awaited, and a later client has none. A summary whose values are out of the
 * range of the others is left out. When a client is forgotten, or an operator drops its summary,
 * the collection is rebuilt without it. Clients identify the collection by its SHA-256, so they
 * fetch the new one with the next task.
 */

#include "server/work/commit.h"

/* Are data summaries still accepted? */
bool fl_collection_wanted(const struct fl_federation *federation,
                          const struct fl_progress *progress);
/* Is this client awaited: summaries are accepted, and it has sent none? */
bool fl_collection_waits(const struct fl_federation *federation, const struct fl_progress *progress,
                         const char *client);
/*
 * On the store's thread: check and store a summary. Zero bytes: the client has none, which is
 * stored, too. Nothing is stored when the collection is fixed, or when an operator dropped the
 * client's summary. fl_collection_is_theirs(): the client's fault.
 */
FL_MUST_CHECK int fl_collection_take(const struct fl_federation *federation, const char *client,
                                     const void *data, size_t len, struct fl_err *err);
bool fl_collection_is_theirs(int code);
/* Open the collection at a start; none is FL_OK. A damaged one is quarantined and rebuilt; an
   interrupted removal is completed. */
FL_MUST_CHECK int fl_collection_open(const struct fl_federation *federation,
                                     struct fl_collection *ret, struct fl_err *err);
/* On the store's thread: persist a selection. The first one fixes the collection; `summaries` NULL:
   it is already fixed, or not needed. */
FL_MUST_CHECK int fl_collection_select(const struct fl_federation *federation,
                                       const struct fl_selection *selection,
                                       struct fl_collection *summaries, struct fl_err *err);
/*
 * On the store's thread: remove the summaries of forgotten clients. `*ret` gets the new collection,
 * if it changed. Durable; after an error fl_collection_open() or _select() completes the removal.
 */
FL_MUST_CHECK int fl_collection_forget(const struct fl_federation *federation,
                                       const struct fl_client_rec *clients, size_t n,
                                       struct fl_collection *ret, struct fl_err *err);
/* The same for a client that stays known; no further summary of it is accepted. FL_ENOENT: it
   has none; FL_ESTATE. */
FL_MUST_CHECK int fl_collection_drop(const struct fl_federation *federation, const char *client,
                                     struct fl_collection *ret, struct fl_err *err);
/* On the store's thread: list all summaries and whether each is used. FL_ESTATE: the algorithm
   has none. */
FL_MUST_CHECK int fl_collection_list(const struct fl_federation *federation,
                                     fl_summaries_list_cb *cb, void *ctx, struct fl_err *err);

#endif
