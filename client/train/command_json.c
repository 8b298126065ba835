/*
 * The JSON files of the command trainer: writes task.json, reads result.json. Runs on the training
 * thread.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/command_impl.h"
#include "libfl/base/fs.h"
#include "libfl/program/fields.h"

/* Far above the size of any result, so that a faulty program cannot fill memory. */
#define RESULT_MAX ((size_t)1 << 20)
/* The version of both files. */
#define FILE_VERSION 1

struct fl__description {
    json_t *json; /* the fields that are the same for all tasks */
};

void fl__description_free(struct fl__description *description)
{
    if (description != NULL) {
        json_decref(description->json);
        free(description);
    }
}

/* A policy with all its options as text values. */
static json_t *policy_of(const struct fl_policy *policy, const struct fl_options *options)
{
    const struct fl_opt_spec *spec = fl_options_specs(options);
    json_t *values = json_object();
    char text[256];

    for (; spec->name != NULL; spec++) {
        (void)json_object_set_new(values, spec->name,
                                  json_string(fl_options_show(options, spec, text, sizeof(text))));
    }
    return json_pack("{s:s, s:o}", "name", policy->name, "options", values);
}

char *fl__policy_text(const struct fl_policy *policy, const struct fl_options *options)
{
    json_t *json = policy_of(policy, options);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static json_t *personal_of(const struct fl_train_model *model)
{
    return model->personal != NULL ? policy_of(&model->personal->policy, model->personal_options)
                                   : json_null();
}

int fl__description_create(const struct fl_train_model *model, struct fl__description **ret,
                           struct fl_err *err)
{
    struct fl__description *d = calloc(1, sizeof(*d));

    if (d != NULL) {
        /* json_pack() fails as a whole when one of its parts is NULL. */
        d->json =
            json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f}", "units",
                      fl_field_units(model->layout, false), "network",
                      fl_field_network(model->net.input, model->net.n_input, model->net.layers,
                                       model->net.n_layers),
                      "solver", policy_of(&model->solver->policy, model->solver_options),
                      "personal", personal_of(model), "epochs", (json_int_t)model->epochs, "steps",
                      (json_int_t)model->steps, "batch_size", (json_int_t)model->batch_size,
                      "momentum", model->momentum, "weight_decay", model->weight_decay);
    }
    if (d == NULL || d->json == NULL) {
        fl__description_free(d);
        return fl_err_set(err, FL_ENOMEM,
                          "description of the model for the program: out of memory "
                          "or a name that is not UTF-8");
    }
    *ret = d;
    return FL_OK;
}

int fl__task_write(const struct fl__description *description, const struct fl_train_task *task,
                   const struct fl__task_paths *paths, const char *data, uint64_t deadline_ms,
                   struct fl_err *err)
{
    json_int_t seed = (json_int_t)(task->seed & FL_FIELD_EXACT);
    json_int_t order_seed = (json_int_t)(task->order_seed & FL_FIELD_EXACT);
    json_t *json = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:f, s:I, s:b, s:s?, s:s, s:s?, s:s, s:s}", "version",
        FILE_VERSION, "round", (json_int_t)task->round, "attempt", (json_int_t)task->attempt,
        "seed", seed, "order_seed", order_seed, "learning_rate", task->learning_rate,
        "time_limit_ms", (json_int_t)deadline_ms, "evaluate_trained", task->evaluate_trained,
        "data", data, "model", paths->model, "anchor", task->anchor != NULL ? paths->anchor : NULL,
        "result_model", paths->result_model, "result", paths->result);
    char *text = NULL;
    int rv = FL_ENOMEM;

    if (json != NULL && json_object_update(json, description->json) == 0) {
        text = json_dumps(json, JSON_INDENT(1));
    }
    json_decref(json);
    if (text == NULL) {
        return fl_err_set(err, rv, "%s: out of memory, or a path that is not UTF-8", paths->task);
    }
    rv = fl_fs_replace(paths->task, text, strlen(text), false, err);
    free(text);
    return rv;
}

static int parse_result(const json_t *json, const char *path, struct fl_train_result *ret,
                        struct fl_err *err)
{
    int rv = fl_field_count(json, path, "samples", &ret->samples, err);

    if (rv == FL_OK && ret->samples == 0) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "%.200s: 'samples' is 0: a result without samples has no weight", path);
    }
    if (rv == FL_OK) {
        rv = fl_field_count(json, path, "steps", &ret->steps, err);
    }
    if (rv == FL_OK) {
        rv = fl_field_number(json, path, "train_loss", &ret->train_loss, err);
    }
    if (rv == FL_OK) {
        rv = fl_field_evaluation(json, path, "received", &ret->has_received, &ret->eval_samples,
                                 &ret->eval_correct, &ret->eval_loss_sum, err);
    }
    if (rv == FL_OK) {
        rv = fl_field_evaluation(json, path, "trained", &ret->has_trained, &ret->trained.samples,
                                 &ret->trained.correct, &ret->trained.loss_sum, err);
    }
    return rv;
}

int fl__result_read(const char *path, struct fl_train_result *ret, struct fl_err *err)
{
    struct fl_buf text = {0};
    json_error_t where;
    json_t *json;
    int rv = fl_fs_read(path, RESULT_MAX, &text, err);

    if (rv != FL_OK) {
        return rv;
    }
    json = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    fl_buf_done(&text);
    if (json == NULL) {
        return fl_err_set(err, FL_EFORMAT, "%.200s:%d: not JSON: %s", path, where.line, where.text);
    }
    rv = parse_result(json, path, ret, err);
    json_decref(json);
    return rv;
}
