#ifndef FL_PROGRAM_FRAME_H
#define FL_PROGRAM_FRAME_H

/*
 * Messages with a length prefix over a stream socket: 4 bytes, little-endian, then that many bytes
 * (docs/trainers.md). No function waits: the caller polls `fd` and calls flush and fill.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"

/* Maximum length of a received message. */
#define FL_FRAMED_MAX ((size_t)1 << 20)
/*
 * Maximum length of a sent message: the description of the largest model that a layout allows
 * (FL_LAYOUT_MAX_*, 4.2 MB) fits.
 */
#define FL_FRAMED_SENT_MAX ((size_t)8 << 20)
#define FL_FRAMED_HEAD     ((size_t)4)

/*
 * Does `data` begin with a complete message? FL_OK: `*ret_len` bytes behind the prefix; FL_EAGAIN:
 * incomplete; FL_EPROTO: an invalid length.
 */
FL_MUST_CHECK int fl_framed_parse(const uint8_t *data, size_t len, size_t *ret_len,
                                  struct fl_err *err);

struct fl_framed {
    int fd;            /* borrowed */
    struct fl_buf in;  /* starts with the prefix of a message */
    struct fl_buf out; /* not yet written to the socket */
    size_t taken;      /* bytes of `in`: the message that was returned last */
    bool closed;       /* the peer has closed its end, or accepts no data */
};

void fl_framed_init(struct fl_framed *f, int fd);
void fl_framed_done(struct fl_framed *f);
/* Queue a message. FL_ELIMIT: longer than FL_FRAMED_SENT_MAX; FL_ENOMEM. */
FL_MUST_CHECK int fl_framed_put(struct fl_framed *f, const char *text, size_t len);
/* Write as much as the socket accepts now. */
void fl_framed_flush(struct fl_framed *f);
/* Read once. True: data was read. FL_ENOMEM is treated as closed. */
bool fl_framed_fill(struct fl_framed *f);
/* The next complete message, valid until the next call. FL_EAGAIN: none; FL_EPROTO. */
FL_MUST_CHECK int fl_framed_next(struct fl_framed *f, const char **ret, size_t *ret_len,
                                 struct fl_err *err);
/* Bytes of an incomplete message. */
size_t fl_framed_pending(const struct fl_framed *f);

#endif
