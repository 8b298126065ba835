/* Data, the trainer, what Welcome makes of them, and evaluations. */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/client.h"
#include "client/cli/exit_codes.h"
#include "client/cli/preflight.h"
#include "client/train/trainer.h"
#include "libfl/base/fs.h"
#include "libfl/strategy/codec_residual.h"

/* An evaluation. */
struct fl_work_job {
    struct fl_cli *cli;
    struct fl_setup *setup; /* a reference: what `model` was fetched under */
    uint64_t round;
    struct fl_train_task task;
    float *model; /* owned */
    bool adapts;
    atomic_bool cancel;
    struct fl_train_evaluation received, adapted;
    int code;
    struct fl_err err;
};

static int open_data(struct fl_cli *cli, struct fl_err *err)
{
    int rv = fl_client_open_data(cli->conf, &cli->train, &cli->test, err);

    if (rv != FL_OK) {
        return rv;
    }
    cli->samples = cli->train->n;
    cli->evaluation_samples = cli->test != NULL ? cli->test->n : 0;
    fl_log(cli->log, FL_LOG_INFO, "client",
           "data '%s': samples=%zu values=%zu classes=%zu test=%llu",
           fl_options_str(cli->conf->data, "path"), cli->train->n, cli->train->dim,
           cli->train->classes, (unsigned long long)cli->evaluation_samples);
    return FL_OK;
}

static int open_command(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_options *o = cli->conf->command;
    size_t n = fl_options_count(o, "program");
    const char **argv = calloc(n + 1, sizeof(*argv));
    char work[4096];
    struct fl_command_conf conf = {.argv = argv,
                                   .work_dir = work,
                                   .time_limit_ms = fl_options_ms(o, "time_limit"),
                                   .patience = fl_options_float(o, "patience"),
                                   .patience_least_ms = fl_options_ms(o, "patience_least"),
                                   .memory_bytes = fl_options_bytes(o, "memory_limit"),
                                   .samples = (uint64_t)fl_options_int(o, "samples"),
                                   .data = fl_options_is_set(cli->conf->data, "path")
                                               ? fl_options_str(cli->conf->data, "path")
                                               : NULL};
    size_t i;
    int rv = argv != NULL ? FL_OK : FL_ENOMEM;

    for (i = 0; rv == FL_OK && i < n; i++) {
        argv[i] = fl_options_item(o, "program", i);
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(work, sizeof(work), fl_options_str(cli->conf->main, "state_dir"), "tasks");
    }
    if (rv == FL_OK) {
        rv = fl_fs_mkdirs(work, err);
    }
    if (rv == FL_OK) {
        rv = fl_trainer_command(&conf, &cli->trainer, err);
    }
    cli->samples = conf.samples;
    free(argv);
    return rv;
}

int fl_work_open(struct fl_cli *cli, int *ret_exit, struct fl_err *err)
{
    int rv;

    *ret_exit = FL_EXIT_DATA;
    if (fl_client_conf_command(cli->conf)) {
        rv = open_command(cli, err);
    } else {
        rv = open_data(cli, err);
        if (rv == FL_OK) {
            rv = fl_trainer_builtin(cli->train, cli->test, &cli->trainer, err);
        }
    }
    return rv == FL_OK ? fl_lane_create("fl-train", &cli->lane, err) : rv;
}

void fl_work_close(struct fl_cli *cli)
{
    fl_work_cancel(cli);
    fl_work_leave_evaluation(cli);
    fl_lane_free(cli->lane);
    cli->lane = NULL;
}

bool fl_work_busy(const struct fl_cli *cli)
{
    return cli->training != NULL || fl_lane_pending(cli->lane) > 0;
}

/* --- what Welcome describes --- */

