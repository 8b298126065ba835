/*
 * The session of a simulated client (client/core/session.h): carries out its effects, and passes it
 * messages and completions as events. One thread, that of the federation. Training is in
 * sim_training.c, transfers in transfer.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/work/fault.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

/* Defaults of fl-clientd. */
#define BACKOFF_MS     1000
#define BACKOFF_MAX_MS 60000
/* Heartbeats are left out: only a disconnected client is silent, and that is reported at once. */
#define HEARTBEAT_MS UINT32_C(1000000000)

static void sim_session_take_effects(struct fl_fed *fed, struct fl__active *a,
                                     const struct fl_session_effects *effects);

/* --- steps --- */

static void sim_session_schedule(struct fl_fed *fed, struct fl__active *a)
{
    uint64_t due = fl_session_deadline(a->session);
    uint64_t at;

    if (due == UINT64_MAX || due > fed->now_us / 1000 + HEARTBEAT_MS / 2) {
        return;
    }
    at = due * 1000 > fed->now_us ? due * 1000 : fed->now_us;
    if (a->tick_us == 0 || at < a->tick_us) {
        a->tick_us = at;
        fl__fed_at(fed, at, FL__AT_TICK, a->client, 0, NULL);
    }
}

static void sim_session_step(struct fl_fed *fed, struct fl__active *a,
                             struct fl_session_event *event)
{
    struct fl_session_effects effects;

    event->now_ms = fed->now_us / 1000;
    fl_session_step(a->session, event, &effects);
    sim_session_take_effects(fed, a, &effects);
    sim_session_schedule(fed, a);
}

void fl__session_key(struct fl_fed *fed, struct fl__active *a, enum fl_session_event_type type,
                     struct fl_round_key key)
{
    struct fl_session_event event = {.type = type};

    event.u.key = key;
    sim_session_step(fed, a, &event);
}

void fl__session_failed(struct fl_fed *fed, struct fl__active *a, enum fl_session_event_type type,
                        struct fl_round_key key, int code, const char *reason)
{
    enum fl_fault fault = fl_fault_of(code);
    struct fl_session_event event = {.type = type};

    event.u.failed.key = key;
    event.u.failed.reason = reason;
    event.u.failed.permanent = fault != FL_FAULT_PASSING;
    event.u.failed.diverged = fault == FL_FAULT_DIVERGED;
    sim_session_step(fed, a, &event);
}

/* --- create and free --- */

static bool sim_session_create(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_sim_client sim_client;
    struct fl_session_conf conf = {.backoff_ms = BACKOFF_MS, .backoff_max_ms = BACKOFF_MAX_MS};
    struct fl_session_event event = {.type = FL_CEV_START};
    int rv;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, a->client, &sim_client);
    conf.seed = sim_client.seed;
    rv = fl_session_create(&conf, &a->session);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "a session");
        return false;
    }
    a->tick_us = 0;
    event.u.held = a->pending;
    sim_session_step(fed, a, &event);
    return true;
}

void fl__session_start(struct fl_fed *fed, struct fl__active *a)
{
    (void)sim_session_create(fed, a);
}

static void sim_session_welcome(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_session_event event = {.type = FL_CEV_WELCOME};

    event.u.welcome.heartbeat_ms = HEARTBEAT_MS;
    event.u.welcome.model_fits = true;
    sim_session_step(fed, a, &event);
}

/* The connection has existed for long: connecting is not simulated again. */
void fl__session_resume(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_session_event connected = {.type = FL_CEV_CONNECTED};

    a->resumes = true;
    if (sim_session_create(fed, a)) {
        sim_session_step(fed, a, &connected);
        sim_session_welcome(fed, a);
    }
    a->resumes = false;
}

void fl__session_settle(struct fl_fed *fed, uint32_t client)
{
    struct fl__active *a = fed->clients[client].active;

    if (a != NULL && a->session != NULL && fl_session_state(a->session) == FL_SESSION_READY &&
        a->pending.round == 0 && a->training_key.round == 0 && a->evaluating == 0)
    {
        fl__active_free(fed, a);
    }
}

static void sim_session_drop_result(struct fl_fed *fed, struct fl__active *a,
                                    struct fl_round_key key)
{
    if (a->pending.round == key.round && a->pending.attempt == key.attempt) {
        fl_worker_pool_drop(fed->pool, a->client, key);
        fl_job_answer_done(&a->result);
        a->result = (struct fl_job_answer){.code = FL_OK};
        a->pending = (struct fl_round_key){0};
    }
}

/* --- effects of the session --- */

