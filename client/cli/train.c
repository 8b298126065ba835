/*
 * One training, on the lane: what it starts from is put together, the trainer runs, and what
 * came of it is written in an order that every crash survives:
 *
 *   1  the pending set (keep.h): nothing of it counts before the server counts the round;
 *   2  the held result, which says that a pending set belongs to it;
 *   3  only then the session hears of it, and the server.
 *
 * Killed before 2 the task comes again and is trained again; a pending set that is there
 * already is written anew. The units that are granted join the set before a Push (code.c).
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/client.h"
#include "client/train/trainer.h"
#include "libfl/base/clock.h"

/* Solvers have two inputs and a keep at most; far above it, and checked. */
#define EXTRAS_MAX FL_WIRE_MAX_BUNDLES

struct fl_train_job {
    struct fl_cli *cli;
    struct fl_setup *setup; /* a reference */
    struct fl_round_key key;
    struct fl_train_task task;
    struct fl_train_result result;
    struct fl_inputs in;
    struct fl_solver_bytes inputs[EXTRAS_MAX], kept[EXTRAS_MAX];
    size_t n_inputs, n_kept;
    float *start; /* the block where training starts, inside `in` */
    float *anchor;
    bool received; /* `start` came with the task, and is the anchor from now on */
    struct fl_result *made;
    atomic_bool cancel; /* of this job: the next one may be queued already */
    uint64_t reported_ms;
    int code;
    struct fl_err err;
};

static void job_free(struct fl_train_job *job)
{
    size_t i;

    for (i = 0; i < job->n_kept; i++) {
        free((void *)(uintptr_t)job->kept[i].data);
    }
    free(job->anchor);
    fl_inputs_done(&job->in);
    fl_train_result_done(&job->result);
    fl_result_unref(job->made);
    fl_setup_unref(job->setup);
    free(job);
}

static void progress(void *ctx, uint64_t done, uint64_t total)
{
    struct fl_train_job *job = ctx;
    uint64_t now = fl_clock_ms();

    if (now >= job->reported_ms + 10000) {
        job->reported_ms = now;
        fl_log(job->cli->log, FL_LOG_INFO, "client", "training round %llu: step %llu of %llu",
               (unsigned long long)job->key.round, (unsigned long long)done,
               (unsigned long long)total);
    }
}

/* --- before --- */

/* start = (1 - beta) anchor + beta mixture (ALGORITHMS 8.1); with beta 1 the mixture itself. */
static void blend(struct fl_train_job *job, const float *anchor)
{
    double beta = fl_options_float(job->setup->personal_options, "beta");
    size_t n = fl_layout_count(job->setup->layout);
    size_t i;

    for (i = 0; beta < 1.0 && i < n; i++) {
        job->start[i] = (float)((1.0 - beta) * (double)anchor[i] + beta * (double)job->start[i]);
    }
}

/* The client has a model of its own: where it starts, and what it is pulled to. */
static int start_own(struct fl_train_job *job)
{
    struct fl_cli *cli = job->cli;
    struct fl_input *in = fl_inputs_find(&job->in, "mixture");
    float *anchor = NULL;
    int rv = fl_keeps_load(cli->keeps, FL_KEEP_ANCHOR, &anchor, &job->err);

    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    if (job->in.own != NULL) {
        job->start = job->in.own;
        job->anchor = anchor; /* NULL: its own model is the anchor */
        return FL_OK;
    }
    if (in != NULL) {
        job->start = (float *)(void *)in->data;
        if (anchor != NULL) {
            blend(job, anchor);
        }
    } else if ((in = fl_inputs_find(&job->in, "model")) != NULL) {
        job->start = (float *)(void *)in->data;
    }
    job->received = true;
    free(anchor);
    return FL_OK;
}

static int name_of(const struct fl_solver_ops *solver, const struct fl_keep *keep,
                   char name[FL_NAME_MAX])
{
    int n = snprintf(name, FL_NAME_MAX, "%s.%s", solver->policy.name, keep->name);

    return n > 0 && n < FL_NAME_MAX ? FL_OK : FL_ELIMIT;
}

