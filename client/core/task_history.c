/*
 * Follows the events of a session and keeps the last tasks, totals and errors (task_history.h).
 * Pure: time and counters are arguments.
 */

#include "client/core/task_history.h"

#include <stdio.h>
#include <string.h>

static void history_text(char out[FL_TASK_TEXT], const char *text)
{
    (void)fl_str_ends(out, FL_TASK_TEXT, text);
    (void)fl_str_clean(out);
}

/* --- errors --- */

/* An equal text is counted, so a server that is away for days leaves room for other errors. */
static void history_error(struct fl_task_history *h, const char *text, uint64_t now_ms)
{
    struct fl_task_error error = {.at_ms = now_ms, .n = 1};
    uint32_t i;

    if (text == NULL || text[0] == '\0') {
        return;
    }
    history_text(error.text, text);
    for (i = 0; i < h->n_errors && strcmp(h->errors[i].text, error.text) != 0; i++) {
    }
    if (i < h->n_errors) {
        error.n += h->errors[i].n;
    } else if (h->n_errors == FL_TASK_ERRORS) {
        i = 0;
    } else {
        h->n_errors++;
    }
    (void)memmove(&h->errors[i], &h->errors[i + 1], (h->n_errors - 1 - i) * sizeof(h->errors[0]));
    h->errors[h->n_errors - 1] = error;
}

/* --- records --- */

static struct fl_task_record *history_open(struct fl_task_history *h, enum fl_task_kind kind)
{
    uint32_t i;

    for (i = h->n_records; i > 0; i--) {
        struct fl_task_record *r = &h->records[i - 1];

        if (r->kind == (uint32_t)kind) {
            return r->end == FL_TASK_OPEN ? r : NULL;
        }
    }
    return NULL;
}

static struct fl_task_record *history_find(struct fl_task_history *h, struct fl_round_key key)
{
    struct fl_task_record *r = history_open(h, FL_TASK_TRAINING);

    return r != NULL && r->round == key.round && r->attempt == key.attempt ? r : NULL;
}

static bool history_end(struct fl_task_history *h, struct fl_task_record *r, enum fl_task_end end,
                        const char *reason)
{
    if (r == NULL) {
        return false;
    }
    r->end = end;
    r->ended_ms = h->seen.wall_ms;
    history_text(r->reason, reason);
    h->totals.accepted += end == FL_TASK_ACCEPTED;
    h->totals.rejected += end == FL_TASK_REJECTED;
    h->totals.failed += end == FL_TASK_FAILED;
    return true;
}

static struct fl_task_record *history_begin(struct fl_task_history *h, enum fl_task_kind kind,
                                            struct fl_round_key key)
{
    struct fl_task_record *r;

    (void)history_end(h, history_open(h, kind), FL_TASK_REPLACED, NULL);
    if (h->n_records == FL_TASK_RECORDS) {
        (void)memmove(&h->records[0], &h->records[1],
                      (FL_TASK_RECORDS - 1) * sizeof(h->records[0]));
        h->n_records--;
    }
    r = &h->records[h->n_records++];
    *r = (struct fl_task_record){.round = key.round,
                                 .attempt = key.attempt,
                                 .kind = (uint32_t)kind,
                                 .began_ms = h->seen.wall_ms};
    return r;
}

/* A mask may be longer than the model, by layers that it does not select. */
static void history_plan(const struct fl_task_history *h, struct fl_task_record *r,
                         const uint8_t *units, size_t n)
{
    uint32_t asked = 0;
    size_t i;

    if (r == NULL) {
        return;
    }
    for (i = 0; units != NULL && i < n; i++) {
        asked += units[i] != 0;
    }
    r->plan = units == NULL || asked >= h->model_layers ? FL_TASK_ALL_LAYERS : FL_TASK_SOME_LAYERS;
    r->layers = r->plan == FL_TASK_SOME_LAYERS ? h->model_layers : 0;
    r->layers_asked = r->plan == FL_TASK_SOME_LAYERS ? asked : 0;
}

/* The same task comes again after a reconnect. */
static void history_task(struct fl_task_history *h, const struct fl_session_event *event)
{
    struct fl_round_key key = event->u.task.key;
    struct fl_task_record *r = history_find(h, key);

    if (r == NULL) {
        r = history_begin(h, FL_TASK_TRAINING, key);
        h->totals.trainings++;
    }
    if (event->u.task.has_plan) {
        history_plan(h, r, event->u.task.units, event->u.task.n_units);
    }
}

/* As the session does: one that is asked for again is not begun, and training goes first. */
static bool history_evaluate(struct fl_task_history *h, uint64_t round)
{
    const struct fl_task_record *training = history_open(h, FL_TASK_TRAINING);
    struct fl_task_record *r = history_open(h, FL_TASK_EVALUATION);

    if (round == 0 || (r != NULL && r->round == round)) {
        return false;
    }
    r = history_begin(h, FL_TASK_EVALUATION, (struct fl_round_key){.round = round});
    h->totals.evaluations++;
    if (training != NULL && training->trained == 0) {
        return history_end(h, r, FL_TASK_FAILED, "this client is training");
    }
    return false;
}

/* --- events --- */

