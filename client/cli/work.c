/* Data, the trainer, what Welcome makes of them, and evaluations. */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/client.h"
#include "client/cli/exit_codes.h"
#include "client/train/trainer.h"
#include "libfl/base/fs.h"
#include "libfl/strategy/codec_residual.h"

/* An evaluation. */
struct fl_work_job {
    struct fl_cli *cli;
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
    const char *folder = fl_options_str(cli->conf->data, "path");
    double share = fl_options_float(cli->conf->data, "validation");
    int rv = fl_dataset_open(folder, "train", &cli->train, err);

    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "data.path");
    }
    rv = fl_dataset_open(folder, "test", &cli->test, err);
    if (rv == FL_ENOENT) {
        cli->test = NULL;
        rv = FL_OK;
        if (share > 0.0) {
            rv = fl_dataset_split(cli->train, share, 1, &cli->test, err);
        }
    }
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "data.path");
    }
    rv = fl_dataset_set_augment(cli->train, fl_client_conf_augment(cli->conf), err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "data.augment");
    }
    cli->samples = cli->train->n;
    cli->evaluation_samples = cli->test != NULL ? cli->test->n : 0;
    fl_log(cli->log, FL_LOG_INFO, "client",
           "data '%s': samples=%zu values=%zu classes=%zu test=%llu", folder, cli->train->n,
           cli->train->dim, cli->train->classes, (unsigned long long)cli->evaluation_samples);
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
    if (strcmp(fl_options_str(cli->conf->main, "trainer"), "command") == 0) {
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

static void drop_prepared(struct fl_cli *cli)
{
    struct fl_options **all[] = {&cli->solver_options, &cli->codec_options, &cli->upload_options,
                                 &cli->personal_options};
    size_t i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        fl_options_free(*all[i]);
        *all[i] = NULL;
    }
    fl_inputs_done(&cli->inputs);
    fl_offer_forget(cli);
}

static int slot_options(const struct fl_wire_slot *slot, struct fl_slot_option **ret)
{
    struct fl_slot_option *o = calloc(slot->n_options > 0 ? slot->n_options : 1, sizeof(*o));
    size_t i;

    if (o == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < slot->n_options; i++) {
        o[i].name = slot->options[i].key;
        o[i].value = slot->options[i].value;
    }
    *ret = o;
    return FL_OK;
}

/* Which slot of the server asks for what this client does not have. */
static int slot_error(const char *slot, const char *name, int rv, struct fl_err *err)
{
    return rv == FL_OK || rv == FL_ENOMEM
               ? rv
               : fl_err_wrap(err, rv, "the server's %s is '%s', which this client cannot do", slot,
                             name);
}

static int prepare_solver(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_slot *w = &cli->welcome.solver;
    struct fl_slot_option *o = NULL;
    int rv = slot_options(w, &o);

    if (rv == FL_OK) {
        rv = fl_solver_by_name(w->name, o, w->n_options, &cli->solver, &cli->solver_options, err);
    }
    free(o);
    return slot_error("solver", w->name, rv, err);
}

static int prepare_codec(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_slot *w = &cli->welcome.codec;
    struct fl_slot_option *o = NULL;
    int rv = slot_options(w, &o);

    if (rv == FL_OK) {
        rv = fl_codec_by_name(w->name, o, w->n_options, &cli->codec, &cli->codec_options, err);
    }
    free(o);
    return slot_error("codec", w->name, rv, err);
}

static int prepare_upload(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_slot *w = &cli->welcome.upload;
    const char *name = w->name != NULL ? w->name : "full";
    struct fl_slot_option *o = NULL;
    int rv = slot_options(w, &o);

    if (rv == FL_OK) {
        rv = fl_upload_by_name(name, o, w->n_options, &cli->upload, &cli->upload_options, err);
    }
    free(o);
    return slot_error("upload", name, rv, err);
}

static int prepare_personal(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_slot *w = &cli->welcome.personal;
    const char *name = w->name != NULL ? w->name : "none";
    struct fl_slot_option *o = NULL;
    int rv = slot_options(w, &o);

    if (rv == FL_OK) {
        rv =
            fl_personal_by_name(name, o, w->n_options, &cli->personal, &cli->personal_options, err);
    }
    free(o);
    return slot_error("personal", name, rv, err);
}

