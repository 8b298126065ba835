/*
 * Decoding under a memory cap, checks of single fields, the arena for encoding, and the pairs of
 * maps, for all messages of libfl/wire. Pure functions, any thread.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "fl/v1/identity.pb-c.h"
#include "libfl/base/log.h"
#include "libfl/wire/row_impl.h"
#include "libfl/wire/wire_admin.h"

/* Header of every block, so that freeing returns its cost. */
union block_head {
    size_t total;
    max_align_t align;
};

static void *capped_alloc(void *ctx, size_t size)
{
    struct fl__unpacked *u = ctx;
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
    struct fl__unpacked *u = ctx;
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
    struct fl__scan scan;
    struct fl__field field;

    fl__scan_init(&scan, data, len);
    while (depth < DEEPEST && fl__scan_next(&scan, &field) == 1) {
        const ProtobufCFieldDescriptor *of =
            field.type == FL__BYTES ? protobuf_c_message_descriptor_get_field(type, field.number)
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

int fl__wire_unpack_capped(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
                           size_t cap, struct fl__unpacked *ret, struct fl_err *err)
{
    *ret = (struct fl__unpacked){.cap = cap};
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

int fl__wire_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
                    size_t max, size_t extra, struct fl__unpacked *ret, struct fl_err *err)
{
    *ret = (struct fl__unpacked){.cap = 0};
    if (len > max) {
        return fl_err_set(err, FL_ELIMIT, "%s: %zu bytes, at most %zu are taken", type->short_name,
                          len, max);
    }
    return fl__wire_unpack_capped(type, data, len, FL__WIRE_COST(len) + extra, ret, err);
}

void fl__wire_unpacked_done(struct fl__unpacked *u)
{
    if (u->msg != NULL) {
        protobuf_c_message_free_unpacked(u->msg, &u->allocator);
        u->msg = NULL;
    }
}

int fl__wire_pack(const ProtobufCMessage *msg, struct fl_buf *out)
{
    size_t len = protobuf_c_message_get_packed_size(msg);
    int rv = fl_buf_reserve(out, len);

    if (rv != FL_OK || len == 0) {
        return rv;
    }
    out->len += protobuf_c_message_pack(msg, out->data + out->len);
    return FL_OK;
}

/* --- checks --- */

/* Writes "Message.field.field" and returns its length, which is below `size`. */
static size_t write_path(const struct fl__wire_at *at, char *out, size_t size)
{
    size_t n = at->up != NULL ? write_path(at->up, out, size) : 0;

    if (at->name != NULL) {
        int more = snprintf(out + n, size - n, "%s%s", n > 0 ? "." : "", at->name);

        n += more > 0 && (size_t)more < size - n ? (size_t)more : 0;
    }
    return n;
}

int fl__wire_refuse(const struct fl__wire_at *at, struct fl_err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fl_err_set(err, FL_EPROTO, "%s", text);
    return fl__wire_wrap(at, err, FL_EPROTO);
}

int fl__wire_wrap(const struct fl__wire_at *at, struct fl_err *err, int code)
{
    char path[256] = "";

    (void)write_path(at, path, sizeof(path));
    return fl_err_wrap(err, code, "%s", path);
}

int fl__wire_check_name(const struct fl__wire_at *at, const char *value, struct fl_err *err)
{
    char quoted[64];

    if (fl_name_valid(value)) {
        return FL_OK;
    }
    return fl__wire_refuse(
        at, err, "%s is not a name (1 to %d of [A-Za-z0-9._-], not starting with a dot)",
        fl_log_quote(quoted, sizeof(quoted), value, strlen(value)), FL_NAME_MAX - 1);
}

int fl__wire_check_optional_name(const struct fl__wire_at *at, const char *value,
                                 struct fl_err *err)
{
    return value[0] == '\0' ? FL_OK : fl__wire_check_name(at, value, err);
}

int fl__wire_check_text(const struct fl__wire_at *at, const char *value, struct fl_err *err)
{
    size_t len = strlen(value);
    const uint8_t *s;
    size_t i = 0;

    if (len > FL_WIRE_MAX_TEXT) {
        return fl__wire_refuse(at, err, "%zu bytes of text, at most %d are taken", len,
                               FL_WIRE_MAX_TEXT);
    }
    s = (const uint8_t *)value;
    while (i < len) {
        size_t n = fl_str_utf8(s + i, len - i);

        if (n == 0) {
            return fl__wire_refuse(at, err, "the text is not UTF-8");
        }
        i += n;
    }
    return FL_OK;
}

int fl__wire_check_reason(const struct fl__wire_at *at, const char *value, struct fl_err *err)
{
    if (strlen(value) > FL_WIRE_MAX_REASON) {
        return fl__wire_refuse(at, err, "more than %d bytes", FL_WIRE_MAX_REASON);
    }
    return fl__wire_check_text(at, value, err);
}

/* The reader judges the content: a client with bad metrics keeps its session. */
int fl__wire_check_metrics(const struct fl__wire_at *at, const char *value, struct fl_err *err)
{
    size_t len = strlen(value);

    return len < FL_EVAL_METRICS_TEXT
               ? FL_OK
               : fl__wire_refuse(at, err, "%zu bytes of metrics, at most %d are taken", len,
                                 FL_EVAL_METRICS_TEXT - 1);
}

int fl__wire_check_count(const struct fl__wire_at *at, size_t n, size_t max, struct fl_err *err)
{
    if (n > max) {
        return fl__wire_refuse(at, err, "%zu entries, at most %zu are taken", n, max);
    }
    return FL_OK;
}

int fl__wire_check_range(const struct fl__wire_at *at, uint64_t value, uint64_t min, uint64_t max,
                         struct fl_err *err)
{
    if (value < min || value > max) {
        return fl__wire_refuse(at, err,
                               "%" PRIu64 " is out of range, expected %" PRIu64 " to %" PRIu64,
                               value, min, max);
    }
    return FL_OK;
}

/* --- the arena --- */

struct fl__arena_block {
    struct fl__arena_block *next;
    max_align_t data[];
};

/* Payload of a block, unless one array needs more. */
#define BLOCK_BYTES 4096

void fl__arena_done(struct fl__wire_arena *arena)
{
    while (arena->blocks != NULL) {
        struct fl__arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
}

void *fl__arena_array(struct fl__wire_arena *arena, size_t n, size_t size)
{
    const size_t align = sizeof(max_align_t);
    struct fl__arena_block *block = arena->blocks;
    size_t len;

    if (n > (SIZE_MAX - sizeof(*block) - align) / size) {
        return NULL;
    }
    len = (n * size + align - 1) / align * align;
    if (block == NULL || len > arena->size - arena->used) {
        arena->size = len > BLOCK_BYTES ? len : BLOCK_BYTES;
        arena->used = 0;
        block = calloc(1, sizeof(*block) + arena->size);
        if (block == NULL) {
            arena->size = 0; /* The next one needs a block of its own. */
            return NULL;
        }
        block->next = arena->blocks;
        arena->blocks = block;
    }
    arena->used += len;
    return (uint8_t *)block->data + arena->used - len;
}

char *fl__wire_clean(struct fl__wire_arena *arena, const char *text)
{
    const uint8_t *s = (const uint8_t *)(text != NULL ? text : "");
    size_t len = strlen((const char *)s);
    char *out = fl__arena_array(arena, (len < FL_WIRE_MAX_TEXT ? len : FL_WIRE_MAX_TEXT) + 1, 1);
    size_t i = 0;
    size_t at = 0;

    if (out == NULL) {
        return NULL;
    }
    while (i < len) {
        size_t n = fl_str_utf8(s + i, len - i);
        size_t wide = n > 0 ? n : 1;

        if (at + wide > FL_WIRE_MAX_TEXT) {
            break;
        }
        if (n > 0) {
            (void)memcpy(out + at, s + i, n);
        } else {
            out[at] = '?';
        }
        at += wide;
        i += wide;
    }
    return out;
}

ProtobufCBinaryData fl__wire_bytes(const void *data, size_t len)
{
    return (ProtobufCBinaryData){.len = len, .data = (uint8_t *)(uintptr_t)data};
}

/* --- pairs --- */

static int check_label(const struct fl__wire_at *at, const char *value, struct fl_err *err)
{
    return value[0] != '\0' ? fl__wire_check_text(at, value, err)
                            : fl__wire_refuse(at, err, "an entry has no key");
}

/* Entries of all map fields are alike; errors are of the map. */
typedef Fl__V1__Labels__LabelsEntry entry;
_Static_assert(sizeof(entry) == sizeof(Fl__V1__Hello__LabelsEntry) &&
                   sizeof(entry) == sizeof(Fl__V1__Component__OptionsEntry) &&
                   offsetof(entry, value) == offsetof(Fl__V1__Hello__LabelsEntry, value) &&
                   offsetof(entry, value) == offsetof(Fl__V1__Component__OptionsEntry, value),
               "one table for all entries");

#define FL__ROW_LABEL(m, f, ...) FL__ONE(FL__TEXT, m, f, char *, .check = check_label, __VA_ARGS__)
#define FL_WIRE_ROWS_label(X) \
    X(LABEL, key, key, .hidden = true) X(TEXT, value, value, .hidden = true)
#define FL_WIRE_ROWS_option(X) \
    X(NAME, key, key, .hidden = true) X(TEXT, value, value, .raw = true, .hidden = true)
/* Rooms without messages have labels too, so the struct is theirs (libfl/base/match.h). */
#define fl_wire_pair fl_pair
FL__WIRE_TABLE(label, pair, Labels__LabelsEntry, labels__labels_entry, .max = 0)
FL__WIRE_TABLE(option, pair, Labels__LabelsEntry, labels__labels_entry, .max = 0)

const struct fl__wire_message *fl__wire_label_type(void)
{
    return label_type();
}

const struct fl__wire_message *fl__wire_option_type(void)
{
    return option_type();
}
