/*
 * Encoding by rows: fills the generated struct of a message from ours, then packs it. Texts are cut
 * and cleaned in an arena, all else is borrowed. Pure functions, any thread. Checks nothing: the
 * decoder of the peer does.
 */
#include <string.h>

#include "libfl/wire/row_impl.h"

/* Is any byte of the presence marker not zero? */
static bool is_sent(const struct fl__wire_row *row, const uint8_t *own)
{
    size_t i;

    for (i = 0; i < row->has_size && own[row->has + i] == 0; i++) {
    }
    return row->has_size == 0 || i < row->has_size;
}

static int put_text(const struct fl__wire_row *row, struct fl__wire_arena *arena, const void *from,
                    void *to)
{
    char *text;

    (void)memcpy(&text, from, sizeof(text));
    text = row->raw ? text : fl__wire_clean(arena, text);
    (void)memcpy(to, &text, sizeof(text));
    return text != NULL || row->raw ? FL_OK : FL_ENOMEM;
}

static ProtobufCBinaryData put_fixed(const struct fl__wire_row *row, const uint8_t *own)
{
    size_t len = row->size;

    if (!is_sent(row, own)) {
        return (ProtobufCBinaryData){0};
    }
    if (row->own_len != 0) {
        (void)memcpy(&len, own + row->own_len, sizeof(len));
    }
    return fl__wire_bytes(own + row->own, len);
}

/* One bit per byte, lowest bit first; without bytes none. */
static int put_mask(struct fl__wire_arena *arena, struct fl_wire_bytes from,
                    ProtobufCBinaryData *to)
{
    size_t len = from.data != NULL ? (from.len + 7) / 8 : 0;
    uint8_t *mask = fl__arena_array(arena, len, 1);
    size_t i;

    if (mask == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < from.len && from.data != NULL; i++) {
        mask[i / 8] |= (uint8_t)((from.data[i] != 0) << (i % 8));
    }
    *to = fl__wire_bytes(mask, len);
    return FL_OK;
}

/* New messages of this type, filled from an array; `to` gets their addresses. */
static int put_messages(const struct fl__wire_message *type, struct fl__wire_arena *arena,
                        const uint8_t *own, size_t n, void *to)
{
    size_t size = type->msg->sizeof_message;
    uint8_t *messages = fl__arena_array(arena, n, size);
    size_t i;
    int rv;

    if (messages == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        uint8_t *msg = messages + i * size;

        protobuf_c_message_init(type->msg, msg);
        (void)memcpy((uint8_t *)to + i * sizeof(msg), &msg, sizeof(msg));
        rv = fl__wire_put(type, arena, own + i * type->size, msg);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* One value: a field that is not repeated, or an entry of a list. */
static int put_value(const struct fl__wire_row *row, struct fl__wire_arena *arena, const void *from,
                     void *to)
{
    struct fl_wire_bytes bytes;
    bool yes;

    switch (row->kind) {
    case FL__U32:
    case FL__F32:
        (void)memcpy(to, from, sizeof(uint32_t));
        return FL_OK;
    case FL__U64:
    case FL__F64:
    case FL__FINITE:
        (void)memcpy(to, from, sizeof(uint64_t));
        return FL_OK;
    case FL__BOOL:
        *(protobuf_c_boolean *)to = *(const bool *)from;
        return FL_OK;
    case FL__YES:
        yes = *(const bool *)from;
        (void)memcpy(to, &(uint32_t){(uint32_t)(yes ? row->min : row->max)}, sizeof(uint32_t));
        return FL_OK;
    case FL__TEXT:
        return put_text(row, arena, from, to);
    case FL__CHARS:
        (void)memcpy(to, &from, sizeof(from));
        return FL_OK;
    case FL__OWNED:
        (void)memcpy(&bytes, from, sizeof(bytes));
        *(ProtobufCBinaryData *)to = fl__wire_bytes(bytes.data, bytes.len);
        return FL_OK;
    case FL__MASK:
        (void)memcpy(&bytes, from, sizeof(bytes));
        return put_mask(arena, bytes, to);
    case FL__SUB:
        return put_messages(row->sub(), arena, from, 1, to);
    case FL__FIXED:
    case FL__RULE:
    case FL__CODE:
        break;
    }
    return FL_EINVAL;
}

static int put_list(const struct fl__wire_row *row, struct fl__wire_arena *arena,
                    struct fl_wire_bytes from, ProtobufCBinaryData *to)
{
    size_t size = fl__row_size(row);
    size_t msg_size = row->kind == FL__OWNED ? sizeof(ProtobufCBinaryData) : sizeof(void *);
    uint8_t *list;
    size_t i;
    int rv;

    to->len = row->cut && from.len > row->most ? row->most : from.len;
    to->data = from.data;
    if (row->raw) {
        return FL_OK;
    }
    list = fl__arena_array(arena, to->len, msg_size);
    to->data = list;
    if (list == NULL) {
        return FL_ENOMEM;
    }
    if (row->kind == FL__SUB) {
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

int fl__wire_put(const struct fl__wire_message *type, struct fl__wire_arena *arena, const void *own,
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
        const struct fl__wire_row *row = &type->rows[i];
        const uint8_t *from = (const uint8_t *)own + row->own;
        void *to = (uint8_t *)msg + row->msg;
        struct fl_wire_bytes list;

        if (row->which != 0 && row->which != which) {
            continue;
        }
        if (row->which != 0) {
            (void)memcpy((uint8_t *)msg + type->msg_case, &which, sizeof(which));
            set = true;
        }
        rv = FL_OK;
        if (row->kind == FL__CODE) {
            rv = row->code->put(arena, own, msg);
        } else if (row->kind == FL__FIXED) {
            *(ProtobufCBinaryData *)to = put_fixed(row, own);
        } else if (row->list) {
            (void)memcpy(&list, from, sizeof(list));
            rv = put_list(row, arena, list, to);
        } else if (row->kind != FL__RULE && (row->has_size == 0 || is_sent(row, own))) {
            rv = put_value(row, arena, from, to);
        }
        if (rv != FL_OK) {
            return rv;
        }
    }
    return set ? FL_OK : FL_EINVAL;
}

int fl__wire_encode(const struct fl__wire_message *type, const void *own, struct fl_buf *out)
{
    struct fl__wire_arena arena = {0};
    ProtobufCMessage *msg = NULL;
    int rv = put_messages(type, &arena, own, 1, &msg);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__wire_pack(msg, out);
done:
    fl__arena_done(&arena);
    return rv;
}
