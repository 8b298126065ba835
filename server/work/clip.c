#include "server/work/clip.h"

#include "libfl/base/sorted.h"

/* With fewer updates no one can be called too long. */
#define CLIP_LEAST 3

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
        limit = clip * fl_lower_median(factors, n_norms);
    }
    for (i = 0; i < n; i++) {
        bool over = limit > 0 && parts[i].rms[0] > limit;

        factors[i] = over ? limit / parts[i].rms[0] : 1;
        clipped += over;
    }
    return clipped;
}
