#include "server/runtime/stall.h"

#include <inttypes.h>
#include <stdio.h>

#include "libfl/net/loop.h"
#include "server/auth/auth.h"

static void stall_longest(struct fl_stall *stall, const char *thread, uint64_t busy_ms)
{
    if (busy_ms > stall->for_ms) {
        *stall = (struct fl_stall){thread, busy_ms};
    }
}

struct fl_stall fl_stall_find(const struct fl_stall_watch *watch)
{
    struct fl_stall stall = {.thread = "io"};

    stall_longest(&stall, "io", fl_worker_thread_busy_ms(watch->io));
    stall_longest(&stall, "db", fl_worker_thread_busy_ms(watch->db));
    /* Computing is no stall: only the time in a read or write of its job counts. */
    stall_longest(&stall, "work", fl_worker_thread_disk_ms(watch->work));
    stall_longest(&stall, "identity", fl_worker_thread_busy_ms(fl_auth_worker(watch->auth)));
    return stall;
}

const char *fl_stall_text(const struct fl_stall_watch *watch, struct fl_stall stall, char *out,
                          size_t size)
{
    (void)snprintf(out, size, FL_STALL_TEXT " for %" PRIu64 " s (thread %s)", watch->state_dir,
                   stall.for_ms / 1000, stall.thread);
    return out;
}

uint64_t fl_stall_clock_read(struct fl_stall_clock *clock, uint64_t now_ms, uint64_t busy_ms)
{
    bool stalls = busy_ms >= FL_STALL_CLOCK_MS;

    if (clock->stopped && stalls) {
        return clock->last_ms;
    }
    if (clock->stopped) { /* The clock resumes from where it stopped. */
        clock->stalled_ms = now_ms - clock->last_ms;
    } else {
        uint64_t began = now_ms - clock->stalled_ms - (stalls ? busy_ms : 0);

        /* The clock may have been read since the job began. */
        clock->last_ms = began > clock->last_ms ? began : clock->last_ms;
    }
    clock->stopped = stalls;
    return clock->last_ms;
}
