/*
 * The server of a simulated federation: the operations of the coordinator's shell (server/shell) in
 * virtual time. A job runs when it is submitted, or its result comes from the journal. One thread,
 * that of the federation; aggregation may use several. Messages to clients are in sim_commands.c.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/work/evaluator.h"
#include "server/work/measure.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

/* Start of the wall clock, for figures that are only displayed. */
#define WALL_MS UINT64_C(1000000000000)

/* --- the account of a round --- */

/* Lists the participants of the selected attempt; it opens when the selection is persisted. */
static void server_list_participants(struct fl_fed *fed, const struct fl_effect *e)
{
    size_t n = 0;
    size_t i;

    if (fl_sim_account_select(&fed->account, e->n_parts) != FL_OK) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the account of a round");
        return;
    }
    for (i = 0; i < e->n_parts; i++) {
        uint32_t client = fl__fed_client_of(fed, e->parts[i].client);

        if (client != UINT32_MAX) {
            fed->account.parts[n++] =
                (struct fl_fed_part){.round = e->round,
                                     .attempt = e->attempt,
                                     .client = client,
                                     .name = fl__fed_name(fed, client),
                                     .latency_us = fl__fed_latency(fed, client)};
        }
    }
    fl_sim_account_selected(&fed->account, n);
}

/* --- end of a round --- */

/* Give its evaluations to each participant, and report the clients that only evaluated. */
static void server_take_evals(struct fl_fed *fed, const struct fl_coord_job *job)
{
    size_t i;

    for (i = 0; i < job->e.n_evals; i++) {
        const struct fl_client_eval *eval = &job->evals[i];
        uint32_t client = fl__fed_client_of(fed, eval->client);
        struct fl_fed_part *part =
            client != UINT32_MAX ? fl_sim_account_part(&fed->account, client) : NULL;

        if (part != NULL) {
            part->eval = eval;
        } else if (client != UINT32_MAX && fed->conf.watch.part != NULL) {
            fed->conf.watch.part(fed->conf.watch.ctx,
                                 &(struct fl_fed_part){.round = job->e.round,
                                                       .attempt = job->e.attempt,
                                                       .client = client,
                                                       .name = fl__fed_name(fed, client),
                                                       .committed = true,
                                                       .train_loss = (double)NAN,
                                                       .eval = eval,
                                                       .evaluated = true});
        }
    }
}

/* The open attempt has ended: report the outcome of its participants. */
static void server_end_participants(struct fl_fed *fed, bool committed)
{
    struct fl_sim_account *a = &fed->account;
    size_t i;

    for (i = 0; i < a->n_parts; i++) {
        struct fl_fed_part *p = &a->parts[i];
        const struct fl_participant_rec *rec =
            fl_coord_part(fed->coord, fed->clients[p->client].number);
        bool counts;

        if (fed->clients[p->client].active != NULL) {
            fl__push_cut(fed, fed->clients[p->client].active);
        }
        p->state = rec != NULL ? rec->state : FL_PARTICIPANT_LOST;
        p->stopped = fl_coord_blameless(fed->coord, fed->clients[p->client].number);
        p->committed = committed;
        p->units = rec != NULL ? rec->units : NULL;
        p->n_units = fl_layout_units(fed->federation.layout);
        counts = committed && p->state == FL_PARTICIPANT_ACCEPTED;
        a->sim.n_dropped += p->dropped;
        a->sim.n_late +=
            p->state == FL_PARTICIPANT_LOST && !p->dropped && !p->failed && !p->stopped;
        a->sim.n_failed += p->failed || p->state == FL_PARTICIPANT_REJECTED;
        *(counts ? &a->sim.up_update_bytes : &a->sim.up_wasted_bytes) += p->bytes_up;
        if (fed->conf.watch.part != NULL) {
            fed->conf.watch.part(fed->conf.watch.ctx, p);
        }
    }
    a->n_parts = 0;
}

