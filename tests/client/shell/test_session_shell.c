/*
 * The shell around a session, with operations that only record their calls: effects become calls,
 * the end of work becomes an event, and an event during the effects waits until they are done.
 */

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/shell/session_shell.h"
#include "libfl/base/rng.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

#define HEARTBEAT_MS 1000

static struct world {
    struct fl_session_shell *shell;
    uint64_t now_ms, timer_ms;
    int fails[FL_ACTIVITY_EVALUATION + 1]; /* what begin() returns */
    bool fetched;                          /* nothing has to be fetched: reported by begin() */
    bool fails_itself;                     /* begin() reports the error, with a text of its own */
    bool waits;                            /* and the session was not stepped with it yet */
    bool refuses;                          /* take() returns false */
    struct fl_round_key result;            /* the pending result */
    char calls[4096];                      /* one line each */
    struct fl_rng *rng;                    /* begin() does what is drawn, and no call is noted */
} w;

FL_PRINTF(1, 2) static void call(const char *fmt, ...)
{
    size_t len = strlen(w.calls);
    va_list ap;

    if (w.rng != NULL) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(w.calls + len, sizeof(w.calls) - len, fmt, ap);
    va_end(ap);
}

/* The calls since the last time were these. */
static void expect(const char *calls)
{
    ck_assert_str_eq(w.calls, calls);
    w.calls[0] = '\0';
}

static const char *name_of(enum fl_activity activity)
{
    static const char *const names[] = {[FL_ACTIVITY_CONNECTION] = "connection",
                                        [FL_ACTIVITY_FETCH] = "fetch",
                                        [FL_ACTIVITY_TRAINING] = "training",
                                        [FL_ACTIVITY_PUSH] = "push",
                                        [FL_ACTIVITY_EVALUATION] = "evaluation"};

    return names[activity];
}

static uint64_t op_now_ms(void *ctx)
{
    (void)ctx;
    return w.now_ms;
}

static void op_set_timer(void *ctx, uint64_t at_ms)
{
    (void)ctx;
    w.timer_ms = at_ms;
}

static int op_begin(void *ctx, enum fl_activity activity, const struct fl_session_effect *e,
                    struct fl_err *err)
{
    char text[] = "no route";

    (void)ctx;
    call("begin %s %d\n", name_of(activity), (int)e->key.round);
    if (w.rng != NULL) {
        w.fetched = fl_rng_below(w.rng, 2) == 0;
        w.fails_itself = fl_rng_below(w.rng, 3) == 0;
        w.fails[activity] = w.fails_itself || fl_rng_below(w.rng, 2) == 0 ? FL_OK : FL_EIO;
    }
    if (w.fetched && activity == FL_ACTIVITY_FETCH) {
        fl_session_shell_ended(w.shell, activity, e->key, FL_OK, NULL);
    }
    if (w.fails_itself) {
        w.fails_itself = false;
        fl_session_shell_failed(w.shell, activity, e->key, FL_FAULT_PASSING, text);
        (void)memset(text, 'x', sizeof(text) - 1); /* The caller's text does not stay. */
        w.waits = fl_session_state(fl_session_shell_session(w.shell)) == FL_SESSION_CONNECTING;
    }
    return w.fails[activity] == FL_OK ? FL_OK : fl_err_set(err, w.fails[activity], "it fails");
}

static void op_cancel(void *ctx, enum fl_activity activity, const char *why)
{
    (void)ctx;
    call("cancel %s %s\n", name_of(activity), why != NULL ? why : "");
}

static void op_send(void *ctx, struct fl_wire_event *m)
{
    (void)ctx;
    switch (m->type) {
    case FL_WIRE_HELLO:
        call("send hello %d \n", (int)m->u.hello.held_round);
        break;
    case FL_WIRE_HEARTBEAT_EVENT:
        call("send heartbeat\n");
        break;
    case FL_WIRE_REPORT:
        call("send report %d \n", (int)m->u.report.round);
        break;
    case FL_WIRE_FAILED:
        call("send failed %d %s\n", (int)m->u.failed.round, m->u.failed.reason);
        break;
    case FL_WIRE_EVALUATION:
        call("send evaluation %d of %d samples\n", (int)m->u.evaluation.round,
             (int)m->u.evaluation.result.samples);
        break;
    case FL_WIRE_DATA_SUMMARY: /* No message of the session. */
        ck_abort();
    }
}

