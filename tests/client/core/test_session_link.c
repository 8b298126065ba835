/* How a client session comes, stays and goes, as text that anyone can read. */

#include "tests/lib/session_trace.h"
#include "tests/lib/suites.h"

TEST_CASE("session_link", session_setup, session_teardown);

TEST(heartbeats_go_out_every_interval_and_silence_ends_the_session)
{
    join();
    session_trace_tick(&world);
    at(9000);
    go(session_event(FL_CEV_HEARTBEAT));
    session_trace_tick(&world);
    session_trace_tick(&world);
    session_trace_tick(&world);
    session_trace_tick(&world);
    TRACE("[ 5000] < tick\n"
          "        > heartbeat\n"
          "[ 9000] < heartbeat\n"
          "[10000] < tick\n"
          "        > heartbeat\n"
          "[15000] < tick\n"
          "        > heartbeat\n"
          "[20000] < tick\n"
          "        > heartbeat\n"
          "[24000] < tick\n"
          "        > disconnect: the server is silent\n"
          "          READY -> OFFLINE: the server is silent, reconnecting in 1171 ms\n");
}

/* Proxies, firewalls and NAT drop a connection that is silent for a minute. */
#define MIDDLEBOX_IDLE_MS 60000
/* The default of the server's `heartbeat`, which test_server_conf compares. */
#define DEFAULT_HEARTBEAT_MS 10000

/* An hour in which nothing but heartbeats travels, each of which the server answers. */
static void idle_for_an_hour(void)
{
    uint64_t until = world.now_ms + 3600000;
    uint64_t sent_at = world.now_ms;

    while (world.now_ms < until) {
        size_t i;

        session_trace_tick(&world);
        for (i = 0; i < world.effects.n; i++) {
            ck_assert_int_eq(world.effects.list[i].type, FL_CEFF_HEARTBEAT);
            ck_assert_uint_le(world.now_ms - sent_at, MIDDLEBOX_IDLE_MS / 2);
            sent_at = world.now_ms;
            go(session_event(FL_CEV_HEARTBEAT));
        }
        session_trace_skip(&world);
    }
    ck_assert_uint_le(world.now_ms - sent_at, MIDDLEBOX_IDLE_MS / 2);
}

TEST(an_idle_session_is_never_silent_for_as_long_as_a_middlebox_allows)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(DEFAULT_HEARTBEAT_MS));
    idle_for_an_hour();
    fetch_and_train(7, 1);
    idle_for_an_hour();
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_TRAINING);
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    idle_for_an_hour();
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_REPORTED);
}

TEST(a_server_that_does_not_answer_hello_is_left)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event(FL_CEV_CONNECTED));
    session_trace_skip(&world);
    session_trace_tick(&world);
    TRACE("[30000] < tick\n"
          "        > disconnect: the server does not answer hello\n"
          "          GREETING -> OFFLINE: the server does not answer hello, reconnecting in 1171 "
          "ms\n");
}

TEST(a_session_that_stands_resets_the_back_off)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    lose("refused");
    session_trace_tick(&world);
    lose("refused");
    session_trace_tick(&world);
    lose("refused");
    session_trace_tick(&world);
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    session_trace_skip(&world);
    /* Not yet: the wait before this session was about four seconds. */
    lose("reset by peer");
    rejoin();
    at(world.now_ms + 60000);
    lose("reset by peer");
    TRACE("[74695] < disconnected\n"
          "          READY -> OFFLINE: connection lost: reset by peer, reconnecting in 811 ms\n");
    ck_assert_uint_eq(world.now_ms, 74695);
}

TEST(a_refusal_with_a_time_is_waited_out)
{
    struct fl_session_event event = session_event(FL_CEV_REFUSED);

    event.u.refused.retry_after_ms = 10000;
    event.u.refused.reason = "full";
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event(FL_CEV_CONNECTED));
    session_trace_skip(&world);
    go(event);
    lose("closed");
    TRACE("[    0] < refused\n"
          "        > disconnect\n"
          "        > notice: refused: full; reconnecting in 11 s\n"
          "          GREETING -> OFFLINE: refused: full, reconnecting in 11311 ms\n"
          "[    0] < disconnected\n");
}

TEST(a_permanent_refusal_ends_the_client)
{
    struct fl_session_event event = session_event(FL_CEV_REFUSED);

    event.u.refused.reason = "not known here";
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    go(event);
    go(session_event_task(8, 0, false, NULL));
    TRACE("[    0] < refused\n"
          "        > cancel train 7/1\n"
          "        > disconnect\n"
          "          TRAINING -> STOPPED: refused: not known here\n"
          "        > exit 1: refused: not known here\n"
          "[    0] < task 8/0\n");
    ck_assert_uint_eq(fl_session_deadline(world.session), UINT64_MAX);
}

