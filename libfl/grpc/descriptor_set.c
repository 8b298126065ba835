/*
 * Lookups in the descriptor set of proto/ (google/protobuf/descriptor.proto has the field numbers).
 * The set has some ten kilobytes, so each request scans it.
 */

#include <string.h>

#include "libfl/grpc/health_reflection_impl.h"
#include "libfl/protobuf/protobuf.h"

static const uint8_t descriptor_set[] = {
#include "proto/descriptors.inc"
};

enum {
    SET_FILE = 1,
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    SERVICE_METHOD = 2,
    ANY_NAME = 1 /* field number of the name, in a message, an enum, a service and a method */
};

struct text {
    const char *p;
    size_t len;
};

/* Finds the next length-delimited field with this number. */
static bool reflect_next_field(struct fl_pb_scan *scan, uint32_t number, struct fl_pb_field *ret)
{
    while (fl_pb_scan_next(scan, ret) == 1) {
        if (ret->number == number && ret->type == FL_PB_BYTES) {
            return true;
        }
    }
    return false;
}

static struct text reflect_text_of(const uint8_t *data, size_t len, uint32_t number)
{
    struct fl_pb_scan scan;
    struct fl_pb_field field = {0};

    fl_pb_scan_init(&scan, data, len);
    return reflect_next_field(&scan, number, &field)
               ? (struct text){(const char *)field.data, field.len}
               : (struct text){"", 0};
}

/* Finds a child with this field number and name. */
static bool reflect_find_child(const uint8_t *data, size_t len, uint32_t number, struct text name,
                               struct fl_pb_field *ret)
{
    struct fl_pb_scan scan;

    fl_pb_scan_init(&scan, data, len);
    while (reflect_next_field(&scan, number, ret)) {
        struct text a = reflect_text_of(ret->data, ret->len, ANY_NAME);

        if (a.len == name.len && (a.len == 0 || memcmp(a.p, name.p, a.len) == 0)) {
            return true;
        }
    }
    return false;
}

/* Cuts off the part before the first dot; false when nothing is left. */
static bool reflect_cut_label(struct text *rest, struct text *ret_head)
{
    const char *dot = memchr(rest->p, '.', rest->len);

    *ret_head = *rest;
    if (dot == NULL) {
        return false;
    }
    ret_head->len = (size_t)(dot - rest->p);
    rest->p = dot + 1;
    rest->len -= ret_head->len + 1;
    return true;
}

static bool in_message(struct fl_pb_field message, struct text rest)
{
    struct text head;
    bool more = reflect_cut_label(&rest, &head);
    struct fl_pb_field child = {0};

    /* The depth is bounded by the dots of the symbol and by the nesting of our messages. */
    while (more && reflect_find_child(message.data, message.len, MESSAGE_NESTED, head, &child)) {
        message = child;
        more = reflect_cut_label(&rest, &head);
    }
    return !more && (reflect_find_child(message.data, message.len, MESSAGE_NESTED, head, &child) ||
                     reflect_find_child(message.data, message.len, MESSAGE_ENUM, head, &child));
}

static bool reflect_defines(struct fl__file file, const char *symbol)
{
    struct text package = reflect_text_of(file.data, file.len, FILE_PACKAGE);
    struct text rest = {symbol, strlen(symbol)};
    struct text head;
    struct fl_pb_field found = {0};

    if (package.len > 0) {
        if (rest.len <= package.len || memcmp(rest.p, package.p, package.len) != 0 ||
            rest.p[package.len] != '.')
        {
            return false;
        }
        rest.p += package.len + 1;
        rest.len -= package.len + 1;
    }
    if (!reflect_cut_label(&rest, &head)) {
        return reflect_find_child(file.data, file.len, FILE_SERVICE, head, &found) ||
               reflect_find_child(file.data, file.len, FILE_MESSAGE, head, &found) ||
               reflect_find_child(file.data, file.len, FILE_ENUM, head, &found);
    }
    if (reflect_find_child(file.data, file.len, FILE_SERVICE, head, &found)) {
        return reflect_find_child(found.data, found.len, SERVICE_METHOD, rest, &found);
    }
    return reflect_find_child(file.data, file.len, FILE_MESSAGE, head, &found) &&
           in_message(found, rest);
}

bool fl__desc_by_name(const char *name, size_t len, struct fl__file *ret)
{
    struct fl_pb_field file = {0};

    if (!reflect_find_child(descriptor_set, sizeof(descriptor_set), SET_FILE,
                            (struct text){name, len}, &file))
    {
        return false;
    }
    *ret = (struct fl__file){file.data, file.len};
    return true;
}

bool fl__desc_by_symbol(const char *symbol, struct fl__file *ret)
{
    struct fl_pb_scan scan;
    struct fl_pb_field file = {0};

    fl_pb_scan_init(&scan, descriptor_set, sizeof(descriptor_set));
    while (reflect_next_field(&scan, SET_FILE, &file)) {
        struct fl__file candidate = {file.data, file.len};

        if (reflect_defines(candidate, symbol)) {
            *ret = candidate;
            return true;
        }
    }
    return false;
}

static bool reflect_has_symbol(const struct fl__file *files, size_t n, struct fl__file file)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (files[i].data == file.data) {
            return true;
        }
    }
    return false;
}

size_t fl__desc_closure(struct fl__file file, struct fl__file ret[FL__FILES_MAX])
{
    size_t n = 1;
    size_t i;

    ret[0] = file;
    for (i = 0; i < n; i++) {
        struct fl_pb_scan scan;
        struct fl_pb_field name = {0};
        struct fl__file import;

        fl_pb_scan_init(&scan, ret[i].data, ret[i].len);
        while (n < FL__FILES_MAX && reflect_next_field(&scan, FILE_DEPENDENCY, &name)) {
            if (fl__desc_by_name((const char *)name.data, name.len, &import) &&
                !reflect_has_symbol(ret, n, import))
            {
                ret[n++] = import;
            }
        }
    }
    return n;
}