static int prepare_slots(struct fl_cli *cli, struct fl_err *err)
{
    int rv = prepare_solver(cli, err);

    if (rv == FL_OK) {
        rv = prepare_codec(cli, err);
    }
    if (rv == FL_OK) {
        rv = prepare_upload(cli, err);
    }
    return rv == FL_OK ? prepare_personal(cli, err) : rv;
}

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
static int prepare_keeps(struct fl_cli *cli, struct fl_err *err)
{
    struct fl_keeps_spec specs[FL_KEEPS_MAX];
    size_t n_solver = fl_solver_keeps(cli->solver->keeps);
    size_t n = 0;
    size_t i;
    int rv = n_solver + 4 <= FL_KEEPS_MAX ? FL_OK : FL_ELIMIT;

    for (i = 0; rv == FL_OK && i < n_solver; i++) {
        const struct fl_keep *keep = &cli->solver->keeps[i];

        rv = want(specs, &n, cli->solver->policy.name, keep->name, keep->per_unit);
    }
    if (rv == FL_OK && cli->welcome.wants_previous_dot) {
        rv = want(specs, &n, NULL, FL_KEEP_PREVIOUS, false);
    }
    if (rv == FL_OK && fl_codec_keeps_residual(cli->codec, cli->codec_options)) {
        rv = want(specs, &n, NULL, FL_KEEP_RESIDUAL, true);
    }
    if (rv == FL_OK && cli->personal->own) {
        rv = want(specs, &n, NULL, FL_KEEP_PERSONAL, false);
    }
    if (rv == FL_OK && cli->personal->own) {
        rv = want(specs, &n, NULL, FL_KEEP_ANCHOR, false);
    }
    return rv == FL_OK ? fl_keeps_bind(cli->keeps, cli->welcome.federation, cli->welcome.layout,
                                       specs, n, err)
                       : rv;
}

/* Why the held result cannot be sent to this federation; NULL: it can. */
static const char *unfit(const struct fl_cli *cli)
{
    const struct fl_result *r = cli->result;
    const struct fl_layout *layout = cli->welcome.layout;
    size_t n_mask = cli->upload->mask != NULL ? fl_neurons_total(layout) : 0;

    if (memcmp(r->digest, fl_layout_digest(layout), FL_DIGEST_SIZE) != 0) {
        return "it is for another model";
    }
    if (r->n_sent != fl_solver_names(fl_solver_sends(cli->solver, cli->solver_options)) ||
        r->n_mask != n_mask)
    {
        return "it is for another algorithm";
    }
    if (r->pending != fl_keeps_wanted(cli->keeps) ||
        (r->pending && !fl_keeps_pending(cli->keeps, r->key)))
    {
        return "what has to be kept with it is not there";
    }
    return NULL;
}

static void check_held(struct fl_cli *cli)
{
    const char *why = cli->result != NULL ? unfit(cli) : NULL;

    if (why != NULL) {
        fl_log(cli->log, FL_LOG_WARNING, "client", "dropping the kept result of round %llu: %s",
               (unsigned long long)cli->result->key.round, why);
        fl_result_unref(cli->result);
        cli->result = NULL;
    }
}

int fl_work_prepare(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_welcome *w = &cli->welcome;
    const char *layers[FL_NET_MAX_LAYERS];
    struct fl_train_model model = {.layout = w->layout,
                                   .epochs = w->training.epochs,
                                   .steps = w->training.steps,
                                   .batch_size = w->training.batch_size,
                                   .momentum = w->training.momentum,
                                   .weight_decay = w->training.weight_decay};
    size_t i;
    int rv;

    fl_fetch_cancel(cli);
    drop_prepared(cli);
    if (w->n_layers > FL_NET_MAX_LAYERS || w->n_input > FL_NET_MAX_INPUT_DIMS) {
        return fl_err_set(err, FL_ELIMIT, "a network of %zu layers and %zu input dimensions",
                          w->n_layers, w->n_input);
    }
    for (i = 0; i < w->n_layers; i++) {
        layers[i] = w->layers[i];
    }
    for (i = 0; i < w->n_input; i++) {
        model.net.input[i] = w->input[i];
    }
    model.net.n_input = w->n_input;
    model.net.layers = layers;
    model.net.n_layers = w->n_layers;
    rv = prepare_slots(cli, err);
    model.solver = cli->solver;
    model.solver_options = cli->solver_options;
    model.personal = cli->personal;
    model.personal_options = cli->personal_options;
    if (rv == FL_OK) {
        rv = prepare_keeps(cli, err);
    }
    if (rv == FL_OK) {
        rv = fl_trainer_prepare(cli->trainer, &model, err);
    }
    if (rv == FL_OK) {
        check_held(cli);
    }
    return rv;
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
    free(job->model);
    free(job);
}

void fl_work_leave_evaluation(struct fl_cli *cli)
{
    if (cli->evaluating != NULL) {
        atomic_store(&cli->evaluating->cancel, true);
    }
}

void fl_work_evaluate(struct fl_cli *cli, uint64_t round, float *model)
{
    struct fl_work_job *job = calloc(1, sizeof(*job));
    double rate = cli->evaluate_rate != 0.0 ? cli->evaluate_rate : cli->learning_rate;

    if (job != NULL) {
        job->cli = cli;
        job->round = round;
        job->model = model;
        /* Without a learning rate there is nothing that fitting could do. */
        job->adapts = cli->personal->adapts && rate != 0.0;
        job->task = (struct fl_train_task){.round = round > 0 ? round : 1,
                                           .model = model,
                                           .learning_rate = rate,
                                           .seed = fl_cli_seed(cli),
                                           .n_selected = cli->n_selected,
                                           .population = cli->population,
                                           .cancel = &job->cancel};
        if (fl_lane_submit(cli->lane, evaluate_work, cli->loop, evaluate_done, job) == FL_OK) {
            cli->evaluating = job;
            return;
        }
        free(job);
    }
    free(model);
    fl_cli_step_key(cli, FL_CEV_EVALUATED, (struct fl_round_key){.round = round});
}