TEST(a_model_that_does_not_fit_ends_the_client)
{
    struct fl_session_event event = session_event_welcome(5000);

    event.u.welcome.model_fits = false;
    event.u.welcome.reason = "784 inputs, the data has 3072";
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event(FL_CEV_CONNECTED));
    session_trace_skip(&world);
    go(event);
    TRACE("[    0] < welcome\n"
          "        > disconnect\n"
          "          GREETING -> STOPPED: the model does not fit: 784 inputs, the data has 3072\n"
          "        > exit 2: the model does not fit: 784 inputs, the data has 3072\n");
}

TEST(the_end_of_the_federation_ends_the_client)
{
    struct fl_session_event event = session_event(FL_CEV_DRAIN);

    event.u.drain.reason = "all rounds are done";
    join();
    go(event);
    TRACE("[    0] < drain\n"
          "        > disconnect\n"
          "          READY -> STOPPED: the federation has finished: all rounds are done\n"
          "        > exit 0: the federation has finished: all rounds are done\n");
}

TEST(a_draining_server_is_left_for_the_time_it_names)
{
    struct fl_session_event event = session_event(FL_CEV_DRAIN);

    event.u.drain.reason = "restart";
    event.u.drain.reconnect_after_ms = 5000;
    join_and_report();
    go(event);
    TRACE("[    0] < drain\n"
          "        > disconnect\n"
          "        > notice: the server is draining: restart; reconnecting in 5562 ms\n"
          "          REPORTED -> OFFLINE: the server is draining: restart, reconnecting in 5562 "
          "ms\n");
    rejoin();
    go(session_event_task(7, 1, false, NULL));
    TRACE("[ 5562] < task 7/1\n"
          "          READY -> REPORTED: result pending of 7/1\n"
          "        > report 7/1\n");
}

/* Of a certificate that one of the two does not take: nothing that another try in a second mends.
 */
static struct fl_session_event refused_certificate(void)
{
    return session_event_failed(FL_CEV_DISCONNECTED, 0, 0, "certificate expired", true);
}

TEST(a_connection_that_is_refused_is_a_refusal)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    session_trace_skip(&world);
    go(refused_certificate());
    TRACE("[    0] < disconnected\n"
          "          CONNECTING -> OFFLINE: certificate expired, reconnecting in 0 ms\n"
          "          OFFLINE -> STOPPED: certificate expired\n"
          "        > exit 1: certificate expired\n");
}

TEST(a_client_that_stays_asks_within_the_longest_wait_after_a_refused_connection)
{
    static const struct fl_session_conf conf = {
        .seed = 7, .backoff_ms = 1000, .backoff_max_ms = 8000, .refused_ms = 900000};

    session_trace_done(&world);
    session_trace_init(&world, &conf);
    go(session_event_key(FL_CEV_START, 0, 0));
    session_trace_skip(&world);
    go(refused_certificate());
    TRACE("[    0] < disconnected\n"
          "        > notice: certificate expired; reconnecting in 7774 ms\n"
          "          CONNECTING -> OFFLINE: certificate expired, reconnecting in 7774 ms\n");
}

static void refuse(enum fl_session_refusal kind)
{
    struct fl_session_event event = session_event(FL_CEV_REFUSED);

    event.u.refused.kind = kind;
    event.u.refused.reason = "refused";
    go(event);
}

/* The wait after a refusal of that kind, of a session that stood for `stood_ms`. */
static uint64_t wait_after_refusal(enum fl_session_refusal kind, uint64_t stood_ms)
{
    struct fl_session_event welcome = session_event(FL_CEV_WELCOME);

    welcome.u.welcome.heartbeat_ms = 100000000;
    welcome.u.welcome.model_fits = true;
    if (fl_session_state(world.session) == FL_SESSION_OFFLINE) {
        world.now_ms = fl_session_deadline(world.session);
        go(session_event(FL_CEV_TICK));
    }
    go(session_event(FL_CEV_CONNECTED));
    go(welcome);
    world.now_ms += stood_ms;
    refuse(kind);
    return fl_session_deadline(world.session) - world.now_ms;
}

