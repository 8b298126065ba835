#include "client/work/momentum.h"

#include <math.h>

#include "libfl/num/vec.h"

static bool momentum_begun(const struct fl_layout *layout, const struct fl_unit *unit,
                           const float *kept)
{
    size_t t;
    size_t i;

    for (t = unit->first_tensor; kept != NULL && t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = 0; fl_tensor_counts(tensor) && i < tensor->count; i++) {
            if (kept[tensor->offset + i] < 0 || kept[tensor->offset + i] > 0) {
                return true;
            }
        }
    }
    return false;
}

void fl_momentum_apply(const struct fl_layout *layout, double beta, const float *kept, float *delta,
                       float *divergence)
{
    size_t l;
    size_t t;
    size_t i;

    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        double sum = 0;

        if (!momentum_begun(layout, unit, kept)) {
            continue;
        }
        for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
            const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
            const float *m = kept + tensor->offset;
            float *x = delta + tensor->offset;

            if (!fl_tensor_counts(tensor)) {
                continue;
            }
            for (i = 0; i < tensor->count; i++) {
                x[i] = (float)(beta * (double)m[i] + (1 - beta) * (double)x[i]);
            }
            sum += fl_vec_dot(x, x, tensor->count);
        }
        divergence[l] = (float)sqrt(sum);
    }
}
