/*
 * The transfer of payloads: Fetch, Push and PushStatus. Pure functions, any thread. The rows are in
 * messages.h. Chunks are encoded and decoded by hand, because protobuf-c would copy their bytes
 * each time; tests/fuzz/fuzz_wire_push.c compares this decoder with protobuf-c's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

static int rule_bytes(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_push_header *header = own;
    const struct fl_pb_at parts = {at, "parts"};
    const struct fl_pb_at bytes = {at, "bytes"};
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i < header->n_parts; i++) {
        if (header->parts[i].bytes > UINT64_MAX - sum) {
            return fl_pb_refuse(&parts, err, "their sum is past 2^64");
        }
        sum += header->parts[i].bytes;
    }
    return sum == header->bytes
               ? FL_OK
               : fl_pb_refuse(&bytes, err, "%" PRIu64 ", but the parts sum to %" PRIu64,
                              header->bytes, sum);
}

static int compare_parts(const void *a, const void *b)
{
    const struct fl_wire_part *x = *(const struct fl_wire_part *const *)a;
    const struct fl_wire_part *y = *(const struct fl_wire_part *const *)b;

    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : strcmp(x->payload, y->payload);
}

/* A layer that occurs twice would be aggregated twice. */
static int rule_parts(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_push_header *header = own;
    const struct fl_pb_at field = {at, "parts"};
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
            rv = fl_pb_refuse(&field, err, "unit %" PRIu32 " of '%s' is there twice",
                              order[i]->unit, order[i]->payload);
            break;
        }
    }
    free(order);
    return rv;
}

FL__WIRE_TABLE(push_status_request, push_status, PushStatusRequest, push_status_request,
               .max = FL_WIRE_MAX_SMALL)
FL__WIRE_TABLE(push_status_reply, push_status, PushStatusReply, push_status_reply,
               .max = FL_WIRE_MAX_SMALL)
FL__WIRE_FUNCTIONS(push_status_request, push_status)
FL__WIRE_FUNCTIONS(push_status_reply, push_status)

FL_WIRE_BULK(FL__WIRE_DEFINE)
FL__WIRE_DONE(push_header)

/* --- PushMessage: its header --- */

#define FL_WIRE_ROWS_push(X) \
    X(CASE, FL__V1__PUSH_MESSAGE__MESSAGE_HEADER, header, header, push_header)
struct fl_wire_push {
    unsigned type;
    struct fl_wire_push_header header;
};
FL__WIRE_TABLE(push, push, PushMessage, push_message, .max = FL_WIRE_CHUNK + FL_WIRE_CHUNK_HEAD,
               .unset = "neither header nor chunk is set", .oneof = "message",
               .own_case = offsetof(S, type), .msg_case = offsetof(M, message_case))

int fl_wire_push_header_encode(const struct fl_wire_push_header *header, struct fl_buf *out)
{
    const struct fl_wire_push push = {FL__V1__PUSH_MESSAGE__MESSAGE_HEADER, *header};

    return fl_pb_encode(push_type(), &push, out);
}

