#include "libfl/strategy/plateau.h"

#include <math.h>
#include <stddef.h>

void fl_plateau_add(struct fl_plateau *p, uint64_t round, double loss)
{
    double mean = 0;
    size_t i;

    if (!isfinite(loss) || loss <= 0) { /* A round without a client has the loss 0. */
        return;
    }
    p->losses[p->n++ % FL_PLATEAU_WINDOW] = loss;
    if (p->n < FL_PLATEAU_WINDOW) {
        return;
    }
    for (i = 0; i < FL_PLATEAU_WINDOW; i++) {
        mean += p->losses[i] / FL_PLATEAU_WINDOW;
    }
    if (p->best_at == 0 || mean < p->best * (1 - FL_PLATEAU_GAIN)) {
        p->best = mean;
        p->best_at = p->n;
    } else if (p->n - p->best_at >= FL_PLATEAU_PATIENCE) {
        *p = (struct fl_plateau){
            .round = p->round > 0 ? p->round : round, .newest = round, .count = p->count + 1};
    }
}
