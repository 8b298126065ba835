/* Messages of the standard gRPC services: health and reflection. Pure functions, any thread. */

#include <string.h>

#include "grpc/health.pb-c.h"
#include "grpc/reflection.pb-c.h"
#include "libfl/grpc/health_reflection_impl.h"
#include "libfl/protobuf/protobuf.h"

#define REQUEST_MAX 4096

/* gRPC status numbers, as ErrorResponse carries them. */
enum { STATUS_NOT_FOUND = 5, STATUS_UNIMPLEMENTED = 12 };

typedef Grpc__Reflection__V1alpha__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1alpha__ServerReflectionResponse reflection_response;

int fl__health_request_decode(const void *data, size_t len, char service[FL_NAME_MAX],
                              struct fl_err *err)
{
    struct fl_pb_unpacked u;
    const Grpc__Health__V1__HealthCheckRequest *msg;
    int rv = fl_pb_unpack(&grpc__health__v1__health_check_request__descriptor, data, len,
                          REQUEST_MAX, 0, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Grpc__Health__V1__HealthCheckRequest *)u.msg;
    rv = fl_str_copy(service, FL_NAME_MAX, msg->service);
    if (rv != FL_OK) {
        rv = fl_err_set(err, FL_EPROTO, "HealthCheckRequest.service: longer than %d bytes",
                        FL_NAME_MAX - 1);
    }
    fl_pb_unpacked_done(&u);
    return rv;
}

int fl__health_reply_encode(enum fl__health status, struct fl_buf *out)
{
    Grpc__Health__V1__HealthCheckResponse msg;

    grpc__health__v1__health_check_response__init(&msg);
    msg.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    return fl_pb_pack(&msg.base, out);
}

/* --- reflection --- */

static int answer_error(reflection_response *response, int code, const char *text,
                        struct fl_buf *out)
{
    Grpc__Reflection__V1alpha__ErrorResponse error;

    grpc__reflection__v1alpha__error_response__init(&error);
    error.error_code = code;
    error.error_message = fl_pb_text(text);
    response->message_response_case =
        GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    response->error_response = &error;
    return fl_pb_pack(&response->base, out);
}

static int answer_files(reflection_response *response, struct fl__file file, struct fl_buf *out)
{
    struct fl__file files[FL__FILES_MAX];
    ProtobufCBinaryData list[FL__FILES_MAX];
    Grpc__Reflection__V1alpha__FileDescriptorResponse msg;
    size_t i;

    grpc__reflection__v1alpha__file_descriptor_response__init(&msg);
    msg.n_file_descriptor_proto = fl__desc_closure(file, files);
    msg.file_descriptor_proto = list;
    for (i = 0; i < msg.n_file_descriptor_proto; i++) {
        list[i] = fl_pb_bytes(files[i].data, files[i].len);
    }
    response->message_response_case =
        GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    response->file_descriptor_response = &msg;
    return fl_pb_pack(&response->base, out);
}

static int answer_services(reflection_response *response, const char *const *services,
                           struct fl_buf *out)
{
    Grpc__Reflection__V1alpha__ListServiceResponse msg;
    Grpc__Reflection__V1alpha__ServiceResponse entries[FL__FILES_MAX];
    Grpc__Reflection__V1alpha__ServiceResponse *list[FL__FILES_MAX];
    size_t n;

    /* No server offers more services than there are files. */
    for (n = 0; services[n] != NULL && n < FL__FILES_MAX; n++) {
        grpc__reflection__v1alpha__service_response__init(&entries[n]);
        entries[n].name = fl_pb_text(services[n]);
        list[n] = &entries[n];
    }
    grpc__reflection__v1alpha__list_service_response__init(&msg);
    msg.n_service = n;
    msg.service = list;
    response->message_response_case =
        GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    response->list_services_response = &msg;
    return fl_pb_pack(&response->base, out);
}

/* proto3 has no extensions: an empty list for every known type. */
static int answer_extensions(reflection_response *response, const char *type, struct fl_buf *out)
{
    Grpc__Reflection__V1alpha__ExtensionNumberResponse msg;
    struct fl__file file;

    if (!fl__desc_by_symbol(type, &file)) {
        return answer_error(response, STATUS_NOT_FOUND, "no such type", out);
    }
    grpc__reflection__v1alpha__extension_number_response__init(&msg);
    msg.base_type_name = fl_pb_text(type);
    response->message_response_case =
        GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    response->all_extension_numbers_response = &msg;
    return fl_pb_pack(&response->base, out);
}

static int reflection_answer(const reflection_request *request, reflection_response *response,
                             const char *const *services, struct fl_buf *out)
{
    struct fl__file file;

    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        if (fl__desc_by_name(request->file_by_filename, strlen(request->file_by_filename), &file)) {
            return answer_files(response, file, out);
        }
        return answer_error(response, STATUS_NOT_FOUND, "no such file", out);
    case GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        if (fl__desc_by_symbol(request->file_containing_symbol, &file)) {
            return answer_files(response, file, out);
        }
        return answer_error(response, STATUS_NOT_FOUND, "no such symbol", out);
    case GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        return answer_error(response, STATUS_NOT_FOUND, "no such extension", out);
    case GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        return answer_extensions(response, request->all_extension_numbers_of_type, out);
    case GRPC__REFLECTION__V1ALPHA__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        return answer_services(response, services, out);
    default: /* not set, or a request of a later version */
        return answer_error(response, STATUS_UNIMPLEMENTED, "unknown or empty reflection request",
                            out);
    }
}

int fl__reflect(const void *data, size_t len, const char *const *services, struct fl_buf *out,
                struct fl_err *err)
{
    struct fl_pb_unpacked u;
    reflection_request *request;
    reflection_response response;
    int rv = fl_pb_unpack(&grpc__reflection__v1alpha__server_reflection_request__descriptor, data,
                          len, REQUEST_MAX, 0, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    request = (reflection_request *)u.msg;
    grpc__reflection__v1alpha__server_reflection_response__init(&response);
    response.valid_host = request->host;
    response.original_request = request;
    rv = reflection_answer(request, &response, services, out);
    fl_pb_unpacked_done(&u);
    return rv;
}
