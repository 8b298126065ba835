#ifndef FL_PROGRAM_LINES_H
#define FL_PROGRAM_LINES_H

/*
 * What a program writes to stderr as lines of our own log: each line once, of a progress bar
 * (carriage returns) its last state, and no more than a rate allows. The time is an argument.
 *
 * Threading: one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/log.h"
#include "libfl/base/rate.h"

/* Of one line of the log; a longer one goes on in the next. */
#define FL_LINES_TEXT 1024
/* Bytes that may come at once, and that more may come each second. */
#define FL_LINES_BURST ((uint64_t)256 << 10)
#define FL_LINES_RATE  ((uint64_t)4 << 10)

struct fl_lines {
    const struct fl_log *log; /* borrowed; NULL: none of this happens */
    char text[FL_LINES_TEXT + 1];
    size_t len;
    bool returned;           /* a carriage return came last */
    struct fl_bucket bucket; /* full at the first byte */
    bool begun;
    uint64_t began_ms;
    uint64_t left_out; /* lines since the last one that was written */
};

/* `now_ms` of all calls is of a clock that never goes back. */
void fl_lines_init(struct fl_lines *lines, const struct fl_log *log);
void fl_lines_take(struct fl_lines *lines, const char *bytes, size_t n, uint64_t now_ms);
/* No more comes: an unfinished line is one, and what was left out is said. */
void fl_lines_end(struct fl_lines *lines, uint64_t now_ms);

#endif
