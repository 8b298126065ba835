/*
 * Properties of a client session under random events: none may be broken by any sequence, however
 * senseless. A failure names the seed; SESSION_SEED=n runs that one alone.
 */

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/core/session.h"
#include "libfl/base/rng.h"
#include "tests/lib/suites.h"

#define N_SEEDS  400
#define N_EVENTS 600
#define N_ROUNDS 4

/* What an observer of the effects knows; kept apart from the session's own state. */
struct shadow {
    struct fl_session *session;
    struct fl_session_conf conf;
    struct fl_rng rng;
    uint64_t now_ms;
    bool linked;
    bool stopped;
    struct fl_round_key training; /* a run was begun and neither ended nor cancelled */
    struct fl_round_key held;
    bool pushing;
};

static uint64_t seed; /* of the test that runs, for messages */

#define HOLDS(cond) \
    ck_assert_msg(cond, "SESSION_SEED=%" PRIu64 " at %" PRIu64 " ms: %s", seed, sh->now_ms, #cond)

static bool same(struct fl_round_key a, struct fl_round_key b)
{
    return a.round == b.round && a.attempt == b.attempt;
}

static struct fl_round_key none(void)
{
    return (struct fl_round_key){0, 0};
}

/* What the event itself tells the observer, before the session answers. */
static void observe_event(struct shadow *sh, const struct fl_session_event *event)
{
    if ((event->type == FL_CEV_TRAINED || event->type == FL_CEV_TRAIN_FAILED) &&
        sh->training.round != 0 && same(sh->training, event->u.key))
    {
        sh->held = event->type == FL_CEV_TRAINED ? sh->training : sh->held;
        sh->training = none();
    }
    if (event->type == FL_CEV_DISCONNECTED) {
        sh->linked = false;
        sh->pushing = false;
    }
}

static void observe_work(struct shadow *sh, const struct fl_session_effect *effect)
{
    switch (effect->type) {
    case FL_CEFF_TRAIN:
        HOLDS(sh->training.round == 0); /* never two rounds at once */
        HOLDS(sh->held.round == 0);     /* nor beside a result that waits */
        sh->training = effect->key;
        break;
    case FL_CEFF_CANCEL_TRAIN:
        HOLDS(same(sh->training, effect->key));
        sh->training = none();
        break;
    case FL_CEFF_REPORT:
        HOLDS(same(sh->held, effect->key));
        break;
    case FL_CEFF_PUSH:
        HOLDS(same(sh->held, effect->key));
        HOLDS(!sh->pushing);
        sh->pushing = true;
        break;
    case FL_CEFF_CANCEL_PUSH:
        sh->pushing = false;
        break;
    case FL_CEFF_DROP:
        if (same(sh->held, effect->key)) {
            sh->held = none();
        }
        break;
    default:
        break;
    }
}

static void observe_link(struct shadow *sh, const struct fl_session_effect *effect)
{
    switch (effect->type) {
    case FL_CEFF_CONNECT:
        HOLDS(!sh->linked);
        sh->linked = true;
        break;
    case FL_CEFF_DISCONNECT:
        HOLDS(sh->linked);
        sh->linked = false;
        sh->pushing = false;
        break;
    case FL_CEFF_HELLO:
        HOLDS(sh->linked);
        HOLDS(same(sh->held, effect->key));
        break;
    case FL_CEFF_HEARTBEAT:
    case FL_CEFF_FETCH:
    case FL_CEFF_REPORT:
    case FL_CEFF_FAILED:
    case FL_CEFF_PUSH:
    case FL_CEFF_EVALUATE:
    case FL_CEFF_NO_EVALUATION:
        HOLDS(sh->linked); /* nothing is sent into the void */
        break;
    case FL_CEFF_EXIT:
        HOLDS(!sh->linked && sh->training.round == 0);
        sh->stopped = true;
        break;
    default:
        break;
    }
}

/* The wait after a lost connection lies within what is configured. */
static void check_wait(struct shadow *sh, const struct fl_session_event *event)
{
    uint64_t wait;

    if (event->type != FL_CEV_DISCONNECTED || fl_session_state(sh->session) != FL_SESSION_OFFLINE) {
        return;
    }
    wait = fl_session_deadline(sh->session) - sh->now_ms;
    HOLDS(wait >= sh->conf.backoff_ms * 4 / 5 && wait <= sh->conf.backoff_max_ms * 6 / 5);
}

static void step(struct shadow *sh, struct fl_session_event *event)
{
    struct fl_session_effects effects = {0};
    bool offline = fl_session_state(sh->session) == FL_SESSION_OFFLINE;
    size_t i;

    event->now_ms = sh->now_ms;
    observe_event(sh, event);
    fl_session_step(sh->session, event, &effects);
    HOLDS(!sh->stopped || effects.n == 0);
    for (i = 0; i < effects.n; i++) {
        const struct fl_session_effect *effect = &effects.list[i];

        observe_link(sh, effect);
        observe_work(sh, effect);
    }
    HOLDS(sh->held.round == 0 || sh->training.round == 0);
    if (!offline) {
        check_wait(sh, event);
    }
}

static struct fl_round_key any_key(struct shadow *sh)
{
    return (struct fl_round_key){fl_rng_below(&sh->rng, N_ROUNDS),
                                 (uint32_t)fl_rng_below(&sh->rng, 2)};
}

static void fill(struct shadow *sh, struct fl_session_event *event)
{
    static const uint8_t masks[] = {0, 0, 1, 1, 0};
    size_t at = (size_t)fl_rng_below(&sh->rng, 4);
    bool flag = fl_rng_below(&sh->rng, 2) == 1;

    event->u.key = any_key(sh);
    switch (event->type) {
    case FL_CEV_START:
        event->u.held = none();
        break;
    case FL_CEV_WELCOME:
        event->u.welcome.heartbeat_ms = (uint32_t)fl_rng_below(&sh->rng, 3000);
        event->u.welcome.model_fits = fl_rng_below(&sh->rng, 10) > 0;
        event->u.welcome.reason = flag ? "shape" : NULL;
        break;
    case FL_CEV_REFUSED:
        event->u.refused.retry_after_ms =
            (uint32_t)(flag ? fl_rng_u64(&sh->rng) : fl_rng_below(&sh->rng, 2));
        event->u.refused.reason = NULL;
        break;
    case FL_CEV_TASK:
        event->u.task.has_plan = flag;
        event->u.task.units = at < 3 ? masks + at : NULL;
        event->u.task.n_units = 2;
        break;
    case FL_CEV_PLAN:
        event->u.plan.units = at < 3 ? masks + at : NULL;
        event->u.plan.n_units = 2;
        break;
    case FL_CEV_DRAIN:
        event->u.drain.reconnect_after_ms = flag ? fl_rng_u64(&sh->rng) : 0;
        event->u.drain.reason = "drain";
        break;
    case FL_CEV_EVALUATE:
        event->u.evaluate.round = fl_rng_below(&sh->rng, N_ROUNDS);
        break;
    case FL_CEV_DISCONNECTED:
    case FL_CEV_REJECTED:
    case FL_CEV_FETCH_FAILED:
    case FL_CEV_TRAIN_FAILED:
    case FL_CEV_PUSH_FAILED:
    case FL_CEV_EVALUATE_FAILED:
        event->u.failed.reason = flag ? "because" : NULL;
        event->u.failed.permanent = at == 0;
        break;
    default:
        break;
    }
}

/* Any event, but the rare ones rarely, and the connection's own mostly where they fit. */
static void random_event(struct shadow *sh)
{
    struct fl_session_event event = {0};
    enum fl_session_state state = fl_session_state(sh->session);

    sh->now_ms += fl_rng_below(&sh->rng, 10) == 0 ? fl_rng_below(&sh->rng, 20000)
                                                  : fl_rng_below(&sh->rng, 50);
    event.type = (enum fl_session_event_type)(1 + fl_rng_below(&sh->rng, FL_CEV_STOP));
    if (fl_rng_below(&sh->rng, 3) == 0) {
        if (state == FL_SESSION_OFFLINE && fl_session_deadline(sh->session) != UINT64_MAX) {
            event.type = FL_CEV_TICK;
            if (fl_session_deadline(sh->session) - sh->now_ms < 100000) {
                sh->now_ms = fl_session_deadline(sh->session);
            }
        } else if (state == FL_SESSION_CONNECTING) {
            event.type = FL_CEV_CONNECTED;
        } else if (state == FL_SESSION_GREETING) {
            event.type = FL_CEV_WELCOME;
        }
    }
    if ((event.type == FL_CEV_STOP && fl_rng_below(&sh->rng, 20) > 0) ||
        ((event.type == FL_CEV_REFUSED || event.type == FL_CEV_DRAIN ||
          event.type == FL_CEV_DISCONNECTED) &&
         fl_rng_below(&sh->rng, 4) > 0))
    {
        event.type = FL_CEV_TICK;
    }
    if (event.type == FL_CEV_PUSH_FAILED) {
        sh->pushing = false;
    }
    fill(sh, &event);
    if (event.type == FL_CEV_TRAINED && fl_rng_below(&sh->rng, 2) == 0 && sh->training.round != 0) {
        event.u.key = sh->training;
    }
    step(sh, &event);
}

/* The network returns and every server answers: READY within one longest wait. */
static void recover(struct shadow *sh)
{
    struct fl_session_event event = {.type = FL_CEV_START};
    uint64_t began;
    unsigned i;

    step(sh, &event);
    began = sh->now_ms;
    for (i = 0; i < 10 && fl_session_state(sh->session) < FL_SESSION_READY; i++) {
        event = (struct fl_session_event){.type = FL_CEV_TICK};
        if (fl_session_state(sh->session) == FL_SESSION_CONNECTING) {
            event.type = FL_CEV_CONNECTED;
        } else if (fl_session_state(sh->session) == FL_SESSION_GREETING) {
            event.type = FL_CEV_WELCOME;
            event.u.welcome.heartbeat_ms = 1000;
            event.u.welcome.model_fits = true;
        } else {
            HOLDS(fl_session_deadline(sh->session) != UINT64_MAX);
            sh->now_ms = fl_session_deadline(sh->session);
        }
        step(sh, &event);
    }
    HOLDS(fl_session_state(sh->session) >= FL_SESSION_READY);
    HOLDS(sh->now_ms - began <= UINT64_C(86400000) * 6 / 5);
}

/* A round from here ends in READY with the result accepted. */
static void whole_round(struct shadow *sh)
{
    struct fl_session_event event = {.type = FL_CEV_TASK};
    struct fl_round_key key = {N_ROUNDS + 1, 0};
    static const enum fl_session_event_type steps[] = {FL_CEV_FETCHED, FL_CEV_TRAINED, FL_CEV_PLAN,
                                                       FL_CEV_ACCEPTED};
    size_t i;

    event.u.task.key = key;
    step(sh, &event);
    for (i = 0; i < 4; i++) {
        event = (struct fl_session_event){.type = steps[i]};
        event.u.key = key;
        step(sh, &event);
    }
    HOLDS(fl_session_state(sh->session) == FL_SESSION_READY);
    HOLDS(sh->held.round == 0 && sh->training.round == 0);
}

static void run(uint64_t n)
{
    struct shadow shadow = {.conf = {.backoff_ms = 500, .backoff_max_ms = 16000}};
    struct shadow *sh = &shadow;
    unsigned i;

    seed = n;
    fl_rng_key(&sh->rng, n, FL_RNG_TEST, 0, 0);
    sh->conf.seed = n;
    sh->conf.refused_ms = n % 3 == 0 ? 0 : 3000;
    sh->conf.exit_when_done = n % 2 == 0;
    HOLDS(fl_session_create(&sh->conf, &sh->session) == FL_OK);
    for (i = 0; i < N_EVENTS && !sh->stopped; i++) {
        random_event(sh);
    }
    if (!sh->stopped) {
        recover(sh);
        whole_round(sh);
    }
    fl_session_free(sh->session);
}

TEST(no_sequence_of_events_breaks_a_rule)
{
    const char *one = getenv("SESSION_SEED");
    uint64_t n;

    if (one != NULL) {
        run(strtoull(one, NULL, 10));
        return;
    }
    for (n = 0; n < N_SEEDS; n++) {
        run(n);
    }
}

TEST(the_same_events_and_seed_give_the_same_waits)
{
    struct fl_session_conf conf = {.seed = 5, .backoff_ms = 500, .backoff_max_ms = 60000};
    struct fl_session *a = NULL;
    struct fl_session *b = NULL;
    struct fl_session_effects effects;
    struct fl_session_event event = {.type = FL_CEV_START};
    unsigned i;

    ck_assert_int_eq(fl_session_create(&conf, &a), FL_OK);
    ck_assert_int_eq(fl_session_create(&conf, &b), FL_OK);
    for (i = 0; i < 20; i++) {
        fl_session_step(a, &event, &effects);
        fl_session_step(b, &event, &effects);
        ck_assert_uint_eq(fl_session_deadline(a), fl_session_deadline(b));
        event.type = i % 2 == 0 ? FL_CEV_DISCONNECTED : FL_CEV_TICK;
        event.u.failed.reason = NULL;
        event.now_ms = i % 2 == 0 ? event.now_ms : fl_session_deadline(a);
    }
    fl_session_free(a);
    fl_session_free(b);
}

TEST(waits_double_up_to_the_longest_within_a_fifth)
{
    struct fl_session_conf conf = {.backoff_ms = 500, .backoff_max_ms = 6000};
    static const uint64_t expected[] = {500, 1000, 2000, 4000, 6000, 6000, 6000};
    uint64_t n;

    for (n = 0; n < 200; n++) {
        struct fl_session_event event = {.type = FL_CEV_START};
        struct fl_session_effects effects;
        struct fl_session *s = NULL;
        size_t i;

        conf.seed = n;
        ck_assert_int_eq(fl_session_create(&conf, &s), FL_OK);
        fl_session_step(s, &event, &effects);
        for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
            uint64_t wait;

            event.type = FL_CEV_DISCONNECTED;
            event.u.failed.reason = NULL;
            fl_session_step(s, &event, &effects);
            wait = fl_session_deadline(s) - event.now_ms;
            ck_assert_uint_ge(wait, expected[i] * 4 / 5);
            ck_assert_uint_le(wait, expected[i] * 6 / 5);
            event.now_ms += wait;
            event.type = FL_CEV_TICK;
            fl_session_step(s, &event, &effects);
        }
        fl_session_free(s);
    }
}

TEST(a_back_off_that_makes_no_sense_is_refused)
{
    struct fl_session *s = NULL;

    ck_assert_int_eq(fl_session_create(&(struct fl_session_conf){.backoff_ms = 0}, &s), FL_EINVAL);
    ck_assert_int_eq(
        fl_session_create(&(struct fl_session_conf){.backoff_ms = 2, .backoff_max_ms = 1}, &s),
        FL_EINVAL);
    fl_session_free(NULL);
    ck_assert_str_eq(fl_session_state_name(FL_SESSION_PUSHING), "PUSHING");
    ck_assert_str_eq(fl_session_state_name((enum fl_session_state)99), "?");
}
