#ifndef FL_SERVER_ADMIN_REPLIES_H
#define FL_SERVER_ADMIN_REPLIES_H

/*
 * The answer to one request of an operator or a peer: encoded messages that one thread makes and
 * the network loop sends, as fast as the peer receives them.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/rpc/call.h"

/* Most bytes of one answer: thousands of rounds, or a hundred thousand certificates, still fit. */
#define FL_REPLIES_MAX (64u << 20)

struct fl_replies {
    struct fl_buf messages; /* each is preceded by its length (size_t) */
    size_t next;            /* offset of the next one to send */
};

void fl_replies_init(struct fl_replies *replies);
/* Frees and wipes: it may contain an invitation. */
void fl_replies_done(struct fl_replies *replies);
/* Append a copy; appends nothing on error. FL_ENOMEM; FL_ELIMIT: more than FL_REPLIES_MAX. */
FL_MUST_CHECK int fl_replies_add(struct fl_replies *replies, const struct fl_buf *message);
/*
 * FL_OK: all are queued. FL_ELIMIT: call it again from on_writable(); other codes: finish the call.
 */
FL_MUST_CHECK int fl_replies_send(struct fl_replies *replies, struct fl_call *call);
/* The next message, which points into the replies; false after the last. For a reader of all. */
bool fl_replies_next(struct fl_replies *replies, const uint8_t **ret, size_t *ret_len);

#endif
