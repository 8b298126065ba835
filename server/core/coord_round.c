/*
 * A round from the selection to the last upload, and the end of an aborted attempt. On the thread
 * of the coordinator; stragglers, over-selection, backfill and norms are in files of their own.
 *
 * With feedback:    TASK -> report -> (plan persisted) -> PLAN -> upload -> ACCEPTED
 * Without feedback: TASK with the plan -> report -> upload -> ACCEPTED
 *
 * A silent client leaves the round: at the deadline of the phase, lost_grace_ms after it
 * disconnected, or when it reports a failure. The round ends early, as aborted, when fewer than
 * min_responders can still respond.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* The selection is on disk: the round exists. */
void fl__coord_selected(struct fl_coord *c)
{
    size_t i;

    fl__coord_work_done(c);
    c->round.opened_ms = c->now_ms;
    c->round.deadline_ms = fl__coord_after(c, c->conf.train_ms);
    fl__coord_move(c, FL_PHASE_TRAINING, "%zu clients have %" PRIu64 " ms", c->round.n,
                   c->conf.train_ms);
    (void)fl__coord_emit(c, FL_EFF_ROUND_OPEN);
    for (i = 0; i < c->round.n; i++) { /* Some may be excluded meanwhile. */
        if (c->round.parts[i].state == FL_PARTICIPANT_SELECTED &&
            c->clients.live[c->round.parts[i].client].connected)
        {
            fl__coord_task(c, i);
        }
    }
}

