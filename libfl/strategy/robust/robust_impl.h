#ifndef FL_STRATEGY_ROBUST_IMPL_H
#define FL_STRATEGY_ROBUST_IMPL_H

/* Shared by the files of this folder only. */

#include "libfl/strategy/robust/robust.h"

/* Rows of the options that all rules have, after their own. */
/* clang-format off */
#define FL__ROBUST_OPTIONS(S)                                                               \
    {FL_OPT_IN(S, INT, common, f), .def = "0", .min = 0, .max = 10000,                      \
     .help = "Hostile clients among the senders of a layer that are to be withstood."},     \
    {FL_OPT_IN(S, ENUM, common, mix), .def = "none", .choices = fl__robust_mixes,           \
     .help = "What the rule sees: the updates, means of random buckets, or of each update " \
             "with its n - f - 1 nearest neighbours (nnm)."},                               \
    {FL_OPT_IN(S, INT, common, bucket), .def = "2", .min = 1, .max = 10000,                 \
     .help = "With bucketing: updates in a bucket."},                                       \
    {FL_OPT_IN(S, BOOL, common, report), .def = "no",                                       \
     .help = "Only report what the rule would do; the mean is taken as without it."}
/* clang-format on */
extern const char *const fl__robust_mixes[];

static inline const struct fl_robust_common *fl__robust_common(const struct fl_options *o)
{
    return fl_options_values(o);
}
static inline size_t fl__robust_f(const struct fl_options *o)
{
    return (size_t)fl__robust_common(o)->f;
}
/* fl_robust_ops.needs of most rules: 2 f + 1, so that hostile clients are fewer than half. */
size_t fl__robust_majority(const struct fl_options *o);
/* min(f, those with which n - f are more than half); n > 0. */
size_t fl__robust_bound_f(const struct fl_options *o, size_t n);

/* Inner product of two of them; n: the centre. */
static inline double fl__robust_product(const struct fl_robust_updates *in, size_t i, size_t j)
{
    return in->gram[i * (in->n + 1) + j];
}
static inline double fl__robust_distance_sq(const struct fl_robust_updates *in, size_t i, size_t j)
{
    double d = fl__robust_product(in, i, i) + fl__robust_product(in, j, j) -
               2 * fl__robust_product(in, i, j);

    return d > 0 ? d : 0;
}
/* Squared norm of the point sum_j a_j x_j, a[n + 1] (a[n]: of the centre). */
double fl__robust_point_sq(const struct fl_robust_updates *in, const double *a);
/* Squared distance of update i from it. */
double fl__robust_from_point(const struct fl_robust_updates *in, const double *a, double point_sq,
                             size_t i);

/* score[n]: distances of the updates from the result of weights w[n + 1]. */
void fl__robust_score_distances(const struct fl_robust_updates *in, const double *w, double *score);

/* A number with the place it has; in rising order, of equal numbers the lower place first. */
struct fl__robust_ranked {
    double value;
    size_t at;
};
void fl__robust_rank(struct fl__robust_ranked *list, size_t n);

#endif
