/*
 * solver: igfl_c (IGFL-C, Algorithm 2; eq. 9; docs/algorithms.md#displacements-of-igfl-c)
 *
 *     h_k = (delta_ps - delta_k / S) / T                      once, constant over the round
 *     x <- x + (1 + 1/S) (- learning_rate v) + h_k            T steps, v of sgd
 *     delta_k <- x - theta^t          server: delta_ps <- theta^{t+1} - theta^t
 *
 * delta_k is the client's own displacement in the last round that aggregated it: the whole
 * displacement, also when only a part was uploaded. delta_ps is the server's last step, of any
 * aggregator. In the first round both are 0 and a round is sgd with (1 + 1/S) learning_rate. With
 * all clients in every round, delta_ps follows FedAvgM with momentum 1 - 1/S and gain 1 + 1/S. For
 * a unit or neuron that no client sent delta_ps is 0: the model did not move (step 2 of the
 * client).
 *
 * Momentum and weight decay of the client belong to the gradient part of the step: v is that of
 * sgd, with weight decay and proximal term; h_k is outside of it and sums to T h_k. Aggregator
 * `momentum` in addition doubles the momentum and is refused unless server_momentum is set. Buffers
 * have no displacement.
 *
 * Options: mu (proximal term); denominator: S as in Algorithm 2, the clients selected, or P as in
 * eq. (9), all; server_momentum. State: client: theta^t and h_k, two models, beside sgd's, and
 * delta_k between rounds. Server: delta_ps. Cost: sgd's and one more read per step. One more model
 * to download. Runs on the training thread; server_step runs in the aggregation pass.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

enum denominator { SELECTED, ALL };

struct options {
    double mu;
    enum denominator denominator;
    bool server_momentum;
};

struct fl_solver {
    struct fl__sgd sgd; /* its rate is (1 + 1/S) learning_rate */
    struct fl__prox prox;
    /* Internal order; both NULL when adapting. */
    float *start; /* theta^t */
    float *drift; /* h_k */
};

static void igfl_c_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(g, grad + at, m * sizeof(float));
        fl__prox_pull(&solver->prox, offset + at, m, params + at, g);
        fl__sgd_update(&solver->sgd, offset + at, m, params + at, g);
        if (solver->drift != NULL) {
            fl_vec_axpy(params + at, 1.0f, solver->drift + offset + at, m);
        }
    }
}

static void igfl_c_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        free(solver->start);
        free(solver->drift);
        free(solver);
    }
}

static int igfl_c_divisor(const struct fl_options *o, uint32_t n_selected, uint32_t population,
                          double *ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    bool all = v->denominator == ALL;
    uint32_t n = all ? population : n_selected;

    if (n == 0) {
        return fl_err_set(err, FL_ESTATE,
                          "solver 'igfl_c' needs the number of %s clients, which the server did "
                          "not send",
                          all ? "all" : "selected");
    }
    *ret = n;
    return FL_OK;
}

