#ifndef FL_WIRE_ROW_IMPL_H
#define FL_WIRE_ROW_IMPL_H

/*
 * The rows of libfl/wire/wire_row.h as tables, and what works through them. Private to libfl/wire.
 * Types of generated members are checked by the compiler: another one does not compile.
 */

#include <string.h>

#include "libfl/wire/wire_identity.h"
#include "libfl/wire/wire_impl.h"

/* What one value is in our struct. */
enum fl__wire_kind {
    FL__U32,
    FL__U64,
    FL__F32,
    FL__F64,
    FL__FINITE, /* a double that is finite */
    FL__BOOL,
    FL__YES,   /* a bool for an enum of two values: `min` is true */
    FL__TEXT,  /* char * */
    FL__CHARS, /* char[] */
    FL__FIXED, /* uint8_t[] */
    FL__OWNED, /* struct fl_wire_bytes, or a pointer and a count beside each other */
    FL__MASK,  /* the same, a byte for each bit */
    FL__SUB,   /* the struct of a nested message */
    FL__RULE,
    FL__CODE
};

/* A check of what was decoded: `own` is the struct of the row list that names it. */
typedef int fl__wire_rule(const struct fl__wire_at *at, const void *own, struct fl_err *err);

/* Functions for fields that no kind of row describes; `own` and `msg` are the whole structs. */
struct fl__wire_code {
    int (*put)(struct fl__wire_arena *arena, const void *own, void *msg);
    int (*take)(const struct fl__wire_at *at, const void *msg, void *own, struct fl_err *err);
    void (*done)(void *own); /* NULL: nothing is owned */
};

struct fl__wire_message;
typedef const struct fl__wire_message *fl__wire_table(void);

struct fl__wire_row {
    enum fl__wire_kind kind;
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
    size_t own_len;       /* FL__FIXED: of the length; 0: it is `size` */
    size_t size;          /* FL__FIXED, FL__CHARS: of the member */
    uint64_t min, max;    /* of a number or a length; `max` 0: none */
    size_t least, most;   /* entries of a list */
    const char *none;     /* what is wrong with an empty list */
    const char *what;     /* FL__FIXED: what has exactly `size` bytes */
    bool empty, unknown;  /* FL__FIXED: none is right too; another length is an unknown session */
    fl__wire_check *check;
    fl__wire_table *sub;
    fl__wire_rule *rule;
    const struct fl__wire_code *code;
};

struct fl__wire_message {
    const ProtobufCMessageDescriptor *msg;
    const struct fl__wire_row *rows;
    size_t n_rows;
    size_t size;       /* of our struct */
    size_t max, extra; /* length of a message on its own, and memory above FL__WIRE_COST */
    /* With rows of a oneof: what is wrong when none is set, and where the number is. */
    const char *unset, *oneof;
    size_t own_case, msg_case;
};

/* Of one value in our struct, in a list. */
static inline size_t fl__row_size(const struct fl__wire_row *row)
{
    return row->kind == FL__SUB     ? row->sub()->size
           : row->kind == FL__OWNED ? sizeof(struct fl_wire_bytes)
           : row->kind == FL__TEXT  ? sizeof(char *)
                                    : sizeof(uint32_t);
}

/* Encode, decode, free our struct of a type. `own` is zeroed first, and again on error. */
FL_MUST_CHECK int fl__wire_encode(const struct fl__wire_message *type, const void *own,
                                  struct fl_buf *out);
FL_MUST_CHECK int fl__wire_decode(const struct fl__wire_message *type, const void *data, size_t len,
                                  void *own, struct fl_err *err);
/* Wipes and zeroes `own`. */
void fl__wire_done(const struct fl__wire_message *type, void *own);
/* For struct fl__wire_code: fill a generated struct, which was initialised, or take from it. */
FL_MUST_CHECK int fl__wire_put(const struct fl__wire_message *type, struct fl__wire_arena *arena,
                               const void *own, void *msg);
FL_MUST_CHECK int fl__wire_take(const struct fl__wire_message *type, const struct fl__wire_at *at,
                                const void *msg, void *own, struct fl_err *err);
/* The pairs of PAIRS and of OPTIONS. */
fl__wire_table fl__wire_label_type;
fl__wire_table fl__wire_option_type;
/* What struct fl_wire_welcome has of Unit and Tensor. */
extern const struct fl__wire_code fl__wire_layout_code;
/* Heartbeat, of both directions. */
#define FL_WIRE_ROWS_heartbeat(X) X(U64, sequence, sequence)
FL_WIRE_STRUCT(heartbeat)

