#include "client/work/wanted.h"

void fl_wanted_task(struct fl_wanted *wanted, const struct fl_wire_task *task)
{
    wanted->task = task->task;
    fl_inputs_list(&wanted->listed, task);
}

int fl_wanted_evaluate(struct fl_wanted *wanted, const struct fl_wire_evaluate *evaluate)
{
    struct fl_wanted_evaluation evaluation = {.round = evaluate->round,
                                              .rate = evaluate->learning_rate};

    if (fl_input_list(&evaluation.payload, &evaluate->payload) != FL_OK) {
        return FL_EPROTO;
    }
    wanted->evaluation = evaluation;
    return FL_OK;
}

void fl_wanted_done(struct fl_wanted *wanted)
{
    fl_inputs_done(&wanted->listed);
}