static void stay_after_refusals(void)
{
    static const struct fl_session_conf conf = {
        .seed = 7, .backoff_ms = 1000, .backoff_max_ms = 60000, .refused_ms = 900000};

    session_trace_done(&world);
    session_trace_init(&world, &conf);
    go(session_event_key(FL_CEV_START, 0, 0));
}

TEST(what_an_operator_can_cure_is_asked_again_within_the_longest_wait)
{
    int i;

    stay_after_refusals();
    for (i = 0; i < 100; i++) { /* for as long as it takes, and no sooner */
        uint64_t wait = wait_after_refusal(FL_SESSION_REFUSED_CURABLE, 0);

        ck_assert_uint_le(wait, 60000);
        ck_assert_uint_ge(wait, 48000);
        session_trace_skip(&world);
    }
    ck_assert_uint_ge(wait_after_refusal(FL_SESSION_REFUSED_FINAL, 0), 900000);
}

/* The next attempt: does its Hello yield to a session that is open? */
static bool next_hello_yields(void)
{
    world.now_ms = fl_session_deadline(world.session);
    go(session_event(FL_CEV_TICK));
    go(session_event(FL_CEV_CONNECTED));
    ck_assert_uint_eq(world.effects.n, 2); /* the change of the state, Hello */
    ck_assert_int_eq(world.effects.list[1].type, FL_CEFF_HELLO);
    return world.effects.list[1].yields;
}

/*
 * A session that stood for so long is taken over: the time until this client takes over itself.
 * Until then it asks each minute.
 */
static uint64_t fenced_for(uint64_t stood_ms)
{
    uint64_t fenced_at;
    uint64_t asked_at;

    (void)wait_after_refusal(FL_SESSION_REFUSED_FENCED, stood_ms);
    fenced_at = world.now_ms;
    asked_at = world.now_ms;
    while (next_hello_yields()) {
        ck_assert_uint_le(world.now_ms - asked_at, 60000);
        asked_at = world.now_ms;
        refuse(FL_SESSION_REFUSED_FENCED);
        session_trace_skip(&world);
    }
    ck_assert_uint_le(world.now_ms - asked_at, 60000);
    lose("closed"); /* OFFLINE again, as wait_after_refusal() expects it. */
    session_trace_skip(&world);
    return world.now_ms - fenced_at;
}

TEST(two_hosts_of_one_name_end_each_others_sessions_ever_more_rarely)
{
    int i;

    stay_after_refusals();
    ck_assert_uint_le(fenced_for(0), 72000);
    for (i = 0; i < 5; i++) { /* The other one comes as soon. */
        (void)fenced_for(60000);
    }
    ck_assert_uint_ge(fenced_for(60000), 720000);
    ck_assert_uint_le(fenced_for(900000), 72000);
}

TEST(a_host_whose_rival_was_stopped_joins_within_the_longest_wait)
{
    int i;

    stay_after_refusals();
    for (i = 0; i < 6; i++) { /* From now on the rival would be left alone for 12 minutes. */
        (void)fenced_for(60000);
    }
    ck_assert_uint_le(wait_after_refusal(FL_SESSION_REFUSED_FENCED, 60000), 60000);
    ck_assert(next_hello_yields());
    refuse(FL_SESSION_REFUSED_FENCED); /* It is still there. */
    ck_assert_uint_le(fl_session_deadline(world.session) - world.now_ms, 60000);
    ck_assert(next_hello_yields());
    go(session_event_welcome(5000)); /* It is not. */
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_READY);
    lose("reset by peer");
    ck_assert(!next_hello_yields()); /* No rival ended this session. */
}

TEST(a_refusal_of_another_kind_neither_ends_nor_shortens_a_fence)
{
    stay_after_refusals();
    (void)fenced_for(60000);
    (void)wait_after_refusal(FL_SESSION_REFUSED_FENCED, 60000); /* for 96 to 144 s */
    ck_assert(next_hello_yields());
    refuse(FL_SESSION_REFUSED_CURABLE);
    ck_assert(next_hello_yields());
    refuse(FL_SESSION_REFUSED_FINAL); /* 900 s: the fence has passed. */
    ck_assert(!next_hello_yields());
}

TEST(what_kept_a_client_away_is_over_and_it_asks_at_once)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    lose("no route");
    session_trace_skip(&world);
    go(session_event(FL_CEV_RETRY));
    go(session_event(FL_CEV_RETRY));
    TRACE("[    0] < retry\n"
          "          OFFLINE -> CONNECTING: retrying early\n"
          "        > connect\n"
          "[    0] < retry\n");
}