static void sim_session_report(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key)
{
    struct fl__message *m = fl__fed_message(fed, FL__MSG_REPORT, a->client);

    if (m == NULL) {
        return;
    }
    m->key = key;
    m->answer = a->result;
    m->answer.divergence = malloc((a->result.n_units + 1) * sizeof(float));
    if (m->answer.divergence == NULL) {
        fl__message_free(m);
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a report");
        return;
    }
    if (a->result.n_units > 0) {
        (void)memcpy(m->answer.divergence, a->result.divergence, a->result.n_units * sizeof(float));
    }
    fl__fed_send(fed, m);
}

static void sim_session_report_failed(struct fl_fed *fed, const struct fl__active *a,
                                      const struct fl_session_effect *e)
{
    struct fl__message *m = fl__fed_message(fed, FL__MSG_FAILED, a->client);

    if (m != NULL) {
        m->key = e->key;
        m->diverged = e->diverged;
        (void)snprintf(m->reason, sizeof(m->reason), "%s", e->text != NULL ? e->text : "");
        fl__fed_send(fed, m);
    }
}

void fl__session_say_evaluation(struct fl_fed *fed, const struct fl__active *a, uint64_t round,
                                const struct fl_job_answer *found)
{
    struct fl__message *m = fl__fed_message(fed, FL__MSG_EVALUATION, a->client);

    if (m != NULL) {
        m->key.round = round;
        m->answer = *found;
        m->answer.divergence = NULL;
        fl__fed_send(fed, m);
    }
}

static void sim_session_hello(struct fl_fed *fed, const struct fl__active *a)
{
    struct fl__message *m = fl__fed_message(fed, FL__MSG_HELLO, a->client);

    if (m != NULL) {
        m->key = a->pending;
        fl__fed_send(fed, m);
    }
}

/* An idle client that becomes active again still has its connection. */
static void sim_session_connect(struct fl_fed *fed, const struct fl__active *a)
{
    if (!a->resumes) {
        fed->clients[a->client].connection++;
        fl__fed_at(fed, fed->now_us + 2 * fl__fed_latency(fed, a->client), FL__AT_CONNECTED,
                   a->client, 0, NULL);
    }
}

static void sim_session_disconnect(struct fl_fed *fed, struct fl__active *a)
{
    struct fl__message *m = fl__fed_message(fed, FL__MSG_LOST, a->client);

    if (m != NULL) {
        fl__fed_send(fed, m);
    }
    fed->clients[a->client].connection++;
}

static void sim_session_take_effect(struct fl_fed *fed, struct fl__active *a,
                                    const struct fl_session_effect *e)
{
    static const struct fl_job_answer none = {.code = FL_OK};

    switch (e->type) {
    case FL_CEFF_CONNECT:
        sim_session_connect(fed, a);
        break;
    case FL_CEFF_HELLO:
        if (!a->resumes) {
            sim_session_hello(fed, a);
        }
        break;
    case FL_CEFF_DISCONNECT:
        sim_session_disconnect(fed, a);
        break;
    case FL_CEFF_FETCH:
        fl__fetch_begin(fed, a);
        break;
    case FL_CEFF_TRAIN:
        fl__train_begin(fed, a, e->key);
        break;
    case FL_CEFF_CANCEL_TRAIN:
        fl__train_cancel(a);
        break;
    case FL_CEFF_REPORT:
        sim_session_report(fed, a, e->key);
        break;
    case FL_CEFF_FAILED:
        sim_session_report_failed(fed, a, e);
        break;
    case FL_CEFF_PUSH:
        fl__push_begin(fed, a, e->key, e->units, e->n_units);
        break;
    case FL_CEFF_CANCEL_PUSH:
        fl__push_cancel(fed, a);
        break;
    case FL_CEFF_CANCEL_FETCH:
        fl__fetch_cancel(fed, a);
        break;
    case FL_CEFF_DROP:
        sim_session_drop_result(fed, a, e->key);
        break;
    case FL_CEFF_EVALUATE:
        fl__model_begin(fed, a);
        break;
    case FL_CEFF_NO_EVALUATION:
        fl__session_say_evaluation(fed, a, e->key.round, &none);
        break;
    case FL_CEFF_TRACE:
    case FL_CEFF_NOTICE:
        if (fed->conf.log != NULL) {
            fl_log(fed->conf.log, FL_LOG_DEBUG, "client", "%s: %s", fl__fed_name(fed, a->client),
                   e->text);
        }
        break;
    case FL_CEFF_HEARTBEAT:
    case FL_CEFF_EXIT:
        break;
    }
}

static void sim_session_take_effects(struct fl_fed *fed, struct fl__active *a,
                                     const struct fl_session_effects *effects)
{
    size_t i;

    for (i = 0; i < effects->n; i++) {
        sim_session_take_effect(fed, a, &effects->list[i]);
    }
}

/* --- events of the client --- */

