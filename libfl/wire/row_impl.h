#ifndef FL_WIRE_ROW_IMPL_H
#define FL_WIRE_ROW_IMPL_H

/*
 * The rows of libfl/wire/wire_row.h as tables for libfl/protobuf/message_rows.h. Private to
 * libfl/wire. Types of generated members are checked by the compiler: another one does not compile.
 */

#include <string.h>

#include "libfl/protobuf/message_rows.h"
#include "libfl/wire/wire_identity.h"

_Static_assert(FL_WIRE_MAX_TEXT == FL_PB_MAX_TEXT, "the texts of messages");

FL_MUST_CHECK fl_pb_check fl__wire_check_pattern;
FL_MUST_CHECK fl_pb_check fl__wire_check_prefix;
FL_MUST_CHECK fl_pb_check fl__wire_check_reason;
FL_MUST_CHECK fl_pb_check fl__wire_check_metrics;
/* The pairs of PAIRS and of OPTIONS. */
fl_pb_table fl__wire_label_type;
fl_pb_table fl__wire_option_type;
/* What struct fl_wire_welcome has of Unit and Tensor. */
extern const struct fl_pb_code fl__wire_layout_code;

/* clang-format off */

/*
 * FL__WIRE_TABLE: the rows of `name` as a function: struct fl_wire_`own`, the generated
 * Fl__V1__`Message`, its descriptor fl__v1__`message`, limits of struct fl_pb_message.
 * FL__WIRE_DEFINE: of a row of a list of messages (wire_row.h), with its functions.
 */
