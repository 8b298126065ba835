#ifndef FL_NET_FAILED_START_H
#define FL_NET_FAILED_START_H

/*
 * Growing pauses between starts that fail, under systemd: what is wrong with a folder, a data set
 * or an address is mended by people or by time, and a start every two seconds until then is of no
 * use. systemd 252 has one RestartSec= for all of them, so the daemon itself waits before it ends:
 * not after the first failure, then 2 s, 4 s … up to a longest pause. The count lies in the folder
 * that RuntimeDirectory= gave ($RUNTIME_DIRECTORY) and RuntimeDirectoryPreserve=restart keeps;
 * without one, as on a terminal, there are no pauses.
 *
 * Threading: the main thread, when there is no other.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/log.h"

/* The pause after the n-th failure in a row (1: the first). */
uint64_t fl_start_pause_ms(unsigned failures, uint64_t longest_ms);
/*
 * A start has failed: count it, say how long it takes to the next one, and wait so long. SIGTERM
 * and SIGINT end the wait and the series: somebody looks after it now. False then.
 */
bool fl_start_failed(const struct fl_log *log, uint64_t longest_ms);
/* This one has not: the next failure is a first one again. */
void fl_start_succeeded(void);

#endif
