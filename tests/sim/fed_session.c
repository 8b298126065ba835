/* The glue around a real client session in a simulated federation. */
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

static void take_effect(struct fed_client *c, const struct fl_session_effect *e);

static struct fed_client *self(void *ctx, uint32_t node)
{
    struct fed *fed = ctx;

    return &fed->clients[node - FED_CLIENT0];
}

static void timer_in(struct fed_client *c, uint64_t span_ms, uint64_t tag)
{
    fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, fl_sim_now(c->fed->sim) + span_ms, tag);
}

static void step(struct fed_client *c, struct fl_session_event *ev)
{
    struct fl_session_effect list[32];
    struct fl_session_effects effects;
    size_t n;
    size_t i;
    uint64_t due;

    ev->now_ms = fl_sim_now(c->fed->sim);
    fl_session_step(c->session, ev, &effects);
    n = effects.n;
    ck_assert_uint_le(n, sizeof(list) / sizeof(list[0]));
    if (n > 0) {
        (void)memcpy(list, effects.list, n * sizeof(*list));
    }
    for (i = 0; i < n; i++) {
        take_effect(c, &list[i]);
    }
    due = fl_session_deadline(c->session);
    if (due != UINT64_MAX) {
        fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, due, TAG_TICK);
    }
}

static void step_key(struct fed_client *c, enum fl_session_event_type type, uint64_t round,
                     uint32_t attempt)
{
    struct fl_session_event ev = {.type = type};

    ev.u.key = (struct fl_round_key){round, attempt};
    step(c, &ev);
}

static void step_failed(struct fed_client *c, enum fl_session_event_type type, uint64_t round,
                        uint32_t attempt, const char *reason)
{
    struct fl_session_event ev = {.type = type};

    ev.u.failed.key = (struct fl_round_key){round, attempt};
    ev.u.failed.reason = reason;
    ev.u.failed.permanent = true;
    step(c, &ev);
}

static void say(struct fed_client *c, enum fed_msg_type type, const struct fl_round_key *key)
{
    struct fed_msg msg = {.type = type, .round = key->round, .attempt = key->attempt};

    fed_client_send(c, &msg);
}

static void push(struct fed_client *c, const struct fl_session_effect *e)
{
    static const uint8_t all[FED_UNITS] = {1, 1, 1};

    if (!fl_pending_result_is(&c->member.held, e->key)) {
        fed_fail(c->fed, "%s is to push what it does not hold", c->name);
    } else if (fed_work_code(c, e->units != NULL ? e->units : all)) {
        c->granting = ++c->generation;
        timer_in(c, c->fed->plan.disk_ms, TAG_GRANTED | c->granting);
    }
}

static void take_effect(struct fed_client *c, const struct fl_session_effect *e)
{
    struct fed_msg none = {.type = FED_EVALUATION, .bad = true};

    if (c->writer.dead) {
        return; /* In the middle of these effects. */
    }
    switch (e->type) {
    case FL_CEFF_CONNECT:
        timer_in(c, CONNECT_MS, TAG_CONNECT);
        break;
    case FL_CEFF_DISCONNECT:
        say(c, FED_BYE, &e->key);
        c->connected = false;
        break;
    case FL_CEFF_HELLO:
        fed_client_hello(c);
        break;
    case FL_CEFF_HEARTBEAT:
        say(c, FED_HEARTBEAT, &e->key);
        break;
    case FL_CEFF_FETCH:
        if (fed_work_fetch(c)) {
            timer_in(c, FETCH_MS, TAG_FETCHED);
        }
        break;
    case FL_CEFF_TRAIN:
        c->training = ++c->generation;
        timer_in(c, fed_client_train_ms(c), TAG_TRAINED | c->training);
        break;
    case FL_CEFF_CANCEL_TRAIN:
        c->training = 0;
        break;
    case FL_CEFF_REPORT:
        if (fl_pending_result_is(&c->member.held, e->key)) {
            fed_client_report(c, e->key.round, e->key.attempt);
        } else {
            say(c, FED_FAILED, &e->key);
        }
        break;
    case FL_CEFF_FAILED:
        say(c, FED_FAILED, &e->key);
        break;
    case FL_CEFF_PUSH:
        push(c, e);
        break;
    case FL_CEFF_CANCEL_PUSH:
        c->granting = 0;
        break;
    case FL_CEFF_CANCEL_FETCH:
        break;
    case FL_CEFF_DROP:
        if (fl_pending_result_is(&c->member.held, e->key)) {
            fed_work_drop(c);
        }
        break;
    case FL_CEFF_EVALUATE:
        timer_in(c, EVALUATE_MS, TAG_EVALUATED | e->key.round);
        break;
    case FL_CEFF_NO_EVALUATION:
        none.round = e->key.round;
        fed_client_send(c, &none);
        break;
    case FL_CEFF_TRACE:
    case FL_CEFF_NOTICE:
        fed_log(c->fed, "%s: %s", c->name, e->text);
        break;
    case FL_CEFF_EXIT:
        c->drained = true;
        break;
    }
}

