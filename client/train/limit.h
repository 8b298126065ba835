#ifndef FL_CLIENT_TRAIN_LIMIT_H
#define FL_CLIENT_TRAIN_LIMIT_H

/*
 * How long a task of a program may take: the task's deadline, what the operator says, and what the
 * tasks before say. One that hangs is ended by these.
 */

#include "client/train/trainer.h"

struct fl__limit {
    uint64_t time_limit_ms, first_limit_ms; /* 0: none */
    double straggler_factor;
    uint64_t straggler_min_ms;
    uint64_t longest_ms; /* of the good ones; 0: none was good yet */
};

struct fl__limit fl__limit_from(const struct fl_command_conf *conf);
/* In ms; 0: none. */
uint64_t fl__limit_of(const struct fl__limit *limit, uint64_t deadline_ms);
/* What stands behind a message that it was reached; not NULL. */
const char *fl__limit_note(const struct fl__limit *limit, uint64_t deadline_ms);
void fl__limit_good(struct fl__limit *limit, uint64_t took_ms);
/* What follows is other work: nothing is known of it. */
void fl__limit_forget(struct fl__limit *limit);

#endif
