/* The texts and queues of gRPC, without a transport. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/rpc/call.h"
#include "libfl/rpc/frame.h"
#include "libfl/rpc/headers.h"
#include "libfl/rpc/segq.h"
#include "libfl/rpc/transport.h"
#include "tests/lib/suites.h"

/* Feed `data` cut after `first` bytes and note the events: H<len>, B<run>, E. */
static void trace(const uint8_t *data, size_t len, size_t first, char *out, size_t size)
{
    struct fl_frame frame = {0};
    size_t at = 0;
    size_t end = first;

    out[0] = '\0';
    for (;;) {
        size_t used = 0;
        size_t n = strlen(out);

        switch (fl_frame_next(&frame, data + at, end - at, &used)) {
        case FL_FRAME_MORE:
            at += used;
            if (end == len) {
                (void)snprintf(out + n, size - n, "%s", fl_frame_at_boundary(&frame) ? "" : "?");
                return;
            }
            end = len;
            continue;
        case FL_FRAME_HEAD:
            (void)snprintf(out + n, size - n, "H%lu ", (unsigned long)frame.len);
            break;
        case FL_FRAME_BODY:
            (void)snprintf(out + n, size - n, "B%zu ", used);
            break;
        case FL_FRAME_END:
            (void)snprintf(out + n, size - n, "E ");
            break;
        }
        at += used;
    }
}