static bool op_take(void *ctx, struct fl_session_event *command, void *message)
{
    (void)ctx;
    ck_assert_ptr_eq(message, &w);
    call("take %s\n", fl_session_command_name(command->type));
    if (command->type == FL_CEV_WELCOME) {
        command->u.welcome.heartbeat_ms = HEARTBEAT_MS;
        command->u.welcome.model_fits = true;
    }
    return !w.refuses;
}

static bool op_has_result(void *ctx, struct fl_round_key key)
{
    (void)ctx;
    return w.result.round == key.round && w.result.attempt == key.attempt;
}

static void op_drop_result(void *ctx, struct fl_round_key key)
{
    (void)ctx;
    call("drop %d\n", (int)key.round);
}

static void op_log(void *ctx, enum fl_log_level level, const char *text)
{
    (void)ctx;
    if (level != FL_LOG_DEBUG || strstr(text, "-> OFFLINE") != NULL) {
        call("log %s\n", text);
    }
}

static void op_leave(void *ctx, int code, const char *why)
{
    (void)ctx;
    (void)why;
    call("leave %d\n", code);
    fl_session_shell_stop(w.shell);
}

static const struct fl_session_ops ops = {.now_ms = op_now_ms,
                                          .set_timer = op_set_timer,
                                          .begin = op_begin,
                                          .cancel = op_cancel,
                                          .send = op_send,
                                          .take = op_take,
                                          .has_result = op_has_result,
                                          .drop_result = op_drop_result,
                                          .log = op_log,
                                          .leave = op_leave};

static const struct fl_session_conf conf = {.backoff_ms = 100, .backoff_max_ms = 100};

static void set_up(void)
{
    (void)memset(&w, 0, sizeof(w));
    w.now_ms = 1000;
    ck_assert_int_eq(fl_session_shell_create(&conf, &ops, &w, &w.shell), FL_OK);
}

static void tear_down(void)
{
    fl_session_shell_free(w.shell);
}

static bool command(enum fl_session_event_type type, uint64_t round)
{
    struct fl_session_event event = {.type = type};

    if (type == FL_CEV_EVALUATE) {
        event.u.evaluate.round = round;
    } else if (type == FL_CEV_TASK) {
        event.u.task.key = (struct fl_round_key){round, 1};
    } else if (type == FL_CEV_PLAN) {
        event.u.plan.key = (struct fl_round_key){round, 1};
    }
    return fl_session_shell_command(w.shell, &event, &w);
}

static void start(void)
{
    fl_session_shell_key(w.shell, FL_CEV_START, w.result);
}

/* A session, ready for a task. */
static void join(void)
{
    start();
    fl_session_shell_ended(w.shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, FL_OK, NULL);
    ck_assert(command(FL_CEV_WELCOME, 0));
    w.calls[0] = '\0';
}

TEST_CASE("session_shell", set_up, tear_down);

TEST(what_fails_at_once_is_stepped_after_the_effects_and_without_memory)
{
    uint64_t timer_ms;

    failmalloc_start(0, true);
    w.fails_itself = true;
    w.timer_ms = 7;
    start();
    timer_ms = w.timer_ms;
    fl_session_shell_tick(w.shell);
    (void)failmalloc_stop();
    ck_assert(w.waits);
    ck_assert_uint_eq(timer_ms, 0);
    ck_assert_ptr_nonnull(strstr(w.calls, "no connection: no route"));
    ck_assert_uint_gt(w.timer_ms, w.now_ms);
}

