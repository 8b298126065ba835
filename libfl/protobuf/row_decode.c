/*
 * Decoding by rows: checks each field of a generated struct, copies it into ours, and frees what
 * was copied. Pure functions, any thread. A struct that is half decoded can be freed: what was not
 * reached yet is zero.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/match.h"
#include "libfl/base/str.h"
#include "libfl/protobuf/message_rows.h"

static int take_number(const struct fl_pb_row *row, const struct fl_pb_at *at, uint64_t value,
                       uint64_t largest, struct fl_err *err)
{
    uint64_t max = row->max != 0 ? row->max : largest;

    return value >= row->min && value <= max ? FL_OK
                                             : fl_pb_check_range(at, value, row->min, max, err);
}

static int take_text(const struct fl_pb_row *row, const struct fl_pb_at *at, const void *from,
                     void *to, struct fl_err *err)
{
    const char *value;
    char *copy;
    int rv;

    (void)memcpy(&value, from, sizeof(value));
    rv = row->check(at, value, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (row->kind == FL_PB_CHARS) {
        return fl_str_copy(to, row->size, value);
    }
    copy = fl_str_dup(value);
    (void)memcpy(to, &copy, sizeof(copy));
    return copy != NULL ? FL_OK : FL_ENOMEM;
}

/* Is the number of bytes one that the row takes? */
static int check_len(const struct fl_pb_row *row, const struct fl_pb_at *at, size_t len,
                     struct fl_err *err)
{
    size_t min = row->what != NULL ? row->size : (size_t)row->min;
    size_t max = row->what != NULL ? row->size : (size_t)row->max;

    if ((len >= min && (max == 0 || len <= max)) || (len == 0 && row->empty)) {
        return FL_OK;
    }
    if (row->unknown != NULL) { /* It cannot be one, so it is like one that was never issued. */
        (void)fl_err_set(err, FL_EPERM, "unknown %s, it has %zu bytes and not %zu", row->unknown,
                         len, max);
        return fl_pb_wrap(at, err, FL_EPERM);
    }
    if (row->what != NULL) {
        return fl_pb_refuse(at, err, "%zu bytes, %s has %zu", len, row->what, max);
    }
    return min == max ? fl_pb_refuse(at, err, "%zu bytes, expected %zu", len, min)
                      : fl_pb_refuse(at, err, "%zu bytes, expected %zu to %zu", len, min, max);
}

static int take_fixed(const struct fl_pb_row *row, const struct fl_pb_at *at,
                      const ProtobufCBinaryData *value, uint8_t *own, struct fl_err *err)
{
    int rv = check_len(row, at, value->len, err);

    if (rv != FL_OK) {
        goto done;
    }
    if (value->len > 0) {
        (void)memcpy(own + row->own, value->data, value->len);
        if (row->flag) {
            *(bool *)(own + row->has) = true;
        }
        if (row->own_len != 0) {
            (void)memcpy(own + row->own_len, &value->len, sizeof(value->len));
        }
    }
done:
    if (row->secret && value->len > 0) { /* An empty value has no memory. */
        explicit_bzero(value->data, value->len);
    }
    return rv;
}

/* A copy of the bytes, or one byte for each of their bits, lowest bit first; NULL without any. */
static int take_bytes(const struct fl_pb_row *row, const struct fl_pb_at *at,
                      const ProtobufCBinaryData *value, void *to, struct fl_err *err)
{
    bool mask = row->kind == FL_PB_MASK;
    struct fl_pb_list copy = {.len = mask ? value->len * 8 : value->len};
    size_t i;
    int rv = mask ? fl_pb_check_count(at, value->len, (size_t)row->max, err)
                  : check_len(row, at, value->len, err);

    if (rv != FL_OK || value->len == 0) {
        return rv;
    }
    copy.data = malloc(copy.len);
    if (copy.data == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; mask && i < copy.len; i++) {
        copy.data[i] = (uint8_t)(value->data[i / 8] >> (i % 8) & 1);
    }
    if (!mask) {
        (void)memcpy(copy.data, value->data, copy.len);
    }
    (void)memcpy(to, &copy, sizeof(copy));
    return FL_OK;
}

static int take_message(const struct fl_pb_row *row, const struct fl_pb_at *at, const void *from,
                        void *to, struct fl_err *err)
{
    const void *msg;

    (void)memcpy(&msg, from, sizeof(msg));
    return msg != NULL ? fl_pb_take(row->sub(), at, msg, to, err)
                       : fl_pb_refuse(at, err, "is missing");
}

