/*
 * robust: signguard (Xu, Huang, Song, Lan 2022, Algorithm 2; docs/algorithms.md#signguard)
 *
 *     S1 = { i : lower M <= |x_i| <= upper M },  M the median of the norms
 *     S2 = the largest cluster of the features (p_i, z_i, n_i, q_i)
 *     result = mean over S1 and S2 of x_i min(1, M / |x_i|)
 *
 * p_i, z_i, n_i are the numbers of positive, zero and negative entries of update i, each beside the
 * largest of all updates, as in the authors' program. All entries are counted, where the paper
 * draws a tenth of them to bound its cost. q_i is 0, or compares the update with the last result r
 * (the authors' SignGuard-Sim and SignGuard-Dist), m the median over the updates:
 *
 *     similarity   min(max(c_i, 0), m) / 5 m,  c_i = cos(x_i, r); 0 for m <= 0
 *     distance     1/5 when |x_i - r| > 1.1 m, else 0
 *
 * and 0 without a last result. Clusters are those of mean shift (Comaniciu, Meer 2002)
 * with a flat kernel, started from every update; the bandwidth is the mean distance to the k-th
 * nearest update, itself included, k = bandwidth_quantile n, as in scikit-learn. An update farther
 * than the bandwidth from all centres is in no cluster.
 *
 * Weights by samples have no effect. When no update is in both sets the result is 0. Cost: a count
 * of signs and the norms, one pass over the updates; then O(n^2) for each step of the mean shift.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/sorted.h"
#include "libfl/strategy/robust/robust_impl.h"

enum { SIGNS = 3, FEATURES, SHIFTS_MAX = 300 };

enum feature { FEATURE_NONE, FEATURE_SIMILARITY, FEATURE_DISTANCE };

/* Of the authors' program: the range of q_i, and how far is far. */
#define FEATURE_WEIGHT 0.2
#define FEATURE_FAR    1.1

/* Distances that are equal but for their rounding are equal, and squares below this are 0: the mean
   of equal features need not be equal to them. Features are at most 1. */
#define SLACK (1 + 1e-9)
#define TINY  1e-24

struct options {
    struct fl_robust_common common;
    double lower, upper, bandwidth_quantile;
    enum feature feature;
};

static const char *const features[] = {[FEATURE_NONE] = "none",
                                       [FEATURE_SIMILARITY] = "similarity",
                                       [FEATURE_DISTANCE] = "distance",
                                       NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, lower), .def = "0.1", .min = 0, .max = 1,
     .help = "Smallest norm of an update that is kept, in medians of the norms."},
    {FL_OPT(struct options, FLOAT, upper), .def = "3", .min = 1, .max = 1e9,
     .help = "Largest norm of an update that is kept, in medians of the norms."},
    {FL_OPT(struct options, FLOAT, bandwidth_quantile), .def = "0.5", .min = 0, .max = 1,
     .help = "Share of the updates within whose distance others are in the same cluster."},
    {FL_OPT(struct options, ENUM, feature), .def = "none", .choices = features,
     .help = "Compared beside the signs: the cosine 'similarity' with the last result "
             "(SignGuard-Sim), or the 'distance' from it (SignGuard-Dist)."},
    FL__ROBUST_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

/* --- clusters --- */

struct clusters {
    size_t n;
    double (*x)[FEATURES];      /* [n] */
    double (*centre)[FEATURES]; /* [n] where the mean shift from each of them ended */
    size_t *within;             /* [n] features within the bandwidth of it */
    size_t *order;              /* [n] of the centres: most features first, then the first one */
    size_t *members;            /* [n] of the centres that are kept */
    size_t *label;              /* [n] centre of each feature; n: none */
    double *sorted;             /* [n] */
    double limit;               /* squared bandwidth */
};

static double feature_distance_sq(const double *a, const double *b)
{
    double sum = 0;
    size_t q;

    for (q = 0; q < FEATURES; q++) {
        sum += (a[q] - b[q]) * (a[q] - b[q]);
    }
    return sum;
}

static int clusters_new(struct clusters *c, size_t n)
{
    *c = (struct clusters){.n = n,
                           .x = calloc(n, sizeof(*c->x)),
                           .centre = calloc(n, sizeof(*c->centre)),
                           .within = calloc(n, sizeof(*c->within)),
                           .order = calloc(n, sizeof(*c->order)),
                           .members = calloc(n, sizeof(*c->members)),
                           .label = calloc(n, sizeof(*c->label)),
                           .sorted = calloc(n, sizeof(*c->sorted))};
    return c->x != NULL && c->centre != NULL && c->within != NULL && c->order != NULL &&
                   c->members != NULL && c->label != NULL && c->sorted != NULL
               ? FL_OK
               : FL_ENOMEM;
}

