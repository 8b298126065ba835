/* The server against foreign clients: what the gRPC specification asks, and misuse. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/callpair.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

static struct callpair pair; /* for its service */
static struct rawpeer raw;

#define MSG(text) ("\0\0\0\0" text) /* a message shorter than 256 bytes; its length leads */

static void open_raw(uint32_t window)
{
    struct fl_h2_setup setup = {.limits = pair.limits, .peer = "raw:9", .methods = pair.methods};
    struct fl_h2 *server = NULL;

    ck_assert_int_eq(fl_h2_server_create(&setup, &server), FL_OK);
    rawpeer_open(&raw, server, /* server= */ false, window);
    ck_assert(fl_h2_ready(server));
}

static void expect(const char *trace)
{
    rawpeer_run(&raw);
    ck_assert_str_eq(raw.trace, trace);
    raw.trace[0] = '\0';
}

TEST(a_reply_is_headers_data_trailers_and_nothing_more)
{
    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Echo", NULL, MSG("\3abc"), 8, true);
    expect("H200 D8 T grpc-status=0 E");
    /* No message at all. */
    (void)rawpeer_request(&raw, "/t.T/Echo", NULL, "", 0, true);
    expect("H200 T grpc-status=0 E");
    rawpeer_close(&raw);
}

TEST(messages_may_be_sent_inside_the_start)
{
    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Greet", NULL, "", 0, true);
    expect("H200 D20 T grpc-status=0 grpc-message=bye E");
    rawpeer_close(&raw);
}

TEST(a_status_that_comes_later_needs_no_empty_data_frame)
{
    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, false);
    expect("H200");
    ck_assert_str_eq(raw.request, ":status: 200\n"
                                  "content-type: application/grpc\n"
                                  "grpc-accept-encoding: identity\n");
    fl_call_finish(pair.served[0].call, FL_GRPC_ABORTED, "50%");
    expect("T grpc-status=10 grpc-message=50%25 E R0");
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_OK);
    rawpeer_close(&raw);
}

TEST(a_status_needs_no_window)
{
    callpair_init(&pair);
    open_raw(0);
    (void)rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, true);
    expect("H200");
    fl_call_finish(pair.served[0].call, FL_GRPC_OK, NULL);
    expect("T grpc-status=0 E");
    rawpeer_close(&raw);
}

TEST_EACH(a_request_must_be_grpc, 10)
{
    static const struct {
        struct rawpeer_header header;
        const char *trace;
    } rows[] = {
        {{":method", "GET"}, "H405 grpc-status=13 grpc-message=the method must be POST E"},
        {{"content-type", "application/json"},
         "H415 grpc-status=13 grpc-message=the content type must be application/grpc E"},
        {{"content-type", NULL},
         "H415 grpc-status=13 grpc-message=the content type must be application/grpc E"},
        {{"te", NULL},
         "H400 grpc-status=13 grpc-message='te: trailers' is missing; a proxy may have removed it "
         "E"},
        {{"grpc-timeout", "soon"},
         "H200 grpc-status=13 grpc-message=grpc-timeout must be one to eight digits and a unit E"},
        {{":path", "/t.T/No%thing"},
         "H200 grpc-status=12 grpc-message=unknown method /t.T/No%25thing E"},
        {{"content-type", "application/grpc+proto"}, "H200 D8 T grpc-status=0 E"},
        {{"content-type", "application/grpc;charset=utf-8"}, "H200 D8 T grpc-status=0 E"},
        {{"grpc-encoding", "gzip"}, "H200 D8 T grpc-status=0 E"}, /* allowed: not used */
        {{"x-anything", "at all"}, "H200 D8 T grpc-status=0 E"},
    };
    struct rawpeer_header extra[2] = {rows[_i].header, {NULL, NULL}};

    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Echo", extra, MSG("\3abc"), 8, true);
    expect(rows[_i].trace);
    /* The connection lives on. */
    (void)rawpeer_request(&raw, "/t.T/Echo", NULL, MSG("\3abc"), 8, true);
    expect("H200 D8 T grpc-status=0 E");
    ck_assert_uint_eq(fl_h2_calls(raw.other), 0);
    rawpeer_close(&raw);
}

