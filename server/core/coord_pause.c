/*
 * The rules of the operator commands (FL_COORD_COMMANDS); the pause that the coordinator makes
 * itself when training diverges; and the end of the process. A pause stays on disk until it is
 * resumed. On the thread of the coordinator.
 *
 * Each command is answered once: a pause and its end when they are durable, an abort when the end
 * of the attempt is. No crash takes back what was answered. A drain is not persisted: it ends with
 * the process.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

static bool round_is_open(const struct fl_coord *c)
{
    return c->round.round != 0 && !c->round.closing;
}

static bool federation_is_ending(const struct fl_coord *c)
{
    return c->sm.state == FL_PHASE_DRAINING || c->sm.state == FL_PHASE_STOPPED;
}

void fl__command_answer(struct fl_coord *c, int code, const char *fmt, ...)
{
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_ANSWER);
    va_list ap;

    va_start(ap, fmt);
    e->text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
    e->code = code;
    c->command.awaited = FL__COMMAND_NONE;
}

void fl__command_await(struct fl_coord *c, enum fl__command_kind what, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->command.text, sizeof(c->command.text), fmt, ap);
    va_end(ap);
    c->command.awaited = what;
}

void fl__command_awaited(struct fl_coord *c, enum fl__command_kind what, const char *trouble)
{
    char clean[FL__CLEAN_SIZE];

    if (c->command.awaited != what) {
        return;
    }
    if (trouble == NULL) {
        fl__command_answer(c, FL_OK, "%s", c->command.text);
        return;
    }
    fl__command_answer(
        c, FL_EIO,
        "done, but not yet durable: %s; free some space, the write is retried. A crash "
        "before that loses the change",
        fl__coord_clean(clean, sizeof(clean), trouble));
}

/* --- the record of a pause --- */

void fl__coord_write_pause(struct fl_coord *c)
{
    struct fl__pause *p = &c->pause;
    struct fl_effect *e;

    if (!p->dirty || p->seq != 0 || c->now_ms < p->retry_ms) {
        return;
    }
    p->dirty = false;
    p->retry_ms = 0;
    p->seq = fl__coord_pend(c, FL__PENDING_PAUSE, FL__NONE);
    e = fl__coord_emit(c, FL_EFF_PERSIST_PAUSE);
    e->seq = p->seq;
    e->text = p->on ? p->reason : NULL;
}

bool fl__coord_pause_is_durable(const struct fl_coord *c)
{
    return !c->pause.dirty && c->pause.seq == 0;
}

void fl__coord_pause_persisted(struct fl_coord *c)
{
    c->pause.seq = 0;
    if (!c->pause.dirty) {
        fl__command_awaited(c, FL__COMMAND_DURABLE, NULL);
    }
}

void fl__coord_pause_failed(struct fl_coord *c, const char *reason)
{
    char clean[FL__CLEAN_SIZE];
    uint64_t span = fl__coord_backoff(c, 1);

    c->pause.seq = 0;
    c->pause.dirty = true;
    c->pause.retry_ms = fl__coord_after(c, span);
    fl__coord_trace(
        c, "the %s of the federation could not be written: %s, retrying in %" PRIu64 " ms",
        c->pause.on ? "pause" : "resumption", fl__coord_clean(clean, sizeof(clean), reason), span);
    fl__command_awaited(c, FL__COMMAND_DURABLE, reason);
}

static void set_pause(struct fl_coord *c, bool on)
{
    c->pause.on = on;
    c->pause.dirty = true;
}

void fl__coord_pause_for(struct fl_coord *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->pause.reason, sizeof(c->pause.reason), fmt, ap);
    va_end(ap);
    set_pause(c, true);
}

/* --- operator commands --- */

