/* Connections of load balancers: the client of the test sends the header. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/net/balancer.h"
#include "libfl/net/balancer_header.h"
#include "tests/lib/ends.h"
#include "tests/lib/suites.h"

#define SIGNATURE     "\r\n\r\n\0\r\nQUIT\n"
#define TEXT(literal) literal, sizeof(literal) - 1

/* The header. */

static const struct {
    const char *bytes;
    size_t len;
    int rv;
    bool done;
    const char *peer;
    size_t rest;
} headers[] = {
    {TEXT(SIGNATURE "\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d\x13hello"), FL_OK, true,
     "192.0.2.7:50312", 5},
    {TEXT(SIGNATURE "\x21\x11\0\x11\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d\x13\x04\0\x02xyhello"),
     FL_OK, true, "192.0.2.7:50312", 5},
    {TEXT(SIGNATURE "\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\0\x50\x1d\x13"),
     FL_OK, true, "[2001:db8::1]:80", 0},
    {TEXT(SIGNATURE "\x20\0\0\0hello"), FL_OK, true, "", 5},
    {TEXT(SIGNATURE "\x20\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d\x13"), FL_OK, true, "",
     0},
    {TEXT(SIGNATURE "\x21\0\0\x03xyz"), FL_OK, true, "", 0},
    {TEXT(SIGNATURE "\x21\x11\0\x0c\xc0\0\x02"), FL_OK, false, "", 0},
    {TEXT(SIGNATURE), FL_OK, false, "", 0},
    {TEXT(SIGNATURE "\x21\x11\0\x0b\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d"), FL_EPROTO, false, "",
     0},
    {TEXT(SIGNATURE "\x21\x12\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d\x13"), FL_EPROTO, false,
     "", 0},                                                     /* UDP */
    {TEXT(SIGNATURE "\x11\x11\0\x0c"), FL_EPROTO, false, "", 0}, /* another version */
    {TEXT(SIGNATURE "\x22\x11\0\x0c"), FL_EPROTO, false, "", 0}, /* another command */
    {TEXT(SIGNATURE "\x21\x11\xff\xff"), FL_ELIMIT, false, "", 0},
    {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 50312 7443\r\n"), FL_EPROTO, false, "", 0},
    {TEXT("\x16\x03\x01"), FL_EPROTO, false, "", 0},
};

TEST_EACH(a_header_is_read_however_it_is_cut, ARRAY_LEN(headers))
{
    const uint8_t *bytes = (const uint8_t *)headers[_i].bytes;
    size_t cut;

    for (cut = 1; cut < 60; cut++) {
        struct fl_balancer_header h = {.done = false};
        size_t at = 0;
        int rv = FL_OK;

        while (rv == FL_OK && at < headers[_i].len && !h.done) {
            size_t n = cut < headers[_i].len - at ? cut : headers[_i].len - at;
            size_t used = 0;

            rv = fl_balancer_header_take(&h, bytes + at, n, &used);
            at += used;
        }
        ck_assert_int_eq(rv, headers[_i].rv);
        ck_assert_int_eq(h.done, headers[_i].done);
        ck_assert_str_eq(h.peer, headers[_i].peer);
        if (rv == FL_OK) {
            ck_assert_uint_eq(headers[_i].len - at, headers[_i].rest);
        }
    }
}

/* The stream. */

static struct {
    struct world world;
    struct fl_balancer *balancer;
    char notice[300];
    bool reject; /* the owner closes what it accepts */
} rig;

static void on_connection(void *ctx, struct fl_stream *stream)
{
    (void)ctx;
    fl_balancer_accept(rig.balancer, stream);
}

static void on_balanced(void *ctx, struct fl_stream *stream)
{
    (void)ctx;
    if (rig.reject) {
        fl_stream_close(stream);
        return;
    }
    ends_accept(&rig.world, stream);
}

static void on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    (void)ctx;
    ck_assert_str_eq(reason, "balancer");
    (void)snprintf(rig.notice, sizeof(rig.notice), "%s: %s", peer, text);
}

static void begin(const char *from, uint32_t timeout_ms)
{
    struct fl_address_range range;

    (void)memset(&rig, 0, sizeof(rig));
    ck_assert_int_eq(fl_address_range_parse(from, &range, NULL), FL_OK);
    ends_begin(&rig.world, NULL);
    ck_assert_int_eq(fl_balancer_create(&(struct fl_balancer_setup){.loop = rig.world.loop,
                                                                    .from = &range,
                                                                    .n_from = 1,
                                                                    .timeout_ms = timeout_ms,
                                                                    .on_accept = on_balanced,
                                                                    .notice = on_notice},
                                        &rig.balancer),
                     FL_OK);
    ck_assert_int_eq(
        fl_listen(rig.world.loop, "127.0.0.1:0", on_connection, NULL, &rig.world.listener, NULL),
        FL_OK);
    (void)snprintf(rig.world.address, sizeof(rig.world.address), "127.0.0.1:%u",
                   fl_listener_port(rig.world.listener));
}

