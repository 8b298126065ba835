/*
 * Decoding by protobuf-c under a memory cap, and packing into a buffer. Pure functions, any thread.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/protobuf/protobuf.h"

/* Header of every block, so that freeing returns its cost. */
union block_head {
    size_t total;
    max_align_t align;
};

static void *capped_alloc(void *ctx, size_t size)
{
    struct fl_pb_unpacked *u = ctx;
    union block_head *head;

    if (size > u->cap || sizeof(*head) > u->cap - size || u->used > u->cap - size - sizeof(*head)) {
        u->refused = true;
        return NULL;
    }
    head = malloc(sizeof(*head) + size);
    if (head == NULL) {
        u->no_memory = true;
        return NULL;
    }
    head->total = sizeof(*head) + size;
    u->used += head->total;
    return head + 1;
}

static void capped_free(void *ctx, void *p)
{
    struct fl_pb_unpacked *u = ctx;
    union block_head *head;

    if (p == NULL) {
        return;
    }
    head = (union block_head *)p - 1;
    u->used -= head->total;
    free(head);
}

/* Maximum nesting: far deeper than our messages; nothing deeper is decoded. */
#define DEEPEST 16

/*
 * protobuf-c returns a text up to its first NUL byte, which differs from the sent text: a name
 * could pass a check here and differ for other readers. Malformed bytes are left to protobuf-c's
 * decoder.
 */
static bool has_nul(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
                    unsigned depth)
{
    struct fl_pb_scan scan;
    struct fl_pb_field field;

    fl_pb_scan_init(&scan, data, len);
    while (depth < DEEPEST && fl_pb_scan_next(&scan, &field) == 1) {
        const ProtobufCFieldDescriptor *of =
            field.type == FL_PB_BYTES ? protobuf_c_message_descriptor_get_field(type, field.number)
                                      : NULL;

        if (of == NULL) {
            continue;
        }
        if (of->type == PROTOBUF_C_TYPE_STRING && memchr(field.data, 0, field.len) != NULL) {
            return true;
        }
        if (of->type == PROTOBUF_C_TYPE_MESSAGE &&
            has_nul(of->descriptor, field.data, field.len, depth + 1))
        {
            return true;
        }
    }
    return depth == DEEPEST;
}

int fl_pb_unpack_capped(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
                        size_t cap, struct fl_pb_unpacked *ret, struct fl_err *err)
{
    *ret = (struct fl_pb_unpacked){.cap = cap};
    if (has_nul(type, data, len, 0)) {
        return fl_err_set(err, FL_EPROTO, "%s: a text with a NUL byte in it", type->short_name);
    }
    ret->allocator = (ProtobufCAllocator){capped_alloc, capped_free, ret};
    ret->msg =
        protobuf_c_message_unpack(type, &ret->allocator, len, len > 0 ? data : (const uint8_t *)"");
    if (ret->msg != NULL) {
        return FL_OK;
    }
    if (ret->refused) {
        return fl_err_set(err, FL_ELIMIT,
                          "%s: %zu bytes would take more than %zu bytes of memory to decode",
                          type->short_name, len, cap);
    }
    if (ret->no_memory) { /* Not the peer's fault: the peer may send the same bytes again. */
        return fl_err_set(err, FL_ENOMEM, "%s: out of memory while decoding %zu bytes",
                          type->short_name, len);
    }
    return fl_err_set(err, FL_EPROTO, "%s: %zu bytes are no protobuf message of this type",
                      type->short_name, len);
}

int fl_pb_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len, size_t max,
                 size_t extra, struct fl_pb_unpacked *ret, struct fl_err *err)
{
    *ret = (struct fl_pb_unpacked){.cap = 0};
    if (len > max) {
        return fl_err_set(err, FL_ELIMIT, "%s: %zu bytes, at most %zu are taken", type->short_name,
                          len, max);
    }
    return fl_pb_unpack_capped(type, data, len, FL_PB_COST(len) + extra, ret, err);
}

void fl_pb_unpacked_done(struct fl_pb_unpacked *u)
{
    if (u->msg != NULL) {
        protobuf_c_message_free_unpacked(u->msg, &u->allocator);
        u->msg = NULL;
    }
}

int fl_pb_pack(const ProtobufCMessage *msg, struct fl_buf *out)
{
    size_t len = protobuf_c_message_get_packed_size(msg);
    int rv = fl_buf_reserve(out, len);

    if (rv != FL_OK || len == 0) {
        return rv;
    }
    out->len += protobuf_c_message_pack(msg, out->data + out->len);
    return FL_OK;
}
