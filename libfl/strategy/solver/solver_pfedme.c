/*
 * solver: pfedme (pFedMe: Dinh et al. 2020, Algorithm 1)
 *
 *     w, theta <- received model
 *     each step, on its batch:
 *         inner_steps times  theta <- theta - inner_learning_rate
 *                                            (g(theta) + lambda (theta - w) + weight_decay theta)
 *         w <- w - learning_rate lambda (w - theta)
 *
 * w is uploaded; the server's beta is `server_lr` of aggregate mean. One step is one of the paper's
 * R local rounds. The personalized model is theta, as defined, or w, which the reference code
 * evaluates under that name. Batch statistics are those of theta, for w too.
 *
 * Stable for inner_learning_rate * lambda < 2 and learning_rate * lambda <= 1; anything else is
 * refused, and so is momentum, which the algorithm does not have.
 *
 * Options: inner_steps, inner_learning_rate, lambda, personal. State: w, one model. Cost:
 * inner_steps times that of sgd with prox, and one pass over the model per step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

enum personal { THETA, W_LOCAL };

struct options {
    int64_t inner_steps;
    double inner_learning_rate, lambda;
    enum personal personal;
};

/* Tolerance of learning_rate * lambda <= 1 for decimal fractions. */
#define ROUNDING 1e-9

struct fl_solver {
    struct fl__sgd inner;
    struct fl__prox prox; /* its anchor is w, which it does not own */
    float pull;           /* learning_rate lambda */
    size_t inner_steps;
    bool personal_w; /* the personalized model is w */
    bool adapting;
    /* the network contains w, and `w` contains theta; only between steps */
    bool w_in_net;
    float *w;                /* internal order */
    struct fl__runs buffers; /* stay in the network when models are exchanged */
};

static void pfedme_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(g, grad + at, m * sizeof(float));
        fl__prox_pull(&solver->prox, offset + at, m, params + at, g);
        fl__sgd_update(&solver->inner, offset + at, m, params + at, g);
    }
}

/* w <- w - pull (w - theta), theta in the network. */
static void pfedme_update_w(const struct fl_solver *solver)
{
    const float *theta = fl_net_params(solver->inner.net);
    size_t n = fl_net_block(solver->inner.net);
    float distance[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        fl_vec_sub(distance, solver->w + at, theta + at, m);
        fl_vec_axpy(solver->w + at, -solver->pull, distance, m);
    }
}

/* Put w or theta into the network, and the other one into solver->w. */
static void pfedme_swap_models(struct fl_solver *solver, bool w)
{
    float *params = fl_net_params(solver->inner.net);
    size_t n = fl_net_block(solver->inner.net);
    float chunk[FL__SOLVER_CHUNK];
    size_t at;

    if (solver->w_in_net == w) {
        return;
    }
    fl__runs_copy(&solver->buffers, solver->w, params);
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t bytes = (n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK) * sizeof(float);

        (void)memcpy(chunk, params + at, bytes);
        (void)memcpy(params + at, solver->w + at, bytes);
        (void)memcpy(solver->w + at, chunk, bytes);
    }
    solver->w_in_net = w;
}

static void pfedme_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->inner);
        fl__runs_done(&solver->buffers);
        free(solver->w);
        free(solver);
    }
}

static int fits_training(const struct fl_options *o, double learning_rate, double momentum,
                         struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    double lambda = v->lambda;

    if (momentum > 0) {
        return fl_err_set(err, FL_ECONF,
                          "solver 'pfedme' does not support momentum: training.momentum is %g, set "
                          "it to 0",
                          momentum);
    }
    if (learning_rate * lambda > 1 + ROUNDING) {
        return fl_err_set(err, FL_ECONF,
                          "solver 'pfedme' needs training.learning_rate * lambda of at most 1, it "
                          "is %g * %g = %g: lower one of them",
                          learning_rate, lambda, learning_rate * lambda);
    }
    return FL_OK;
}