/* Answer what the pause leads to. */
static void await_pause(struct fl_coord *c, const char *already)
{
    const char *reason = c->pause.reason;

    if (federation_is_ending(c) && c->finished) {
        fl__command_await(
            c, FL__COMMAND_DURABLE,
            "%sall %" PRIu64
            " rounds are done; a server that is started with more rounds is paused: %s",
            already, c->committed, reason);
    } else if (c->draining) {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "%sthe server stops%s%s, and is paused after its restart: %s", already,
                          round_is_open(c) ? " when the open round is finished" : "", "", reason);
    } else if (round_is_open(c)) {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "%sround %" PRIu64 " is finished first, then the federation pauses: %s",
                          already, c->round.round, reason);
    } else {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "%sthe federation is paused before round %" PRIu64 ": %s", already,
                          c->committed + 1, reason);
    }
}

void fl__coord_pause(struct fl_coord *c, const char *reason)
{
    bool already = c->pause.on;
    char clean[FL__CLEAN_SIZE];

    if (!already) { /* The first reason stays: it says what to do. */
        bool given = reason != NULL && reason[0] != '\0';

        fl__coord_pause_for(c, "paused by the operator%s%s", given ? ": " : "",
                            given ? fl__coord_clean(clean, sizeof(clean), reason) : "");
        fl__coord_trace(c, "pause requested by the operator");
    }
    await_pause(c, already ? "already so: " : "");
    if (fl__coord_pause_is_durable(c)) {
        fl__command_awaited(c, FL__COMMAND_DURABLE, NULL);
    }
}

void fl__coord_resume(struct fl_coord *c, const char *reason)
{
    (void)reason;
    if (!c->pause.on) {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "nothing to resume: the federation is not paused");
    } else if (c->draining || federation_is_ending(c)) {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "resumed: the server is not paused after its restart");
    } else if (round_is_open(c)) {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "resumed: round %" PRIu64 " continues, and the next one follows it",
                          c->round.round);
    } else {
        fl__command_await(c, FL__COMMAND_DURABLE,
                          "resumed: the federation continues with round %" PRIu64,
                          c->committed + 1);
    }
    if (c->pause.on) {
        set_pause(c, false);
        fl__coord_trace(c, "resumed by the operator");
    }
    if (c->sm.state == FL_PHASE_PAUSED) {
        fl__coord_move(c, FL_PHASE_IDLE, "resumed");
    }
    if (fl__coord_pause_is_durable(c)) {
        fl__command_awaited(c, FL__COMMAND_DURABLE, NULL);
    }
}

/* The epoch is written with the pause. */
void fl__coord_new_epoch(struct fl_coord *c, const char *reason)
{
    (void)reason;
    if (!fl_strategy_sums_kept(c->conf.strategy)) {
        fl__command_answer(c, FL_ESTATE, "solver '%s' has no controls: there is nothing to reset",
                           c->conf.strategy->solver->policy.name);
        return;
    }
    fl__coord_begin_epoch(c, "the operator reset the controls");
    c->pause.dirty = true;
    fl__command_await(c, FL__COMMAND_DURABLE,
                      "controls restart at zero with round %" PRIu64
                      ", on the server and on all clients",
                      c->clients.epoch);
}

void fl__coord_abort_round(struct fl_coord *c, const char *reason)
{
    bool given = reason != NULL && reason[0] != '\0';
    char clean[FL__CLEAN_SIZE];

    if (!c->started || !round_is_open(c)) {
        fl__command_answer(c, FL_ESTATE, "nothing to abort: no round is open");
        return;
    }
    if (c->sm.state == FL_PHASE_EVALUATING || c->sm.state == FL_PHASE_COMMITTING) {
        fl__command_answer(
            c, FL_ESTATE,
            "too late to abort: the model of round %" PRIu64
            " is aggregated (%s) and will be committed; 'flctl rollback' can undo the round",
            c->round.round, fl_sm_name(&c->sm));
        return;
    }
    c->aborting = true;
    (void)snprintf(c->abort_command, sizeof(c->abort_command), "by the operator%s%s",
                   given ? ": " : "", given ? fl__coord_clean(clean, sizeof(clean), reason) : "");
    fl__command_await(c, FL__COMMAND_CLOSED, "round %" PRIu64 " attempt %" PRIu32 " is aborted; %s",
                      c->round.round, c->round.attempt,
                      c->draining   ? "the server stops"
                      : c->pause.on ? "the federation pauses"
                                    : "the next attempt follows");
}

