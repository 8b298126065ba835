#ifndef FL_NET_NOTIFY_H
#define FL_NET_NOTIFY_H

/*
 * What a service manager is told (sd_notify(3)); nothing happens where there is none, or in a build
 * without libsystemd. watchdog.h and rpc_status.h are what loops tell by and by.
 *
 * Threading: any thread.
 */

#include <stdint.h>

/* The service serves; also the end of a reload. */
void fl_notify_ready(void);
/* A reload has begun; fl_notify_ready() ends it, whatever came of it. */
void fl_notify_reloading(void);
void fl_notify_stopping(void);
/* What `systemctl status` shows; one line. */
void fl_notify_status(const char *text);
/* Still alive, for the watchdog. */
void fl_notify_alive(void);
/* A start or stop goes on for so long from now, whatever the unit's timeout says. */
void fl_notify_extend(uint64_t ms);
/* Span within which fl_notify_alive() is expected again and again; 0: nobody expects it. */
uint64_t fl_notify_watchdog_ms(void);

#endif
