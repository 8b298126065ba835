#ifndef FL_PROTOBUF_PROTOBUF_H
#define FL_PROTOBUF_PROTOBUF_H

/*
 * protobuf-c for bytes of a peer: decoding under a memory cap, packing into a fl_buf, and a scanner
 * over raw fields. Knows no message. Pure functions, any thread.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"

/* A message decoded by protobuf-c, and its memory cap. Must not move while in use. */
struct fl_pb_unpacked {
    void *msg; /* of the requested type; starts with its ProtobufCMessage */
    ProtobufCAllocator allocator;
    size_t used;
    size_t cap;
    bool refused;   /* the cap was hit */
    bool no_memory; /* malloc() failed */
};

/*
 * What decoding `len` bytes may take. Measured: the densest model that is legal (scalar tensors
 * with the shortest names) needs 20 bytes of memory a byte, a list of 4096 one-letter texts 35; a
 * hostile message could ask for 70 and more.
 */
#define FL_PB_COST(len) (24 * (len) + 262144)

/*
 * FL_ELIMIT: longer than `max` or more than `extra` over the cost; FL_EPROTO; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_pb_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
                               size_t max, size_t extra, struct fl_pb_unpacked *ret,
                               struct fl_err *err);
/* The same with a cap given by the caller (tests make every allocation fail once). */
FL_MUST_CHECK int fl_pb_unpack_capped(const ProtobufCMessageDescriptor *type, const void *data,
                                      size_t len, size_t cap, struct fl_pb_unpacked *ret,
                                      struct fl_err *err);
void fl_pb_unpacked_done(struct fl_pb_unpacked *u);
/* Append the encoding of `msg`. FL_ELIMIT, FL_ENOMEM: `out` is unchanged. */
FL_MUST_CHECK int fl_pb_pack(const ProtobufCMessage *msg, struct fl_buf *out);

/* Borrowed bytes and text for a generated struct that only gets packed: protobuf-c has no const. */
static inline ProtobufCBinaryData fl_pb_bytes(const void *data, size_t len)
{
    return (ProtobufCBinaryData){.len = len, .data = (uint8_t *)(uintptr_t)data};
}
static inline char *fl_pb_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* --- raw fields --- */

enum fl_pb_field_type { FL_PB_VARINT = 0, FL_PB_FIXED64 = 1, FL_PB_BYTES = 2, FL_PB_FIXED32 = 5 };

struct fl_pb_scan {
    const uint8_t *p;
    const uint8_t *end;
};

struct fl_pb_field {
    uint32_t number;
    enum fl_pb_field_type type;
    uint64_t value;      /* FL_PB_VARINT, FL_PB_FIXED64, FL_PB_FIXED32 */
    const uint8_t *data; /* FL_PB_BYTES, inside the scanned bytes */
    size_t len;
};

void fl_pb_scan_init(struct fl_pb_scan *scan, const void *data, size_t len);
/* 1: a field, 0: the end, FL_EPROTO: no protobuf. Groups, which proto3 lacks, are refused. */
int fl_pb_scan_next(struct fl_pb_scan *scan, struct fl_pb_field *ret);
/* Append a varint to `out` (room for 10 bytes); returns its length. */
size_t fl_pb_varint_put(uint64_t value, uint8_t *out);

#endif
