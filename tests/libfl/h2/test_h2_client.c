/* The client against foreign servers: every way in which a call can end. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/callpair.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

static struct callpair pair; /* for its logs */
static struct rawpeer raw;

static void open_raw(void)
{
    struct fl_h2_setup setup;

    callpair_init(&pair);
    setup = (struct fl_h2_setup){.limits = pair.limits, .peer = "raw:9", .authority = "raw:9"};
    ck_assert_int_eq(fl_h2_client_create(&setup, &pair.client), FL_OK);
    rawpeer_open(&raw, pair.client, /* server= */ true, 65535);
    ck_assert(fl_h2_ready(pair.client));
}

static struct call_log *call_raw(uint64_t timeout_ms)
{
    struct call_log *log = callpair_call(&pair, "X", timeout_ms);

    rawpeer_run(&raw);
    return log;
}

static void expect(const struct call_log *log, enum fl_grpc_status status, const char *text)
{
    rawpeer_run(&raw);
    ck_assert_uint_eq(log->closes, 1);
    ck_assert_str_eq(fl_grpc_status_name(log->status), fl_grpc_status_name(status));
    ck_assert_str_eq(log->text, text);
    ck_assert_uint_eq(log->after_close, 0);
    ck_assert_uint_eq(fl_h2_calls(pair.client), 0);
}

TEST(a_request_has_the_headers_that_grpc_asks_for)
{
    open_raw();
    (void)call_raw(2500);
    ck_assert_str_eq(raw.request, ":method: POST\n"
                                  ":scheme: http\n"
                                  ":path: /t.T/X\n"
                                  ":authority: raw:9\n"
                                  "te: trailers\n"
                                  "content-type: application/grpc\n"
                                  "user-agent: grpc-c-fl/" PACKAGE_VERSION "\n"
                                  "grpc-timeout: 2500m\n");
    (void)call_raw(0);
    ck_assert_ptr_null(strstr(raw.request, "grpc-timeout"));
    rawpeer_close(&raw);
}

#define GRPC                               \
    {":status", "200"},                    \
    {                                      \
        "content-type", "application/grpc" \
    }

static const struct {
    struct rawpeer_header headers[8];
    enum fl_grpc_status status;
    const char *text;
} endings[] = {
    /* Trailers only. */
    {{GRPC, {"grpc-status", "5"}, {"grpc-message", "not%20here"}}, FL_GRPC_NOT_FOUND, "not here"},
    {{GRPC, {"grpc-status", "0"}}, FL_GRPC_OK, ""},
    {{GRPC, {"grpc-status", "99"}}, FL_GRPC_UNKNOWN, ""},
    {{GRPC, {"grpc-status", "x"}, {"grpc-message", "hm"}}, FL_GRPC_UNKNOWN, "hm"},
    /* No status at all. */
    {{GRPC}, FL_GRPC_UNKNOWN, "the server ended the call without a status"},
    /* A proxy answers. */
    {{{":status", "503"}, {"content-type", "text/html"}},
     FL_GRPC_UNAVAILABLE,
     "the server answered with HTTP status 503"},
    {{{":status", "404"}}, FL_GRPC_UNIMPLEMENTED, "the server answered with HTTP status 404"},
    {{{":status", "401"}}, FL_GRPC_UNAUTHENTICATED, "the server answered with HTTP status 401"},
    {{{":status", "500"}}, FL_GRPC_UNKNOWN, "the server answered with HTTP status 500"},
    {{{":status", "200"}, {"content-type", "text/html"}},
     FL_GRPC_UNKNOWN,
     "the server's answer is not gRPC"},
    /* A status counts more than the HTTP status beside it. */
    {{{":status", "415"}, {"content-type", "application/grpc"}, {"grpc-status", "13"}},
     FL_GRPC_INTERNAL,
     ""},
    {{GRPC, {"grpc-status", "0"}, {"x-y", "z"}}, FL_GRPC_OK, ""},
};
#define N_ENDINGS ((int)(sizeof(endings) / sizeof(endings[0])))

TEST_EACH(a_reply_of_headers_alone_ends_the_call, N_ENDINGS)
{
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    rawpeer_headers(&raw, raw.last_stream, endings[_i].headers, /* ends= */ true);
    expect(log, endings[_i].status, endings[_i].text);
    /* The request was not over: the server is told that nobody listens any more. */
    ck_assert_ptr_nonnull(strstr(raw.trace, " R"));
    rawpeer_close(&raw);
}

