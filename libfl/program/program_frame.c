#include "libfl/program/program_frame.h"

#include <errno.h>
#include <sys/socket.h>

/* Bytes per read, so that a peer that writes without end is handled in between. */
#define PIECE ((size_t)64 << 10)

int fl_framed_parse(const uint8_t *data, size_t len, size_t *ret_len, struct fl_err *err)
{
    size_t want;

    if (len < FL_FRAMED_HEAD) {
        return FL_EAGAIN;
    }
    want = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
    if (want == 0 || want > FL_FRAMED_MAX) {
        return fl_err_set(err, FL_EPROTO,
                          "a message of %zu bytes, which begins 0x%02x%02x%02x%02x; expected a "
                          "length of 1 to %zu in 4 bytes, little-endian, in front of each",
                          want, data[0], data[1], data[2], data[3], FL_FRAMED_MAX);
    }
    *ret_len = want;
    return len - FL_FRAMED_HEAD >= want ? FL_OK : FL_EAGAIN;
}

void fl_framed_init(struct fl_framed *f, int fd)
{
    *f = (struct fl_framed){.fd = fd};
    fl_buf_init(&f->in, FL_FRAMED_HEAD + FL_FRAMED_MAX + PIECE);
    fl_buf_init(&f->out, 2 * (FL_FRAMED_HEAD + FL_FRAMED_SENT_MAX));
}

void fl_framed_done(struct fl_framed *f)
{
    fl_buf_done(&f->in);
    fl_buf_done(&f->out);
    *f = (struct fl_framed){.fd = -1};
}

int fl_framed_put(struct fl_framed *f, const char *text, size_t len)
{
    const uint8_t head[FL_FRAMED_HEAD] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                                          (uint8_t)(len >> 24)};
    int rv;

    if (len == 0 || len > FL_FRAMED_SENT_MAX) {
        return FL_ELIMIT;
    }
    rv = fl_buf_reserve(&f->out, sizeof(head) + len);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(&f->out, head, sizeof(head));
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(&f->out, text, len);
}

void fl_framed_flush(struct fl_framed *f)
{
    while (f->out.len > 0 && !f->closed) {
        ssize_t n = send(f->fd, f->out.data, f->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            fl_buf_drop(&f->out, (size_t)n);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            /* Messages that arrived before are still to be read. */
            fl_buf_clear(&f->out);
            return;
        }
    }
}

bool fl_framed_fill(struct fl_framed *f)
{
    ssize_t n;

    if (f->closed) {
        return false;
    }
    if (f->taken > 0) {
        fl_buf_drop(&f->in, f->taken);
        f->taken = 0;
    }
    if (fl_buf_reserve(&f->in, PIECE) != FL_OK) {
        f->closed = true;
        return false;
    }
    n = recv(f->fd, f->in.data + f->in.len, PIECE, MSG_DONTWAIT);
    if (n > 0) {
        f->in.len += (size_t)n;
        return true;
    }
    f->closed = n == 0 || (errno != EAGAIN && errno != EINTR);
    return false;
}

int fl_framed_next(struct fl_framed *f, const char **ret, size_t *ret_len, struct fl_err *err)
{
    size_t len = 0;
    int rv;

    if (f->taken > 0) {
        fl_buf_drop(&f->in, f->taken);
        f->taken = 0;
    }
    rv = fl_framed_parse(f->in.data, f->in.len, &len, err);
    if (rv != FL_OK) {
        return rv;
    }
    f->taken = FL_FRAMED_HEAD + len;
    *ret = (const char *)f->in.data + FL_FRAMED_HEAD;
    *ret_len = len;
    return FL_OK;
}

size_t fl_framed_pending(const struct fl_framed *f)
{
    return f->in.len - f->taken;
}
