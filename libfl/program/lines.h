#ifndef FL_PROGRAM_LINES_H
#define FL_PROGRAM_LINES_H

/*
 * Writes the stderr of a program to the log, line by line: each line once, of a progress bar
 * (carriage returns) its last state, with a rate limit. The time is an argument.
 *
 * Threading: one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/log.h"
#include "libfl/base/rate.h"

/* Maximum length of a log line; a longer line is continued in the next. */
#define FL_LINES_TEXT 1024
/* Burst size in bytes, and rate in bytes per second. */
#define FL_LINES_BURST ((uint64_t)256 << 10)
#define FL_LINES_RATE  ((uint64_t)4 << 10)

struct fl_lines {
    const struct fl_log *log; /* borrowed; NULL: all calls are no-ops */
    char text[FL_LINES_TEXT + 1];
    size_t len;
    bool returned;           /* the last character was a carriage return */
    struct fl_bucket bucket; /* tokens; full at the first byte */
    bool begun;
    uint64_t began_ms;
    uint64_t left_out; /* lines dropped since the last one that was written */
};

/* `now_ms` of all calls is from a monotonic clock. */
void fl_lines_init(struct fl_lines *lines, const struct fl_log *log);
void fl_lines_take(struct fl_lines *lines, const char *bytes, size_t n, uint64_t now_ms);
/* End of the input: writes an unfinished line, and the number of dropped lines. */
void fl_lines_end(struct fl_lines *lines, uint64_t now_ms);

#endif
