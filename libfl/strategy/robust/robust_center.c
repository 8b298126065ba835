/*
 * Robust rules that move from a first point towards the updates, each with a bounded pull
 * (docs/algorithms.md#robust-aggregation):
 *
 *     geometric_median     z <- sum_i x_i / max(nu, |x_i - z|) / sum_i 1 / max(nu, |x_i - z|),
 *                          `iterations` times from 0 (RFA: Pillutla, Kakade, Harchaoui 2022,
 *                          Algorithm 2, with equal weights)
 *     centered_clipping    v <- v + 1/n sum_i (x_i - v) min(1, tau / |x_i - v|), `iterations`
 *                          times from the result of the last round (Karimireddy, He, Jaggi 2021,
 *                          Algorithm 2); tau 0: the median of the distances |x_i - v|
 *     clipping             mean of x_i min(1, tau / |x_i|), weighted as without a rule; tau static,
 *                          c times the median norm, or by arc: the norm above which
 *                          floor(2 f / n (n - f)) updates are (Allouah et al. 2025)
 *
 * All points are combinations of the updates and of the centre, so their distances follow from the
 * inner products. Cost: O(n^2) for each iteration.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/robust/robust_impl.h"

enum threshold { THRESHOLD_MEDIAN, THRESHOLD_STATIC, THRESHOLD_ARC };

/* --- geometric median --- */

struct geometric_options {
    struct fl_robust_common common;
    double nu;
    int64_t iterations;
};

static const struct fl_opt_spec geometric_options[] = {
    {FL_OPT(struct geometric_options, FLOAT, nu), .def = "0.1", .min = 1e-12, .max = 1e6,
     .help = "Distances are at least this in the weights 1 / distance."},
    {FL_OPT(struct geometric_options, INT, iterations), .def = "3", .min = 1, .max = 1000,
     .help = "Steps of Weiszfeld's algorithm, from 0."},
    FL__ROBUST_OPTIONS(struct geometric_options),
    FL_OPT_END_OF(struct geometric_options),
};

static int geometric_weigh(const struct fl_options *o, const struct fl_robust_updates *in,
                           double *w, double *score)
{
    const struct geometric_options *v = fl_options_values(o);
    double *next = calloc(in->n, sizeof(*next));
    int64_t t;
    size_t i;

    if (next == NULL) {
        return FL_ENOMEM;
    }
    (void)memset(w, 0, in->n * sizeof(*w));
    w[in->n] = 1;
    for (t = 0; t < v->iterations; t++) {
        double point_sq = fl__robust_point_sq(in, w);
        double sum = 0;

        for (i = 0; i < in->n; i++) {
            next[i] = 1 / fmax(v->nu, sqrt(fl__robust_from_point(in, w, point_sq, i)));
            sum += next[i];
        }
        for (i = 0; i < in->n; i++) {
            w[i] = next[i] / sum;
        }
        w[in->n] = 0;
    }
    fl__robust_score_distances(in, w, score);
    free(next);
    return FL_OK;
}

const struct fl_robust_ops fl_robust_geometric_median = {
    .policy = {.name = "geometric_median",
               .help = "point with the smallest sum of distances to the updates, smoothed (RFA)",
               .source = "Pillutla, Kakade, Harchaoui 2022",
               .options = geometric_options},
    .needs = fl__robust_majority,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = geometric_weigh,
};

/* --- centered clipping --- */

struct centered_options {
    struct fl_robust_common common;
    double tau;
    int64_t iterations;
};

static const struct fl_opt_spec centered_options[] = {
    {FL_OPT(struct centered_options, FLOAT, tau), .def = "0", .min = 0, .max = 1e30,
     .help = "Length to which differences from the centre are clipped; 0: their median."},
    {FL_OPT(struct centered_options, INT, iterations), .def = "1", .min = 1, .max = 1000,
     .help = "Steps in a round, from the last round's result."},
    FL__ROBUST_OPTIONS(struct centered_options),
    FL_OPT_END_OF(struct centered_options),
};

/* The middle one of n numbers, of two the mean. Sorts the list. */
static double ranked_median(struct fl__robust_ranked *list, size_t n)
{
    fl__robust_rank(list, n);
    return (list[(n - 1) / 2].value + list[n / 2].value) / 2;
}