static int push_header_decode(const void *data, size_t len, struct fl_wire_push_header *ret,
                              struct fl_err *err)
{
    struct fl_wire_push push;
    int rv = fl_pb_decode(push_type(), data, len, &push, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = push.header;
    return FL_OK;
}

/* --- chunks --- */

#define TAG(number, type) ((uint8_t)((number) << 3 | (type)))

size_t fl_wire_chunk_head(uint64_t offset, size_t len, uint8_t *head)
{
    size_t n = 0;

    /* proto3 omits fields with the default value. */
    if (offset != 0) {
        head[n++] = TAG(1, FL_PB_VARINT);
        n += fl_pb_varint_put(offset, head + n);
    }
    if (len != 0) {
        head[n++] = TAG(2, FL_PB_BYTES);
        n += fl_pb_varint_put(len, head + n);
    }
    return n;
}

size_t fl_wire_push_chunk_head(uint64_t offset, size_t len, uint8_t *head)
{
    uint8_t inner[FL_WIRE_CHUNK_HEAD];
    size_t n_inner = fl_wire_chunk_head(offset, len, inner);
    size_t n = 0;

    head[n++] = TAG(2, FL_PB_BYTES);
    n += fl_pb_varint_put(n_inner + len, head + n);
    (void)memcpy(head + n, inner, n_inner);
    return n + n_inner;
}

/* The last value of a repeated scalar field wins. */
static int read_chunk(const void *data, size_t len, struct fl_wire_chunk *chunk)
{
    struct fl_pb_scan scan;
    struct fl_pb_field field = {0};
    int rv;

    fl_pb_scan_init(&scan, data, len);
    while ((rv = fl_pb_scan_next(&scan, &field)) == 1) {
        if (field.number == 1) {
            if (field.type != FL_PB_VARINT) {
                return FL_EPROTO;
            }
            chunk->offset = field.value;
        } else if (field.number == 2) {
            if (field.type != FL_PB_BYTES) {
                return FL_EPROTO;
            }
            chunk->data = field.data;
            chunk->len = field.len;
        }
    }
    return rv;
}

static int check_chunk(const char *name, const struct fl_wire_chunk *chunk, struct fl_err *err)
{
    if (chunk->len > FL_WIRE_CHUNK) {
        return fl_err_set(err, FL_EPROTO, "%s.data: %zu bytes, at most %u are taken", name,
                          chunk->len, FL_WIRE_CHUNK);
    }
    if (chunk->offset > UINT64_MAX - chunk->len) {
        return fl_err_set(err, FL_EPROTO, "%s.offset: the chunk ends past 2^64", name);
    }
    return FL_OK;
}

int fl_wire_chunk_decode(const void *data, size_t len, struct fl_wire_chunk *ret,
                         struct fl_err *err)
{
    struct fl_wire_chunk chunk = {0};
    int rv;

    if (read_chunk(data, len, &chunk) != FL_OK) {
        return fl_err_set(err, FL_EPROTO, "Chunk: %zu bytes are no protobuf message of this type",
                          len);
    }
    rv = check_chunk("Chunk", &chunk, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = chunk;
    return FL_OK;
}

/*
 * Finds the member of the oneof that is set, and its bytes. No encoder sets two; parsers differ in
 * how they treat that (merge or replace), so it is rejected.
 */
static int scan_push(const void *data, size_t len, struct fl_pb_field *ret_member, unsigned *ret_n)
{
    struct fl_pb_scan scan;
    struct fl_pb_field field = {0};
    int rv;

    *ret_n = 0;
    fl_pb_scan_init(&scan, data, len);
    while ((rv = fl_pb_scan_next(&scan, &field)) == 1) {
        if (field.number != 1 && field.number != 2) {
            continue;
        }
        if (field.type != FL_PB_BYTES) {
            return FL_EPROTO;
        }
        *ret_member = field;
        ++*ret_n;
    }
    return rv;
}

int fl_wire_push_decode(const void *data, size_t len, bool *ret_is_header,
                        struct fl_wire_push_header *ret_header, struct fl_wire_chunk *ret_chunk,
                        struct fl_err *err)
{
    struct fl_wire_chunk chunk = {0};
    struct fl_pb_field member = {0};
    unsigned n = 0;
    int rv;

    if (scan_push(data, len, &member, &n) != FL_OK ||
        (member.number == 2 && read_chunk(member.data, member.len, &chunk) != FL_OK))
    {
        return fl_err_set(err, FL_EPROTO,
                          "PushMessage: %zu bytes are no protobuf message of this type", len);
    }
    if (n != 1) {
        return fl_err_set(err, FL_EPROTO,
                          n == 0 ? "PushMessage.message: neither header nor chunk is set"
                                 : "PushMessage.message: is set more than once");
    }
    rv = member.number == 1 ? push_header_decode(data, len, ret_header, err)
                            : check_chunk("PushMessage.chunk", &chunk, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_is_header = member.number == 1;
    if (member.number == 2) {
        *ret_chunk = chunk;
    }
    return FL_OK;
}
