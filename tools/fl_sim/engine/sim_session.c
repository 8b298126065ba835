/*
 * The session of a simulated client: the operations of its shell (client/shell/session_shell.h) in
 * virtual time. One thread, that of the federation. Training is in sim_training.c, transfers in
 * transfer.c, messages in messages.c.
 */

#include "tools/fl_sim/engine/sim_federation_impl.h"

/* Defaults of fl-clientd. */
#define BACKOFF_MS     1000
#define BACKOFF_MAX_MS 60000
/* Heartbeats are left out: only a disconnected client is silent, and that is reported at once. */
#define HEARTBEAT_MS UINT32_C(1000000000)

/* --- the operations of the shell --- */

static uint64_t sim_session_now_ms(void *ctx)
{
    const struct fl__active *a = ctx;

    return a->fed->now_us / 1000;
}

static void sim_session_set_timer(void *ctx, uint64_t at_ms)
{
    struct fl__active *a = ctx;
    struct fl_fed *fed = a->fed;
    uint64_t at;

    if (at_ms == UINT64_MAX || at_ms > fed->now_us / 1000 + HEARTBEAT_MS / 2) {
        return;
    }
    at = at_ms * 1000 > fed->now_us ? at_ms * 1000 : fed->now_us;
    if (a->tick_us == 0 || at < a->tick_us) {
        a->tick_us = at;
        fl__fed_at(fed, at, FL__AT_TICK, a->client, 0, NULL);
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

static void sim_session_disconnect(struct fl_fed *fed, const struct fl__active *a)
{
    struct fl__message *m = fl__message_lost(fed, a->client);

    if (m != NULL) {
        fl__fed_send(fed, m);
    }
    fed->clients[a->client].connection++;
}

/* An error in any of them ends the run. */
static int sim_session_begin(void *ctx, enum fl_activity activity,
                             const struct fl_session_effect *e, struct fl_err *err)
{
    struct fl__active *a = ctx;

    (void)err;
    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        sim_session_connect(a->fed, a);
        break;
    case FL_ACTIVITY_FETCH:
        fl__fetch_begin(a->fed, a);
        break;
    case FL_ACTIVITY_TRAINING:
        fl__train_begin(a->fed, a, e->key);
        break;
    case FL_ACTIVITY_PUSH:
        fl__push_begin(a->fed, a, e->key, e->units, e->n_units);
        break;
    case FL_ACTIVITY_EVALUATION:
        fl__model_begin(a->fed, a);
        break;
    }
    return FL_OK;
}

static void sim_session_cancel(void *ctx, enum fl_activity activity, const char *why)
{
    struct fl__active *a = ctx;

    (void)why;
    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        sim_session_disconnect(a->fed, a);
        break;
    case FL_ACTIVITY_FETCH:
        fl__fetch_cancel(a->fed, a);
        break;
    case FL_ACTIVITY_TRAINING:
        fl__train_cancel(a);
        break;
    case FL_ACTIVITY_PUSH:
        fl__push_cancel(a->fed, a);
        break;
    case FL_ACTIVITY_EVALUATION:
        break;
    }
}

static void sim_session_send(void *ctx, struct fl_wire_event *message)
{
    const struct fl__active *a = ctx;
    struct fl__message *m;

    if (message->type == FL_WIRE_HEARTBEAT_EVENT || (message->type == FL_WIRE_HELLO && a->resumes))
    {
        return;
    }
    if (message->type == FL_WIRE_HELLO) {
        fl__message_describe(a->fed, a->client, &message->u.hello);
    } else if (message->type == FL_WIRE_REPORT) {
        *message = a->result.event;
    }
    m = fl__message_event(a->fed, a->client, message);
    if (m != NULL) {
        fl__fed_send(a->fed, m);
    }
}

/* `message`: NULL in a Welcome to a client that resumes. */
static bool sim_session_take(void *ctx, struct fl_session_event *command, void *message)
{
    struct fl__active *a = ctx;
    struct fl__message *m = message;

    if (command->type == FL_CEV_WELCOME) {
        command->u.welcome.heartbeat_ms = HEARTBEAT_MS;
        command->u.welcome.model_fits = true;
    } else if (command->type == FL_CEV_TASK) {
        a->task = m->u.command.u.task.task;
        a->personal_model = m->personal_model;
        fl_model_cache_unref(a->model_cache);
        a->model_cache =
            a->fed->model_cache != NULL ? fl_model_cache_ref(a->fed->model_cache) : NULL;
    } else if (command->type == FL_CEV_EVALUATE) {
        fl_blob_unref(a->model);
        a->model = m->model;
        m->model = NULL;
        a->rate = m->u.command.u.evaluate.learning_rate;
        a->evaluating = m->u.command.u.evaluate.round;
    }
    return true;
}

