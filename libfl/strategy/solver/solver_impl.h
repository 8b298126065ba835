#ifndef FL_STRATEGY_SOLVER_IMPL_H
#define FL_STRATEGY_SOLVER_IMPL_H

/*
 * Shared by the solvers: the SGD update that most of them end in, the proximal term, and
 * model-shaped vectors between their exported bytes and the internal order.
 */

#include "libfl/strategy/external_training.h"
#include "libfl/strategy/solver/local_steps.h"

/* Floats that a solver processes at a time, on the stack: a quarter of a core's L1 cache. */
#define FL__SOLVER_CHUNK 2048

struct fl__sgd {
    struct fl_net *net;
    float learning_rate, momentum, weight_decay;
    float *velocity; /* internal order; NULL without momentum */
};

FL_MUST_CHECK int fl__sgd_init(struct fl__sgd *sgd, const struct fl_solver_setup *setup,
                               struct fl_err *err);
void fl__sgd_done(struct fl__sgd *sgd);
/* Update one range of the model: params[n] at `offset` of the internal block. */
void fl__sgd_update(const struct fl__sgd *sgd, size_t offset, size_t n, float *params,
                    const float *grad);

/*
 * The proximal term (mu/2) ||x - anchor||^2, which can be combined with other corrections of the
 * gradient (docs/algorithms.md#proximal-term). All zero: none.
 */
struct fl__prox {
    float mu;
    float *anchor; /* internal order; NULL when mu is 0 */
};

/* The option row of solvers that support the term, with its default as text. */
/* clang-format off */
#define FL__PROX_OPTION(S, default_mu)                                                 \
    {FL_OPT(S, FLOAT, mu), .def = (default_mu), .min = 0, .max = 1e6,                  \
     .help = "Strength of the proximal term towards the anchor, the model received last; 0: none."}
/* clang-format on */

/* The anchor is setup->anchor, or a copy of the network's current parameters. */
FL_MUST_CHECK int fl__prox_init(struct fl__prox *prox, double mu,
                                const struct fl_solver_setup *setup, struct fl_err *err);
void fl__prox_done(struct fl__prox *prox);
/* fl__sgd_update() with the gradient of `prox` added. */
void fl__prox_update(const struct fl__prox *prox, const struct fl__sgd *sgd, size_t offset,
                     size_t n, float *params, const float *grad);
/* grad += mu (params - anchor) for params[n] at `offset`; n <= FL__SOLVER_CHUNK. */
void fl__prox_pull(const struct fl__prox *prox, size_t offset, size_t n, const float *params,
                   float *grad);

/*
 * Check that the bytes are a finite block of the model; `name` for messages: FL_EFORMAT for
 * another length, FL_ENUMERIC.
 */
FL_MUST_CHECK int fl__solver_check(const struct fl_layout *layout,
                                   const struct fl_solver_bytes *bytes, const char *name,
                                   struct fl_err *err);
/* Set entries of buffers in an exported block to 0: no solver changes them. */
void fl__solver_clear_buffers(const struct fl_layout *layout, float *exported);
/*
 * Convert `bytes` to an internal block (returns owned, free()): zeros when it is NULL or empty.
 * `name` for messages: FL_EFORMAT for another length, FL_ENUMERIC.
 */
FL_MUST_CHECK int fl__solver_take(const struct fl_net *net, const struct fl_solver_bytes *bytes,
                                  const char *name, float **ret, struct fl_err *err);
/* Append an internal block in the exported order; entries of buffers are written as 0. */
FL_MUST_CHECK int fl__solver_put(const struct fl_net *net, const float *block, struct fl_buf *out,
                                 struct fl_err *err);
/* fl__solver_take() and fl__solver_put() without a network, in the exported order. */
FL_MUST_CHECK int fl__external_take(const struct fl_layout *layout,
                                    const struct fl_solver_bytes *bytes, const char *name,
                                    float **ret, struct fl_err *err);
FL_MUST_CHECK int fl__external_put(const struct fl_layout *layout, const float *block,
                                   struct fl_buf *out, struct fl_err *err);
/* A copy of the network's parameters (returns owned, free()). */
FL_MUST_CHECK int fl__solver_copy(struct fl_net *net, float **ret, struct fl_err *err);

/*
 * The ranges of an internal block that hold buffers: training changes them inside the network,
 * so they are left out when whole blocks are exchanged. All zero: none.
 */
struct fl__runs {
    size_t n;
    struct fl_entry_run *run;
};

/*
 * The ranges of an internal block that hold the tensors `choose` names; buffers only when it names
 * them. Returns owned, free(); `*ret_run` NULL: none. FL_ENOMEM.
 */
FL_MUST_CHECK int fl__runs_of(const struct fl_net *net, fl_fixed_choice *choose, void *ctx,
                              struct fl_entry_run **ret_run, size_t *ret_n, struct fl_err *err);

FL_MUST_CHECK int fl__runs_of_buffers(const struct fl_net *net, struct fl__runs *ret,
                                      struct fl_err *err);
void fl__runs_done(struct fl__runs *runs);
void fl__runs_copy(const struct fl__runs *runs, float *to, const float *from);

#endif