static int load_kept(struct fl_train_job *job)
{
    const struct fl_setup *setup = job->setup;
    size_t n = fl_solver_keeps(setup->solver->keeps);
    size_t i;

    for (i = 0; i < n && i < EXTRAS_MAX; i++) {
        char name[FL_NAME_MAX];
        float *data = NULL;
        int rv = name_of(setup->solver, &setup->solver->keeps[i], name);

        if (rv == FL_OK) {
            rv = fl_keeps_load(job->cli->keeps, name, &data, &job->err);
        }
        if (rv != FL_OK && rv != FL_ENOENT) {
            return rv;
        }
        job->kept[i].data = data;
        job->kept[i].len = data != NULL ? fl_layout_count(setup->layout) * sizeof(*data) : 0;
        job->n_kept = i + 1;
    }
    return FL_OK;
}

static void gather_inputs(struct fl_train_job *job)
{
    const char *const *name = job->setup->solver->inputs;

    for (; name != NULL && *name != NULL && job->n_inputs < EXTRAS_MAX; name++) {
        const struct fl_input *in = fl_inputs_find(&job->in, *name);

        job->inputs[job->n_inputs] = (struct fl_solver_bytes){in != NULL ? in->data : NULL,
                                                              in != NULL ? (size_t)in->bytes : 0};
        job->n_inputs++;
    }
}

static int prepare(struct fl_train_job *job)
{
    const struct fl_personal_ops *personal = job->setup->personal;
    const struct fl_input *in = fl_inputs_find(&job->in, "model");
    int rv = FL_OK;

    if (personal->own) {
        rv = start_own(job);
    } else if (in != NULL) {
        job->start = (float *)(void *)in->data;
    }
    if (rv == FL_OK && job->start == NULL) {
        rv = fl_err_set(&job->err, FL_ESTATE, "no model was fetched");
    }
    if (rv == FL_OK) {
        rv = load_kept(job);
    }
    if (rv != FL_OK) {
        return rv;
    }
    gather_inputs(job);
    fl_inputs_save(job->cli, &job->in);
    job->task.model = job->start;
    job->task.anchor = job->anchor;
    job->task.raw = personal->own;
    job->task.evaluate_trained = personal->trained;
    job->task.inputs = job->n_inputs > 0 ? job->inputs : NULL;
    job->task.kept = job->n_kept > 0 ? job->kept : NULL;
    return FL_OK;
}

/* What only the training needed goes before more is taken. */
static void release_inputs(struct fl_train_job *job)
{
    size_t i;

    for (i = 0; i < job->n_kept; i++) {
        free((void *)(uintptr_t)job->kept[i].data);
    }
    job->n_kept = 0;
    free(job->anchor);
    job->anchor = NULL;
    for (i = 0; i < job->in.n; i++) {
        if ((float *)(void *)job->in.list[i].data != job->start) {
            free(job->in.list[i].data);
            job->in.list[i].data = NULL;
        }
    }
}

/* --- after --- */

/* Over trainable entries (ALGORITHMS 7.2). */
static double inner_product(const struct fl_layout *layout, const float *a, const float *b)
{
    double sum = 0.0;
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; !tensor->buffer && i < tensor->offset + tensor->count; i++) {
            sum += (double)a[i] * (double)b[i];
        }
    }
    return sum;
}

static int take_previous(struct fl_train_job *job)
{
    float *previous = NULL;
    int rv;

    if (!job->setup->welcome.wants_previous_dot) {
        return FL_OK;
    }
    rv = fl_keeps_load(job->cli->keeps, FL_KEEP_PREVIOUS, &previous, &job->err);
    if (rv == FL_OK) {
        job->made->previous_dot = inner_product(job->setup->layout, previous, job->result.delta);
    }
    free(previous);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int take_mask(struct fl_train_job *job)
{
    const struct fl_setup *setup = job->setup;
    const struct fl_layout *layout = setup->layout;
    struct fl_result *made = job->made;

    if (setup->upload->mask == NULL) {
        return FL_OK;
    }
    made->n_mask = fl_neurons_total(layout);
    made->mask = malloc(made->n_mask + 1);
    return made->mask == NULL ? FL_ENOMEM
                              : setup->upload->mask(setup->upload_options, layout, job->start,
                                                    job->result.delta, made->mask);
}

static int check_block(const struct fl_train_job *job, const struct fl_buf *block, const char *name,
                       struct fl_err *err)
{
    size_t want = fl_layout_count(job->setup->layout) * sizeof(float);

    return block->len == want
               ? FL_OK
               : fl_err_set(err, FL_ESHAPE, "the solver '%s' made %zu bytes of '%s', expected %zu",
                            job->setup->solver->policy.name, block->len, name, want);
}

/* What the solver keeps from now on; an empty one stays as it was. */
static int solver_values(struct fl_train_job *job, struct fl_keeps_value *values,
                         char names[][FL_NAME_MAX], size_t *n)
{
    const struct fl_solver_ops *solver = job->setup->solver;
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < job->result.n_kept && i < EXTRAS_MAX; i++) {
        const struct fl_buf *block = &job->result.kept[i];

        if (block->len == 0) {
            continue;
        }
        rv = check_block(job, block, solver->keeps[i].name, &job->err);
        if (rv == FL_OK) {
            rv = name_of(solver, &solver->keeps[i], names[*n]);
        }
        values[*n] = (struct fl_keeps_value){names[*n], (const float *)(void *)block->data};
        (*n)++;
    }
    return rv;
}

