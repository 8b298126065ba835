/*
 * The rounds of a session as a pure state machine: from a task over fetching, training, report and
 * upload plan to a verdict, and evaluations. Connection and back-off are in session.c.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/session_impl.h"

static const char *round_text(struct fl_session *s, const char *what, struct fl_round_key key)
{
    return fl__session_text(s, "%s %" PRIu64 "/%" PRIu32, what, key.round, key.attempt);
}

static bool round_is_current(const struct fl_session *s, struct fl_round_key key)
{
    return s->task.round != 0 && fl__key_equal(s->task, key);
}

/* --- leaving a round --- */

static void forget_plan(struct fl_session *s)
{
    free(s->units);
    s->units = NULL;
    s->n_units = 0;
    s->has_plan = false;
}

void fl__round_leave(struct fl_session *s)
{
    if (s->sm.state == FL_SESSION_FETCHING) {
        fl__session_emit(s, FL_CEFF_CANCEL_FETCH, s->task);
    } else if (s->sm.state == FL_SESSION_PUSHING) {
        fl__session_emit(s, FL_CEFF_CANCEL_PUSH, s->task);
    }
    forget_plan(s);
    s->task = fl__no_round;
    s->transfer = 0;
    s->transfer_at = FL__NEVER;
}

void fl__round_end(struct fl_session *s, const char *why)
{
    fl__round_leave(s);
    if (fl__session_connected(s) && s->sm.state != FL_SESSION_READY) {
        fl__session_move(s, FL_SESSION_READY, why);
    }
}

void fl__round_cancel_training(struct fl_session *s)
{
    if (s->training.round != 0) {
        fl__session_emit(s, FL_CEFF_CANCEL_TRAIN, s->training);
        s->training = fl__no_round;
    }
}

static void round_drop_result(struct fl_session *s)
{
    if (s->held.round != 0) {
        fl__session_emit(s, FL_CEFF_DROP, s->held);
        s->held = fl__no_round;
    }
}

/* --- the plan --- */

/* Copies the upload mask of an event: NULL stays NULL (all layers). */
static int copy_units(const uint8_t *units, size_t n, uint8_t **ret)
{
    *ret = NULL;
    if (units == NULL) {
        return FL_OK;
    }
    *ret = malloc(n > 0 ? n : 1);
    if (*ret == NULL) {
        return FL_ENOMEM;
    }
    if (n > 0) {
        (void)memcpy(*ret, units, n);
    }
    return FL_OK;
}

static bool plan_is(const struct fl_session *s, const uint8_t *units, size_t n)
{
    if (!s->has_plan || (s->units == NULL) != (units == NULL)) {
        return false;
    }
    return units == NULL || (s->n_units == n && memcmp(s->units, units, n) == 0);
}

static bool asks_for_something(const struct fl_session *s)
{
    size_t i = 0;

    while (s->units != NULL && i < s->n_units && s->units[i] == 0) {
        i++;
    }
    return s->units == NULL || i < s->n_units;
}

static void round_push(struct fl_session *s)
{
    struct fl_session_effect *effect = fl__session_emit(s, FL_CEFF_PUSH, s->task);

    s->transfer_at = FL__NEVER;
    effect->units = s->units;
    effect->n_units = s->n_units;
}

/* REPORTED: an empty upload mask needs no push, the server sends the verdict. */
static void push_if_planned(struct fl_session *s)
{
    if (s->has_plan && asks_for_something(s)) {
        fl__session_move(s, FL_SESSION_PUSHING, round_text(s, "plan", s->task));
        round_push(s);
    }
}

/* --- tasks --- */

bool fl_session_task_is_new(const struct fl_session *session, struct fl_round_key key)
{
    return key.round != 0 && !round_is_current(session, key);
}

bool fl_session_plan_fits(const uint8_t *units, size_t n_units, size_t model_units)
{
    size_t i = model_units;

    while (units != NULL && i < n_units && units[i] == 0) {
        i++;
    }
    return units == NULL || i >= n_units;
}

