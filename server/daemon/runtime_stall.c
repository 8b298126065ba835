/*
 * A disk that does not answer, as the coordinator sees it: its time stands still, and the operator
 * reads of it. Looks once a second, since nothing happens here while the disk hangs.
 */

#include <inttypes.h>

#include "libfl/base/clock.h"
#include "server/daemon/runtime_impl.h"

#define LOOK_MS 1000

uint64_t fl_runtime_now(struct fl_runtime *runtime)
{
    return fl_stall_clock_read(&runtime->clock, fl_clock_ms(), fl_stall_find(runtime->srv).for_ms);
}

void fl_runtime_stall_text(const struct fl_runtime *runtime, char *out, size_t size)
{
    struct fl_stall stall = fl_stall_find(runtime->srv);

    out[0] = '\0';
    if (stall.for_ms >= FL_STALL_REPORT_MS) {
        (void)fl_stall_text(runtime->srv, stall, out, size);
    }
}

static void stall_report(struct fl_runtime *runtime)
{
    const struct fl_log *log = runtime->srv->log;
    struct fl_stall stall = fl_stall_find(runtime->srv);
    bool stalls = stall.for_ms >= FL_STALL_REPORT_MS;
    char text[FL_ERR_BUF_SIZE];

    if (stalls && !runtime->stall_reported) {
        fl_log(log, FL_LOG_WARNING, "server",
               "%s: rounds and commands wait for it, no client is timed out meanwhile; look at the "
               "kernel's messages (dmesg) and at what the disk is mounted from",
               fl_stall_text(runtime->srv, stall, text, sizeof(text)));
    } else if (!stalls && runtime->stall_reported) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the disk of '%s' answers again after %" PRIu64 " s, deadlines go on from there",
               runtime->srv->state_dir, runtime->stall_ms / 1000);
    }
    if (stalls || runtime->stall_reported) {
        fl_status_changed(runtime->status);
    }
    runtime->stall_reported = stalls;
    runtime->stall_ms = stall.for_ms;
}

static void on_look(void *arg)
{
    struct fl_runtime *runtime = arg;

    (void)fl_runtime_now(runtime);
    stall_report(runtime);
    fl_timer_start(runtime->look, LOOK_MS);
}

int fl_runtime_stall_create(struct fl_runtime *runtime)
{
    int rv = fl_timer_create(runtime->loop, on_look, runtime, &runtime->look);

    if (rv == FL_OK) {
        fl_timer_start(runtime->look, LOOK_MS);
    }
    return rv;
}
