/*
 * robust: dnc (Divide and Conquer: Shejwalkar and Houmansadr 2021, Algorithm 2)
 *
 *     score_i = <x_i - mean, v>^2, v the direction of the largest variance of the updates
 *
 * The `c` f updates with the largest scores are left out, the mean of the others is taken. The
 * paper samples entries to bound its cost, and repeats that; here all entries are used, once: the
 * projections on v are, up to a common factor, the first eigenvector of the matrix of inner
 * products of the centred updates (libfl/num/principal.h).
 *
 * Weights by samples have no effect. Cost: O(n^2) for each step of the power iteration.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/principal.h"
#include "libfl/strategy/robust/robust_impl.h"

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

static int dnc_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                     double *score)
{
    const struct options *v = fl_options_values(o);
    size_t n = in->n;
    double *memory = calloc(n * n + 2 * n, sizeof(*memory));
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
    for (i = 0; i < n; i++) {
        (void)memcpy(memory + i * n, in->gram + i * (n + 1), n * sizeof(*memory));
    }
    fl_principal_centre(memory, n, direction);
    fl_principal(memory, n, direction, direction + n);
    for (i = 0; i < n; i++) {
        score[i] = fabs(direction[i]);
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
