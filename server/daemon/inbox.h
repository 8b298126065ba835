#ifndef FL_SERVERD_INBOX_H
#define FL_SERVERD_INBOX_H

/*
 * Events of one stream on their way to the coordinator. The coordinator takes what is posted to it
 * in the order of posting, whoever posted it: so only a few events of a stream may be in
 * that queue at once, or one that sends without end would stand before all the others. The
 * rest waits here as it came in and keeps its window credit, which slows the peer down; more
 * than a moment's worth nobody needs to have waiting.
 *
 * No I/O, no threads: the owner posts, and says what was taken.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"

/* Events of one stream that the coordinator has not taken yet. A client says one thing at a time
   (report, evaluation): more than one only so that a round trip between threads is no pause. */
#define FL_INBOX_POSTED 4

/* Bytes that may wait, beside one message of any length. */
#define FL_INBOX_WAITING ((size_t)64 * 1024)

struct fl_inbox {
    struct fl_buf waiting; /* each message with its length (uint32_t) before it */
    size_t at;             /* where the first one that waits begins */
    unsigned posted;
};

void fl_inbox_init(struct fl_inbox *box);
void fl_inbox_done(struct fl_inbox *box);
/*
 * A message came in. FL_OK and `*ret_post`: it is to be posted now, or waits as a copy and its
 * credit is to be held. FL_ELIMIT: too much waits; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_inbox_put(struct fl_inbox *box, const void *data, size_t len, bool *ret_post);
/* The coordinator took one. */
void fl_inbox_taken(struct fl_inbox *box);
/*
 * The next message that may be posted, counted as posted, in `out` (cleared first; its memory is
 * reused). FL_ENOENT: none. FL_ENOMEM: it waits on.
 */
FL_MUST_CHECK int fl_inbox_next(struct fl_inbox *box, struct fl_buf *out);

#endif
