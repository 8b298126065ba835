#ifndef FL_STRATEGY_SOLVER_FEDMIX_H
#define FL_STRATEGY_SOLVER_FEDMIX_H

/*
 * Data summaries of FedMix and NaiveMix (docs/algorithms.md#mix-up-from-means): the means of
 * groups of samples and of their labels. Private to the solver.
 *
 * A data summary, all numbers little-endian:
 *
 *     4 bytes    "FLMX"
 *     uint32     dim: values of a sample
 *     uint32     classes
 *     uint32     pairs, at least 1
 *     pairs x    float32[dim]: mean sample, then float32[classes]: mean one-hot label
 *
 * with nothing after it. The union of all data summaries is their concatenation.
 */

#include "libfl/strategy/solver/solver.h"

#define FL__MIX_HEADER 16

/* Options of both solvers; `q` is only for FedMix. */
struct fl__mix_options {
    double lambda, mu;
    int64_t group;
    enum { FL__MIX_ONE, FL__MIX_ONE_MINUS_LAMBDA } q;
};

/* fl_solver_ops.summary and summary_check. */
FL_MUST_CHECK int fl__mix_summary(const struct fl_options *o, const struct fl_solver_data *data,
                                  uint64_t seed, struct fl_buf *out, struct fl_err *err);
FL_MUST_CHECK int fl__mix_check(const struct fl_options *o, const void *data, size_t len,
                                size_t dim, size_t classes, struct fl_err *err);
/* fl_solver_ops.summary_group, summary_means and summary_largest. */
uint64_t fl__mix_group(const struct fl_options *o);
uint64_t fl__mix_means(const void *data, size_t len);
double fl__mix_largest(const void *data, size_t len);
/* policy.check of the option `group`. */
FL_MUST_CHECK int fl__mix_check_options(const struct fl_options *o, struct fl_err *err);

/*
 * All pairs of a union of data summaries; borrows the bytes as long as it is used. All zero:
 * empty.
 */
struct fl__mix_union {
    size_t dim, classes;
    uint64_t n_pairs;
    size_t n_summaries;
    struct fl__mix_part {
        const uint8_t *pairs;
        uint64_t end; /* number of pairs up to and including this data summary */
    } * parts;
};

/*
 * Open a union and check every data summary in it. The first one with the bytes of `own` is left
 * out: a data summary depends on a client's data, options and seed alone, so the client can
 * recognise its own; another with the same bytes gives the same result. FL_EFORMAT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl__mix_union_open(const struct fl_solver_bytes *bytes,
                                     const struct fl_solver_bytes *own, size_t dim, size_t classes,
                                     struct fl__mix_union *ret, struct fl_err *err);
void fl__mix_union_done(struct fl__mix_union *all);
/* Copy pair `i` < n_pairs to x[dim] and label[classes]. */
void fl__mix_union_pair(const struct fl__mix_union *all, uint64_t i, float *x, float *label);

#endif
