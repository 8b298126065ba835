/*
 * A round from the selection to the last upload.
 *
 * With feedback:    TASK -> report -> (plan persisted) -> PLAN -> upload -> ACCEPTED
 * Without feedback: TASK with the plan -> report -> upload -> ACCEPTED
 *
 * Who is silent leaves the round: at the phase's deadline, lost_grace_ms after its
 * connection went, or when it says that it failed. The round ends early, as aborted, when
 * fewer than min_responders can still make it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

bool fl__coord_has_feedback(const struct fl_coord *c)
{
    return c->conf.strategy->upload->needs_feedback;
}

void fl__coord_task(struct fl_coord *c, size_t i)
{
    const struct fl_participant_rec *part = &c->round.parts[i];
    const char *name = fl__coord_name(c, part->client);
    struct fl_effect *e = fl__coord_effect_for(c, FL_EFF_TASK, part->client);
    struct fl_rng rng;

    /* By name, not by number: what a client draws does not depend on who came before it. */
    fl_rng_key(&rng, c->conf.seed, FL_RNG_BATCH, e->round, fl_hash64(name, strlen(name)));
    e->client_seed = fl_rng_u64(&rng);
    fl_rng_key(&rng, c->conf.seed, FL_RNG_BATCH, 0, fl_hash64(name, strlen(name)));
    e->order_seed = fl_rng_u64(&rng);
    e->learning_rate = fl_coord_learning_rate(&c->conf, e->round);
    e->deadline_ms = c->round.deadline_ms == FL__NEVER || c->round.deadline_ms < c->now_ms
                         ? c->conf.upload_ms
                         : c->round.deadline_ms - c->now_ms;
    e->units = fl__coord_has_feedback(c) ? NULL : part->units;
    e->counted_round = c->clients.recs[part->client].counted_round;
    e->counted_attempt = c->clients.recs[part->client].counted_attempt;
    e->mixture = fl__coord_has_personal_model(c, part->client);
}

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
    for (i = 0; i < c->round.n; i++) {
        if (c->clients.live[c->round.parts[i].client].connected) {
            fl__coord_task(c, i);
        }
    }
}

/* The server came back in the middle of a round: what was accepted stays, the rest goes on. */
void fl__coord_resume_round(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl_order_at at = {0};
    uint32_t client;

    fl__coord_ensure_scores(c);
    if (r->unusable) {
        fl__coord_trace(c, "round %" PRIu64 " attempt %" PRIu32 ": cannot go on with other options",
                        r->round, r->attempt);
        (void)snprintf(c->abort_reason, sizeof(c->abort_reason), "the options changed");
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
                   "resumed with %zu of %zu accepted", r->count[FL_PARTICIPANT_ACCEPTED], r->n);
    (void)fl__coord_emit(c, FL_EFF_ROUND_OPEN);
    while ((client = fl_order_next(&c->clients.here, &at)) != FL__NONE) {
        fl__coord_welcome(c, client);
    }
}

void fl__coord_accepted(struct fl_coord *c, size_t i)
{
    uint32_t client = c->round.parts[i].client;
    struct fl__client *live = &c->clients.live[client];

    live->accepted_round = c->round.round;
    live->accepted_attempt = c->round.attempt;
    if (live->connected) {
        (void)fl__coord_effect_for(c, FL_EFF_ACCEPTED, client);
    }
}

bool fl__coord_empty_told(const struct fl_coord *c)
{
    if (c->sm.state == FL_PHASE_UPLOADING) {
        /* It may yet be asked for a failed one's units. */
        return !c->conf.backfill || !fl__coord_has_feedback(c);
    }
    return c->sm.state != FL_PHASE_PLANNING;
}

