#include "libfl/grpc/pace_impl.h"

void fl__pace_init(struct fl__pace *pace, uint64_t now_ms)
{
    *pace = (struct fl__pace){.since_ms = now_ms, .idle_ms = now_ms, .value = FL__PACE_START};
}

void fl__pace_busy(struct fl__pace *pace, uint64_t now_ms)
{
    if (pace->idle_ms != UINT64_MAX) {
        pace->since_ms += now_ms - pace->idle_ms;
        pace->idle_ms = UINT64_MAX;
    }
}

void fl__pace_idle(struct fl__pace *pace, uint64_t now_ms)
{
    if (pace->idle_ms == UINT64_MAX) {
        pace->idle_ms = now_ms;
    }
}

size_t fl__pace_sent(struct fl__pace *pace, uint64_t now_ms, size_t n)
{
    uint64_t elapsed = now_ms - pace->since_ms;
    uint64_t want;

    pace->bytes += n;
    if (elapsed < FL__PACE_WINDOW_MS) {
        return pace->value;
    }
    want = (uint64_t)pace->bytes * FL__PACE_HORIZON_MS / elapsed;
    /* The first windows see the kernel's buffers fill: believe in speed step by step. */
    if (want > pace->value * 2) {
        want = pace->value * 2;
    }
    if (want > FL__PACE_MAX) {
        want = FL__PACE_MAX;
    }
    pace->value = want < FL__PACE_MIN ? FL__PACE_MIN : (size_t)want;
    pace->since_ms = now_ms;
    pace->bytes = 0;
    return pace->value;
}
