#ifndef FL_CLIENT_RESULT_H
#define FL_CLIENT_RESULT_H

/*
 * A finished result, in memory and on disk: <state_dir>/result.bin, written whole. A file
 * that is damaged, or of another model, counts as none; one of
 * a later version ends the start (FL_EVERSION).
 *
 * Counted, because the lane codes a result for a push while the session may drop it.
 * Threading: references are taken and given back on the loop; the lane only reads.
 */

#include <stdbool.h>

#include "client/core/session.h"
#include "libfl/model/layout.h"

struct fl_result_evaluation {
    uint64_t samples, correct;
    double loss_sum;
};

struct fl_result {
    unsigned refs;
    struct fl_round_key key;
    uint64_t samples, steps;
    double train_loss;
    bool has_received, has_trained;
    struct fl_result_evaluation received, trained;
    double previous_dot;
    /* A pending set was written with it (data_cache.h): without that it is of no use. */
    bool pending;
    bool has_kept;                  /* of the round that it was trained with what was kept of */
    struct fl_round_key kept;       /* round 0: nothing was */
    uint8_t digest[FL_DIGEST_SIZE]; /* of the layout */
    uint8_t line[FL_DIGEST_SIZE];   /* Welcome's */
    size_t n_units, n_floats, n_sent, n_mask;
    float *divergence; /* [n_units], owned */
    float *delta;      /* [n_floats], owned */
    float **sent;      /* [n_sent][n_floats], owned; what the solver sends beside the update */
    uint8_t *mask;     /* [n_mask] neurons that are sent, owned; NULL: all */
};

/* An empty result with one reference; NULL without memory. */
struct fl_result *fl_result_new(void);
struct fl_result *fl_result_ref(struct fl_result *result);
void fl_result_unref(struct fl_result *result); /* NULL is allowed. */

FL_MUST_CHECK int fl_result_save(const char *state_dir, const struct fl_result *result,
                                 struct fl_err *err);
/* FL_ENOENT: none; FL_EFORMAT: damaged, or of another version. */
FL_MUST_CHECK int fl_result_load(const char *state_dir, struct fl_result **ret, struct fl_err *err);
FL_MUST_CHECK int fl_result_remove(const char *state_dir, struct fl_err *err);

#endif
