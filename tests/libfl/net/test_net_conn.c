#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/ends.h"
#include "tests/lib/mangle.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlsrig.h"

/* Echo. */

static const struct {
    const char *listen_on; /* NULL: a unix socket. */
    size_t len;
    size_t run;
    int small_buffers;
} echoes[] = {
    {"127.0.0.1:0", 1, 0, 0},
    {"127.0.0.1:0", 16383, 0, 0},
    {"127.0.0.1:0", 16384, 0, 0},
    {"127.0.0.1:0", 16385, 0, 0},
    {"127.0.0.1:0", 100001, 1000, 0},
    {"127.0.0.1:0", 8 * 1024 * 1024 + 3, 0, 0},
    {"127.0.0.1:0", 8 * 1024 * 1024 + 3, 16384, 0},
    /* Every write is cut somewhere. */
    {"127.0.0.1:0", 1000003, 777, 4096},
    {"127.0.0.1:0", 1000003, 0, 4096},
    {"*:0", 1000, 0, 0},
    {"localhost:0", 1000, 0, 0},
    {NULL, 1, 0, 0},
    {NULL, 100001, 1000, 0},
    {NULL, 8 * 1024 * 1024 + 3, 0, 0},
    {NULL, 1000003, 777, 4096},
};

TEST_CASE("any stream", NULL, NULL);

TEST_EACH(what_is_sent_comes_back_whole, ARRAY_LEN(echoes))
{
    struct world world = {.done = ends_client_has_all, .small_buffers = echoes[_i].small_buffers};
    size_t len = echoes[_i].len;
    uint8_t *bytes = ends_random_bytes(len);
    char path[64];
    struct end *client;
    unsigned i;

    ends_begin(&world, echoes[_i].listen_on != NULL ? echoes[_i].listen_on
                                                    : ends_unix_address(path, sizeof(path)));
    for (i = 0; i < ENDS; i += CLIENT) {
        world.end[i].in = malloc(len);
        world.end[i].in_cap = len;
        world.end[i].run = echoes[_i].run;
    }
    world.end[0].echo = true;
    client = &world.end[CLIENT];
    client->out = bytes;
    client->out_len = len;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(client->opened, 1);
    ck_assert_mem_eq(client->in, bytes, len);
    ck_assert_int_eq(strncmp(fl_stream_peer(world.end[0].stream),
                             echoes[_i].listen_on != NULL ? "127.0.0.1:" : "unix", 4),
                     0);
    if (echoes[_i].listen_on != NULL) {
        ck_assert_str_eq(fl_stream_peer(client->stream), world.address);
    }
    ends_end(&world);
    free(bytes);
}

static bool has_come(struct world *world)
{
    return world->accepted > 0 && world->end[CLIENT].opened > 0;
}

TEST_CASE("plain", NULL, NULL);

TEST(a_unix_stream_knows_the_process_that_made_it)
{
    struct world world = {.done = has_come};
    const struct fl_identity *identity;
    gid_t groups[FL_IDENTITY_GROUPS];
    char path[64];
    int n;

    ends_begin(&world, ends_unix_address(path, sizeof(path)));
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    identity = fl_stream_identity(world.end[0].stream);
    ck_assert_ptr_nonnull(identity);
    ck_assert_int_eq((int)identity->kind, FL_IDENTITY_LOCAL);
    ck_assert_uint_eq(identity->uid, geteuid());
    ck_assert_uint_eq(identity->gid, getegid());
    ck_assert_uint_eq(identity->pid, (uint32_t)getpid());
    n = getgroups(FL_IDENTITY_GROUPS, groups);
    if (n >= 0) { /* Else there are more than are kept. */
        ck_assert_uint_eq(identity->n_groups, (size_t)n);
        ck_assert_mem_eq(identity->groups, groups, (size_t)n * sizeof(groups[0]));
    }
    ends_end(&world);
}

TEST(of_a_peer_over_tcp_nothing_is_known)
{
    struct world world = {.done = has_come};

    ends_begin(&world, "127.0.0.1:0");
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_ptr_null(fl_stream_identity(world.end[0].stream));
    ends_end(&world);
}

/* Closing. */

static const char *const closers[] = {"on_open", "on_data", "on_wake", "output", "sent"};

TEST_CASE("any stream", NULL, NULL);

TEST_EACH(closing_from_any_callback_ends_with_one_on_close, ARRAY_LEN(closers))
{
    struct world world = {.done = ends_both_closed};
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    world.end[0].out = (const uint8_t *)"hello";
    world.end[0].out_len = 5;
    client = ends_dial(&world, CLIENT, world.address, 5000);
    client->out = (const uint8_t *)"hello";
    client->out_len = 5;
    client->close_in = closers[_i];
    fl_loop_run(world.loop);
    ck_assert_uint_eq(client->closed, 1);
    ck_assert_int_eq(client->code, FL_OK);
    ck_assert_uint_eq(world.end[0].closed, 1);
    ends_end(&world);
}

