#ifndef FL_WIRE_WIRE_IMPL_H
#define FL_WIRE_WIRE_IMPL_H

/*
 * Shared inside libfl/wire: decoding under a memory cap, checks of single fields, a small arena for
 * encoding, and a scanner over raw protobuf fields. Tables of rows are in row_impl.h.
 *
 * Every check names its field ("ClientEvent.hello.client"), so that a peer's author finds the
 * place in the .proto file.
 */

#include <protobuf-c/protobuf-c.h>

#include "libfl/wire/messages.h"

/* A message decoded by protobuf-c, and its memory cap. Must not move while in use. */
struct fl__unpacked {
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
#define FL__WIRE_COST(len) (24 * (len) + 262144)

/*
 * FL_ELIMIT: longer than `max` or more than `extra` over the cost; FL_EPROTO; FL_ENOMEM.
 */
FL_MUST_CHECK int fl__wire_unpack(const ProtobufCMessageDescriptor *type, const void *data,
                                  size_t len, size_t max, size_t extra, struct fl__unpacked *ret,
                                  struct fl_err *err);
/* The same with a cap given by the caller (tests make every allocation fail once). */
FL_MUST_CHECK int fl__wire_unpack_capped(const ProtobufCMessageDescriptor *type, const void *data,
                                         size_t len, size_t cap, struct fl__unpacked *ret,
                                         struct fl_err *err);
void fl__wire_unpacked_done(struct fl__unpacked *u);
/* Append the encoding of `msg`. FL_ELIMIT, FL_ENOMEM: `out` is unchanged. */
FL_MUST_CHECK int fl__wire_pack(const ProtobufCMessage *msg, struct fl_buf *out);

/* --- where a field stands --- */

/* A field inside the message `up`; a NULL name adds nothing to the path. */
struct fl__wire_at {
    const struct fl__wire_at *up;
    const char *name;
};
/* Returns FL_EPROTO, with the path of the field in front of the text. */
FL_PRINTF(3, 4)
int fl__wire_refuse(const struct fl__wire_at *at, struct fl_err *err, const char *fmt, ...);
/* Put the path in front of what `err` says; returns `code`. */
int fl__wire_wrap(const struct fl__wire_at *at, struct fl_err *err, int code);

/* --- checks --- */

typedef int fl__wire_check(const struct fl__wire_at *at, const char *value, struct fl_err *err);
FL_MUST_CHECK fl__wire_check fl__wire_check_name;
FL_MUST_CHECK fl__wire_check fl__wire_check_optional_name;
FL_MUST_CHECK fl__wire_check fl__wire_check_pattern;
FL_MUST_CHECK fl__wire_check fl__wire_check_prefix;
FL_MUST_CHECK fl__wire_check fl__wire_check_text;
FL_MUST_CHECK fl__wire_check fl__wire_check_reason;
FL_MUST_CHECK fl__wire_check fl__wire_check_metrics;
FL_MUST_CHECK int fl__wire_check_range(const struct fl__wire_at *at, uint64_t value, uint64_t min,
                                       uint64_t max, struct fl_err *err);
FL_MUST_CHECK int fl__wire_check_count(const struct fl__wire_at *at, size_t n, size_t max,
                                       struct fl_err *err);

/* --- encoding --- */

/* Memory that lives as long as one encode; zeroed at first. */
struct fl__wire_arena {
    struct fl__arena_block *blocks;
    size_t used, size; /* of the first block */
};
void fl__arena_done(struct fl__wire_arena *arena);
/* Zeroed; NULL without memory. */
void *fl__arena_array(struct fl__wire_arena *arena, size_t n, size_t size);
/*
 * `text` as a protobuf string that every peer takes: cut at FL_WIRE_MAX_TEXT, bytes that are not
 * UTF-8 replaced by '?' (a reason may be the end of a user program's stderr). NULL is "".
 * Returns NULL without memory.
 */
char *fl__wire_clean(struct fl__wire_arena *arena, const char *text);
/* Borrowed bytes for a generated struct that only gets packed. */
ProtobufCBinaryData fl__wire_bytes(const void *data, size_t len);

/* --- raw fields --- */

enum fl__wire_type { FL__VARINT = 0, FL__FIXED64 = 1, FL__BYTES = 2, FL__FIXED32 = 5 };

struct fl__scan {
    const uint8_t *p;
    const uint8_t *end;
};

struct fl__field {
    uint32_t number;
    enum fl__wire_type type;
    uint64_t value;      /* FL__VARINT, FL__FIXED64, FL__FIXED32 */
    const uint8_t *data; /* FL__BYTES, inside the scanned bytes */
    size_t len;
};

void fl__scan_init(struct fl__scan *scan, const void *data, size_t len);
/* 1: a field, 0: the end, FL_EPROTO: no protobuf. Groups, which proto3 lacks, are refused. */
int fl__scan_next(struct fl__scan *scan, struct fl__field *ret);
/* Append a varint to `out` (room for 10 bytes); returns its length. */
size_t fl__varint_put(uint64_t value, uint8_t *out);

/* --- shared by the files of libfl/wire --- */

/* A PushMessage that holds a header. */
FL_MUST_CHECK int fl__wire_push_header_decode(const void *data, size_t len,
                                              struct fl_wire_push_header *ret, struct fl_err *err);

/* --- the built-in descriptors of proto/ --- */

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