static void end(void)
{
    fl_balancer_free(rig.balancer);
    ends_end(&rig.world);
}

static struct end *send_bytes(const char *bytes, size_t len, size_t run)
{
    struct end *client = &rig.world.end[CLIENT];

    client->out = (const uint8_t *)bytes;
    client->out_len = len;
    client->run = run;
    return ends_dial(&rig.world, CLIENT, rig.world.address, 600000);
}

static bool server_has_five(struct world *world)
{
    return world->accepted > 0 && world->end[0].in_len == 5;
}

TEST(the_client_behind_a_load_balancer_is_the_peer)
{
    begin("127.0.0.0/8", 600000);
    rig.world.done = server_has_five;
    (void)send_bytes(headers[0].bytes, headers[0].len, 0);
    fl_loop_run(rig.world.loop);
    ck_assert_str_eq(fl_stream_peer(rig.world.end[0].stream), "192.0.2.7:50312");
    ck_assert_ptr_null(fl_stream_identity(rig.world.end[0].stream));
    end();
}

TEST(a_check_of_the_load_balancer_keeps_its_own_address)
{
    begin("127.0.0.1", 600000);
    rig.world.done = server_has_five;
    (void)send_bytes(headers[3].bytes, headers[3].len, 1);
    fl_loop_run(rig.world.loop);
    ck_assert_int_eq(strncmp(fl_stream_peer(rig.world.end[0].stream), "127.0.0.1:", 10), 0);
    end();
}

TEST(a_header_from_elsewhere_is_data)
{
    begin("192.0.2.1", 600000);
    rig.world.done = server_has_five;
    (void)send_bytes("hello", 5, 0);
    fl_loop_run(rig.world.loop);
    ck_assert_int_eq(strncmp(fl_stream_peer(rig.world.end[0].stream), "127.0.0.1:", 10), 0);
    end();
}

TEST(a_listed_address_without_the_header_is_closed_and_told)
{
    begin("127.0.0.1", 600000);
    rig.world.done = ends_client_closed;
    (void)send_bytes("hello", 5, 0);
    fl_loop_run(rig.world.loop);
    ck_assert_uint_eq(rig.world.accepted, 0);
    ck_assert_ptr_nonnull(strstr(rig.notice, "it does not begin with a header of the PROXY"));
    ck_assert_int_eq(strncmp(rig.notice, "127.0.0.1:", 10), 0);
    end();
}

TEST(a_header_that_does_not_end_is_given_up_in_time)
{
    begin("127.0.0.1", 50);
    rig.world.done = ends_client_closed;
    (void)send_bytes(headers[0].bytes, 20, 0);
    fl_loop_run(rig.world.loop);
    ck_assert_uint_eq(rig.world.accepted, 0);
    ck_assert_ptr_nonnull(strstr(rig.notice, "did not arrive in time"));
    end();
}

TEST(an_owner_may_close_a_connection_instead_of_starting_it)
{
    begin("127.0.0.1", 600000);
    rig.reject = true;
    rig.world.done = ends_client_closed;
    (void)send_bytes(headers[0].bytes, headers[0].len, 0);
    fl_loop_run(rig.world.loop);
    ck_assert_str_eq(rig.notice, "");
    end();
}

static bool server_closed(struct world *world)
{
    return world->end[CLIENT].opened > 0 && world->end[CLIENT].sent == 20;
}

TEST(waiting_connections_are_closed_with_the_listener)
{
    begin("127.0.0.1", 600000);
    rig.world.done = server_closed;
    (void)send_bytes(headers[0].bytes, 20, 0);
    fl_loop_run(rig.world.loop);
    end();
}

TEST(what_is_sent_back_through_it_arrives_whole)
{
    size_t len = 1000003;
    uint8_t *bytes = malloc(headers[2].len + len);
    uint8_t *payload = ends_random_bytes(len);

    begin("127.0.0.1", 600000);
    (void)memcpy(bytes, headers[2].bytes, headers[2].len);
    (void)memcpy(bytes + headers[2].len, payload, len);
    rig.world.end[0].in = malloc(len);
    rig.world.end[0].in_cap = len;
    rig.world.end[0].echo = true;
    rig.world.end[CLIENT].in = malloc(headers[2].len + len);
    rig.world.end[CLIENT].in_cap = len;
    (void)send_bytes((const char *)bytes, headers[2].len + len, 777);
    while (rig.world.end[CLIENT].in_len < len) {
        (void)uv_run(&rig.world.loop->uv, UV_RUN_ONCE);
    }
    ck_assert_mem_eq(rig.world.end[CLIENT].in, payload, len);
    end();
    free(payload);
    free(bytes);
}
