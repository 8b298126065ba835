#include <arpa/inet.h>
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "tests/lib/gworld.h"
#include "tests/lib/mangle.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlsrig.h"

TESTS_APART("each begins with statics that are zero");

/* The server. */

static bool one_message_came_back(struct world *world)
{
    return world->client[0].side.messages == 1;
}

static bool server_has_call(struct world *world)
{
    return world->server_calls > 0;
}

TEST_CASE("any stream", NULL, NULL);

TEST(a_closing_server_lets_open_calls_finish)
{
    struct world world = {.done = one_message_came_back};
    struct client *client = &world.client[0];

    gworld_begin(&world, "127.0.0.1:0");
    client->call_on_up = true;
    client->side.blob = gworld_blob(1000);
    client->side.to_send = 1;
    client->side.hold = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    gworld_close_server(&world, 60000);
    /* The call goes on; when it is over, the connection is. */
    client->side.hold = false;
    client->side.to_send = 3;
    gworld_send_more(&client->side);
    world.done = gworld_all_gone;
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)client->side.status, (int)FL_GRPC_OK);
    ck_assert_uint_eq(client->side.messages, 4);
    ck_assert_int_eq(client->code, FL_OK);
    gworld_end(&world);
}

TEST(a_closing_server_waits_no_longer_than_its_grace)
{
    struct world world = {.done = server_has_call};
    struct client *client = &world.client[0];

    gworld_begin(&world, "127.0.0.1:0");
    client->call_on_up = true;
    client->path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    gworld_close_server(&world, 30);
    world.done = gworld_all_gone;
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)client->side.status, (int)FL_GRPC_UNAVAILABLE);
    ck_assert_int_eq((int)world.server_status, (int)FL_GRPC_UNAVAILABLE);
    gworld_end(&world);
}

TEST(a_server_without_connections_closes_later_too)
{
    struct world world = {.done = gworld_all_gone};

    gworld_begin(&world, "127.0.0.1:0");
    gworld_close_server(&world, 1000);
    ck_assert_uint_eq(world.server_closed, 0);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.server_closed, 1);
    gworld_end(&world);
}

static int raw_client_from(const struct world *world, uint32_t from)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(from)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr.sin_port = htons((uint16_t)strtoul(strrchr(world->address, ':') + 1, NULL, 10));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

static int raw_client(const struct world *world)
{
    return raw_client_from(world, INADDR_LOOPBACK);
}

struct poll {
    struct world *world;
    struct fl_timer *timer;
};

static void on_poll(void *arg)
{
    struct poll *poll = arg;

    gworld_happened(poll->world);
    fl_timer_start(poll->timer, 2);
}

/* For what happens on the server without any event of ours. */
static void run_polling(struct world *world, bool (*done)(struct world *))
{
    struct poll poll = {.world = world};

    ck_assert_int_eq(fl_timer_create(world->loop, on_poll, &poll, &poll.timer), FL_OK);
    fl_timer_start(poll.timer, 0);
    world->done = done;
    fl_loop_run(world->loop);
    fl_timer_close(poll.timer);
}

static bool has_one_connection(struct world *world)
{
    return fl_grpc_server_connections(world->server) == 1;
}

static bool has_at_most_one_connection(struct world *world)
{
    return fl_grpc_server_connections(world->server) <= 1;
}

static bool has_no_connection(struct world *world)
{
    return fl_grpc_server_connections(world->server) == 0;
}

TEST(a_client_that_says_nothing_is_closed_in_time)
{
    struct world world = {0};
    char bytes[256];
    ssize_t n;
    int fd;

    fl_rpc_limits_default(&world.limits);
    world.limits.handshake_ms = 30;
    gworld_begin(&world, "127.0.0.1:0");
    fd = raw_client(&world);
    run_polling(&world, has_one_connection);
    /* The close is orderly: it waits for our FIN too, but not long. */
    run_polling(&world, has_no_connection);
    do {
        n = read(fd, bytes, sizeof(bytes)); /* The server's SETTINGS, then its end. */
    } while (n > 0);
    ck_assert_int_eq(n, 0);
    (void)close(fd);
    gworld_end(&world);
}