TEST(a_refused_client_that_still_sends_is_told_to_stop)
{
    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/None", NULL, MSG("\3abc"), 8, false);
    expect("H200 grpc-status=12 grpc-message=unknown method /t.T/None E R0");
    rawpeer_close(&raw);
}

TEST(what_a_refused_client_sends_costs_the_connection_nothing)
{
    static const uint8_t body[20000];
    int i;

    callpair_init(&pair);
    pair.limits.message_bytes = 1;
    pair.limits.stream_window = 65535;
    pair.limits.conn_window = 65535;
    open_raw(65535);
    /* Together many times the connection's window. */
    for (i = 0; i < 50; i++) {
        (void)rawpeer_request(&raw, "/t.T/None", NULL, body, sizeof(body), false);
        expect("H200 grpc-status=12 grpc-message=unknown method /t.T/None E R0");
    }
    ck_assert_uint_eq(raw.body_at, sizeof(body));
    rawpeer_close(&raw);
}

TEST_EACH(a_message_must_be_what_its_prefix_says, 6)
{
    static const struct {
        const char *body;
        size_t len;
        const char *trace;
    } rows[] = {
        {"\1\0\0\0\3abc", 8,
         "H200 T grpc-status=12 grpc-message=compressed messages are not supported E"},
        {"\2\0\0\0\3abc", 8, "H200 T grpc-status=13 grpc-message=unknown message flags 2 E"},
        {"\0\0\0\0\4abc", 8, "H200 T grpc-status=13 grpc-message=the last message is incomplete E"},
        {"\0\0\0", 3, "H200 T grpc-status=13 grpc-message=the last message is incomplete E"},
        {"\0\0\x40\0\1x", 6,
         "H200 T grpc-status=8 grpc-message=message too large: 4194305 bytes exceed the limit of "
         "4194304 E"},
        {"\0\xff\xff\xff\xff", 5,
         "H200 T grpc-status=8 grpc-message=message too large: 4294967295 bytes exceed the limit "
         "of "
         "4194304 E"},
    };

    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Sum", NULL, rows[_i].body, rows[_i].len, true);
    expect(rows[_i].trace);
    ck_assert_uint_eq(pair.served[0].closes, 1);
    ck_assert_int_ne(pair.served[0].status, FL_GRPC_OK);
    ck_assert_uint_eq(pair.served[0].messages, 0);
    rawpeer_close(&raw);
}

TEST(peer_and_path_are_there_for_the_handler_of_a_call_with_metadata)
{
    static const struct rawpeer_header extra[] = {{"x-token", "abc"}, {"x-bin", ""}, {NULL, NULL}};
    struct fl_call *call;

    callpair_init(&pair);
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Silent", extra, "", 0, false);
    rawpeer_run(&raw);
    call = pair.served[0].call;
    ck_assert_str_eq(fl_call_path(call), "/t.T/Silent");
    ck_assert_str_eq(fl_call_peer(call), "raw:9");
    rawpeer_close(&raw);
}

TEST(headers_past_the_limit_refuse_the_call_and_past_reason_end_the_connection)
{
    char value[12000];
    struct rawpeer_header extra[] = {{"x-a", value}, {"x-b", "b"}, {"x-c", "c"}, {NULL, NULL}};

    callpair_init(&pair);
    open_raw(65535);
    (void)memset(value, 'v', sizeof(value));
    value[9000] = '\0';
    (void)rawpeer_request(&raw, "/t.T/Echo", extra, MSG("\3abc"), 8, true);
    expect("H200 grpc-status=8 grpc-message=the request's headers exceed 8192 bytes E");
    value[9000] = 'v';
    value[sizeof(value) - 1] = '\0';
    extra[1].value = value;
    extra[2].value = value;
    (void)rawpeer_request(&raw, "/t.T/Echo", extra, MSG("\3abc"), 8, true);
    rawpeer_run(&raw);
    ck_assert_int_eq(raw.code, FL_ELIMIT);
    ck_assert(fl_h2_finished(raw.other));
    ck_assert_uint_eq(pair.n_served, 0);
    rawpeer_close(&raw);
}

