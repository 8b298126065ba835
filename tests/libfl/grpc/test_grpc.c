#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/gworld.h"
#include "tests/lib/mangle.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlsrig.h"

/* Calls. */

static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 1000003, MIB};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

TEST_CASE("any stream", NULL, NULL);

TEST_EACH(calls_of_any_size_go_over_tcp_and_unix_sockets, (int)N_SIZES * 4)
{
    struct world world = {.done = gworld_calls_closed};
    size_t size = sizes[(size_t)_i % N_SIZES];
    unsigned n = _i < (int)N_SIZES * 2 ? 1 : 5;
    char path[64];
    struct side *side = &world.client[0].side;

    (void)snprintf(path, sizeof(path), "unix:/tmp/fl-grpc-%ld.sock", (long)getpid());
    gworld_begin(&world, (size_t)_i / N_SIZES % 2 == 0 ? "127.0.0.1:0" : path);
    side->blob = gworld_blob(size);
    side->to_send = n;
    world.client[0].call_on_up = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)side->status, (int)FL_GRPC_OK);
    ck_assert_uint_eq(side->messages, n);
    ck_assert_uint_eq(side->bytes, n * size);
    ck_assert(side->intact);
    gworld_end(&world);
}

TEST(eight_connections_move_eight_mib_each_way)
{
    struct world world = {.done = gworld_calls_closed};
    struct fl_blob *blob = gworld_blob(MIB);
    unsigned i;

    gworld_begin(&world, "127.0.0.1:0");
    for (i = 0; i < 8; i++) {
        world.client[i].side.blob = fl_blob_ref(blob);
        world.client[i].side.to_send = 8;
        world.client[i].call_on_up = true;
        (void)gworld_connect(&world, world.address, 5000);
    }
    fl_loop_run(world.loop);
    for (i = 0; i < 8; i++) {
        const struct side *side = &world.client[i].side;

        ck_assert_int_eq((int)side->status, (int)FL_GRPC_OK);
        ck_assert_uint_eq(side->bytes, 8 * MIB);
        ck_assert(side->intact);
    }
    gworld_end(&world);
    fl_blob_unref(blob);
}

/* A call that reached the server is closed there too: by its timer or by the client's reset. */
static bool calls_closed_on_both_sides(struct world *world)
{
    return gworld_calls_closed(world) && world->server_closed_calls == world->server_calls;
}

TEST(a_call_ends_at_its_deadline_on_both_sides)
{
    unsigned timeout_ms = 30;
    unsigned server_calls = 0;

    /* On a busy machine a deadline may be over before the call has reached the server. */
    for (; server_calls == 0; timeout_ms *= 4) {
        struct world world = {.done = calls_closed_on_both_sides};
        enum fl_grpc_status status;

        gworld_begin(&world, "127.0.0.1:0");
        world.client[0].call_on_up = true;
        world.client[0].path = "/t.T/Hold";
        world.client[0].timeout_ms = timeout_ms;
        (void)gworld_connect(&world, world.address, 5000);
        fl_loop_run(world.loop);
        ck_assert_int_eq((int)world.client[0].side.status, (int)FL_GRPC_DEADLINE_EXCEEDED);
        server_calls = world.server_calls;
        status = world.server_status;
        gworld_end(&world);
        /* The client's reset may have been faster than the server's own clock. */
        ck_assert(server_calls == 0 || status == FL_GRPC_DEADLINE_EXCEEDED ||
                  status == FL_GRPC_CANCELLED);
    }
}

static bool server_has_call(struct world *world)
{
    return world->server_calls > 0;
}

TEST_CASE("plain", NULL, NULL);

TEST(a_cancelled_call_ends_without_waiting_for_the_server)
{
    struct world world = {.done = server_has_call};
    struct side *side = &world.client[0].side;

    gworld_begin(&world, "127.0.0.1:0");
    world.client[0].call_on_up = true;
    world.client[0].path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    world.inside = true;
    fl_call_cancel(side->call);
    world.inside = false;
    world.done = gworld_calls_closed;
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)side->status, (int)FL_GRPC_CANCELLED);
    gworld_end(&world);
    ck_assert_int_eq((int)world.server_status, (int)FL_GRPC_CANCELLED);
}

/* Channels. */

static bool first_down(struct world *world)
{
    return world->client[0].down > 0;
}

static bool first_up(struct world *world)
{
    return world->client[0].up > 0;
}

TEST_CASE("any stream", NULL, NULL);

TEST(calls_begin_when_the_channel_is_up_and_not_after_it_was_closed)
{
    struct world world = {.done = first_up};
    struct client *client;

    gworld_begin(&world, "127.0.0.1:0");
    client = gworld_connect(&world, world.address, 5000);
    ck_assert_int_eq(gworld_call(client), FL_EAGAIN);
    fl_loop_run(world.loop);
    world.done = first_down;
    world.inside = true;
    fl_grpc_channel_close(client->channel);
    fl_grpc_channel_close(client->channel);
    ck_assert_int_eq(gworld_call(client), FL_ECLOSED);
    world.inside = false;
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_OK);
    gworld_end(&world);
}

static bool control_is_over(struct world *world)
{
    return world->client[1].side.closed > 0;
}