static void clusters_done(struct clusters *c)
{
    free(c->x);
    free(c->centre);
    free(c->within);
    free(c->order);
    free(c->members);
    free(c->label);
    free(c->sorted);
}

/* Numbers of positive, zero and negative entries, each beside the largest. */
static void clusters_features(struct clusters *c, const struct fl_robust_updates *in)
{
    double most[SIGNS] = {0};
    size_t i;
    size_t q;

    for (i = 0; i < c->n; i++) {
        c->x[i][0] = in->positive[i];
        c->x[i][1] = in->zero[i];
        c->x[i][2] = in->entries - in->positive[i] - in->zero[i];
        for (q = 0; q < SIGNS; q++) {
            most[q] = fmax(most[q], c->x[i][q]);
        }
    }
    for (i = 0; i < c->n; i++) {
        for (q = 0; q < SIGNS; q++) {
            c->x[i][q] = most[q] > 0 ? c->x[i][q] / most[q] : 0;
        }
    }
}

static double clusters_cosine(const struct fl_robust_updates *in, size_t i)
{
    double length = sqrt(fl__robust_product(in, i, i)) * sqrt(fl__robust_product(in, in->n, in->n));

    return length > 0 ? fl__robust_product(in, i, in->n) / length : 0;
}

/* Beside the last result; nothing, when there is none. */
static void clusters_compare(struct clusters *c, const struct fl_robust_updates *in,
                             enum feature feature)
{
    double median;
    size_t i;

    if (feature == FEATURE_NONE || !(fl__robust_product(in, in->n, in->n) > 0)) {
        return;
    }
    for (i = 0; i < c->n; i++) {
        c->x[i][SIGNS] = feature == FEATURE_SIMILARITY ? clusters_cosine(in, i)
                                                       : sqrt(fl__robust_distance_sq(in, i, in->n));
        c->sorted[i] = c->x[i][SIGNS];
    }
    median = fl_lower_median(c->sorted, c->n);
    for (i = 0; i < c->n; i++) {
        double *x = &c->x[i][SIGNS];

        if (feature == FEATURE_SIMILARITY) {
            *x = median > 0 ? FEATURE_WEIGHT * fmin(fmax(*x, 0), median) / median : 0;
        } else {
            *x = *x > FEATURE_FAR * median ? FEATURE_WEIGHT : 0;
        }
    }
}

static void clusters_bandwidth(struct clusters *c, double quantile)
{
    size_t k = (size_t)(quantile * (double)c->n);
    double sum = 0;
    size_t i;
    size_t j;

    k = k > 0 ? k : 1;
    for (i = 0; i < c->n; i++) {
        for (j = 0; j < c->n; j++) {
            c->sorted[j] = feature_distance_sq(c->x[i], c->x[j]);
        }
        fl_sort(c->sorted, c->n);
        sum += sqrt(c->sorted[k - 1]);
    }
    sum /= (double)c->n;
    c->limit = sum * sum;
}

static bool clusters_near(const struct clusters *c, const double *a, const double *b)
{
    return feature_distance_sq(a, b) <= c->limit * SLACK + TINY;
}

/* From feature i to the mean of those within the bandwidth, until it does not change. */
static void clusters_shift(struct clusters *c, size_t i)
{
    double *centre = c->centre[i];
    size_t shifts;
    size_t j;
    size_t q;

    (void)memcpy(centre, c->x[i], sizeof(c->x[i]));
    for (shifts = 0; shifts < SHIFTS_MAX; shifts++) {
        double mean[FEATURES] = {0};

        c->within[i] = 0;
        for (j = 0; j < c->n; j++) {
            if (clusters_near(c, centre, c->x[j])) {
                c->within[i]++;
                for (q = 0; q < FEATURES; q++) {
                    mean[q] += c->x[j][q];
                }
            }
        }
        for (q = 0; c->within[i] > 0 && q < FEATURES; q++) {
            mean[q] /= (double)c->within[i];
        }
        if (c->within[i] == 0 || !(feature_distance_sq(mean, centre) > TINY)) {
            return;
        }
        (void)memcpy(centre, mean, sizeof(mean));
    }
}