/* Of the events and commands: none of those in the rows. */
#define FL__TEXT_OF(number)      #number
#define FL__VERSION_TEXT(number) FL__TEXT_OF(number)
#define FL__WIRE_UNSET \
    "none is set that version " FL__VERSION_TEXT(FL_WIRE_VERSION) " of the wire knows"

/* clang-format off */

/*
 * FL__WIRE_TABLE: the rows of `name` as a function: struct fl_wire_`own`, the generated
 * Fl__V1__`Message`, its descriptor fl__v1__`message`, limits of struct fl__wire_message.
 * FL__WIRE_TYPE: of a message inside others. FL__WIRE_CODEC, FL__WIRE_OWNER: of a message on its
 * own, with the functions that FL_WIRE_CODEC() and FL_WIRE_OWNER() declare.
 */
#define FL__WIRE_TABLE(name, own, Message, message, ...)                                           \
    typedef Fl__V1__##Message name##_message;                                                      \
    static const struct fl__wire_message *name##_type(void)                                        \
    {                                                                                              \
        typedef struct fl_wire_##own S;                                                            \
        typedef name##_message M;                                                                  \
        static const struct fl__wire_row rows[] = {FL_WIRE_ROWS_##name(FL__ROW)};                  \
        static const struct fl__wire_message type = {                                              \
            .msg = &fl__v1__##message##__descriptor, .rows = rows,                                 \
            .n_rows = sizeof(rows) / sizeof(rows[0]), .size = sizeof(S), __VA_ARGS__};             \
        return &type;                                                                              \
    }
#define FL__WIRE_TYPE(name, Message, message) FL__WIRE_TABLE(name, name, Message, message, .max = 0)
#define FL__WIRE_FUNCTIONS(name, own)                                                              \
    int fl_wire_##name##_encode(const struct fl_wire_##own *value, struct fl_buf *out)             \
    {                                                                                              \
        return fl__wire_encode(name##_type(), value, out);                                         \
    }                                                                                              \
    int fl_wire_##name##_decode(const void *data, size_t len, struct fl_wire_##own *ret,           \
                                struct fl_err *err)                                                \
    {                                                                                              \
        struct fl_wire_##own value;                                                                \
        int rv = fl__wire_decode(name##_type(), data, len, &value, err);                           \
                                                                                                   \
        if (rv != FL_OK) {                                                                         \
            return rv;                                                                             \
        }                                                                                          \
        *ret = value;                                                                              \
        return FL_OK;                                                                              \
    }
#define FL__WIRE_DONE(name)                                                                        \
    void fl_wire_##name##_done(struct fl_wire_##name *value)                                       \
    {                                                                                              \
        fl__wire_done(name##_type(), value);                                                       \
    }
#define FL__WIRE_CODEC(name, Message, message, limit)                                              \
    FL__WIRE_TABLE(name, name, Message, message, .max = limit)                                     \
    FL__WIRE_FUNCTIONS(name, name)
#define FL__WIRE_OWNER(name, Message, message, limit)                                              \
    FL__WIRE_CODEC(name, Message, message, limit)                                                  \
    FL__WIRE_DONE(name)
/* A message of one row, whose member is `value`: a number, or an array of characters. */
#define FL__WIRE_VALUE(name, type, ret_type, Message, message, limit)                              \
    struct fl_wire_##name {                                                                        \
        FL_WIRE_ROWS_##name(FL_WIRE_MEMBER)                                                        \
    };                                                                                             \
    FL__WIRE_TABLE(name, name, Message, message, .max = limit)                                     \
    int fl_wire_##name##_encode(type value, struct fl_buf *out)                                    \
    {                                                                                              \
        return fl__wire_encode(name##_type(), _Generic(value, const char *: value,                 \
                                                       default: (const void *)&value), out);       \
    }                                                                                              \
    int fl_wire_##name##_decode(const void *data, size_t len, ret_type ret, struct fl_err *err)    \
    {                                                                                              \
        struct fl_wire_##name own;                                                                 \
        int rv = fl__wire_decode(name##_type(), data, len, &own, err);                             \
                                                                                                   \
        if (rv != FL_OK) {                                                                         \
            return rv;                                                                             \
        }                                                                                          \
        (void)memcpy(ret, &own.value, sizeof(own.value));                                          \
        return FL_OK;                                                                              \
    }

/* 0 when the generated member has this type. */
#define FL__IS(field, type)  ((size_t)_Generic(((M *)0)->field, type: 0))
#define FL__HAS(member)      .has = offsetof(S, member), .has_size = sizeof(((S *)0)->member)
#define FL__ONE(kind_, member, field, type, ...)                                                   \
    {.kind = kind_, .name = #field, .msg = offsetof(M, field) + FL__IS(field, type),               \
     .own = offsetof(S, member), __VA_ARGS__},
/* protobuf-c has the count before the pointer. */
#define FL__MANY(kind_, member, field, type, ...)                                                  \
    {.kind = kind_, .list = true, .name = #field,                                                  \
     .msg = offsetof(M, field) - sizeof(size_t) + FL__IS(field, type) +                            \
            0 * sizeof(char[offsetof(M, field) - sizeof(size_t) == offsetof(M, n_##field) ? 1 : -1]), \
     .own = offsetof(S, member), __VA_ARGS__},
#define FL__ARRAY(kind_, member, field, type, ...)                                                 \
    FL__ONE(kind_, member, field, type, .size = sizeof(((S *)0)->member), __VA_ARGS__)
#define FL__BYTES_IN(member, field, ...)                                                           \
    FL__ARRAY(FL__FIXED, member, field, ProtobufCBinaryData, __VA_ARGS__)
#define FL__NESTED(field, type, ...)                                                               \
    {.kind = FL__SUB, .name = #field, .msg = offsetof(M, field) + FL__IS(field, type##_message *), \
     .sub = type##_type, __VA_ARGS__},

#define FL__ROW(kind, ...)            FL__ROW_##kind(__VA_ARGS__, )
#define FL__ROW_U32(m, f, ...)        FL__ONE(FL__U32, m, f, uint32_t, __VA_ARGS__)
#define FL__ROW_U64(m, f, ...)        FL__ONE(FL__U64, m, f, uint64_t, __VA_ARGS__)
#define FL__ROW_F64(m, f, ...)        FL__ONE(FL__F64, m, f, double, __VA_ARGS__)
#define FL__ROW_FINITE(m, f, ...)     FL__ONE(FL__FINITE, m, f, double, __VA_ARGS__)
#define FL__ROW_BOOL(m, f, ...)       FL__ONE(FL__BOOL, m, f, protobuf_c_boolean, __VA_ARGS__)
/* Enums of protobuf-c have the size of an int. */
#define FL__ROW_ENUM(m, f, type, ...) FL__ONE(FL__U32, m, f, default, __VA_ARGS__)
#define FL__ROW_YES(m, f, ...)        FL__ONE(FL__YES, m, f, default, __VA_ARGS__)
#define FL__ROW_TEXT(m, f, ...)                                                                    \
    FL__ONE(FL__TEXT, m, f, char *, .check = fl__wire_check_text, __VA_ARGS__)
#define FL__ROW_REASON(m, f, ...)                                                                  \
    FL__ONE(FL__TEXT, m, f, char *, .check = fl__wire_check_reason, __VA_ARGS__)
#define FL__ROW_SECRET_TEXT(m, f, ...)                                                             \
    FL__ONE(FL__TEXT, m, f, char *, .check = fl__wire_check_text, .raw = true, .secret = true,     \
            __VA_ARGS__)
#define FL__ROW_METRICS(m, f, ...)                                                                 \
    FL__ONE(FL__TEXT, m, f, char *, .check = fl__wire_check_metrics, .raw = true, __VA_ARGS__)
#define FL__ROW_NAME(m, f, ...)                                                                    \
    FL__ONE(FL__TEXT, m, f, char *, .check = fl__wire_check_name, .raw = true, __VA_ARGS__)
#define FL__ROW_NAME_BUF(m, f, ...)                                                                \
    FL__ARRAY(FL__CHARS, m, f, char *, .check = fl__wire_check_name, __VA_ARGS__)
#define FL__ROW_OPTIONAL_NAME(m, f, ...)                                                           \
    FL__ARRAY(FL__CHARS, m, f, char *, .check = fl__wire_check_optional_name, __VA_ARGS__)
#define FL__ROW_PATTERN(m, f, ...)                                                                 \
    FL__ARRAY(FL__CHARS, m, f, char *, .check = fl__wire_check_pattern, __VA_ARGS__)
#define FL__ROW_PREFIX(m, f, ...)                                                                  \
    FL__ARRAY(FL__CHARS, m, f, char *, .check = fl__wire_check_prefix, __VA_ARGS__)
#define FL__ROW_SESSION(m, f, ...)                                                                 \
    FL__BYTES_IN(m.id, f, .what = "a session", __VA_ARGS__)
#define FL__ROW_SESSION_TOKEN(m, f, ...)                                                           \
    FL__BYTES_IN(m.id, f, .what = "a session", .unknown = true, __VA_ARGS__)
#define FL__ROW_DIGEST(m, f, ...)                                                                  \
    FL__BYTES_IN(m, f, .what = "a SHA-256", .empty = true, FL__HAS(has_##m), .flag = true,         \
                 __VA_ARGS__)
#define FL__ROW_GENERATION(m, f, ...)                                                              \
    FL__BYTES_IN(m, f, .what = "a SHA-256", .empty = true, __VA_ARGS__)
#define FL__ROW_KEY_HASH(m, f, ...)                                                                \
    FL__BYTES_IN(m, f, .min = FL_WIRE_KEY_HASH, .max = FL_WIRE_KEY_HASH, __VA_ARGS__)
#define FL__ROW_SERIAL(m, f, ...)                                                                  \
    FL__BYTES_IN(m, f, .own_len = offsetof(S, m##_len), .min = 1, .max = FL_WIRE_SERIAL_MAX,       \
                 __VA_ARGS__)
#define FL__ROW_SECRET(m, f, n, ...)                                                               \
    FL__BYTES_IN(m, f, .min = n, .max = n, .secret = true, __VA_ARGS__)
#define FL__ROW_DATA(m, f, ...)       FL__ONE(FL__OWNED, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_BYTES(m, f, ...)      FL__ONE(FL__OWNED, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_MASK(m, f, ...)       FL__ONE(FL__MASK, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_TEXTS(m, f, ...)                                                                   \
    FL__MANY(FL__TEXT, m, f, char **, .raw = true, .check = fl__wire_check_text, __VA_ARGS__)
#define FL__ROW_NAMES(m, f, ...)                                                                   \
    FL__MANY(FL__TEXT, m, f, char **, .raw = true, .check = fl__wire_check_name, __VA_ARGS__)
#define FL__ROW_FLOATS(m, f, ...) FL__MANY(FL__F32, m, f, float *, .raw = true, __VA_ARGS__)
#define FL__ROW_DIMS(m, f, ...)                                                                    \
    FL__MANY(FL__U32, m, f, uint32_t *, .raw = true, .min = 1, __VA_ARGS__)
#define FL__ROW_CHAIN(m, f, ...)                                                                   \
    FL__MANY(FL__OWNED, m, f, ProtobufCBinaryData *, .min = 1, .max = FL_WIRE_MAX_CERTIFICATE,     \
             .none = "no certificate", .most = FL_WIRE_MAX_CHAIN, __VA_ARGS__)
#define FL__MAP(m, f, ...)                                                                         \
    FL__MANY(FL__SUB, m, f, default, .pairs = true, .most = FL_WIRE_MAX_PAIRS, __VA_ARGS__)
#define FL__ROW_PAIRS(m, f, ...)      FL__MAP(m, f, .sub = fl__wire_label_type, )
#define FL__ROW_OPTIONS(m, f, ...)    FL__MAP(m, f, .sub = fl__wire_option_type, )
#define FL__ROW_LABEL_LIST(m, f, ...)                                                              \
    FL__MAP(m, f, .sub = fl__wire_label_type, .size = FL_WIRE_LABELS_BYTES, .hidden = true, )
#define FL__ROW_LIST(m, f, type, ...)                                                              \
    FL__MANY(FL__SUB, m, f, type##_message **, .sub = type##_type, __VA_ARGS__)
#define FL__ROW_ENTRIES(m, f, type, ...)  FL__ROW_LIST(m, f, type, __VA_ARGS__)
#define FL__ROW_SUB(m, f, type, ...)      FL__NESTED(f, type, .own = offsetof(S, m), __VA_ARGS__)
#define FL__ROW_OPTIONAL(m, f, type, ...) FL__ROW_SUB(m, f, type, FL__HAS(has_##m), .flag = true, )
#define FL__ROW_COMPONENT(m, f, ...)           FL__ROW_SUB(m, f, component, FL__HAS(m.name), )
#define FL__ROW_LABELS(m, f, ...)         FL__ROW_SUB(m, f, labels, FL__HAS(m.n), )
#define FL__ROW_FLAT(f, type, ...)        FL__NESTED(f, type, )
#define FL__ROW_FLAT_IF(m, f, type, ...)                                                           \
    FL__NESTED(f, type, FL__HAS(m), .flag = _Generic(((S *)0)->m, bool: true, default: false), )
#define FL__ROW_CASE(number, m, f, type, ...) FL__ROW_SUB(m, f, type, .which = number, )
#define FL__ROW_RULE(function, ...)       {.kind = FL__RULE, .rule = function},
#define FL__ROW_OWN_CODE(table, ...)      {.kind = FL__CODE, .code = &table},
/* clang-format on */

#endif
