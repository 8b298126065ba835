#ifndef FL_CLIENTD_PROCESSOR_TIME_H
#define FL_CLIENTD_PROCESSOR_TIME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Processor time of this process and of its child processes so far, in ms: those that have ended
 * and, with `children`, those that run (a persistent training program); their own children count
 * when they have ended. Reads /proc, a file for each process of the host.
 */
uint64_t fl_processor_time_ms(bool children);

#endif
