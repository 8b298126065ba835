#include "server/admin/replies.h"

#include <string.h>

void fl_replies_init(struct fl_replies *replies)
{
    *replies = (struct fl_replies){.next = 0};
    fl_buf_init(&replies->messages, FL_REPLIES_MAX);
    replies->messages.secret = true; /* They may contain invitations. */
}

void fl_replies_done(struct fl_replies *replies)
{
    fl_buf_done(&replies->messages);
}

int fl_replies_add(struct fl_replies *replies, const struct fl_buf *message)
{
    struct fl_buf *to = &replies->messages;
    size_t len = message->len;
    int rv = fl_buf_reserve(to, sizeof(len) + len);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(to, &len, sizeof(len));
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(to, message->data, len);
}

bool fl_replies_next(struct fl_replies *replies, const uint8_t **ret, size_t *ret_len)
{
    const struct fl_buf *from = &replies->messages;
    size_t len;

    if (replies->next >= from->len) {
        return false;
    }
    (void)memcpy(&len, from->data + replies->next, sizeof(len));
    *ret = from->data + replies->next + sizeof(len);
    *ret_len = len;
    replies->next += sizeof(len) + len;
    return true;
}

int fl_replies_send(struct fl_replies *replies, struct fl_call *call)
{
    const struct fl_buf *from = &replies->messages;
    int rv;

    while (replies->next < from->len) {
        struct fl_piece piece = {0};
        size_t len;

        (void)memcpy(&len, from->data + replies->next, sizeof(len));
        piece.data = from->data + replies->next + sizeof(len);
        piece.len = len;
        piece.secret = true;
        rv = fl_call_send(call, &piece, 1);
        if (rv != FL_OK) {
            return rv;
        }
        replies->next += sizeof(len) + len;
    }
    return FL_OK;
}
