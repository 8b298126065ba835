#ifndef FL_CLI_RESULT_H
#define FL_CLI_RESULT_H

/*
 * A finished result, in memory and on disk: <state_dir>/result.bin, written whole by
 * fl_fs_replace(). A file that is damaged, or belongs to another model, counts as none.
 */

#include <stdbool.h>

#include "client/core/session.h"
#include "libfl/model/layout.h"

struct fl_result {
    struct fl_round_key key;
    uint64_t samples, steps;
    double train_loss;
    bool has_received;
    uint64_t eval_samples, eval_correct;
    double eval_loss_sum;
    uint8_t digest[FL_DIGEST_SIZE]; /* of the layout */
    size_t n_units, n_floats;
    float *divergence; /* [n_units], owned */
    float *delta;      /* [n_floats], owned */
};

FL_MUST_CHECK int fl_result_save(const char *state_dir, const struct fl_result *result,
                                 struct fl_err *err);
/* FL_ENOENT: none; FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_result_load(const char *state_dir, struct fl_result *ret, struct fl_err *err);
FL_MUST_CHECK int fl_result_remove(const char *state_dir, struct fl_err *err);
void fl_result_done(struct fl_result *result);

#endif