/* The server restarted in the middle of a round: accepted updates stay, the rest continues. */
void fl__coord_resume_round(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl_order_at at = {0};
    uint32_t client;

    fl__coord_ensure_scores(c);
    if (r->unusable) {
        fl__coord_trace(c,
                        "round %" PRIu64 " attempt %" PRIu32
                        ": cannot be resumed, the configuration changed",
                        r->round, r->attempt);
        (void)snprintf(c->abort_reason, sizeof(c->abort_reason), "the configuration changed");
        c->attempt = r->attempt + 1;
        fl__coord_close(c);
        return;
    }
    r->deadline_ms = fl__coord_after(c, r->planned ? c->conf.upload_ms : c->conf.train_ms);
    r->opened_ms = c->now_ms;
    r->excused_ms = c->now_ms;
    r->rec.started_ms = c->wall_ms;
    if (r->planned) {
        fl__straggler_begin_uploads(c);
    }
    fl__coord_move(c, r->planned ? FL_PHASE_UPLOADING : FL_PHASE_TRAINING,
                   "resumed with %zu of %zu updates accepted", r->count[FL_PARTICIPANT_ACCEPTED],
                   r->n);
    (void)fl__coord_emit(c, FL_EFF_ROUND_OPEN);
    while ((client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
        fl__coord_rejoin(c, client);
    }
}

/* The plan is durable: send it; clients with an empty mask are done. */
void fl__coord_planned(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    fl__coord_work_done(c);
    r->planned = true;
    r->grace_only = false;
    r->expired = false;
    r->deadline_ms = fl__coord_after(c, c->conf.upload_ms);
    fl__straggler_begin_uploads(c);
    if (c->sm.state == FL_PHASE_PLANNING) {
        fl__coord_move(c, FL_PHASE_UPLOADING,
                       "%zu clients have %" PRIu64 " ms to upload, %zu have an empty upload mask",
                       r->count[FL_PARTICIPANT_PLANNED], c->conf.upload_ms,
                       r->count[FL_PARTICIPANT_EMPTY]);
    }
    for (i = 0; i < r->n; i++) {
        uint32_t client = r->parts[i].client;

        if (r->parts[i].state == FL_PARTICIPANT_PLANNED) {
            fl__straggler_asked(c, i);
        }
        if (r->parts[i].state == FL_PARTICIPANT_PLANNED && c->clients.live[client].connected) {
            fl__coord_effect_for(c, FL_EFF_PLAN, client)->units = r->parts[i].units;
        } else if (r->parts[i].state == FL_PARTICIPANT_EMPTY && fl__coord_empty_confirmed(c)) {
            fl__coord_accepted(c, i);
        }
    }
}

/* Gives up disconnected clients whose grace has passed; sets the time of the next check. */
static void give_up_lost(struct fl_coord *c)
{
    struct fl__names names = {.used = 0};
    uint64_t next = FL__NEVER;
    size_t i;

    if (c->now_ms < c->round.grace_ms) {
        return;
    }
    for (i = 0; i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;
        const struct fl__client *live = &c->clients.live[client];
        uint64_t away;

        if (live->connected || !fl__participant_waiting(c, i) || fl__participant_stored(c, i) ||
            (live->lost_ms == FL__NEVER && !live->removed))
        {
            continue;
        }
        away = live->removed ? FL__NEVER : c->now_ms - live->lost_ms;
        if (away >= c->conf.lost_grace_ms) {
            fl__names_add(&names, fl__coord_name(c, client));
            fl__coord_client_error(c, client,
                                   "disconnected in a round, and did not reconnect in time");
            fl__participant_lose(c, i);
        } else if (c->now_ms + (c->conf.lost_grace_ms - away) < next) {
            next = c->now_ms + (c->conf.lost_grace_ms - away);
        }
    }
    c->round.grace_ms = next;
    if (names.total > 0) {
        fl__coord_trace(c, "round %" PRIu64 ": disconnected, did not reconnect in time: %s",
                        c->round.round, fl__names_text(&names));
    }
}

/* At the deadline of the uploads: those that wait for the server get more time. */
static void extend_held(struct fl_coord *c)
{
    struct fl__names names = {.used = 0};
    size_t i;

    for (i = 0; c->sm.state == FL_PHASE_UPLOADING && i < c->round.n; i++) {
        if (fl__participant_waiting(c, i) && fl__straggler_is_held(c, i)) {
            fl__names_add(&names, fl__coord_name(c, c->round.parts[i].client));
        }
    }
    if (names.total > 0 && fl__straggler_extend(c)) {
        fl__coord_trace(c,
                        "round %" PRIu64 ": upload deadline extended by %" PRIu64
                        " ms, the server has not written what it received: %s",
                        c->round.round, c->conf.straggler_min_ms, fl__names_text(&names));
    }
}

/* At the deadline of the phase: what is neither in nor being written is lost. */
static void give_up_late(struct fl_coord *c)
{
    enum fl_participant_state wanted = fl__coord_round_wanted(c);
    struct fl__names names = {.used = 0};
    size_t i;

    if (c->now_ms < c->round.deadline_ms) {
        return;
    }
    c->round.deadline_ms = FL__NEVER;
    extend_held(c);
    c->round.expired = c->round.deadline_ms == FL__NEVER;
    for (i = 0; i < c->round.n; i++) {
        bool held = c->sm.state == FL_PHASE_UPLOADING && fl__straggler_is_held(c, i);

        if (c->round.parts[i].state == wanted && c->round.live[i].store_seq == 0 &&
            !(held && !c->round.expired))
        {
            uint32_t client = c->round.parts[i].client;

            c->round.live[i].blameless = c->round.live[i].blameless || held;
            fl__names_add(&names, fl__coord_name(c, client));
            fl__coord_client_error(c, client,
                                   c->sm.state == FL_PHASE_TRAINING
                                       ? "timed out: no report before the deadline"
                                       : "timed out: no update before the deadline");
            fl__participant_lose(c, i);
        }
    }
    if (names.total > 0) {
        fl__coord_trace(c, "round %" PRIu64 ": timed out at the deadline: %s", c->round.round,
                        fl__names_text(&names));
    }
}

bool fl__coord_too_few(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;

    return r->n - r->count[FL_PARTICIPANT_LOST] - r->count[FL_PARTICIPANT_REJECTED] <
           fl__coord_least(c);
}

bool fl__coord_no_update(const struct fl_coord *c)
{
    return c->round.count[FL_PARTICIPANT_ACCEPTED] == 0 && fl__coord_least(c) > 0 &&
           !c->conf.strategy->upload->never;
}

static void make_plan(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t n = 0;
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == FL_PARTICIPANT_REPORTED) {
            c->clients.chosen[n++] = i;
        }
    }
    if (!fl__coord_round_plan(c, c->clients.chosen, n, true)) {
        r->deadline_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
        fl__coord_trace(c, "round %" PRIu64 ": out of memory for the upload plan, retrying",
                        r->round);
        return;
    }
    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == FL_PARTICIPANT_REPORTED) {
            fl__participant_set(c, i,
                                fl__units_empty(r->parts[i].units, c->n_units)
                                    ? FL_PARTICIPANT_EMPTY
                                    : FL_PARTICIPANT_PLANNED);
        }
    }
    r->deadline_ms = FL__NEVER;
    fl__coord_move(c, FL_PHASE_PLANNING, "%zu of %zu reports", n, r->n);
    fl__coord_work(c, FL__WORK_PLAN);
}

