#include "libfl/grpc/pacing_impl.h"

void fl__pacing_init(struct fl__pacing *pace, uint64_t now_ms)
{
    *pace = (struct fl__pacing){.since_ms = now_ms, .idle_ms = now_ms, .value = FL__PACING_START};
}

void fl__pacing_busy(struct fl__pacing *pace, uint64_t now_ms)
{
    if (pace->idle_ms != UINT64_MAX) {
        pace->since_ms += now_ms - pace->idle_ms;
        pace->idle_ms = UINT64_MAX;
    }
}

void fl__pacing_idle(struct fl__pacing *pace, uint64_t now_ms)
{
    if (pace->idle_ms == UINT64_MAX) {
        pace->idle_ms = now_ms;
    }
}

size_t fl__pacing_sent(struct fl__pacing *pace, uint64_t now_ms, size_t n)
{
    uint64_t elapsed = now_ms - pace->since_ms;
    uint64_t want;

    pace->bytes += n;
    if (elapsed < FL__PACING_WINDOW_MS) {
        return pace->value;
    }
    want = (uint64_t)pace->bytes * FL__PACING_HORIZON_MS / elapsed;
    /*
     * The first windows measure the kernel's buffers filling, so the value at most doubles per
     * window.
     */
    if (want > pace->value * 2) {
        want = pace->value * 2;
    }
    if (want > FL__PACING_MAX) {
        want = FL__PACING_MAX;
    }
    pace->value = want < FL__PACING_MIN ? FL__PACING_MIN : (size_t)want;
    pace->since_ms = now_ms;
    pace->bytes = 0;
    return pace->value;
}