TEST(a_frame_parser_tells_heads_bodies_and_ends)
{
    static const uint8_t two[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0};
    char out[128];

    trace(two, 8, 8, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B3 E ");
    trace(two, 13, 13, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B3 E H0 E ");
    trace(two, 13, 6, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B1 B2 E H0 E ");
    trace(two, 13, 10, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B3 E H0 E ");
    /* An end of the stream anywhere but between messages is no end. */
    trace(two, 7, 7, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B2 ?");
    trace(two, 15, 15, out, sizeof(out));
    ck_assert_str_eq(out, "H3 B3 E H0 E ?");
}

TEST_EACH(a_prefix_is_parsed_as_it_was_written, 7)
{
    static const uint32_t lens[] = {0, 1, 255, 256, 65536, 0x01020304, UINT32_MAX};
    uint8_t prefix[FL_FRAME_PREFIX];
    struct fl_frame frame = {0};
    size_t used = 0;

    fl_frame_prefix(prefix, lens[_i]);
    ck_assert_int_eq(fl_frame_next(&frame, prefix, sizeof(prefix), &used), FL_FRAME_HEAD);
    ck_assert_uint_eq(used, FL_FRAME_PREFIX);
    ck_assert_uint_eq(frame.len, lens[_i]);
    ck_assert_uint_eq(frame.flags, 0);
}

TEST(a_content_type_of_grpc_may_have_a_format_or_a_parameter)
{
    static const struct {
        const char *value;
        bool ok;
    } rows[] = {
        {"application/grpc", true},
        {"application/grpc+proto", true},
        {"application/grpc;v=1", true},
        {"application/grpc+json", true},
        {"application/grpcweb", false},
        {"application/grpc-web", false},
        {"application/json", false},
        {"application/grp", false},
        {"", false},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(fl_grpc_content_type_ok(rows[i].value, strlen(rows[i].value)), rows[i].ok);
    }
}

TEST(a_message_is_percent_encoded_for_the_wire)
{
    static const struct {
        const char *plain;
        const char *coded;
    } rows[] = {
        {"", ""},           {"all fine ~", "all fine ~"},
        {"100%", "100%25"}, {"a\nb\r\tc", "a%0Ab%0D%09c"},
        {"\x7f", "%7F"},    {"\xc3\xbc \xe2\x82\xac", "%C3%BC %E2%82%AC"},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *coded = fl_grpc_message_encode(rows[i].plain);
        char *plain;

        ck_assert_str_eq(coded, rows[i].coded);
        plain = fl_grpc_message_decode(coded, strlen(coded));
        ck_assert_str_eq(plain, rows[i].plain);
        free(coded);
        free(plain);
    }
}

TEST(what_is_not_percent_encoded_is_left_as_it_is)
{
    static const struct {
        const char *coded;
        const char *plain;
    } rows[] = {{"%", "%"},
                {"%4", "%4"},
                {"%zz", "%zz"},
                {"%41%", "A%"},
                {"%4%41", "%4A"},
                {"a%00b", "a?b"},
                {"%e2%82%AC", "\xe2\x82\xac"}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *plain = fl_grpc_message_decode(rows[i].coded, strlen(rows[i].coded));

        ck_assert_str_eq(plain, rows[i].plain);
        free(plain);
    }
}

TEST(a_long_message_is_cut_between_characters)
{
    char text[3001];
    char *coded;
    char *plain;
    size_t len;

    (void)memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    /* The limit of 1024 bytes falls into the middle of a character of three bytes. */
    (void)memcpy(text + 1022, "\xe2\x82\xac", 3);
    coded = fl_grpc_message_encode(text);
    plain = fl_grpc_message_decode(coded, strlen(coded));
    len = strlen(plain);
    ck_assert_uint_eq(len, 1022);
    ck_assert_mem_eq(plain, text, len);
    free(coded);
    free(plain);
}

TEST(a_status_is_one_of_seventeen_numbers)
{
    ck_assert_int_eq(fl_grpc_status_parse("0", 1), FL_GRPC_OK);
    ck_assert_int_eq(fl_grpc_status_parse("16", 2), FL_GRPC_UNAUTHENTICATED);
    ck_assert_int_eq(fl_grpc_status_parse("17", 2), FL_GRPC_UNKNOWN);
    ck_assert_int_eq(fl_grpc_status_parse("-1", 2), FL_GRPC_UNKNOWN);
    ck_assert_int_eq(fl_grpc_status_parse("", 0), FL_GRPC_UNKNOWN);
    ck_assert_int_eq(fl_grpc_status_parse("000", 3), FL_GRPC_UNKNOWN);
    ck_assert_str_eq(fl_grpc_status_name(FL_GRPC_DATA_LOSS), "DATA_LOSS");
}

TEST(every_error_has_a_status)
{
#define X(name, num, text) \
    ck_assert_msg(fl_grpc_status_from_err(name) != FL_GRPC_UNKNOWN, "no status for " #name);
    FL_ERR_MAP(X)
#undef X
    ck_assert_int_eq(fl_grpc_status_from_err(FL_OK), FL_GRPC_OK);
    ck_assert_int_eq(fl_grpc_status_from_err(FL_EUNAVAIL), FL_GRPC_UNAVAILABLE);
}

TEST(http_statuses_map_as_the_grpc_documents_say)
{
    ck_assert_int_eq(fl_grpc_status_from_http(400), FL_GRPC_INTERNAL);
    ck_assert_int_eq(fl_grpc_status_from_http(401), FL_GRPC_UNAUTHENTICATED);
    ck_assert_int_eq(fl_grpc_status_from_http(403), FL_GRPC_PERMISSION_DENIED);
    ck_assert_int_eq(fl_grpc_status_from_http(404), FL_GRPC_UNIMPLEMENTED);
    ck_assert_int_eq(fl_grpc_status_from_http(429), FL_GRPC_UNAVAILABLE);
    ck_assert_int_eq(fl_grpc_status_from_http(503), FL_GRPC_UNAVAILABLE);
    ck_assert_int_eq(fl_grpc_status_from_http(200), FL_GRPC_UNKNOWN);
    ck_assert_int_eq(fl_grpc_status_from_http(418), FL_GRPC_UNKNOWN);
}

TEST(a_timeout_is_written_with_at_most_eight_digits_and_never_shortened)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {{1, "1m"},
                {99999999, "99999999m"},
                {100000000, "100000S"},
                {100000001, "100001S"},
                {UINT64_C(100000000000), "1666667M"},
                {UINT64_MAX, "99999999H"}};
    char text[FL_GRPC_TIMEOUT_SIZE];
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 0;

        fl_grpc_timeout_format(text, rows[i].ms);
        ck_assert_str_eq(text, rows[i].text);
        ck_assert_int_eq(fl_grpc_timeout_parse(text, strlen(text), &ms), FL_OK);
        ck_assert(ms >= rows[i].ms || rows[i].ms == UINT64_MAX);
    }
}

TEST(a_timeout_is_read_in_every_unit_and_refused_otherwise)
{
    static const struct {
        const char *text;
        int code;
        uint64_t ms;
    } rows[] = {
        {"2H", FL_OK, 7200000}, {"3M", FL_OK, 180000}, {"4S", FL_OK, 4000},
        {"5m", FL_OK, 5},       {"1u", FL_OK, 1},      {"1500u", FL_OK, 2},
        {"1n", FL_OK, 1},       {"0n", FL_OK, 0},      {"99999999H", FL_OK, 359999996400000},
        {"", FL_EINVAL, 0},     {"m", FL_EINVAL, 0},   {"5", FL_EINVAL, 0},
        {"5s", FL_EINVAL, 0},   {"-5m", FL_EINVAL, 0}, {"123456789m", FL_EINVAL, 0},
        {" 5m", FL_EINVAL, 0},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 0;

        ck_assert_int_eq(fl_grpc_timeout_parse(rows[i].text, strlen(rows[i].text), &ms),
                         rows[i].code);
        ck_assert_uint_eq(ms, rows[i].ms);
    }
}

static void set_flag(void *ctx)
{
    *(bool *)ctx = true;
}

TEST(a_queue_of_runs_keeps_its_blobs_until_the_last_byte_is_dropped)
{
    struct fl_blob *blob = NULL;
    struct fl_segq a = {0};
    struct fl_segq b = {0};
    bool released = false;
    static const uint8_t bytes[] = "0123456789";
    uint32_t tag = 0;

    ck_assert_int_eq(fl_blob_wrap(bytes, 10, set_flag, &released, &blob), FL_OK);
    ck_assert_int_eq(fl_segq_reserve(&a, 2), FL_OK);
    fl_segq_push(&a, bytes, 4, blob, 7);
    fl_segq_push(&a, bytes + 4, 2, blob, 7); /* joins the first */
    ck_assert_uint_eq(a.n, 1);
    fl_segq_push(&a, bytes + 8, 2, blob, 7);
    fl_blob_unref(blob);
    ck_assert_uint_eq(a.bytes, 8);
    ck_assert_int_eq(fl_segq_move(&b, &a, 7, 9), FL_OK);
    ck_assert_uint_eq(a.bytes, 1);
    ck_assert_uint_eq(b.bytes, 7);
    ck_assert_mem_eq(fl_segq_at(&b, 0)->data, "012345", 6);
    ck_assert_mem_eq(fl_segq_at(&b, 1)->data, "8", 1);
    fl_segq_clear(&a);
    ck_assert_uint_eq(fl_segq_drop_front(&b, 100, &tag), 6);
    ck_assert_uint_eq(tag, 9);
    ck_assert(!released);
    ck_assert_uint_eq(fl_segq_drop_front(&b, 100, &tag), 1);
    ck_assert(released);
    fl_segq_done(&a);
    fl_segq_done(&b);
}

TEST(a_queue_of_runs_grows_and_wraps)
{
    struct fl_blob *blob = NULL;
    struct fl_segq q = {0};
    uint32_t tag = 0;
    size_t pushed = 0;
    size_t dropped = 0;

    ck_assert_int_eq(fl_blob_create(1000, &blob), FL_OK);
    while (pushed < 400) {
        ck_assert_int_eq(fl_segq_reserve(&q, 3), FL_OK);
        for (int i = 0; i < 3; i++) {
            fl_segq_push(&q, fl_blob_data(blob) + 2 * pushed, 1, blob, (uint32_t)pushed);
            pushed++;
        }
        for (int i = 0; i < 2; i++) {
            ck_assert_uint_eq(fl_segq_drop_front(&q, 1, &tag), 1);
            ck_assert_uint_eq(tag, dropped);
            dropped++;
        }
    }
    ck_assert_uint_eq(q.n, pushed - dropped);
    fl_segq_done(&q);
    fl_blob_unref(blob);
}

TEST(default_limits_fit_together)
{
    struct fl_rpc_limits l;

    fl_rpc_limits_default(&l);
    /* The wire contract: chunks of 1 MiB. */
    ck_assert_uint_ge(l.message_bytes, 1024 * 1024 + 4096);
    ck_assert_uint_ge(l.queue_bytes, 2 * l.message_bytes);
    ck_assert_uint_ge(l.stream_window, 2 * l.message_bytes);
    ck_assert_uint_ge(l.conn_window, 3 * l.stream_window);
    ck_assert_uint_ge(l.streams, 100);
}

/* --- a call without a transport --- */

static void transport_ignores(void *stream)
{
    (void)stream;
}

static void call_has_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *text)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)text;
}

static void start_silent(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_closed = call_has_closed};

    fl_call_set_handler(call, &handler, ctx);
}

