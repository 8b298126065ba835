/*
 * solver: prox (FedProx; ALGORITHMS 4.2)
 *
 * SGD on f_k(x) + (mu/2) ||x - theta^t||^2: the step uses g + mu (x - theta^t), with the
 * anchor fixed for the round. Needs learning_rate * mu < 2 to be stable.
 *
 * Options: mu (0: sgd, bit for bit). State: the anchor, one model, beside sgd's.
 * Cost: sgd's and one more read of the anchor a step.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver_impl.h"

struct fl_solver {
    struct fl__sgd sgd;
    float mu;
    float *anchor; /* internal order */
};

static void update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;
    float pulled[FL__SOLVER_CHUNK];
    float away[FL__SOLVER_CHUNK];
    size_t at;

    if (!(solver->mu > 0)) {
        fl__sgd_update(&solver->sgd, offset, n, params, grad);
        return;
    }
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(pulled, grad + at, m * sizeof(float));
        fl_vec_sub(away, params + at, solver->anchor + offset + at, m);
        fl_vec_axpy(pulled, solver->mu, away, m);
        fl__sgd_update(&solver->sgd, offset + at, m, params + at, pulled);
    }
}

static void destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        free(solver->anchor);
        free(solver);
    }
}

static int create(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    size_t size = fl_net_block(setup->net) * sizeof(float);
    int rv = FL_ENOMEM;

    if (solver != NULL) {
        solver->mu = (float)fl_options_float(o, "mu");
        solver->anchor = malloc(size);
    }
    if (solver == NULL || solver->anchor == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "anchor of %zu bytes: out of memory", size);
        goto fail;
    }
    (void)memcpy(solver->anchor, fl_net_params(setup->net), size);
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = solver;
    return FL_OK;
fail:
    destroy(solver);
    return rv;
}

static double step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, update, solver);
}

static const struct fl_opt_spec options[] = {
    {.name = "mu",
     .type = FL_OPT_FLOAT,
     .def = "0.01",
     .min = 0,
     .max = 1e6,
     .help = "Strength of the pull to the received model; 0 is sgd."},
    FL_OPT_END,
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
};