TEST_CASE("plain", NULL, NULL);

TEST(a_client_of_another_protocol_is_closed_and_others_go_on)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct world world = {.done = gworld_calls_closed};
    int fd;

    gworld_begin(&world, "127.0.0.1:0");
    fd = raw_client(&world);
    ck_assert_int_eq(write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    world.client[0].side.blob = gworld_blob(10);
    world.client[0].side.to_send = 1;
    world.client[0].call_on_up = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)world.client[0].side.status, (int)FL_GRPC_OK);
    /* Although the client stays. */
    run_polling(&world, has_one_connection);
    (void)close(fd);
    gworld_end(&world);
}

static const char *const not_mangled[] = {"GET / HTTP/1.1\r\n\r\n", MANGLE_BROKEN};
static const char *const whys[] = {"it does not greet", "its frame is too long"};

static void take_filters(void)
{
    gworld_filter = NULL;
    gworld_dial_filter = NULL;
}

static void put_filter(void)
{
    gworld_filter = &mangle_filter;
    gworld_dial_filter = &mangle_filter;
}

TEST_CASE_AGAIN("any stream", "over a filter", put_filter, take_filters);

TEST_EACH(a_client_that_breaks_the_filters_protocol_is_closed_and_named_and_others_go_on, 2)
{
    struct world world = {.done = gworld_calls_closed};
    int fd;

    gworld_begin(&world, "127.0.0.1:0");
    fd = raw_client(&world);
    ck_assert_int_eq(write(fd, not_mangled[_i], strlen(not_mangled[_i])),
                     (ssize_t)strlen(not_mangled[_i]));
    world.client[0].side.blob = gworld_blob(10);
    world.client[0].side.to_send = 1;
    world.client[0].call_on_up = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)world.client[0].side.status, (int)FL_GRPC_OK);
    run_polling(&world, has_one_connection);
    ck_assert_uint_eq(world.notices, 1);
    ck_assert_str_eq(world.notice, whys[_i]);
    (void)close(fd);
    gworld_end(&world);
}

static bool idle_one_is_down(struct world *world)
{
    return world->client[0].down > 0;
}

TEST_CASE("any stream", NULL, NULL);

static bool first_is_up(struct world *world)
{
    return world->client[0].up > 0;
}

static void stop(void *arg)
{
    fl_loop_stop(arg);
}

/*
 * On a busy machine a connection may be idle for too long before the test has used it: these tests
 * begin again, with a longer time.
 */
#define IDLE_MS_LEAST 100
#define IDLE_MS_MOST  (IDLE_MS_LEAST * 256)

/* false: the machine took so long that more was closed than was idle. */
static bool only_the_idle_one_is_closed(uint32_t idle_ms)
{
    struct world world = {.done = idle_one_is_down};
    bool only;

    fl_rpc_limits_default(&world.limits);
    world.limits.idle_ms = idle_ms;
    gworld_begin(&world, "127.0.0.1:0");
    world.client[1].call_on_up = true;
    world.client[1].path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 60000);
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    run_polling(&world, has_at_most_one_connection);
    only = world.client[0].up == 1 && world.client[0].code == FL_OK && world.client[1].up == 1 &&
           world.client[1].side.closed == 0;
    gworld_end(&world);
    return only;
}

/* With longer and longer times, until the machine is fast enough for one. */
static void hold_for_some_time(bool (*holds)(uint32_t idle_ms))
{
    uint32_t idle_ms = IDLE_MS_LEAST;

    while (!holds(idle_ms)) {
        idle_ms *= 4;
        ck_assert_uint_le(idle_ms, IDLE_MS_MOST);
    }
}

