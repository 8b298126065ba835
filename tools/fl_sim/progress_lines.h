#ifndef FL_SIM_PROGRESS_LINES_H
#define FL_SIM_PROGRESS_LINES_H

/*
 * The progress of `fl-sim run` as lines, as `flctl watch` shows a federation: trials, those that
 * run, and the newest rounds of the one that runs longest. Pure.
 */

#include "tools/screen/screen_lines.h"

/* Trials that are drawn. */
#define PROGRESS_TRIALS 8
#define PROGRESS_LABEL  128

struct progress_running {
    char label[PROGRESS_LABEL]; /* cut when it is longer */
    uint64_t seed;
    uint64_t round, rounds; /* rounds 0: not known */
    double accuracy;        /* negative: not measured */
    uint64_t bytes_up, time_us;
    struct fl_round_rec last[FL_TERM_ROUNDS]; /* oldest first */
    size_t n_last;
};

struct progress_shown {
    size_t trials, done;
    uint64_t elapsed_ms;
    const char *left; /* ", 3 min left", or "" */
    const struct progress_running *running;
    size_t n_running;
};

void progress_lines(struct fl_term_lines *lines, const struct progress_shown *shown);

#endif
