#ifndef FL_SERVER_WORK_OFFERS_H
#define FL_SERVER_WORK_OFFERS_H

/*
 * What clients tell of their data before the first round (FedMix). A client counts for 0 samples,
 * so that it cannot be selected, until its offer is on disk; then it joins again with what it has.
 * With the first selection the offers are fixed: from then on nobody is waited for any more, and
 * who comes late has offered nothing.
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

/* --- who is here and waited for --- */

struct fl_waiting {
    bool waits;
    uint64_t samples, evaluation_samples;
};

/* By client number. All zero: nobody. Belongs to one thread. */
struct fl_waits {
    struct fl_waiting *list;
    size_t n;
};

void fl_waits_done(struct fl_waits *waits);
/* A client was admitted; `waiting` says with what it joins once its offer is in. FL_ENOMEM. */
FL_MUST_CHECK int fl_waits_admit(struct fl_waits *waits, uint32_t client,
                                 const struct fl_waiting *waiting);
/* The number means nobody any more. */
void fl_waits_release(struct fl_waits *waits, uint32_t client);
bool fl_waits_for(const struct fl_waits *waits, uint32_t client);
/* Its offer is in: false, it was not waited for. */
bool fl_waits_end(struct fl_waits *waits, uint32_t client, struct fl_waiting *ret);

#endif
