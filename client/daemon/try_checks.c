/*
 * Checks of --try-trainer on a program that has trained: its declared parts, cancelling, and
 * refusing a model of another shape. Runs in the foreground, in one thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/try_impl.h"
#include "libfl/base/clock.h"

/* The training to cancel takes at least LONG_MS and is cancelled after CANCEL_MS. */
#define LONG_MS   4000
#define CANCEL_MS 500

/* --- parts --- */

/*
 * How a declared capability (`parts` in the protocol) is checked: once with values that must change
 * nothing, once with values that must change the model. Without `nothing` only the execution is
 * checked.
 */
struct probe {
    const char *part;
    const char *nothing, *something;  /* members of the task's `do` */
    enum fl_persistent_vector vector; /* MODEL: no extra vector */
    float value;                      /* fills the vector of `something` */
    bool beside_model;                /* the value is added to the model */
};

static const struct probe probes[] = {
    {"pull", "{\"pull\": {\"mu\": 0.0}}", "{\"pull\": {\"mu\": 0.5}}", FL_PERSISTENT_ANCHOR, 0.1F,
     true},
    {"gradient", "{\"gradient\": {}}", "{\"gradient\": {}}", FL_PERSISTENT_GRADIENT, 0.1F, false},
    {"drift", "{\"drift\": {}}", "{\"drift\": {}}", FL_PERSISTENT_DRIFT, 0.01F, false},
    {"space", "{\"space\": {\"numbers\": 1}}", "{\"space\": {\"numbers\": 1}}",
     FL_PERSISTENT_PLACES, 2.0F, false},
    {"pfedme", NULL,
     "{\"pfedme\": {\"inner_steps\": 2, \"inner_learning_rate\": 0.01, \"lambda\": 15.0, "
     "\"personal\": \"theta\"}}",
     FL_PERSISTENT_MODEL, 0.0F, false},
    {"per_fedavg", NULL, "{\"per_fedavg\": {\"variant\": \"fo\", \"alpha\": 0.01}}",
     FL_PERSISTENT_MODEL, 0.0F, false},
};

static const struct probe *probe_of(const char *part)
{
    size_t i;

    for (i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        if (strcmp(probes[i].part, part) == 0) {
            return &probes[i];
        }
    }
    return NULL;
}

/*
 * Fills the vector with `value` at trainable parameters and 0 in buffers, plus the model with
 * `beside_model`.
 */
static void try_fill_vector(struct fl__try *t, float value, bool beside_model)
{
    size_t i, j;

    for (i = 0; i < fl_layout_tensors(t->layout); i++) {
        const struct fl_tensor *tensor = fl_layout_tensor(t->layout, i);

        for (j = tensor->offset; j < tensor->offset + tensor->count; j++) {
            t->vector[j] =
                (fl_tensor_counts(tensor) ? value : 0.0F) + (beside_model ? t->model[j] : 0.0F);
        }
    }
}

static int train_with(struct fl__try *t, const struct probe *probe, const char *parts, float value,
                      struct fl_err *err)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;

    task.parts = parts;
    if (probe->vector != FL_PERSISTENT_MODEL) {
        try_fill_vector(t, value, probe->beside_model);
        task.given[probe->vector] = t->vector;
    }
    return fl__try_train(t, &task, t->other, &answer, err);
}

static void try_part(struct fl__try *t, const struct probe *probe, const char *what)
{
    struct fl_err err = {0};
    bool nothing = true;
    bool something = true;
    int rv = fl__try_describe(t, t->layout, probe->part, &err);

    if (rv != FL_OK) {
        goto done;
    }
    if (probe->nothing != NULL) {
        rv = train_with(t, probe, probe->nothing, 0.0F, &err);
        nothing = fl__try_same(t, t->other);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = train_with(t, probe, probe->something, probe->value, &err);
    something = !fl__try_same(t, t->other);
done:
    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, what, "%s", fl_err_text(&err, rv));
    } else if (probe->nothing == NULL || !t->repeatable) {
        fl_try_say(&t->report, FL_TRY_OK, what, "carried out; its effect was not checked%s",
                   t->repeatable ? "" : ", because a training is not repeatable");
    } else if (!nothing) {
        fl_try_say(&t->report, FL_TRY_FAILED, what,
                   "expected that zeros change nothing, found another model than without the part");
    } else if (!something) {
        fl_try_say(&t->report, FL_TRY_FAILED, what,
                   "expected that it changes the model, found the same model as without it: the "
                   "part is declared but not implemented");
    } else {
        fl_try_say(&t->report, FL_TRY_OK, what,
                   "zeros change nothing, and other values change the model");
    }
}