TEST(a_deadline_is_kept_even_when_the_client_opens_no_window)
{
    static const struct rawpeer_header extra[] = {{"grpc-timeout", "2S"}, {NULL, NULL}};

    callpair_init(&pair);
    open_raw(0);
    ck_assert_uint_eq(fl_h2_deadline(raw.other), UINT64_MAX);
    (void)rawpeer_request(&raw, "/t.T/Echo", extra, MSG("\3abc"), 8, true);
    expect("H200");
    /* The session has no clock: it wants to be told the time at once. */
    ck_assert_uint_eq(fl_h2_deadline(raw.other), 0);
    fl_h2_tick(raw.other, 500000);
    ck_assert_uint_eq(fl_h2_deadline(raw.other), 502000);
    fl_h2_tick(raw.other, 501999);
    expect("");
    ck_assert_uint_eq(pair.served[0].closes, 0);
    fl_h2_tick(raw.other, 502000);
    ck_assert_uint_eq(pair.served[0].closes, 1);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_DEADLINE_EXCEEDED);
    expect("T grpc-status=4 grpc-message=deadline exceeded E");
    ck_assert_uint_eq(fl_h2_deadline(raw.other), UINT64_MAX);
    rawpeer_close(&raw);
}

TEST(a_request_whose_headers_never_end_is_no_call_and_asks_for_no_ticks)
{
    /* A HEADERS frame without END_HEADERS, grpc-timeout in it as a literal. */
    static const char frame[] = "\0\0\x12\1\0\0\0\0\1\0\x0cgrpc-timeout\x03"
                                "10S";

    callpair_init(&pair);
    open_raw(65535);
    ck_assert_int_eq(rawpeer_bytes(&raw, frame, sizeof(frame) - 1), FL_OK);
    ck_assert_uint_eq(fl_h2_deadline(raw.other), UINT64_MAX);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 0);
    rawpeer_close(&raw);
    ck_assert_uint_eq(pair.n_served, 0);
}

TEST(a_client_that_resets_too_often_is_cut_off)
{
    unsigned i;

    callpair_init(&pair);
    pair.limits.resets = 10;
    open_raw(65535);
    for (i = 0; i < 10; i++) {
        int32_t id = rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, false);

        rawpeer_run(&raw);
        ck_assert_int_eq(nghttp2_submit_rst_stream(raw.session, 0, id, NGHTTP2_CANCEL), 0);
        rawpeer_run(&raw);
    }
    ck_assert_int_eq(raw.code, FL_OK);
    ck_assert_uint_eq(pair.n_served, 10);
    ck_assert_int_eq(pair.served[9].status, FL_GRPC_CANCELLED);
    /* A second later there is a new allowance. */
    ck_assert_uint_eq(fl_h2_deadline(raw.other), 0);
    fl_h2_tick(raw.other, 1000);
    ck_assert_uint_eq(fl_h2_deadline(raw.other), 2000);
    fl_h2_tick(raw.other, 2000);
    ck_assert_uint_eq(fl_h2_deadline(raw.other), UINT64_MAX);
    for (i = 0; i < 11; i++) {
        int32_t id = rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, false);

        rawpeer_run(&raw);
        ck_assert_int_eq(raw.code, FL_OK);
        ck_assert_int_eq(nghttp2_submit_rst_stream(raw.session, 0, id, NGHTTP2_CANCEL), 0);
        rawpeer_run(&raw);
    }
    ck_assert_int_eq(raw.code, FL_ELIMIT);
    rawpeer_close(&raw);
}

TEST(resets_after_the_answer_are_no_abuse)
{
    unsigned i;

    callpair_init(&pair);
    pair.limits.resets = 3;
    open_raw(65535);
    for (i = 0; i < 20; i++) {
        int32_t id = rawpeer_request(&raw, "/t.T/Refuse", NULL, "", 0, false);

        rawpeer_run(&raw);
        ck_assert_int_eq(nghttp2_submit_rst_stream(raw.session, 0, id, NGHTTP2_CANCEL), 0);
        rawpeer_run(&raw);
    }
    ck_assert_int_eq(raw.code, FL_OK);
    rawpeer_close(&raw);
}

