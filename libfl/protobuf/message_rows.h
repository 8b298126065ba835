#ifndef FL_PROTOBUF_MESSAGE_ROWS_H
#define FL_PROTOBUF_MESSAGE_ROWS_H

/*
 * A message as a table of rows, one for each field: encoding, decoding with every check, copying
 * and freeing work through the table. A room with messages makes its tables
 * (libfl/wire/row_impl.h). Errors name the field ("ClientEvent.hello.client"), so that a peer's
 * author finds the place in the .proto file. Pure functions, any thread.
 */

#include "libfl/protobuf/protobuf.h"

/* Texts are cut at this many bytes when they are encoded, and refused above it when decoded. */
#define FL_PB_MAX_TEXT 1024

/* --- where a field stands --- */

/* A field inside the message `up`; a NULL name adds nothing to the path. */
struct fl_pb_at {
    const struct fl_pb_at *up;
    const char *name;
};
/* Returns FL_EPROTO, with the path of the field in front of the text. */
FL_PRINTF(3, 4)
int fl_pb_refuse(const struct fl_pb_at *at, struct fl_err *err, const char *fmt, ...);
/* Put the path in front of what `err` says; returns `code`. */
int fl_pb_wrap(const struct fl_pb_at *at, struct fl_err *err, int code);

/* --- checks --- */

typedef int fl_pb_check(const struct fl_pb_at *at, const char *value, struct fl_err *err);
FL_MUST_CHECK fl_pb_check fl_pb_check_name;
FL_MUST_CHECK fl_pb_check fl_pb_check_optional_name;
FL_MUST_CHECK fl_pb_check fl_pb_check_text;
FL_MUST_CHECK int fl_pb_check_range(const struct fl_pb_at *at, uint64_t value, uint64_t min,
                                    uint64_t max, struct fl_err *err);
FL_MUST_CHECK int fl_pb_check_count(const struct fl_pb_at *at, size_t n, size_t max,
                                    struct fl_err *err);

/* --- encoding --- */

/* Memory that lives as long as one encode; zeroed at first. */
struct fl_pb_arena {
    struct fl_pb_arena_block *blocks;
    size_t used, size; /* of the first block */
};
void fl_pb_arena_done(struct fl_pb_arena *arena);
/* Zeroed; NULL without memory. */
void *fl_pb_arena_array(struct fl_pb_arena *arena, size_t n, size_t size);
/*
 * `text` as a protobuf string that every peer takes: cut at FL_PB_MAX_TEXT, bytes that are not
 * UTF-8 replaced by '?' (a reason may be the end of a user program's stderr). NULL is "".
 * Returns NULL without memory.
 */
char *fl_pb_clean(struct fl_pb_arena *arena, const char *text);

/* --- rows --- */

/* A list, or bytes, of our structs: a pointer and a count beside each other. */
struct fl_pb_list {
    uint8_t *data;
    size_t len;
};

/* What one value is in our struct. */
enum fl_pb_kind {
    FL_PB_U32,
    FL_PB_U64,
    FL_PB_F32,
    FL_PB_F64,
    FL_PB_FINITE, /* a double that is finite */
    FL_PB_BOOL,
    FL_PB_YES,   /* a bool for an enum of two values: `min` is true */
    FL_PB_TEXT,  /* char * */
    FL_PB_CHARS, /* char[] */
    FL_PB_FIXED, /* uint8_t[] */
    FL_PB_OWNED, /* a pointer and a count beside each other */
    FL_PB_MASK,  /* the same, a byte for each bit */
    FL_PB_SUB,   /* the struct of a nested message */
    FL_PB_RULE,
    FL_PB_CODE
};

/* A check of what was decoded: `own` is the struct of the row list that names it. */
typedef int fl_pb_rule(const struct fl_pb_at *at, const void *own, struct fl_err *err);

/* Functions for fields that no kind of row describes; `own` and `msg` are the whole structs. */
struct fl_pb_code {
    int (*put)(struct fl_pb_arena *arena, const void *own, void *msg);
    int (*take)(const struct fl_pb_at *at, const void *msg, void *own, struct fl_err *err);
    void (*done)(void *own); /* NULL: nothing is owned */
};

struct fl_pb_message;
typedef const struct fl_pb_message *fl_pb_table(void);

struct fl_pb_row {
    enum fl_pb_kind kind;
    bool list;      /* of values of the kind: a pointer and a count beside each other */
    bool raw;       /* borrowed when encoded: not cut, not cleaned, the same in both structs */
    bool cut;       /* entries above `most` are not encoded */
    bool pairs;     /* of a map: keys are unique, at most `size` bytes of texts unless it is 0 */
    bool secret;    /* wiped */
    bool hidden;    /* errors name the field around it */
    bool flag;      /* `has` is a bool, which decoding sets */
    unsigned which; /* of a oneof: the number of the field, which our struct has too */
    const char *name;
    size_t msg, own;      /* offsets in the generated struct and in ours */
    size_t has, has_size; /* the field is sent when one of these bytes of ours is not 0 */
    size_t own_len;       /* FL_PB_FIXED: of the length; 0: it is `size` */
    size_t size;          /* FL_PB_FIXED, FL_PB_CHARS: of the member */
    uint64_t min, max;    /* of a number or a length; `max` 0: none */
    size_t least, most;   /* entries of a list */
    const char *none;     /* what is wrong with an empty list */
    const char *what;     /* FL_PB_FIXED: what has exactly `size` bytes */
    bool empty;           /* FL_PB_FIXED: none is right too */
    const char *unknown;  /* FL_PB_FIXED: with another length it is an unknown one of these */
    fl_pb_check *check;
    fl_pb_table *sub;
    fl_pb_rule *rule;
    const struct fl_pb_code *code;
};

struct fl_pb_message {
    const ProtobufCMessageDescriptor *msg;
    const struct fl_pb_row *rows;
    size_t n_rows;
    size_t size;       /* of our struct */
    size_t max, extra; /* length of a message on its own, and memory above FL_PB_COST */
    /* With rows of a oneof: what is wrong when none is set, and where the number is. */
    const char *unset, *oneof;
    size_t own_case, msg_case;
};

/* Of one value in our struct, in a list. */
static inline size_t fl_pb_row_size(const struct fl_pb_row *row)
{
    return row->kind == FL_PB_SUB     ? row->sub()->size
           : row->kind == FL_PB_OWNED ? sizeof(struct fl_pb_list)
           : row->kind == FL_PB_TEXT  ? sizeof(char *)
                                      : sizeof(uint32_t);
}

/* Encode, decode, free our struct of a type. `own` is zeroed first, and again on error. */
FL_MUST_CHECK int fl_pb_encode(const struct fl_pb_message *type, const void *own,
                               struct fl_buf *out);
FL_MUST_CHECK int fl_pb_decode(const struct fl_pb_message *type, const void *data, size_t len,
                               void *own, struct fl_err *err);
/* Wipes and zeroes `own`. */
void fl_pb_done(const struct fl_pb_message *type, void *own);
/* For struct fl_pb_code: fill a generated struct, which was initialised, or take from it. */
FL_MUST_CHECK int fl_pb_put(const struct fl_pb_message *type, struct fl_pb_arena *arena,
                            const void *own, void *msg);
FL_MUST_CHECK int fl_pb_take(const struct fl_pb_message *type, const struct fl_pb_at *at,
                             const void *msg, void *own, struct fl_err *err);

#endif