TEST(a_wait_that_the_server_asked_for_is_not_cut_short)
{
    struct fl_session_event event = session_event(FL_CEV_DRAIN);

    event.u.drain.reason = "restart";
    event.u.drain.reconnect_after_ms = 5000;
    join();
    go(event);
    session_trace_skip(&world);
    go(session_event(FL_CEV_RETRY));
    TRACE("[    0] < retry\n");
}

TEST(stopping_ends_what_is_under_way_and_keeps_the_result)
{
    join_and_report();
    go(session_event_plan(7, 1, NULL));
    session_trace_skip(&world);
    go(session_event(FL_CEV_STOP));
    go(session_event(FL_CEV_STOP));
    TRACE("[    0] < stop\n"
          "        > cancel push 7/1\n"
          "        > disconnect\n"
          "          PUSHING -> STOPPED: stopped by a signal\n"
          "        > exit 0: stopped by a signal\n"
          "[    0] < stop\n");
}

TEST(stopping_while_offline_stops_training)
{
    join();
    fetch_and_train(7, 1);
    lose("reset by peer");
    session_trace_skip(&world);
    go(session_event(FL_CEV_STOP));
    TRACE("[    0] < stop\n"
          "        > cancel train 7/1\n"
          "          OFFLINE -> STOPPED: stopped by a signal\n"
          "        > exit 0: stopped by a signal\n");
}

TEST(events_before_their_time_are_ignored)
{
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    go(session_event_task(1, 0, false, NULL));
    lose("nothing");
    go(session_event(FL_CEV_TICK));
    go(session_event_key(FL_CEV_START, 0, 0));
    go(session_event_key(FL_CEV_START, 5, 0));
    go(session_event_task(1, 0, false, NULL));
    go(session_event(FL_CEV_CONNECTED));
    TRACE("[    0] < connected\n"
          "[    0] < welcome\n"
          "[    0] < task 1/0\n"
          "[    0] < disconnected\n"
          "[    0] < tick\n"
          "[    0] < start\n"
          "          OFFLINE -> CONNECTING: start\n"
          "        > connect\n"
          "[    0] < start 5/0\n"
          "[    0] < task 1/0\n"
          "[    0] < connected\n"
          "          CONNECTING -> GREETING: connected\n"
          "        > hello\n");
}

static struct fl_session_event all_done(void)
{
    struct fl_session_event event = session_event(FL_CEV_DRAIN);

    event.u.drain.reason = "all rounds are done";
    return event;
}

TEST_CASE("staying", session_setup_staying, session_teardown);

TEST(a_client_stays_when_all_rounds_are_done_and_takes_part_in_more)
{
    join();
    go(all_done());
    go(all_done());
    session_trace_tick(&world);
    go(session_event_task(8, 1, false, NULL));
    TRACE("[    0] < drain\n"
          "        > notice: all rounds are done; staying connected for more rounds, or until the "
          "server stops\n"
          "          READY -> DONE: all rounds are done\n"
          "[    0] < drain\n"
          "[ 5000] < tick\n"
          "        > heartbeat\n"
          "[ 5000] < task 8/1\n"
          "          DONE -> READY: the server continues with 8/1\n"
          "          READY -> FETCHING: task 8/1\n"
          "        > fetch 8/1\n");
}

TEST(the_loss_of_a_finished_server_is_a_reason_to_ask_soon)
{
    join();
    go(all_done());
    at(3600000);
    session_trace_skip(&world);
    lose("reset by peer");
    TRACE("[3600000] < disconnected\n"
          "        > notice: connection lost: reset by peer; reconnecting in 1171 ms\n"
          "          DONE -> OFFLINE: connection lost: reset by peer, reconnecting in 1171 ms\n");
}

/* Such as one of another make: each Drain ends the session. */
TEST(a_finished_server_that_keeps_nobody_is_asked_ever_more_rarely)
{
    uint64_t longest = 0;
    int i;

    join();
    for (i = 0; i < 12; i++) {
        uint64_t from;

        go(all_done());
        lose("ended");
        from = world.now_ms;
        rejoin();
        longest = world.now_ms - from;
    }
    ck_assert_uint_ge(longest, 48000);
    ck_assert_uint_le(longest, 72000);
}

TEST(what_is_under_way_ends_with_the_federation)
{
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    go(all_done());
    TRACE("[    0] < drain\n"
          "        > cancel train 7/1\n"
          "        > notice: all rounds are done; staying connected for more rounds, or until the "
          "server stops\n"
          "          TRAINING -> DONE: all rounds are done\n");
}