TEST(interim_responses_are_passed_over)
{
    static const struct rawpeer_header interim[] = {
        {":status", "103"}, {"link", "x"}, {NULL, NULL}};
    static const struct rawpeer_header last[] = {GRPC, {"grpc-status", "3"}, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    rawpeer_headers(&raw, raw.last_stream, interim, false);
    rawpeer_run(&raw);
    ck_assert_uint_eq(log->closes, 0);
    rawpeer_headers(&raw, raw.last_stream, last, true);
    expect(log, FL_GRPC_INVALID_ARGUMENT, "");
    rawpeer_close(&raw);
}

TEST(the_status_in_the_trailers_decides)
{
    static const struct rawpeer_header headers[] = {GRPC, {NULL, NULL}};
    static const struct rawpeer_header trailers[] = {
        {"grpc-status", "14"}, {"grpc-message", "f%C3%BCr heute"}, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    fl_call_end(log->call);
    rawpeer_reply(&raw, raw.last_stream, headers, "\0\0\0\0\0", 5, false);
    rawpeer_run(&raw);
    ck_assert_uint_eq(log->messages, 1);
    rawpeer_headers(&raw, raw.last_stream, trailers, true);
    expect(log, FL_GRPC_UNAVAILABLE, "f\xc3\xbcr heute");
    ck_assert_uint_eq(log->ends, 1);
    ck_assert_ptr_null(strstr(raw.trace, " R"));
    rawpeer_close(&raw);
}

TEST(messages_without_a_status_are_no_success)
{
    static const struct rawpeer_header headers[] = {GRPC, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    rawpeer_reply(&raw, raw.last_stream, headers, "\0\0\0\0\0", 5, true);
    expect(log, FL_GRPC_UNKNOWN, "the server ended the call without a status");
    ck_assert_uint_eq(log->messages, 1);
    rawpeer_close(&raw);
}

TEST(half_a_message_is_no_success_whatever_the_status_says)
{
    static const struct rawpeer_header headers[] = {GRPC, {NULL, NULL}};
    static const struct rawpeer_header ok[] = {{"grpc-status", "0"}, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    rawpeer_reply(&raw, raw.last_stream, headers, "\0\0\0\0\3ab", 7, false);
    rawpeer_run(&raw);
    rawpeer_headers(&raw, raw.last_stream, ok, true);
    expect(log, FL_GRPC_INTERNAL, "the server's last message is incomplete");
    ck_assert_uint_eq(log->messages, 0);
    rawpeer_close(&raw);
}

TEST_EACH(a_message_that_cannot_be_taken_resets_the_call, 2)
{
    static const struct {
        const char *body;
        enum fl_grpc_status status;
        const char *text;
    } rows[] = {
        {"\1\0\0\0\3abc", FL_GRPC_UNIMPLEMENTED, "compressed messages are not supported"},
        {"\0\0\x40\0\1xxx", FL_GRPC_RESOURCE_EXHAUSTED,
         "message too large: 4194305 bytes exceed the limit of 4194304"},
    };
    static const struct rawpeer_header headers[] = {GRPC, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    rawpeer_reply(&raw, raw.last_stream, headers, rows[_i].body, 8, false);
    expect(log, rows[_i].status, rows[_i].text);
    ck_assert_str_eq(raw.trace, "H R8");
    rawpeer_close(&raw);
}

TEST_EACH(a_reset_by_the_server_has_a_status, 8)
{
    static const struct {
        uint32_t code;
        enum fl_grpc_status status;
        const char *text;
    } rows[] = {
        {NGHTTP2_NO_ERROR, FL_GRPC_INTERNAL, "NO_ERROR"},
        {NGHTTP2_PROTOCOL_ERROR, FL_GRPC_INTERNAL, "PROTOCOL_ERROR"},
        {NGHTTP2_INTERNAL_ERROR, FL_GRPC_INTERNAL, "INTERNAL_ERROR"},
        {NGHTTP2_FLOW_CONTROL_ERROR, FL_GRPC_INTERNAL, "FLOW_CONTROL_ERROR"},
        {NGHTTP2_REFUSED_STREAM, FL_GRPC_UNAVAILABLE, "REFUSED_STREAM"},
        {NGHTTP2_CANCEL, FL_GRPC_CANCELLED, "CANCEL"},
        {NGHTTP2_ENHANCE_YOUR_CALM, FL_GRPC_RESOURCE_EXHAUSTED, "ENHANCE_YOUR_CALM"},
        {NGHTTP2_INADEQUATE_SECURITY, FL_GRPC_PERMISSION_DENIED, "INADEQUATE_SECURITY"},
    };
    struct call_log *log;

    open_raw();
    log = call_raw(0);
    ck_assert_int_eq(nghttp2_submit_rst_stream(raw.session, 0, raw.last_stream, rows[_i].code), 0);
    expect(log, rows[_i].status, rows[_i].text);
    rawpeer_close(&raw);
}

TEST(a_goaway_ends_the_calls_that_it_does_not_cover_and_lets_the_others_be)
{
    static const struct rawpeer_header ok[] = {GRPC, {"grpc-status", "0"}, {NULL, NULL}};
    struct call_log *first;
    struct call_log *second;
    struct call_log *third;

    open_raw();
    first = call_raw(0);
    second = call_raw(0);
    ck_assert_int_eq(nghttp2_submit_goaway(raw.session, 0, 1, NGHTTP2_NO_ERROR, NULL, 0), 0);
    rawpeer_run(&raw);
    ck_assert_uint_eq(second->closes, 1);
    ck_assert_int_eq(second->status, FL_GRPC_UNAVAILABLE);
    ck_assert_uint_eq(first->closes, 0);
    ck_assert_int_eq(callpair_try_call(&pair, "/t.T/X", 0, &third), FL_ECLOSED);
    ck_assert(!fl_h2_finished(pair.client));
    rawpeer_headers(&raw, 1, ok, true);
    expect(first, FL_GRPC_OK, "");
    ck_assert(fl_h2_finished(pair.client));
    rawpeer_close(&raw);
}

TEST(a_call_that_the_goaway_overtook_is_unavailable)
{
    struct call_log *log;
    const uint8_t *data = NULL;
    ssize_t n;

    open_raw();
    /* The request is submitted and not yet on the wire. */
    log = callpair_call(&pair, "X", 0);
    ck_assert_int_eq(nghttp2_submit_goaway(raw.session, 0, 0, NGHTTP2_NO_ERROR, NULL, 0), 0);
    n = nghttp2_session_mem_send(raw.session, &data);
    ck_assert_int_eq(rawpeer_bytes(&raw, data, (size_t)n), FL_OK);
    expect(log, FL_GRPC_UNAVAILABLE, "the server accepts no new calls");
    rawpeer_close(&raw);
}

TEST(the_servers_stream_limit_is_told_not_hit)
{
    nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2}};
    static const struct rawpeer_header ok[] = {GRPC, {"grpc-status", "0"}, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    ck_assert_int_eq(nghttp2_submit_settings(raw.session, 0, iv, 1), 0);
    rawpeer_run(&raw);
    (void)call_raw(0);
    (void)call_raw(0);
    ck_assert_int_eq(callpair_try_call(&pair, "/t.T/X", 0, &log), FL_EAGAIN);
    rawpeer_headers(&raw, 1, ok, true);
    rawpeer_run(&raw);
    ck_assert_int_eq(callpair_try_call(&pair, "/t.T/X", 0, &log), FL_OK);
    rawpeer_close(&raw);
}

TEST(replies_with_too_many_headers_end_the_call)
{
    char value[9000];
    struct rawpeer_header headers[] = {GRPC, {"x", value}, {NULL, NULL}};
    struct call_log *log;

    open_raw();
    (void)memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    log = call_raw(0);
    rawpeer_headers(&raw, raw.last_stream, headers, false);
    expect(log, FL_GRPC_RESOURCE_EXHAUSTED, "the reply's headers exceed 8192 bytes");
    rawpeer_close(&raw);
}

TEST(a_call_that_was_never_sent_can_be_cancelled)
{
    struct call_log *log;

    open_raw();
    log = callpair_call(&pair, "X", 0);
    fl_call_cancel(log->call);
    ck_assert_uint_eq(log->closes, 0);
    fl_h2_dispatch(pair.client);
    expect(log, FL_GRPC_CANCELLED, "cancelled locally");
    ck_assert_str_eq(raw.trace, "");
    (void)call_raw(0);
    ck_assert_str_eq(raw.trace, "H");
    rawpeer_close(&raw);
}

TEST(a_deadline_resets_the_call)
{
    struct call_log *log;

    open_raw();
    log = call_raw(300);
    ck_assert_uint_eq(fl_h2_deadline(pair.client), pair.now_ms + 300);
    fl_h2_tick(pair.client, pair.now_ms + 299);
    ck_assert_uint_eq(log->closes, 0);
    fl_h2_tick(pair.client, pair.now_ms + 300);
    expect(log, FL_GRPC_DEADLINE_EXCEEDED, "deadline exceeded");
    ck_assert_str_eq(raw.trace, "H R8");
    ck_assert_uint_eq(fl_h2_deadline(pair.client), UINT64_MAX);
    rawpeer_close(&raw);
}
