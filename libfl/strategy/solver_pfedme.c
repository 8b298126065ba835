/*
 * solver: pfedme (pFedMe: Dinh et al. 2020, Algorithm 1)
 *
 *     w, theta <- received model
 *     each step, on its batch:
 *         inner_steps times  theta <- theta - inner_learning_rate
 *                                            (g(theta) + lambda (theta - w) + weight_decay theta)
 *         w <- w - learning_rate lambda (w - theta)
 *
 * w is uploaded; the server's beta is `server_lr` of aggregate mean. One step is one of the
 * paper's R local rounds. The personal model is theta, as defined, or w: what the reference
 * code evaluates under that name. Batch statistics go along with theta and are w's too.
 *
 * Stable for inner_learning_rate * lambda < 2 and learning_rate * lambda <= 1; anything else is
 * refused, and so is momentum, which the algorithm does not have.
 *
 * Options: inner_steps, inner_learning_rate, lambda, personal. State: w, one model.
 * Cost: inner_steps times sgd's with prox, and one pass over the model a step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver_impl.h"

enum personal { THETA, W_LOCAL };

struct options {
    int64_t inner_steps;
    double inner_learning_rate, lambda;
    enum personal personal;
};

/* How far above 1 learning_rate * lambda may be for being written in decimals. */
#define ROUNDING 1e-9

struct fl_solver {
    struct fl__sgd inner;
    struct fl__prox prox; /* its anchor is w: not owned by it */
    float pull;           /* learning_rate lambda */
    size_t inner_steps;
    bool personal_w; /* the personal model is w */
    bool adapting;
    bool w_in_net;           /* the network holds w, and `w` theta: between steps only */
    float *w;                /* internal order */
    struct fl__runs buffers; /* stay in the network whichever model is in it */
};

static void update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
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
static void follow(const struct fl_solver *solver)
{
    const float *theta = fl_net_params(solver->inner.net);
    size_t n = fl_net_block(solver->inner.net);
    float away[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        fl_vec_sub(away, solver->w + at, theta + at, m);
        fl_vec_axpy(solver->w + at, -solver->pull, away, m);
    }
}

/* Put w or theta into the network, and the other one aside. */
static void show(struct fl_solver *solver, bool w)
{
    float *params = fl_net_params(solver->inner.net);
    size_t n = fl_net_block(solver->inner.net);
    float aside[FL__SOLVER_CHUNK];
    size_t at;

    if (solver->w_in_net == w) {
        return;
    }
    fl__runs_copy(&solver->buffers, solver->w, params);
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t bytes = (n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK) * sizeof(float);

        (void)memcpy(aside, params + at, bytes);
        (void)memcpy(params + at, solver->w + at, bytes);
        (void)memcpy(solver->w + at, aside, bytes);
    }
    solver->w_in_net = w;
}

static void destroy(struct fl_solver *solver)
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
                          "solver 'pfedme' has no momentum: set training.momentum to 0, it is %g",
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

static int create(const struct fl_options *o, const struct fl_solver_setup *setup,
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
    if (rv == FL_OK) {
        rv = fl__solver_copy(setup->net, &solver->w, err);
    }
    if (rv == FL_OK) {
        rv = fl__runs_of_buffers(setup->net, &solver->buffers, err);
    }
    if (rv != FL_OK) {
        destroy(solver);
        return rv;
    }
    solver->prox.mu = (float)v->lambda;
    solver->prox.anchor = solver->w;
    *ret = solver;
    return FL_OK;
}

/* The loss is theta's before the step; one that is not finite shows whenever it comes up. */
static double step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    double first = 0;
    size_t i;

    show(solver, false);
    for (i = 0; i < solver->inner_steps; i++) {
        double loss = fl_net_step(solver->inner.net, x, y, batch, update, solver);

        if (i == 0 || !isfinite(loss)) {
            first = loss;
        }
    }
    follow(solver);
    if (solver->adapting) {
        show(solver, solver->personal_w);
    }
    return first;
}

static int finish(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                  struct fl_err *err)
{
    (void)kept;
    (void)sent;
    (void)err;
    show(solver, true);
    return FL_OK;
}

static void personal(struct fl_solver *solver)
{
    show(solver, solver->personal_w);
}

/* With the same two models when it only adapts. */
static unsigned outside_parts(const struct fl_options *o, bool adapting)
{
    (void)o;
    (void)adapting;
    return FL_CAPABILITY_PFEDME;
}

static int check(const struct fl_options *o, struct fl_err *err)
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
     .help = "Strength of the pull of theta to w and of w to theta."},
    {FL_OPT(struct options, ENUM, personal), .def = "theta", .choices = personals,
     .help = "The model that is evaluated as the client's own: theta, or w_local, what the "
             "authors' code evaluates."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_pfedme = {
    .policy =
        {
            .name = "pfedme",
            .help = "a personal model near the local one, which follows it (Moreau envelope)",
            .source = "pFedMe",
            .options = options,
            .check = check,
        },
    .fits_training = fits_training,
    .create = create,
    .destroy = destroy,
    .step = step,
    .finish = finish,
    .personal = personal,
    .outside = {outside_parts, NULL, NULL},
};