static void take_task(struct fed_client *c, const struct fed_msg *msg)
{
    struct fl_session_event ev = {.type = FL_CEV_TASK};

    if (fl_session_task_is_new(c->session, (struct fl_round_key){msg->round, msg->attempt})) {
        c->task = *msg;
    }
    ev.u.task.key = (struct fl_round_key){msg->round, msg->attempt};
    ev.u.task.has_plan = msg->has_units;
    ev.u.task.units = msg->units;
    ev.u.task.n_units = FED_UNITS;
    ev.u.task.deadline_ms = msg->wait_ms;
    step(c, &ev);
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed_client *c = self(ctx, node);
    struct fl_session_event ev = {.type = FL_CEV_HEARTBEAT};
    struct fed_msg msg;

    (void)sim;
    (void)from;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (!c->connected || msg.conn != c->conn || c->writer.dead) {
        return;
    }
    switch (msg.type) {
    case FED_WELCOME:
        ev.type = FL_CEV_WELCOME;
        ev.u.welcome.heartbeat_ms = 500;
        ev.u.welcome.model_fits = true;
        ev.u.welcome.held_unfit = fl_member_unfit(&c->member);
        step(c, &ev);
        break;
    case FED_TASK:
        take_task(c, &msg);
        break;
    case FED_PLAN:
        ev.type = FL_CEV_PLAN;
        ev.u.plan.key = (struct fl_round_key){msg.round, msg.attempt};
        ev.u.plan.units = msg.units;
        ev.u.plan.n_units = FED_UNITS;
        step(c, &ev);
        break;
    case FED_ACCEPTED:
        step_key(c, FL_CEV_ACCEPTED, msg.round, msg.attempt);
        break;
    case FED_DISMISSED:
        step_key(c, FL_CEV_DISMISSED, msg.round, msg.attempt);
        break;
    case FED_REJECTED:
        step_failed(c, FL_CEV_REJECTED, msg.round, msg.attempt, "rejected");
        break;
    case FED_EVALUATE:
        ev.type = FL_CEV_EVALUATE;
        ev.u.evaluate.round = msg.round;
        step(c, &ev);
        break;
    case FED_DRAIN:
        ev.type = FL_CEV_DRAIN;
        ev.u.drain.reconnect_after_ms = msg.wait_ms;
        step(c, &ev);
        break;
    case FED_HEARTBEAT:
        step(c, &ev);
        break;
    case FED_HELLO:
    case FED_REPORT:
    case FED_FAILED:
    case FED_PUSH:
    case FED_EVALUATION:
    case FED_BYE:
        break;
    }
}

/* The training run is over: a moment later the session hears of it. */
static void trained(struct fed_client *c)
{
    const struct fl_round_key key = c->member.task.key;

    c->training = 0;
    if (fed_client_chance(c, c->fed->plan.failed_training_rate)) {
        step_failed(c, FL_CEV_TRAIN_FAILED, key.round, key.attempt, "no power");
    } else if (fed_work_train(c)) {
        timer_in(c, c->fed->plan.disk_ms, TAG_STORED | c->generation);
    }
}

static void connected(struct fed_client *c)
{
    struct fl_session_event ev = {.type = FL_CEV_CONNECTED};

    c->connected = c->linked;
    if (!c->linked) {
        ev.type = FL_CEV_DISCONNECTED;
        ev.u.failed.reason = "no route";
    }
    step(c, &ev);
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed_client *c = self(ctx, node);
    struct fl_session_event ev = {.type = FL_CEV_TICK};
    struct fl_round_key key = {tag & ~TAG_KIND, 0};

    if (c->writer.dead) {
        return;
    }
    switch (tag & TAG_KIND) {
    case TAG_TICK:
        if (fl_session_deadline(c->session) <= fl_sim_now(sim)) {
            step(c, &ev);
        }
        break;
    case TAG_CONNECT:
        connected(c);
        break;
    case TAG_FETCHED:
        step_key(c, FL_CEV_FETCHED, c->task.round, c->task.attempt);
        break;
    case TAG_TRAINED:
        if ((tag & ~TAG_KIND) == c->training) {
            trained(c);
        }
        break;
    case TAG_EVALUATED:
        if (fed_client_chance(c, c->fed->plan.failed_evaluation_rate)) {
            step_failed(c, FL_CEV_EVALUATE_FAILED, key.round, 0, "no power");
            break;
        }
        say(c, FED_EVALUATION, &key);
        step_key(c, FL_CEV_EVALUATED, key.round, 0);
        break;
    case TAG_STORED:
        key = fed_work_held(c);
        if (key.round != 0 && (tag & ~TAG_KIND) == c->generation) {
            step_key(c, FL_CEV_TRAINED, key.round, key.attempt);
        }
        break;
    case TAG_GRANTED:
        if ((tag & ~TAG_KIND) == c->granting) {
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
    struct fl_session_event ev = {.type = FL_CEV_DISCONNECTED};

    (void)sim;
    (void)peer;
    c->linked = up;
    if (!up && c->connected && !c->writer.dead) {
        c->connected = false;
        ev.u.failed.reason = "reset";
        step(c, &ev);
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
    struct fl_session_event ev = {.type = FL_CEV_START};

    (void)sim;
    fed_work_open(c);
    c->training = 0;
    c->granting = 0;
    c->connected = false;
    c->linked = false;
    ck_assert_int_eq(fl_session_create(&conf, &c->session), FL_OK);
    ev.u.held = fed_work_held(c);
    step(c, &ev);
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    fed_log(c->fed, "%s dies", c->name);
    fed_died(c->fed, node);
    c->generation++;
    fed_work_close(c);
    fl_session_free(c->session);
    c->session = NULL;
}

const struct fl_sim_node_cbs fed_session_cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};