static int igfl_c_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                         struct fl_solver **ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    struct fl_solver_setup scaled = *setup;
    struct fl_solver *solver;
    double over = 0;
    int rv = setup->adapting ? FL_OK
                             : igfl_c_divisor(o, setup->n_selected, setup->population, &over, err);

    if (rv != FL_OK) {
        return rv;
    }
    solver = calloc(1, sizeof(*solver));
    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    if (!setup->adapting) {
        size_t n = fl_net_block(setup->net);
        float *own = NULL;
        size_t i;

        FL_REQUIRE(setup->n_steps > 0);
        scaled.learning_rate *= 1 + 1 / over;
        rv = fl__solver_take(setup->net, setup->inputs, "displacement", &solver->drift, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl__solver_take(setup->net, setup->kept, "this client's displacement", &own, err);
        if (rv != FL_OK) {
            goto fail;
        }
        for (i = 0; i < n; i++) {
            double h = (double)solver->drift[i] - (double)own[i] / over;

            solver->drift[i] = (float)(h / (double)setup->n_steps);
        }
        free(own);
        rv = fl__solver_copy(setup->net, &solver->start, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl__prox_init(&solver->prox, v->mu, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__sgd_init(&solver->sgd, &scaled, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = solver;
    return FL_OK;
fail:
    igfl_c_destroy(solver);
    return rv;
}

static double igfl_c_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, igfl_c_update, solver);
}

static int igfl_c_finish(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                         struct fl_err *err)
{
    struct fl_net *net = solver->sgd.net;

    (void)sent;
    /* `start` is reused for the displacement. */
    fl_vec_sub(solver->start, fl_net_params(net), solver->start, fl_net_block(net));
    return fl__solver_put(net, solver->start, &kept[0], err);
}

static unsigned igfl_c_external_parts(const struct fl_options *o, bool adapting)
{
    const struct options *v = fl_options_values(o);

    return (v->mu > 0 ? FL_CAPABILITY_PULL : 0u) | (adapting ? 0u : FL_CAPABILITY_DRIFT);
}

/* Returns T h_k: the trainer divides it by its number of steps. */
static int igfl_c_external_begin(const struct fl_options *o, const struct fl_external_task *task,
                                 struct fl_external *ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    size_t n = fl_layout_count(task->layout);
    float *own = NULL;
    double over = 0;
    size_t i;
    int rv;

    ret->mu = v->mu;
    if (task->adapting) {
        return FL_OK;
    }
    rv = igfl_c_divisor(o, task->n_selected, task->population, &over, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__external_take(task->layout, task->inputs, "displacement", &ret->drift, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__external_take(task->layout, task->kept, "this client's displacement", &own, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        ret->drift[i] = (float)((double)ret->drift[i] - (double)own[i] / over);
    }
    fl__solver_clear_buffers(task->layout, ret->drift);
    ret->learning_rate *= 1 + 1 / over;
    free(own);
    return FL_OK;
}

static int igfl_c_external_finish(const struct fl_options *o, const struct fl_external_task *task,
                                  const float *trained, uint64_t steps, struct fl_buf *kept,
                                  struct fl_buf *sent, struct fl_err *err)
{
    size_t n = fl_layout_count(task->layout);
    float *moved = malloc(n * sizeof(*moved));
    int rv;

    (void)o;
    (void)steps;
    (void)sent;
    if (moved == NULL) {
        return fl_err_set(err, FL_ENOMEM, "displacement of %zu parameters: out of memory", n);
    }
    fl_vec_sub(moved, trained, task->model, n);
    rv = fl__external_put(task->layout, moved, &kept[0], err);
    free(moved);
    return rv;
}

static void igfl_c_server_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    size_t i;

    (void)o;
    for (i = 0; i < block->n; i++) {
        block->state_new[0][i] = (float)block->step[i];
    }
}

static int igfl_c_fits(const struct fl_options *o, const struct fl_aggregate_ops *aggregate,
                       struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    if (aggregate == &fl_aggregate_momentum && !v->server_momentum) {
        return fl_err_set(err, FL_ECONF,
                          "solver 'igfl_c' already acts as momentum, which aggregate 'momentum' "
                          "doubles: choose another aggregate, or set server_momentum to yes");
    }
    return FL_OK;
}

static const char *const denominators[] = {[SELECTED] = "S", [ALL] = "P", NULL};

static const struct fl_opt_spec options[] = {
    FL__PROX_OPTION(struct options, "0"),
    {FL_OPT(struct options, ENUM, denominator), .def = "S", .choices = denominators,
     .help = "Divisor of the client's own displacement: S, the clients selected (Algorithm 2), or "
             "P, all clients (equation 9)."},
    {FL_OPT(struct options, BOOL, server_momentum), .def = "no",
     .help = "Allow aggregate 'momentum' in addition, which doubles the momentum."},
    FL_OPT_END_OF(struct options),
};

static const char *const displacement[] = {"displacement", NULL};
static const struct fl_keep keeps[] = {{"displacement", false}, {NULL, false}};

static const struct fl_agg_part server = {
    .n_state = 1,
    .state_names = displacement,
    .takes_masks = true,
    .is_step = true,
    .step = igfl_c_server_step,
};

const struct fl_solver_ops fl_solver_igfl_c = {
    .policy =
        {
            .name = "igfl_c",
            .help = "sgd that continues the last global step, without the client's own share of it",
            .source = "IGFL-C, Algorithm 2",
            .options = options,
        },
    .inputs = displacement,
    .keeps = keeps,
    .server = &server,
    .fits = igfl_c_fits,
    .create = igfl_c_create,
    .destroy = igfl_c_destroy,
    .step = igfl_c_step,
    .finish = igfl_c_finish,
    .external = {igfl_c_external_parts, igfl_c_external_begin, igfl_c_external_finish},
};