bool fl__coord_training(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    fl__coord_store_retry(c);
    fl__coord_stop_surplus(c);
    give_up_lost(c);
    give_up_late(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "fewer than %" PRIu32 " can still respond", fl__coord_least(c));
        return true;
    }
    if (r->count[FL_PARTICIPANT_SELECTED] > 0) {
        bool over = fl__straggler_training(c);

        return fl__coord_shorten_deadline(c) || over;
    }
    if (fl__coord_has_feedback(c)) {
        make_plan(c);
        return false;
    }
    r->grace_only = false;
    r->expired = false;
    r->deadline_ms = fl__coord_after(c, c->conf.upload_ms);
    fl__straggler_begin_uploads(c);
    fl__coord_move(c, FL_PHASE_UPLOADING, "%zu of %zu reports, %zu accepted",
                   fl__coord_round_waiting(c) + fl__coord_round_responders(c), r->n,
                   fl__coord_round_responders(c));
    return true;
}

bool fl__coord_uploading(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    if (c->work.kind == FL__WORK_PLAN) {
        return false; /* The backfill plan is being written. */
    }
    fl__coord_store_retry(c);
    fl__coord_stop_surplus(c);
    give_up_lost(c);
    give_up_late(c);
    fl__straggler_uploading(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "fewer than %" PRIu32 " can still respond", fl__coord_least(c));
        return true;
    }
    if (fl__coord_round_waiting(c) > 0) {
        return fl__coord_shorten_deadline(c);
    }
    fl__coord_cap_norms(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "too few usable updates");
        return true;
    }
    if (fl__coord_backfill(c)) {
        return false;
    }
    if (fl__coord_no_update(c)) {
        fl__coord_abort_few(c, "no update arrived");
        return true;
    }
    for (i = 0; i < r->n && !fl__coord_empty_confirmed(c); i++) {
        if (r->parts[i].state == FL_PARTICIPANT_EMPTY) {
            fl__coord_accepted(c, i);
        }
    }
    fl__coord_list_accepted(c);
    r->deadline_ms = FL__NEVER;
    fl__coord_move(c, FL_PHASE_AGGREGATING, "%zu updates of %zu responders", r->n_listed,
                   fl__coord_round_responders(c));
    fl__coord_work(c, FL__WORK_AGGREGATE);
    return false;
}

void fl__coord_close(struct fl_coord *c)
{
    c->round.closing = true;
    fl__coord_unpend_updates(c);
    fl__coord_write_pause(c);
    fl__coord_write_close(c);
}

/* A crash between the two must not leave a server that starts the next attempt. */
void fl__coord_write_close(struct fl_coord *c)
{
    if (c->work.kind != FL__WORK_CLOSE && (!c->pause.on || fl__coord_pause_is_durable(c))) {
        fl__coord_work(c, FL__WORK_CLOSE);
    }
}

