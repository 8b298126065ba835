/*
 * The server of a simulated federation: carries out the coordinator's effects through server/work,
 * and passes the results to it as events. One thread, that of the federation; aggregation may use
 * several. Messages to clients are in sim_log_decisions.c.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "server/core/decision_log.h"
#include "server/work/aggregation.h"
#include "server/work/measure.h"
#include "server/work/persist.h"
#include "server/work/summary_work.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

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

/* --- work --- */

/* Reports failed work to the coordinator, which decides whose fault it is. */
static void server_work_failed(struct fl_fed *fed, uint64_t seq, int code, const struct fl_err *err,
                               uint32_t client)
{
    struct fl__fed_answer *answer = fl__fed_answer(fed, FL_EV_WORK_FAILED);

    fl_log(fed->conf.log, FL_LOG_WARNING, "server", "work failed: %s", fl_err_text(err, code));
    if (code == FL_ENOSPC || code == FL_EIO || code == FL_ENOMEM) {
        /* Waiting does not help in virtual time. */
        fl__fed_fail(fed, code, err, "the server of the simulation");
    } else if (answer != NULL) {
        (void)fl_err_set(&answer->err, code, "%s", fl_err_text(err, code));
        answer->event.u.failed_work.seq = seq;
        answer->event.u.failed_work.code = code;
        answer->event.u.failed_work.client = client;
    }
}

static void server_done(struct fl_fed *fed, enum fl_event_type type, uint64_t seq)
{
    struct fl__fed_answer *answer = fl__fed_answer(fed, type);

    if (answer != NULL) {
        answer->event.u.seq = seq;
    }
}

/* Only the result of the first selection is needed later: a restarted run replays all of this. */
static bool server_needs_record(const struct fl_fed *fed, const struct fl_effect *e, bool offers)
{
    return fed->conf.keep_records || (e->type == FL_EFF_PERSIST_SELECTION && offers);
}

/* The first selection fixes the data summaries that all clients fetch from then on. */
static void server_fix_summaries(struct fl_fed *fed)
{
    const struct fl_file *file = fed->progress.offered.file;

    fed->offers_fixed = true;
    fed->offered_bytes = fed->conf.dry  ? fed->dry_offered_bytes
                         : file != NULL ? fl_file_size(file)
                                        : 0;
}

static void server_persist(struct fl_fed *fed, const struct fl_effect *e)
{
    bool live = !fl__fed_replays(fed) && !fed->conf.dry;
    bool offers = live && fl_offering_wanted(&fed->federation, &fed->progress);
    struct fl_offered offered = {.file = NULL};
    struct fl_err err = {0};
    int rv = FL_OK;

    if (e->type == FL_EFF_PERSIST_SELECTION && e->n_parts > 0) {
        server_list_participants(fed, e);
    }
    if (e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL) {
        (void)snprintf(fed->why, sizeof(fed->why), "%s", e->text);
    }
    if (live && server_needs_record(fed, e, offers)) {
        rv = fl_persist_run(&fed->federation, e, offers ? &offered : NULL, &err);
        fl_progress_offered(&fed->progress, &offered);
        fl_file_unref(offered.file);
    }
    if (rv == FL_OK && e->type == FL_EFF_PERSIST_SELECTION && e->n_parts > 0) {
        server_fix_summaries(fed);
    }
    if (rv != FL_OK) {
        server_work_failed(fed, e->seq, rv, &err, FL_NO_CLIENT);
    } else {
        server_done(fed, FL_EV_PERSISTED, e->seq);
    }
}

static void server_aggregated(struct fl_fed *fed, const struct fl_effect *e, struct fl_event *event,
                              double *distance)
{
    struct fl__fed_answer *answer = fl__fed_answer(fed, FL_EV_AGGREGATED);

    if (answer == NULL) {
        free(distance);
        return;
    }
    answer->event = *event;
    answer->event.u.aggregated.seq = e->seq;
    answer->distance = distance;
}