/* The centres without those within the bandwidth of an earlier one: how many remain, in `order`. */
static size_t clusters_centres(struct clusters *c)
{
    size_t kept = 0;
    size_t i;
    size_t j;

    for (i = 0; i < c->n; i++) {
        c->order[i] = i;
    }
    for (i = 1; i < c->n; i++) { /* Insertion keeps the order of equal ones. */
        size_t at = c->order[i];

        for (j = i; j > 0 && c->within[c->order[j - 1]] < c->within[at]; j--) {
            c->order[j] = c->order[j - 1];
        }
        c->order[j] = at;
    }
    for (i = 0; i < c->n; i++) {
        bool near = false;

        for (j = 0; j < kept && !near; j++) {
            near = clusters_near(c, c->centre[c->order[j]], c->centre[c->order[i]]);
        }
        if (!near) {
            c->order[kept++] = c->order[i];
        }
    }
    return kept;
}

/* The centre with most members, of equal ones the first, or n: no feature is near any centre. */
static size_t clusters_largest(struct clusters *c)
{
    size_t kept = clusters_centres(c);
    size_t largest = c->n;
    size_t i;
    size_t j;

    for (i = 0; i < c->n; i++) {
        double least = (double)INFINITY;

        c->label[i] = c->n;
        for (j = 0; j < kept; j++) {
            double distance = feature_distance_sq(c->x[i], c->centre[c->order[j]]);

            if (distance * SLACK < least && distance <= c->limit * SLACK + TINY) {
                least = distance;
                c->label[i] = c->order[j];
            }
        }
        c->members[c->label[i] < c->n ? c->label[i] : 0] += c->label[i] < c->n;
    }
    for (j = 0; j < kept; j++) {
        if (c->members[c->order[j]] > (largest < c->n ? c->members[largest] : 0)) {
            largest = c->order[j];
        }
    }
    return largest;
}

/* --- the rule --- */

/* How many times its limit a length has; 0 of 0. */
static double signguard_times(double length, double limit)
{
    if (!(length > 0)) {
        return 0;
    }
    return length < FL_ROBUST_SCORE_MAX * limit ? length / limit : FL_ROBUST_SCORE_MAX;
}

static int signguard_weigh(const struct fl_options *o, const struct fl_robust_updates *in,
                           double *w, double *score)
{
    const struct options *v = fl_options_values(o);
    struct clusters c;
    size_t n = in->n;
    size_t kept = 0;
    size_t largest;
    double median;
    size_t i;

    if (clusters_new(&c, n) != FL_OK) {
        clusters_done(&c);
        return FL_ENOMEM;
    }
    clusters_features(&c, in);
    clusters_compare(&c, in, v->feature);
    clusters_bandwidth(&c, v->bandwidth_quantile);
    for (i = 0; i < n; i++) {
        clusters_shift(&c, i);
    }
    largest = clusters_largest(&c);
    for (i = 0; i < n; i++) {
        c.sorted[i] = sqrt(fl__robust_product(in, i, i));
    }
    median = fl_lower_median(c.sorted, n);
    (void)memset(w, 0, (n + 1) * sizeof(*w));
    for (i = 0; i < n; i++) {
        double norm = sqrt(fl__robust_product(in, i, i));
        double apart = largest < n ? feature_distance_sq(c.x[i], c.centre[largest]) : 0;

        score[i] = fmax(signguard_times(norm, v->upper * median),
                        fmax(signguard_times(v->lower * median, norm),
                             signguard_times(sqrt(apart), sqrt(c.limit))));
        if (c.label[i] == largest && largest < n && norm >= v->lower * median &&
            norm <= v->upper * median) {
            w[i] = norm > median ? median / norm : 1;
            kept++;
        }
    }
    for (i = 0; kept > 0 && i < n; i++) {
        w[i] /= (double)kept;
    }
    clusters_done(&c);
    return FL_OK;
}

static int signguard_check(const struct fl_options *o, struct fl_err *err)
{
    return fl__robust_common(o)->mix == FL_MIX_NONE
               ? FL_OK
               : fl_err_set(err, FL_ECONF,
                            "it counts the signs of each update, and a mean of several has other "
                            "signs: set mix to 'none'");
}

static bool signguard_centred(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->feature != FEATURE_NONE;
}

const struct fl_robust_ops fl_robust_signguard = {
    .policy = {.name = "signguard",
               .help = "clipped mean of the updates with usual norms and the most common signs",
               .source = "Xu, Huang, Song, Lan 2022",
               .options = options,
               .check = signguard_check},
    .needs = fl__robust_majority,
    .centred = signguard_centred,
    .wants = FL_ROBUST_NORMS | FL_ROBUST_SIGNS,
    .weigh = signguard_weigh,
};
