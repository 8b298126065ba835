/*
 * A disk that does not answer, as the coordinator sees it: its time stands still, and the operator
 * reads of it. Looks once a second, since nothing happens here while the disk hangs.
 */

#include <inttypes.h>

#include "libfl/base/clock.h"
#include "server/daemon/driver_impl.h"

#define LOOK_MS 1000

uint64_t fl_driver_now(struct fl_driver *driver)
{
    return fl_stall_clock_read(&driver->clock, fl_clock_ms(), fl_stall_find(driver->srv).for_ms);
}

void fl_driver_stall_text(const struct fl_driver *driver, char *out, size_t size)
{
    struct fl_stall stall = fl_stall_find(driver->srv);

    out[0] = '\0';
    if (stall.for_ms >= FL_STALL_REPORT_MS) {
        (void)fl_stall_text(driver->srv, stall, out, size);
    }
}

static void stall_report(struct fl_driver *driver)
{
    const struct fl_log *log = driver->srv->log;
    struct fl_stall stall = fl_stall_find(driver->srv);
    bool stalls = stall.for_ms >= FL_STALL_REPORT_MS;
    char text[FL_ERR_BUF_SIZE];

    if (stalls && !driver->stall_reported) {
        fl_log(log, FL_LOG_WARNING, "server",
               "%s: rounds and commands wait for it, no client is timed out meanwhile; look at the "
               "kernel's messages (dmesg) and at what the disk is mounted from",
               fl_stall_text(driver->srv, stall, text, sizeof(text)));
    } else if (!stalls && driver->stall_reported) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the disk of '%s' answers again after %" PRIu64 " s, deadlines go on from there",
               driver->srv->state_dir, driver->stall_ms / 1000);
    }
    if (stalls || driver->stall_reported) {
        fl_status_changed(driver->status);
    }
    driver->stall_reported = stalls;
    driver->stall_ms = stall.for_ms;
}

static void on_look(void *arg)
{
    struct fl_driver *driver = arg;

    (void)fl_driver_now(driver);
    stall_report(driver);
    fl_timer_start(driver->look, LOOK_MS);
}

int fl_driver_stall_create(struct fl_driver *driver)
{
    int rv = fl_timer_create(driver->loop, on_look, driver, &driver->look);

    if (rv == FL_OK) {
        fl_timer_start(driver->look, LOOK_MS);
    }
    return rv;
}
