/* Means over entries that some clients left out (aggregate_masked.h). */
#include "libfl/strategy/aggregator/aggregate_masked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fl__presence *fl__presence_create(size_t block)
{
    return calloc(1, sizeof(struct fl__presence) + block * sizeof(double));
}

void fl__presence_clear(struct fl__presence *p, size_t n)
{
    p->all = 0;
    (void)memset(p->weight, 0, n * sizeof(*p->weight));
}

void fl__presence_add(struct fl__presence *p, double *sum, double w, const float *x, size_t n)
{
    size_t i;

    p->all += w;
    for (i = 0; i < n; i++) {
        if (!isnan(x[i])) {
            sum[i] += w * (double)x[i];
            p->weight[i] += w;
        }
    }
}

void fl__presence_divide(const struct fl__presence *p, double *sum, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        /* The weights of all already sum to 1. */
        if (p->weight[i] > 0 && p->weight[i] < p->all) {
            sum[i] /= p->weight[i];
        }
    }
}

void fl__presence_zero(const struct fl__presence *p, float *now, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!(p->weight[i] > 0)) {
            now[i] = 0;
        }
    }
}

void fl__presence_freeze(const struct fl__presence *p, float *now, const float *before, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!(p->weight[i] > 0)) {
            now[i] = before[i];
        }
    }
}