static int pfedme_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                         struct fl_solver **ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    struct fl_solver_setup inner = *setup;
    struct fl_solver *solver;
    int rv = fits_training(o, setup->learning_rate, setup->momentum, err);

    if (rv != FL_OK) {
        return rv;
    }
    solver = calloc(1, sizeof(*solver));
    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    inner.learning_rate = v->inner_learning_rate;
    solver->pull = (float)(setup->learning_rate * v->lambda);
    solver->inner_steps = (size_t)v->inner_steps;
    solver->personal_w = v->personal == W_LOCAL;
    solver->adapting = setup->adapting;
    rv = fl__sgd_init(&solver->inner, &inner, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__solver_copy(setup->net, &solver->w, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__runs_of_buffers(setup->net, &solver->buffers, err);
    if (rv != FL_OK) {
        goto fail;
    }
    solver->prox.mu = (float)v->lambda;
    solver->prox.anchor = solver->w;
    *ret = solver;
    return FL_OK;
fail:
    pfedme_destroy(solver);
    return rv;
}

/* Returns the loss of theta before the step, or a loss of any inner step that is not finite. */
static double pfedme_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    double first = 0;
    size_t i;

    pfedme_swap_models(solver, false);
    for (i = 0; i < solver->inner_steps; i++) {
        double loss = fl_net_step(solver->inner.net, x, y, batch, pfedme_update, solver);

        if (i == 0 || !isfinite(loss)) {
            first = loss;
        }
    }
    pfedme_update_w(solver);
    if (solver->adapting) {
        pfedme_swap_models(solver, solver->personal_w);
    }
    return first;
}

static int pfedme_finish(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                         struct fl_err *err)
{
    (void)kept;
    (void)sent;
    (void)err;
    pfedme_swap_models(solver, true);
    return FL_OK;
}

static void pfedme_personal(struct fl_solver *solver)
{
    pfedme_swap_models(solver, solver->personal_w);
}

/* Adapting also needs the two models. */
static unsigned pfedme_external_parts(const struct fl_options *o, bool adapting)
{
    (void)o;
    (void)adapting;
    return FL_CAPABILITY_PFEDME;
}

static int pfedme_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    double rate = v->inner_learning_rate;
    double lambda = v->lambda;

    if (rate * lambda >= 2) {
        return fl_err_set(err, FL_ECONF,
                          "inner_learning_rate * lambda must be below 2 or theta diverges, it is "
                          "%g * %g = %g",
                          rate, lambda, rate * lambda);
    }
    return FL_OK;
}

static const char *const personals[] = {[THETA] = "theta", [W_LOCAL] = "w_local", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, INT, inner_steps), .def = "5", .min = 1, .max = 10000,
     .help = "Steps of theta on each batch."},
    {FL_OPT(struct options, FLOAT, inner_learning_rate), .def = "0.1", .min = 0, .max = 1000,
     .help = "Step size of theta; training.learning_rate is that of w."},
    {FL_OPT(struct options, FLOAT, lambda), .def = "15", .min = 0, .max = 1e6,
     .help = "Strength of the attraction between theta and w."},
    {FL_OPT(struct options, ENUM, personal), .def = "theta", .choices = personals,
     .help = "The model that is evaluated as the client's personalized model: theta, or w_local as "
             "in the authors' code."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_pfedme = {
    .policy =
        {
            .name = "pfedme",
            .help = "a personalized model near the local one, which follows it (Moreau envelope)",
            .source = "pFedMe",
            .options = options,
            .check = pfedme_check,
        },
    .fits_training = fits_training,
    .steps_inside = true,
    .create = pfedme_create,
    .destroy = pfedme_destroy,
    .step = pfedme_step,
    .finish = pfedme_finish,
    .personal = pfedme_personal,
    .external = {pfedme_external_parts, NULL, NULL},
};
