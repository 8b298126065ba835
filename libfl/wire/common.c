/*
 * Decoding under a memory cap, checks of single fields, and the arena for encoding, for all
 * messages of libfl/wire. Pure functions, any thread. Knows no message.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/wire/wire_impl.h"

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
            protobuf_c_message_descriptor_get_field(type, field.number);

        if (of == NULL || field.type != FL__BYTES) {
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
                    size_t max, struct fl__unpacked *ret, struct fl_err *err)
{
    *ret = (struct fl__unpacked){.cap = 0};
    if (len > max) {
        return fl_err_set(err, FL_ELIMIT, "%s: %zu bytes, at most %zu are taken", type->short_name,
                          len, max);
    }
    return fl__wire_unpack_capped(type, data, len, FL__WIRE_COST(len), ret, err);
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

bool fl__utf8_valid(const char *text, size_t len)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t i = 0;

    while (i < len) {
        size_t n = fl_str_utf8(s + i, len - i);

        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

int fl__wire_check_name(const char *field, const char *value, struct fl_err *err)
{
    char quoted[64];

    if (fl_name_valid(value)) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_EPROTO, "%s: %s is not a name (1 to %d of [A-Za-z0-9._-], not starting with a dot)",
        field, fl_log_quote(quoted, sizeof(quoted), value, strlen(value)), FL_NAME_MAX - 1);
}

int fl__wire_check_text(const char *field, const char *value, struct fl_err *err)
{
    size_t len = strlen(value);

    if (len > FL_WIRE_MAX_TEXT) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu bytes of text, at most %d are taken", field, len,
                          FL_WIRE_MAX_TEXT);
    }
    if (!fl__utf8_valid(value, len)) {
        return fl_err_set(err, FL_EPROTO, "%s: the text is not UTF-8", field);
    }
    return FL_OK;
}

int fl__wire_check_count(const char *field, size_t n, size_t max, struct fl_err *err)
{
    if (n > max) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu entries, at most %zu are taken", field, n, max);
    }
    return FL_OK;
}

int fl__wire_check_range(const char *field, uint64_t value, uint64_t min, uint64_t max,
                         struct fl_err *err)
{
    if (value < min || value > max) {
        return fl_err_set(err, FL_EPROTO,
                          "%s: %" PRIu64 " is out of range, expected %" PRIu64 " to %" PRIu64,
                          field, value, min, max);
    }
    return FL_OK;
}

int fl__wire_check_finite(const char *field, double value, struct fl_err *err)
{
    if (!isfinite(value)) {
        return fl_err_set(err, FL_EPROTO, "%s: %g is not a finite number", field, value);
    }
    return FL_OK;
}

int fl__wire_check_set(const char *field, const void *message, struct fl_err *err)
{
    if (message == NULL) {
        return fl_err_set(err, FL_EPROTO, "%s: is missing", field);
    }
    return FL_OK;
}

static int take_text(const char *value, char **ret)
{
    char *copy = fl_str_dup(value);

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    *ret = copy;
    return FL_OK;
}

int fl__wire_take_name(const char *field, const char *value, char **ret, struct fl_err *err)
{
    int rv = fl__wire_check_name(field, value, err);

    return rv != FL_OK ? rv : take_text(value, ret);
}

int fl__wire_take_text(const char *field, const char *value, char **ret, struct fl_err *err)
{
    int rv = fl__wire_check_text(field, value, err);

    return rv != FL_OK ? rv : take_text(value, ret);
}

int fl__wire_copy_name(const char *field, const char *value, char ret[FL_NAME_MAX],
                       struct fl_err *err)
{
    int rv = fl__wire_check_name(field, value, err);

    return rv != FL_OK ? rv : fl_str_copy(ret, FL_NAME_MAX, value);
}

int fl__wire_copy_session(const char *field, const ProtobufCBinaryData *value,
                          struct fl_wire_session *ret, struct fl_err *err)
{
    if (value->len != FL_WIRE_SESSION) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu bytes, a session has %d", field, value->len,
                          FL_WIRE_SESSION);
    }
    (void)memcpy(ret->id, value->data, FL_WIRE_SESSION);
    return FL_OK;
}

int fl__wire_copy_digest(const char *field, const ProtobufCBinaryData *value, bool *ret_has,
                         uint8_t ret[FL_DIGEST_SIZE], struct fl_err *err)
{
    if (value->len != 0 && value->len != FL_DIGEST_SIZE) {
        return fl_err_set(err, FL_EPROTO, "%s: %zu bytes, a SHA-256 has %d", field, value->len,
                          FL_DIGEST_SIZE);
    }
    *ret_has = value->len != 0;
    if (*ret_has) {
        (void)memcpy(ret, value->data, FL_DIGEST_SIZE);
    }
    return FL_OK;
}

static int take_pair(const char *field, const struct fl__pair_ref *ref, struct fl_wire_pair *ret,
                     struct fl_err *err)
{
    int rv;

    if (ref->key[0] == '\0') {
        return fl_err_set(err, FL_EPROTO, "%s: an entry has no key", field);
    }
    rv = fl__wire_take_text(field, ref->key, &ret->key, err);
    return rv != FL_OK ? rv : fl__wire_take_text(field, ref->value, &ret->value, err);
}

int fl__wire_take_pairs(const char *field, const struct fl__pair_ref *refs, size_t n,
                        struct fl_wire_pair **ret, size_t *ret_n, struct fl_err *err)
{
    struct fl_wire_pair *pairs;
    size_t n_pairs = 0;
    size_t i;
    size_t j;
    int rv = FL_OK;

    *ret = NULL;
    *ret_n = 0;
    if (n == 0) {
        return FL_OK;
    }
    pairs = calloc(n, sizeof(*pairs));
    if (pairs == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n && rv == FL_OK; i++) {
        struct fl_wire_pair pair = {NULL, NULL};

        rv = take_pair(field, &refs[i], &pair, err);
        if (rv != FL_OK) {
            free(pair.key);
            free(pair.value);
            break;
        }
        for (j = 0; j < n_pairs && strcmp(pairs[j].key, pair.key) != 0; j++) {
        }
        free(pairs[j].key);
        free(pairs[j].value);
        pairs[j] = pair;
        n_pairs += j == n_pairs;
    }
    if (rv != FL_OK) {
        fl__wire_pairs_done(pairs, n_pairs);
        return rv;
    }
    *ret = pairs;
    *ret_n = n_pairs;
    return FL_OK;
}

void fl__wire_pairs_done(struct fl_wire_pair *pairs, size_t n)
{
    size_t i;

    for (i = 0; pairs != NULL && i < n; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
    free(pairs);
}

struct fl__arena_block {
    struct fl__arena_block *next;
    max_align_t data[];
};

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
    struct fl__arena_block *block;

    if (n > (SIZE_MAX - sizeof(*block)) / size) {
        return NULL;
    }
    block = calloc(1, sizeof(*block) + n * size);
    if (block == NULL) {
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
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
