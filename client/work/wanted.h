#ifndef FL_CLIENT_WORK_WANTED_H
#define FL_CLIENT_WORK_WANTED_H

/*
 * What a server requested: the newest task with its payloads, and the newest evaluation, copied
 * from the messages.
 */

#include "client/work/inputs.h"

struct fl_wanted_evaluation {
    uint64_t round;
    double rate; /* learning rate of fitting; 0: that of the last task */
    struct fl_input payload;
};

struct fl_wanted {
    struct fl_task task;
    struct fl_inputs listed; /* without data */
    struct fl_wanted_evaluation evaluation;
};

/* Replace the task. */
void fl_wanted_task(struct fl_wanted *wanted, const struct fl_wire_task *task);
/*
 * Replace the evaluation. FL_EPROTO: the payload has an invalid name, so nothing can be fetched;
 * nothing changes.
 */
FL_MUST_CHECK int fl_wanted_evaluate(struct fl_wanted *wanted,
                                     const struct fl_wire_evaluate *evaluate);
void fl_wanted_done(struct fl_wanted *wanted);

#endif