#define FL__WIRE_TABLE(name, own, Message, message, ...)                                           \
    typedef Fl__V1__##Message name##_message;                                                      \
    static const struct fl_pb_message *name##_type(void)                                        \
    {                                                                                              \
        typedef struct fl_wire_##own S;                                                            \
        typedef name##_message M;                                                                  \
        static const struct fl_pb_row rows[] = {FL_WIRE_ROWS_##name(FL__ROW)};                  \
        static const struct fl_pb_message type = {                                              \
            .msg = &fl__v1__##message##__descriptor, .rows = rows,                                 \
            .n_rows = sizeof(rows) / sizeof(rows[0]), .size = sizeof(S), __VA_ARGS__};             \
        return &type;                                                                              \
    }
#define FL__WIRE_FUNCTIONS(name, own)                                                              \
    int fl_wire_##name##_encode(const struct fl_wire_##own *value, struct fl_buf *out)             \
    {                                                                                              \
        return fl_pb_encode(name##_type(), value, out);                                         \
    }                                                                                              \
    int fl_wire_##name##_decode(const void *data, size_t len, struct fl_wire_##own *ret,           \
                                struct fl_err *err)                                                \
    {                                                                                              \
        struct fl_wire_##own value;                                                                \
        int rv = fl_pb_decode(name##_type(), data, len, &value, err);                           \
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
        fl_pb_done(name##_type(), value);                                                       \
    }
#define FL__WIRE_DEFINE_TYPE(name)
#define FL__WIRE_DEFINE_CODEC(name) FL__WIRE_FUNCTIONS(name, name)
#define FL__WIRE_DEFINE_OWNER(name) FL__WIRE_FUNCTIONS(name, name) FL__WIRE_DONE(name)
#define FL__WIRE_DEFINE(kind, name, Message, message, ...)                                         \
    FL__WIRE_TABLE(name, name, Message, message, .max = __VA_ARGS__)                               \
    FL__WIRE_DEFINE_##kind(name)
/* A message of one row, whose member is `value`: a number, or an array of characters. */
#define FL__WIRE_VALUE(name, type, ret_type, Message, message, limit)                              \
    struct fl_wire_##name {                                                                        \
        FL_WIRE_ROWS_##name(FL_WIRE_MEMBER)                                                        \
    };                                                                                             \
    FL__WIRE_TABLE(name, name, Message, message, .max = limit)                                     \
    int fl_wire_##name##_encode(type value, struct fl_buf *out)                                    \
    {                                                                                              \
        return fl_pb_encode(name##_type(), _Generic(value, const char *: value,                 \
                                                       default: (const void *)&value), out);       \
    }                                                                                              \
    int fl_wire_##name##_decode(const void *data, size_t len, ret_type ret, struct fl_err *err)    \
    {                                                                                              \
        struct fl_wire_##name own;                                                                 \
        int rv = fl_pb_decode(name##_type(), data, len, &own, err);                             \
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
    FL__ARRAY(FL_PB_FIXED, member, field, ProtobufCBinaryData, __VA_ARGS__)
#define FL__NESTED(field, type, ...)                                                               \
    {.kind = FL_PB_SUB, .name = #field, .msg = offsetof(M, field) + FL__IS(field, type##_message *), \
     .sub = type##_type, __VA_ARGS__},

#define FL__ROW(kind, ...)            FL__ROW_##kind(__VA_ARGS__, )
#define FL__ROW_U32(m, f, ...)        FL__ONE(FL_PB_U32, m, f, uint32_t, __VA_ARGS__)
#define FL__ROW_U64(m, f, ...)        FL__ONE(FL_PB_U64, m, f, uint64_t, __VA_ARGS__)
#define FL__ROW_F64(m, f, ...)        FL__ONE(FL_PB_F64, m, f, double, __VA_ARGS__)
#define FL__ROW_FINITE(m, f, ...)     FL__ONE(FL_PB_FINITE, m, f, double, __VA_ARGS__)
#define FL__ROW_BOOL(m, f, ...)       FL__ONE(FL_PB_BOOL, m, f, protobuf_c_boolean, __VA_ARGS__)
/* Enums of protobuf-c have the size of an int. */
#define FL__ROW_ENUM(m, f, type, ...) FL__ONE(FL_PB_U32, m, f, default, __VA_ARGS__)
#define FL__ROW_YES(m, f, ...)        FL__ONE(FL_PB_YES, m, f, default, __VA_ARGS__)
#define FL__ROW_TEXT(m, f, ...)                                                                    \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = fl_pb_check_text, __VA_ARGS__)
#define FL__ROW_REASON(m, f, ...)                                                                  \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = fl__wire_check_reason, __VA_ARGS__)
#define FL__ROW_SECRET_TEXT(m, f, ...)                                                             \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = fl_pb_check_text, .raw = true, .secret = true,     \
            __VA_ARGS__)
#define FL__ROW_METRICS(m, f, ...)                                                                 \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = fl__wire_check_metrics, .raw = true, __VA_ARGS__)
#define FL__ROW_NAME(m, f, ...)                                                                    \
    FL__ONE(FL_PB_TEXT, m, f, char *, .check = fl_pb_check_name, .raw = true, __VA_ARGS__)
#define FL__ROW_NAME_BUF(m, f, ...)                                                                \
    FL__ARRAY(FL_PB_CHARS, m, f, char *, .check = fl_pb_check_name, __VA_ARGS__)
#define FL__ROW_OPTIONAL_NAME(m, f, ...)                                                           \
    FL__ARRAY(FL_PB_CHARS, m, f, char *, .check = fl_pb_check_optional_name, __VA_ARGS__)
#define FL__ROW_PATTERN(m, f, ...)                                                                 \
    FL__ARRAY(FL_PB_CHARS, m, f, char *, .check = fl__wire_check_pattern, __VA_ARGS__)
#define FL__ROW_PREFIX(m, f, ...)                                                                  \
    FL__ARRAY(FL_PB_CHARS, m, f, char *, .check = fl__wire_check_prefix, __VA_ARGS__)
#define FL__ROW_SESSION(m, f, ...)                                                                 \
    FL__BYTES_IN(m.id, f, .what = "a session", __VA_ARGS__)
#define FL__ROW_SESSION_TOKEN(m, f, ...)                                                           \
    FL__BYTES_IN(m.id, f, .what = "a session", .unknown = "session", __VA_ARGS__)
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
#define FL__ROW_DATA(m, f, ...)       FL__ONE(FL_PB_OWNED, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_BYTES(m, f, ...)      FL__ONE(FL_PB_OWNED, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_MASK(m, f, ...)       FL__ONE(FL_PB_MASK, m, f, ProtobufCBinaryData, __VA_ARGS__)
#define FL__ROW_TEXTS(m, f, ...)                                                                   \
    FL__MANY(FL_PB_TEXT, m, f, char **, .raw = true, .check = fl_pb_check_text, __VA_ARGS__)
#define FL__ROW_NAMES(m, f, ...)                                                                   \
    FL__MANY(FL_PB_TEXT, m, f, char **, .raw = true, .check = fl_pb_check_name, __VA_ARGS__)
#define FL__ROW_FLOATS(m, f, ...) FL__MANY(FL_PB_F32, m, f, float *, .raw = true, __VA_ARGS__)
#define FL__ROW_DIMS(m, f, ...)                                                                    \
    FL__MANY(FL_PB_U32, m, f, uint32_t *, .raw = true, .min = 1, __VA_ARGS__)
#define FL__ROW_CHAIN(m, f, ...)                                                                   \
    FL__MANY(FL_PB_OWNED, m, f, ProtobufCBinaryData *, .min = 1, .max = FL_WIRE_MAX_CERTIFICATE,     \
             .none = "no certificate", .most = FL_WIRE_MAX_CHAIN, __VA_ARGS__)
#define FL__MAP(m, f, ...)                                                                         \
    FL__MANY(FL_PB_SUB, m, f, default, .pairs = true, .most = FL_WIRE_MAX_PAIRS, __VA_ARGS__)
#define FL__ROW_PAIRS(m, f, ...)      FL__MAP(m, f, .sub = fl__wire_label_type, )
#define FL__ROW_OPTIONS(m, f, ...)    FL__MAP(m, f, .sub = fl__wire_option_type, )
#define FL__ROW_LABEL_LIST(m, f, ...)                                                              \
    FL__MAP(m, f, .sub = fl__wire_label_type, .size = FL_WIRE_LABELS_BYTES, .hidden = true, )
#define FL__ROW_LIST(m, f, type, ...)                                                              \
    FL__MANY(FL_PB_SUB, m, f, type##_message **, .sub = type##_type, __VA_ARGS__)
#define FL__ROW_ENTRIES(m, f, type, ...)  FL__ROW_LIST(m, f, type, __VA_ARGS__)
#define FL__ROW_SUB(m, f, type, ...)      FL__NESTED(f, type, .own = offsetof(S, m), __VA_ARGS__)
#define FL__ROW_OPTIONAL(m, f, type, ...) FL__ROW_SUB(m, f, type, FL__HAS(has_##m), .flag = true, )
#define FL__ROW_COMPONENT(m, f, ...)           FL__ROW_SUB(m, f, component, FL__HAS(m.name), )
#define FL__ROW_LABELS(m, f, ...)         FL__ROW_SUB(m, f, labels, FL__HAS(m.n), )
#define FL__ROW_FLAT(f, type, ...)        FL__NESTED(f, type, )
#define FL__ROW_FLAT_IF(m, f, type, ...)                                                           \
    FL__NESTED(f, type, FL__HAS(m), .flag = _Generic(((S *)0)->m, bool: true, default: false), )
#define FL__ROW_CASE(number, m, f, type, ...) FL__ROW_SUB(m, f, type, .which = number, )
#define FL__IN_figures(type, m, f, ...)   FL__ROW_##type(figures.m, f, )
#define FL__IN_task(type, m, f)      FL__ROW_##type(task.m, f, )
#define FL__ROW_RECORD(m, type, list, ...) list(FL__IN_##m)
#define FL__ROW_RULE(function, ...)       {.kind = FL_PB_RULE, .rule = function},
#define FL__ROW_OWN_CODE(table, ...)      {.kind = FL_PB_CODE, .code = &table},
/* clang-format on */

#endif
