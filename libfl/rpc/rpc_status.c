#include "libfl/base/err.h"
#include "libfl/rpc/call.h"
#include "libfl/rpc/headers.h"

const char *fl_grpc_status_name(enum fl_grpc_status status)
{
    static const char *const names[] = {
        [FL_GRPC_OK] = "OK",
        [FL_GRPC_CANCELLED] = "CANCELLED",
        [FL_GRPC_UNKNOWN] = "UNKNOWN",
        [FL_GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [FL_GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [FL_GRPC_NOT_FOUND] = "NOT_FOUND",
        [FL_GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [FL_GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [FL_GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [FL_GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [FL_GRPC_ABORTED] = "ABORTED",
        [FL_GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [FL_GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [FL_GRPC_INTERNAL] = "INTERNAL",
        [FL_GRPC_UNAVAILABLE] = "UNAVAILABLE",
        [FL_GRPC_DATA_LOSS] = "DATA_LOSS",
        [FL_GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };

    return (size_t)status < sizeof(names) / sizeof(names[0]) ? names[status] : "UNKNOWN";
}

/* One table for both directions; the first row of a status is used for the reverse mapping. */
static const struct {
    int code;
    enum fl_grpc_status status;
} map[] = {
    {FL_OK, FL_GRPC_OK},
    {FL_ECANCELED, FL_GRPC_CANCELLED},
    {FL_EINVAL, FL_GRPC_INVALID_ARGUMENT},
    {FL_ESHAPE, FL_GRPC_INVALID_ARGUMENT},
    {FL_ENUMERIC, FL_GRPC_INVALID_ARGUMENT},
    {FL_EPROTO, FL_GRPC_INVALID_ARGUMENT},
    {FL_EFORMAT, FL_GRPC_INVALID_ARGUMENT},
    {FL_ETIMEOUT, FL_GRPC_DEADLINE_EXCEEDED},
    {FL_ENOENT, FL_GRPC_NOT_FOUND},
    {FL_EEXIST, FL_GRPC_ALREADY_EXISTS},
    {FL_EPERM, FL_GRPC_PERMISSION_DENIED},
    {FL_ELIMIT, FL_GRPC_RESOURCE_EXHAUSTED},
    {FL_ENOMEM, FL_GRPC_RESOURCE_EXHAUSTED},
    {FL_ENOSPC, FL_GRPC_RESOURCE_EXHAUSTED},
    {FL_ESTATE, FL_GRPC_FAILED_PRECONDITION},
    {FL_EVERSION, FL_GRPC_FAILED_PRECONDITION},
    {FL_EREFUSED, FL_GRPC_FAILED_PRECONDITION},
    {FL_EINUSE, FL_GRPC_ABORTED},
    {FL_ERANGE, FL_GRPC_OUT_OF_RANGE},
    {FL_EUNIMPL, FL_GRPC_UNIMPLEMENTED},
    {FL_EIO, FL_GRPC_INTERNAL},
    {FL_ECONF, FL_GRPC_INTERNAL},
    {FL_EUNAVAIL, FL_GRPC_UNAVAILABLE},
    {FL_EAGAIN, FL_GRPC_UNAVAILABLE},
    {FL_ECLOSED, FL_GRPC_UNAVAILABLE},
    {FL_EIO, FL_GRPC_DATA_LOSS},
    {FL_EIO, FL_GRPC_UNKNOWN},
    {FL_EPERM, FL_GRPC_UNAUTHENTICATED},
};

enum fl_grpc_status fl_grpc_status_from_err(int code)
{
    size_t i;

    for (i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        if (map[i].code == code) {
            return map[i].status;
        }
    }
    return FL_GRPC_UNKNOWN;
}

/* "HTTP to gRPC Status Code Mapping" of the gRPC documentation. */
enum fl_grpc_status fl_grpc_status_from_http(unsigned http_status)
{
    switch (http_status) {
    case 400:
        return FL_GRPC_INTERNAL;
    case 401:
        return FL_GRPC_UNAUTHENTICATED;
    case 403:
        return FL_GRPC_PERMISSION_DENIED;
    case 404:
        return FL_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return FL_GRPC_UNAVAILABLE;
    default:
        return FL_GRPC_UNKNOWN;
    }
}