TEST(work_that_does_not_start_has_failed)
{
    const struct fl_round_key key = {4, 1};

    join();
    w.fails[FL_ACTIVITY_FETCH] = FL_EPROTO;
    ck_assert(command(FL_CEV_TASK, key.round));
    fl_session_shell_tick(w.shell);
    expect("take Task\nbegin fetch 4\nsend failed 4 fetching failed: it fails\ncancel fetch \n");
    w.fails[FL_ACTIVITY_EVALUATION] = FL_ENOMEM;
    ck_assert(command(FL_CEV_EVALUATE, 5));
    fl_session_shell_tick(w.shell);
    expect("take Evaluate\nbegin evaluation 5\nlog no evaluation of round 5: it fails\n"
           "send evaluation 5 of 0 samples\n");
}

/* Two queued events: nothing had to be fetched, and the training does not start. */
TEST(a_queued_event_may_queue_another)
{
    join();
    w.fetched = true;
    w.fails[FL_ACTIVITY_TRAINING] = FL_EIO;
    ck_assert(command(FL_CEV_TASK, 4));
    expect("take Task\nbegin fetch 4\n");
    fl_session_shell_tick(w.shell);
    expect("begin training 4\n");
    ck_assert_uint_eq(w.timer_ms, 0);
    fl_session_shell_tick(w.shell);
    expect("send failed 4 training failed: it fails\n");
}

/* What happens to a client at random: commands of any server, and the end of any work. */
static void happens(struct fl_rng *rng)
{
    const struct fl_round_key key = {fl_rng_below(rng, 4), (uint32_t)fl_rng_below(rng, 2)};
    enum fl_activity activity = (enum fl_activity)(1 + fl_rng_below(rng, FL_ACTIVITY_EVALUATION));
    struct fl_session_event event = {.type = FL_CEV_WELCOME};

    w.now_ms += fl_rng_below(rng, 400);
    switch (fl_rng_below(rng, 4)) {
    case 0:
        w.result = key;
        fl_session_shell_ended(w.shell, activity, key, fl_rng_below(rng, 2) == 0 ? FL_OK : FL_EIO,
                               "it fails");
        break;
    case 1:
        fl_session_shell_tick(w.shell);
        break;
    default:
        event.type = (enum fl_session_event_type)(
            FL_CEV_WELCOME + fl_rng_below(rng, FL_CEV_HEARTBEAT - FL_CEV_WELCOME + 1));
        if (event.type == FL_CEV_TASK) {
            event.u.task.key = key;
            event.u.task.has_plan = fl_rng_below(rng, 2) == 0;
        } else if (event.type == FL_CEV_PLAN) {
            event.u.plan.key = key;
        } else if (event.type == FL_CEV_EVALUATE) {
            event.u.evaluate.round = key.round;
        } else if (event.type == FL_CEV_REJECTED) {
            event.u.failed.key = key;
        } else if (event.type == FL_CEV_ACCEPTED || event.type == FL_CEV_DISMISSED) {
            event.u.key = key;
        }
        (void)fl_session_shell_command(w.shell, &event, &w);
        break;
    }
}

/* The queue allocates nothing, so a full one ends the process: what a server sends cannot fill it.
 */
TEST(no_sequence_of_events_fills_the_queue)
{
    struct fl_rng rng;
    uint64_t seed;
    unsigned i;

    for (seed = 0; seed < 300; seed++) {
        tear_down(); /* The session of the seed before, or of the fixture. */
        set_up();
        fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
        w.rng = &rng;
        start();
        for (i = 0; i < 500; i++) {
            happens(&rng);
        }
    }
}

TEST(a_command_is_taken_only_by_a_session_that_takes_it)
{
    start();
    w.calls[0] = '\0';
    ck_assert(!command(FL_CEV_TASK, 4)); /* CONNECTING: of an earlier stream. */
    expect("");
    join();
    ck_assert(command(FL_CEV_TASK, 4));
    expect("take Task\nbegin fetch 4\n");
    ck_assert(!command(FL_CEV_TASK, 4)); /* Repeated. */
    expect("");
    w.refuses = true;
    ck_assert(!command(FL_CEV_TASK, 5)); /* Dropped by take(). */
    expect("take Task\n");
    ck_assert(!command(FL_CEV_WELCOME, 0)); /* Against the contract. */
    ck_assert_ptr_nonnull(strstr(w.calls, "cancel connection protocol error"));
}

