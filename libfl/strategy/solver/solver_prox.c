/*
 * solver: prox (FedProx: Li et al. 2020; the client of FedMCSA, eq. 9, and of FedAMP)
 *
 * SGD on f_k(x) + (mu/2) ||x - anchor||^2: the step uses g + mu (x - anchor). Needs
 * learning_rate * mu < 2 to be stable.
 *
 * Options: mu (0: sgd, bit for bit); anchor:
 *     fixed   the model that was received last, for the whole round, as FedProx and
 *             FedMCSA are written;
 *     moving  overwritten by x after each step, as FedMCSA's authors released it: x equals its
 * anchor in every step, so mu has no effect. State: the fixed anchor, one model, beside sgd's.
 * Cost: sgd's and one more read of the anchor per step; moving: sgd's.
 */
#include <stdlib.h>

#include "libfl/strategy/solver/solver_impl.h"

enum anchor { FIXED, MOVING };

struct options {
    double mu;
    enum anchor anchor;
};

struct fl_solver {
    struct fl__sgd sgd;
    struct fl__prox prox;
};

/* Effective mu: 0 for a moving anchor, which is always x. */
static double prox_strength(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->anchor == MOVING ? 0 : v->mu;
}

static void prox_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;

    fl__prox_update(&solver->prox, &solver->sgd, offset, n, params, grad);
}

static void prox_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        free(solver);
    }
}

static int prox_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                       struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    rv = fl__prox_init(&solver->prox, prox_strength(o), setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = solver;
    return FL_OK;
fail:
    prox_destroy(solver);
    return rv;
}

static double prox_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, prox_update, solver);
}

static unsigned prox_external_parts(const struct fl_options *o, bool adapting)
{
    (void)adapting;
    return prox_strength(o) > 0 ? FL_CAPABILITY_PULL : 0;
}

static int prox_external_begin(const struct fl_options *o, const struct fl_external_task *task,
                               struct fl_external *ret, struct fl_err *err)
{
    (void)task;
    (void)err;
    ret->mu = prox_strength(o);
    return FL_OK;
}

static const char *const anchors[] = {[FIXED] = "fixed", [MOVING] = "moving", NULL};

static const struct fl_opt_spec options[] = {
    FL__PROX_OPTION(struct options, "0.01"),
    {FL_OPT(struct options, ENUM, anchor), .def = "fixed", .choices = anchors,
     .help = "Anchor of the proximal term: the model received last, or (moving) the model of the "
             "previous step, which has no effect: FedMCSA as released."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_prox = {
    .policy =
        {
            .name = "prox",
            .help = "sgd with a proximal term towards the received model",
            .source = "FedProx",
            .options = options,
        },
    .create = prox_create,
    .destroy = prox_destroy,
    .step = prox_step,
    .external = {prox_external_parts, prox_external_begin, NULL},
};
