/*
 * External trainers: what a trainer program must do for a solver, computed without a network of
 * this process (external_training.h). Pure functions on the caller's thread; talking to the
 * program is the client's.
 */
#include "libfl/strategy/external_training.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/solver/solver_impl.h"

const char *const fl_capability_names[] = {"pull",       "gradient", "drift", "pfedme",
                                           "per_fedavg", "mixup",    "space", NULL};

unsigned fl_external_parts(const struct fl_solver_ops *ops, const struct fl_options *o,
                           bool adapting)
{
    return ops->external.parts != NULL ? ops->external.parts(o, adapting) : 0;
}

int fl_external_begin(const struct fl_solver_ops *ops, const struct fl_options *o,
                      const struct fl_external_task *task, struct fl_external *ret,
                      struct fl_err *err)
{
    struct fl_external external = {.parts = fl_external_parts(ops, o, task->adapting),
                                   .learning_rate = task->learning_rate};
    int rv;

    if (ops->fits_training != NULL) {
        rv = ops->fits_training(o, task->learning_rate, task->momentum, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (ops->external.begin != NULL) {
        rv = ops->external.begin(o, task, &external, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = external;
    return FL_OK;
fail:
    fl_external_done(&external);
    return rv;
}

void fl_external_done(struct fl_external *external)
{
    free(external->gradient);
    free(external->drift);
    free(external->places);
    *external = (struct fl_external){0};
}

int fl_external_finish(const struct fl_solver_ops *ops, const struct fl_options *o,
                       const struct fl_external_task *task,
                       const struct fl_external_outcome *outcome, struct fl_err *err)
{
    return ops->external.finish != NULL
               ? ops->external.finish(o, task, outcome->trained, outcome->steps, outcome->kept,
                                      outcome->sent, err)
               : FL_OK;
}

/* --- what solvers share --- */

int fl__external_take(const struct fl_layout *layout, const struct fl_solver_bytes *bytes,
                      const char *name, float **ret, struct fl_err *err)
{
    size_t count = fl_layout_count(layout);
    bool none = bytes == NULL || bytes->data == NULL;
    int rv = none ? FL_OK : fl__solver_check(layout, bytes, name, err);
    float *block;

    if (rv != FL_OK) {
        return rv;
    }
    block = calloc(count, sizeof(*block));
    if (block == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s of %zu parameters: out of memory", name, count);
    }
    if (!none) {
        (void)memcpy(block, bytes->data, count * sizeof(*block));
    }
    *ret = block;
    return FL_OK;
}

int fl__external_put(const struct fl_layout *layout, const float *block, struct fl_buf *out,
                     struct fl_err *err)
{
    size_t size = fl_layout_count(layout) * sizeof(*block);
    int rv = fl_buf_reserve(out, size);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "solver state of %zu bytes: %s", size, fl_strerror(rv));
    }
    (void)memcpy(out->data + out->len, block, size);
    fl__solver_clear_buffers(layout, (float *)(void *)(out->data + out->len));
    out->len += size;
    return FL_OK;
}