/* A peer that has seen the end of a call may begin the next one at once. */
TEST(a_call_counts_for_its_party_until_it_closes_and_not_until_it_is_freed)
{
    static const struct fl_rpc_transport ops = {.output = transport_ignores,
                                                .due = transport_ignores};
    static const struct fl_rpc_method method = {"/t.T/Silent", FL_WHO_ANYBODY, start_silent, NULL};
    struct fl_rpc_conn conn = {.ops = &ops, .who = FL_WHO_CLIENT};
    struct fl_budget budget;
    struct fl_call *call = NULL;
    char text[128];

    fl_rpc_limits_default(&conn.limits);
    fl_budget_init(&budget, 1000, 0, NULL, NULL);
    budget.party_calls = 1;
    fl_account_open(&conn.account, &budget, 0, NULL);
    fl_account_join(&conn.account, "edge-1");
    ck_assert_int_eq(fl_call_create(&conn, NULL, /* server= */ true, "/t.T/Silent", &call), FL_OK);
    ck_assert_int_eq(fl_call_check_peer(call, &method, text, sizeof(text)), FL_GRPC_OK);
    fl_call_start(call, &method);
    ck_assert_int_eq(fl_call_check_peer(call, &method, text, sizeof(text)),
                     FL_GRPC_RESOURCE_EXHAUSTED);
    ck_assert_str_eq(text, "1 calls are open over all connections of this client, the limit");
    fl_call_closed(call, FL_GRPC_OK, "");
    ck_assert_int_eq(fl_call_check_peer(call, &method, text, sizeof(text)), FL_GRPC_OK);
    fl_call_dispatch(call);
    fl_call_free(call);
    ck_assert_uint_eq(conn.account.party->n_calls, 0);
    fl_account_close(&conn.account);
}