TEST(closing_before_the_connection_stands_ends_with_on_close_alone)
{
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    client = ends_dial(&world, CLIENT, world.address, 5000);
    world.inside = true;
    fl_stream_close(client->stream);
    world.inside = false;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(client->opened, 0);
    ck_assert_int_eq(client->code, FL_OK);
    ends_end(&world);
}

TEST(a_code_from_output_closes_with_it)
{
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    client = ends_dial(&world, CLIENT, world.address, 5000);
    client->output_code = FL_EPROTO;
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(client->text, world.address));
    ends_end(&world);
}

TEST(a_flushed_close_sends_all_and_both_sides_end_orderly)
{
    struct world world = {.done = ends_both_closed, .small_buffers = 4096};
    const size_t len = 3 * 1000 * 1000;
    uint8_t *bytes = ends_random_bytes(len);

    ends_begin(&world, "127.0.0.1:0");
    world.end[0].out = bytes;
    world.end[0].out_len = len;
    world.end[0].close_in = "on_wake";
    world.end[0].flush = true;
    world.end[CLIENT].in = malloc(len);
    world.end[CLIENT].in_cap = len;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.end[CLIENT].in_len, len);
    ck_assert_mem_eq(world.end[CLIENT].in, bytes, len);
    ck_assert_int_eq(world.end[CLIENT].code, FL_OK);
    ck_assert_int_eq(world.end[0].code, FL_OK);
    ends_end(&world);
    free(bytes);
}

/* The other side counts for itself. */
TEST(both_sides_of_a_connection_count_the_same)
{
    struct world world = {.done = ends_both_closed};
    struct fl_traffic at_server = {0};
    struct fl_traffic at_client = {0};
    const size_t len = 300000;
    uint8_t *bytes = ends_random_bytes(len);
    struct end *client;

    ends_begin(&world, "127.0.0.1:0");
    fl_listener_count(world.listener, &at_server);
    world.end[0].in = malloc(len);
    world.end[0].in_cap = len;
    world.end[0].out = (const uint8_t *)"hello";
    world.end[0].out_len = 5;
    client = ends_dial(&world, CLIENT, world.address, 5000);
    client->socket->traffic = &at_client;
    client->out = bytes;
    client->out_len = len;
    client->close_in = "on_data";
    client->flush = true;
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.end[0].in_len, len);
    ck_assert_uint_eq(atomic_load(&at_server.in), atomic_load(&at_client.out));
    ck_assert_uint_eq(atomic_load(&at_server.out), atomic_load(&at_client.in));
    ends_end(&world);
    free(bytes);
}

TEST(what_the_connections_of_a_listener_read_and_write_is_counted)
{
    struct world world = {.done = ends_both_closed, .small_buffers = 4096};
    const size_t len = 300 * 1000;
    struct fl_traffic traffic = {0};
    uint8_t *bytes = ends_random_bytes(len);
    uint64_t in;
    uint64_t out;

    ends_begin(&world, "127.0.0.1:0");
    fl_listener_count(world.listener, &traffic);
    world.end[CLIENT].out = bytes;
    world.end[CLIENT].out_len = len;
    world.end[CLIENT].close_in = "on_wake";
    world.end[CLIENT].flush = true;
    world.end[0].echo = true;
    world.end[0].in = malloc(len);
    world.end[0].in_cap = len;
    world.end[CLIENT].in = malloc(len);
    world.end[CLIENT].in_cap = len;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.end[0].in_len, len);
    in = atomic_load(&traffic.in);
    out = atomic_load(&traffic.out);
    if (ends_filter == NULL) {
        ck_assert_uint_eq(in, len);
        /* A write that waits when the connection closes may be taken in part, and is not reported.
         */
        ck_assert_uint_ge(out, world.end[0].sent);
        ck_assert_uint_le(out, len);
    } else { /* with its records */
        ck_assert_uint_gt(in, len);
        ck_assert_uint_lt(in, len + 5000);
        ck_assert_uint_gt(out, world.end[0].sent);
    }
    ends_end(&world);
    free(bytes);
}

static bool has_begun(struct world *world)
{
    return world->end[0].in_len > 0;
}

static bool first_closed(struct world *world)
{
    return world->end[0].closed > 0;
}

static bool woken_often(struct world *world)
{
    return world->end[0].woken == 11;
}

static void flush_close_later(void *arg)
{
    struct end *end = arg;

    fl_stream_close_flushed(end->stream, 50);
}