/* The plan is on disk: ask for the units; who is asked for none is done. */
void fl__coord_planned(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    fl__coord_work_done(c);
    r->planned = true;
    r->late = false;
    r->expired = false;
    r->deadline_ms = fl__coord_after(c, c->conf.upload_ms);
    fl__straggler_begin_uploads(c);
    if (c->sm.state == FL_PHASE_PLANNING) {
        fl__coord_move(c, FL_PHASE_UPLOADING, "%zu clients have %" PRIu64 " ms, %zu send nothing",
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
        } else if (r->parts[i].state == FL_PARTICIPANT_EMPTY && fl__coord_empty_told(c)) {
            fl__coord_accepted(c, i);
        }
    }
}

/* Lost clients whose grace is over; the rest says when to look again. */
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
            (live->lost_ms == FL__NEVER && !live->gone))
        {
            continue;
        }
        away = live->gone ? FL__NEVER : c->now_ms - live->lost_ms;
        if (away >= c->conf.lost_grace_ms) {
            fl__names_add(&names, fl__coord_name(c, client));
            fl__coord_client_error(c, client,
                                   "disconnected in a round, and did not come back in time");
            fl__participant_lose(c, i);
        } else if (c->now_ms + (c->conf.lost_grace_ms - away) < next) {
            next = c->now_ms + (c->conf.lost_grace_ms - away);
        }
    }
    c->round.grace_ms = next;
    if (names.total > 0) {
        fl__coord_trace(c, "round %" PRIu64 ": did not come back in time: %s", c->round.round,
                        fl__names_text(&names));
    }
}

/* The deadline of the phase: what is not in now (or being written down) is lost. */
static void give_up_late(struct fl_coord *c)
{
    enum fl_participant_state wanted = fl__coord_round_wanted(c);
    struct fl__names names = {.used = 0};
    size_t i;

    if (c->now_ms < c->round.deadline_ms) {
        return;
    }
    c->round.deadline_ms = FL__NEVER;
    c->round.expired = true;
    for (i = 0; i < c->round.n; i++) {
        if (c->round.parts[i].state == wanted && c->round.live[i].store_seq == 0) {
            uint32_t client = c->round.parts[i].client;

            fl__names_add(&names, fl__coord_name(c, client));
            fl__coord_client_error(c, client,
                                   c->sm.state == FL_PHASE_TRAINING
                                       ? "late: its report did not come before the deadline"
                                       : "late: its update did not come before the deadline");
            fl__participant_lose(c, i);
        }
    }
    if (names.total > 0) {
        fl__coord_trace(c, "round %" PRIu64 ": late: %s", c->round.round, fl__names_text(&names));
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
            c->clients.who[n++] = i;
        }
    }
    if (!fl__coord_round_plan(c, c->clients.who, n, true)) {
        r->deadline_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
        fl__coord_trace(c, "round %" PRIu64 ": no memory for the plan, put off", r->round);
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
    fl__coord_stop_spares(c);
    give_up_lost(c);
    give_up_late(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "fewer than %" PRIu32 " can still answer", fl__coord_least(c));
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
    r->late = false;
    r->expired = false;
    r->deadline_ms = fl__coord_after(c, c->conf.upload_ms);
    fl__straggler_begin_uploads(c);
    fl__coord_move(c, FL_PHASE_UPLOADING, "%zu of %zu reports, %zu accepted",
                   fl__coord_round_waiting(c) + fl__coord_round_responders(c), r->n,
                   fl__coord_round_responders(c));
    return true;
}

static void tell_empty(struct fl_coord *c)
{
    size_t i;

    for (i = 0; i < c->round.n && !fl__coord_empty_told(c); i++) {
        if (c->round.parts[i].state == FL_PARTICIPANT_EMPTY) {
            fl__coord_accepted(c, i);
        }
    }
}

