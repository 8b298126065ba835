/*
 * Disk stalls in the coordinator: its time is suspended, and the operator is warned. Checks once a
 * second, since no events arrive here while the disk hangs. Coordinator thread.
 */

#include <inttypes.h>

#include "libfl/base/clock.h"
#include "server/runtime/runtime_impl.h"

#define STALL_CHECK_MS 1000

uint64_t fl_runtime_now(struct fl_runtime *runtime)
{
    return fl_stall_clock_read(&runtime->clock, fl_clock_ms(),
                               fl_stall_find(runtime->setup.watch).for_ms);
}

static void stall_on_timer(void *arg)
{
    struct fl_runtime *runtime = arg;
    const struct fl_log *log = runtime->setup.log;
    struct fl_stall stall;
    bool stalls;
    char text[FL_ERR_BUF_SIZE];

    (void)fl_runtime_now(runtime);
    stall = fl_stall_find(runtime->setup.watch);
    stalls = stall.for_ms >= FL_STALL_REPORT_MS;
    if (stalls && !runtime->stall_reported) {
        fl_log_noted(
            log, FL_LOG_WARNING, "server", NULL,
            FL_LOG_NOTE(DISK_STALLED, FL_LOG_WORD("thread", stall.thread)),
            "%s: rounds and commands are waiting, no client is timed out meanwhile; check the "
            "kernel log (dmesg) and the storage behind the disk",
            fl_stall_text(runtime->setup.watch, stall, text, sizeof(text)));
    } else if (!stalls && runtime->stall_reported) {
        fl_log_noted(log, FL_LOG_NOTICE, "server", NULL,
                     FL_LOG_NOTE(DISK_ANSWERS, FL_LOG_WHOLE("seconds", runtime->stall_ms / 1000)),
                     "the disk of '%s' answers again after %" PRIu64 " s, deadlines continue",
                     runtime->setup.state_dir, runtime->stall_ms / 1000);
    }
    fl_status_changed(runtime->status); /* Problems also come and go as time passes. */
    runtime->stall_reported = stalls;
    runtime->stall_ms = stall.for_ms;
    fl_runtime_disk_look(runtime);
    fl_timer_start(runtime->stall_timer, STALL_CHECK_MS);
}

int fl_runtime_stall_create(struct fl_runtime *runtime)
{
    int rv = fl_timer_create(runtime->loop, stall_on_timer, runtime, &runtime->stall_timer);

    if (rv != FL_OK) {
        return rv;
    }
    fl_timer_start(runtime->stall_timer, STALL_CHECK_MS);
    return FL_OK;
}
