/*
 * Clients with a real session in a simulated federation: the operations of the shell that
 * fl-clientd runs (client/shell), on a disk and a network that fail.
 */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/fed.h"

/* Tags of timers. */
#define TAG_TICK      (UINT64_C(1) << 60)
#define TAG_CONNECT   (UINT64_C(2) << 60)
#define TAG_FETCHED   (UINT64_C(3) << 60)
#define TAG_TRAINED   (UINT64_C(4) << 60)
#define TAG_EVALUATED (UINT64_C(5) << 60)
#define TAG_STORED    (UINT64_C(6) << 60)
#define TAG_GRANTED   (UINT64_C(7) << 60)
#define TAG_KIND      (UINT64_C(15) << 60)

#define CONNECT_MS  3
#define FETCH_MS    15
#define EVALUATE_MS 10

static struct fed_client *self(void *ctx, uint32_t node)
{
    struct fed *fed = ctx;

    return &fed->clients[node - FED_CLIENT0];
}

static void timer_in(struct fed_client *c, uint64_t span_ms, uint64_t tag)
{
    fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, fl_sim_now(c->fed->sim) + span_ms, tag);
}

/* --- the operations of the shell: a client that died at a write does nothing more --- */

static uint64_t session_now_ms(void *ctx)
{
    const struct fed_client *c = ctx;

    return fl_sim_now(c->fed->sim);
}

static void session_set_timer(void *ctx, uint64_t at_ms)
{
    struct fed_client *c = ctx;
    uint64_t now = fl_sim_now(c->fed->sim);
    uint64_t at = at_ms > now ? at_ms : now;

    if (at != UINT64_MAX && at != c->tick_ms) {
        fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, at, TAG_TICK);
    }
    c->tick_ms = at;
}

static void push(struct fed_client *c, const uint8_t *units)
{
    static const uint8_t all[FED_UNITS] = {1, 1, 1};

    if (fed_work_code(c, units != NULL ? units : all)) {
        c->granting = ++c->generation;
        timer_in(c, c->fed->plan.disk_ms, TAG_GRANTED | c->granting);
    }
}

static int session_begin(void *ctx, enum fl_activity activity, const struct fl_session_effect *e,
                         struct fl_err *err)
{
    struct fed_client *c = ctx;

    (void)err;
    if (c->writer.dead) {
        return FL_OK;
    }
    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        timer_in(c, CONNECT_MS, TAG_CONNECT);
        break;
    case FL_ACTIVITY_FETCH:
        if (fed_work_fetch(c)) {
            timer_in(c, FETCH_MS, TAG_FETCHED);
        }
        break;
    case FL_ACTIVITY_TRAINING:
        c->training = ++c->generation;
        timer_in(c, fed_client_train_ms(c), TAG_TRAINED | c->training);
        break;
    case FL_ACTIVITY_PUSH:
        push(c, e->units);
        break;
    case FL_ACTIVITY_EVALUATION:
        timer_in(c, EVALUATE_MS, TAG_EVALUATED | e->key.round);
        break;
    }
    return FL_OK;
}

static void session_cancel(void *ctx, enum fl_activity activity, const char *why)
{
    struct fed_client *c = ctx;

    (void)why;
    if (c->writer.dead) {
        return;
    }
    if (activity == FL_ACTIVITY_CONNECTION) {
        fed_client_bye(c);
        c->connected = false;
    } else if (activity == FL_ACTIVITY_TRAINING) {
        c->training = 0;
    } else if (activity == FL_ACTIVITY_PUSH) {
        c->granting = 0;
    }
}

static void session_send(void *ctx, struct fl_wire_event *m)
{
    struct fed_client *c = ctx;

    if (!c->writer.dead) {
        fed_client_send(c, m);
    }
}

/* A command and what comes with it. */
struct received {
    struct fl_wire_command command;
    const struct fed_payloads *payloads;
};

static bool session_take(void *ctx, struct fl_session_event *command, void *message)
{
    struct fed_client *c = ctx;
    const struct received *received = message;

    if (command->type == FL_CEV_WELCOME) {
        command->u.welcome.heartbeat_ms = 500;
        command->u.welcome.model_fits = true;
        command->u.welcome.held_unfit = fl_worker_unfit(&c->member.worker, c->member.held.result);
    } else if (command->type == FL_CEV_TASK) {
        fed_client_take(c, &received->command.u.task, received->payloads);
    }
    return true;
}

/* The session never sends a result that is not on its disk. */
static bool session_has_result(void *ctx, struct fl_round_key key)
{
    struct fed_client *c = ctx;
    bool has = fl_pending_result_is(&c->member.held, key);

    if (!has && !c->writer.dead) {
        fed_fail(c->fed, "%s is to send a result that it does not have", c->name);
    }
    return has;
}

static void session_drop_result(void *ctx, struct fl_round_key key)
{
    struct fed_client *c = ctx;

    if (!c->writer.dead && fl_pending_result_is(&c->member.held, key)) {
        fed_work_drop(c);
    }
}

