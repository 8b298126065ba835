/*
 * solver: per_fedavg (Per-FedAvg: Fallah et al. 2020, Algorithm 1)
 *
 *     w' = w - alpha g(w; D1)
 *     fo:  w <- w - learning_rate g(w'; D2)
 *     hf:  w <- w - learning_rate (g' - alpha H(w; D3) g'),  g' = g(w'; D2)
 *
 * The Hessian-vector product is exact, from one pass (fl_net_pass_jvp()).
 *
 * A step gets one batch, so an iteration takes two steps (hf: three): R iterations are 2 R (3 R)
 * steps, with D1, D2 (and D3) consecutive batches. An iteration that the end of the round
 * interrupts reuses its last batch for the missing steps, so that the round ends with w.
 *
 * g and H include weight decay; momentum applies to the steps of w.
 *
 * Adapting a copy before it is evaluated: the first step is w <- w - alpha g, further ones have
 * learning_rate. One step on training data is the definition; two on test data are what the
 * authors' code does (personal adapt, data test).
 *
 * Options: variant, alpha. State, beside momentum: fo: w, one model; hf: w and g', two models, and
 * another batch of activations. Cost: fo: sgd's; hf: sgd's twice in every third step.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

enum variant { FIRST_ORDER, HESSIAN_FREE };

struct options {
    enum variant variant;
    double alpha;
};

struct fl_solver {
    struct fl__sgd outer; /* without weight decay, which is in g */
    float alpha, weight_decay;
    bool hf, adapting;
    size_t n_steps, made;
    size_t phase; /* of the iteration: 0 before D1, 1 before D2, 2 before D3 */
    /* Internal order; NULL when adapting, and all but w for fo. */
    float *w;                /* while the network contains w' */
    float *gradient;         /* g' */
    struct fl__runs buffers; /* hf: ranges of buffers in the network's block */
};

typedef void (*chunk_cb)(const struct fl_solver *solver, size_t offset, size_t n, float *params,
                         float *g);

/* Call `cb` with g, weight decay included, chunk by chunk. */
static void each_chunk(const struct fl_solver *solver, size_t offset, size_t n, float *params,
                       const float *grad, chunk_cb cb)
{
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(g, grad + at, m * sizeof(float));
        if (solver->weight_decay > 0) {
            fl_vec_axpy(g, solver->weight_decay, params + at, m);
        }
        cb(solver, offset + at, m, params + at, g);
    }
}

static void to_inner(const struct fl_solver *solver, size_t offset, size_t n, float *params,
                     float *g)
{
    (void)memcpy(solver->w + offset, params, n * sizeof(float));
    fl_vec_axpy(params, -solver->alpha, g, n);
}

static void from_inner(const struct fl_solver *solver, size_t offset, size_t n, float *params,
                       float *g)
{
    (void)memcpy(params, solver->w + offset, n * sizeof(float));
    fl__sgd_update(&solver->outer, offset, n, params, g);
}

static void per_fedavg_keep_gradient(const struct fl_solver *solver, size_t offset, size_t n,
                                     float *params, float *g)
{
    (void)params;
    (void)memcpy(solver->gradient + offset, g, n * sizeof(float));
}

static void per_fedavg_adapt_chunk(const struct fl_solver *solver, size_t offset, size_t n,
                                   float *params, float *g)
{
    (void)offset;
    fl_vec_axpy(params, solver->made == 0 ? -solver->alpha : -solver->outer.learning_rate, g, n);
}

static void update_inner(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    each_chunk(ctx, offset, n, params, grad, to_inner);
}

static void update_outer(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    each_chunk(ctx, offset, n, params, grad, from_inner);
}

static void update_none(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    each_chunk(ctx, offset, n, params, grad, per_fedavg_keep_gradient);
}

static void update_adapt(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    each_chunk(ctx, offset, n, params, grad, per_fedavg_adapt_chunk);
}

/* The hf update. `product`: Hessian of the loss times g'; weight decay adds its own factor. */
static void per_fedavg_update_hf(void *ctx, size_t offset, size_t n, float *params,
                                 const float *product)
{
    const struct fl_solver *solver = ctx;
    float keep = 1 - solver->alpha * solver->weight_decay;
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        fl_vec_scale(g, keep, solver->gradient + offset + at, m);
        fl_vec_axpy(g, -solver->alpha, product + at, m);
        fl__sgd_update(&solver->outer, offset + at, m, params + at, g);
    }
}