TEST_EACH(control_messages_pass_a_transfer_at_its_rate, 2)
{
    struct world world = {.done = first_up};
    struct client *bulk = &world.client[0];
    struct client *control = &world.client[1];

    fl_rpc_limits_default(&world.limits);
    world.limits.send_rate = 1000; /* the bulk takes ten minutes */
    world.limits.take_rate = 1000;
    gworld_begin(&world, "127.0.0.1:0");
    bulk->side.blob = gworld_blob(600 * 1000);
    bulk->side.to_send = 1;
    bulk->side.bulk = _i == 0 ? FL_CALL_SENDS_BULK : FL_CALL_TAKES_BULK;
    bulk->call_on_up = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    *control = (struct client){.world = &world, .channel = bulk->channel, .path = "/t.T/Echo"};
    control->side.blob = gworld_blob(20 * 1000);
    control->side.to_send = 20;
    world.done = control_is_over;
    world.inside = true;
    ck_assert_int_eq(gworld_call(control), FL_OK);
    world.inside = false;
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)control->side.status, (int)FL_GRPC_OK);
    ck_assert_uint_eq(control->side.messages, 20);
    ck_assert(control->side.intact);
    ck_assert_uint_eq(bulk->side.closed, 0);
    ck_assert_uint_eq(bulk->side.messages, 0);
    fl_blob_unref(control->side.blob);
    gworld_end(&world);
}

TEST_EACH(a_transfer_at_a_rate_comes_to_its_end, 2)
{
    struct world world = {.done = gworld_calls_closed};
    struct side *side = &world.client[0].side;

    fl_rpc_limits_default(&world.limits);
    world.limits.send_rate = 1000000;
    world.limits.take_rate = 1000000;
    gworld_begin(&world, "127.0.0.1:0");
    side->blob = gworld_blob(20 * 1000);
    side->to_send = 5;
    side->bulk = _i == 0 ? FL_CALL_SENDS_BULK : FL_CALL_TAKES_BULK;
    world.client[0].call_on_up = true;
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)side->status, (int)FL_GRPC_OK);
    ck_assert_uint_eq(side->messages, 5);
    ck_assert(side->intact);
    gworld_end(&world);
}

static bool call_over_on_both_sides(struct world *world)
{
    return world->client[0].side.closed > 0 && world->server_closed_calls > 0;
}

TEST(a_cut_connection_ends_its_calls_with_unavailable)
{
    struct world world = {.done = server_has_call};

    gworld_begin(&world, "127.0.0.1:0");
    world.client[0].call_on_up = true;
    world.client[0].path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    world.done = call_over_on_both_sides;
    fl_grpc_channel_close(world.client[0].channel);
    fl_loop_run(world.loop);
    ck_assert_int_eq((int)world.client[0].side.status, (int)FL_GRPC_UNAVAILABLE);
    ck_assert_int_eq((int)world.server_status, (int)FL_GRPC_UNAVAILABLE);
    gworld_end(&world);
}

TEST(a_channel_to_nobody_goes_down_with_the_reason)
{
    struct world world = {.done = first_down};
    struct fl_grpc_channel *channel = NULL;
    struct fl_err err = {0};

    gworld_begin(&world, "127.0.0.1:0");
    ck_assert_int_eq(fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = world.loop,
                                                                     .address = "nonsense",
                                                                     .limits = &world.limits,
                                                                     .timeout_ms = 1,
                                                                     .cbs = &gworld_channel_cbs,
                                                                     .ctx = NULL},
                                     &channel, &err),
                     FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "nonsense"));
    (void)gworld_connect(&world, "unix:/tmp/fl-no-such.sock", 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(world.client[0].text, "/tmp/fl-no-such.sock"));
    gworld_end(&world);
}

/* A plain listening socket; `*ret_address` is where. */
static int mute_server(char *address, size_t size)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    (void)snprintf(address, size, "127.0.0.1:%u", ntohs(addr.sin_port));
    return fd;
}

TEST_CASE("plain", NULL, NULL);

TEST(a_server_that_does_not_speak_http2_is_told_apart)
{
    struct world world = {.done = first_down};
    char address[64];
    int fd = mute_server(address, sizeof(address));

    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, address, 50);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_ETIMEOUT);
    ck_assert_ptr_nonnull(strstr(world.client[0].text, address));
    ck_assert_ptr_nonnull(strstr(world.client[0].text, "does not speak HTTP/2"));
    (void)close(fd);
    gworld_end(&world);
}

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

TEST(a_server_that_never_completes_the_filters_handshake_is_told_apart)
{
    struct world world = {.done = first_down};
    char address[64];
    int fd = mute_server(address, sizeof(address));

    gworld_begin(&world, "127.0.0.1:0");
    (void)gworld_connect(&world, address, 50);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.client[0].code, FL_ETIMEOUT);
    ck_assert_ptr_nonnull(strstr(world.client[0].text, address));
    ck_assert_ptr_nonnull(strstr(world.client[0].text, "does not complete the handshake"));
    ck_assert_uint_eq(world.client[0].up, 0);
    (void)close(fd);
    gworld_end(&world);
}

TEST_CASE("any stream", NULL, NULL);

TEST(closing_a_channel_from_its_callback_is_safe)
{
    struct world world = {.done = first_up};

    gworld_begin(&world, "127.0.0.1:0");
    world.client[0].call_on_up = true;
    world.client[0].path = "/t.T/Hold";
    (void)gworld_connect(&world, world.address, 5000);
    fl_loop_run(world.loop);
    gworld_end(&world);
    ck_assert_int_eq((int)world.client[0].side.status, (int)FL_GRPC_UNAVAILABLE);
}

static struct tlsrig rig;

static void put_tls(void)
{
    tlsrig_begin(&rig);
    gworld_filter = &rig.filter[TLSRIG_SERVER];
    gworld_dial_filter = &rig.filter[TLSRIG_CLIENT];
}

static void end_tls(void)
{
    tlsrig_end(&rig);
    take_filters();
}

TEST_CASE_AGAIN("any stream", "over TLS", put_tls, end_tls);
