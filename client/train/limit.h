#ifndef FL_CLIENT_TRAIN_LIMIT_H
#define FL_CLIENT_TRAIN_LIMIT_H

/*
 * The time limit of a program's task: the smallest of the task's deadline, the configured limit,
 * and a multiple of the longest good run so far. A program that hangs is ended at this limit.
 */

#include "client/train/trainer.h"

struct fl__limit {
    uint64_t time_limit_ms, first_limit_ms; /* 0: none */
    double straggler_factor;
    uint64_t straggler_min_ms;
    uint64_t longest_ms; /* of the good runs; 0: no good run yet */
};

struct fl__limit fl__limit_from(const struct fl_command_conf *conf);
/* In ms; 0: none. */
uint64_t fl__limit_of(const struct fl__limit *limit, uint64_t deadline_ms);
/* Appended to the message that the limit was reached; not NULL. */
const char *fl__limit_note(const struct fl__limit *limit, uint64_t deadline_ms);
void fl__limit_good(struct fl__limit *limit, uint64_t took_ms);
/* Discards the run times: the next tasks are different work. */
void fl__limit_forget(struct fl__limit *limit);

#endif