static uint64_t meter_delta(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void history_measure(struct fl_task_history *h, const struct fl_task_meter *meter)
{
    struct fl_task_record *r = history_open(h, FL_TASK_TRAINING);
    uint64_t down = meter_delta(meter->bytes_down, h->seen.bytes_down);
    uint64_t up = meter_delta(meter->bytes_up, h->seen.bytes_up);
    uint64_t cpu = meter_delta(meter->cpu_ms, h->seen.cpu_ms);

    if (r == NULL) {
        r = history_open(h, FL_TASK_EVALUATION);
    }
    if (r != NULL) {
        r->bytes_down += down;
        r->bytes_up += up;
        r->cpu_ms += cpu;
    }
    h->totals.bytes_down += down;
    h->totals.bytes_up += up;
    h->totals.cpu_ms += cpu;
    h->totals.since_ms = h->totals.since_ms != 0 ? h->totals.since_ms : meter->wall_ms;
    h->seen = *meter;
}

static void history_link(struct fl_task_history *h, enum fl_task_link link, const char *why)
{
    h->link = link;
    history_text(h->trouble, why);
    if (link == FL_TASK_LINK_LOST || link == FL_TASK_LINK_REFUSED) {
        history_error(h, why, h->seen.wall_ms);
    }
}

static bool history_connection(struct fl_task_history *h, enum fl_session_state state,
                               const struct fl_session_event *event)
{
    switch ((int)event->type) {
    case FL_CEV_WELCOME:
        history_link(h, event->u.welcome.model_fits ? FL_TASK_LINK_OK : FL_TASK_LINK_REFUSED,
                     event->u.welcome.model_fits ? NULL : event->u.welcome.reason);
        return true;
    case FL_CEV_DISCONNECTED: /* After a refusal the session ignores it. */
        if (state != FL_SESSION_OFFLINE) {
            history_link(h, FL_TASK_LINK_LOST, event->u.failed.reason);
        }
        return true;
    case FL_CEV_DRAIN: /* The server stops for a while; 0: all rounds are done. */
        if (event->u.drain.reconnect_after_ms > 0) {
            h->link = FL_TASK_LINK_LOST;
            history_text(h->trouble, event->u.drain.reason);
        }
        return true;
    case FL_CEV_REFUSED:
        history_link(h, event->u.refused.own ? FL_TASK_LINK_LEFT : FL_TASK_LINK_REFUSED,
                     event->u.refused.reason);
        return true;
    default:
        return false;
    }
}

static bool history_failed(struct fl_task_history *h, const struct fl_session_event *event)
{
    const char *reason = event->u.failed.reason;
    struct fl_task_record *r = history_find(h, event->u.failed.key);

    if (event->type == FL_CEV_EVALUATE_FAILED) {
        r = history_open(h, FL_TASK_EVALUATION);
        r = r != NULL && r->round == event->u.failed.key.round ? r : NULL;
    }
    if (r == NULL) {
        return false; /* Of work that was cancelled. */
    }
    history_error(h, reason, h->seen.wall_ms);
    if (event->type == FL_CEV_REJECTED) {
        return history_end(h, r, FL_TASK_REJECTED, reason);
    }
    /* One that passes is retried, and a result that is kept waits for a verdict. */
    if ((event->type == FL_CEV_FETCH_FAILED || event->type == FL_CEV_PUSH_FAILED) &&
        (!event->u.failed.permanent || event->u.failed.keeps))
    {
        return false;
    }
    return history_end(h, r, FL_TASK_FAILED, reason);
}

static bool history_work(struct fl_task_history *h, const struct fl_session_event *event)
{
    struct fl_task_record *r;

    switch ((int)event->type) {
    case FL_CEV_TASK:
        history_task(h, event);
        return false;
    case FL_CEV_PLAN:
        history_plan(h, history_find(h, event->u.plan.key), event->u.plan.units,
                     event->u.plan.n_units);
        return false;
    case FL_CEV_TRAINED:
        r = history_find(h, event->u.key);
        if (r != NULL) {
            r->trained = 1;
        }
        return false;
    case FL_CEV_ACCEPTED:
        return history_end(h, history_find(h, event->u.key), FL_TASK_ACCEPTED, NULL);
    case FL_CEV_DISMISSED:
        return history_end(h, history_find(h, event->u.key), FL_TASK_DISMISSED, NULL);
    case FL_CEV_EVALUATE:
        return history_evaluate(h, event->u.evaluate.round);
    case FL_CEV_EVALUATED:
        r = history_open(h, FL_TASK_EVALUATION);
        return history_end(h, r != NULL && r->round == event->u.key.round ? r : NULL,
                           FL_TASK_MEASURED, NULL);
    case FL_CEV_FETCH_FAILED:
    case FL_CEV_TRAIN_FAILED:
    case FL_CEV_PUSH_FAILED:
    case FL_CEV_EVALUATE_FAILED:
    case FL_CEV_REJECTED:
        return history_failed(h, event);
    default:
        return false;
    }
}

bool fl_task_history_event(struct fl_task_history *h, enum fl_session_state state,
                           const struct fl_session_event *event, const struct fl_task_meter *meter)
{
    history_measure(h, meter);
    return !history_connection(h, state, event) && history_work(h, event);
}

/* --- reading --- */

const struct fl_task_record *fl_task_history_last(const struct fl_task_history *h,
                                                  enum fl_task_kind kind)
{
    uint32_t i;

    for (i = h->n_records; i > 0; i--) {
        if (h->records[i - 1].kind == (uint32_t)kind) {
            return &h->records[i - 1];
        }
    }
    return NULL;
}
