/* Data, the trainer, and what runs on the training lane. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/client.h"
#include "client/cli/exit_codes.h"
#include "client/train/trainer.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"

struct fl_work_job {
    struct fl_cli *cli;
    struct fl_round_key key;
    struct fl_train_task task;
    struct fl_train_result result;
    struct fl_result kept;
    float *model;       /* owned: a fetch that comes meanwhile has its own */
    atomic_bool cancel; /* of this job: the next one may be queued already */
    uint64_t samples, correct;
    double loss_sum;
    uint64_t reported_ms;
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
    fl_lane_free(cli->lane);
    cli->lane = NULL;
}

static void drop_prepared(struct fl_cli *cli)
{
    fl_options_free(cli->solver_options);
    fl_options_free(cli->codec_options);
    free(cli->model);
    cli->solver_options = NULL;
    cli->codec_options = NULL;
    cli->model = NULL;
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

static int prepare_slots(struct fl_cli *cli, struct fl_err *err)
{
    const struct fl_wire_welcome *w = &cli->welcome;
    struct fl_slot_option *o = NULL;
    int rv = slot_options(&w->solver, &o);

    if (rv == FL_OK) {
        rv = fl_solver_by_name(w->solver.name, o, w->solver.n_options, &cli->solver,
                               &cli->solver_options, err);
        free(o);
    }
    if (rv == FL_OK) {
        rv = slot_options(&w->codec, &o);
    }
    if (rv == FL_OK) {
        rv = fl_codec_by_name(w->codec.name, o, w->codec.n_options, &cli->codec,
                              &cli->codec_options, err);
        free(o);
    }
    return rv;
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
    if (rv == FL_OK) {
        rv = fl_trainer_prepare(cli->trainer, &model, err);
    }
    if (rv == FL_OK && cli->has_result &&
        memcmp(cli->result.digest, fl_layout_digest(w->layout), FL_DIGEST_SIZE) != 0)
    {
        fl_log(cli->log, FL_LOG_WARNING, "client",
               "the kept result of round %llu is for another model, dropping it",
               (unsigned long long)cli->result.key.round);
        fl_result_done(&cli->result);
        cli->has_result = false;
    }
    return rv;
}

/* --- training --- */

static void progress(void *ctx, uint64_t done, uint64_t total)
{
    struct fl_work_job *job = ctx;
    uint64_t now = fl_clock_ms();

    if (now >= job->reported_ms + 10000) {
        job->reported_ms = now;
        fl_log(job->cli->log, FL_LOG_INFO, "client", "training round %llu: step %llu of %llu",
               (unsigned long long)job->key.round, (unsigned long long)done,
               (unsigned long long)total);
    }
}

static void train_work(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_cli *cli = job->cli;
    const struct fl_layout *layout = cli->welcome.layout;
    struct fl_result *kept = &job->kept;

    job->code = fl_trainer_run(cli->trainer, &job->task, &job->result, &job->err);
    if (job->code != FL_OK) {
        return;
    }
    *kept = (struct fl_result){.key = job->key,
                               .samples = job->result.samples,
                               .steps = job->result.steps,
                               .train_loss = job->result.train_loss,
                               .has_received = job->result.has_received,
                               .eval_samples = job->result.eval_samples,
                               .eval_correct = job->result.eval_correct,
                               .eval_loss_sum = job->result.eval_loss_sum,
                               .n_units = fl_layout_units(layout),
                               .n_floats = fl_layout_count(layout),
                               .divergence = job->result.divergence,
                               .delta = job->result.delta};
    (void)memcpy(kept->digest, fl_layout_digest(layout), sizeof(kept->digest));
    job->result = (struct fl_train_result){0};
    job->code = fl_result_save(fl_options_str(cli->conf->main, "state_dir"), kept, &job->err);
    if (job->code != FL_OK) {
        /* Without a disk the result lives as long as the process: better than none. */
        fl_log(cli->log, FL_LOG_WARNING, "client", "the result is not kept on disk, ignoring: %s",
               fl_err_text(&job->err, job->code));
        job->code = FL_OK;
    }
}

static void train_done(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_cli *cli = job->cli;

    if (cli->training == job) {
        cli->training = NULL;
    }
    if (cli->stopping) {
        fl_result_done(&job->kept);
    } else if (job->code == FL_OK) {
        fl_result_done(&cli->result);
        cli->result = job->kept;
        cli->has_result = true;
        fl_log(cli->log, FL_LOG_INFO, "client",
               "trained round %llu: samples=%llu steps=%llu loss=%.4f",
               (unsigned long long)job->key.round, (unsigned long long)cli->result.samples,
               (unsigned long long)cli->result.steps, cli->result.train_loss);
        fl_cli_step_key(cli, FL_CEV_TRAINED, job->key);
    } else {
        if (job->code != FL_ECANCELED) {
            fl_log(cli->log, FL_LOG_ERROR, "client", "training round %llu failed: %s",
                   (unsigned long long)job->key.round, fl_err_text(&job->err, job->code));
        }
        fl_cli_step_failed(cli, FL_CEV_TRAIN_FAILED, job->key, fl_err_text(&job->err, job->code),
                           job->code != FL_ECANCELED);
    }
    fl_train_result_done(&job->result);
    free(job->model);
    free(job);
}

void fl_work_train(struct fl_cli *cli, struct fl_round_key key)
{
    struct fl_work_job *job = calloc(1, sizeof(*job));

    if (job != NULL && cli->model != NULL) {
        job->cli = cli;
        job->key = key;
        job->model = cli->model;
        cli->model = NULL;
        job->reported_ms = fl_clock_ms();
        job->task = (struct fl_train_task){.round = key.round,
                                           .attempt = key.attempt,
                                           .model = job->model,
                                           .learning_rate = cli->learning_rate,
                                           .seed = cli->seed,
                                           .deadline_ms = cli->deadline_ms,
                                           .cancel = &job->cancel,
                                           .progress = progress,
                                           .ctx = job};
        if (fl_lane_submit(cli->lane, train_work, cli->loop, train_done, job) == FL_OK) {
            cli->training = job;
            return;
        }
        free(job->model);
    }
    free(job);
    fl_cli_step_failed(cli, FL_CEV_TRAIN_FAILED, key, "out of memory", true);
}

void fl_work_cancel(struct fl_cli *cli)
{
    if (cli->training != NULL) {
        atomic_store(&cli->training->cancel, true);
    }
}

/* --- evaluation --- */

static void evaluate_work(void *arg)
{
    struct fl_work_job *job = arg;

    job->code = fl_trainer_evaluate(job->cli->trainer, job->model, &job->samples, &job->correct,
                                    &job->loss_sum, &job->err);
}

static void evaluate_done(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_cli *cli = job->cli;

    if (!cli->stopping) {
        if (job->code == FL_OK) {
            fl_control_evaluation(cli, job->key.round, job->samples, job->correct, job->loss_sum);
        } else {
            fl_log(cli->log, FL_LOG_WARNING, "client", "evaluation of round %llu failed: %s",
                   (unsigned long long)job->key.round, fl_err_text(&job->err, job->code));
        }
        fl_cli_step_key(cli, FL_CEV_EVALUATED, job->key);
    }
    free(job->model);
    free(job);
}

void fl_work_evaluate(struct fl_cli *cli, uint64_t round, float *model)
{
    struct fl_work_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->cli = cli;
        job->key.round = round;
        job->model = model;
        if (fl_lane_submit(cli->lane, evaluate_work, cli->loop, evaluate_done, job) == FL_OK) {
            return;
        }
        free(job);
    }
    free(model);
    fl_cli_step_key(cli, FL_CEV_EVALUATED, (struct fl_round_key){.round = round});
}
