/*
 * The command trainer: the user's own program trains, persistent or started for each task
 * (libfl/program/persistent.h). Runs on the training thread. The program gets what the server's
 * solver needs for each step (libfl/strategy/external_training.h); the client state and the extra
 * uploads of the solver are computed here from the model before and after training. Does not know
 * the messages or files that the program gets: libfl/program does.
 */
#include <stdlib.h>

#include "client/train/command_impl.h"
#include "client/train/limit.h"
#include "libfl/program/fields.h"

/*
 * How long joining waits for the program to accept the model, because the wait blocks the
 * connection. For a slower program the first task waits.
 */
#define KNOWS_MODEL_MS 2000

struct command {
    struct fl_trainer base;
    struct fl_persistent *r;
    char *program;
    struct fl__limit limit[FL_PERSISTENT_KINDS];
    /* Set by the last command_prepare(); layout NULL: not prepared. */
    struct fl_layout *layout;
    const struct fl_solver_ops *solver;
    struct fl_options *options;
    struct fl_options *beside; /* of fl_solver_prox, for tasks with `beside`; NULL: none */
    char *solver_text;
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    uint32_t adapt_epochs, adapt_steps; /* both 0: as the training */
    bool adapts, adapt_on_test;
};

static struct command *command_of(struct fl_trainer *trainer)
{
    return (struct command *)(void *)trainer;
}

static void command_forget(struct command *c)
{
    size_t i;

    fl_persistent_forget(c->r);
    fl_layout_free(c->layout);
    fl_options_free(c->options);
    fl_options_free(c->beside);
    free(c->solver_text);
    c->layout = NULL;
    c->options = NULL;
    c->beside = NULL;
    c->solver_text = NULL;
    for (i = 0; i < FL_PERSISTENT_KINDS; i++) {
        fl__limit_forget(&c->limit[i]); /* The old run times do not apply. */
    }
}

static void command_free(struct fl_trainer *trainer)
{
    struct command *c = command_of(trainer);

    if (c->r != NULL) {
        command_forget(c);
    }
    fl_persistent_free(c->r);
    free(c->program);
    free(c);
}

static int command_describe_model(struct command *c, const struct fl_train_model *m,
                                  struct fl_err *err)
{
    const char *parts[FL__PARTS_MAX + 1];
    unsigned all = fl_external_parts(m->solver, m->solver_options, false);
    struct fl_persistent_model model = {.layout = m->layout,
                                        .input = m->net.input,
                                        .n_input = m->net.n_input,
                                        .layers = m->net.layers,
                                        .n_layers = m->net.n_layers,
                                        .solver = c->solver_text,
                                        .parts = parts,
                                        .epochs = m->epochs,
                                        .steps = m->steps,
                                        .batch_size = m->batch_size,
                                        .momentum = m->momentum,
                                        .weight_decay = m->weight_decay,
                                        .summary_bytes =
                                            m->solver->summary != NULL ? FL_SUMMARY_MAX : 0};
    char *personal = NULL;
    int rv;

    all |= fl__parts_beside(c->beside);
    all |= fl__parts_space(c->r, m->space, all);
    fl__parts_names(all, parts);
    all |= c->adapts ? fl_external_parts(m->solver, m->solver_options, true) : 0;
    model.vectors = fl__parts_vectors(all);
    if (m->personal != NULL) {
        personal = fl__policy_text(&m->personal->policy, m->personal_options);
        if (personal == NULL) {
            return fl_err_set(err, FL_ENOMEM, "description of the model: out of memory");
        }
    }
    model.personal = personal;
    rv = fl_persistent_describe(c->r, &model, KNOWS_MODEL_MS, err);
    free(personal);
    return rv;
}

static int command_prepare(struct fl_trainer *trainer, const struct fl_train_model *m,
                           struct fl_err *err)
{
    struct command *c = command_of(trainer);
    int rv = fl__parts_check(c->r, c->program, m, err);
    const struct fl_personal_adapt_options *adapt;