/* "attempt 1 asked 3 clients, without a result of: b, c" */
static void round_note_ended(struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    struct fl__names names = {.used = 0};
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state != FL_PARTICIPANT_ACCEPTED &&
            r->parts[i].state != FL_PARTICIPANT_EMPTY) {
            fl__names_add(&names, fl__coord_name(c, r->parts[i].client));
        }
    }
    c->ended_round = r->round;
    (void)snprintf(c->ended, sizeof(c->ended), "attempt %" PRIu32 " asked %zu clients%s%s",
                   r->attempt, r->n, names.total > 0 ? ", without a result of: " : "",
                   names.total > 0 ? fl__names_text(&names) : "");
}

static void round_end_attempt(struct fl_coord *c, uint64_t wait_ms, const char *then)
{
    fl__coord_round_account(c);
    if (fl__coord_round_drawn(c)) {
        fl__coord_count_ended(c);
        round_note_ended(c);
    }
    c->attempt = c->round.attempt + 1;
    c->not_before_ms = fl__coord_after(c, wait_ms);
    fl__coord_work_done(c);
    c->round.closing = true;
    fl__coord_move(c, FL_PHASE_IDLE, "aborted (%s)%s", c->abort_reason, then);
    fl__coord_close(c);
}

bool fl__coord_aborting(struct fl_coord *c)
{
    if (!c->aborting) {
        return false;
    }
    /* The operator's command: the next attempt does not wait. */
    (void)snprintf(c->abort_reason, sizeof(c->abort_reason), "%s", c->abort_command);
    round_end_attempt(c, 0, "");
    return true;
}

FL_PRINTF(2, 3) static void round_abort(struct fl_coord *c, const char *fmt, ...)
{
    char then[64];
    uint64_t span;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->abort_reason, sizeof(c->abort_reason), fmt, ap);
    va_end(ap);
    span = fl__coord_backoff(c, ++c->n_aborts);
    (void)snprintf(then, sizeof(then), ", retrying in %" PRIu64 " ms", span);
    round_end_attempt(c, span, then);
}

void fl__coord_pause_diverged(struct fl_coord *c, const char *fmt, ...)
{
    char what[FL__TEXT_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    /* The server reads its options only at its start. */
    fl__coord_pause_for(c,
                        "round %" PRIu64 " attempt %" PRIu32 FL__DIVERGED
                        "%s; lower training.learning_rate and restart the server",
                        c->round.round, c->round.attempt, what);
    round_abort(c, "diverged: %s", what);
}

/* The next attempt has the same model, seeds and rates, so clients that diverged will diverge
   again: it is repeated only when it would have failed even with all of those. */
void fl__coord_abort_few(struct fl_coord *c, const char *fmt, ...)
{
    const struct fl__round *r = &c->round;
    size_t left = r->n - r->count[FL_PARTICIPANT_LOST] - r->count[FL_PARTICIPANT_REJECTED];
    char why[FL__CLEAN_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (r->n_diverged > 0 && left + r->n_diverged >= fl__coord_least(c)) {
        fl__coord_pause_diverged(
            c, "%zu of %zu clients report NaN or infinite values in training%s%s", r->n_diverged,
            r->n, r->n_unusable > 0 ? ", or sent an update that is not finite or too large" : "",
            fl__coord_deviant_text(c));
        return;
    }
    round_abort(c, "%s", why);
}

/* The end of the attempt is durable; now the clients are informed. */
void fl__coord_closed(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    fl__coord_work_done(c);
    for (i = 0; i < r->n; i++) {
        uint32_t client = r->parts[i].client;
        bool unnotified = fl__participant_waiting(c, i) ||
                          (r->parts[i].state == FL_PARTICIPANT_EMPTY &&
                           !fl__coord_was_accepted(c, client, r->round, r->attempt));

        if (unnotified && c->clients.live[client].connected) {
            (void)fl__coord_effect_for(c, FL_EFF_DISMISSED, client);
        }
    }
    (void)fl__coord_emit(c, FL_EFF_ROUND_CLOSED);
    fl__coord_round_done(c);
    fl__coord_abort_closed(c, NULL);
}
