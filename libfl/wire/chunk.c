/*
 * Chunks of bulk data without a copy: encoded and decoded by hand, because protobuf-c would copy
 * their bytes each time. Pure functions, any thread. tests/fuzz/fuzz_wire_push.c compares this
 * decoder with protobuf-c's.
 */

#include <string.h>

#include "libfl/wire/wire_impl.h"

#define TAG(number, type) ((uint8_t)((number) << 3 | (type)))

size_t fl_wire_chunk_head(uint64_t offset, size_t len, uint8_t *head)
{
    size_t n = 0;

    /* proto3 omits fields with the default value. */
    if (offset != 0) {
        head[n++] = TAG(1, FL__VARINT);
        n += fl__varint_put(offset, head + n);
    }
    if (len != 0) {
        head[n++] = TAG(2, FL__BYTES);
        n += fl__varint_put(len, head + n);
    }
    return n;
}

size_t fl_wire_push_chunk_head(uint64_t offset, size_t len, uint8_t *head)
{
    uint8_t inner[FL_WIRE_CHUNK_HEAD];
    size_t n_inner = fl_wire_chunk_head(offset, len, inner);
    size_t n = 0;

    head[n++] = TAG(2, FL__BYTES);
    n += fl__varint_put(n_inner + len, head + n);
    (void)memcpy(head + n, inner, n_inner);
    return n + n_inner;
}

/* The last value of a repeated scalar field wins. */
static int read_chunk(const void *data, size_t len, struct fl_wire_chunk *chunk)
{
    struct fl__scan scan;
    struct fl__field field = {0};
    int rv;

    fl__scan_init(&scan, data, len);
    while ((rv = fl__scan_next(&scan, &field)) == 1) {
        if (field.number == 1) {
            if (field.type != FL__VARINT) {
                return FL_EPROTO;
            }
            chunk->offset = field.value;
        } else if (field.number == 2) {
            if (field.type != FL__BYTES) {
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
static int scan_push(const void *data, size_t len, struct fl__field *ret_member, unsigned *ret_n)
{
    struct fl__scan scan;
    struct fl__field field = {0};
    int rv;

    *ret_n = 0;
    fl__scan_init(&scan, data, len);
    while ((rv = fl__scan_next(&scan, &field)) == 1) {
        if (field.number != 1 && field.number != 2) {
            continue;
        }
        if (field.type != FL__BYTES) {
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
    struct fl__field member = {0};
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
    rv = member.number == 1 ? fl__wire_push_header_decode(data, len, ret_header, err)
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
