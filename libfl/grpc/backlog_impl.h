#ifndef FL_GRPC_UNREAD_IMPL_H
#define FL_GRPC_UNREAD_IMPL_H

/*
 * Does the peer take what is committed to it? Private to libfl/grpc, pure. Whoever takes a byte now
 * and then is no reader: what waits keeps the memory that it is of (a frame of 16 KiB a whole
 * model), and no budget counts it any more when its call has ended. So all of what waited at one
 * time has to be taken within the span. It is as little as the link took lately in
 * FL__PACING_HORIZON_MS (pacing_impl.h): a slow link has no trouble to do so.
 */

#include <stddef.h>
#include <stdint.h>

struct fl__backlog {
    uint64_t since_ms; /* `bytes` wait since then; UINT64_MAX: nothing waits */
    size_t bytes;      /* of those that waited then; 0: all are taken, others may wait */
};

/* Nothing waits. */
void fl__backlog_none(struct fl__backlog *unread);
/* `bytes`, not 0, are offered to the socket. */
void fl__backlog_wait(struct fl__backlog *unread, uint64_t now_ms, size_t bytes);
/* The socket took `n` bytes of what was offered. */
void fl__backlog_taken(struct fl__backlog *unread, uint64_t now_ms, size_t n);
/* When the peer has had `span_ms`; UINT64_MAX: nothing waits. */
uint64_t fl__backlog_due(const struct fl__backlog *unread, uint32_t span_ms);

#endif
