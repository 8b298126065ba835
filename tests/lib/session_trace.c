#include "tests/lib/session_trace.h"

#include <inttypes.h>
#include <string.h>

#define UNITS_MAX 8

static const char *const event_names[] = {
    [FL_CEV_START] = "start",
    [FL_CEV_TICK] = "tick",
    [FL_CEV_CONNECTED] = "connected",
    [FL_CEV_DISCONNECTED] = "disconnected",
    [FL_CEV_WELCOME] = "welcome",
    [FL_CEV_REFUSED] = "refused",
    [FL_CEV_TASK] = "task",
    [FL_CEV_PLAN] = "plan",
    [FL_CEV_ACCEPTED] = "accepted",
    [FL_CEV_REJECTED] = "rejected",
    [FL_CEV_DISMISSED] = "dismissed",
    [FL_CEV_EVALUATE] = "evaluate",
    [FL_CEV_DRAIN] = "drain",
    [FL_CEV_HEARTBEAT] = "heartbeat",
    [FL_CEV_FETCHED] = "fetched",
    [FL_CEV_FETCH_FAILED] = "fetch failed",
    [FL_CEV_TRAINED] = "trained",
    [FL_CEV_TRAIN_FAILED] = "train failed",
    [FL_CEV_EVALUATED] = "evaluated",
    [FL_CEV_EVALUATE_FAILED] = "evaluate failed",
    [FL_CEV_PUSH_FAILED] = "push failed",
    [FL_CEV_RETRY] = "retry",
    [FL_CEV_STOP] = "stop",
};

static const char *const effect_names[] = {
    [FL_CEFF_CONNECT] = "connect",
    [FL_CEFF_DISCONNECT] = "disconnect",
    [FL_CEFF_HELLO] = "hello",
    [FL_CEFF_HEARTBEAT] = "heartbeat",
    [FL_CEFF_FETCH] = "fetch",
    [FL_CEFF_TRAIN] = "train",
    [FL_CEFF_CANCEL_TRAIN] = "cancel train",
    [FL_CEFF_REPORT] = "report",
    [FL_CEFF_FAILED] = "failed",
    [FL_CEFF_PUSH] = "push",
    [FL_CEFF_CANCEL_PUSH] = "cancel push",
    [FL_CEFF_CANCEL_FETCH] = "cancel fetch",
    [FL_CEFF_DROP] = "drop",
    [FL_CEFF_EVALUATE] = "evaluate",
    [FL_CEFF_NO_EVALUATION] = "no evaluation",
    [FL_CEFF_TRACE] = "trace",
    [FL_CEFF_NOTICE] = "notice",
    [FL_CEFF_EXIT] = "exit",
};

void session_trace_init(struct session_trace *t, const struct fl_session_conf *conf)
{
    *t = (struct session_trace){.now_ms = 0};
    fl_buf_init(&t->text, 1u << 20);
    ck_assert_int_eq(fl_session_create(conf, &t->session), FL_OK);
}

void session_trace_done(struct session_trace *t)
{
    fl_session_free(t->session);
    fl_buf_done(&t->text);
}

static void write_key(struct session_trace *t, struct fl_round_key key)
{
    if (key.round != 0) {
        ck_assert_int_eq(fl_buf_printf(&t->text, " %" PRIu64 "/%" PRIu32, key.round, key.attempt),
                         FL_OK);
    }
}

static void write_event(struct session_trace *t, const struct fl_session_event *event)
{
    ck_assert_int_eq(
        fl_buf_printf(&t->text, "[%5" PRIu64 "] < %s", t->now_ms, event_names[event->type]), FL_OK);
    switch (event->type) {
    case FL_CEV_TICK:
    case FL_CEV_CONNECTED:
    case FL_CEV_WELCOME:
    case FL_CEV_REFUSED:
    case FL_CEV_EVALUATE:
    case FL_CEV_DRAIN:
    case FL_CEV_HEARTBEAT:
    case FL_CEV_RETRY:
    case FL_CEV_STOP:
    case FL_CEV_DISCONNECTED:
        break;
    default: /* the key comes first in all others */
        write_key(t, event->u.key);
        break;
    }
    ck_assert_int_eq(fl_buf_printf(&t->text, "\n"), FL_OK);
}

static void write_effect(struct session_trace *t, const struct fl_session_effect *effect)
{
    char units[UNITS_MAX + 2] = "";
    size_t i;

    if (effect->type == FL_CEFF_TRACE) {
        ck_assert_int_eq(fl_buf_printf(&t->text, "          %s\n", effect->text), FL_OK);
        return;
    }
    for (i = 0; i < effect->n_units && effect->units != NULL; i++) {
        ck_assert_uint_lt(i, UNITS_MAX);
        units[0] = ' ';
        units[i + 1] = effect->units[i] != 0 ? '1' : '0';
    }
    ck_assert_int_eq(fl_buf_printf(&t->text, "        > %s", effect_names[effect->type]), FL_OK);
    write_key(t, effect->key);
    if (effect->type == FL_CEFF_EXIT) {
        ck_assert_int_eq(fl_buf_printf(&t->text, " %d", effect->code), FL_OK);
    }
    ck_assert_int_eq(fl_buf_printf(&t->text, "%s%s%s%s%s\n", effect->diverged ? " diverged" : "",
                                   effect->yields ? " yields" : "", units,
                                   effect->text != NULL ? ": " : "",
                                   effect->text != NULL ? effect->text : ""),
                     FL_OK);
}

