#ifndef FL_SERVER_NETWORK_INBOX_H
#define FL_SERVER_NETWORK_INBOX_H

/*
 * Events of one control stream on their way to the coordinator. The coordinator's queue is in
 * posting order across all streams: so only a few events of a stream may be in that queue at once,
 * or a client that sends without end would delay all others. The rest waits here undecoded and
 * keeps its window credit, which slows the peer down; more than a short burst never has to wait.
 *
 * No I/O, no threads: the owner posts the events and reports when one was consumed.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"

/*
 * Events of one stream that the coordinator has not consumed yet. A client sends one at a time
 * (report, evaluation); more than one only hides the round trip between threads.
 */
#define FL_INBOX_POSTED 4

/* Bytes that may wait, in addition to one message of any length. */
#define FL_INBOX_WAITING ((size_t)64 * 1024)

struct fl_inbox {
    struct fl_buf waiting; /* each message is preceded by its length (uint32_t) */
    size_t at;             /* offset of the first waiting message */
    unsigned posted;
};

void fl_inbox_init(struct fl_inbox *box);
void fl_inbox_done(struct fl_inbox *box);
/*
 * A message was received. FL_OK and `*ret_post`: true: post it now; false: it waits as a copy and
 * the caller withholds its credit. FL_ELIMIT: too much waits; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_inbox_put(struct fl_inbox *box, const void *data, size_t len, bool *ret_post);
/* The coordinator consumed one event. */
void fl_inbox_taken(struct fl_inbox *box);
/*
 * The next message that may be posted, counted as posted, in `out` (cleared first; its memory is
 * reused). FL_ENOENT: none. FL_ENOMEM: it stays queued.
 */
FL_MUST_CHECK int fl_inbox_next(struct fl_inbox *box, struct fl_buf *out);

#endif
