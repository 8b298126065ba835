#ifndef FL_BASE_LOG_JOURNAL_H
#define FL_BASE_LOG_JOURNAL_H

/*
 * The native protocol of systemd's journal: one datagram is one entry, a field on a line. Any
 * thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/un.h>

#include "libfl/base/log.h"

/* An address without a connection: a journal that was restarted gets the next line. */
struct fl_log_journal {
    atomic_int fd; /* -1: none; set last */
    struct sockaddr_un address;
};

/* For the life of the process; `journal` has none. */
void fl_log_journal_open(struct fl_log_journal *journal, const char *path);
/* `priority` as syslog(3); `note` may be NULL. False: it was not sent. */
bool fl_log_journal_send(const struct fl_log_journal *journal, int priority, const char *component,
                         const char *text, const struct fl_log_note *note);

#endif
