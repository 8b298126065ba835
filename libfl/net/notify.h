#ifndef FL_NET_NOTIFY_H
#define FL_NET_NOTIFY_H

/* Readiness for systemd (Type=notify); does nothing elsewhere. */

void fl_notify_ready(const char *status);
void fl_notify_stopping(void);

#endif