/* min(1, tau / length); 1 for a length of 0. */
static double clip_factor(double tau, double length)
{
    return length > tau ? tau / length : 1;
}

static int centered_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                          double *score)
{
    const struct centered_options *v = fl_options_values(o);
    size_t n = in->n;
    struct fl__robust_ranked *length = calloc(2 * n, sizeof(*length));
    int64_t t;
    size_t i;

    if (length == NULL) {
        return FL_ENOMEM;
    }
    (void)memset(w, 0, n * sizeof(*w));
    w[n] = 1;
    for (t = 0; t < v->iterations; t++) {
        double point_sq = fl__robust_point_sq(in, w);
        double kept = 1;
        double tau = v->tau;

        for (i = 0; i < n; i++) {
            length[i] =
                (struct fl__robust_ranked){sqrt(fl__robust_from_point(in, w, point_sq, i)), i};
            length[n + i] = length[i];
        }
        tau = tau > 0 ? tau : ranked_median(length + n, n);
        for (i = 0; i < n; i++) {
            length[i].value = clip_factor(tau, length[i].value) / (double)n;
            kept -= length[i].value;
        }
        for (i = 0; i < n; i++) {
            w[i] = kept * w[i] + length[i].value;
        }
        w[n] *= kept;
    }
    fl__robust_score_distances(in, w, score);
    free(length);
    return FL_OK;
}

static bool centered_always(const struct fl_options *o)
{
    (void)o;
    return true;
}

const struct fl_robust_ops fl_robust_centered_clipping = {
    .policy = {.name = "centered_clipping",
               .help = "last result plus the mean of the clipped differences from it",
               .source = "Karimireddy, He, Jaggi 2021",
               .options = centered_options},
    .needs = fl__robust_majority,
    .centred = centered_always,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = centered_weigh,
};

/* --- clipping --- */

struct clipping_options {
    struct fl_robust_common common;
    enum threshold threshold;
    double c;
};

static const char *const thresholds[] = {
    [THRESHOLD_MEDIAN] = "median", [THRESHOLD_STATIC] = "static", [THRESHOLD_ARC] = "arc", NULL};

static const struct fl_opt_spec clipping_options[] = {
    {FL_OPT(struct clipping_options, ENUM, threshold), .def = "median", .choices = thresholds,
     .help = "Norm to which updates are clipped: c times the median norm, c itself (static), or "
             "the norm above which floor(2 f / n (n - f)) updates are (arc)."},
    {FL_OPT(struct clipping_options, FLOAT, c), .def = "2", .min = 1e-12, .max = 1e30,
     .help = "With threshold 'median' times the median norm, with 'static' a norm."},
    FL__ROBUST_OPTIONS(struct clipping_options),
    FL_OPT_END_OF(struct clipping_options),
};

static double clipping_threshold(const struct fl_options *o, struct fl__robust_ranked *norms,
                                 size_t n)
{
    const struct clipping_options *v = fl_options_values(o);
    size_t f = fl__robust_bound_f(o, n);

    switch (v->threshold) {
    case THRESHOLD_MEDIAN:
        return v->c * ranked_median(norms, n);
    case THRESHOLD_STATIC:
        return v->c;
    case THRESHOLD_ARC:
        break;
    }
    fl__robust_rank(norms, n);
    return norms[n - (size_t)(2.0 * (double)f / (double)n * (double)(n - f)) - 1].value;
}

static int clipping_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                          double *score)
{
    size_t n = in->n;
    struct fl__robust_ranked *norms = calloc(n, sizeof(*norms));
    double tau;
    size_t i;

    if (norms == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        score[i] = sqrt(fl__robust_product(in, i, i));
        norms[i] = (struct fl__robust_ranked){score[i], i};
    }
    tau = clipping_threshold(o, norms, n);
    for (i = 0; i < n; i++) {
        w[i] = in->weights[i] * clip_factor(tau, score[i]);
    }
    w[n] = 0;
    free(norms);
    return FL_OK;
}

const struct fl_robust_ops fl_robust_clipping = {
    .policy = {.name = "clipping",
               .help = "weighted mean of the updates, clipped to a norm",
               .source = "Allouah et al. 2025",
               .options = clipping_options},
    .needs = fl__robust_majority,
    .by_samples = true,
    .wants = FL_ROBUST_NORMS,
    .weigh = clipping_weigh,
};