/* One value: a field that is not repeated, or an entry of a list. */
static int take_value(const struct fl_pb_row *row, const struct fl_pb_at *at, const void *from,
                      void *to, struct fl_err *err)
{
    uint32_t small;
    uint64_t large;
    double real;

    switch (row->kind) {
    case FL_PB_U32:
        (void)memcpy(&small, from, sizeof(small));
        (void)memcpy(to, &small, sizeof(small));
        return take_number(row, at, small, UINT32_MAX, err);
    case FL_PB_U64:
        (void)memcpy(&large, from, sizeof(large));
        (void)memcpy(to, &large, sizeof(large));
        return take_number(row, at, large, UINT64_MAX, err);
    case FL_PB_F64:
    case FL_PB_FINITE:
        (void)memcpy(&real, from, sizeof(real));
        (void)memcpy(to, &real, sizeof(real));
        return row->kind == FL_PB_F64 || isfinite(real)
                   ? FL_OK
                   : fl_pb_refuse(at, err, "%g is not a finite number", real);
    case FL_PB_BOOL:
        *(bool *)to = *(const protobuf_c_boolean *)from != 0;
        return FL_OK;
    case FL_PB_YES:
        (void)memcpy(&small, from, sizeof(small));
        *(bool *)to = small == row->min;
        return take_number(row, at, small, UINT32_MAX, err);
    case FL_PB_TEXT:
    case FL_PB_CHARS:
        return take_text(row, at, from, to, err);
    case FL_PB_OWNED:
    case FL_PB_MASK:
        return take_bytes(row, at, from, to, err);
    case FL_PB_SUB:
        return take_message(row, at, from, to, err);
    case FL_PB_F32:
    case FL_PB_FIXED:
    case FL_PB_RULE:
    case FL_PB_CODE:
        break;
    }
    return FL_EINVAL;
}

/* --- lists --- */

/* A repeated key keeps its last value, as maps on the wire do. Returns how many pairs are left. */
static size_t unite_pairs(struct fl_pair *pairs, size_t n)
{
    size_t left = 0;
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        struct fl_pair pair = pairs[i];

        for (j = 0; j < left && strcmp(pairs[j].key, pair.key) != 0; j++) {
        }
        if (j < left) {
            free(pairs[j].key);
            free(pairs[j].value);
        }
        pairs[j] = pair;
        left += j == left;
    }
    return left;
}

static int check_entries(const struct fl_pb_row *row, const struct fl_pb_at *at, size_t n,
                         struct fl_err *err)
{
    if (n == 0 && row->none != NULL) {
        return fl_pb_refuse(at, err, "%s", row->none);
    }
    return row->least > 0 ? fl_pb_check_range(at, n, row->least, row->most, err)
                          : fl_pb_check_count(at, n, row->most, err);
}

