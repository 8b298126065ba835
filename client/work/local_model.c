#include "client/work/local_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"

void fl_local_pack(const struct fl_layout *layout, const float *model, float *packed)
{
    size_t at = 0;
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (tensor->local) {
            (void)memcpy(packed + at, model + tensor->offset, tensor->count * sizeof(*packed));
            at += tensor->count;
        }
    }
}

void fl_local_put(const struct fl_layout *layout, const float *packed, float *model)
{
    size_t at = 0;
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (tensor->local) {
            (void)memcpy(model + tensor->offset, packed + at, tensor->count * sizeof(*packed));
            at += tensor->count;
        }
    }
}

void fl_local_clear(const struct fl_layout *layout, float *block)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (tensor->local) {
            (void)memset(block + tensor->offset, 0, tensor->count * sizeof(*block));
        }
    }
}

void fl_local_divergence(const struct fl_layout *layout, const float *delta, float *divergence)
{
    size_t l;
    size_t t;

    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        double sum = 0;

        for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
            const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
            const float *x = delta + tensor->offset;

            sum += fl_tensor_counts(tensor) ? fl_vec_dot(x, x, tensor->count) : 0;
        }
        if (unit->n_local > 0) {
            divergence[l] = (float)sqrt(sum);
        }
    }
}

int fl_local_copy(const struct fl_worker *worker, const struct fl_layout *layout,
                  const float *model, float **ret, struct fl_err *err)
{
    size_t count = fl_layout_count(layout);
    float *kept = NULL;
    float *copy;
    int rv;

    *ret = NULL;
    if (fl_layout_local(layout) == 0) {
        return FL_OK;
    }
    rv = fl_client_state_newest(worker->keeps, FL_KEEP_LOCAL, &kept, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    copy = malloc(count * sizeof(*copy));
    if (copy != NULL) {
        (void)memcpy(copy, model, count * sizeof(*copy));
        fl_local_put(layout, kept, copy);
        *ret = copy;
    }
    free(kept);
    return copy != NULL ? FL_OK : FL_ENOMEM;
}