static void session_log(void *ctx, enum fl_log_level level, const char *text)
{
    const struct fed_client *c = ctx;

    (void)level;
    fed_log(c->fed, "%s: %s", c->name, text);
}

static void session_leave(void *ctx, int code, const char *why)
{
    struct fed_client *c = ctx;

    (void)code;
    (void)why;
    c->drained = c->drained || !c->writer.dead;
}

static const struct fl_session_ops session_ops = {.now_ms = session_now_ms,
                                                  .set_timer = session_set_timer,
                                                  .begin = session_begin,
                                                  .cancel = session_cancel,
                                                  .send = session_send,
                                                  .take = session_take,
                                                  .has_result = session_has_result,
                                                  .drop_result = session_drop_result,
                                                  .log = session_log,
                                                  .leave = session_leave};

/* --- messages of the server --- */

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed_client *c = self(ctx, node);
    struct received received;
    struct fl_session_event ev;
    struct fed_msg msg;

    (void)sim;
    (void)from;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (!c->connected || msg.conn != c->conn || c->writer.dead) {
        return;
    }
    received = (struct received){fed_client_command(&msg), &msg.u.payloads};
    ev = fl_session_event_of(&received.command);
    (void)fl_session_shell_command(c->shell, &ev, &received);
    fl_wire_command_done(&received.command);
}

/* The training run is over: a moment later the session hears of it. */
static void trained(struct fed_client *c)
{
    const struct fl_round_key key = c->member.task.key;

    c->training = 0;
    if (fed_client_chance(c, c->fed->plan.failed_training_rate)) {
        fl_session_shell_ended(c->shell, FL_ACTIVITY_TRAINING, key, FL_EIO, "no power");
    } else if (fed_work_train(c)) {
        timer_in(c, c->fed->plan.disk_ms, TAG_STORED | c->generation);
    }
}

static void connected(struct fed_client *c)
{
    c->connected = c->linked;
    fl_session_shell_ended(c->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                           c->linked ? FL_OK : FL_ECLOSED, "no route");
}

static void evaluated(struct fed_client *c, uint64_t round)
{
    bool failed = fed_client_chance(c, c->fed->plan.failed_evaluation_rate);
    const struct fl_wire_event made = fed_client_evaluation(round, false);

    fl_session_shell_evaluated(c->shell, round, failed ? FL_EIO : FL_OK, "no power", &made);
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed_client *c = self(ctx, node);
    uint64_t number = tag & ~TAG_KIND;
    struct fl_round_key key;

    if (c->writer.dead) {
        return;
    }
    switch (tag & TAG_KIND) {
    case TAG_TICK:
        if (c->tick_ms == fl_sim_now(sim)) {
            c->tick_ms = 0;
            fl_session_shell_tick(c->shell);
        }
        break;
    case TAG_CONNECT:
        connected(c);
        break;
    case TAG_FETCHED:
        fl_session_shell_ended(c->shell, FL_ACTIVITY_FETCH, c->task.task.key, FL_OK, NULL);
        break;
    case TAG_TRAINED:
        if (number == c->training) {
            trained(c);
        }
        break;
    case TAG_EVALUATED:
        evaluated(c, number);
        break;
    case TAG_STORED:
        key = fl_pending_result_key(&c->member.held);
        if (key.round != 0 && number == c->generation) {
            fl_session_shell_ended(c->shell, FL_ACTIVITY_TRAINING, key, FL_OK, NULL);
        }
        break;
    case TAG_GRANTED:
        if (number == c->granting) {
            c->granting = 0;
            fed_client_push(c);
        }
        break;
    default:
        break;
    }
}

static void on_link(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t peer, bool up)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    (void)peer;
    c->linked = up;
    if (!up && c->connected && !c->writer.dead) {
        c->connected = false;
        fl_session_shell_ended(c->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                               FL_ECLOSED, "reset");
    }
}

static void on_start(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);
    struct fl_session_conf conf = {
        .seed = c->fed->plan.seed + c->index,
        .backoff_ms = 50,
        .backoff_max_ms = 400,
        .refused_ms = 1000,
        .exit_when_done = !c->fed->plan.stay,
    };

    (void)sim;
    fed_work_open(c);
    c->training = 0;
    c->granting = 0;
    c->connected = false;
    c->linked = false;
    c->tick_ms = 0;
    ck_assert_int_eq(fl_session_shell_create(&conf, &session_ops, c, &c->shell), FL_OK);
    fl_session_shell_key(c->shell, FL_CEV_START, fl_pending_result_key(&c->member.held));
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    fed_log(c->fed, "%s dies", c->name);
    fed_died(c->fed, node);
    c->generation++;
    fed_work_close(c);
    fl_session_shell_free(c->shell);
    c->shell = NULL;
}

const struct fl_sim_node_cbs fed_session_cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};
