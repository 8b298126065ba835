#ifndef FL_CLIENT_WORK_TASK_H
#define FL_CLIENT_WORK_TASK_H

/*
 * What a server wants of a client: the newest task with the bundles that it lists, and the newest
 * evaluation, taken from the messages that they came in.
 */

#include "client/work/inputs.h"

/* What a Task says, without its bundles. */
struct fl_task {
    struct fl_round_key key;
    struct fl_round_key counted; /* the last round that the server counted this client in */
    double learning_rate;
    uint64_t seed;
    uint64_t order_seed; /* of the one order that `steps` walk through; 0: not told */
    uint64_t deadline_ms;
    uint32_t n_selected, population; /* 0: not told */
    uint64_t epoch; /* first round whose kept values are in the server's sum; 0: not told */
};

struct fl_wanted_evaluation {
    uint64_t round;
    double rate; /* of fitting; 0: that of the last task */
    struct fl_input bundle;
};

struct fl_wanted {
    struct fl_task task;
    struct fl_inputs listed; /* without data */
    struct fl_wanted_evaluation evaluation;
};

/* In place of the task before. */
void fl_wanted_task(struct fl_wanted *wanted, const struct fl_wire_task *task);
/*
 * In place of the evaluation before. FL_EPROTO: a bundle with no name that one can have, so there
 * is nothing to fetch; nothing changes.
 */
FL_MUST_CHECK int fl_wanted_evaluate(struct fl_wanted *wanted, uint64_t round, double rate,
                                     const struct fl_wire_bundle *bundle);
void fl_wanted_done(struct fl_wanted *wanted);

#endif
