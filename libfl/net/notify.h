#ifndef FL_NET_NOTIFY_H
#define FL_NET_NOTIFY_H

/*
 * Notifications to the service manager (sd_notify(3)). They do nothing without a service manager or
 * in a build without libsystemd. watchdog.h and rpc_status.h use these from loops.
 *
 * Threading: any thread.
 */

#include <stdint.h>

/* The service is ready; also ends a reload. */
void fl_notify_ready(void);
/* A reload has begun; fl_notify_ready() ends it, whether it succeeded or failed. */
void fl_notify_reloading(void);
void fl_notify_stopping(void);
/* What `systemctl status` shows; one line. */
void fl_notify_status(const char *text);
/* Feeds the watchdog. */
void fl_notify_alive(void);
/* The start or stop continues for this long from now, whatever the unit's timeout is. */
void fl_notify_extend(uint64_t ms);
/* Period within which fl_notify_alive() is expected; 0: no watchdog. */
uint64_t fl_notify_watchdog_ms(void);

#endif
