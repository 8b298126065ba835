/* Health and reflection over a call that only records what is done to it. */

#include <check.h>
#include <string.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/grpc/health_reflection_impl.h"
#include "tests/lib/suites.h"

struct fl_call {
    const struct fl_call_handler *handler;
    void *ctx;
    struct fl_buf sent; /* the last message */
    unsigned n_sent;
    int send_result;
    bool finished;
    bool patient;
    enum fl_grpc_status status;
    char message[FL_ERR_BUF_SIZE];
};

void fl_call_set_handler(struct fl_call *call, const struct fl_call_handler *handler, void *ctx)
{
    call->handler = handler;
    call->ctx = ctx;
}

int fl_call_send(struct fl_call *call, const struct fl_piece *pieces, size_t n)
{
    ck_assert_uint_eq(n, 1);
    if (call->finished) {
        return FL_ECLOSED;
    }
    if (call->send_result != FL_OK) {
        return call->send_result;
    }
    fl_buf_clear(&call->sent);
    call->n_sent++;
    return fl_buf_add(&call->sent, pieces[0].data, pieces[0].len);
}

void fl_call_finish(struct fl_call *call, enum fl_grpc_status status, const char *message)
{
    if (call->finished) {
        return;
    }
    call->finished = true;
    call->status = status;
    ck_assert_int_eq(
        fl_str_copy(call->message, sizeof(call->message), message != NULL ? message : ""), FL_OK);
}

void fl_call_set_patient(struct fl_call *call, bool patient)
{
    call->patient = patient;
}

int __real_fl__health_request_decode(const void *data, size_t len, char service[FL_NAME_MAX],
                                     struct fl_err *err);
int __wrap_fl__health_request_decode(const void *data, size_t len, char service[FL_NAME_MAX],
                                     struct fl_err *err);

static bool no_memory;

int __wrap_fl__health_request_decode(const void *data, size_t len, char service[FL_NAME_MAX],
                                     struct fl_err *err)
{
    return no_memory ? fl_err_set(err, FL_ENOMEM, "as the test wants it")
                     : __real_fl__health_request_decode(data, len, service, err);
}

static const char *const offered[] = {"fl.v1.Federation", NULL};
static struct fl_grpc_builtin *builtin;
static struct fl_rpc_method methods[4];

static void setup(void)
{
    ck_assert_int_eq(fl_grpc_builtin_create(offered, &builtin), FL_OK);
    ck_assert_uint_eq(fl_grpc_builtin_methods(builtin, methods), 4);
}

static void teardown(void)
{
    fl_grpc_builtin_free(builtin);
}

static void start(struct fl_call *call, const char *path)
{
    size_t i;

    *call = (struct fl_call){0};
    fl_buf_init(&call->sent, 1u << 20);
    for (i = 0; i < 4 && strcmp(methods[i].path, path) != 0; i++) {
    }
    ck_assert_uint_lt(i, 4);
    methods[i].start(call, methods[i].ctx);
    ck_assert_ptr_nonnull(call->handler);
}

static void stop(struct fl_call *call)
{
    call->handler->on_closed(call, call->ctx, FL_GRPC_CANCELLED, "");
    fl_buf_done(&call->sent);
}

/* A message with one text in field `number`. */
static void ask(struct fl_call *call, unsigned number, const char *text)
{
    uint8_t data[128];
    size_t len = strlen(text);

    data[0] = (uint8_t)(number << 3 | 2);
    data[1] = (uint8_t)len;
    (void)memcpy(data + 2, text, len);
    ck_assert(call->handler->on_message(call, call->ctx, data, len + 2));
}

static bool sent_text(const struct fl_call *call, const char *text)
{
    return memmem(call->sent.data, call->sent.len, text, strlen(text)) != NULL;
}

static int sent_health(const struct fl_call *call)
{
    return call->sent.len == 2 && call->sent.data[0] == 0x08 ? call->sent.data[1] : -1;
}

TEST_CASE("builtin", setup, teardown);

TEST(check_answers_for_the_server_and_each_service)
{
    static const char *const names[] = {"", "fl.v1.Federation", "grpc.health.v1.Health",
                                        "grpc.reflection.v1alpha.ServerReflection"};
    size_t i;

    for (i = 0; i < 4; i++) {
        struct fl_call call;

        start(&call, "/grpc.health.v1.Health/Check");
        ask(&call, 1, names[i]);
        ck_assert_int_eq(sent_health(&call), FL__HEALTH_SERVING);
        call.handler->on_end(&call, call.ctx);
        ck_assert_int_eq(call.status, FL_GRPC_OK);
        stop(&call);
    }
}

TEST(check_of_an_unknown_service_is_not_found)
{
    struct fl_call call;

    start(&call, "/grpc.health.v1.Health/Check");
    ask(&call, 1, "fl.v1.Nothing");
    ck_assert_int_eq(call.status, FL_GRPC_NOT_FOUND);
    ck_assert_uint_eq(call.n_sent, 0);
    stop(&call);
}

TEST_EACH(a_call_that_ends_without_a_request_is_invalid, 2)
{
    static const char *const paths[] = {"/grpc.health.v1.Health/Check",
                                        "/grpc.health.v1.Health/Watch"};
    struct fl_call call;

    start(&call, paths[_i]);
    call.handler->on_end(&call, call.ctx);
    ck_assert_int_eq(call.status, FL_GRPC_INVALID_ARGUMENT);
    ck_assert_str_eq(call.message, "the request is missing");
    stop(&call);
}

