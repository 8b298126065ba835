#ifndef FL_STORE_ROLLBACK_H
#define FL_STORE_ROLLBACK_H

/*
 * Rollback to an older checkpoint at an operator's command (docs/operating.md).
 *
 * The request is a record, durable before it is confirmed; the next start carries it out before it
 * reads anything else. After a crash at any point the rollback is either still requested or done:
 * the rounds are removed in one transaction, which also records that their checkpoints must be
 * moved; moving them can be repeated.
 *
 * Threading and errors: as store.h.
 */

#include "server/store/generation.h"

/* Record a request; replaces an earlier one. `round` is not checked here. */
FL_MUST_CHECK int fl_store_ask_rollback(struct fl_store *store, uint64_t round, uint64_t wall_ms,
                                        struct fl_err *err);
/* FL_ENOENT: no request, or one that only lacks fl_store_finish_rollback(). */
FL_MUST_CHECK int fl_store_asked_rollback(struct fl_store *store, uint64_t *ret_round,
                                          struct fl_err *err);
/* Drop the request, as it cannot be carried out. */
FL_MUST_CHECK int fl_store_drop_rollback(struct fl_store *store, struct fl_err *err);

struct fl_rolled_back {
    uint64_t round, last; /* rounds behind `round` up to `last` are abandoned */
    /* The attempt that was open, with the updates it had accepted; 0: none. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
};

/*
 * Carry out the request: start a new generation after its round, as fl_store_rewind(). Records
 * of abandoned rounds stay in table `abandoned`.
 */
FL_MUST_CHECK int fl_store_roll_back(struct fl_store *store, bool restart_state, uint64_t wall_ms,
                                     struct fl_rolled_back *ret, struct fl_err *err);
/*
 * Move the checkpoints of the abandoned rounds: the newest and the pinned ones are kept as
 * "….generation-N" with N their generation; the others are removed. FL_OK also when there is
 * nothing to do.
 */
FL_MUST_CHECK int fl_store_finish_rollback(struct fl_store *store, struct fl_err *err);

/* The record of an abandoned round. */
struct fl_abandoned_round {
    struct fl_round_rec round;
    uint64_t generation; /* its generation */
    uint64_t at_ms;      /* wall clock; when it was abandoned */
    const char *by;      /* "rolled back to round 2, rounds 3 to 4 abandoned"; never empty */
};
/* The `last` newest (0: all) in commit order, one call each. */
typedef int (*fl_store_abandoned_cb)(void *ctx, const struct fl_abandoned_round *round);
FL_MUST_CHECK int fl_store_abandoned(struct fl_store *store, uint32_t last,
                                     fl_store_abandoned_cb cb, void *ctx, struct fl_err *err);

/* An abandoned checkpoint that is kept. */
struct fl_abandoned {
    uint64_t round, generation;
};
/* In ascending order; free() the list. */
FL_MUST_CHECK int fl_models_abandoned(const char *dir, struct fl_abandoned **ret, size_t *ret_n,
                                      struct fl_err *err);
/* Remove the abandoned checkpoints of `round`. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_models_release_abandoned(const char *dir, uint64_t round, struct fl_err *err);

#endif
