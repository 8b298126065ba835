/*
 * robust: dnc (Divide and Conquer: Shejwalkar and Houmansadr 2021, Algorithm 2)
 *
 *     score_i = <x_i - mean, v>^2, v the direction of the largest variance of the updates
 *
 * The `c` f updates with the largest scores are left out, the mean of the others is taken. The
 * paper samples entries to bound its cost, and repeats that; here all entries are used, once: the
 * projections on v are, up to a common factor, the first eigenvector of the matrix of inner
 * products of the centred updates, which follows from the distances.
 *
 * Weights by samples have no effect. Cost: O(n^2) for each step of the power iteration.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/robust/robust_impl.h"

#define DNC_STEPS     1000
#define DNC_PRECISION 1e-14

struct options {
    struct fl_robust_common common;
    double c;
};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, c), .def = "1", .min = 0, .max = 100,
     .help = "c times f updates are left out, rounded."},
    FL__ROBUST_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

/* <x_i - mean, x_j - mean> for all pairs. */
static void dnc_centre(const struct fl_robust_updates *in, double *gram, double *row)
{
    size_t n = in->n;
    double all = 0;
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        row[i] = 0;
        for (j = 0; j < n; j++) {
            row[i] += fl__robust_distance_sq(in, i, j) / (double)n;
        }
        all += row[i] / (double)n;
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            gram[i * n + j] = (row[i] + row[j] - all - fl__robust_distance_sq(in, i, j)) / 2;
        }
    }
}

/* The first eigenvector of a positive matrix, from its column with the largest diagonal. */
static void dnc_direction(const double *gram, size_t n, double *v, double *next)
{
    size_t first = 0;
    size_t i;
    size_t j;
    int step;

    for (i = 1; i < n; i++) {
        first = gram[i * n + i] > gram[first * n + first] ? i : first;
    }
    (void)memcpy(v, gram + first * n, n * sizeof(*v));
    for (step = 0; step < DNC_STEPS; step++) {
        double norm = 0;
        double moved = 0;

        for (i = 0; i < n; i++) {
            norm += v[i] * v[i];
        }
        if (!(norm > 0)) {
            return; /* All updates are equal. */
        }
        for (i = 0; i < n; i++) {
            v[i] /= sqrt(norm);
        }
        for (i = 0; i < n; i++) {
            next[i] = 0;
            for (j = 0; j < n; j++) {
                next[i] += gram[i * n + j] * v[j];
            }
        }
        norm = 0;
        for (i = 0; i < n; i++) {
            norm += next[i] * next[i];
        }
        for (i = 0; norm > 0 && i < n; i++) {
            moved = fmax(moved, fabs(next[i] / sqrt(norm) - v[i]));
        }
        (void)memcpy(v, next, n * sizeof(*v));
        if (moved < DNC_PRECISION) {
            return;
        }
    }
}

static int dnc_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w)
{
    const struct options *v = fl_options_values(o);
    size_t n = in->n;
    double *memory = calloc(n * n + 3 * n, sizeof(*memory));
    struct fl__robust_ranked *scores = calloc(n, sizeof(*scores));
    double out = rint(v->c * (double)fl__robust_bound_f(o, n));
    size_t kept = out < (double)n ? n - (size_t)out : 1;
    double *direction;
    size_t i;

    if (memory == NULL || scores == NULL) {
        free(memory);
        free(scores);
        return FL_ENOMEM;
    }
    direction = memory + n * n;
    dnc_centre(in, memory, direction + n);
    dnc_direction(memory, n, direction, direction + 2 * n);
    for (i = 0; i < n; i++) {
        scores[i] = (struct fl__robust_ranked){direction[i] * direction[i], i};
    }
    fl__robust_rank(scores, n);
    (void)memset(w, 0, (n + 1) * sizeof(*w));
    for (i = 0; i < kept; i++) {
        w[scores[i].at] = 1 / (double)kept;
    }
    free(memory);
    free(scores);
    return FL_OK;
}

const struct fl_robust_ops fl_robust_dnc = {
    .policy = {.name = "dnc",
               .help = "mean without the updates farthest along the direction of largest variance",
               .source = "Shejwalkar and Houmansadr 2021",
               .options = options},
    .needs = fl__robust_majority,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = dnc_weigh,
};