int fl__round_task(struct fl_session *s, const struct fl_session_event *event)
{
    struct fl_round_key key = event->u.task.key;
    uint8_t *units = NULL;

    if (!fl_session_task_is_new(s, key)) {
        return FL_OK; /* A repeated task is ignored. */
    }
    if (event->u.task.has_plan &&
        copy_units(event->u.task.units, event->u.task.n_units, &units) != FL_OK)
    {
        return FL_ENOMEM;
    }
    /* Cancel or drop all work for rounds other than `key`. */
    fl__round_end(s, round_text(s, "the server continues with", key));
    if (!fl__key_equal(s->training, key)) {
        fl__round_cancel_training(s);
    }
    if (!fl__key_equal(s->held, key)) {
        round_drop_result(s);
    }
    s->done = 0;
    s->task = key;
    s->has_plan = event->u.task.has_plan;
    s->units = units;
    s->n_units = units != NULL ? event->u.task.n_units : 0;
    if (fl__key_equal(s->held, s->task)) {
        fl__session_move(s, FL_SESSION_REPORTED, round_text(s, "result pending of", s->task));
        fl__session_emit(s, FL_CEFF_REPORT, s->task);
        push_if_planned(s);
    } else if (fl__key_equal(s->training, s->task)) {
        fl__session_move(s, FL_SESSION_TRAINING, round_text(s, "still training", s->task));
    } else {
        fl__session_move(s, FL_SESSION_FETCHING, round_text(s, "task", s->task));
        fl__session_emit(s, FL_CEFF_FETCH, s->task);
    }
    return FL_OK;
}

/*
 * An upload plan without a task in this session: a pending result or a running training can serve
 * it, else Failed is sent so that the server does not wait.
 */
static bool round_adopt(struct fl_session *s, struct fl_round_key key)
{
    if (s->sm.state == FL_SESSION_READY && fl__key_equal(s->held, key)) {
        s->task = key;
        fl__session_move(s, FL_SESSION_REPORTED, round_text(s, "result pending of", key));
        return true;
    }
    if (s->sm.state == FL_SESSION_READY && fl__key_equal(s->training, key)) {
        s->task = key;
        fl__session_move(s, FL_SESSION_TRAINING, round_text(s, "still training", key));
        return true;
    }
    fl__session_emit(s, FL_CEFF_FAILED, key)->text = "no result of this round";
    return false;
}

int fl__round_plan(struct fl_session *s, const struct fl_session_event *event)
{
    struct fl_round_key key = event->u.plan.key;
    uint8_t *units = NULL;

    if (key.round == 0 ||
        (round_is_current(s, key) && plan_is(s, event->u.plan.units, event->u.plan.n_units)))
    {
        return FL_OK;
    }
    if (copy_units(event->u.plan.units, event->u.plan.n_units, &units) != FL_OK) {
        return FL_ENOMEM;
    }
    if (!round_is_current(s, key) && !round_adopt(s, key)) {
        free(units);
        return FL_OK;
    }
    if (s->sm.state == FL_SESSION_PUSHING) { /* A changed upload plan for the same round. */
        fl__session_emit(s, FL_CEFF_CANCEL_PUSH, key);
        s->transfer_at = FL__NEVER;
        fl__session_move(s, FL_SESSION_REPORTED, round_text(s, "another plan", key));
    }
    forget_plan(s);
    s->has_plan = true;
    s->units = units;
    s->n_units = units != NULL ? event->u.plan.n_units : 0;
    s->transfer = 0;
    if (s->sm.state == FL_SESSION_REPORTED) {
        push_if_planned(s);
    }
    return FL_OK;
}

/* --- fetching, training, pushing --- */

/* Schedule the retry of a fetch or a push. */
static void try_later(struct fl_session *s, const struct fl_session_event *event, const char *what)
{
    uint64_t wait = fl__session_wait(s, &s->transfer, s->conf.backoff_max_ms);

    s->transfer_at = fl__later(event->now_ms, wait);
    fl__session_emit(s, FL_CEFF_TRACE, fl__no_round)->text = fl__session_text(
        s, "%s %" PRIu64 "/%" PRIu32 " failed: %s, retrying in %" PRIu64 " ms", what, s->task.round,
        s->task.attempt, event->u.failed.reason != NULL ? event->u.failed.reason : "", wait);
}

/* The round failed permanently: send Failed and wait for the next round. */
static void round_fail(struct fl_session *s, const struct fl_session_event *event, const char *what)
{
    const char *reason = event->u.failed.reason != NULL ? event->u.failed.reason : "";
    char ends[FL__LINE_SIZE - 32];
    /* The end of a program's output matters most. */
    const char *text =
        fl__session_text(s, "%s failed: %s", what, fl_str_ends(ends, sizeof(ends), reason));
    struct fl_session_effect *e = fl__session_emit(s, FL_CEFF_FAILED, event->u.failed.key);

    e->text = text;
    e->diverged = event->u.failed.diverged;
    if (!event->u.failed.keeps) {
        round_drop_result(s);
    }
    fl__round_end(s, text);
}