static int write_pending(struct fl_train_job *job)
{
    const struct fl_setup *setup = job->setup;
    struct fl_keeps *keeps = job->cli->keeps;
    struct fl_keeps_value values[EXTRAS_MAX + 3];
    char names[EXTRAS_MAX][FL_NAME_MAX];
    size_t n = 0;
    int rv;

    if (!fl_keeps_wanted(keeps)) {
        return FL_OK;
    }
    rv = solver_values(job, values, names, &n);
    if (setup->welcome.wants_previous_dot) {
        values[n++] = (struct fl_keeps_value){FL_KEEP_PREVIOUS, job->result.delta};
    }
    if (setup->personal->own) { /* What was trained, not how far it went. */
        values[n++] = (struct fl_keeps_value){FL_KEEP_PERSONAL, job->result.delta};
    }
    if (setup->personal->own && job->received) {
        values[n++] = (struct fl_keeps_value){FL_KEEP_ANCHOR, job->start};
    }
    if (rv == FL_OK) {
        rv = fl_keeps_put(keeps, job->key, values, n, &job->err);
    }
    job->made->pending = rv == FL_OK;
    for (n = 0; n < job->result.n_kept; n++) {
        fl_buf_done(&job->result.kept[n]);
    }
    return rv == FL_OK ? rv : fl_err_wrap(&job->err, rv, "cannot keep what the next round needs");
}

static int take_sent(struct fl_train_job *job)
{
    struct fl_train_result *r = &job->result;
    struct fl_result *made = job->made;
    size_t i;

    made->sent = calloc(r->n_sent + 1, sizeof(*made->sent));
    if (made->sent == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < r->n_sent; i++) {
        int rv = check_block(job, &r->sent[i], "what it sends", &job->err);

        if (rv != FL_OK) {
            return rv;
        }
        made->sent[made->n_sent++] = (float *)(void *)r->sent[i].data;
        r->sent[i] = (struct fl_buf){0};
    }
    return FL_OK;
}

static struct fl_result_evaluation figures(uint64_t samples, uint64_t correct, double loss_sum)
{
    return (struct fl_result_evaluation){samples, correct, loss_sum};
}

static void take_result(struct fl_train_job *job)
{
    const struct fl_layout *layout = job->setup->layout;
    struct fl_train_result *r = &job->result;
    struct fl_result *made = job->made;

    made->key = job->key;
    made->samples = r->samples;
    made->steps = r->steps;
    made->train_loss = r->train_loss;
    made->has_received = r->has_received;
    made->received = figures(r->eval_samples, r->eval_correct, r->eval_loss_sum);
    made->has_trained = r->has_trained;
    made->trained = figures(r->trained.samples, r->trained.correct, r->trained.loss_sum);
    made->n_units = fl_layout_units(layout);
    made->n_floats = fl_layout_count(layout);
    made->divergence = r->divergence;
    made->delta = r->delta;
    (void)memcpy(made->digest, fl_layout_digest(layout), sizeof(made->digest));
    (void)memcpy(made->line, job->setup->welcome.line, sizeof(made->line));
    r->divergence = NULL;
    r->delta = NULL;
}

