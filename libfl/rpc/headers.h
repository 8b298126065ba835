#ifndef FL_RPC_HEADERS_H
#define FL_RPC_HEADERS_H

/*
 * The values of gRPC's headers: content type, grpc-timeout, grpc-status, grpc-message, and a list
 * of metadata with a limit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/rpc/call.h"

#define FL_GRPC_CONTENT_TYPE "application/grpc"

/* RFC 9113 adds this to name and value when it measures a header list. */
#define FL_HEADER_OVERHEAD 32

/* "application/grpc", also with "+proto" or followed by a parameter. */
bool fl_grpc_content_type_ok(const char *value, size_t len);

/*
 * Encodes "%" and everything but printable ASCII as %XX. Returns owned text, truncated to a sane
 * length; NULL: no memory.
 */
char *fl_grpc_message_encode(const char *text);
/*
 * The reverse, lenient: invalid %XX sequences are kept. Returns owned text without NULs; NULL: no
 * memory.
 */
char *fl_grpc_message_decode(const char *value, size_t len);

/* A grpc-status; anything but 0 … 16 is UNKNOWN. */
enum fl_grpc_status fl_grpc_status_parse(const char *value, size_t len);
enum fl_grpc_status fl_grpc_status_from_http(unsigned http_status);

/* grpc-timeout: at most eight digits and a unit. */
#define FL_GRPC_TIMEOUT_SIZE 12
void fl_grpc_timeout_format(char out[FL_GRPC_TIMEOUT_SIZE], uint64_t timeout_ms);
/* Rounds up to milliseconds. FL_EINVAL when it is no grpc-timeout. */
FL_MUST_CHECK int fl_grpc_timeout_parse(const char *value, size_t len, uint64_t *ret_ms);

#endif