static int want(struct fl_keeps_spec *specs, size_t *n, const char *owner, const char *name,
                bool per_unit)
{
    struct fl_keeps_spec *spec = &specs[*n];
    int len = owner != NULL ? snprintf(spec->name, sizeof(spec->name), "%s.%s", owner, name)
                            : snprintf(spec->name, sizeof(spec->name), "%s", name);

    spec->per_unit = per_unit;
    (*n)++;
    return len > 0 && (size_t)len < sizeof(spec->name) ? FL_OK : FL_ELIMIT;
}

/* What has to be kept between rounds for all of this. */
static int prepare_keeps(struct fl_keeps *keeps, const struct fl_setup *s, struct fl_err *err)
{
    struct fl_keeps_spec specs[FL_KEEPS_MAX];
    const struct fl_keeps_home home = {s->welcome.federation, s->layout, s->welcome.kept_line};
    size_t n_solver = fl_solver_keeps(s->solver->keeps);
    size_t n = 0;
    size_t i;
    int rv = n_solver + 4 <= FL_KEEPS_MAX ? FL_OK : FL_ELIMIT;

    for (i = 0; rv == FL_OK && i < n_solver; i++) {
        const struct fl_keep *keep = &s->solver->keeps[i];

        rv = want(specs, &n, s->solver->policy.name, keep->name, keep->per_unit);
    }
    if (rv == FL_OK && s->welcome.wants_previous_dot) {
        rv = want(specs, &n, NULL, FL_KEEP_PREVIOUS, false);
    }
    if (rv == FL_OK && fl_codec_keeps_residual(s->codec, s->codec_options)) {
        rv = want(specs, &n, NULL, FL_KEEP_RESIDUAL, true);
    }
    if (rv == FL_OK && s->personal->own) {
        rv = want(specs, &n, NULL, FL_KEEP_PERSONAL, false);
    }
    if (rv == FL_OK && s->personal->own) {
        rv = want(specs, &n, NULL, FL_KEEP_ANCHOR, false);
    }
    return rv == FL_OK ? fl_keeps_bind(keeps, &home, specs, n, err) : rv;
}

static int prepare_trainer(struct fl_trainer *trainer, const struct fl_setup *s, struct fl_err *err)
{
    const struct fl_wire_welcome *w = &s->welcome;
    const char *layers[FL_NET_MAX_LAYERS];
    struct fl_train_model model = {.layout = s->layout,
                                   .solver = s->solver,
                                   .solver_options = s->solver_options,
                                   .epochs = w->training.epochs,
                                   .steps = w->training.steps,
                                   .batch_size = w->training.batch_size,
                                   .momentum = w->training.momentum,
                                   .weight_decay = w->training.weight_decay,
                                   .personal = s->personal,
                                   .personal_options = s->personal_options};
    size_t i;

    for (i = 0; i < w->n_layers; i++) {
        layers[i] = w->layers[i];
    }
    for (i = 0; i < w->n_input; i++) {
        model.net.input[i] = w->input[i];
    }
    model.net.n_input = w->n_input;
    model.net.layers = layers;
    model.net.n_layers = w->n_layers;
    return fl_trainer_prepare(trainer, &model, err);
}

int fl_work_prepare(struct fl_cli *cli, struct fl_setup *setup, struct fl_err *err)
{
    int rv;

    FL_REQUIRE(!fl_work_busy(cli));
    fl_fetch_cancel(cli);
    fl_work_forget(cli);
    rv = prepare_keeps(cli->keeps, setup, err);
    if (rv == FL_OK) {
        rv = prepare_trainer(cli->trainer, setup, err);
    }
    if (rv == FL_OK) {
        cli->setup = setup;
        return FL_OK;
    }
    fl_keeps_unbind(cli->keeps);
    fl_setup_unref(setup);
    return rv;
}

void fl_work_forget(struct fl_cli *cli)
{
    fl_inputs_done(&cli->inputs);
    fl_offer_forget(cli);
    if (cli->setup != NULL) {
        fl_keeps_unbind(cli->keeps);
        fl_setup_unref(cli->setup);
        cli->setup = NULL;
    }
}

