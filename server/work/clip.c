#include "server/work/clip.h"

#include <stdlib.h>

/* With fewer updates no one can be called too long. */
#define CLIP_LEAST 3

static int clip_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

size_t fl_clip_factors(const struct fl_participant_rec *parts, size_t n, double clip,
                       double *factors)
{
    size_t n_norms = 0;
    size_t clipped = 0;
    double limit = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (parts[i].rms[0] > 0.0) {
            factors[n_norms++] = parts[i].rms[0];
        }
    }
    if (clip > 0 && n_norms >= CLIP_LEAST) {
        qsort(factors, n_norms, sizeof(*factors), clip_compare);
        limit = clip * factors[(n_norms - 1) / 2];
    }
    for (i = 0; i < n; i++) {
        bool over = limit > 0 && parts[i].rms[0] > limit;

        factors[i] = over ? limit / parts[i].rms[0] : 1;
        clipped += over;
    }
    return clipped;
}