TEST(a_result_that_is_missing_is_neither_reported_nor_pushed)
{
    const struct fl_round_key key = {4, 1};

    join();
    ck_assert(command(FL_CEV_TASK, key.round));
    fl_session_shell_ended(w.shell, FL_ACTIVITY_FETCH, key, FL_OK, NULL);
    w.calls[0] = '\0';
    fl_session_shell_ended(w.shell, FL_ACTIVITY_TRAINING, key, FL_OK, NULL);
    expect("send failed 4 the pending result no longer exists\n");
    w.result = key;
    ck_assert(command(FL_CEV_PLAN, key.round));
    expect("take Plan\nbegin push 4\n");
    w.result = (struct fl_round_key){0};
    fl_session_shell_failed(w.shell, FL_ACTIVITY_PUSH, key, FL_FAULT_PASSING, "cut off");
    w.now_ms = w.timer_ms;
    fl_session_shell_tick(w.shell); /* The retry. */
    expect("");
    fl_session_shell_tick(w.shell);
    expect("send failed 4 pushing failed: the pending result no longer exists\ndrop 4\n"
           "cancel push \n");
}

TEST(an_evaluation_is_sent_before_the_session_continues)
{
    const struct fl_wire_event made =
        fl_session_evaluation(3, &(struct fl_evaluation_result){.received = {.samples = 12}});

    join();
    ck_assert(command(FL_CEV_EVALUATE, 3));
    w.calls[0] = '\0';
    fl_session_shell_evaluated(w.shell, 3, FL_OK, NULL, &made);
    expect("send evaluation 3 of 12 samples\n");
    ck_assert(command(FL_CEV_EVALUATE, 3)); /* The next one is accepted. */
    expect("take Evaluate\nbegin evaluation 3\n");
    fl_session_shell_evaluated(w.shell, 3, FL_ENOENT, "no data", NULL);
    expect("log no evaluation of round 3: no data\nsend evaluation 3 of 0 samples\n");
}

TEST(the_timer_before_the_deadline_does_nothing)
{
    join();
    ck_assert_uint_eq(w.timer_ms, w.now_ms + HEARTBEAT_MS);
    w.now_ms = w.timer_ms - 1;
    fl_session_shell_tick(w.shell);
    expect("");
    w.now_ms++;
    fl_session_shell_tick(w.shell);
    expect("send heartbeat\n");
    ck_assert_uint_eq(w.timer_ms, w.now_ms + HEARTBEAT_MS);
}

TEST(a_stopped_shell_calls_nothing)
{
    start();
    w.calls[0] = '\0';
    fl_session_shell_stop(w.shell);
    ck_assert(fl_session_shell_stopped(w.shell));
    fl_session_shell_ended(w.shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, FL_OK, NULL);
    fl_session_shell_evaluated(w.shell, 3, FL_OK, NULL, &(struct fl_wire_event){.type = 0});
    fl_session_shell_tick(w.shell);
    ck_assert(!command(FL_CEV_WELCOME, 0));
    expect("");
    fl_session_shell_stop(NULL);
    fl_session_shell_free(NULL);
}

TEST(an_operation_may_stop_the_shell)
{
    join();
    w.timer_ms = 7;
    fl_session_shell_key(w.shell, FL_CEV_STOP, (struct fl_round_key){0});
    expect("cancel connection \nleave 0\n");
    ck_assert_uint_eq(w.timer_ms, 7);
}

TEST(without_memory_there_is_none)
{
    struct fl_session_shell *other = NULL;
    size_t i = 0;
    int rv;

    do {
        failmalloc_start(i++, false);
        rv = fl_session_shell_create(&conf, &ops, &w, &other);
        (void)failmalloc_stop();
        ck_assert(rv == FL_OK || rv == FL_ENOMEM);
    } while (rv != FL_OK);
    ck_assert_uint_eq(i, 1 + 2); /* Itself, the session. */
    fl_session_shell_free(other);
}