bool fl__coord_uploading(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    if (c->work.kind == FL__WORK_PLAN) {
        return false; /* What is asked in addition is being written down. */
    }
    fl__coord_store_retry(c);
    fl__coord_stop_spares(c);
    give_up_lost(c);
    give_up_late(c);
    fl__straggler_uploading(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "fewer than %" PRIu32 " can still answer", fl__coord_least(c));
        return true;
    }
    if (fl__coord_round_waiting(c) > 0) {
        return fl__coord_shorten_deadline(c);
    }
    fl__coord_cap_norms(c);
    if (fl__coord_too_few(c)) {
        fl__coord_abort_few(c, "too few good updates");
        return true;
    }
    if (fl__coord_backfill(c)) {
        return false;
    }
    if (fl__coord_no_update(c)) {
        fl__coord_abort_few(c, "no update came");
        return true;
    }
    tell_empty(c);
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
    fl__coord_keep_pause(c);
    fl__coord_write_close(c);
}

/* A kill between the two must not leave a server that begins the next attempt. */
void fl__coord_write_close(struct fl_coord *c)
{
    if (c->work.kind != FL__WORK_CLOSE && (!c->pause.on || fl__coord_pause_kept(c))) {
        fl__coord_work(c, FL__WORK_CLOSE);
    }
}

static void end_attempt(struct fl_coord *c, uint64_t wait_ms, const char *then)
{
    fl__coord_round_account(c);
    c->attempt = c->round.attempt + 1;
    c->not_before_ms = fl__coord_after(c, wait_ms);
    fl__coord_work_done(c);
    c->round.closing = true;
    fl__coord_move(c, FL_PHASE_IDLE, "aborted (%s)%s", c->abort_reason, then);
    fl__coord_close(c);
}

void fl__coord_abort(struct fl_coord *c, const char *fmt, ...)
{
    char then[64];
    uint64_t span;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->abort_reason, sizeof(c->abort_reason), fmt, ap);
    va_end(ap);
    span = fl__coord_backoff(c, ++c->n_aborts);
    (void)snprintf(then, sizeof(then), ", again in %" PRIu64 " ms", span);
    end_attempt(c, span, then);
}

void fl__coord_abort_now(struct fl_coord *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->abort_reason, sizeof(c->abort_reason), fmt, ap);
    va_end(ap);
    end_attempt(c, 0, "");
}

void fl__coord_pause_diverged(struct fl_coord *c, const char *fmt, ...)
{
    char what[FL__TEXT_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    /* The server reads its options when it starts. */
    fl__coord_pause_for(c,
                        "round %" PRIu64 " attempt %" PRIu32 " diverged: %s; lower "
                        "training.learning_rate of the server and restart it",
                        c->round.round, c->round.attempt, what);
    fl__coord_abort(c, "diverged: %s", what);
}

/*
 * Another attempt begins with the same model, seeds and rates, so whoever diverged in this one will
 * do so again: it is repeated only when it would be over even if all of those had answered.
 */
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
        fl__coord_pause_diverged(c,
                                 "%zu of %zu clients report that training left the finite numbers"
                                 "%s%s",
                                 r->n_diverged, r->n,
                                 r->n_unusable > 0 ? ", or sent an update that is not finite or "
                                                     "too large"
                                                   : "",
                                 fl__coord_deviant_text(c));
        return;
    }
    fl__coord_abort(c, "%s", why);
}

/* It is on disk that the attempt is over; now the clients may hear it. */
void fl__coord_closed(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    fl__coord_work_done(c);
    for (i = 0; i < r->n; i++) {
        uint32_t client = r->parts[i].client;
        bool untold = fl__participant_waiting(c, i) ||
                      (r->parts[i].state == FL_PARTICIPANT_EMPTY &&
                       !fl__coord_was_accepted(c, client, r->round, r->attempt));

        if (untold && c->clients.live[client].connected) {
            (void)fl__coord_effect_for(c, FL_EFF_DISMISSED, client);
        }
    }
    (void)fl__coord_emit(c, FL_EFF_ROUND_CLOSED);
    fl__coord_round_done(c);
    fl__coord_abort_closed(c, NULL);
}
