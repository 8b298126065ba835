/* A scanner of raw fields, without a descriptor. Pure functions, any thread. */
#include "libfl/protobuf/protobuf.h"

/* Tags and lengths have at most five bytes, as in other implementations. */
#define SHORT_VARINT 5
#define LONG_VARINT  10

void fl_pb_scan_init(struct fl_pb_scan *scan, const void *data, size_t len)
{
    scan->p = len > 0 ? data : (const uint8_t *)"";
    scan->end = scan->p + len;
}

/* Bits past the 64th are dropped, as other implementations do. */
static int take_varint(struct fl_pb_scan *scan, unsigned max, uint64_t *ret)
{
    uint64_t value = 0;
    unsigned i;

    for (i = 0; i < max && scan->p < scan->end; i++) {
        uint8_t byte = *scan->p++;

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret = value;
            return FL_OK;
        }
    }
    return FL_EPROTO;
}

static int take_fixed(struct fl_pb_scan *scan, unsigned n, uint64_t *ret)
{
    uint64_t value = 0;
    unsigned i;

    if ((size_t)(scan->end - scan->p) < n) {
        return FL_EPROTO;
    }
    for (i = 0; i < n; i++) {
        value |= (uint64_t)scan->p[i] << (8 * i);
    }
    scan->p += n;
    *ret = value;
    return FL_OK;
}

static int take_value(struct fl_pb_scan *scan, struct fl_pb_field *field)
{
    uint64_t len = 0;
    int rv;

    switch (field->type) {
    case FL_PB_VARINT:
        return take_varint(scan, LONG_VARINT, &field->value);
    case FL_PB_FIXED64:
        return take_fixed(scan, 8, &field->value);
    case FL_PB_FIXED32:
        return take_fixed(scan, 4, &field->value);
    case FL_PB_BYTES:
        rv = take_varint(scan, SHORT_VARINT, &len);
        if (rv != FL_OK || len > (uint64_t)(scan->end - scan->p)) {
            return FL_EPROTO;
        }
        field->data = scan->p;
        field->len = (size_t)len;
        scan->p += len;
        return FL_OK;
    }
    return FL_EPROTO; /* groups and types that do not exist */
}

int fl_pb_scan_next(struct fl_pb_scan *scan, struct fl_pb_field *ret)
{
    struct fl_pb_field field = {0};
    uint64_t tag = 0;

    if (scan->p == scan->end) {
        return 0;
    }
    if (take_varint(scan, SHORT_VARINT, &tag) != FL_OK || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) {
        return FL_EPROTO;
    }
    field.number = (uint32_t)(tag >> 3);
    field.type = (enum fl_pb_field_type)(tag & 7);
    if (take_value(scan, &field) != FL_OK) {
        return FL_EPROTO;
    }
    *ret = field;
    return 1;
}

size_t fl_pb_varint_put(uint64_t value, uint8_t *out)
{
    size_t n = 0;

    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}
