#include "libfl/net/notify.h"

#include <stddef.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

void fl_notify_ready(const char *status)
{
    (void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void fl_notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}
#else
void fl_notify_ready(const char *status)
{
    (void)status;
}

void fl_notify_stopping(void)
{
}
#endif