TEST(an_idle_connection_is_closed_and_one_with_a_call_is_not)
{
    hold_for_some_time(only_the_idle_one_is_closed);
}

static void run_for(struct world *world, uint32_t ms)
{
    struct fl_timer *timer = NULL;

    world->done = NULL;
    ck_assert_int_eq(fl_timer_create(world->loop, stop, world->loop, &timer), FL_OK);
    fl_timer_start(timer, ms);
    fl_loop_run(world->loop);
    fl_timer_close(timer);
}

/* false: the connection was closed before the call. */
static bool call_crosses_goaway(uint32_t idle_ms)
{
    struct world world = {.done = first_is_up};
    struct client *client = &world.client[0];
    uint64_t begin_ms;

    fl_rpc_limits_default(&world.limits);
    world.limits.idle_ms = idle_ms;
    gworld_begin(&world, "127.0.0.1:0");
    client->path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    run_polling(&world, has_one_connection);
    /* Time passes while the loop stands still, so that both sides act in the same turn. */
    for (begin_ms = fl_clock_ms(); fl_clock_ms() < begin_ms + idle_ms + idle_ms / 2;) {
    }
    if (gworld_call(client) != FL_OK) {
        gworld_end(&world);
        return false;
    }
    /* Longer than an idle connection gets to answer the GOAWAY. */
    run_for(&world, 1200);
    ck_assert_uint_eq(world.server_calls, 1);
    ck_assert_uint_eq(client->side.closed, 0);
    ck_assert_uint_eq(client->down, 0);
    /* But the connection takes no more calls, and ends with this one. */
    ck_assert_int_eq(fl_grpc_call(client->channel, client->path, 0, NULL, NULL, NULL), FL_ECLOSED);
    fl_call_cancel(client->side.call);
    world.done = idle_one_is_down;
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_OK);
    gworld_end(&world);
    return true;
}

TEST(a_call_that_crosses_the_goaway_for_idleness_is_served)
{
    hold_for_some_time(call_crosses_goaway);
}

static bool server_has_a_call(struct world *world)
{
    return world->server_calls > 0 || world->client[0].down > 0;
}

/* How long the connection stays after its last call. */
static uint64_t idle_after_call(uint32_t idle_ms)
{
    struct world world = {.done = server_has_a_call};
    struct client *client = &world.client[0];
    uint64_t begin_ms = fl_clock_ms();

    fl_rpc_limits_default(&world.limits);
    world.limits.idle_ms = idle_ms;
    gworld_begin(&world, "127.0.0.1:0");
    client->path = "/t.T/Hold";
    client->call_on_up = true;
    (void)gworld_connect(&world, world.address, 60000);
    fl_loop_run(world.loop);
    if (client->down == 0) {
        run_for(&world, idle_ms + idle_ms / 2);
        ck_assert_uint_eq(client->down, 0);
        begin_ms = fl_clock_ms();
        fl_call_cancel(client->side.call);
        world.done = idle_one_is_down;
        fl_loop_run(world.loop);
        ck_assert_int_eq(client->code, FL_OK);
    }
    gworld_end(&world);
    return fl_clock_ms() - begin_ms;
}

/* Less only where the connection was to close before the call came. */
static bool idle_lasts_from_the_last_call(uint32_t idle_ms)
{
    return idle_after_call(idle_ms) >= idle_ms - idle_ms / 20;
}

TEST(a_connection_is_idle_from_the_end_of_its_last_call_on)
{
    hold_for_some_time(idle_lasts_from_the_last_call);
}

static bool third_down(struct world *world)
{
    return world->client[2].down > 0;
}

static bool two_are_there(struct world *world)
{
    return world->client[1].up > 0 && world->server_calls == (world->client[1].call_on_up ? 2 : 1);
}

static bool second_down_third_up(struct world *world)
{
    return world->client[1].down > 0 && world->client[2].up > 0;
}