static void close_flushed_when_accepted(struct world *world)
{
    struct fl_timer *timer = NULL;

    ck_assert_int_eq(fl_timer_create(world->loop, flush_close_later, &world->end[0], &timer),
                     FL_OK);
    fl_timer_start(timer, 10);
    fl_loop_run(world->loop);
    fl_timer_close(timer);
}

TEST_CASE("plain", NULL, NULL);

TEST(a_peer_that_never_reads_cannot_hold_a_flushed_close)
{
    struct world world = {.done = first_closed};
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    world.end[0].endless = true;
    close_flushed_when_accepted(&world);
    ck_assert_int_eq(world.end[0].code, FL_ETIMEOUT);
    ck_assert_ptr_nonnull(strstr(world.end[0].text, "unsent"));
    (void)close(fd);
    ends_end(&world);
}

TEST(a_flushed_close_waits_for_the_peer_to_close_too)
{
    struct world world = {.done = first_closed};
    char got[8];
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    world.end[0].out = (const uint8_t *)"bye";
    world.end[0].out_len = 3;
    world.end[0].close_in = "on_wake";
    world.end[0].flush = true;
    while (world.end[0].sent < 3) {
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    }
    (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(read(fd, got, sizeof(got)), 3);
    ck_assert_int_eq(read(fd, got, sizeof(got)), 0);
    /* To a socket that was closed already, the second write would fail. */
    ck_assert_int_eq(write(fd, "late", 4), 4);
    ck_assert_int_eq(write(fd, "late", 4), 4);
    (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    ck_assert_uint_eq(world.end[0].closed, 0);
    ck_assert_uint_eq(world.end[0].in_len, 0);
    (void)close(fd);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.end[0].code, FL_OK);
    ends_end(&world);
}

TEST(waking_from_on_wake_gets_its_turn_without_any_event)
{
    struct world world = {.done = woken_often};
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    world.end[0].rewakes = 10;
    fl_loop_run(world.loop);
    (void)close(fd);
    ends_end(&world);
}

TEST(a_peer_that_never_closes_cannot_hold_a_flushed_close)
{
    struct world world = {.done = first_closed};
    char got[8];
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    world.end[0].out = (const uint8_t *)"bye";
    world.end[0].out_len = 3;
    /* Unread bytes at close() would turn our FIN into a reset, and "bye" might be lost. */
    ck_assert_int_eq(write(fd, "unasked", 7), 7);
    close_flushed_when_accepted(&world);
    ck_assert_int_eq(world.end[0].code, FL_OK);
    ck_assert_int_eq(read(fd, got, sizeof(got)), 3);
    ck_assert_int_eq(read(fd, got, sizeof(got)), 0);
    (void)close(fd);
    ends_end(&world);
}

TEST_CASE("any stream", NULL, NULL);

TEST(a_flushed_close_hears_the_peer_although_it_was_paused)
{
    struct world world = {.done = has_begun};

    ends_begin(&world, "127.0.0.1:0");
    world.end[CLIENT].out = (const uint8_t *)"hello";
    world.end[CLIENT].out_len = 5;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    world.done = ends_both_closed;
    fl_stream_pause(world.end[0].stream, true);
    fl_stream_close_flushed(world.end[0].stream, 60000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.end[0].code, FL_OK);
    ends_end(&world);
}

TEST_CASE("plain", NULL, NULL);

TEST(a_reset_by_the_peer_is_told)
{
    struct world world = {.done = first_closed};
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    (void)close(fd);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.end[0].code, FL_EUNAVAIL);
    ck_assert_msg(strstr(world.end[0].text, "connection reset") != NULL ||
                      strstr(world.end[0].text, "not connected") != NULL,
                  "%s", world.end[0].text);
    ends_end(&world);
}

TEST(an_orderly_end_of_the_peer_is_no_error)
{
    struct world world = {.done = first_closed};
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fd = ends_raw_client(&world);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    (void)close(fd);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.end[0].code, FL_OK);
    ck_assert_uint_eq(world.end[0].in_len, 3);
    ends_end(&world);
}

/* Fairness and backpressure. */

static bool small_one_has_all(struct world *world)
{
    return world->end[2].in_len == 5;
}

TEST_CASE("any stream", NULL, NULL);

TEST(an_endless_sender_leaves_the_others_their_turn)
{
    struct world world = {.done = small_one_has_all};

    ends_begin(&world, "127.0.0.1:0");
    world.end[CLIENT].endless = true;
    world.end[1].out = (const uint8_t *)"hello";
    world.end[1].out_len = 5;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    (void)ends_dial(&world, 2, world.address, 5000);
    fl_loop_run(world.loop);
    ck_assert_uint_gt(world.end[0].in_len, 0);
    ends_end(&world);
}

static bool got_a_lot(struct world *world)
{
    return world->end[0].in_len > 32 * 1024 * 1024;
}

