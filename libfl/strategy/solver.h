#ifndef FL_STRATEGY_SOLVER_H
#define FL_STRATEGY_SOLVER_H

/*
 * Local training on a client (docs/formulas.md#local-steps): what one step does. The order of
 * samples, the number of steps and cancelling belong to the caller.
 *
 * A solver instance lives for one task. It hooks into the backward pass through
 * fl_net_update_cb, so no gradient array exists.
 */

#include "libfl/base/buf.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/aggregate.h"
#include "libfl/strategy/policy.h"

/* A byte string beside the model: a bundle, or what a client keeps. data NULL: none yet. */
struct fl_solver_bytes {
    const void *data;
    size_t len;
};

/*
 * What stays on a client between rounds: one model-shaped float32 block in the exported
 * order. It becomes durable when the round that made it was committed with this client's
 * part in it, and not before (commit on acknowledgement): see
 * Task.counted of the wire.
 */
struct fl_keep {
    const char *name;
    /* Only the units that were uploaded are taken over, the others stay as they were. */
    bool per_unit;
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
    uint32_t population; /* N; 0: not told */
    /*
     * The steps only fit a copy of the received model to this client's data before it is
     * evaluated: nothing is uploaded, inputs and kept may be empty, finish()
     * is not called.
     */
    bool adapting;
    /*
     * Where a proximal term pulls to, exported order, borrowed for create(): the model this
     * client received last, when it trains on from its own (FedMCSA). NULL: the
     * parameters in `net`.
     */
    const float *anchor;
    /*
     * In the order of ops->inputs and ops->keeps. Inputs are borrowed until destroy() (offers of
     * all clients are large), what was kept by create() for the call.
     */
    const struct fl_solver_bytes *inputs;
    const struct fl_solver_bytes *kept;
    /* What this client's offer() told, borrowed for create(); NULL: nothing, or not known. */
    struct fl_solver_bytes own_offer;
};

struct fl_solver;
struct fl_external;
struct fl_external_task;

/* The training data, for fl_solver_ops.offer: one sample at a time into x[dim]; its label. */
struct fl_solver_data {
    size_t n, dim, classes;
    int32_t (*sample)(void *ctx, size_t i, float *x);
    void *ctx;
};

/* Most bytes that an offer can have. */
#define FL_OFFER_MAX ((size_t)64 << 20)

/*
 * Model-shaped byte strings are float32 in the exported order, aligned as such.
 *
 * The server's part in a solver (control variates, the last displacement) is `server`: the
 * aggregation pass runs it behind the aggregate's step, whatever that is, and its state
 * vectors are what `inputs` names, except the one of `offer`.
 */
struct fl_solver_ops {
    struct fl_policy policy;
    /* NULL-terminated names, or NULL: bundles it needs beside the model, and model-shaped
       bundles it sends beside the update, float32 and only the granted units; ask
       fl_solver_sends(), which knows when they are left out. */
    const char *const *inputs;
    const char *const *sends;
    const struct fl_keep *keeps; /* ended by a NULL name, or NULL */
    const struct fl_agg_part *server;
    /*
     * Once per client, before it can be selected: append what it tells of its data (means,
     * never samples; FedMix). The offers of all clients that are there when the first
     * round begins come back as the bundle `offered` (one of `inputs`): client by client
     * in client order, byte strings as they were offered. Both NULL: nothing is offered.
     * The options are the solver's; `seed` is the client's.
     */
    const char *offered;
    int (*offer)(const struct fl_options *o, const struct fl_solver_data *data, uint64_t seed,
                 struct fl_buf *out, struct fl_err *err);
    /* Is this what offer() makes for such data? What peers sent is checked with it: FL_EFORMAT.
       dim, classes 0: not known. NULL without offers. */
    int (*offer_check)(const struct fl_options *o, const void *data, size_t len, size_t dim,
                       size_t classes, struct fl_err *err);
    /*
     * Samples that offer() averages into one mean at least; 0: all of the client's. And the means
     * in an offer that offer_check() accepts. A client compares both with what it allows. NULL
     * without offers.
     */
    uint64_t (*offer_group)(const struct fl_options *o);
    uint64_t (*offer_means)(const void *data, size_t len);
    /* Largest magnitude of the values in an offer that offer_check() accepts, for comparing it with
       those of others. NULL without offers. */
    double (*offer_largest)(const void *data, size_t len);
    /* Does it go with this aggregate? FL_ECONF with the reason. NULL: with all. */
    int (*fits)(const struct fl_options *o, const struct fl_aggregate_ops *aggregate,
                struct fl_err *err);
    /* Does it go with these training options? FL_ECONF with the reason; create() refuses what
       this refuses. NULL: with all. */
    int (*fits_training)(const struct fl_options *o, double learning_rate, double momentum,
                         struct fl_err *err);
    /*
     * What the server's part scales this client's update with in fl_agg_block.scaled, from
     * its step count (SCAFFOLD's 1 / (eta a_k)). NULL: 0.
     */
    double (*factor)(const struct fl_options *o, double learning_rate, double momentum,
                     uint64_t n_steps);
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
    /*
     * After finish(), when the result was taken from the network: leave the personal model in
     * it (pFedMe). NULL: it is what the training left, or the solver makes none.
     */
    void (*personal)(struct fl_solver *solver);
    /*
     * For a trainer that makes the steps itself: external_training.h, whose functions know what
     * NULLs mean. parts NULL: none; begin NULL: nothing to hand over; finish NULL: nothing kept or
     * sent.
     */
    struct fl_solver_external {
        unsigned (*parts)(const struct fl_options *o, bool adapting);
        int (*begin)(const struct fl_options *o, const struct fl_external_task *task,
                     struct fl_external *ret, struct fl_err *err);
        int (*finish)(const struct fl_options *o, const struct fl_external_task *task,
                      const float *trained, uint64_t steps, struct fl_buf *kept,
                      struct fl_buf *sent, struct fl_err *err);
    } outside;
};

/* Names in a NULL-terminated list, which may be NULL. */
size_t fl_solver_names(const char *const *names);
size_t fl_solver_keeps(const struct fl_keep *keeps);
/* Its part on the server is the sum of what clients keep (fl_agg_part.sums_kept). */
static inline bool fl_solver_sums_kept(const struct fl_solver_ops *ops)
{
    return ops->server != NULL && ops->server->sums_kept;
}
/* What it sends with these options: NULL when the server's part rebuilds that from the updates
   (fl_agg_part.wants_scaled), else ops->sends. */
const char *const *fl_solver_sends(const struct fl_solver_ops *ops, const struct fl_options *o);

extern const struct fl_solver_ops fl_solver_sgd;
extern const struct fl_solver_ops fl_solver_prox;
extern const struct fl_solver_ops fl_solver_scaffold;
extern const struct fl_solver_ops fl_solver_igfl_c;
extern const struct fl_solver_ops fl_solver_pfedme;
extern const struct fl_solver_ops fl_solver_per_fedavg;
extern const struct fl_solver_ops fl_solver_fedmix;
extern const struct fl_solver_ops fl_solver_naivemix;

#endif
