#ifndef FL_SERVER_NETWORK_NO_MEMORY_H
#define FL_SERVER_NETWORK_NO_MEMORY_H

/* Out of memory where no request can be refused. */

#include "libfl/base/err.h"
#include "libfl/base/log.h"

/*
 * Out of memory for `what`, a message that must not be lost: without it a client, an operator or
 * the coordinator would wait forever. So the process ends here, as if killed, with a log line and
 * exit code 1; operations that can be refused are refused instead
 * (docs/architecture.md#contracts-worth-knowing). Any thread.
 */
FL_NORETURN void fl_serverd_no_memory(const struct fl_log *log, const char *what);
/*
 * Reserve memory for the event loops, before the first of them is created; the process ends with a
 * log line when the reserve does not suffice. Borrows `log` permanently. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_serverd_keep_back_memory(struct fl_log *log);

#endif