TEST(one_turn_sends_no_more_than_its_share)
{
    /* A unix socket takes as much at once as its buffer is large. */
    struct world world = {.done = has_begun, .small_buffers = 16 * 1024 * 1024};
    struct end *client = &world.end[CLIENT];
    char path[64];
    size_t before;

    ends_begin(&world, ends_unix_address(path, sizeof(path)));
    client->endless = true;
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    fl_loop_run(world.loop);
    world.done = NULL;
    while (!got_a_lot(&world)) {
        before = client->sent;
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
        ck_assert_uint_le(client->sent - before, FL__TURN_BYTES + 256 * 1024);
    }
    ends_end(&world);
}

/* Turns without waiting until many of them moved no byte. */
static void run_until_stuck(struct world *world)
{
    size_t last = SIZE_MAX;
    unsigned quiet = 0;

    while (quiet < 1000) {
        (void)uv_run(&world->loop->uv, UV_RUN_NOWAIT);
        quiet = world->end[CLIENT].sent == last ? quiet + 1 : 0;
        last = world->end[CLIENT].sent;
    }
    ck_assert_uint_gt(world->end[CLIENT].socket->writing, 0);
}

TEST(a_paused_connection_gets_nothing_until_it_goes_on)
{
    struct world world = {.done = has_begun};
    size_t before;

    ends_begin(&world, "127.0.0.1:0");
    (void)ends_dial(&world, CLIENT, world.address, 5000);
    world.end[CLIENT].endless = true;
    fl_loop_run(world.loop);
    world.done = NULL;
    fl_stream_pause(world.end[0].stream, true);
    before = world.end[0].in_len;
    run_until_stuck(&world);
    ck_assert_uint_eq(world.end[0].in_len, before);
    /* A full socket does not keep on_wake away. */
    world.end[CLIENT].woken = 0;
    fl_stream_wake(world.end[CLIENT].stream);
    (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    ck_assert_uint_eq(world.end[CLIENT].woken, 1);
    ck_assert_uint_eq(world.end[0].in_len, before);
    /* However much has piled up, one turn takes its share only. */
    fl_stream_pause(world.end[0].stream, false);
    while (!got_a_lot(&world)) {
        before = world.end[0].in_len;
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
        ck_assert_uint_lt(world.end[0].in_len - before, FL__TURN_BYTES + FL__READ_BYTES);
    }
    ends_end(&world);
}

TEST_CASE("plain", NULL, NULL);

/* Reads until the peer's end, and returns the number of bytes. */
static uint64_t read_to_end(int fd)
{
    static char into[65536];
    uint64_t sum = 0;
    ssize_t n;

    while ((n = read(fd, into, sizeof(into))) > 0) {
        sum += (uint64_t)n;
    }
    ck_assert_int_eq(n, 0);
    return sum;
}

/* Closed while the socket is full: of the run that waits, the part that the kernel took counts. */
TEST_EACH(what_a_closed_connection_had_sent_is_counted, 40)
{
    struct world world = {.small_buffers = 20000};
    struct fl_traffic traffic = {0};
    uint64_t got = 0;
    unsigned turn;
    char into[3001];
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    fl_listener_count(world.listener, &traffic);
    fd = ends_raw_client(&world);
    while (world.accepted == 0) {
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    }
    world.end[0].endless = true;
    fl_stream_wake(world.end[0].stream);
    while (world.end[0].socket->writing == 0) {
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    }
    for (turn = 0; turn < 10 * (unsigned)_i; turn++) {
        ssize_t n = recv(fd, into, sizeof(into), MSG_DONTWAIT);

        got += n > 0 ? (uint64_t)n : 0;
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    }
    fl_stream_close(world.end[0].stream);
    while (world.end[0].closed == 0) {
        (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    }
    ck_assert_uint_eq(got + read_to_end(fd), atomic_load(&traffic.out));
    ck_assert_uint_eq(atomic_load(&traffic.in), 0);
    (void)close(fd);
    ends_end(&world);
}

TEST(an_idle_connection_costs_less_than_two_kib)
{
    ck_assert_uint_lt(sizeof(struct fl_conn), 2048);
}

static void take_filters(void)
{
    ends_filter = NULL;
    ends_dial_filter = NULL;
}

static struct tlsrig rig;

static void put_tls(void)
{
    tlsrig_begin(&rig);
    ends_filter = &rig.filter[TLSRIG_SERVER];
    ends_dial_filter = &rig.filter[TLSRIG_CLIENT];
}

static void end_tls(void)
{
    tlsrig_end(&rig);
    take_filters();
}

static void put_filter(void)
{
    ends_filter = &mangle_filter;
    ends_dial_filter = &mangle_filter;
}

TEST_CASE_AGAIN("any stream", "over a filter", put_filter, take_filters);
TEST_CASE_AGAIN("any stream", "over TLS", put_tls, end_tls);
