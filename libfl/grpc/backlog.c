#include "libfl/grpc/backlog_impl.h"

void fl__backlog_none(struct fl__backlog *unread)
{
    *unread = (struct fl__backlog){.since_ms = UINT64_MAX};
}

void fl__backlog_wait(struct fl__backlog *unread, uint64_t now_ms, size_t bytes)
{
    if (unread->since_ms == UINT64_MAX) {
        unread->since_ms = now_ms;
    }
    if (unread->bytes == 0) { /* Their time began when the last ones were taken. */
        unread->bytes = bytes;
    }
}

void fl__backlog_taken(struct fl__backlog *unread, uint64_t now_ms, size_t n)
{
    if (n < unread->bytes) {
        unread->bytes -= n;
    } else {
        unread->bytes = 0;
        unread->since_ms = now_ms;
    }
}

uint64_t fl__backlog_due(const struct fl__backlog *unread, uint32_t span_ms)
{
    return unread->since_ms == UINT64_MAX ? UINT64_MAX : unread->since_ms + span_ms;
}