/* The last third of an iteration of hf: the network contains w' before and the new w afterwards. */
static double per_fedavg_step_hf(struct fl_solver *solver, const float *x, const int32_t *y,
                                 size_t batch)
{
    const struct fl_net_pass pass = {.x = x, .y = y, .batch = batch};
    const struct fl_net_direction direction = {.params = solver->gradient, .slope = 1};
    struct fl_net *net = solver->outer.net;
    float *params = fl_net_params(net);
    double slope;

    fl__runs_copy(&solver->buffers, solver->w, params);
    (void)memcpy(params, solver->w, fl_net_block(net) * sizeof(float));
    return fl_net_pass_jvp(net, &pass, &direction, per_fedavg_update_hf, solver, &slope);
}

static double per_fedavg_advance(struct fl_solver *solver, const float *x, const int32_t *y,
                                 size_t batch)
{
    struct fl_net *net = solver->outer.net;

    switch (solver->phase) {
    case 0:
        solver->phase = 1;
        return fl_net_step(net, x, y, batch, update_inner, solver);
    case 1:
        solver->phase = solver->hf ? 2 : 0;
        return fl_net_step(net, x, y, batch, solver->hf ? update_none : update_outer, solver);
    default:
        solver->phase = 0;
        return per_fedavg_step_hf(solver, x, y, batch);
    }
}

static double per_fedavg_step(struct fl_solver *solver, const float *x, const int32_t *y,
                              size_t batch)
{
    double loss;

    if (solver->adapting) {
        loss = fl_net_step(solver->outer.net, x, y, batch, update_adapt, solver);
        solver->made++;
        return loss;
    }
    loss = per_fedavg_advance(solver, x, y, batch);
    solver->made++;
    while (solver->made >= solver->n_steps && solver->phase != 0) {
        loss = per_fedavg_advance(solver, x, y, batch);
    }
    return loss;
}

static void per_fedavg_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->outer);
        fl__runs_done(&solver->buffers);
        free(solver->w);
        free(solver->gradient);
        free(solver);
    }
}

static int per_fedavg_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                             struct fl_solver **ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    solver->alpha = (float)v->alpha;
    solver->hf = v->variant == HESSIAN_FREE;
    solver->adapting = setup->adapting;
    solver->n_steps = setup->n_steps;
    rv = fl__sgd_init(&solver->outer, setup, err);
    solver->weight_decay = solver->outer.weight_decay;
    solver->outer.weight_decay = 0;
    if (rv != FL_OK) {
        goto fail;
    }
    if (!setup->adapting) {
        float **blocks[] = {&solver->w, &solver->gradient};
        size_t n = solver->hf ? sizeof(blocks) / sizeof(blocks[0]) : 1;
        size_t i;

        for (i = 0; i < n; i++) {
            rv = fl__solver_take(setup->net, NULL, "gradients", blocks[i], err);
            if (rv != FL_OK) {
                goto fail;
            }
        }
        if (solver->hf) {
            rv = fl__runs_of_buffers(setup->net, &solver->buffers, err);
            if (rv != FL_OK) {
                goto fail;
            }
            rv = fl_net_take_tangents(setup->net, err);
            if (rv != FL_OK) {
                goto fail;
            }
        }
    }
    *ret = solver;
    return FL_OK;
fail:
    per_fedavg_destroy(solver);
    return rv;
}

/* Needed for adapting too: its first step has step size alpha. */
static unsigned per_fedavg_external_parts(const struct fl_options *o, bool adapting)
{
    (void)o;
    (void)adapting;
    return FL_CAPABILITY_PER_FEDAVG;
}

static const char *const variants[] = {[FIRST_ORDER] = "fo", [HESSIAN_FREE] = "hf", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, ENUM, variant), .def = "fo", .choices = variants,
     .help = "fo omits second derivatives; hf computes them exactly, for a third more work."},
    {FL_OPT(struct options, FLOAT, alpha), .def = "0.02", .min = 0, .max = 1000,
     .help = "Step size of the adaptation that is trained for; 0: sgd on every second batch."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_per_fedavg = {
    .policy =
        {
            .name = "per_fedavg",
            .help = "trains a model that one step on a client's data personalizes",
            .source = "Per-FedAvg",
            .options = options,
        },
    .steps_inside = true,
    .create = per_fedavg_create,
    .destroy = per_fedavg_destroy,
    .step = per_fedavg_step,
    .external = {per_fedavg_external_parts, NULL, NULL},
};
