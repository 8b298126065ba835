#include "libfl/grpc/backlog_impl.h"

void fl__backlog_none(struct fl__backlog *backlog)
{
    *backlog = (struct fl__backlog){.since_ms = UINT64_MAX};
}

void fl__backlog_wait(struct fl__backlog *backlog, uint64_t now_ms, size_t bytes)
{
    if (backlog->since_ms == UINT64_MAX) {
        backlog->since_ms = now_ms;
    }
    if (backlog->bytes == 0) { /* Their span began when the previous bytes were taken. */
        backlog->bytes = bytes;
    }
}

void fl__backlog_taken(struct fl__backlog *backlog, uint64_t now_ms, size_t n)
{
    if (n < backlog->bytes) {
        backlog->bytes -= n;
    } else {
        backlog->bytes = 0;
        backlog->since_ms = now_ms;
    }
}

uint64_t fl__backlog_due(const struct fl__backlog *backlog, uint32_t span_ms)
{
    return backlog->since_ms == UINT64_MAX ? UINT64_MAX : backlog->since_ms + span_ms;
}
