#ifndef FL_WIRE_ROW_H
#define FL_WIRE_ROW_H

/*
 * A message is a list of rows, X(KIND, member, field, …): the members of its struct, its packing,
 * the checks of its decoder, its copying and its freeing follow from them. A new field is its line
 * in proto/ and a row here. `field` is the name in the .proto file.
 *
 * After `field` stand, where the kind has them, the name of a nested message (`struct
 * fl_wire_NAME`), and limits: `.min` and `.max` (inclusive; without them all values of the type) of
 * a number or of the length of bytes, `.most` and `.least` of the entries of a list, whose surplus
 * the encoder drops with `.cut`; `.which` is the number of a field of a oneof. Rows are decoded in
 * their order: a RULE may use what stands above.
 *
 *   U32 U64 F64   numbers; FINITE: a double, NaN and infinity are refused; BOOL
 *   ENUM          its C type stands after `field`; YES: a bool, true is `.min` and false `.max`
 *   TEXT          char *: free text; any length and bytes when encoded (cut, cleaned)
 *   REASON        the same, of at most FL_WIRE_MAX_REASON bytes
 *   SECRET_TEXT   the same, encoded as it is, wiped by done()
 *   METRICS       char *: a text of libfl/figures/eval_metrics.h; only its length is checked
 *   NAME          char *: fl_name_valid(); NAME_BUF: char[FL_NAME_MAX]; OPTIONAL_NAME: or ""
 *   PATTERN       char[FL_NAME_MAX]: fl_wire_pattern_valid()
 *   PREFIX        char[FL_WIRE_PREFIX_SIZE]: fl_wire_prefix_valid()
 *   TEXTS NAMES   char **, size_t n_member; encoded as they are
 *   FLOATS DIMS   float * or uint32_t *, size_t n_member; DIMS: each at least 1
 *   PAIRS         struct fl_pair *, size_t n_member: labels, a map; at most FL_WIRE_MAX_PAIRS
 *   OPTIONS       the same; keys are names
 *   LABEL_LIST    the same with its count in `n`; at most FL_WIRE_LABELS_BYTES
 *   SESSION       struct fl_wire_session
 *   SESSION_TOKEN the same in a request: of another length it is an unknown session, FL_EPERM
 *   DIGEST        bool has_member, uint8_t member[FL_DIGEST_SIZE]
 *   GENERATION    uint8_t[FL_DIGEST_SIZE]: zeros when it was not sent
 *   KEY_HASH      uint8_t[FL_WIRE_KEY_HASH]
 *   SERIAL        uint8_t[FL_WIRE_SERIAL_MAX], size_t member_len, at least 1
 *   SECRET        uint8_t[n], n after `field`; wiped where it was decoded
 *   DATA          uint8_t *member, size_t len; NULL without bytes; BYTES: struct fl_wire_bytes
 *   CHAIN LABELS  struct fl_wire_chain; struct fl_wire_labels, not sent when empty
 *   MASK          uint8_t *, size_t n_member: a byte for each bit, NULL without bits
 *   SUB           a nested message; required; OPTIONAL: with bool has_member
 *   COMPONENT     struct fl_wire_component; without a name it was not sent
 *   FLAT          a nested message whose rows are members of this struct; required
 *   FLAT_IF       the same; `member` is a bool, or not 0, when it is sent
 *   LIST          struct fl_wire_NAME *, size_t n_member; ENTRIES: with its count in `n`
 *   CASE          a message of a oneof, by its number, which is the first argument; in a union
 *   RECORD        a struct of another room, of the type and rows that stand after the member
 *   RULE          a check of what was decoded, by the function that is the argument
 *   OWN_CODE      encoded, decoded and freed by functions, for the member declared after them
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define FL_WIRE_MEMBER(kind, ...)                 FL_WIRE_MEMBER_##kind(__VA_ARGS__, )
#define FL_WIRE_MEMBER_U32(m, ...)                uint32_t m;
#define FL_WIRE_MEMBER_U64(m, ...)                uint64_t m;
#define FL_WIRE_MEMBER_F64(m, ...)                double m;
#define FL_WIRE_MEMBER_FINITE(m, ...)             double m;
#define FL_WIRE_MEMBER_BOOL(m, ...)               bool m;
#define FL_WIRE_MEMBER_YES(m, ...)                bool m;
#define FL_WIRE_MEMBER_ENUM(m, field, type, ...)  type m;
#define FL_WIRE_MEMBER_TEXT(m, ...)               char *m;
#define FL_WIRE_MEMBER_REASON(m, ...)             char *m;
#define FL_WIRE_MEMBER_SECRET_TEXT(m, ...)        char *m;
#define FL_WIRE_MEMBER_METRICS(m, ...)            char *m;
#define FL_WIRE_MEMBER_NAME(m, ...)               char *m;
#define FL_WIRE_MEMBER_NAME_BUF(m, ...)           char m[FL_NAME_MAX];
#define FL_WIRE_MEMBER_OPTIONAL_NAME(m, ...)      char m[FL_NAME_MAX];
#define FL_WIRE_MEMBER_PATTERN(m, ...)            char m[FL_NAME_MAX];
#define FL_WIRE_MEMBER_PREFIX(m, ...)             char m[FL_WIRE_PREFIX_SIZE];
#define FL_WIRE_MEMBER_TEXTS(m, ...)              char **m; size_t n_##m;
#define FL_WIRE_MEMBER_NAMES(m, ...)              char **m; size_t n_##m;
#define FL_WIRE_MEMBER_FLOATS(m, ...)             float *m; size_t n_##m;
#define FL_WIRE_MEMBER_DIMS(m, ...)               uint32_t *m; size_t n_##m;
#define FL_WIRE_MEMBER_PAIRS(m, ...)              struct fl_pair *m; size_t n_##m;
#define FL_WIRE_MEMBER_OPTIONS(m, ...)            struct fl_pair *m; size_t n_##m;
#define FL_WIRE_MEMBER_LABEL_LIST(m, ...)         struct fl_pair *m; size_t n;
#define FL_WIRE_MEMBER_SESSION(m, ...)            struct fl_wire_session m;
#define FL_WIRE_MEMBER_SESSION_TOKEN(m, ...)      struct fl_wire_session m;
#define FL_WIRE_MEMBER_DIGEST(m, ...)             bool has_##m; uint8_t m[FL_DIGEST_SIZE];
#define FL_WIRE_MEMBER_GENERATION(m, ...)         uint8_t m[FL_DIGEST_SIZE];
#define FL_WIRE_MEMBER_KEY_HASH(m, ...)           uint8_t m[FL_WIRE_KEY_HASH];
#define FL_WIRE_MEMBER_SERIAL(m, ...)             uint8_t m[FL_WIRE_SERIAL_MAX]; size_t m##_len;
#define FL_WIRE_MEMBER_SECRET(m, field, n, ...)   uint8_t m[n];
#define FL_WIRE_MEMBER_DATA(m, ...)               uint8_t *m; size_t len;
#define FL_WIRE_MEMBER_BYTES(m, ...)              struct fl_wire_bytes m;
#define FL_WIRE_MEMBER_CHAIN(m, ...)              struct fl_wire_chain m;
#define FL_WIRE_MEMBER_LABELS(m, ...)             struct fl_wire_labels m;
#define FL_WIRE_MEMBER_MASK(m, ...)               uint8_t *m; size_t n_##m;
#define FL_WIRE_MEMBER_SUB(m, field, name, ...)   struct fl_wire_##name m;
#define FL_WIRE_MEMBER_OPTIONAL(m, field, name, ...) bool has_##m; struct fl_wire_##name m;
#define FL_WIRE_MEMBER_COMPONENT(m, ...)               struct fl_wire_component m;
#define FL_WIRE_MEMBER_FLAT(field, name, ...)        FL_WIRE_ROWS_##name(FL_WIRE_FLAT_MEMBER)
#define FL_WIRE_MEMBER_FLAT_IF(m, field, name, ...)  bool m; FL_WIRE_ROWS_##name(FL_WIRE_FLAT_MEMBER)
/* Again, because no macro expands inside itself. */
#define FL_WIRE_FLAT_MEMBER(kind, ...)               FL_WIRE_MEMBER_##kind(__VA_ARGS__, )
#define FL_WIRE_MEMBER_RECORD(m, type, ...)          type m;
#define FL_WIRE_MEMBER_LIST(m, field, name, ...)  struct fl_wire_##name *m; size_t n_##m;
#define FL_WIRE_MEMBER_ENTRIES(m, field, name, ...) struct fl_wire_##name *m; size_t n;
#define FL_WIRE_MEMBER_CASE(...)
#define FL_WIRE_MEMBER_RULE(...)
#define FL_WIRE_MEMBER_OWN_CODE(code, m, ...)     m;
/* clang-format on */

