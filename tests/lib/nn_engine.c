#include "tests/lib/nn_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/personalization/personal.h"

/* An error ends the program; the test reads the message at the end of its stderr.
 */
#define MUST(call)                                                        \
    do {                                                                  \
        struct fl_err why = {0};                                          \
        struct fl_err *err = &why;                                        \
                                                                          \
        (void)err;                                                        \
        if ((call) != FL_OK) {                                            \
            (void)fprintf(stderr, "nn_engine: %s: %s\n", #call, why.msg); \
            exit(4);                                                      \
        }                                                                 \
    } while (0)

/* A trainer for one task, and its configuration. */
struct session {
    struct fl_train_model model;
    struct fl_options *solver, *personal;
    struct fl_trainer *trainer;
};

static uint64_t whole(const json_t *json, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(json, key));
}

static double real(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* Each field that is an option of that name. */
static void set_options(struct fl_options *o, const json_t *fields)
{
    const struct fl_opt_spec *spec = fl_options_specs(o);

    for (; spec->name != NULL; spec++) {
        const json_t *value = json_object_get(fields, spec->name);
        char text[64];

        if (json_is_string(value)) {
            (void)snprintf(text, sizeof(text), "%s", json_string_value(value));
        } else {
            (void)snprintf(text, sizeof(text), "%.17g", json_number_value(value));
        }
        if (value != NULL) {
            MUST(fl_options_set(o, spec->name, text, err));
        }
    }
}

static const struct fl_solver_ops *solver_of(const json_t *parts, const json_t **ret_fields)
{
    static const struct {
        const char *part;
        const struct fl_solver_ops *solver;
    } rows[] = {{"pfedme", &fl_solver_pfedme},
                {"per_fedavg", &fl_solver_per_fedavg},
                {"mixup", &fl_solver_fedmix},
                {"pull", &fl_solver_prox}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        *ret_fields = json_object_get(parts, rows[i].part);
        if (*ret_fields != NULL) {
            return json_is_true(json_object_get(*ret_fields, "naive")) ? &fl_solver_naivemix
                                                                       : rows[i].solver;
        }
    }
    return &fl_solver_sgd;
}

/* The solver for these steps. */
static void take_solver(struct session *s, const json_t *task)
{
    const json_t *parts = json_object_get(task, "do");
    const json_t *fields = NULL;

    s->model.solver = solver_of(parts, &fields);
    MUST(fl_options_create(s->model.solver->policy.options, &s->solver));
    set_options(s->solver, fields);
    if (s->model.solver->summary != NULL) {
        set_options(s->solver, json_object_get(parts, "pull"));
    }
    s->model.solver_options = s->solver;
}

static void take_training(struct session *s, const json_t *from)
{
    s->model.epochs = (uint32_t)whole(from, "epochs");
    s->model.steps = (uint32_t)whole(from, "steps");
    s->model.batch_size = (uint32_t)whole(from, "batch_size");
    s->model.momentum = real(from, "momentum");
    s->model.weight_decay = real(from, "weight_decay");
}

/* What is fitted goes through the samples as training does, which `model` tells of. */
static void take_adapting(struct session *s, const struct nn_engine *engine, const json_t *task)
{
    char text[32];

    take_training(s, json_object_get(engine->described, "training"));
    MUST(fl_options_create(fl_personal_adapt.policy.options, &s->personal));
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)whole(task, "epochs"));
    MUST(fl_options_set(s->personal, "epochs", text, err));
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)whole(task, "steps"));
    MUST(fl_options_set(s->personal, "steps", text, err));
    MUST(fl_options_set(s->personal, "data", json_string_value(json_object_get(task, "on")), err));
    s->model.personal = &fl_personal_adapt;
    s->model.personal_options = s->personal;
}

static void open_trainer(struct session *s, const struct nn_engine *engine)
{
    MUST(fl_trainer_builtin(engine->train, engine->test, NULL, &s->trainer, err));
    MUST(fl_trainer_prepare(s->trainer, &s->model, err));
}

