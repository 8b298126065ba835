/* Reflection, asked with protobuf-c as another tool would ask. */

#include <check.h>
#include <string.h>

#include "grpc/reflection.pb-c.h"
#include "libfl/grpc/health_reflection_impl.h"
#include "libfl/protobuf/protobuf.h"
#include "tests/lib/suites.h"

typedef Grpc__Reflection__V1alpha__ServerReflectionRequest request_msg;
typedef Grpc__Reflection__V1alpha__ServerReflectionResponse response_msg;

static const char *const services[] = {"fl.v1.Federation", "grpc.health.v1.Health", NULL};

static char text_host[] = "example.org";

/* A question by the number of its field, and its text. Free with protobuf-c. */
static response_msg *ask(int question, const char *text)
{
    request_msg request;
    response_msg *response;
    struct fl_buf out;
    struct fl_err err = {0};
    uint8_t data[512];
    size_t len;

    grpc__reflection__v1alpha__server_reflection_request__init(&request);
    request.host = text_host;
    request.message_request_case =
        (Grpc__Reflection__V1alpha__ServerReflectionRequest__MessageRequestCase)question;
    request.list_services = (char *)(uintptr_t)text;
    len = protobuf_c_message_pack(&request.base, data);
    fl_buf_init(&out, 1u << 20);
    ck_assert_msg(fl__reflect(data, len, services, &out, &err) == FL_OK, "%s", err.msg);
    response = (response_msg *)protobuf_c_message_unpack(
        &grpc__reflection__v1alpha__server_reflection_response__descriptor, NULL, out.len,
        out.data);
    ck_assert_ptr_nonnull(response);
    fl_buf_done(&out);
    /* The question comes back with the answer. */
    ck_assert_str_eq(response->valid_host, text_host);
    ck_assert_int_eq((int)response->original_request->message_request_case, question);
    return response;
}