void fl__try_parts(struct fl__try *t)
{
    const struct fl_persistent_ready *ready = fl_persistent_ready(t->r);
    struct fl_err err = {0};
    size_t n = ready->n_parts;
    size_t i;

    for (i = 0; i < n; i++) {
        const char *part = fl_persistent_ready(t->r)->parts[i];
        const struct probe *probe = probe_of(part);
        char what[FL_PERSISTENT_PART + 8];

        (void)snprintf(what, sizeof(what), "part %s", part);
        if (probe != NULL) {
            try_part(t, probe, what);
        } else if (strcmp(part, "mixup") == 0) {
            fl_try_say(&t->report, FL_TRY_NOT_TRIED, what,
                       "it needs data summaries of other clients");
        } else {
            fl_try_say(&t->report, FL_TRY_WARNING, what, "no solver uses a part of that name");
        }
    }
    if (n > 0 && fl__try_describe(t, t->layout, NULL, &err) != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "model",
                   "describing the model again without parts failed: %s",
                   fl_err_text(&err, FL_ESHAPE));
    }
}

/* --- cancelling --- */

void fl__try_cancel(struct fl__try *t)
{
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    uint64_t longer = 1 + LONG_MS / (t->task_ms + 1);
    uint64_t took;
    int rv;

    if (!fl_persistent_runs(t->r)) {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "cancel", "the program is no longer running");
        return;
    }
    task.epochs *= (uint32_t)longer;
    t->cancel_at_ms = fl_clock_ms() + CANCEL_MS;
    rv = fl_persistent_run(t->r, &task, &answer, &err);
    took = fl_clock_ms() - t->cancel_at_ms;
    t->cancel_at_ms = 0;
    atomic_store(&t->cancel, false);
    if (rv == FL_ECANCELED && fl_persistent_runs(t->r)) {
        fl_try_say(&t->report, FL_TRY_OK, "cancel", "answered after %" PRIu64 " ms", took);
        fl_try_set(&t->report, "cancel_ms", fl_json_whole(took));
    } else if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "cancel", "expected 'canceled' or 'done', found: %s",
                   fl_err_text(&err, rv));
    } else {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "cancel",
                   "%" PRIu32 " epochs ended before a training could be cancelled", task.epochs);
    }
}

/* --- another model --- */

static int other_shape(const struct fl_tensor *from, struct fl_tensor *ret)
{
    size_t last = from->n_dims > 0 ? from->n_dims - 1 : 0;

    *ret = *from;
    if (from->n_dims >= 2 && from->dims[0] != from->dims[last]) {
        ret->dims[0] = from->dims[last];
        ret->dims[last] = from->dims[0];
        return FL_OK;
    }
    if (from->n_dims == FL_LAYOUT_MAX_DIMS) {
        return FL_ENOENT;
    }
    ret->dims[ret->n_dims++] = 1;
    return FL_OK;
}

/* Same number of parameters, so that it fits the program's memory. */
static int other_layout(const struct fl_layout *from, struct fl_layout **ret,
                        const struct fl_tensor **ret_tensor, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    size_t i;
    int rv = fl_layout_create(&layout);

    *ret_tensor = NULL;
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < fl_layout_tensors(from); i++) {
        const struct fl_tensor *tensor = fl_layout_tensor(from, i);
        struct fl_tensor other = *tensor;

        if (*ret_tensor == NULL && !tensor->buffer && other_shape(tensor, &other) == FL_OK) {
            *ret_tensor = tensor;
        }
        rv = fl_layout_add_like(layout, fl_layout_unit(from, tensor->unit)->name, &other, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
}

void fl__try_shape(struct fl__try *t)
{
    struct fl_layout *layout = NULL;
    const struct fl_tensor *tensor;
    struct fl_persistent_task task = fl__try_task(t);
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    int rv = other_layout(t->layout, &layout, &tensor, &err);

    if (rv != FL_OK) {
        fl_try_say(&t->report, FL_TRY_FAILED, "other model", "%s", fl_err_text(&err, rv));
        return;
    }
    rv = fl__try_describe(t, layout, NULL, &err);
    if (rv != FL_OK) {
        goto done;
    }
    if (tensor != NULL) { /* The error may come only with the next task. */
        task.kind = fl_persistent_can(t->r, FL_PERSISTENT_TRAIN) ? FL_PERSISTENT_TRAIN
                                                                 : FL_PERSISTENT_EVALUATE;
        rv = fl_persistent_run(t->r, &task, &answer, &err);
    }
done:
    if (tensor == NULL) {
        fl_try_say(&t->report, FL_TRY_NOT_TRIED, "other model",
                   "no tensor has a shape that can be changed");
    } else if (rv == FL_ESHAPE) {
        fl_try_say(&t->report, FL_TRY_OK, "other model", "refused: %s", fl_err_text(&err, rv));
    } else {
        fl_try_say(&t->report, FL_TRY_FAILED, "other model",
                   "expected 'failed' for a model whose tensor '%s' has another shape, found %s",
                   tensor->name, rv == FL_OK ? "that it was accepted" : fl_err_text(&err, rv));
    }
    fl_layout_free(layout);
}
