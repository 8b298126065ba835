#ifndef FL_CLIENTD_TRY_IMPL_H
#define FL_CLIENTD_TRY_IMPL_H

/* Inside a trial: what it is about, and what its parts ask of each other. */

#include "client/daemon/clientd_conf.h"
#include "client/daemon/try_report.h"
#include "client/daemon/try_trainer.h"
#include "libfl/program/persistent.h"

struct fl__try {
    const struct fl_client_conf *conf;
    const struct fl_try_options *options;
    struct fl_try_report report;
    struct fl_log log;
    char warning[512]; /* the last one of the room that runs the program; empty: none */
    struct fl_persistent_clock clock;
    struct fl_persistent *r;
    struct fl_layout *layout;
    size_t count;
    unsigned vectors; /* that the declared parts need */
    float *model;
    float *plain;  /* what the first training made of it */
    float *other;  /* what another one did */
    float *vector; /* that a part is given */
    bool repeatable;
    uint64_t task_ms; /* of a training */
    atomic_bool cancel;
    uint64_t cancel_at_ms; /* 0: it is not cancelled */
};

/* Describe the model to the program, with the one part or NULL. FL_ESHAPE: it refuses it. */
FL_MUST_CHECK int fl__try_describe(struct fl__try *t, const struct fl_layout *layout,
                                   const char *part, struct fl_err *err);
/* A training as the options say. */
struct fl_persistent_task fl__try_task(struct fl__try *t);
/* Carry out a training, and copy what it made to `out`; all of it has to be finite. */
FL_MUST_CHECK int fl__try_train(struct fl__try *t, const struct fl_persistent_task *task,
                                float *out, struct fl_persistent_answer *ret, struct fl_err *err);
/* Is it the same as `plain`, but for what no rounding explains? */
bool fl__try_same(const struct fl__try *t, const float *other);

/* --- checks of a program that has trained (try_checks.c) --- */

/* Each part that it declared. */
void fl__try_parts(struct fl__try *t);
/* A training is cancelled in its middle. */
void fl__try_cancel(struct fl__try *t);
/* A model that is not its own, by the shape of one tensor. */
void fl__try_shape(struct fl__try *t);

#endif
