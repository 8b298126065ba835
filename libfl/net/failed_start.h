#ifndef FL_NET_FAILED_START_H
#define FL_NET_FAILED_START_H

/*
 * Growing pauses between failed starts under systemd: a broken folder, data set or address is
 * repaired by an operator or with time, and a start every two seconds until then is useless.
 * systemd 252 has one fixed RestartSec=, so the daemon itself waits before it exits: not after the
 * first failure, then 2 s, 4 s … up to a longest pause. The number of failures is stored in the
 * folder of RuntimeDirectory= ($RUNTIME_DIRECTORY), which RuntimeDirectoryPreserve=restart keeps;
 * without that folder, as on a terminal, there are no pauses.
 *
 * Threading: the main thread, while no other thread runs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/log.h"

/* The pause after the n-th failure in a row (1: the first). */
uint64_t fl_start_pause_ms(unsigned failures, uint64_t longest_ms);
/*
 * Counts a failed start, logs the pause until the next one, and waits that long. SIGTERM and SIGINT
 * end the wait and reset the count, because an operator is at work; returns false then.
 */
bool fl_start_failed(const struct fl_log *log, uint64_t longest_ms);
/* The start has succeeded: resets the count. */
void fl_start_succeeded(void);

#endif
