/*
 * Figures and events for the HTTP port: counted while the coordinator steps, copied when the port
 * asks. Coordinator thread; it waits for nothing.
 */

#include <math.h>
#include <stdio.h>

#include "libfl/base/clock.h"
#include "libfl/figures/share.h"
#include "server/runtime/runtime_impl.h"

void fl_runtime_figures_init(struct fl_runtime *runtime)
{
    runtime->phase = fl_coord_phase(runtime->coord);
    runtime->phase_at_ms = fl_clock_ms();
    runtime->phase_since_ms = fl_clock_wall_ms();
}

void fl_runtime_event(struct fl_runtime *runtime, enum fl_event_kind kind, bool warning,
                      const char *client, const char *text)
{
    struct fl_event_line line = {.at_ms = fl_clock_wall_ms(), .kind = kind, .warning = warning};

    line.round = fl_coord_round(runtime->coord);
    if (client != NULL) {
        (void)snprintf(line.client, sizeof(line.client), "%s", client);
    }
    fl_event_log_add(runtime->setup.events, &line, text);
}

/* What the event says that a client did; FL_CLIENT_DID_N: nothing of these. */
static enum fl_client_did figures_did(const struct fl_event *event)
{
    switch ((int)event->type) {
    case FL_EV_CLIENT_JOINED:
        return FL_CLIENT_DID_JOIN;
    case FL_EV_CLIENT_LOST:
        return FL_CLIENT_DID_LEAVE;
    case FL_EV_REPORT:
        return FL_CLIENT_DID_REPORT;
    case FL_EV_CLIENT_FAILED:
        return event->u.failed.unavailable ? FL_CLIENT_DID_N : FL_CLIENT_DID_FAIL;
    case FL_EV_UPLOAD_STORED:
        return FL_CLIENT_DID_UPLOAD;
    case FL_EV_UPLOAD_INVALID:
        return FL_CLIENT_DID_UPLOAD_INVALID;
    case FL_EV_UPLOAD_UNSTORED:
        return FL_CLIENT_DID_UPLOAD_UNSTORED;
    default:
        return FL_CLIENT_DID_N;
    }
}

static enum fl_client_got figures_got(const struct fl_effect *effect)
{
    switch ((int)effect->type) {
    case FL_EFF_TASK:
        return FL_CLIENT_GOT_TASK;
    case FL_EFF_PLAN:
        return FL_CLIENT_GOT_PLAN;
    case FL_EFF_EVALUATE_CLIENT:
        return FL_CLIENT_GOT_EVALUATE;
    case FL_EFF_ACCEPTED:
        return FL_CLIENT_GOT_ACCEPTED;
    case FL_EFF_REJECTED:
        return FL_CLIENT_GOT_REJECTED;
    case FL_EFF_DISMISSED:
        return FL_CLIENT_GOT_DISMISSED;
    default:
        return FL_CLIENT_GOT_N;
    }
}

/* An attempt that was open has ended without a commit. */
static void figures_abort(struct fl_runtime *runtime)
{
    if (runtime->attempt_open) {
        runtime->figures.aborted++;
        runtime->attempt_open = false;
    }
}

void fl_runtime_stepped(void *ctx, const struct fl_event *event, const struct fl_effects *effects)
{
    struct fl_runtime *runtime = ctx;
    struct fl_coord_figures *f = &runtime->figures;
    enum fl_client_did did = figures_did(event);
    size_t i;

    if (did < FL_CLIENT_DID_N) {
        f->did[did]++;
    }
    f->revoked += event->type == FL_EV_EXCLUDE;
    for (i = 0; i < effects->n; i++) {
        const struct fl_effect *e = &effects->list[i];
        enum fl_client_got got = figures_got(e);

        if (got < FL_CLIENT_GOT_N) {
            f->got[got]++;
        }
        if (e->type == FL_EFF_PERSIST_SELECTION) {
            fl_runtime_label_selected(runtime, e);
        }
        if (e->type == FL_EFF_PERSIST_SELECTION && e->n_parts > 0) {
            figures_abort(runtime);
            f->attempts++;
            runtime->attempt_open = true;
        }
    }
}

void fl_runtime_phase(struct fl_runtime *runtime)
{
    enum fl_phase phase = fl_coord_phase(runtime->coord);
    uint64_t now = fl_clock_ms();

    if (phase == runtime->phase) {
        return;
    }
    runtime->figures.phase_ms[runtime->phase] += now - runtime->phase_at_ms;
    runtime->phase = phase;
    runtime->phase_at_ms = now;
    runtime->phase_since_ms = fl_clock_wall_ms();
    if (phase == FL_PHASE_IDLE || phase >= FL_PHASE_PAUSED) {
        figures_abort(runtime); /* A commit has closed it before. */
    }
}