static const struct {
    const char *what;
    const char *bytes;
    size_t len;
} floods[] = {
    {"pings", "\0\0\x08\6\0\0\0\0\0abcdefgh", 17},
    {"settings", "\0\0\0\4\0\0\0\0\0", 9},
    {"priorities", "\0\0\5\2\0\0\0\0\x65\0\0\0\0\x10", 14},
    {"empty data", "\0\0\0\0\0\0\0\0\1", 9},
};

TEST_EACH(frames_that_only_make_work_are_counted, 4)
{
    unsigned i;

    callpair_init(&pair);
    pair.limits.resets = 10;
    open_raw(65535);
    (void)rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, false);
    rawpeer_run(&raw);
    for (i = 0; i < 200 && rawpeer_bytes(&raw, floods[_i].bytes, floods[_i].len) == FL_OK; i++) {
        /* Whether the peer reads our answers or not makes no difference. */
        rawpeer_run(&raw);
    }
    ck_assert_msg(raw.code == FL_ELIMIT, "%s: %s", floods[_i].what, fl_strerror(raw.code));
    ck_assert_uint_ge(i, 90);
    ck_assert_uint_le(i, 110);
    rawpeer_close(&raw);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_UNAVAILABLE);
}

TEST_EACH(bytes_that_are_no_http2_end_the_connection, 3)
{
    static const char *const junk[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello",
                                       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxx"};
    struct fl_h2_setup setup;
    struct fl_h2 *server = NULL;
    struct iovec iov[4];

    callpair_init(&pair);
    setup = (struct fl_h2_setup){.limits = pair.limits, .methods = pair.methods};
    ck_assert_int_eq(fl_h2_server_create(&setup, &server), FL_OK);
    ck_assert_int_eq(fl_h2_recv(server, junk[_i], strlen(junk[_i])), FL_EPROTO);
    ck_assert_int_eq(fl_h2_recv(server, junk[_i], strlen(junk[_i])), FL_EPROTO);
    ck_assert(fl_h2_finished(server));
    ck_assert(!fl_h2_ready(server));
    /* What was to be said is still said, then the error shows. */
    while (fl_h2_output(server, iov, 1) > 0) {
        fl_h2_sent(server, iov[0].iov_len);
    }
    ck_assert_int_eq(fl_h2_output(server, iov, 4), FL_EPROTO);
    fl_h2_free(server);
}

TEST(a_frame_longer_than_announced_ends_the_connection)
{
    callpair_init(&pair);
    pair.limits.frame_bytes = 20000;
    open_raw(65535);
    ck_assert_int_eq(rawpeer_bytes(&raw, "\0\x4e\x21\0\0\0\0\0\1", 9), FL_EPROTO);
    rawpeer_close(&raw);
}

TEST(more_streams_than_announced_end_the_connection)
{
    int i;

    callpair_init(&pair);
    pair.limits.streams = 3;
    open_raw(65535);
    /* nghttp2 would hold back what our settings forbid: say it by hand. */
    for (i = 0; i < 3; i++) {
        (void)rawpeer_request(&raw, "/t.T/Silent", NULL, "", 0, false);
    }
    expect("H200 H200 H200");
    ck_assert_uint_eq(fl_h2_calls(raw.other), 3);
    /* HEADERS, END_STREAM and END_HEADERS, stream 7, one indexed ":method: POST". */
    ck_assert_int_eq(rawpeer_bytes(&raw, "\0\0\1\1\5\0\0\0\7\x83", 10), FL_EPROTO);
    ck_assert_uint_eq(fl_h2_calls(raw.other), 3);
    ck_assert_uint_eq(pair.n_served, 3);
    rawpeer_close(&raw);
}

TEST(a_client_that_reads_nothing_makes_us_hold_a_bounded_amount)
{
    const uint8_t *data = NULL;
    ssize_t n;
    unsigned i;

    callpair_init(&pair);
    open_raw(65535);
    /* Refusals are answers too; the socket takes none of them. */
    for (i = 0; i < 5000 && raw.code == FL_OK; i++) {
        (void)rawpeer_request(&raw, "/t.T/None", NULL, "", 0, true);
        while ((n = nghttp2_session_mem_send(raw.session, &data)) > 0) {
            (void)rawpeer_bytes(&raw, data, (size_t)n);
        }
    }
    ck_assert_uint_le(fl_h2_calls(raw.other), pair.limits.streams);
    rawpeer_close(&raw);
}