static int take_list(const struct fl_pb_row *row, const struct fl_pb_at *at,
                     const ProtobufCBinaryData *from, void *to, struct fl_err *err)
{
    size_t size = fl_pb_row_size(row);
    size_t msg_size = row->kind == FL_PB_U32     ? sizeof(uint32_t)
                      : row->kind == FL_PB_OWNED ? sizeof(ProtobufCBinaryData)
                                                 : sizeof(void *);
    struct fl_pb_list list = {.len = from->len};
    size_t i;
    int rv = check_entries(row, at, from->len, err);

    if (rv != FL_OK || from->len == 0) {
        return rv;
    }
    list.data = calloc(list.len, size);
    if (list.data == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(to, &list, sizeof(list)); /* Entries not reached are zero. */
    if (row->kind == FL_PB_F32) {
        (void)memcpy(list.data, from->data, list.len * size);
        return FL_OK;
    }
    for (i = 0; i < list.len; i++) {
        rv = take_value(row, at, from->data + i * msg_size, list.data + i * size, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (row->pairs) {
        const struct fl_pair *pairs = (void *)list.data;
        size_t bytes = 0;

        for (i = 0; i < list.len; i++) {
            bytes += strlen(pairs[i].key) + strlen(pairs[i].value) + 2;
        }
        if (row->size != 0 && bytes > row->size) {
            return fl_pb_refuse(at, err, "%zu bytes of labels, at most %zu are taken", bytes,
                                row->size);
        }
        list.len = unite_pairs((void *)list.data, list.len);
        (void)memcpy(to, &list, sizeof(list));
    }
    return FL_OK;
}

/* --- messages --- */

static int take_row(const struct fl_pb_row *row, const struct fl_pb_at *up, const uint8_t *msg,
                    uint8_t *own, struct fl_err *err)
{
    const struct fl_pb_at at = {up, row->hidden ? NULL : row->name};
    const void *from = msg + row->msg;
    const void *present;

    if (row->list) {
        return take_list(row, &at, from, own + row->own, err);
    }
    switch (row->kind) {
    case FL_PB_FIXED:
        return take_fixed(row, &at, from, own, err);
    case FL_PB_RULE:
        return row->rule(up, own, err);
    case FL_PB_CODE:
        return row->code->take(up, msg, own, err);
    case FL_PB_SUB:
        (void)memcpy(&present, from, sizeof(present));
        if (present == NULL && row->has_size != 0) {
            return FL_OK;
        }
        if (row->flag) {
            *(bool *)(own + row->has) = true;
        }
        return take_message(row, &at, from, own + row->own, err);
    default:
        return take_value(row, &at, from, own + row->own, err);
    }
}

/* The number of what is set of a oneof, in the struct `of`; 0 without one. */
static unsigned case_of(const struct fl_pb_message *type, const void *of, size_t offset)
{
    unsigned which = 0;

    if (type->unset != NULL) {
        (void)memcpy(&which, (const uint8_t *)of + offset, sizeof(which));
    }
    return which;
}

int fl_pb_take(const struct fl_pb_message *type, const struct fl_pb_at *at, const void *msg,
               void *own, struct fl_err *err)
{
    const struct fl_pb_at oneof = {at, type->oneof};
    unsigned which = case_of(type, msg, type->msg_case);
    bool set = type->unset == NULL;
    size_t i;
    int rv;

    for (i = 0; i < type->n_rows; i++) {
        const struct fl_pb_row *row = &type->rows[i];

        if (row->which != 0 && row->which == which) {
            (void)memcpy((uint8_t *)own + type->own_case, &which, sizeof(which));
            set = true;
        }
        if (row->which == 0 || row->which == which) {
            rv = take_row(row, at, msg, own, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    /* Not set, or the hidden value that protobuf-c adds to its enums. */
    return set ? FL_OK : fl_pb_refuse(&oneof, err, "%s", type->unset);
}

int fl_pb_decode(const struct fl_pb_message *type, const void *data, size_t len, void *own,
                 struct fl_err *err)
{
    const struct fl_pb_at at = {NULL, type->msg->short_name};
    struct fl_pb_unpacked u;
    int rv = fl_pb_unpack(type->msg, data, len, type->max, type->extra, &u, err);

    (void)memset(own, 0, type->size);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_pb_take(type, &at, u.msg, own, err);
    fl_pb_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_pb_done(type, own);
    }
    return rv;
}

static void members_done(const struct fl_pb_message *type, uint8_t *own);

static void value_done(const struct fl_pb_row *row, void *own)
{
    char *owned;

    if (row->kind == FL_PB_SUB) {
        members_done(row->sub(), own);
    } else if (row->kind == FL_PB_TEXT || row->kind == FL_PB_OWNED || row->kind == FL_PB_MASK) {
        (void)memcpy(&owned, own, sizeof(owned));
        if (row->secret && owned != NULL) {
            explicit_bzero(owned, strlen(owned));
        }
        free(owned);
    }
}

/* Can a value of the row own memory? */
static bool value_owns(const struct fl_pb_row *row)
{
    const struct fl_pb_message *sub = row->kind == FL_PB_SUB ? row->sub() : NULL;
    size_t i;

    for (i = 0; sub != NULL && i < sub->n_rows; i++) {
        if (sub->rows[i].list || sub->rows[i].kind == FL_PB_CODE || value_owns(&sub->rows[i])) {
            return true;
        }
    }
    return row->kind == FL_PB_TEXT || row->kind == FL_PB_OWNED || row->kind == FL_PB_MASK;
}

static void members_done(const struct fl_pb_message *type, uint8_t *own)
{
    unsigned which = case_of(type, own, type->own_case);
    struct fl_pb_list list;
    bool owning;
    size_t i;
    size_t j;

    for (i = 0; i < type->n_rows; i++) {
        const struct fl_pb_row *row = &type->rows[i];

        if (row->which != 0 && row->which != which) {
            continue;
        }
        if (row->list) {
            (void)memcpy(&list, own + row->own, sizeof(list));
            owning = list.data != NULL && value_owns(row);
            for (j = 0; owning && j < list.len; j++) {
                value_done(row, list.data + j * fl_pb_row_size(row));
            }
            free(list.data);
        } else if (row->kind != FL_PB_CODE) {
            value_done(row, own + row->own);
        } else if (row->code->done != NULL) {
            row->code->done(own);
        }
    }
}

void fl_pb_done(const struct fl_pb_message *type, void *own)
{
    members_done(type, own);
    explicit_bzero(own, type->size);
}
