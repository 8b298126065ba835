#include "server/network/inbox.h"

#include <string.h>

void fl_inbox_init(struct fl_inbox *box)
{
    fl_buf_init(&box->waiting, SIZE_MAX);
    box->at = 0;
    box->posted = 0;
}

void fl_inbox_done(struct fl_inbox *box)
{
    fl_buf_done(&box->waiting);
}

int fl_inbox_put(struct fl_inbox *box, const void *data, size_t len, bool *ret_post)
{
    uint32_t head = (uint32_t)len;
    int rv;

    FL_REQUIRE(len <= UINT32_MAX);
    if (box->posted < FL_INBOX_POSTED && box->waiting.len == 0) {
        box->posted++;
        *ret_post = true;
        return FL_OK;
    }
    if (box->waiting.len > box->at + FL_INBOX_WAITING) {
        return FL_ELIMIT;
    }
    rv = fl_buf_reserve(&box->waiting, sizeof(head) + len);
    if (rv != FL_OK) {
        return rv;
    }
    FL_REQUIRE(fl_buf_add(&box->waiting, &head, sizeof(head)) == FL_OK);
    FL_REQUIRE(fl_buf_add(&box->waiting, data, len) == FL_OK);
    *ret_post = false;
    return FL_OK;
}

void fl_inbox_taken(struct fl_inbox *box)
{
    FL_REQUIRE(box->posted > 0);
    box->posted--;
}

int fl_inbox_next(struct fl_inbox *box, struct fl_buf *out)
{
    uint32_t len;
    int rv;

    if (box->posted >= FL_INBOX_POSTED || box->waiting.len == 0) {
        return FL_ENOENT;
    }
    (void)memcpy(&len, box->waiting.data + box->at, sizeof(len));
    fl_buf_clear(out);
    rv = fl_buf_add(out, box->waiting.data + box->at + sizeof(len), len);
    if (rv != FL_OK) {
        return rv;
    }
    box->at += sizeof(len) + len;
    if (box->at >= box->waiting.len / 2) { /* Each byte is moved at most once. */
        fl_buf_drop(&box->waiting, box->at);
        box->at = 0;
    }
    box->posted++;
    return FL_OK;
}