static void done(response_msg *response)
{
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

/* The file that defines a symbol, or "" when there is none. */
static void expect_file(int question, const char *symbol, const char *file)
{
    response_msg *response = ask(question, symbol);

    if (file[0] == '\0') {
        ck_assert_msg(response->message_response_case == 7, "'%s' is there", symbol);
        ck_assert_int_eq(response->error_response->error_code, 5);
    } else {
        const ProtobufCBinaryData *first;

        ck_assert_msg(response->message_response_case == 4, "'%s' is not there", symbol);
        ck_assert_uint_ge(response->file_descriptor_response->n_file_descriptor_proto, 1);
        first = &response->file_descriptor_response->file_descriptor_proto[0];
        /* FileDescriptorProto.name is field 1 and comes first. */
        ck_assert_uint_eq(first->data[0], 0x0a);
        ck_assert_uint_eq(first->data[1], strlen(file));
        ck_assert_mem_eq(first->data + 2, file, strlen(file));
    }
    done(response);
}

TEST(services_are_listed_as_given)
{
    response_msg *response = ask(7, "");

    ck_assert_int_eq((int)response->message_response_case, 6);
    ck_assert_uint_eq(response->list_services_response->n_service, 2);
    ck_assert_str_eq(response->list_services_response->service[0]->name, "fl.v1.Federation");
    ck_assert_str_eq(response->list_services_response->service[1]->name, "grpc.health.v1.Health");
    done(response);
}

static const struct {
    const char *symbol, *file;
} symbols[] = {
    {"fl.v1.Federation", "fl/v1/federation.proto"},
    {"fl.v1.Federation.Attend", "fl/v1/federation.proto"},
    {"fl.v1.Federation.PushStatus", "fl/v1/federation.proto"},
    {"fl.v1.ClientEvent", "fl/v1/federation.proto"},
    {"fl.v1.Refused.Reason", "fl/v1/federation.proto"},
    {"fl.v1.Hello.LabelsEntry", "fl/v1/federation.proto"},
    {"fl.v1.Codec", "fl/v1/federation.proto"},
    {"fl.v1.Admin.Why", "fl/v1/admin.proto"},
    {"fl.v1.Identity.Join", "fl/v1/identity.proto"},
    {"fl.v1.Labels.LabelsEntry", "fl/v1/identity.proto"},
    {"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health.proto"},
    {"grpc.reflection.v1alpha.ServerReflection", "grpc/reflection.proto"},
    {"", ""},
    {".", ""},
    {"fl", ""},
    {"fl.v1", ""},
    {"fl.v1.", ""},
    {"fl.v1..", ""},
    {"fl.v1.Fed", ""},
    {"fl.v1.Federation.", ""},
    {"fl.v1.Federation.Nothing", ""},
    {"fl.v1.Federation.Attend.More", ""},
    {"fl.v1.Refused.Nothing", ""},
    {"fl.v1.Refused.Reason.", ""},
    {"fl.v1.ClientEvent.a.b.c.d", ""},
    {"fl.v10.Federation", ""},
    {"google.protobuf.Any", ""},
};
#define N_SYMBOLS 27

TEST_EACH(symbols_are_found_in_their_file, N_SYMBOLS)
{
    expect_file(4, symbols[_i].symbol, symbols[_i].file);
}

TEST(files_are_found_by_name)
{
    expect_file(3, "fl/v1/federation.proto", "fl/v1/federation.proto");
    expect_file(3, "grpc/health.proto", "grpc/health.proto");
    expect_file(3, "fl/v1/federation", "");
    expect_file(3, "../etc/passwd", "");
}

TEST(what_proto3_does_not_have_is_answered_too)
{
    response_msg *response = ask(6, "fl.v1.Hello");

    ck_assert_int_eq((int)response->message_response_case, 5);
    ck_assert_str_eq(response->all_extension_numbers_response->base_type_name, "fl.v1.Hello");
    ck_assert_uint_eq(response->all_extension_numbers_response->n_extension_number, 0);
    done(response);
    response = ask(6, "fl.v1.Nothing");
    ck_assert_int_eq(response->error_response->error_code, 5);
    done(response);
}

TEST(an_extension_is_not_found_and_no_question_is_unimplemented)
{
    static const struct {
        const char *bytes;
        size_t len;
        int32_t code;
    } rows[] = {{"\x2a\x00", 2, 5}, {"", 0, 12}};
    size_t i;

    for (i = 0; i < 2; i++) {
        response_msg *response;
        struct fl_buf out;

        fl_buf_init(&out, 1u << 20);
        ck_assert_int_eq(fl__reflect(rows[i].bytes, rows[i].len, services, &out, NULL), FL_OK);
        response = (response_msg *)protobuf_c_message_unpack(
            &grpc__reflection__v1alpha__server_reflection_response__descriptor, NULL, out.len,
            out.data);
        ck_assert_ptr_nonnull(response);
        ck_assert_int_eq((int)response->message_response_case, 7);
        ck_assert_int_eq(response->error_response->error_code, rows[i].code);
        done(response);
        fl_buf_done(&out);
    }
}

TEST(imports_come_with_a_file_once)
{
    struct fl__file files[FL__FILES_MAX];
    struct fl__file file;

    ck_assert(fl__desc_by_symbol("fl.v1.Federation", &file));
    ck_assert_uint_eq(fl__desc_closure(file, files), 1);
    ck_assert_ptr_eq(files[0].data, file.data);
    ck_assert(fl__desc_by_symbol("fl.v1.Admin", &file));
    ck_assert_uint_eq(fl__desc_closure(file, files), 2);
    ck_assert_ptr_eq(files[0].data, file.data);
    ck_assert_mem_eq(files[1].data + 2, "fl/v1/identity.proto", 20);
}

/* A file that imports two of ours, one of them twice, and one that is not there. */
TEST(imports_that_are_known_are_followed)
{
    static const char importing[] = "\x0a\x07"
                                    "x.proto"
                                    "\x1a\x16"
                                    "fl/v1/federation.proto"
                                    "\x1a\x11"
                                    "grpc/health.proto"
                                    "\x1a\x16"
                                    "fl/v1/federation.proto"
                                    "\x1a\x07"
                                    "y.proto";
    struct fl__file file = {(const uint8_t *)importing, sizeof(importing) - 1};
    struct fl__file files[FL__FILES_MAX];

    ck_assert_uint_eq(fl__desc_closure(file, files), 3);
    ck_assert_mem_eq(files[1].data + 2, "fl/v1/federation.proto", 22);
    ck_assert_mem_eq(files[2].data + 2, "grpc/health.proto", 17);
}

TEST(health_messages_are_read_and_written)
{
    char service[FL_NAME_MAX];
    struct fl_err err = {0};
    struct fl_buf out;
    uint8_t long_name[FL_NAME_MAX + 3] = {0x0a, 0x80, 0x01};

    ck_assert_int_eq(fl__health_request_decode("\x0a\x01x", 3, service, &err), FL_OK);
    ck_assert_str_eq(service, "x");
    ck_assert_int_eq(fl__health_request_decode(NULL, 0, service, &err), FL_OK);
    ck_assert_str_eq(service, "");
    (void)memset(long_name + 3, 'a', FL_NAME_MAX);
    ck_assert_int_eq(fl__health_request_decode(long_name, sizeof(long_name), service, &err),
                     FL_EPROTO);
    ck_assert_str_eq(err.msg, "HealthCheckRequest.service: longer than 127 bytes");
    fl_buf_init(&out, 100);
    ck_assert_int_eq(fl__health_reply_encode(FL__HEALTH_NOT_SERVING, &out), FL_OK);
    ck_assert_uint_eq(out.len, 2);
    ck_assert_mem_eq(out.data, "\x08\x02", 2);
    fl_buf_done(&out);
}
