/* The phases of the coordinator: their state table, the trace line of a transition, and what has to
   hold after it. On the thread of the coordinator. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

#define TO(phase) FL_SM_TO(FL_PHASE_##phase)

/* The drawing is in coord.h. Transitions from IDLE into the middle of a round resume it after a
   restart; those to IDLE from within a round end an attempt, those to DRAINING the process. */
static const struct fl_sm_state phases[FL_PHASE_COUNT] = {
    [FL_PHASE_IDLE] = {"IDLE",
                       TO(SELECTING) | TO(TRAINING) | TO(UPLOADING) | TO(PAUSED) | TO(DRAINING)},
    [FL_PHASE_SELECTING] = {"SELECTING", TO(TRAINING) | TO(DRAINING)},
    [FL_PHASE_TRAINING] = {"TRAINING", TO(PLANNING) | TO(UPLOADING) | TO(IDLE) | TO(DRAINING)},
    [FL_PHASE_PLANNING] = {"PLANNING", TO(UPLOADING) | TO(DRAINING)},
    [FL_PHASE_UPLOADING] = {"UPLOADING", TO(AGGREGATING) | TO(IDLE) | TO(DRAINING)},
    [FL_PHASE_AGGREGATING] = {"AGGREGATING",
                              TO(EVALUATING) | TO(COMMITTING) | TO(IDLE) | TO(DRAINING)},
    [FL_PHASE_EVALUATING] = {"EVALUATING", TO(COMMITTING) | TO(DRAINING)},
    [FL_PHASE_COMMITTING] = {"COMMITTING", TO(IDLE) | TO(DRAINING)},
    [FL_PHASE_PAUSED] = {"PAUSED", TO(IDLE) | TO(DRAINING)},
    [FL_PHASE_DRAINING] = {"DRAINING", TO(STOPPED)},
    [FL_PHASE_STOPPED] = {"STOPPED", 0},
};

const char *fl_phase_name(enum fl_phase phase)
{
    return (unsigned)phase < FL_PHASE_COUNT ? phases[phase].name : "unknown";
}

/* What a transition means to the tools of an operator. */
static enum fl_log_event phase_event(enum fl_phase before, enum fl_phase after)
{
    if (after == FL_PHASE_PAUSED) {
        return FL_LOG_EVENT_PAUSED;
    }
    if (after == FL_PHASE_IDLE) {
        return before == FL_PHASE_PAUSED                                ? FL_LOG_EVENT_RESUMED
               : before > FL_PHASE_IDLE && before < FL_PHASE_COMMITTING ? FL_LOG_EVENT_ROUND_ABORTED
                                                                        : FL_LOG_NO_EVENT;
    }
    return FL_LOG_NO_EVENT;
}

/* The log of a round has its begin, the begin of its uploads and, from the commit, its figures. */
static bool phase_is_detail(enum fl_phase before, enum fl_phase after)
{
    return before < FL_PHASE_PAUSED && after < FL_PHASE_PAUSED && after != FL_PHASE_UPLOADING &&
           after != FL_PHASE_TRAINING;
}

static void phase_trace(const struct fl_sm *sm, unsigned previous, void *ctx)
{
    struct fl_coord *c = ctx;
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_TRACE);

    e->text = fl__coord_text(c, "round %" PRIu64 " attempt %" PRIu32 ": %s -> %s, %s", e->round,
                             e->attempt, phases[previous].name, fl_sm_name(sm), c->reason);
    /* Warn of a pause, an aborted attempt, or a round with fewer responders than selected. */
    e->warning =
        sm->state == FL_PHASE_PAUSED ||
        (sm->state == FL_PHASE_IDLE && previous < FL_PHASE_COMMITTING) ||
        (previous == FL_PHASE_COMMITTING && c->round.rec.n_responders < c->round.size.selected);
    e->phase = (enum fl_phase)sm->state;
    e->event = phase_event((enum fl_phase)previous, (enum fl_phase)sm->state);
    e->detail = !e->warning && phase_is_detail((enum fl_phase)previous, (enum fl_phase)sm->state);
}

