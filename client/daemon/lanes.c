/* Data and the trainer, what they are prepared for, and evaluations on the lane. */

#include <stdatomic.h>
#include <stdlib.h>

#include "client/daemon/client.h"
#include "client/daemon/exit_codes.h"
#include "client/daemon/preflight.h"
#include "client/work/evaluation.h"
#include "libfl/base/fs.h"

/* A first run of a program that may be waited for; what hangs holds a round no longer. */
#define FIRST_LIMIT_MS 600000

/* An evaluation. */
struct fl_work_job {
    struct fl_clientd *cli;
    struct fl_setup *setup; /* a reference: what `model` was fetched under */
    uint64_t round;
    struct fl_task task;
    float *model; /* owned */
    double rate;
    atomic_bool cancel;
    struct fl_evaluation measured;
    int code;
    struct fl_err err;
};

static int open_data(struct fl_clientd *cli, struct fl_err *err)
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

/* How long a program may take that nothing is known of. */
static uint64_t first_limit(const struct fl_options *o)
{
    if (fl_options_is_set(o, "first_limit")) {
        return fl_options_ms(o, "first_limit");
    }
    /* Who says how long a run may take, or wants it never cut short, means the first one too. */
    return fl_options_is_set(o, "time_limit") || !(fl_options_float(o, "patience") > 0.0)
               ? 0
               : FIRST_LIMIT_MS;
}

static int open_command(struct fl_clientd *cli, struct fl_err *err)
{
    const struct fl_options *o = cli->conf->command;
    size_t n = fl_options_count(o, "program");
    const char **argv = calloc(n + 1, sizeof(*argv));
    char work[4096];
    struct fl_command_conf conf = {.argv = argv,
                                   .work_dir = work,
                                   .time_limit_ms = fl_options_ms(o, "time_limit"),
                                   .first_limit_ms = first_limit(o),
                                   .patience = fl_options_float(o, "patience"),
                                   .patience_least_ms = fl_options_ms(o, "patience_least"),
                                   .memory_bytes = fl_options_bytes(o, "memory_limit"),
                                   .descriptors = cli->descriptors,
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
        rv = fl_trainer_command(&conf, &cli->worker.trainer, err);
    }
    cli->samples = conf.samples;
    free(argv);
    return rv;
}

int fl_work_open(struct fl_clientd *cli, int *ret_exit, struct fl_err *err)
{
    int rv;

    *ret_exit = FL_EXIT_DATA;
    if (fl_client_conf_command(cli->conf)) {
        rv = open_command(cli, err);
    } else {
        rv = open_data(cli, err);
        if (rv == FL_OK) {
            rv = fl_trainer_builtin(cli->train, cli->test, &cli->worker.trainer, err);
        }
    }
    return rv == FL_OK ? fl_lane_create("fl-train", &cli->lane, err) : rv;
}

void fl_work_close(struct fl_clientd *cli)
{
    fl_work_cancel(cli);
    fl_work_leave_evaluation(cli);
    fl_lane_free(cli->lane);
    cli->lane = NULL;
}

bool fl_work_busy(const struct fl_clientd *cli)
{
    return cli->training != NULL || fl_lane_pending(cli->lane) > 0;
}

/* --- what Welcome describes --- */

int fl_work_prepare(struct fl_clientd *cli, struct fl_setup *setup, struct fl_err *err)
{
    int rv;

    FL_REQUIRE(!fl_work_busy(cli));
    fl_fetch_cancel(cli);
    fl_work_forget(cli);
    rv = fl_worker_prepare(&cli->worker, setup, err);
    if (rv == FL_OK) {
        cli->setup = setup;
        return FL_OK;
    }
    fl_setup_unref(setup);
    return rv;
}

void fl_work_forget(struct fl_clientd *cli)
{
    fl_inputs_done(&cli->inputs);
    fl_offer_forget(cli);
    if (cli->setup != NULL) {
        fl_worker_forget(&cli->worker);
        fl_setup_unref(cli->setup);
        cli->setup = NULL;
    }
}

/* --- evaluation --- */

static void evaluate_work(void *arg)
{
    struct fl_work_job *job = arg;

    job->code = fl_evaluation_run(&job->cli->worker, job->setup, &job->task, job->model, job->rate,
                                  &job->cancel, &job->measured, &job->err);
}

static void send_evaluation(const struct fl_work_job *job)
{
    const struct fl_train_evaluation *r = &job->measured.received;
    const struct fl_train_evaluation *a = &job->measured.adapted;
    struct fl_wire_evaluation result = {r->samples, r->correct, r->loss_sum};
    struct fl_wire_evaluation adapted = {a->samples, a->correct, a->loss_sum};

    fl_control_evaluation(job->cli, job->round, &result, a->samples > 0 ? &adapted : NULL);
}

static void evaluate_done(void *arg)
{
    struct fl_work_job *job = arg;
    struct fl_clientd *cli = job->cli;

    if (cli->evaluating == job) {
        cli->evaluating = NULL;
    }
    if (!cli->stopping) {
        struct fl_round_key key = {.round = job->round};

        if (job->code == FL_OK) {
            send_evaluation(job);
            fl_clientd_step_key(cli, FL_CEV_EVALUATED, key);
        } else {
            fl_clientd_step_failed(cli, FL_CEV_EVALUATE_FAILED, key,
                                   fl_err_text(&job->err, job->code), false);
        }
    }
    fl_setup_unref(job->setup);
    free(job->model);
    free(job);
}

void fl_work_leave_evaluation(struct fl_clientd *cli)
{
    if (cli->evaluating != NULL) {
        atomic_store(&cli->evaluating->cancel, true);
    }
}

static struct fl_work_job *evaluation_of(struct fl_clientd *cli, uint64_t round,
                                         struct fl_setup *setup, float *model)
{
    struct fl_work_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->cli = cli;
    job->setup = fl_setup_ref(setup);
    job->round = round;
    job->model = model;
    job->rate = cli->evaluate_rate;
    job->task = cli->task;
    job->task.key = (struct fl_round_key){.round = round};
    atomic_init(&job->cancel, false);
    return job;
}

void fl_work_evaluate(struct fl_clientd *cli, uint64_t round, struct fl_setup *setup, float *model)
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
    fl_clientd_step_failed(cli, FL_CEV_EVALUATE_FAILED, (struct fl_round_key){.round = round},
                           setup == cli->setup ? "out of memory" : "the model is another one now",
                           false);
}