static void server_aggregate_live(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl_client_rec *clients = calloc(e->n_parts + 1, sizeof(*clients));
    struct fl_aggregation a = fl_aggregation_of(
        e, clients, fl_coord_learning_rate(&fed->conf.coord, e->round), &fed->progress);
    struct fl_err err = {0};
    struct fl_event event;
    size_t i;
    int rv = FL_ENOMEM;

    if (clients != NULL) {
        for (i = 0; i < e->n_parts; i++) {
            clients[i] = *fl_coord_part_client(fed->coord, e->parts[i].client);
        }
        rv = fl_aggregation_run(&fed->federation, &a, &err);
    }
    if (rv == FL_OK) {
        event = fl_aggregation_take(&a, &fed->progress);
        event.u.aggregated.distance = a.distance;
        if (fed->journal != NULL &&
            fl_journal_put_aggregated(fed->journal, &event, e->n_parts) != FL_OK) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "the journal");
        }
        server_aggregated(fed, e, &event, a.distance);
        a.distance = NULL;
    } else {
        server_work_failed(fed, e->seq, rv, &err, a.bad_client);
    }
    fl_aggregation_done(&a);
    free(clients);
}

static void server_replay_aggregate(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl_event event = {.type = FL_EV_AGGREGATED};
    double *distance = NULL;
    struct fl_err err = {0};
    int rv = fl_journal_take_aggregated(fed->journal, &event, &distance, &err);

    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "the journal");
        return;
    }
    server_aggregated(fed, e, &event, distance);
}

/* Without arithmetic (dry run) all clients have the same distance. */
static void server_aggregate_dry(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl_event event = {.type = FL_EV_AGGREGATED};
    double *distance = e->want_distance ? malloc((e->n_parts + 1) * sizeof(*distance)) : NULL;
    size_t i;

    event.u.aggregated.offered_bytes = fed->offered_bytes;
    for (i = 0; distance != NULL && i < e->n_parts; i++) {
        distance[i] = 1;
    }
    server_aggregated(fed, e, &event, distance);
}

static void server_aggregate(struct fl_fed *fed, const struct fl_effect *e)
{
    if (fed->conf.dry) {
        server_aggregate_dry(fed, e);
    } else if (fl__fed_replays(fed)) {
        server_replay_aggregate(fed, e);
    } else {
        server_aggregate_live(fed, e);
    }
}

static int server_measure(struct fl_fed *fed, double *accuracy, double *loss, struct fl_err *err)
{
    const atomic_bool never = false;
    int rv;

    if (fed->conf.dry) {
        *accuracy = *loss = 0;
        return FL_OK;
    }
    if (fl__fed_replays(fed)) {
        return fl_journal_take_evaluated(fed->journal, accuracy, loss, err);
    }
    rv = fl_measure(fed->net, fed->conf.test,
                    fl_blob_floats(fl_progress_model(&fed->progress)->theta), &never, accuracy,
                    loss);
    return rv == FL_OK && fed->journal != NULL
               ? fl_journal_put_evaluated(fed->journal, *accuracy, *loss)
               : rv;
}

static void server_evaluate(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl__fed_answer *answer;
    struct fl_err err = {0};
    double accuracy = 0;
    double loss = 0;
    int rv = server_measure(fed, &accuracy, &loss, &err);

    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, "the evaluation");
        return;
    }
    answer = fl__fed_answer(fed, FL_EV_EVALUATED);
    if (answer != NULL) {
        answer->event.u.evaluated.seq = e->seq;
        answer->event.u.evaluated.accuracy = accuracy;
        answer->event.u.evaluated.loss = loss;
    }
}

/* --- end of a round --- */

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

