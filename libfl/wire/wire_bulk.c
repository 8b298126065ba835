/*
 * Requests and replies around the transfer of payloads: Fetch, Push and PushStatus. Pure functions,
 * any thread. The rows are in messages.h, the chunks in chunk.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

/* Maximum size of these requests and replies: a few numbers and a name. */
#define SMALL_MAX 4096

static int rule_bytes(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_push_header *header = own;
    const struct fl__wire_at parts = {at, "parts"};
    const struct fl__wire_at bytes = {at, "bytes"};
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i < header->n_parts; i++) {
        if (header->parts[i].bytes > UINT64_MAX - sum) {
            return fl__wire_refuse(&parts, err, "their sum is past 2^64");
        }
        sum += header->parts[i].bytes;
    }
    return sum == header->bytes
               ? FL_OK
               : fl__wire_refuse(&bytes, err, "%" PRIu64 ", but the parts sum to %" PRIu64,
                                 header->bytes, sum);
}

static int compare_parts(const void *a, const void *b)
{
    const struct fl_wire_part *x = *(const struct fl_wire_part *const *)a;
    const struct fl_wire_part *y = *(const struct fl_wire_part *const *)b;

    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : strcmp(x->payload, y->payload);
}

/* A layer that occurs twice would be aggregated twice. */
static int rule_parts(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_push_header *header = own;
    const struct fl__wire_at field = {at, "parts"};
    const struct fl_wire_part **order;
    size_t i;
    int rv = FL_OK;

    if (header->n_parts < 2) {
        return FL_OK;
    }
    order = malloc(header->n_parts * sizeof(*order));
    if (order == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < header->n_parts; i++) {
        order[i] = &header->parts[i];
    }
    qsort(order, header->n_parts, sizeof(*order), compare_parts);
    for (i = 1; i < header->n_parts; i++) {
        if (compare_parts(&order[i - 1], &order[i]) == 0) {
            rv = fl__wire_refuse(&field, err, "unit %" PRIu32 " of '%s' is there twice",
                                 order[i]->unit, order[i]->payload);
            break;
        }
    }
    free(order);
    return rv;
}

FL__WIRE_CODEC(fetch, FetchRequest, fetch_request, SMALL_MAX)
FL__WIRE_CODEC(push_reply, PushReply, push_reply, SMALL_MAX)
FL__WIRE_TABLE(push_status_request, push_status, PushStatusRequest, push_status_request,
               .max = SMALL_MAX)
FL__WIRE_TABLE(push_status_reply, push_status, PushStatusReply, push_status_reply, .max = SMALL_MAX)
FL__WIRE_FUNCTIONS(push_status_request, push_status)
FL__WIRE_FUNCTIONS(push_status_reply, push_status)

/* --- PushMessage: its header; chunks are in chunk.c --- */

FL__WIRE_TYPE(part, Part, part)
FL__WIRE_TYPE(push_header, PushHeader, push_header)
FL__WIRE_DONE(push_header)

#define FL_WIRE_ROWS_push(X) \
    X(CASE, FL__V1__PUSH_MESSAGE__MESSAGE_HEADER, header, header, push_header)
struct fl_wire_push {
    unsigned type;
    struct fl_wire_push_header header;
};
FL__WIRE_TABLE(push, push, PushMessage, push_message, .max = FL_WIRE_CHUNK + FL_WIRE_CHUNK_HEAD,
               .unset = FL__WIRE_UNSET, .oneof = "message", .own_case = offsetof(S, type),
               .msg_case = offsetof(M, message_case))

int fl_wire_push_header_encode(const struct fl_wire_push_header *header, struct fl_buf *out)
{
    const struct fl_wire_push push = {FL__V1__PUSH_MESSAGE__MESSAGE_HEADER, *header};

    return fl__wire_encode(push_type(), &push, out);
}

int fl__wire_push_header_decode(const void *data, size_t len, struct fl_wire_push_header *ret,
                                struct fl_err *err)
{
    struct fl_wire_push push;
    int rv = fl__wire_decode(push_type(), data, len, &push, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = push.header;
    return FL_OK;
}
