#ifndef FL_GRPC_HEALTH_REFLECTION_IMPL_H
#define FL_GRPC_HEALTH_REFLECTION_IMPL_H

/*
 * Messages of grpc.health.v1 and grpc.reflection.v1alpha, and the descriptors that were built in.
 * Private to libfl/grpc. Pure functions, any thread.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/base/str.h"

/* Numbers as in HealthCheckResponse.ServingStatus. */
enum fl__health {
    FL__HEALTH_UNKNOWN,
    FL__HEALTH_SERVING,
    FL__HEALTH_NOT_SERVING,
    FL__HEALTH_SERVICE_UNKNOWN
};
FL_MUST_CHECK int fl__health_request_decode(const void *data, size_t len, char service[FL_NAME_MAX],
                                            struct fl_err *err);
FL_MUST_CHECK int fl__health_reply_encode(enum fl__health status, struct fl_buf *out);

/*
 * Answer one ServerReflectionRequest from the descriptors that were built in; every
 * valid request has an answer (possibly an ErrorResponse). `services` (NULL-terminated)
 * are the full names that this server offers.
 */
FL_MUST_CHECK int fl__reflect(const void *data, size_t len, const char *const *services,
                              struct fl_buf *out, struct fl_err *err);

/* --- the descriptors of proto/ --- */

/* The encoded FileDescriptorProto of a file, inside the constant set. */
struct fl__file {
    const uint8_t *data;
    size_t len;
};
#define FL__FILES_MAX 16

/* Finds a file by its path, such as "fl/v1/federation.proto". */
bool fl__desc_by_name(const char *name, size_t len, struct fl__file *ret);
/* Finds the file that defines a service, method, message or enum ("fl.v1.Federation.Attend"). */
bool fl__desc_by_symbol(const char *symbol, struct fl__file *ret);
/* The file and all its imports, itself first; returns their number. */
size_t fl__desc_closure(struct fl__file file, struct fl__file ret[FL__FILES_MAX]);

#endif
