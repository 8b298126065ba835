#ifndef FL_STRATEGY_SOLVER_H
#define FL_STRATEGY_SOLVER_H

/*
 * Local training on a client (ALGORITHMS 2.2, 4): what one step does. The order of
 * samples, the number of steps and cancelling belong to the caller.
 *
 * A solver instance lives for one task. It hooks into the backward pass through
 * fl_net_update_cb, so no gradient array exists.
 */

#include "libfl/base/buf.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/policy.h"

/* A byte string beside the model: a bundle, or what a solver keeps. data NULL: none yet. */
struct fl_solver_bytes {
    const void *data;
    size_t len;
};

struct fl_solver_setup {
    struct fl_net *net; /* keeps a reference to; holds the received model */
    double learning_rate;
    double momentum;     /* heavy ball: v <- m v + g; x <- x - eta v; v new each round */
    double weight_decay; /* adds wd * x to g */
    size_t n_steps;      /* steps that will be made in this round */
    uint64_t round;
    uint64_t seed;       /* of own draws: fl_rng_key(…, seed, FL_RNG_SOLVER, round, 0) */
    uint32_t n_selected; /* K_t; 0: not told */
    /* In the order of ops->inputs and ops->keeps; borrowed by create() for the call. */
    const struct fl_solver_bytes *inputs;
    const struct fl_solver_bytes *kept;
};

struct fl_solver;

/*
 * Model-shaped byte strings are float32 in the exported order. What a solver keeps
 * becomes durable when the server acknowledged the update, and not before (commit on
 * acknowledgement, ALGORITHMS 4.3).
 */
struct fl_solver_ops {
    struct fl_policy policy;
    /* NULL-terminated names, or NULL: bundles it needs beside the model, what it keeps on
       the client between rounds, bundles it sends beside the update. */
    const char *const *inputs;
    const char *const *keeps;
    const char *const *sends;
    int (*create)(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err);
    void (*destroy)(struct fl_solver *solver);
    /* One step on a batch; returns its mean loss. */
    double (*step)(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch);
    /*
     * After the last step: leave in the network the parameters whose displacement is
     * uploaded, append what is kept to kept[i] and what is sent to sent[i]. NULL: nothing
     * to do.
     */
    int (*finish)(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                  struct fl_err *err);
};

/* Names in a NULL-terminated list, which may be NULL. */
size_t fl_solver_names(const char *const *names);

extern const struct fl_solver_ops fl_solver_sgd;
extern const struct fl_solver_ops fl_solver_prox;

#endif
