/*
 * solver: feddyn (FedDyn: Acar et al. 2021, Algorithm 1; docs/algorithms.md#dynamic-regularization)
 *
 *     min over x of  f_k(x) - <h_k, x> + alpha/2 ||x - theta^t||^2
 *     x <- x - learning_rate (g - h_k + alpha (x - theta^t))                each step
 *     h_k <- h_k - alpha Delta_k,  Delta_k = theta_k - theta^t
 *     server: h <- h - alpha/N sum_k Delta_k,  theta^{t+1} = mean theta_k - h / alpha
 *
 * h_k is the gradient of f_k at the client's last model, as far as its training found the minimum;
 * both h are 0 at the start. They are kept without alpha, as sums of displacements:
 *
 *     d_k = sum of the client's aggregated Delta_k,  h_k = -alpha d_k
 *     D   = sum of all d_k,                          h / alpha = -D / N
 *
 * so that theta += mean Delta + D / N, a change of alpha needs no new state, and a client that
 * joins (d_k = 0) counts in N at once. The correction follows the aggregator's step, whichever it
 * is. N counts every client whose d_k is in D (docs/algorithms.md#scaffolds-control); a client
 * commits d_k only for the units whose upload was aggregated, so D = sum of all d_k, unit by unit.
 *
 * The server computes D from the updates, so they must be exact (codec float32). Updates have equal
 * weights in their mean unless configured otherwise, as in the paper. Momentum and weight decay of
 * the client act as in sgd, on the whole gradient.
 *
 * Options: alpha. State: client: theta^t and alpha d_k, two models, beside sgd's, and d_k between
 * rounds. Server: D. Cost: sgd's and two more reads per step. Nothing more is downloaded or
 * uploaded. Runs on the training thread; the server's step runs in the aggregation pass.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

struct options {
    double alpha;
};

struct fl_solver {
    struct fl__sgd sgd;
    struct fl__prox prox;
    float alpha;
    /* Internal order */
    float *start; /* theta^t; NULL: it is the anchor of `prox` */
    float *moved; /* d_k; NULL when adapting */
};

static void feddyn_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(g, grad + at, m * sizeof(float));
        if (solver->moved != NULL) {
            fl_vec_axpy(g, solver->alpha, solver->moved + offset + at, m);
        }
        fl__prox_pull(&solver->prox, offset + at, m, params + at, g);
        fl__sgd_update(&solver->sgd, offset + at, m, params + at, g);
    }
}

static void feddyn_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        free(solver->start);
        free(solver->moved);
        free(solver);
    }
}

static int feddyn_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                         struct fl_solver **ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    solver->alpha = (float)v->alpha;
    rv = fl__prox_init(&solver->prox, v->alpha, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (setup->anchor != NULL) {
        rv = fl__solver_copy(setup->net, &solver->start, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (!setup->adapting) {
        rv = fl__solver_take(setup->net, setup->kept, "the sum of this client's displacements",
                             &solver->moved, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = solver;
    return FL_OK;
fail:
    feddyn_destroy(solver);
    return rv;
}

static double feddyn_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, feddyn_update, solver);
}

/* d_k += x - start; all arrays have n entries. */
static void feddyn_add_displacement(float *moved, const float *x, const float *start, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        moved[i] = (float)((double)moved[i] + ((double)x[i] - (double)start[i]));
    }
}

static int feddyn_finish(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                         struct fl_err *err)
{
    struct fl_net *net = solver->sgd.net;

    (void)sent;
    feddyn_add_displacement(solver->moved, fl_net_params(net),
                            solver->start != NULL ? solver->start : solver->prox.anchor,
                            fl_net_block(net));
    return fl__solver_put(net, solver->moved, &kept[0], err);
}

static unsigned feddyn_external_parts(const struct fl_options *o, bool adapting)
{
    (void)o;
    return FL_CAPABILITY_PULL | (adapting ? 0u : FL_CAPABILITY_GRADIENT);
}

static int feddyn_external_begin(const struct fl_options *o, const struct fl_external_task *task,
                                 struct fl_external *ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    size_t n = fl_layout_count(task->layout);
    float *moved = NULL;
    int rv;

    ret->mu = v->alpha;
    if (task->adapting) {
        return FL_OK;
    }
    rv = fl__external_take(task->layout, task->kept, "the sum of this client's displacements",
                           &moved, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_vec_scale(moved, (float)v->alpha, moved, n);
    fl__solver_clear_buffers(task->layout, moved);
    ret->gradient = moved;
    return FL_OK;
}

static int feddyn_external_finish(const struct fl_options *o, const struct fl_external_task *task,
                                  const float *trained, uint64_t steps, struct fl_buf *kept,
                                  struct fl_buf *sent, struct fl_err *err)
{
    float *moved = NULL;
    int rv = fl__external_take(task->layout, task->kept, "the sum of this client's displacements",
                               &moved, err);

    (void)o;
    (void)steps;
    (void)sent;
    if (rv != FL_OK) {
        return rv;
    }
    feddyn_add_displacement(moved, trained, task->model, fl_layout_count(task->layout));
    rv = fl__external_put(task->layout, moved, &kept[0], err);
    free(moved);
    return rv;
}

/* Updates are summed as they are. */
static double feddyn_factor(const struct fl_options *o, double learning_rate, double momentum,
                            uint64_t n_steps)
{
    (void)o;
    (void)learning_rate;
    (void)momentum;
    (void)n_steps;
    return 1;
}

static bool feddyn_wants_scaled(const struct fl_options *o)
{
    (void)o;
    return true;
}

static void feddyn_server_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    double senders = (double)block->n_senders;
    size_t i;

    (void)o;
    for (i = 0; i < block->n; i++) {
        float sum = (float)((double)block->state[0][i] + senders * block->scaled[i]);

        block->state_new[0][i] = sum;
        block->step[i] += (double)sum / (double)block->members;
    }
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, alpha), .def = "0.01", .min = 1e-9, .max = 1e6,
     .help = "Strength of the regularizer; training.learning_rate * alpha must stay below 2. The "
             "paper uses 0.1, 0.01 and 0.001."},
    FL_OPT_END_OF(struct options),
};

static const char *const displacement_sum[] = {"displacement_sum", NULL};
static const struct fl_keep keeps[] = {{"displacement_sum", true}, {NULL, false}};

static const struct fl_agg_part server = {
    .n_state = 1,
    .state_names = displacement_sum,
    .weighs_equally = true,
    .sums_kept = true,
    .step = feddyn_server_step,
    .wants_scaled = feddyn_wants_scaled,
};

const struct fl_solver_ops fl_solver_feddyn = {
    .policy =
        {
            .name = "feddyn",
            .help = "sgd with a dynamic regularizer, at whose fixed point all clients agree",
            .source = "FedDyn, Algorithm 1",
            .options = options,
        },
    .keeps = keeps,
    .server = &server,
    .factor = feddyn_factor,
    .create = feddyn_create,
    .destroy = feddyn_destroy,
    .step = feddyn_step,
    .finish = feddyn_finish,
    .external = {feddyn_external_parts, feddyn_external_begin, feddyn_external_finish},
};