TEST(a_new_connection_takes_the_place_of_the_oldest_that_nobody_knows)
{
    struct world world = {.done = two_are_there, .max_connections = 2};

    gworld_begin(&world, "127.0.0.1:0");
    world.client[0].call_on_up = true;
    world.client[0].path = "/t.T/Known";
    (void)gworld_connect(&world, world.address, 5000);
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    (void)gworld_connect(&world, world.address, 5000);
    world.done = second_down_third_up;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[0].down, 0);
    ck_assert_uint_eq(fl_grpc_server_connections(world.server), 2);
    ck_assert_uint_eq(world.notices, 1);
    ck_assert_str_eq(world.notice, "connection closed: another connection needs its place");
    gworld_end(&world);
}

TEST(a_connection_beyond_those_that_are_known_is_turned_away)
{
    struct world world = {.done = two_are_there, .max_connections = 2};
    unsigned i;

    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 2; i++) {
        world.client[i].call_on_up = true;
        world.client[i].path = "/t.T/Known";
        (void)gworld_connect(&world, world.address, 5000);
    }
    fl_loop_run(world.loop);
    (void)gworld_connect(&world, world.address, 5000);
    world.done = third_down;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[2].up, 0);
    ck_assert_uint_eq(world.client[0].down + world.client[1].down, 0);
    ck_assert_uint_eq(fl_grpc_server_connections(world.server), 2);
    ck_assert_uint_eq(world.notices, 1);
    gworld_end(&world);
}

static bool second_down(struct world *world)
{
    return world->client[1].down > 0;
}

static bool is_open(int fd)
{
    char byte[4096];
    ssize_t n;

    do {
        n = recv(fd, byte, sizeof(byte), MSG_DONTWAIT); /* the server's SETTINGS */
    } while (n > 0);
    return n < 0;
}

/* The oldest is from another host, which is about to join, say. */
TEST(a_new_connection_takes_the_place_of_one_from_its_own_address_first)
{
    struct world world = {.max_connections = 3};
    int other;

    gworld_begin(&world, "127.0.0.1:0");
    other = raw_client_from(&world, INADDR_LOOPBACK + 1);
    run_polling(&world, has_one_connection);
    world.client[0].call_on_up = true;
    world.client[0].path = "/t.T/Known";
    (void)gworld_connect(&world, world.address, 5000);
    (void)gworld_connect(&world, world.address, 5000);
    world.done = two_are_there;
    fl_loop_run(world.loop);
    (void)gworld_connect(&world, world.address, 5000);
    world.done = second_down;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[0].down, 0);
    ck_assert(is_open(other));
    (void)close(other);
    gworld_end(&world);
}

static bool first_is_down(struct world *world)
{
    return world->client[0].down > 0 && world->server_calls == 3;
}

TEST(of_more_connections_than_a_client_may_have_the_oldest_is_closed)
{
    struct world world = {.peer_connections = 2, .known_as = "edge-1", .done = two_are_there};
    unsigned i;

    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 3; i++) {
        world.client[i].call_on_up = true;
        world.client[i].path = "/t.T/Known";
    }
    (void)gworld_connect(&world, world.address, 5000);
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.notices, 0);
    (void)gworld_connect(&world, world.address, 5000);
    world.done = first_is_down;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.client[1].down + world.client[2].down, 0);
    ck_assert_uint_eq(world.notices, 1);
    ck_assert_str_eq(
        world.notice,
        "connection closed: 'edge-1' has more than 2 connections, and this is the oldest");
    gworld_end(&world);
}

/* One more call of a client, beside that of its side. */
struct extra_call {
    struct world *world;
    bool closed;
    enum fl_grpc_status status;
};

static void on_extra_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *text)
{
    struct extra_call *extra = ctx;

    (void)call;
    (void)text;
    extra->closed = true;
    extra->status = status;
    gworld_happened(extra->world);
}

