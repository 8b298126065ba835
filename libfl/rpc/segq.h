#ifndef FL_RPC_SEGQ_H
#define FL_RPC_SEGQ_H

/*
 * A queue of byte runs in reference-counted blobs: messages wait for the socket without being
 * copied. Used per call, and by the transport for its next output.
 *
 * Ownership: each run holds one reference to its blob, released when the run has been dropped.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"

struct fl_seg {
    const uint8_t *data;
    size_t len;
    struct fl_blob *blob;
    uint32_t tag; /* set by the transport: the stream of the bytes */
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
/* Reserves room for `n` more runs, so that as many pushes cannot fail. FL_ENOMEM. */
FL_MUST_CHECK int fl_segq_reserve(struct fl_segq *q, size_t n);
/*
 * Appends a run; room must have been reserved. Keeps a reference to `blob`. Bytes that continue the
 * last run of the same blob and tag are joined to it.
 */
void fl_segq_push(struct fl_segq *q, const uint8_t *data, size_t len, struct fl_blob *blob,
                  uint32_t tag);
/* The i-th run from the front (i < n). */
const struct fl_seg *fl_segq_at(const struct fl_segq *q, size_t i);
/* Drops up to `max` bytes of the first run; returns how many and their tag. */
size_t fl_segq_drop_front(struct fl_segq *q, size_t max, uint32_t *ret_tag);
/*
 * Moves the first `n` bytes (n <= from->bytes) to the end of `to` under `tag`. FL_ENOMEM: nothing
 * was moved.
 */
FL_MUST_CHECK int fl_segq_move(struct fl_segq *to, struct fl_segq *from, size_t n, uint32_t tag);
/* Drops all runs and frees the ring's memory. */
void fl_segq_clear(struct fl_segq *q);

#endif
