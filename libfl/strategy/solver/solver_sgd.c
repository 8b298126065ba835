/*
 * solver: sgd (docs/algorithms.md#local-steps)
 *
 *     g <- g + weight_decay x,  v <- momentum v + g,  x <- x - learning_rate v
 *
 * v starts at 0 each round. Options: none (the training options are the federation's). State: v,
 * one model, when momentum is above 0. Cost: one pass over the model per step inside the backward
 * pass, two with momentum.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

struct fl_solver {
    struct fl__sgd sgd;
};

int fl__sgd_init(struct fl__sgd *sgd, const struct fl_solver_setup *setup, struct fl_err *err)
{
    sgd->net = setup->net;
    sgd->learning_rate = (float)setup->learning_rate;
    sgd->momentum = (float)setup->momentum;
    sgd->weight_decay = (float)setup->weight_decay;
    sgd->velocity = NULL;
    if (sgd->momentum > 0) {
        sgd->velocity = calloc(fl_net_block(setup->net), sizeof(float));
        if (sgd->velocity == NULL) {
            return fl_err_set(err, FL_ENOMEM, "momentum of %zu parameters: out of memory",
                              fl_net_block(setup->net));
        }
    }
    return FL_OK;
}

void fl__sgd_done(struct fl__sgd *sgd)
{
    free(sgd->velocity);
    sgd->velocity = NULL;
}

void fl__sgd_update(const struct fl__sgd *sgd, size_t offset, size_t n, float *params,
                    const float *grad)
{
    float decayed[FL__SOLVER_CHUNK];
    size_t at;

    if (sgd->velocity == NULL && !(sgd->weight_decay > 0)) {
        fl_vec_axpy(params, -sgd->learning_rate, grad, n);
        return;
    }
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;
        const float *g = grad + at;

        if (sgd->weight_decay > 0) {
            (void)memcpy(decayed, g, m * sizeof(float));
            fl_vec_axpy(decayed, sgd->weight_decay, params + at, m);
            g = decayed;
        }
        if (sgd->velocity != NULL) {
            float *v = sgd->velocity + offset + at;

            fl_vec_scale(v, sgd->momentum, v, m);
            fl_vec_axpy(v, 1.0f, g, m);
            g = v;
        }
        fl_vec_axpy(params + at, -sgd->learning_rate, g, m);
    }
}

static void sgd_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;

    fl__sgd_update(&solver->sgd, offset, n, params, grad);
}

static int sgd_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    (void)o;
    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        free(solver);
        return rv;
    }
    *ret = solver;
    return FL_OK;
}

static void sgd_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        free(solver);
    }
}

static double sgd_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, sgd_update, solver);
}

const struct fl_solver_ops fl_solver_sgd = {
    .policy =
        {
            .name = "sgd",
            .help = "stochastic gradient descent with momentum and weight decay",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
    .create = sgd_create,
    .destroy = sgd_destroy,
    .step = sgd_step,
};