void fl__round_fetched(struct fl_session *s, struct fl_round_key key)
{
    if (s->sm.state != FL_SESSION_FETCHING || !round_is_current(s, key)) {
        return;
    }
    s->transfer = 0;
    s->transfer_at = FL__NEVER;
    s->training = key;
    fl__session_move(s, FL_SESSION_TRAINING, round_text(s, "fetched", key));
    fl__session_emit(s, FL_CEFF_TRAIN, key);
}

void fl__round_fetch_failed(struct fl_session *s, const struct fl_session_event *event)
{
    if (s->sm.state != FL_SESSION_FETCHING || !round_is_current(s, event->u.failed.key)) {
        return;
    }
    if (event->u.failed.permanent) {
        round_fail(s, event, "fetching");
    } else {
        try_later(s, event, "fetching");
    }
}

void fl__round_trained(struct fl_session *s, struct fl_round_key key)
{
    if (key.round == 0 || fl__key_equal(s->held, key)) {
        return;
    }
    if (!fl__key_equal(s->training, key)) {
        /* The run ended before it was cancelled. */
        fl__session_emit(s, FL_CEFF_DROP, key);
        return;
    }
    s->training = fl__no_round;
    s->held = key;
    if (s->sm.state == FL_SESSION_TRAINING) {
        fl__session_move(s, FL_SESSION_REPORTED, round_text(s, "trained", key));
        fl__session_emit(s, FL_CEFF_REPORT, key);
        push_if_planned(s);
    }
}

void fl__round_train_failed(struct fl_session *s, const struct fl_session_event *event)
{
    if (s->training.round == 0 || !fl__key_equal(s->training, event->u.failed.key)) {
        return;
    }
    s->training = fl__no_round;
    if (s->sm.state == FL_SESSION_TRAINING) {
        round_fail(s, event, "training");
    }
}

void fl__round_push_failed(struct fl_session *s, const struct fl_session_event *event)
{
    if (s->sm.state != FL_SESSION_PUSHING || !round_is_current(s, event->u.failed.key)) {
        return;
    }
    if (event->u.failed.permanent) {
        round_fail(s, event, "pushing");
    } else {
        try_later(s, event, "pushing");
    }
}

void fl__round_tick(struct fl_session *s, uint64_t now_ms)
{
    if (now_ms < s->transfer_at) {
        return;
    }
    s->transfer_at = FL__NEVER;
    if (s->sm.state == FL_SESSION_FETCHING) {
        fl__session_emit(s, FL_CEFF_FETCH, s->task);
    } else if (s->sm.state == FL_SESSION_PUSHING) {
        round_push(s);
    }
}

/* --- verdicts --- */

void fl__round_over(struct fl_session *s, struct fl_round_key key, const char *why)
{
    if (key.round == 0) {
        return;
    }
    if (fl__key_equal(s->training, key)) {
        fl__round_cancel_training(s);
    }
    if (fl__key_equal(s->held, key)) {
        round_drop_result(s);
    }
    if (round_is_current(s, key)) {
        fl__round_end(s, why);
    }
}

/* The server waits for every requested evaluation, so a missing one is reported, too. */
static void round_no_evaluation(struct fl_session *s, uint64_t round, const char *why)
{
    fl__session_emit(s, FL_CEFF_NO_EVALUATION, (struct fl_round_key){round, 0})->text =
        fl__session_text(s, "no evaluation of round %" PRIu64 ": %s", round, why);
}

void fl__round_evaluate_failed(struct fl_session *s, const struct fl_session_event *event)
{
    const char *reason = event->u.failed.reason;

    /* A later session does not wait for it. */
    if (s->evaluating != 0 && s->evaluating == event->u.failed.key.round) {
        s->evaluating = 0;
        round_no_evaluation(s, event->u.failed.key.round,
                            reason != NULL ? reason : "no reason given");
    }
}

void fl__round_evaluate(struct fl_session *s, uint64_t round)
{
    if (round == 0 || s->evaluating == round) {
        return;
    }
    if (s->sm.state == FL_SESSION_FETCHING || s->training.round != 0) {
        /* Training has priority on the training thread. */
        round_no_evaluation(s, round, "this client is training");
        return;
    }
    s->evaluating = round;
    fl__session_emit(s, FL_CEFF_EVALUATE, (struct fl_round_key){round, 0});
}