static bool sim_session_has_result(void *ctx, struct fl_round_key key)
{
    const struct fl__active *a = ctx;

    return a->pending.round == key.round && a->pending.attempt == key.attempt;
}

static void sim_session_drop_result(void *ctx, struct fl_round_key key)
{
    struct fl__active *a = ctx;

    if (sim_session_has_result(a, key)) {
        fl_worker_pool_drop(a->fed->pool, a->client, key);
        fl_job_answer_done(&a->result);
        a->result = (struct fl_job_answer){.code = FL_OK};
        a->pending = (struct fl_round_key){0};
    }
}

static void sim_session_log(void *ctx, enum fl_log_level level, const char *text)
{
    const struct fl__active *a = ctx;

    (void)level;
    if (a->fed->conf.log != NULL) {
        fl_log(a->fed->conf.log, FL_LOG_DEBUG, "client", "%s: %s", fl__fed_name(a->fed, a->client),
               text);
    }
}

/* The client stays; it has nothing to do any more. */
static void sim_session_leave(void *ctx, int code, const char *why)
{
    (void)ctx;
    (void)code;
    (void)why;
}

static const struct fl_session_ops sim_session_ops = {.now_ms = sim_session_now_ms,
                                                      .set_timer = sim_session_set_timer,
                                                      .begin = sim_session_begin,
                                                      .cancel = sim_session_cancel,
                                                      .send = sim_session_send,
                                                      .take = sim_session_take,
                                                      .has_result = sim_session_has_result,
                                                      .drop_result = sim_session_drop_result,
                                                      .log = sim_session_log,
                                                      .leave = sim_session_leave};

/* --- create and free --- */

void fl__session_start(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_sim_client sim_client;
    struct fl_session_conf conf = {.backoff_ms = BACKOFF_MS, .backoff_max_ms = BACKOFF_MAX_MS};
    int rv;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, a->client, &sim_client);
    conf.seed = sim_client.seed;
    rv = fl_session_shell_create(&conf, &sim_session_ops, a, &a->shell);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "a session");
        return;
    }
    a->tick_us = 0;
    fl_session_shell_key(a->shell, FL_CEV_START, a->pending);
}

static void sim_session_connected(const struct fl__active *a)
{
    fl_session_shell_ended(a->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, FL_OK, NULL);
}

/* The connection has existed for long: connecting is not simulated again. */
void fl__session_resume(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_session_event welcome = {.type = FL_CEV_WELCOME};

    a->resumes = true;
    fl__session_start(fed, a);
    if (a->shell != NULL) {
        sim_session_connected(a);
        (void)fl_session_shell_command(a->shell, &welcome, NULL);
    }
    a->resumes = false;
}

void fl__session_settle(struct fl_fed *fed, uint32_t client)
{
    struct fl__active *a = fed->clients[client].active;

    if (a != NULL && a->shell != NULL &&
        fl_session_state(fl_session_shell_session(a->shell)) == FL_SESSION_READY &&
        a->pending.round == 0 && a->training_key.round == 0 && a->evaluating == 0)
    {
        fl__active_free(fed, a);
    }
}

/* --- events of the client --- */

void fl__session_happens(struct fl_fed *fed, uint32_t client, enum fl__fed_kind kind,
                         uint32_t stamp)
{
    struct fl__active *a = fed->clients[client].active;

    if (a == NULL || a->shell == NULL) {
        return;
    }
    switch (kind) {
    case FL__AT_CONNECTED:
        sim_session_connected(a);
        break;
    case FL__AT_TICK:
        if (a->tick_us != 0 && a->tick_us <= fed->now_us) {
            a->tick_us = 0;
            fl_session_shell_tick(a->shell);
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

static void sim_session_receive(struct fl_fed *fed, struct fl__active *a, struct fl__message *m)
{
    struct fl_session_event event = fl_session_event_of(&m->u.command);
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, a->client);

    if (event.type == FL_CEV_TASK && part != NULL && part->tasked_us == 0) {
        part->tasked_us = fed->now_us;
    }
    (void)fl_session_shell_command(a->shell, &event, m);
}

void fl__sim_session_receive(struct fl_fed *fed, struct fl__message *m)
{
    struct fl__fed_client *c = &fed->clients[m->client];
    enum fl_wire_command_type type = m->u.command.type;
    struct fl__active *a;

    if (!c->up || c->connection != m->connection) {
        return; /* The message belongs to a lost connection. */
    }
    if (c->active == NULL && type != FL_WIRE_TASK && type != FL_WIRE_EVALUATE &&
        type != FL_WIRE_PLAN) {
        return; /* The client has no work that the message could concern. */
    }
    a = fl__fed_active(fed, m->client);
    if (a != NULL && a->shell == NULL) {
        fl__session_resume(fed, a);
    }
    if (a != NULL && a->shell != NULL) {
        sim_session_receive(fed, a, m);
        fl__session_settle(fed, m->client);
    }
}