static void server_report_committed(struct fl_fed *fed, const struct fl_coord_job *job)
{
    struct fl_sim_account *a = &fed->account;
    const struct fl_round_rec *record = &job->record;
    double full = 4.0 * (double)fl_layout_count(fed->federation.layout);
    struct fl_round_rec reported = *record;

    if (fed->conf.dry) {
        reported.train_loss = (double)NAN; /* Dry run: nothing was trained. */
    }
    fl_sim_account_end(a, fed->now_us);
    fed->committed_us = fed->now_us;
    server_take_evals(fed, job);
    server_end_participants(fed, /* committed= */ true);
    a->sim.full_models = (double)record->uplink_bytes / full;
    if (fed->conf.watch.committed != NULL &&
        !fed->conf.watch.committed(fed->conf.watch.ctx, &reported, &a->sim))
    {
        fed->end = FL_FED_ENOUGH;
        fed->finished = true;
    }
    fl_sim_account_begin(a, fed->now_us);
}

/* --- jobs --- */

/* Only the result of the first selection is needed later: a restarted run replays all of this. */
static bool server_needs_record(const struct fl_fed *fed, const struct fl_coord_job *job)
{
    return fed->conf.keep_records || (job->e.type == FL_EFF_PERSIST_SELECTION && job->summaries);
}

static void server_persist(struct fl_fed *fed, struct fl_coord_job *job)
{
    const struct fl_effect *e = &job->e;

    if (e->type == FL_EFF_PERSIST_SELECTION && e->n_parts > 0) {
        server_list_participants(fed, e);
    }
    if (e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL) {
        (void)snprintf(fed->why, sizeof(fed->why), "%s", e->text);
    }
    if (!fl__fed_replays(fed) && !fed->conf.dry && server_needs_record(fed, job)) {
        fl_coord_job_run(job);
    } else {
        job->summaries = false;
    }
}

static void server_aggregate_live(struct fl_fed *fed, struct fl_coord_job *job)
{
    fl_coord_job_run(job);
    fl_coord_shell_take(&fed->shell, job);
    if (job->code == FL_OK && fed->journal != NULL &&
        fl_journal_put_aggregated(fed->journal, &job->event, job->e.n_parts) != FL_OK)
    {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the journal");
    }
}

static void server_replay_aggregate(struct fl_fed *fed, struct fl_coord_job *job)
{
    struct fl_err err = {0};
    int rv;

    job->event.type = FL_EV_AGGREGATED;
    rv = fl_journal_take_aggregated(fed->journal, &job->event, &job->distance, &err);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "the journal");
    }
}

/* Without arithmetic (dry run) all clients have the same distance. */
static void server_aggregate_dry(const struct fl_fed *fed, struct fl_coord_job *job)
{
    size_t n = job->e.n_parts;
    size_t i;

    job->distance = job->e.want_distance ? malloc((n + 1) * sizeof(*job->distance)) : NULL;
    for (i = 0; job->distance != NULL && i < n; i++) {
        job->distance[i] = 1;
    }
    job->event.type = FL_EV_AGGREGATED;
    job->event.u.aggregated.collection_bytes = fed->collection_bytes;
    job->event.u.aggregated.distance = job->distance;
}

static void server_aggregate(struct fl_fed *fed, struct fl_coord_job *job)
{
    if (fed->conf.dry) {
        server_aggregate_dry(fed, job);
    } else if (fl__fed_replays(fed)) {
        server_replay_aggregate(fed, job);
    } else {
        server_aggregate_live(fed, job);
    }
}

/* Accuracy, loss, and how far a backdoor works. */
static int server_measure_live(struct fl_fed *fed, const float *theta,
                               struct fl_journal_evaluated *ret, struct fl_err *err)
{
    const atomic_bool never = false;
    struct fl_evaluated triggered;
    int rv;

