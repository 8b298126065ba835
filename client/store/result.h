#ifndef FL_CLIENT_RESULT_H
#define FL_CLIENT_RESULT_H

/*
 * A finished result, in memory and on disk: <state_dir>/result.bin, replaced atomically. A file
 * that is damaged, or of another model, counts as none; one of a later version fails the start
 * (FL_EVERSION).
 *
 * Reference-counted, because the training thread may encode a result for a push while the session
 * drops it. Threading: references are taken and released on the loop; the training thread only
 * reads.
 */

#include <stdbool.h>

#include "client/core/session.h"
#include "libfl/model/accuracy.h"
#include "libfl/model/layout.h"

struct fl_result {
    unsigned refs;
    struct fl_round_key key;
    uint64_t draw; /* of a hashed space, as in the task */
    uint64_t samples, steps;
    double train_loss;
    bool has_received, has_trained;
    struct fl_evaluation received, trained;
    double previous_dot;
    /* A pending set was written with it (client_state.h), and the result is useless without it. */
    bool pending;
    bool has_kept;            /* `kept` is set: the round of the client state used in training */
    struct fl_round_key kept; /* round 0: no client state was used */
    uint8_t digest[FL_DIGEST_SIZE];     /* of the layout */
    uint8_t generation[FL_DIGEST_SIZE]; /* Welcome's */
    size_t n_units, n_floats, n_sent, n_mask;
    float *divergence; /* [n_units], owned */
    float *delta;      /* [n_floats], owned */
    float **sent;      /* [n_sent][n_floats], owned; payloads of the solver beside the update */
    uint8_t *mask;     /* [n_mask] neurons that are sent, owned; NULL: all */
};

/* An empty result with one reference; NULL without memory. */
struct fl_result *fl_result_new(void);
struct fl_result *fl_result_ref(struct fl_result *result);
void fl_result_unref(struct fl_result *result); /* NULL is allowed. */

FL_MUST_CHECK int fl_result_save(const char *state_dir, const struct fl_result *result,
                                 struct fl_err *err);
/*
 * FL_ENOENT: none; FL_EFORMAT: damaged, or of an unknown version; FL_EVERSION: of a later version.
 */
FL_MUST_CHECK int fl_result_load(const char *state_dir, struct fl_result **ret, struct fl_err *err);
FL_MUST_CHECK int fl_result_remove(const char *state_dir, struct fl_err *err);

#endif
