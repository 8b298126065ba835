#ifndef FL_GRPC_UNREAD_IMPL_H
#define FL_GRPC_UNREAD_IMPL_H

/*
 * Detects a peer that does not take the bytes committed to it. Private to libfl/grpc, pure. A peer
 * that takes a byte now and then does not read: the waiting bytes keep the memory that they are
 * part of (a frame of 16 KiB may keep a whole model), and no budget counts that memory any more
 * when its call has ended. So all bytes that waited at one time must be taken within the span. They
 * are as few as the link took lately in FL__PACING_HORIZON_MS (pacing_impl.h), so a slow link meets
 * the limit easily.
 */

#include <stddef.h>
#include <stdint.h>

struct fl__backlog {
    uint64_t since_ms; /* `bytes` have been waiting since then; UINT64_MAX: none wait */
    size_t bytes; /* remaining ones of those that waited then; 0: all are taken, others may wait */
};

/* Nothing waits. */
void fl__backlog_none(struct fl__backlog *unread);
/* `bytes`, not 0, are offered to the socket. */
void fl__backlog_wait(struct fl__backlog *unread, uint64_t now_ms, size_t bytes);
/* The socket took `n` bytes of what was offered. */
void fl__backlog_taken(struct fl__backlog *unread, uint64_t now_ms, size_t n);
/* When the span of `span_ms` ends; UINT64_MAX: nothing waits. */
uint64_t fl__backlog_due(const struct fl__backlog *unread, uint32_t span_ms);

#endif
