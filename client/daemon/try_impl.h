#ifndef FL_CLIENTD_TRY_IMPL_H
#define FL_CLIENTD_TRY_IMPL_H

/* Private to --try-trainer: its state and the functions that its files share. */

#include "client/daemon/clientd_conf.h"
#include "client/daemon/try_report.h"
#include "client/daemon/try_trainer.h"
#include "libfl/program/persistent.h"

struct fl__try {
    const struct fl_client_conf *conf;
    const struct fl_try_options *options;
    struct fl_try_report report;
    struct fl_log log;
    char warning[512]; /* the last warning of libfl/program; "": none */
    struct fl_persistent_clock clock;
    struct fl_persistent *r;
    struct fl_layout *layout;
    size_t count;
    unsigned vectors; /* bit mask of the vectors that the declared parts need */
    float *model;
    float *plain;  /* `model` after the first training */
    float *other;  /* `model` after another training */
    float *vector; /* the vector passed to a capability */
    bool repeatable;
    uint64_t task_ms; /* time of a training */
    atomic_bool cancel;
    uint64_t cancel_at_ms; /* monotonic time to cancel at; 0: never */
};

/*
 * Describe the model to the program, with `part` or NULL. FL_ESHAPE: the program rejects the model.
 */
FL_MUST_CHECK int fl__try_describe(struct fl__try *t, const struct fl_layout *layout,
                                   const char *part, struct fl_err *err);
/* A training task with the learning rate, epochs and batch size of the options. */
struct fl_persistent_task fl__try_task(struct fl__try *t);
/* Run a training task and copy the trained model to `out`; all values must be finite. */
FL_MUST_CHECK int fl__try_train(struct fl__try *t, const struct fl_persistent_task *task,
                                float *out, struct fl_persistent_answer *ret, struct fl_err *err);
/* Is `other` equal to `plain` up to rounding? */
bool fl__try_same(const struct fl__try *t, const float *other);

/* --- checks of a program that has trained (try_checks.c) --- */

/* Check each capability (`parts`) that the program declares. */
void fl__try_parts(struct fl__try *t);
/* Cancel a running training. */
void fl__try_cancel(struct fl__try *t);
/* Send a model in which one tensor has another shape. */
void fl__try_shape(struct fl__try *t);

#endif