void fl_runtime_worked(struct fl_runtime *runtime, const struct fl_coord_job *job)
{
    struct fl_coord_figures *f = &runtime->figures;
    const struct fl_round_rec *r = &job->record;
    enum fl_coord_work kind = job->e.type == FL_EFF_AGGREGATE  ? FL_COORD_WORK_AGGREGATE
                              : job->e.type == FL_EFF_EVALUATE ? FL_COORD_WORK_EVALUATE
                              : job->e.type == FL_EFF_COMMIT   ? FL_COORD_WORK_COMMIT
                                                               : FL_COORD_WORK_PERSIST;

    if (job->code == FL_ECANCELED) {
        return;
    }
    f->work[kind]++;
    f->work_failures[kind] += job->code != FL_OK;
    fl_histogram_add(&f->work_seconds[kind], fl_coord_work_bounds, job->seconds);
    if (kind == FL_COORD_WORK_COMMIT && job->code == FL_OK) {
        runtime->attempt_open = false;
        f->round_ended_ms = r->ended_ms;
        fl_histogram_add(&f->round_seconds, fl_coord_round_bounds,
                         r->ended_ms > r->started_ms ? (double)(r->ended_ms - r->started_ms) / 1e3
                                                     : 0.0);
    }
}

static void figures_clients(const struct fl_runtime *runtime, struct fl_coord_figures *f)
{
    struct fl_client_counts counts;
    size_t i;

    fl_coord_count(runtime->coord, &counts);
    f->clients[FL_CLIENTS_IDLE] = counts.idle;
    f->clients[FL_CLIENTS_UNAVAILABLE] = counts.unavailable;
    f->clients[FL_CLIENTS_DISCONNECTED] = counts.disconnected;
    f->clients[FL_CLIENTS_QUARANTINED] = counts.quarantined;
    for (i = FL_PARTICIPANT_SELECTED; i <= FL_PARTICIPANT_LOST; i++) {
        f->clients[FL_CLIENTS_QUARANTINED + i] = counts.parts[i];
    }
    f->connected = fl_coord_n_connected(runtime->coord);
}

static uint64_t figures_saved(uint64_t full, uint64_t sent)
{
    return full > sent ? full - sent : 0;
}

/* Of all committed rounds, those before this start included. */
static void figures_rounds(const struct fl_runtime *runtime, struct fl_coord_figures *f)
{
    const struct fl_round_rec *t = &runtime->progress.totals;
    uint64_t model = 4 * (uint64_t)fl_layout_count(runtime->setup.conf->layout);

    f->accuracy = t->accuracy >= 0.0 ? t->accuracy : (double)NAN;
    f->loss = fl_share_measured(t->accuracy) ? t->loss : (double)NAN;
    f->selected = t->n_selected;
    f->responders = t->n_responders;
    f->uplink[0] = figures_saved(t->uplink_bytes, t->feedback_bytes);
    f->uplink[1] = t->feedback_bytes;
    f->uplink_full = t->uplink_bytes_full;
    f->uplink_saved = figures_saved(t->uplink_bytes_full, t->uplink_bytes);
    f->downlink = t->downlink_bytes;
    f->downlink_full = model * t->n_selected;
    f->downlink_saved = figures_saved(f->downlink_full, f->downlink);
    f->excluded[FL_EXCLUDED_NORM] = t->n_left_out;
    f->excluded[FL_EXCLUDED_ROBUST] = t->n_robust_out;
    f->excluded[FL_EXCLUDED_REVOKED] = f->revoked;
    f->limited[FL_LIMITED_NORM_CLIP] = t->n_clipped;
    f->limited[FL_LIMITED_WEIGHT] = t->n_capped;
    f->limited[FL_LIMITED_SHARE] = t->n_share_capped;
    f->round_ended_ms = f->round_ended_ms > 0 ? f->round_ended_ms : t->ended_ms;
}

static void figures_problems(const struct fl_runtime *runtime, struct fl_coord_figures *f)
{
    size_t i;

    fl_runtime_problems(runtime, &f->problems);
    for (i = 0; i < FL_PROBLEM_N; i++) {
        f->problem[i] = f->problems.of[i].text[0] != '\0';
    }
}

void fl_runtime_fill_figures(const struct fl_runtime *runtime, struct fl_coord_figures *ret)
{
    const struct fl_traffic *traffic = runtime->setup.traffic;

    *ret = runtime->figures;
    ret->round = fl_coord_round(runtime->coord);
    ret->attempt = fl_coord_attempt(runtime->coord);
    ret->committed = fl_coord_committed(runtime->coord);
    ret->rounds_total = runtime->coord_conf.rounds;
    ret->phase[runtime->phase] = 1;
    ret->phase_since_ms = runtime->phase_since_ms;
    ret->phase_ms[runtime->phase] += fl_clock_ms() - runtime->phase_at_ms;
    ret->wire[0] = atomic_load(&traffic->in);
    ret->wire[1] = atomic_load(&traffic->out);
    ret->own_failure = runtime->own_failure[0] != '\0';
    ret->disk = runtime->disk.space;
    ret->backup_ms = runtime->disk.backup_ms;
    figures_rounds(runtime, ret);
    figures_clients(runtime, ret);
    figures_problems(runtime, ret);
}
