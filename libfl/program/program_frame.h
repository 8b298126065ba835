#ifndef FL_PROGRAM_FRAME_H
#define FL_PROGRAM_FRAME_H

/*
 * Messages with a length in front, over a stream socket: 4 bytes, little-endian, and that many
 * bytes (docs/trainer-protocol.md). Nothing here waits: who polls `fd` calls flush and fill.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"

/* Most bytes of a message that is taken. */
#define FL_FRAMED_MAX ((size_t)1 << 20)
/*
 * And of one that is sent: the description of the largest model that a layout takes
 * (FL_LAYOUT_MAX_*, 4.2 MB) fits.
 */
#define FL_FRAMED_SENT_MAX ((size_t)8 << 20)
#define FL_FRAMED_HEAD     ((size_t)4)

/*
 * Is there a whole message at the beginning of `data`? FL_OK: `*ret_len` bytes behind the head;
 * FL_EAGAIN: not yet; FL_EPROTO: no length that is allowed.
 */
FL_MUST_CHECK int fl_framed_parse(const uint8_t *data, size_t len, size_t *ret_len,
                                  struct fl_err *err);

struct fl_framed {
    int fd;            /* borrowed */
    struct fl_buf in;  /* from the first byte of a message on */
    struct fl_buf out; /* not yet taken by the socket */
    size_t taken;      /* of `in`: the message that was told last */
    bool closed;       /* the other side has closed its end, or takes nothing any more */
};

void fl_framed_init(struct fl_framed *f, int fd);
void fl_framed_done(struct fl_framed *f);
/* Queue a message. FL_ELIMIT: longer than FL_FRAMED_SENT_MAX; FL_ENOMEM. */
FL_MUST_CHECK int fl_framed_put(struct fl_framed *f, const char *text, size_t len);
/* Hand the socket what it takes now. */
void fl_framed_flush(struct fl_framed *f);
/* Read once what is there. True: something came. FL_ENOMEM counts as closed. */
bool fl_framed_fill(struct fl_framed *f);
/*
 * The next message of what was read, which is there until the next call. FL_EAGAIN: no whole one;
 * FL_EPROTO.
 */
FL_MUST_CHECK int fl_framed_next(struct fl_framed *f, const char **ret, size_t *ret_len,
                                 struct fl_err *err);
/* Bytes of a message that has not ended. */
size_t fl_framed_pending(const struct fl_framed *f);

#endif
