/*
 * solver: prox (FedProx: Li et al. 2020; the client of FedMCSA, eq. 9, and of FedAMP)
 *
 * SGD on f_k(x) + (mu/2) ||x - anchor||^2: the step uses g + mu (x - anchor). Needs
 * learning_rate * mu < 2 to be stable.
 *
 * Options: mu (0: sgd, bit for bit); anchor:
 *     fixed   the model that was received last, for the whole round, as FedProx and
 *             FedMCSA are written;
 *     moving  overwritten by x after each step, as FedMCSA's authors released it: x is at
 *             its anchor whenever a step looks, so that mu does nothing.
 * State: the fixed anchor, one model, beside sgd's.
 * Cost: sgd's and one more read of the anchor a step; moving: sgd's.
 */
#include <stdlib.h>

#include "libfl/strategy/solver_impl.h"

enum anchor { FIXED, MOVING };

struct options {
    double mu;
    enum anchor anchor;
};

struct fl_solver {
    struct fl__sgd sgd;
    struct fl__prox prox;
};

/* 0: the anchor moves along, so that there is no pull. */
static double strength(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->anchor == MOVING ? 0 : v->mu;
}

static void update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;

    fl__prox_update(&solver->prox, &solver->sgd, offset, n, params, grad);
}

static void destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        free(solver);
    }
}

static int create(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    rv = fl__prox_init(&solver->prox, strength(o), setup, err);
    if (rv == FL_OK) {
        rv = fl__sgd_init(&solver->sgd, setup, err);
    }
    if (rv != FL_OK) {
        destroy(solver);
        return rv;
    }
    *ret = solver;
    return FL_OK;
}

static double step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, update, solver);
}

static unsigned outside_parts(const struct fl_options *o, bool adapting)
{
    (void)adapting;
    return strength(o) > 0 ? FL_CAPABILITY_PULL : 0;
}

static int outside_begin(const struct fl_options *o, const struct fl_external_task *task,
                         struct fl_external *ret, struct fl_err *err)
{
    (void)task;
    (void)err;
    ret->mu = strength(o);
    return FL_OK;
}

static const char *const anchors[] = {[FIXED] = "fixed", [MOVING] = "moving", NULL};

static const struct fl_opt_spec options[] = {
    FL__PROX_OPTION(struct options, "0.01"),
    {FL_OPT(struct options, ENUM, anchor), .def = "fixed", .choices = anchors,
     .help = "What the pull leads to: the model received last, or (moving) the model of the "
             "step before, which is no pull at all: FedMCSA as released."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_prox = {
    .policy =
        {
            .name = "prox",
            .help = "sgd that is pulled back to the received model",
            .source = "FedProx",
            .options = options,
        },
    .create = create,
    .destroy = destroy,
    .step = step,
    .outside = {outside_parts, outside_begin, NULL},
};