static void server_report_committed(struct fl_fed *fed, const struct fl_round_rec *record)
{
    struct fl_sim_account *a = &fed->account;
    double full = 4.0 * (double)fl_layout_count(fed->federation.layout);
    struct fl_round_rec reported = *record;

    if (fed->conf.dry) {
        reported.train_loss = (double)NAN; /* Dry run: nothing was trained. */
    }
    fl_sim_account_end(a, fed->now_us);
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

static int server_commit_live(struct fl_fed *fed, const struct fl_effect *e, struct fl_err *err)
{
    const struct fl_commit commit = {.progress = &fed->progress,
                                     .record = e->record,
                                     .clients = e->clients,
                                     .n_clients = e->n_clients,
                                     .wall_ms = e->record->ended_ms,
                                     .epoch = e->epoch};
    int rv = fed->journal != NULL ? fl_journal_put_commit(fed->journal, e->round, err) : FL_OK;

    rv = rv == FL_OK ? fl_commit_run(&fed->federation, &commit, err) : rv;
    if (rv == FL_OK) {
        fl_progress_committed(&fed->progress, e->record);
    }
    return rv;
}

static void server_commit(struct fl_fed *fed, const struct fl_effect *e)
{
    struct fl_err err = {0};
    int rv = FL_OK;

    if (fl__fed_replays(fed)) {
        rv = fl_journal_take_commit(fed->journal, e->record->round, &err);
    } else if (!fed->conf.dry) {
        rv = server_commit_live(fed, e, &err);
    }
    if (rv != FL_OK) {
        server_work_failed(fed, e->seq, rv, &err, FL_NO_CLIENT);
        return;
    }
    server_report_committed(fed, e->record);
    server_done(fed, FL_EV_COMMITTED, e->seq);
}

static void server_close_round(struct fl_fed *fed)
{
    fl_uploads_clean(fed->uploads, 0, 0);
    fl_model_cache_unref(fed->model_cache);
    fed->model_cache = NULL;
    if (fed->account.n_parts > 0) {
        server_end_participants(fed, /* committed= */ false);
    }
}

/* --- start of a round --- */

static void server_open_round(struct fl_fed *fed, const struct fl_effect *e)
{
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

/* Logged as the daemon logs it. */
static void server_note_sent(const struct fl_fed *fed, const struct fl_effect *e)
{
    size_t n = fl_layout_units(fed->federation.layout);
    char line[FL_DECISION_LOG_SIZE];

    if (fed->conf.log != NULL && atomic_load(&fed->conf.log->level) >= FL_LOG_DEBUG &&
        fl_decision_log(fed->coord, e, n, line) != NULL)
    {
        fl_log(fed->conf.log, FL_LOG_DEBUG, "told", "%s", line);
    }
}

void fl__fed_effect(struct fl_fed *fed, const struct fl_effect *e)
{
    server_note_sent(fed, e);
    switch (e->type) {
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_ACCEPTED:
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
    case FL_EFF_EVALUATE_CLIENT:
    case FL_EFF_CLIENT_ID:
    case FL_EFF_RELEASE:
        fl__fed_log_decision(fed, e);
        break;
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_PAUSE:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
        server_persist(fed, e);
        break;
    case FL_EFF_AGGREGATE:
        server_aggregate(fed, e);
        break;
    case FL_EFF_EVALUATE:
        server_evaluate(fed, e);
        break;
    case FL_EFF_COMMIT:
        server_commit(fed, e);
        break;
    case FL_EFF_ROUND_OPEN:
        server_open_round(fed, e);
        break;
    case FL_EFF_ROUND_CLOSED:
        server_close_round(fed);
        break;
    case FL_EFF_FINISHED:
        fed->end = FL_FED_DONE;
        fed->finished = true;
        break;
    case FL_EFF_TRACE:
        fl_log(fed->conf.log, e->warning ? FL_LOG_WARNING : FL_LOG_DEBUG, "round", "%s", e->text);
        break;
    case FL_EFF_STOPPED: /* A simulation has no operator. */
    case FL_EFF_ANSWER:
    case FL_EFF_FORGOTTEN:
    case FL_EFF_DRAIN_CLIENTS:
    case FL_EFF_CLIENT_ERROR:
        break;
    }
}