    (void)memset(ret, 0, sizeof(*ret)); /* Also behind the text, as it is written to the file. */
    ret->backdoor_success = -1;
    if (fed->evaluator != NULL) {
        return fl_evaluator_run(fed->evaluator, theta, &never, &ret->found, err);
    }
    rv = fl_measure(fed->net, fed->conf.test, theta, fed->metrics, &never, &ret->found);
    if (rv != FL_OK || fed->triggered == NULL) {
        return rv;
    }
    rv = fl_measure(fed->net, fed->triggered, theta, NULL, &never, &triggered);
    ret->backdoor_success = triggered.accuracy;
    return rv;
}

static int server_measure(struct fl_fed *fed, struct fl_coord_job *job, struct fl_err *err)
{
    struct fl_journal_evaluated found;
    int rv;

    if (fed->conf.dry) {
        return FL_OK;
    }
    if (fl__fed_replays(fed)) {
        rv = fl_journal_take_evaluated(fed->journal, &found, err);
    } else {
        rv = server_measure_live(fed, fl_blob_floats(job->theta), &found, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    found.found.metrics[FL_EVAL_METRICS_TEXT - 1] = '\0'; /* Of a file. */
    job->evaluated = found.found;
    fed->account.sim.backdoor_success = found.backdoor_success;
    return fl__fed_replays(fed) || fed->journal == NULL
               ? FL_OK
               : fl_journal_put_evaluated(fed->journal, &found);
}

static void server_evaluate(struct fl_fed *fed, struct fl_coord_job *job)
{
    struct fl_err err = {0};
    int rv = server_measure(fed, job, &err);

    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "the evaluation");
    }
}

static void server_commit(struct fl_fed *fed, struct fl_coord_job *job)
{
    bool live = !fl__fed_replays(fed) && !fed->conf.dry;

    if (!live) {
        job->event.type = FL_EV_COMMITTED; /* Nothing of `progress` changes. */
    }
    if (fl__fed_replays(fed)) {
        job->code = fl_journal_take_commit(fed->journal, job->record.round, &job->err);
    } else if (live && fed->journal != NULL) {
        job->code = fl_journal_put_commit(fed->journal, job->e.round, &job->err);
    }
    if (live && job->code == FL_OK) {
        fl_coord_job_run(job);
        fl_coord_shell_take(&fed->shell, job);
    }
    if (job->code == FL_OK) {
        server_report_committed(fed, job);
    }
}

/* Jobs run at once; their results come after the step, in the order of the effects. */
static int server_submit(void *ctx, struct fl_coord_job *job)
{
    struct fl_fed *fed = ctx;
    struct fl__fed_answer *answer;

    if (job->e.type == FL_EFF_AGGREGATE) {
        server_aggregate(fed, job);
    } else if (job->e.type == FL_EFF_EVALUATE) {
        server_evaluate(fed, job);
    } else if (job->e.type == FL_EFF_COMMIT) {
        server_commit(fed, job);
    } else {
        server_persist(fed, job);
    }
    answer = fl__fed_answer(fed, 0);
    if (answer == NULL) {
        return FL_ENOMEM;
    }
    answer->job = job;
    return FL_OK;
}

static void server_unsubmitted(void *ctx, uint64_t seq)
{
    (void)seq;
    fl__fed_fail(ctx, FL_ENOMEM, NULL, "a job of the coordinator");
}

/* The first selection fixes the data summaries that all clients fetch from then on. */
static void server_result(void *ctx, const struct fl_coord_job *job)
{
    struct fl_fed *fed = ctx;
    const struct fl_file *file = fed->progress.collection.file;

    if (job->e.type == FL_EFF_PERSIST_SELECTION && job->e.n_parts > 0) {
        fed->summaries_fixed = true;
        fed->collection_bytes = fed->conf.dry  ? fed->dry_collection_bytes
                                : file != NULL ? fl_file_size(file)
                                               : 0;
    }
}