TEST(a_request_that_does_not_decode_is_invalid)
{
    struct fl_call call;
    size_t i;

    for (i = 0; i < 4; i++) {
        start(&call, methods[i].path);
        ck_assert(call.handler->on_message(&call, call.ctx, (const uint8_t *)"\x0a\x05x", 3));
        ck_assert(call.finished);
        ck_assert_int_eq(call.status, FL_GRPC_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(call.message, "no protobuf message"));
        stop(&call);
    }
}

TEST(a_request_that_there_is_no_memory_to_decode_is_not_invalid)
{
    struct fl_call call;
    size_t i;

    no_memory = true;
    for (i = 0; i < 2; i++) {
        start(&call, methods[i].path);
        ask(&call, 1, "");
        ck_assert(call.finished);
        ck_assert_int_eq(call.status, FL_GRPC_RESOURCE_EXHAUSTED);
        ck_assert_str_eq(call.message, "as the test wants it");
        stop(&call);
    }
    no_memory = false;
}

TEST(watchers_are_told_each_change_once)
{
    struct fl_call call;
    struct fl_call other;

    start(&call, "/grpc.health.v1.Health/Watch");
    ask(&call, 1, "fl.v1.Federation");
    call.handler->on_end(&call, call.ctx);
    ck_assert(!call.finished);
    ck_assert_int_eq(sent_health(&call), FL__HEALTH_SERVING);
    start(&other, "/grpc.health.v1.Health/Watch");
    ask(&other, 1, "fl.v1.Nothing");
    ck_assert_int_eq(sent_health(&other), FL__HEALTH_SERVICE_UNKNOWN);

    fl_grpc_builtin_serving(builtin, false);
    fl_grpc_builtin_serving(builtin, false);
    ck_assert_uint_eq(call.n_sent, 2);
    ck_assert_int_eq(sent_health(&call), FL__HEALTH_NOT_SERVING);
    ck_assert_uint_eq(other.n_sent, 1);
    stop(&call);
    fl_grpc_builtin_serving(builtin, true);
    ck_assert(!other.finished);
    ask(&other, 1, "");
    ck_assert_int_eq(other.status, FL_GRPC_INVALID_ARGUMENT);
    stop(&other);
}

TEST(closed_watchers_leave_the_list_in_any_order)
{
    struct fl_call calls[3];
    size_t i;

    for (i = 0; i < 3; i++) {
        start(&calls[i], "/grpc.health.v1.Health/Watch");
        ask(&calls[i], 1, "");
    }
    stop(&calls[1]);
    fl_grpc_builtin_serving(builtin, false);
    ck_assert_uint_eq(calls[0].n_sent, 2);
    ck_assert_uint_eq(calls[2].n_sent, 2);
    stop(&calls[2]);
    stop(&calls[0]);
    fl_grpc_builtin_serving(builtin, true);
}

TEST(a_watcher_that_does_not_read_is_ended)
{
    struct fl_call call;

    start(&call, "/grpc.health.v1.Health/Watch");
    ask(&call, 1, "");
    call.send_result = FL_ELIMIT;
    fl_grpc_builtin_serving(builtin, false);
    ck_assert(call.finished);
    ck_assert_int_eq(call.status, FL_GRPC_RESOURCE_EXHAUSTED);
    ck_assert_str_eq(call.message, "the peer does not read the answers");
    stop(&call);
}

TEST_EACH(both_names_of_reflection_list_the_services, 2)
{
    static const char *const paths[] = {
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"};
    struct fl_call call;

    start(&call, paths[_i]);
    ask(&call, 7, "");
    ck_assert(sent_text(&call, "fl.v1.Federation"));
    ck_assert(sent_text(&call, "grpc.health.v1.Health"));
    ck_assert(sent_text(&call, "grpc.reflection.v1alpha.ServerReflection"));
    ask(&call, 4, "fl.v1.Federation");
    ck_assert(sent_text(&call, "fl/v1/federation.proto"));
    ck_assert_uint_eq(call.n_sent, 2);
    ck_assert(!call.finished);
    call.handler->on_end(&call, call.ctx);
    ck_assert_int_eq(call.status, FL_GRPC_OK);
    stop(&call);
}

TEST(a_service_that_the_caller_names_is_not_listed_twice)
{
    static const char *const names[] = {"grpc.health.v1.Health", NULL};
    struct fl_grpc_builtin *other = NULL;
    struct fl_rpc_method table[4];
    struct fl_call call = {0};
    size_t first;

    fl_buf_init(&call.sent, 1u << 20);
    ck_assert_int_eq(fl_grpc_builtin_create(names, &other), FL_OK);
    (void)fl_grpc_builtin_methods(other, table);
    table[2].start(&call, table[2].ctx);
    ask(&call, 7, "");
    first = call.sent.len;
    ck_assert(sent_text(&call, "grpc.health.v1.Health"));
    ck_assert(!sent_text(&call, "fl.v1.Federation"));
    ck_assert_uint_lt(first, 100);
    stop(&call);
    fl_grpc_builtin_free(other);
    fl_grpc_builtin_free(NULL);
}