    command_forget(c);
    if (rv != FL_OK) {
        return rv;
    }
    c->solver = m->solver;
    c->epochs = m->epochs;
    c->steps = m->steps;
    c->batch_size = m->batch_size;
    c->momentum = m->momentum;
    c->weight_decay = m->weight_decay;
    c->adapts = m->personal != NULL && m->personal->adapts;
    c->adapt_on_test = false;
    c->adapt_epochs = c->adapt_steps = 0;
    if (c->adapts) {
        adapt = fl_options_values(m->personal_options);
        c->adapt_on_test = adapt->data == FL_ADAPT_TEST;
        c->adapt_steps = (uint32_t)adapt->steps;
        c->adapt_epochs = adapt->steps == 0 ? (uint32_t)adapt->epochs : 0;
    }
    c->solver_text = fl__policy_text(&m->solver->policy, m->solver_options);
    rv = fl_layout_copy(m->layout, NULL, NULL, &c->layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (c->solver_text == NULL || fl_options_copy(m->solver_options, &c->options) != FL_OK) {
        rv = fl_err_set(err, FL_ENOMEM, "solver options: out of memory");
        goto fail;
    }
    rv = fl_personal_beside_steps(m->personal, m->personal_options, &c->beside, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = command_describe_model(c, m, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    command_forget(c);
    return rv;
}

/* --- tasks --- */

/* What the program did not declare in `ready`; a program per task only trains. */
static int command_check_can(const struct command *c, enum fl_persistent_kind kind, int code,
                             struct fl_err *err)
{
    if (fl_persistent_can(c->r, kind)) {
        return FL_OK;
    }
    return fl_persistent_per_task(c->r)
               ? fl_err_set(err, code,
                            "'%.100s' is started for each task and cannot '%s': use a persistent "
                            "program ('command.persistent: yes') or 'trainer: builtin'",
                            c->program, fl_persistent_kinds[kind])
               : fl_err_set(err, code, "'%.100s' did not declare that it can '%s'", c->program,
                            fl_persistent_kinds[kind]);
}

static int command_run_limited(struct command *c, struct fl_persistent_task *task,
                               uint64_t deadline_ms, struct fl_persistent_answer *ret,
                               struct fl_err *err)
{
    struct fl__limit *limit = &c->limit[task->kind];
    int rv;

    task->limit_ms = fl__limit_of(limit, deadline_ms);
    task->limit_note = fl__limit_note(limit, deadline_ms);
    rv = fl_persistent_run(c->r, task, ret, err);
    if (rv != FL_OK) {
        /* A protocol error of the program must not look like one of the server. */
        return rv == FL_EPROTO ? FL_EIO : rv;
    }
    fl__limit_good(limit, ret->took_ms);
    return FL_OK;
}

static struct fl_external_task external_task(const struct command *c,
                                             const struct fl_train_task *task, bool adapting)
{
    return (struct fl_external_task){.layout = c->layout,
                                     .model = task->model,
                                     .anchor = task->anchor,
                                     .learning_rate = task->asked.learning_rate,
                                     .momentum = c->momentum,
                                     .n_selected = task->asked.n_selected,
                                     .population = task->asked.population,
                                     .adapting = adapting,
                                     .inputs = task->inputs,
                                     .kept = task->kept};
}

/* Whose steps a task makes: those of the server's solver, or of the model beside. */
static const struct fl_solver_ops *solver_of(const struct command *c,
                                             const struct fl_train_task *task)
{
    return task->beside ? &fl_solver_prox : c->solver;
}

static const struct fl_options *solver_options_of(const struct command *c,
                                                  const struct fl_train_task *task)
{
    return task->beside ? c->beside : c->options;
}

/* `do`, owned. */
static char *parts_text(const struct command *c, const struct fl_train_task *task,
                        const struct fl_external *external)
{
    return fl__parts_text(solver_of(c, task), solver_options_of(c, task), external,
                          task->summary_seed & FL_FIELD_EXACT);
}

/* Describes a training task for the program. `parts` is borrowed. */
static struct fl_persistent_task steps_task(const struct command *c,
                                            const struct fl_train_task *task,
                                            const struct fl_external *external, const char *parts)
{
    struct fl_persistent_task t = {.kind = FL_PERSISTENT_TRAIN,
                                   .given = {[FL_PERSISTENT_MODEL] = task->model,
                                             [FL_PERSISTENT_GRADIENT] = external->gradient,
                                             [FL_PERSISTENT_DRIFT] = external->drift,
                                             [FL_PERSISTENT_PLACES] = external->places},
                                   .asked = task->asked,
                                   .momentum = c->momentum,
                                   .weight_decay = c->weight_decay,
                                   .epochs = c->epochs,
                                   .steps = c->steps,
                                   .batch_size = c->batch_size,
                                   .evaluate_trained = task->evaluate_trained,
                                   .parts = parts,
                                   .cancel = task->cancel,
                                   .progress = task->progress,
                                   .ctx = task->ctx};

    t.asked.learning_rate = external->learning_rate;
    /* A program per task pulls by the solver's options, if at all. */
    if ((external->parts & FL_CAPABILITY_PULL) != 0 || fl_persistent_per_task(c->r)) {
        t.given[FL_PERSISTENT_ANCHOR] = task->anchor;
    }
    if (external->mixup != NULL) {
        t.mixup = external->mixup->data;
        t.mixup_len = external->mixup->len;
    }
    return t;
}

static int command_train(struct command *c, const struct fl_train_task *task,
                         const struct fl_external_task *of, const struct fl_external *external,
                         struct fl_train_result *ret, struct fl_err *err)
{
    const struct fl_solver_ops *solver = solver_of(c, task);
    const struct fl_options *options = solver_options_of(c, task);
    char *parts = parts_text(c, task, external);
    struct fl_persistent_task t = steps_task(c, task, external, parts);
    struct fl_persistent_answer answer = {0};
    int rv = parts != NULL ? FL_OK : fl_err_set(err, FL_ENOMEM, "parts of a step: out of memory");

    ret->delta = malloc(fl_layout_count(c->layout) * sizeof(*ret->delta));
    if (rv != FL_OK) {
        goto done;
    }
    if (ret->delta == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "result of %zu parameters: out of memory",
                        fl_layout_count(c->layout));
        goto done;
    }
    t.trained = ret->delta;
    rv = command_run_limited(c, &t, task->asked.deadline_ms, &answer, err);
done:
    free(parts);
    if (rv != FL_OK) {
        return rv;
    }
    ret->samples = answer.samples;
    ret->steps = answer.steps;
    ret->train_loss = answer.train_loss;
    ret->has_received = answer.has_received;
    ret->received = answer.received;
    ret->has_trained = answer.has_trained && task->evaluate_trained;
    ret->trained = answer.trained;
    /* Compute client state and extra uploads from a result that was copied and checked. */
    rv = fl__train_extras(fl_solver_keeps(solver->keeps), &ret->kept, &ret->n_kept, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__train_extras(fl_solver_names(fl_solver_sends(solver, options)), &ret->sent,
                          &ret->n_sent, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_external_finish(
        solver, options, of,
        &(struct fl_external_outcome){
            .trained = ret->delta, .steps = ret->steps, .kept = ret->kept, .sent = ret->sent},
        err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__train_finish(c->layout, task, ret, err);
}

/* Where the entries go in the draw of the round, for a program that can train in the space. */
static int command_space(const struct command *c, const struct fl_train_task *task,
                         struct fl_external *external)
{
    struct fl_space_map map;
    int rv;

    external->parts |= fl__parts_space(c->r, task->space, external->parts);
    if ((external->parts & FL_CAPABILITY_SPACE) == 0) {
        return FL_OK;
    }
    rv = fl_space_map_make(task->space, task->asked.draw, &map);
    if (rv != FL_OK) {
        return rv;
    }
    external->n_numbers = map.numbers;
    external->places = malloc(map.entries * sizeof(*external->places));
    if (external->places == NULL) {
        fl_space_map_done(&map);
        return FL_ENOMEM;
    }
    fl_space_places(&map, task->space->layout, external->places);
    fl_space_map_done(&map);
    return FL_OK;
}

static int command_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                       struct fl_train_result *ret, struct fl_err *err)
{
    struct command *c = command_of(trainer);
    struct fl_external external = {0};
    struct fl_external_task of;
    int rv;

    if (c->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "training before the server described its model");
    }
    FL_REQUIRE(!task->beside || c->beside != NULL);
    of = external_task(c, task, false);
    rv = fl_external_begin(solver_of(c, task), solver_options_of(c, task), &of, &external, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = command_space(c, task, &external);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "training in a hashed space: %s", fl_strerror(rv));
    } else {
        rv = command_train(c, task, &of, &external, ret, err);
    }
    fl_external_done(&external);
    return rv;
}

static int command_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                         struct fl_evaluation *ret_received, struct fl_evaluation *ret_adapted,
                         struct fl_err *err)
{
    struct command *c = command_of(trainer);
    struct fl_persistent_answer a = {0};
    struct fl_external external = {0};
    struct fl_external_task of;
    struct fl_persistent_task t;
    char *parts;
    int rv = command_check_can(c, FL_PERSISTENT_ADAPT, FL_ENOENT, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (c->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "fitting before the server described its model");
    }
    of = external_task(c, task, true);
    rv = fl_external_begin(c->solver, c->options, &of, &external, err);
    if (rv != FL_OK) {
        return rv;
    }
    parts = parts_text(c, task, &external);
    t = steps_task(c, task, &external, parts);
    t.kind = FL_PERSISTENT_ADAPT;
    t.on_test = c->adapt_on_test;
    if (c->adapt_epochs + c->adapt_steps > 0) {
        t.epochs = c->adapt_epochs;
        t.steps = c->adapt_steps;
    }
    rv = parts != NULL ? command_run_limited(c, &t, task->asked.deadline_ms, &a, err)
                       : fl_err_set(err, FL_ENOMEM, "parts of a step: out of memory");
    free(parts);
    fl_external_done(&external);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_received = a.received;
    *ret_adapted = a.adapted;
    return FL_OK;
}

static int command_evaluate(struct fl_trainer *trainer, const float *model, atomic_bool *cancel,
                            struct fl_evaluation *ret, struct fl_err *err)
{
    struct command *c = command_of(trainer);
    struct fl_persistent_task t = {
        .kind = FL_PERSISTENT_EVALUATE, .given = {model}, .cancel = cancel};
    struct fl_persistent_answer a = {0};
    int rv = command_check_can(c, FL_PERSISTENT_EVALUATE, FL_ENOENT, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = command_run_limited(c, &t, 0, &a, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = a.received;
    return FL_OK;
}

static int command_summary(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                           struct fl_err *err)
{
    struct command *c = command_of(trainer);
    struct fl_persistent_task t = {
        .kind = FL_PERSISTENT_SUMMARY, .asked.seed = seed, .solver = c->solver_text};
    struct fl_persistent_answer a = {0};
    size_t len;
    int rv = command_check_can(c, FL_PERSISTENT_SUMMARY, FL_EUNIMPL, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (c->layout == NULL || c->solver->summary == NULL) {
        return fl_err_set(err, FL_ESTATE, "a summary that no solver asks for");
    }
    rv = command_run_limited(c, &t, 0, &a, err);
    if (rv != FL_OK) {
        return rv;
    }
    len = (size_t)a.summary_bytes;
    rv = fl_buf_reserve(out, len);
    if (rv != FL_OK || len == 0) {
        return rv;
    }
    rv = fl_persistent_summary(c->r, out->data + out->len, len, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (c->solver->summary_check != NULL) {
        rv = c->solver->summary_check(c->options, out->data + out->len, len, 0, 0, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    out->len += len;
    return FL_OK;
}

static uint64_t command_samples(const struct fl_trainer *trainer)
{
    const struct command *c = (const struct command *)(const void *)trainer;

    return fl_persistent_ready(c->r)->samples;
}

static int command_start(struct fl_trainer *trainer, uint64_t *ret_samples,
                         uint64_t *ret_test_samples, struct fl_err *err)
{
    struct command *c = command_of(trainer);
    int rv = fl_persistent_start(c->r, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_samples = fl_persistent_ready(c->r)->samples;
    *ret_test_samples = fl_persistent_can(c->r, FL_PERSISTENT_EVALUATE)
                            ? fl_persistent_ready(c->r)->test_samples
                            : 0;
    return FL_OK;
}

static int command_act_for(struct fl_trainer *trainer, const struct fl_persistent_client *client,
                           struct fl_err *err)
{
    return fl_persistent_act_for(command_of(trainer)->r, client, err);
}

static uint64_t command_idle(struct fl_trainer *trainer)
{
    return fl_persistent_rest(command_of(trainer)->r);
}

static void command_stop(struct fl_trainer *trainer)
{
    fl_persistent_stop(command_of(trainer)->r);
}

static void command_interrupt(struct fl_trainer *trainer)
{
    fl_persistent_interrupt(command_of(trainer)->r);
}

/* --- life --- */

int fl_trainer_command_find(const char *const *argv, struct fl_err *err)
{
    return argv == NULL || argv[0] == NULL || argv[0][0] == '\0'
               ? fl_err_set(err, FL_ECONF, "the command trainer needs a program")
               : fl_program_check(argv, err);
}

static int open_program(struct command *c, const struct fl_command_conf *conf, struct fl_err *err)
{
    struct fl_persistent_conf program = conf->program;
    int rv = fl_trainer_command_find(program.argv, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < FL_PERSISTENT_KINDS; i++) {
        c->limit[i] = fl__limit_from(conf);
    }
    c->program = fl_str_dup(program.argv[0]);
    if (c->program == NULL) {
        return fl_err_set(err, FL_ENOMEM, "trainer: out of memory");
    }
    program.client = program.client != NULL ? program.client : "";
    program.purpose = program.purpose != NULL ? program.purpose : "train";
    return fl_persistent_create(&program, &c->r, err);
}

int fl_trainer_command(const struct fl_command_conf *conf, struct fl_trainer **ret,
                       struct fl_err *err)
{
    static const struct fl__trainer_ops ops = {.free = command_free,
                                               .prepare = command_prepare,
                                               .run = command_run,
                                               .summary = command_summary,
                                               .samples = command_samples,
                                               .adapt = command_adapt,
                                               .evaluate = command_evaluate,
                                               .act_for = command_act_for,
                                               .start = command_start,
                                               .rest = command_idle,
                                               .stop = command_stop,
                                               .interrupt = command_interrupt};
    struct command *c = calloc(1, sizeof(*c));
    int rv;

    if (c == NULL) {
        return fl_err_set(err, FL_ENOMEM, "trainer: out of memory");
    }
    c->base.ops = &ops;
    rv = open_program(c, conf, err);
    if (rv != FL_OK) {
        command_free(&c->base);
        return rv;
    }
    *ret = &c->base;
    return FL_OK;
}
