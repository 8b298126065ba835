#ifndef FL_RPC_SEGQ_H
#define FL_RPC_SEGQ_H

/*
 * A queue of byte runs that lie in counted blobs: how messages wait for the socket
 * without being copied. Used per call, and by the transport for what goes out next.
 *
 * Ownership: each run holds one reference to its blob, given back when the run has been
 * dropped.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"

struct fl_seg {
    const uint8_t *data;
    size_t len;
    struct fl_blob *blob;
    uint32_t tag; /* of the transport: which stream the bytes belong to */
};

/* All zero is an empty queue. */
struct fl_segq {
    struct fl_seg *ring;
    size_t cap; /* a power of two, or 0 */
    size_t head;
    size_t n;
    size_t bytes;
};

void fl_segq_done(struct fl_segq *q);
/* Make room for `n` more runs, so that as many pushes cannot fail. FL_ENOMEM. */
FL_MUST_CHECK int fl_segq_reserve(struct fl_segq *q, size_t n);
/*
 * Append a run; room must have been reserved. Keeps a reference to `blob`. Bytes that
 * continue the last run of the same blob and tag are joined to it.
 */
void fl_segq_push(struct fl_segq *q, const uint8_t *data, size_t len, struct fl_blob *blob,
                  uint32_t tag);
/* The i-th run from the front (i < n). */
const struct fl_seg *fl_segq_at(const struct fl_segq *q, size_t i);
/* Drop up to `max` bytes of the first run; returns how many and their tag. */
size_t fl_segq_drop_front(struct fl_segq *q, size_t max, uint32_t *ret_tag);
/*
 * Move the first `n` bytes (n <= from->bytes) to the end of `to` under `tag`. FL_ENOMEM:
 * nothing was moved.
 */
FL_MUST_CHECK int fl_segq_move(struct fl_segq *to, struct fl_segq *from, size_t n, uint32_t tag);
/* Forget all runs and give the ring's memory back. */
void fl_segq_clear(struct fl_segq *q);

#endif
