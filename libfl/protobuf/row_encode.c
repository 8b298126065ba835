/*
 * Encoding by rows: fills the generated struct of a message from ours, then packs it. Texts are cut
 * and cleaned in an arena, all else is borrowed. Pure functions, any thread. Checks nothing: the
 * decoder of the peer does.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/protobuf/message_rows.h"

/* --- the arena --- */

struct fl_pb_arena_block {
    struct fl_pb_arena_block *next;
    max_align_t data[];
};

/* Payload of a block, unless one array needs more. */
#define BLOCK_BYTES 4096

void fl_pb_arena_done(struct fl_pb_arena *arena)
{
    while (arena->blocks != NULL) {
        struct fl_pb_arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
}

void *fl_pb_arena_array(struct fl_pb_arena *arena, size_t n, size_t size)
{
    const size_t align = sizeof(max_align_t);
    struct fl_pb_arena_block *block = arena->blocks;
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

char *fl_pb_clean(struct fl_pb_arena *arena, const char *text)
{
    const uint8_t *s = (const uint8_t *)(text != NULL ? text : "");
    size_t len = strlen((const char *)s);
    char *out = fl_pb_arena_array(arena, (len < FL_PB_MAX_TEXT ? len : FL_PB_MAX_TEXT) + 1, 1);
    size_t i = 0;
    size_t at = 0;

    if (out == NULL) {
        return NULL;
    }
    while (i < len) {
        size_t n = fl_str_utf8(s + i, len - i);
        size_t wide = n > 0 ? n : 1;

        if (at + wide > FL_PB_MAX_TEXT) {
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

/* --- rows --- */

/* Is any byte of the presence marker not zero? */
static bool is_sent(const struct fl_pb_row *row, const uint8_t *own)
{
    size_t i;

    for (i = 0; i < row->has_size && own[row->has + i] == 0; i++) {
    }
    return row->has_size == 0 || i < row->has_size;
}

static int put_text(const struct fl_pb_row *row, struct fl_pb_arena *arena, const void *from,
                    void *to)
{
    char *text;

    (void)memcpy(&text, from, sizeof(text));
    text = row->raw ? text : fl_pb_clean(arena, text);
    (void)memcpy(to, &text, sizeof(text));
    return text != NULL || row->raw ? FL_OK : FL_ENOMEM;
}

static ProtobufCBinaryData put_fixed(const struct fl_pb_row *row, const uint8_t *own)
{
    size_t len = row->size;

    if (!is_sent(row, own)) {
        return (ProtobufCBinaryData){0};
    }
    if (row->own_len != 0) {
        (void)memcpy(&len, own + row->own_len, sizeof(len));
    }
    return fl_pb_bytes(own + row->own, len);
}

/* One bit per byte, lowest bit first; without bytes none. */
static int put_mask(struct fl_pb_arena *arena, struct fl_pb_list from, ProtobufCBinaryData *to)
{
    size_t len = from.data != NULL ? (from.len + 7) / 8 : 0;
    uint8_t *mask = fl_pb_arena_array(arena, len, 1);
    size_t i;

    if (mask == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < from.len && from.data != NULL; i++) {
        mask[i / 8] |= (uint8_t)((from.data[i] != 0) << (i % 8));
    }
    *to = fl_pb_bytes(mask, len);
    return FL_OK;
}

/* New messages of this type, filled from an array; `to` gets their addresses. */
static int put_messages(const struct fl_pb_message *type, struct fl_pb_arena *arena,
                        const uint8_t *own, size_t n, void *to)
{
    size_t size = type->msg->sizeof_message;
    uint8_t *messages = fl_pb_arena_array(arena, n, size);
    size_t i;
    int rv;

    if (messages == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        uint8_t *msg = messages + i * size;

        protobuf_c_message_init(type->msg, msg);
        (void)memcpy((uint8_t *)to + i * sizeof(msg), &msg, sizeof(msg));
        rv = fl_pb_put(type, arena, own + i * type->size, msg);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* One value: a field that is not repeated, or an entry of a list. */
static int put_value(const struct fl_pb_row *row, struct fl_pb_arena *arena, const void *from,
                     void *to)
{
    struct fl_pb_list bytes;
    bool yes;

    switch (row->kind) {
    case FL_PB_U32:
    case FL_PB_F32:
        (void)memcpy(to, from, sizeof(uint32_t));
        return FL_OK;
    case FL_PB_U64:
    case FL_PB_F64:
    case FL_PB_FINITE:
        (void)memcpy(to, from, sizeof(uint64_t));
        return FL_OK;
    case FL_PB_BOOL:
        *(protobuf_c_boolean *)to = *(const bool *)from;
        return FL_OK;
    case FL_PB_YES:
        yes = *(const bool *)from;
        (void)memcpy(to, &(uint32_t){(uint32_t)(yes ? row->min : row->max)}, sizeof(uint32_t));
        return FL_OK;
    case FL_PB_TEXT:
        return put_text(row, arena, from, to);
    case FL_PB_CHARS:
        (void)memcpy(to, &from, sizeof(from));
        return FL_OK;
    case FL_PB_OWNED:
        (void)memcpy(&bytes, from, sizeof(bytes));
        *(ProtobufCBinaryData *)to = fl_pb_bytes(bytes.data, bytes.len);
        return FL_OK;
    case FL_PB_MASK:
        (void)memcpy(&bytes, from, sizeof(bytes));
        return put_mask(arena, bytes, to);
    case FL_PB_SUB:
        return put_messages(row->sub(), arena, from, 1, to);
    case FL_PB_FIXED:
    case FL_PB_RULE:
    case FL_PB_CODE:
        break;
    }
    return FL_EINVAL;
}

static int put_list(const struct fl_pb_row *row, struct fl_pb_arena *arena, struct fl_pb_list from,
                    ProtobufCBinaryData *to)
{
    size_t size = fl_pb_row_size(row);
    size_t msg_size = row->kind == FL_PB_OWNED ? sizeof(ProtobufCBinaryData) : sizeof(void *);
    uint8_t *list;
    size_t i;
    int rv;

    to->len = row->cut && from.len > row->most ? row->most : from.len;
    to->data = from.data;
    if (row->raw) {
        return FL_OK;
    }
    list = fl_pb_arena_array(arena, to->len, msg_size);
    to->data = list;
    if (list == NULL) {
        return FL_ENOMEM;
    }
    if (row->kind == FL_PB_SUB) {
        return put_messages(row->sub(), arena, from.data, to->len, list);
    }
    for (i = 0; i < to->len; i++) {
        rv = put_value(row, arena, from.data + i * size, list + i * msg_size);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_pb_put(const struct fl_pb_message *type, struct fl_pb_arena *arena, const void *own,
              void *msg)
{
    bool set = type->unset == NULL;
    unsigned which = 0;
    size_t i;
    int rv;

    if (!set) {
        (void)memcpy(&which, (const uint8_t *)own + type->own_case, sizeof(which));
    }
    for (i = 0; i < type->n_rows; i++) {
        const struct fl_pb_row *row = &type->rows[i];
        const uint8_t *from = (const uint8_t *)own + row->own;
        void *to = (uint8_t *)msg + row->msg;
        struct fl_pb_list list;

        if (row->which != 0 && row->which != which) {
            continue;
        }
        if (row->which != 0) {
            (void)memcpy((uint8_t *)msg + type->msg_case, &which, sizeof(which));
            set = true;
        }
        rv = FL_OK;
        if (row->kind == FL_PB_CODE) {
            rv = row->code->put(arena, own, msg);
        } else if (row->kind == FL_PB_FIXED) {
            *(ProtobufCBinaryData *)to = put_fixed(row, own);
        } else if (row->list) {
            (void)memcpy(&list, from, sizeof(list));
            rv = put_list(row, arena, list, to);
        } else if (row->kind != FL_PB_RULE && (row->has_size == 0 || is_sent(row, own))) {
            rv = put_value(row, arena, from, to);
        }
        if (rv != FL_OK) {
            return rv;
        }
    }
    return set ? FL_OK : FL_EINVAL;
}

int fl_pb_encode(const struct fl_pb_message *type, const void *own, struct fl_buf *out)
{
    struct fl_pb_arena arena = {0};
    ProtobufCMessage *msg = NULL;
    int rv = put_messages(type, &arena, own, 1, &msg);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_pb_pack(msg, out);
done:
    fl_pb_arena_done(&arena);
    return rv;
}