void session_trace_step(struct session_trace *t, struct fl_session_event event)
{
    size_t i;

    event.now_ms = t->now_ms;
    write_event(t, &event);
    fl_session_step(t->session, &event, &t->effects);
    for (i = 0; i < t->effects.n; i++) {
        write_effect(t, &t->effects.list[i]);
    }
}

void session_trace_tick(struct session_trace *t)
{
    uint64_t deadline = fl_session_deadline(t->session);

    ck_assert_uint_ne(deadline, UINT64_MAX);
    if (deadline > t->now_ms) {
        t->now_ms = deadline;
    }
    session_trace_step(t, session_event(FL_CEV_TICK));
}

const char *session_trace_text(struct session_trace *t)
{
    ck_assert_int_eq(fl_buf_add(&t->text, "", 1), FL_OK);
    t->text.len = 0;
    return (const char *)t->text.data;
}

void session_trace_skip(struct session_trace *t)
{
    fl_buf_clear(&t->text);
}

/* --- events --- */

struct fl_session_event session_event(enum fl_session_event_type type)
{
    return (struct fl_session_event){.type = type};
}

struct fl_session_event session_event_key(enum fl_session_event_type type, uint64_t round,
                                          uint32_t attempt)
{
    struct fl_session_event event = {.type = type};

    event.u.key = (struct fl_round_key){round, attempt};
    return event;
}

struct fl_session_event session_event_failed(enum fl_session_event_type type, uint64_t round,
                                             uint32_t attempt, const char *reason, bool permanent)
{
    struct fl_session_event event = session_event_key(type, round, attempt);

    event.u.failed.reason = reason;
    event.u.failed.permanent = permanent;
    return event;
}

/* One of the few masks that tests use, as bytes. */
static const uint8_t *mask(const char *units, size_t *ret_n)
{
    static const uint8_t masks[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};

    *ret_n = units != NULL ? strlen(units) : 0;
    if (units == NULL) {
        return NULL;
    }
    ck_assert_uint_eq(*ret_n, 2);
    return masks[(units[0] == '1') * 2 + (units[1] == '1')];
}

struct fl_session_event session_event_task(uint64_t round, uint32_t attempt, bool has_plan,
                                           const char *units)
{
    struct fl_session_event event = session_event_key(FL_CEV_TASK, round, attempt);

    event.u.task.has_plan = has_plan;
    event.u.task.units = mask(units, &event.u.task.n_units);
    return event;
}

struct fl_session_event session_event_plan(uint64_t round, uint32_t attempt, const char *units)
{
    struct fl_session_event event = session_event_key(FL_CEV_PLAN, round, attempt);

    event.u.plan.units = mask(units, &event.u.plan.n_units);
    return event;
}

struct fl_session_event session_event_welcome(uint32_t heartbeat_ms)
{
    struct fl_session_event event = session_event(FL_CEV_WELCOME);

    event.u.welcome.heartbeat_ms = heartbeat_ms;
    event.u.welcome.model_fits = true;
    return event;
}

/* --- the fixture of the session tests --- */

struct session_trace world;

void session_setup(void)
{
    static const struct fl_session_conf conf = {
        .seed = 7, .backoff_ms = 1000, .backoff_max_ms = 8000, .exit_when_done = true};

    session_trace_init(&world, &conf);
}

void session_setup_staying(void)
{
    static const struct fl_session_conf conf = {
        .seed = 7, .backoff_ms = 1000, .backoff_max_ms = 8000, .done_max_ms = 60000};

    session_trace_init(&world, &conf);
}

void session_teardown(void)
{
    session_trace_done(&world);
}

void go(struct fl_session_event event)
{
    session_trace_step(&world, event);
}

void at(uint64_t now_ms)
{
    ck_assert_uint_ge(now_ms, world.now_ms);
    world.now_ms = now_ms;
}

void join(void)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    session_trace_skip(&world);
}

void rejoin(void)
{
    session_trace_tick(&world);
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_READY);
    session_trace_skip(&world);
}

void fetch_and_train(uint64_t round, uint32_t attempt)
{
    go(session_event_task(round, attempt, false, NULL));
    go(session_event_key(FL_CEV_FETCHED, round, attempt));
}

void join_and_report(void)
{
    join();
    fetch_and_train(7, 1);
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_REPORTED);
    session_trace_skip(&world);
}

void lose(const char *reason)
{
    go(session_event_failed(FL_CEV_DISCONNECTED, 0, 0, reason, false));
}