/* The coordinator decides whose fault it is, except that waiting does not help in virtual time. */
static void server_failed(void *ctx, int code, const char *reason)
{
    struct fl_fed *fed = ctx;
    struct fl_err err = {0};

    fl_log(fed->conf.log, FL_LOG_WARNING, "server", "work failed: %s", reason);
    if (code == FL_ENOSPC || code == FL_EIO || code == FL_ENOMEM) {
        fl__fed_fail(fed, fl_err_set(&err, code, "%s", reason), &err,
                     "the server of the simulation");
    }
}

/* --- opening and closing a round --- */

static void server_close_round(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;

    (void)e;
    fl_uploads_clean(fed->uploads, 0, 0);
    fl__collusion_end(fed);
    fl_model_cache_unref(fed->model_cache);
    fed->model_cache = NULL;
    if (fed->account.n_parts > 0) {
        server_end_participants(fed, /* committed= */ false);
    }
}

static void server_open_round(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    int rv = FL_OK;

    fl_model_cache_unref(fed->model_cache);
    fed->model_cache = NULL;
    if (!fl__fed_replays(fed)) {
        rv = fl_model_cache_open(&fed->federation, &fed->progress, e->round, &e->size,
                                 &fed->model_cache);
    }
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "the payloads of a round");
        return;
    }
    fl_sim_account_open(&fed->account, fed->now_us);
}

/* --- operations of the shell --- */

static void server_finished(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;

    (void)e;
    fed->end = FL_FED_DONE;
    fed->finished = true;
}

static void server_trace(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;

    fl_log(fed->conf.log, e->warning ? FL_LOG_WARNING : FL_LOG_DEBUG, "round", "%s", e->text);
}

static void server_stepped(void *ctx, const struct fl_event *event,
                           const struct fl_effects *effects)
{
    struct fl_fed *fed = ctx;
    enum fl_phase before = fed->phase;

    (void)event;
    (void)effects;
    fed->phase = fl_coord_phase(fed->coord);
    if (before == FL_PHASE_UPLOADING && fed->phase != before) {
        fed->account.uploads_us = fed->now_us;
    }
}

static uint64_t server_now_ms(void *ctx)
{
    const struct fl_fed *fed = ctx;

    return fed->now_us / 1000;
}

static uint64_t server_wall_ms(void *ctx)
{
    return WALL_MS + server_now_ms(ctx);
}

/* The clock of the federation asks for the deadline. */
static void server_timer(void *ctx, uint64_t due_ms)
{
    (void)ctx;
    (void)due_ms;
}

static void server_no_memory(void *ctx)
{
    fl__fed_fail(ctx, FL_ENOMEM, NULL, "the coordinator cannot continue");
}

/* A simulation has no operator: without ANSWER, FORGOTTEN, STOPPED, CLIENT_ERROR; and all clients
   leave when it ends. */
const struct fl_coord_ops fl__fed_ops = {
    .now_ms = server_now_ms,
    .wall_ms = server_wall_ms,
    .timer = server_timer,
    .submit = server_submit,
    .unsubmitted = server_unsubmitted,
    .result = server_result,
    .failed = server_failed,
    .no_memory = server_no_memory,
    .stepped = server_stepped,
    .effects = {[FL_EFF_TASK] = fl__fed_send_command,
                [FL_EFF_PLAN] = fl__fed_send_command,
                [FL_EFF_ACCEPTED] = fl__fed_send_command,
                [FL_EFF_REJECTED] = fl__fed_send_command,
                [FL_EFF_DISMISSED] = fl__fed_send_command,
                [FL_EFF_EVALUATE_CLIENT] = fl__fed_send_command,
                [FL_EFF_CLIENT_ID] = fl__fed_admit,
                [FL_EFF_RELEASE] = fl__fed_release,
                [FL_EFF_ROUND_OPEN] = server_open_round,
                [FL_EFF_ROUND_CLOSED] = server_close_round,
                [FL_EFF_FINISHED] = server_finished,
                [FL_EFF_TRACE] = server_trace}};
