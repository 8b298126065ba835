#ifndef FL_STRATEGY_SOLVER_H
#define FL_STRATEGY_SOLVER_H

/*
 * Local training on a client (ALGORITHMS 2.2, 4): what one step does. The order of
 * samples, the number of steps and cancelling belong to the caller.
 *
 * A solver instance lives for one task. It hooks into the backward pass through
 * fl_net_update_cb, so no gradient array exists.
 */

#include "libfl/nn/net.h"
#include "libfl/strategy/policy.h"

struct fl_solver_setup {
    struct fl_net *net; /* keeps a reference to; holds the received model */
    double learning_rate;
    double momentum;     /* heavy ball: v <- m v + g; x <- x - eta v; v new each round */
    double weight_decay; /* adds wd * x to g */
    size_t n_steps;      /* steps that will be made in this round */
};

struct fl_solver;

struct fl_solver_ops {
    struct fl_policy policy;
    int (*create)(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err);
    void (*destroy)(struct fl_solver *solver);
    /* One step on a batch; returns its mean loss. */
    double (*step)(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch);
};

extern const struct fl_solver_ops fl_solver_sgd;
extern const struct fl_solver_ops fl_solver_prox;

#endif
