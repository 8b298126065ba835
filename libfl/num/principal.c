#include "libfl/num/principal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Variances that differ by 1 in N need some N steps; as many as fit into this many products, a
 * tenth of a second. */
#define PRINCIPAL_STEPS     1000
#define PRINCIPAL_PRODUCTS  1e8
#define PRINCIPAL_PRECISION 1e-14

void fl_principal_centre(double *gram, size_t n, double *means)
{
    double all = 0;
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        means[i] = 0;
        for (j = 0; j < n; j++) {
            means[i] += gram[i * n + j] / (double)n;
        }
        all += means[i] / (double)n;
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            gram[i * n + j] += all - means[i] - means[j];
        }
    }
}

/* Scale v to length 1; false: its length is 0. */
static bool principal_normalise(double *v, size_t n)
{
    double length = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        length += v[i] * v[i];
    }
    length = sqrt(length);
    for (i = 0; length > 0 && i < n; i++) {
        v[i] /= length;
    }
    return length > 0;
}

void fl_principal(const double *restrict gram, size_t n, double *restrict v, double *restrict next)
{
    size_t first = 0;
    size_t i;
    size_t j;
    double most = fmax(PRINCIPAL_STEPS, PRINCIPAL_PRODUCTS / ((double)n * (double)n));
    double step;

    for (i = 1; i < n; i++) {
        first = gram[i * n + i] > gram[first * n + first] ? i : first;
    }
    (void)memcpy(v, gram + first * n, n * sizeof(*v));
    for (step = 0; principal_normalise(v, n) && step < most; step++) {
        double moved = 0;

        (void)memset(next, 0, n * sizeof(*next));
        for (j = 0; j < n; j++) { /* Row by row: sums of one row wait for each other. */
            for (i = 0; i < n; i++) {
                next[i] += gram[j * n + i] * v[j];
            }
        }
        if (!principal_normalise(next, n)) {
            return;
        }
        for (i = 0; i < n; i++) {
            moved = fmax(moved, fabs(next[i] - v[i]));
        }
        (void)memcpy(v, next, n * sizeof(*v));
        if (moved < PRINCIPAL_PRECISION) {
            return;
        }
    }
}