const char *fl_work_unfit(const struct fl_cli *cli)
{
    const struct fl_result *r = cli->result;
    const char *why = fl_setup_unfit(cli->setup, r);

    if (why == NULL && (r->pending != fl_keeps_wanted(cli->keeps) ||
                        (r->pending && !fl_keeps_pending(cli->keeps, r->key))))
    {
        why = "what has to be kept with it is not there";
    }
    return why;
}

/* --- evaluation --- */

static void evaluate_work(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_trainer *trainer = job->cli->trainer;
    struct fl_train_evaluation *e = &job->received;

    if (job->adapts) {
        job->code = fl_trainer_adapt(trainer, &job->task, &job->received, &job->adapted, &job->err);
    } else {
        job->code = fl_trainer_evaluate(trainer, job->model, &e->samples, &e->correct, &e->loss_sum,
                                        &job->err);
    }
}

static void send_evaluation(const struct fl_work_job *job)
{
    const struct fl_train_evaluation *r = &job->received;
    const struct fl_train_evaluation *a = &job->adapted;
    struct fl_wire_evaluation result = {r->samples, r->correct, r->loss_sum};
    struct fl_wire_evaluation adapted = {a->samples, a->correct, a->loss_sum};

    fl_control_evaluation(job->cli, job->round, &result, a->samples > 0 ? &adapted : NULL);
}

static void evaluate_done(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_cli *cli = job->cli;

    if (cli->evaluating == job) {
        cli->evaluating = NULL;
    }
    if (!cli->stopping) {
        if (job->code == FL_OK) {
            send_evaluation(job);
        } else {
            fl_log(cli->log, job->code == FL_ECANCELED ? FL_LOG_INFO : FL_LOG_WARNING, "client",
                   "evaluation of round %llu failed: %s", (unsigned long long)job->round,
                   fl_err_text(&job->err, job->code));
        }
        fl_cli_step_key(cli, FL_CEV_EVALUATED, (struct fl_round_key){.round = job->round});
    }
    fl_setup_unref(job->setup);
    free(job->model);
    free(job);
}

void fl_work_leave_evaluation(struct fl_cli *cli)
{
    if (cli->evaluating != NULL) {
        atomic_store(&cli->evaluating->cancel, true);
    }
}

static struct fl_work_job *evaluation_of(struct fl_cli *cli, uint64_t round, struct fl_setup *setup,
                                         float *model)
{
    struct fl_work_job *job = calloc(1, sizeof(*job));
    double rate = cli->evaluate_rate != 0.0 ? cli->evaluate_rate : cli->learning_rate;

    if (job == NULL) {
        return NULL;
    }
    job->cli = cli;
    job->setup = fl_setup_ref(setup);
    job->round = round;
    job->model = model;
    /* Without a learning rate there is nothing that fitting could do. */
    job->adapts = setup->personal->adapts && rate != 0.0;
    job->task = (struct fl_train_task){.round = round > 0 ? round : 1,
                                       .model = model,
                                       .learning_rate = rate,
                                       .seed = fl_cli_seed(cli),
                                       .order_seed = cli->order_seed,
                                       .n_selected = cli->n_selected,
                                       .population = cli->population,
                                       .cancel = &job->cancel};
    return job;
}

void fl_work_evaluate(struct fl_cli *cli, uint64_t round, struct fl_setup *setup, float *model)
{
    struct fl_work_job *job = setup == cli->setup ? evaluation_of(cli, round, setup, model) : NULL;

    if (job != NULL) {
        if (fl_lane_submit(cli->lane, evaluate_work, cli->loop, evaluate_done, job) == FL_OK) {
            cli->evaluating = job;
            return;
        }
        fl_setup_unref(job->setup);
        free(job);
    }
    free(model);
    fl_cli_step_key(cli, FL_CEV_EVALUATED, (struct fl_round_key){.round = round});
}
