#ifndef FL_STORE_ROLLBACK_H
#define FL_STORE_ROLLBACK_H

/*
 * Going back to an older checkpoint because an operator said so (docs/changing.md).
 *
 * What was asked is a record, on disk before anybody is told; a start carries it out before it
 * reads anything else. Death at any point leaves it asked, or done: the rounds go in one
 * transaction, which leaves a note to take their checkpoints out of the way; that can be done
 * any number of times.
 *
 * Threading and errors: as store.h.
 */

#include "server/store/generation.h"

/* Replaces one that was asked before. `round` is not checked here. */
FL_MUST_CHECK int fl_store_ask_rollback(struct fl_store *store, uint64_t round, uint64_t wall_ms,
                                        struct fl_err *err);
/* FL_ENOENT: none is asked, or it is carried out but for fl_store_finish_rollback(). */
FL_MUST_CHECK int fl_store_asked_rollback(struct fl_store *store, uint64_t *ret_round,
                                          struct fl_err *err);
/* It cannot be done (any more). */
FL_MUST_CHECK int fl_store_drop_rollback(struct fl_store *store, struct fl_err *err);

struct fl_rolled_back {
    uint64_t round, last; /* rounds behind `round` up to `last` are abandoned */
    /* The attempt that was open, with the updates it had accepted; 0: none. */
    uint64_t dropped_round;
    uint32_t dropped_attempt;
    uint64_t dropped_updates;
};

/*
 * Carry out what is asked: begin another line behind its round, as fl_store_rewind(). Records
 * of abandoned rounds stay in table `abandoned`.
 */
FL_MUST_CHECK int fl_store_roll_back(struct fl_store *store, bool keep_anew, uint64_t wall_ms,
                                     struct fl_rolled_back *ret, struct fl_err *err);
/*
 * Take the checkpoints of the abandoned rounds out of the way: the newest, and those that an
 * operator holds, are kept as "….line-N" with N the line they were of; the others go. Nothing
 * to do is FL_OK.
 */
FL_MUST_CHECK int fl_store_finish_rollback(struct fl_store *store, struct fl_err *err);

/* The record of an abandoned round. */
struct fl_abandoned_round {
    struct fl_round_rec round;
    uint64_t line;  /* that it was of */
    uint64_t at_ms; /* wall clock; when it was given up */
    const char *by; /* "rolled back to round 2, rounds 3 to 4 abandoned"; never empty */
};
/* The `last` that were committed last (0: all), in the order of their commits, one call each. */
typedef int (*fl_store_abandoned_cb)(void *ctx, const struct fl_abandoned_round *round);
FL_MUST_CHECK int fl_store_abandoned(struct fl_store *store, uint32_t last,
                                     fl_store_abandoned_cb cb, void *ctx, struct fl_err *err);

/* An abandoned checkpoint that is kept. */
struct fl_abandoned {
    uint64_t round, line;
};
/* In rising order; free() the list. */
FL_MUST_CHECK int fl_models_abandoned(const char *dir, struct fl_abandoned **ret, size_t *ret_n,
                                      struct fl_err *err);
/* Remove those of `round`. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_models_release_abandoned(const char *dir, uint64_t round, struct fl_err *err);

#endif
