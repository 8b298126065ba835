#include "libfl/rpc/frame.h"

#include <string.h>

static enum fl_frame_event next_prefix(struct fl_frame *frame, const uint8_t *data, size_t len,
                                       size_t *ret_used)
{
    size_t want = (size_t)(FL_FRAME_PREFIX - frame->n_prefix);
    size_t n = len < want ? len : want;

    if (n > 0) {
        (void)memcpy(frame->prefix + frame->n_prefix, data, n);
        frame->n_prefix = (uint8_t)(frame->n_prefix + n);
    }
    *ret_used = n;
    if (frame->n_prefix < FL_FRAME_PREFIX) {
        return FL_FRAME_MORE;
    }
    frame->flags = frame->prefix[0];
    frame->len = (uint32_t)frame->prefix[1] << 24 | (uint32_t)frame->prefix[2] << 16 |
                 (uint32_t)frame->prefix[3] << 8 | (uint32_t)frame->prefix[4];
    frame->left = frame->len;
    frame->in_body = true;
    return FL_FRAME_HEAD;
}

enum fl_frame_event fl_frame_next(struct fl_frame *frame, const uint8_t *data, size_t len,
                                  size_t *ret_used)
{
    size_t n;

    if (!frame->in_body) {
        return next_prefix(frame, data, len, ret_used);
    }
    if (frame->left == 0) {
        frame->in_body = false;
        frame->n_prefix = 0;
        *ret_used = 0;
        return FL_FRAME_END;
    }
    n = len < frame->left ? len : frame->left;
    *ret_used = n;
    if (n == 0) {
        return FL_FRAME_MORE;
    }
    frame->left -= (uint32_t)n;
    return FL_FRAME_BODY;
}

bool fl_frame_at_boundary(const struct fl_frame *frame)
{
    return !frame->in_body && frame->n_prefix == 0;
}

void fl_frame_prefix(uint8_t out[FL_FRAME_PREFIX], uint32_t len)
{
    out[0] = 0;
    out[1] = (uint8_t)(len >> 24);
    out[2] = (uint8_t)(len >> 16 & 0xff);
    out[3] = (uint8_t)(len >> 8 & 0xff);
    out[4] = (uint8_t)(len & 0xff);
}