static int keep_result(struct fl_train_job *job)
{
    struct fl_cli *cli = job->cli;
    int rv;

    job->made = fl_result_new();
    if (job->made == NULL) {
        return FL_ENOMEM;
    }
    release_inputs(job);
    rv = take_mask(job);
    if (!job->setup->personal->own || !job->received) { /* Else it becomes the anchor. */
        fl_inputs_done(&job->in);
    }
    if (rv != FL_OK || (rv = take_previous(job)) != FL_OK || (rv = write_pending(job)) != FL_OK ||
        (rv = take_sent(job)) != FL_OK)
    {
        return rv;
    }
    take_result(job);
    rv = fl_result_save(fl_cli_state_dir(cli), job->made, &job->err);
    if (rv != FL_OK) {
        /* Without a disk the result lives as long as the process: better than none. */
        fl_log(cli->log, FL_LOG_WARNING, "client", "the result is not kept on disk, ignoring: %s",
               fl_err_text(&job->err, rv));
    }
    return FL_OK;
}

static void train_work(void *arg)
{
    struct fl_train_job *job = arg;

    job->code = prepare(job);
    if (job->code == FL_OK) {
        job->code = fl_trainer_run(job->cli->trainer, &job->task, &job->result, &job->err);
    }
    if (job->code == FL_OK) {
        job->code = keep_result(job);
    }
}

static void train_done(void *arg)
{
    struct fl_train_job *job = arg;
    struct fl_cli *cli = job->cli;

    if (cli->training == job) {
        cli->training = NULL;
    }
    if (cli->stopping) {
        job_free(job);
        return;
    }
    if (job->code == FL_OK) {
        fl_result_unref(cli->result);
        cli->result = job->made;
        job->made = NULL;
        fl_log(cli->log, FL_LOG_INFO, "client",
               "trained round %llu: samples=%llu steps=%llu loss=%.4f",
               (unsigned long long)job->key.round, (unsigned long long)cli->result->samples,
               (unsigned long long)cli->result->steps, cli->result->train_loss);
        fl_cli_step_key(cli, FL_CEV_TRAINED, job->key);
    } else {
        if (job->code != FL_ECANCELED) {
            fl_log(cli->log, FL_LOG_ERROR, "client", "training round %llu failed: %s",
                   (unsigned long long)job->key.round, fl_err_text(&job->err, job->code));
        }
        if (job->code == FL_ENUMERIC) {
            fl_cli_step_diverged(cli, FL_CEV_TRAIN_FAILED, job->key,
                                 fl_err_text(&job->err, job->code));
        } else {
            fl_cli_step_failed(cli, FL_CEV_TRAIN_FAILED, job->key,
                               fl_err_text(&job->err, job->code), job->code != FL_ECANCELED);
        }
    }
    job_free(job);
}

static struct fl_train_job *job_new(struct fl_cli *cli, struct fl_round_key key)
{
    struct fl_train_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->cli = cli;
    job->setup = fl_setup_ref(cli->setup);
    job->key = key;
    job->in = cli->inputs;
    cli->inputs = (struct fl_inputs){.n = 0};
    job->reported_ms = fl_clock_ms();
    job->task = (struct fl_train_task){.round = key.round,
                                       .attempt = key.attempt,
                                       .learning_rate = cli->learning_rate,
                                       .seed = cli->seed,
                                       .offer_seed = fl_cli_seed(cli),
                                       .order_seed = cli->order_seed,
                                       .deadline_ms = cli->deadline_ms,
                                       .n_selected = cli->n_selected,
                                       .population = cli->population,
                                       .cancel = &job->cancel,
                                       .progress = progress,
                                       .ctx = job};
    return job;
}

void fl_work_train(struct fl_cli *cli, struct fl_round_key key)
{
    struct fl_train_job *job = NULL;

    fl_work_leave_evaluation(cli);
    if (cli->inputs.setup != cli->setup) {
        fl_cli_step_failed(cli, FL_CEV_TRAIN_FAILED, key, "what was fetched is for another model",
                           false);
        return;
    }
    job = job_new(cli, key);
    if (job != NULL) {
        if (fl_lane_submit(cli->lane, train_work, cli->loop, train_done, job) == FL_OK) {
            cli->training = job;
            return;
        }
        job_free(job);
    }
    fl_cli_step_failed(cli, FL_CEV_TRAIN_FAILED, key, "out of memory", true);
}

void fl_work_cancel(struct fl_cli *cli)
{
    if (cli->training != NULL) {
        atomic_store(&cli->training->cancel, true);
    }
}
