#ifndef FL_SERVER_WORK_EVALUATOR_H
#define FL_SERVER_WORK_EVALUATOR_H

/*
 * Evaluation of a model on the server: by the built-in engine on a folder of test data, or by an
 * external program (docs/trainers.md) for models that the engine does not support.
 *
 * Threading: one call at a time. The call that creates the evaluator starts the program, and
 * fl_evaluator_run() restarts it after it exited; the threads of both live as long as it does.
 */

#include <stdatomic.h>

#include "libfl/base/log.h"
#include "libfl/data/dataset.h"
#include "libfl/nn/net.h"
#include "libfl/program/persistent.h"
#include "server/work/measure.h"

struct fl_evaluator;

/* Evaluate with `net` on all of `test`, also `metrics`, a set of 1u << enum fl_net_metric; takes
   the first two, also on error. FL_ENOMEM; FL_ECONF: as fl_net_metrics_create(). */
FL_MUST_CHECK int fl_evaluator_builtin(struct fl_dataset *test, struct fl_net *net,
                                       unsigned metrics, struct fl_evaluator **ret,
                                       struct fl_err *err);

struct fl_evaluator_program {          /* copied but for the log */
    const char *const *argv;           /* NULL-terminated */
    const char *const *environment;    /* "NAME=value", NULL-terminated; NULL: none */
    const char *federation;            /* sent to the program as its client name */
    const char *data;                  /* sent to the program; NULL: none */
    const struct fl_layout *layout;    /* of the federation's model */
    const struct fl_net_spec *net;     /* n_layers 0: only tensors are known */
    uint64_t limit_ms, start_limit_ms; /* of one evaluation, 0: none; of a start */
    uint64_t memory_bytes;             /* resident memory; 0: no limit */
    uint64_t descriptors;              /* soft limit of descriptors; 0: as this process */
    const struct fl_log *log;          /* borrowed */
    /* Whose data a program evaluates on that acts for many clients; NULL: it has its own. */
    const struct fl_persistent_client *acts_for;
};
/*
 * Starts the program and sends it the model. Errors name the program, with the end of its stderr:
 * as libfl/program/persistent.h; FL_EUNIMPL: it cannot evaluate; FL_ESHAPE: the model does not fit
 * its own.
 */
FL_MUST_CHECK int fl_evaluator_program(const struct fl_evaluator_program *conf,
                                       struct fl_evaluator **ret, struct fl_err *err);
void fl_evaluator_free(struct fl_evaluator *evaluator); /* NULL is allowed. */

/* Accuracy, mean loss and metrics of `theta`, exported order. FL_ECANCELED: `cancel` was set;
   FL_ENOENT: the program reported no sample; FL_ENUMERIC: its loss is not finite; else as above. */
FL_MUST_CHECK int fl_evaluator_run(struct fl_evaluator *evaluator, const float *theta,
                                   const atomic_bool *cancel, struct fl_evaluated *ret,
                                   struct fl_err *err);

#endif
