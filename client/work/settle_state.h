#ifndef FL_CLIENT_WORK_SETTLE_H
#define FL_CLIENT_WORK_SETTLE_H

/*
 * Before the first bundle of a task is fetched: what is kept is settled by what the server
 * counted, and what lies on the disk already need not come again.
 */

#include "client/work/inputs.h"
#include "client/work/task.h"
#include "client/work/worker.h"

struct fl_settling {
    struct fl_setup *setup; /* a reference */
    struct fl_round_key task, counted;
    uint64_t epoch;
    struct fl_input cached; /* the opaque bundle that is listed, or without a name */
    float *own;             /* the client's own model, owned; NULL: it has none */
};

/*
 * What `task` needs, listed in `listed`. False: nothing has to be settled, `ret` is empty and
 * fl_settling_choose() may follow at once. Takes a reference to `setup`.
 */
bool fl_settling_begin(const struct fl_worker *worker, struct fl_setup *setup,
                       struct fl_inputs *listed, const struct fl_task *task,
                       struct fl_settling *ret);
/* Touches the disk. An error of it: nothing has changed, call again. */
FL_MUST_CHECK int fl_settling_run(struct fl_settling *settling, const struct fl_worker *worker,
                                  struct fl_err *err);
/*
 * What has to be fetched of `listed`, with what is here already, in place of what `inputs` holds of
 * an earlier try. FL_EPROTO: a bundle that cannot be what it says.
 */
FL_MUST_CHECK int fl_settling_choose(struct fl_settling *settling, struct fl_inputs *listed,
                                     const struct fl_log *log, struct fl_inputs *inputs,
                                     struct fl_err *err);
void fl_settling_done(struct fl_settling *settling);

#endif