static void done(struct session *s)
{
    fl_trainer_free(s->trainer);
    fl_options_free(s->solver);
    fl_options_free(s->personal);
}

static struct fl_train_task task_of_message(const json_t *m, const struct nn_given *given,
                                            const struct fl_solver_bytes *mixup)
{
    return (struct fl_train_task){
        .asked.key.round = whole(m, "round"),
        .asked.key.attempt = (uint32_t)whole(m, "attempt"),
        .model = given->model,
        .anchor = given->anchor,
        .raw = true,
        .evaluate_trained = json_is_true(json_object_get(m, "evaluate_trained")),
        .asked.learning_rate = real(m, "learning_rate"),
        .asked.seed = whole(m, "seed"),
        .asked.order_seed = whole(m, "order_seed"),
        .summary_seed = whole(json_object_get(json_object_get(m, "do"), "mixup"), "seed"),
        .inputs = mixup};
}

static json_t *evaluation(uint64_t samples, uint64_t correct, double loss_sum)
{
    return json_pack("{s:I, s:I, s:f}", "samples", (json_int_t)samples, "correct",
                     (json_int_t)correct, "loss_sum", loss_sum);
}

json_t *nn_engine_train(struct nn_engine *engine, const json_t *m, const struct nn_given *given,
                        float *ret)
{
    const struct fl_solver_bytes mixup = {given->mixup, given->mixup_len};
    struct fl_train_task task = task_of_message(m, given, &mixup);
    struct session s = {.model = engine->model};
    struct fl_train_result r = {0};
    json_t *fields;

    take_solver(&s, m);
    take_training(&s, m);
    open_trainer(&s, engine);
    MUST(fl_trainer_run(s.trainer, &task, &r, err));
    (void)memcpy(ret, r.delta, fl_layout_count(engine->model.layout) * sizeof(*ret));
    fields = json_pack("{s:I, s:I, s:f, s:o}", "samples", (json_int_t)r.samples, "steps",
                       (json_int_t)r.steps, "train_loss", r.train_loss, "received",
                       evaluation(r.received.samples, r.received.correct, r.received.loss_sum));
    if (r.has_trained) {
        (void)json_object_set_new(
            fields, "trained",
            evaluation(r.trained.samples, r.trained.correct, r.trained.loss_sum));
    }
    fl_train_result_done(&r);
    done(&s);
    return fields;
}

json_t *nn_engine_adapt(struct nn_engine *engine, const json_t *m, const struct nn_given *given)
{
    struct fl_train_task task = task_of_message(m, given, NULL);
    struct fl_evaluation received, adapted;
    struct session s = {.model = engine->model};

    take_solver(&s, m);
    take_adapting(&s, engine, m);
    open_trainer(&s, engine);
    MUST(fl_trainer_adapt(s.trainer, &task, &received, &adapted, err));
    done(&s);
    return json_pack("{s:o, s:o}", "received",
                     evaluation(received.samples, received.correct, received.loss_sum), "adapted",
                     evaluation(adapted.samples, adapted.correct, adapted.loss_sum));
}

json_t *nn_engine_summary(struct nn_engine *engine, const json_t *m, void *ret, size_t size)
{
    const json_t *solver = json_object_get(m, "solver");
    const char *name = json_string_value(json_object_get(solver, "name"));
    struct session s = {.model = engine->model};
    struct fl_buf out;
    json_t *fields;

    s.model.solver = strcmp(name, "fedmix") == 0 ? &fl_solver_fedmix : &fl_solver_naivemix;
    MUST(fl_options_create(s.model.solver->policy.options, &s.solver));
    set_options(s.solver, json_object_get(solver, "options"));
    s.model.solver_options = s.solver;
    take_training(&s, json_object_get(engine->described, "training"));
    open_trainer(&s, engine);
    fl_buf_init(&out, size);
    MUST(fl_trainer_summary(s.trainer, whole(m, "seed"), &out, err));
    (void)memcpy(ret, out.data, out.len);
    fields = json_pack("{s:I}", "bytes", (json_int_t)out.len);
    fl_buf_done(&out);
    done(&s);
    return fields;
}