/*
 * A list of messages, X(KIND, name, Message, message, limit): from a row follow struct
 * fl_wire_name and, in the .c file that has the generated struct Fl__V1__Message and its descriptor
 * fl__v1__message, its table and the functions that KIND declares: TYPE, inside others only, none;
 * CODEC and OWNER, a message on its own, see below. `limit`: the maximum size of it in bytes.
 */
#define FL_WIRE_DECLARE(kind, name, ...) FL_WIRE_STRUCT(name) FL_WIRE_##kind(name)
/* struct fl_wire_NAME, from FL_WIRE_ROWS_NAME. */
#define FL_WIRE_STRUCT(name)                \
    struct fl_wire_##name {                 \
        FL_WIRE_ROWS_##name(FL_WIRE_MEMBER) \
    };
/*
 * Declare fl_wire_NAME_encode() and fl_wire_NAME_decode() of struct fl_wire_NAME, or of another
 * one; of an owner, which owns memory once it is decoded, fl_wire_NAME_done() too; of a value that
 * is the only one of its message.
 */
#define FL_WIRE_TYPE(name)
#define FL_WIRE_CODEC(name) FL_WIRE_CODEC_OF(name, name)
#define FL_WIRE_CODEC_OF(name, own)                                              \
    FL_MUST_CHECK int fl_wire_##name##_encode(const struct fl_wire_##own *value, \
                                              struct fl_buf *out);               \
    FL_MUST_CHECK int fl_wire_##name##_decode(const void *data, size_t len,      \
                                              struct fl_wire_##own *ret, struct fl_err *err);
#define FL_WIRE_DONE(name)  void fl_wire_##name##_done(struct fl_wire_##name *value);
#define FL_WIRE_OWNER(name) FL_WIRE_CODEC(name) FL_WIRE_DONE(name)
#define FL_WIRE_VALUE(name, type, ret_type)                                               \
    FL_MUST_CHECK int fl_wire_##name##_encode(type value, struct fl_buf *out);            \
    FL_MUST_CHECK int fl_wire_##name##_decode(const void *data, size_t len, ret_type ret, \
                                              struct fl_err *err);

#endif