static struct extra_call extra;

static bool extra_is_closed(struct world *world)
{
    (void)world;
    return extra.closed;
}

static void begin_extra_call(struct client *client)
{
    static const struct fl_call_handler handler = {.on_closed = on_extra_closed};
    struct fl_call *call = NULL;

    extra = (struct extra_call){.world = client->world};
    ck_assert_int_eq(
        fl_grpc_call(client->channel, "/t.T/Known", /* timeout_ms= */ 0, &handler, &extra, &call),
        FL_OK);
}

static bool three_are_there(struct world *world)
{
    return world->server_calls == 3;
}

static bool third_is_gone(struct world *world)
{
    return world->client[2].down > 0 && fl_grpc_server_connections(world->server) == 2;
}

static bool three_were_served_again(struct world *world)
{
    return world->server_calls == 4;
}

TEST(the_calls_of_a_client_are_limited_over_all_its_connections)
{
    struct world world = {.peer_connections = 4, .known_as = "edge-1", .done = three_are_there};
    unsigned i;

    fl_rpc_limits_default(&world.limits);
    world.limits.streams = 3;
    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 3; i++) {
        world.client[i].call_on_up = true;
        world.client[i].path = "/t.T/Known";
        (void)gworld_connect(&world, world.address, 5000);
    }
    fl_loop_run(world.loop);
    begin_extra_call(&world.client[0]);
    world.done = extra_is_closed;
    fl_loop_run(world.loop);
    ck_assert_int_eq(extra.status, FL_GRPC_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(world.server_calls, 3);
    ck_assert_uint_eq(world.notices, 1);
    ck_assert_str_eq(
        world.notice,
        "/t.T/Known of 'edge-1': 3 calls are open over all connections of this client, the limit");
    /* The calls of a connection that is gone do not count any more. */
    world.inside = true;
    fl_grpc_channel_close(world.client[2].channel);
    world.inside = false;
    world.client[2].channel = NULL;
    world.done = third_is_gone;
    fl_loop_run(world.loop);
    begin_extra_call(&world.client[0]);
    world.done = three_were_served_again;
    fl_loop_run(world.loop);
    gworld_end(&world);
}

static bool all_up(struct world *world)
{
    return world->client[world->n_clients - 1].up > 0 &&
           fl_grpc_server_connections(world->server) == world->n_clients;
}

/* For both sides; bench/idle prints what a server's costs. */
static size_t idle_limit = (size_t)40 * 1024;

TEST(an_idle_connection_costs_little_for_both_sides_together)
{
    static struct world world;
    struct mallinfo2 before;
    struct mallinfo2 after;
    unsigned i;

    world.done = all_up;
    /* However long the handshakes take on a busy machine: one that was closed never comes up. */
    fl_rpc_limits_default(&world.limits);
    world.limits.handshake_ms = 600000;
    world.limits.idle_ms = 600000;
    gworld_begin(&world, "127.0.0.1:0");
    before = mallinfo2();
    for (i = 0; i < CLIENTS; i++) {
        (void)gworld_connect(&world, world.address, 600000);
    }
    fl_loop_run(world.loop);
    after = mallinfo2();
    printf("memory per idle connection, both sides: %zu bytes\n",
           (after.uordblks - before.uordblks) / CLIENTS);
    ck_assert_uint_lt(after.uordblks - before.uordblks, CLIENTS * idle_limit);
    gworld_end(&world);
}

static struct tlsrig rig;

static void put_tls(void)
{
    tlsrig_begin(&rig);
    idle_limit = (size_t)100 * 1024;
    gworld_filter = &rig.filter[TLSRIG_SERVER];
    gworld_dial_filter = &rig.filter[TLSRIG_CLIENT];
}

static void end_tls(void)
{
    tlsrig_end(&rig);
    take_filters();
}

TEST_CASE_AGAIN("any stream", "over TLS", put_tls, end_tls);