/* Invariants after every transition. */
static bool phase_invariant(const struct fl_sm *sm, unsigned previous)
{
    const struct fl_coord *c = sm->ctx;
    const struct fl__round *r = &c->round;
    size_t sum = 0;
    size_t i;

    (void)previous;
    for (i = 0; i <= FL_PARTICIPANT_LOST; i++) {
        sum += r->count[i];
    }
    if (sum != r->n || (r->round != 0 && r->round != c->committed + 1)) {
        return false;
    }
    switch ((enum fl_phase)sm->state) {
    case FL_PHASE_IDLE:
    case FL_PHASE_PAUSED:
        return r->round == 0 || r->closing;
    case FL_PHASE_DRAINING:
        return r->round == 0 || r->closing || c->stopping;
    case FL_PHASE_SELECTING:
        return r->n > 0 && r->count[FL_PARTICIPANT_SELECTED] == r->n;
    case FL_PHASE_TRAINING:
        return r->n > 0 && !r->closing;
    case FL_PHASE_PLANNING:
        return r->count[FL_PARTICIPANT_SELECTED] == 0 && r->count[FL_PARTICIPANT_REPORTED] == 0;
    case FL_PHASE_UPLOADING:
        return !r->closing;
    case FL_PHASE_AGGREGATING:
    case FL_PHASE_EVALUATING:
    case FL_PHASE_COMMITTING:
        return !r->closing && fl__coord_round_waiting(c) == 0 && r->round == c->committed + 1;
    case FL_PHASE_STOPPED:
        return r->round == 0 || c->stopping;
    case FL_PHASE_COUNT:
        break;
    }
    return false;
}

void fl__coord_sm_init(struct fl_coord *c)
{
    fl_sm_init(&c->sm, phases, FL_PHASE_COUNT, FL_PHASE_IDLE);
    c->sm.trace = phase_trace;
    c->sm.invariant = phase_invariant;
    c->sm.ctx = c;
}

/* --- durations --- */

void fl__coord_times_begin(struct fl_coord *c)
{
    c->times.since_ms = c->times.commit_ms = c->now_ms;
}

/* An attempt, or its rest after a restart, begins when IDLE is left for one of its phases. */
static void phase_time(struct fl_coord *c, enum fl_phase from, enum fl_phase to)
{
    struct fl__phase_times *t = &c->times;

    if (from == FL_PHASE_IDLE && to < FL_PHASE_PAUSED) {
        (void)memset(t->in_ms, 0, sizeof(t->in_ms));
        t->waiting_ms = c->now_ms - t->commit_ms;
    }
    t->in_ms[from] += c->now_ms - t->since_ms;
    if (from == FL_PHASE_COMMITTING && to == FL_PHASE_IDLE) {
        t->previous_commit_ms = t->in_ms[FL_PHASE_COMMITTING];
        t->commit_ms = c->now_ms;
    }
    t->since_ms = c->now_ms;
}

void fl__coord_times(const struct fl_coord *c, struct fl_round_rec *rec)
{
    const struct fl__phase_times *t = &c->times;

    rec->waiting_ms = t->waiting_ms;
    rec->selecting_ms = t->in_ms[FL_PHASE_SELECTING];
    rec->training_ms = t->in_ms[FL_PHASE_TRAINING];
    rec->planning_ms = t->in_ms[FL_PHASE_PLANNING];
    rec->uploading_ms = t->in_ms[FL_PHASE_UPLOADING];
    rec->aggregating_ms = t->in_ms[FL_PHASE_AGGREGATING];
    rec->evaluating_ms = t->in_ms[FL_PHASE_EVALUATING];
    rec->previous_commit_ms = t->previous_commit_ms;
}

void fl__coord_move(struct fl_coord *c, enum fl_phase to, const char *fmt, ...)
{
    va_list ap;

    phase_time(c, (enum fl_phase)c->sm.state, to);

    va_start(ap, fmt);
    (void)vsnprintf(c->reason, sizeof(c->reason), fmt, ap);
    va_end(ap);
    fl_sm_move(&c->sm, to);
}
