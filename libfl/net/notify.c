#include "libfl/net/notify.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

#include "libfl/base/clock.h"

void fl_notify_ready(void)
{
    (void)sd_notify(0, "READY=1");
}

void fl_notify_reloading(void)
{
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
                     (unsigned long long)fl_clock_ms() * 1000);
}

void fl_notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}

void fl_notify_status(const char *text)
{
    (void)sd_notifyf(0, "STATUS=%s", text);
}

void fl_notify_alive(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

void fl_notify_extend(uint64_t ms)
{
    (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)ms * 1000);
}

uint64_t fl_notify_watchdog_ms(void)
{
    uint64_t us = 0;

    return sd_watchdog_enabled(0, &us) > 0 ? (us >= 1000 ? us / 1000 : 1) : 0;
}
#else
void fl_notify_ready(void)
{
}

void fl_notify_reloading(void)
{
}

void fl_notify_stopping(void)
{
}

void fl_notify_status(const char *text)
{
    (void)text;
}

void fl_notify_alive(void)
{
}

void fl_notify_extend(uint64_t ms)
{
    (void)ms;
}

uint64_t fl_notify_watchdog_ms(void)
{
    return 0;
}
#endif