void fl__coord_abort_closed(struct fl_coord *c, const char *trouble)
{
    c->aborting = false;
    fl__command_awaited(c, FL__COMMAND_CLOSED, trouble);
}

/* --- the end --- */

struct fl_effect *fl__coord_disconnect(struct fl_coord *c, uint32_t client)
{
    struct fl_effect *e = fl__coord_effect_for(c, FL_EFF_DRAIN_CLIENTS, client);

    bool over = c->finished && !c->stopping;

    e->text = over ? "all rounds are done" : c->stopping ? c->stop_reason : "the server stops";
    e->task.deadline_ms = over ? 0 : c->conf.restart_ms > 0 ? c->conf.restart_ms : 1;
    return e;
}

void fl__coord_begin_drain(struct fl_coord *c)
{
    fl__coord_move(c, FL_PHASE_DRAINING, "%s", fl__coord_disconnect(c, FL__NONE)->text);
}

void fl__coord_drain(struct fl_coord *c, const char *reason)
{
    const char *already = c->draining ? "already so: " : "";

    (void)reason;
    if (!c->draining) {
        c->draining = true;
        c->started = true;
        fl__coord_trace(c, "draining: no new round starts");
    }
    if (round_is_open(c)) {
        fl__command_answer(c, FL_OK, "%sround %" PRIu64 " is finished first, then the server stops",
                           already, c->round.round);
    } else {
        fl__command_answer(c, FL_OK, "%sthe server stops", already);
    }
    if (c->sm.state == FL_PHASE_STOPPED) { /* All rounds are done, and the server stayed up. */
        (void)fl__coord_emit(c, FL_EFF_STOPPED);
    }
}

bool fl__coord_draining(struct fl_coord *c)
{
    if (c->n_pending > 0 || c->clients.first_deletion != FL__NONE ||
        !fl__coord_pause_is_durable(c) || !fl__quarantine_durable(c))
    {
        return false;
    }
    fl__coord_move(c, FL_PHASE_STOPPED, "everything is on disk");
    if (c->finished) {
        (void)fl__coord_emit(c, FL_EFF_FINISHED);
    }
    if (c->draining) {
        (void)fl__coord_emit(c, FL_EFF_STOPPED);
    }
    return false;
}

bool fl__coord_paused(struct fl_coord *c)
{
    if (!c->draining) {
        return false;
    }
    fl__coord_begin_drain(c);
    return true;
}

/* --- the end of the process --- */

void fl__coord_stop(struct fl_coord *c, const char *reason)
{
    if (c->stopping) {
        return;
    }
    c->stopping = true;
    c->started = true;
    (void)fl__coord_clean(c->stop_reason, sizeof(c->stop_reason),
                          reason != NULL ? reason : "the server stops");
    if (c->sm.state == FL_PHASE_STOPPED) {
        (void)fl__coord_disconnect(c, FL__NONE);
        (void)fl__coord_emit(c, FL_EFF_STOPPED);
    }
}

/* Is a write running that clients depend on? A failed write would be retried later: that is up
   to the next process. */
static bool is_writing(const struct fl_coord *c)
{
    switch (c->work.kind) {
    case FL__WORK_SELECTION:
    case FL__WORK_PLAN:
    case FL__WORK_COMMIT:
    case FL__WORK_CLOSE:
        return c->work.retry_ms == 0 || c->n_pending > 0;
    case FL__WORK_NONE:
    case FL__WORK_AGGREGATE:
    case FL__WORK_EVALUATE:
        break;
    }
    return c->n_pending > 0;
}

void fl__coord_stopping(struct fl_coord *c)
{
    if (c->sm.state == FL_PHASE_STOPPED || is_writing(c)) {
        return;
    }
    fl__coord_work_done(c);
    if (c->sm.state != FL_PHASE_DRAINING) {
        fl__coord_begin_drain(c);
    }
    fl__coord_move(c, FL_PHASE_STOPPED, "nothing is being written");
    (void)fl__coord_emit(c, FL_EFF_STOPPED);
}