void fl__session_happens(struct fl_fed *fed, uint32_t client, enum fl__fed_kind kind,
                         uint32_t stamp)
{
    struct fl__active *a = fed->clients[client].active;
    struct fl_session_event event = {.type = FL_CEV_TICK};

    if (a == NULL || a->session == NULL) {
        return;
    }
    switch (kind) {
    case FL__AT_CONNECTED:
        event.type = FL_CEV_CONNECTED;
        sim_session_step(fed, a, &event);
        break;
    case FL__AT_TICK:
        if (a->tick_us != 0 && a->tick_us <= fed->now_us) {
            a->tick_us = 0;
            sim_session_step(fed, a, &event);
        }
        break;
    case FL__AT_TRAINED:
    case FL__AT_HAVE_MODEL:
    case FL__AT_EVALUATED:
        fl__train_happens(fed, a, kind, stamp);
        break;
    default:
        fl__transfer_happens(fed, a, kind, stamp);
        break;
    }
    fl__session_settle(fed, client);
}

/* --- messages from the server --- */

static void sim_session_task(struct fl_fed *fed, struct fl__active *a, struct fl__message *m)
{
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, a->client);
    struct fl_session_event event = {.type = FL_CEV_TASK};

    event.u.task.key = m->key;
    event.u.task.has_plan = m->units != NULL;
    event.u.task.units = m->units;
    event.u.task.n_units = m->units != NULL ? fl_layout_units(fed->federation.layout) : 0;
    event.u.task.deadline_ms = m->task.deadline_ms;
    if (fl_session_task_is_new(a->session, m->key)) {
        a->task = m->task;
        a->personal_model = m->personal_model;
        fl_model_cache_unref(a->model_cache);
        a->model_cache = fed->model_cache != NULL ? fl_model_cache_ref(fed->model_cache) : NULL;
    }
    if (part != NULL && part->tasked_us == 0) {
        part->tasked_us = fed->now_us;
    }
    sim_session_step(fed, a, &event);
}

static void sim_session_evaluate(struct fl_fed *fed, struct fl__active *a, struct fl__message *m)
{
    struct fl_session_event event = {.type = FL_CEV_EVALUATE};

    fl_blob_unref(a->model);
    a->model = m->model;
    m->model = NULL;
    a->rate = m->rate;
    a->evaluating = m->key.round;
    event.u.evaluate.round = m->key.round;
    event.u.evaluate.deadline_ms = UINT32_MAX;
    sim_session_step(fed, a, &event);
}

static void sim_session_plan(struct fl_fed *fed, struct fl__active *a, const struct fl__message *m)
{
    struct fl_session_event event = {.type = FL_CEV_PLAN};

    event.u.plan.key = m->key;
    event.u.plan.units = m->units;
    event.u.plan.n_units = fl_layout_units(fed->federation.layout);
    sim_session_step(fed, a, &event);
}

static void sim_session_receive(struct fl_fed *fed, struct fl__active *a, struct fl__message *m)
{
    struct fl_session_event rejected = {.type = FL_CEV_REJECTED};

    switch (m->type) {
    case FL__MSG_WELCOME:
        sim_session_welcome(fed, a);
        break;
    case FL__MSG_TASK:
        sim_session_task(fed, a, m);
        break;
    case FL__MSG_PLAN:
        sim_session_plan(fed, a, m);
        break;
    case FL__MSG_ACCEPTED:
        fl__session_key(fed, a, FL_CEV_ACCEPTED, m->key);
        break;
    case FL__MSG_REJECTED:
        rejected.u.failed.key = m->key;
        rejected.u.failed.reason = "rejected";
        sim_session_step(fed, a, &rejected);
        break;
    case FL__MSG_DISMISSED:
        fl__session_key(fed, a, FL_CEV_DISMISSED, m->key);
        break;
    case FL__MSG_EVALUATE:
    default:
        sim_session_evaluate(fed, a, m);
        break;
    }
}

void fl__sim_session_receive(struct fl_fed *fed, struct fl__message *m)
{
    struct fl__fed_client *c = &fed->clients[m->client];
    struct fl__active *a;

    if (!c->up || c->connection != m->connection) {
        return; /* The message belongs to a lost connection. */
    }
    if (c->active == NULL && m->type != FL__MSG_TASK && m->type != FL__MSG_EVALUATE &&
        m->type != FL__MSG_PLAN)
    {
        return; /* The client has no work that the message could concern. */
    }
    a = fl__fed_active(fed, m->client);
    if (a != NULL && a->session == NULL) {
        fl__session_resume(fed, a);
    }
    if (a != NULL && a->session != NULL) {
        sim_session_receive(fed, a, m);
        fl__session_settle(fed, m->client);
    }
}
