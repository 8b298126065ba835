#ifndef FL_STRATEGY_SOLVER_H
#define FL_STRATEGY_SOLVER_H

/*
 * Local training on a client (docs/algorithms.md#local-steps): a solver defines one step. The
 * caller decides the order of samples, the number of steps and cancelling.
 *
 * A solver instance lives for one task. It is called from the backward pass through
 * fl_net_update_cb, so there is no gradient array.
 */

#include "libfl/base/buf.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/policy.h"

/* A byte string beside the model: a payload or a client state. data NULL: none yet. */
struct fl_solver_bytes {
    const void *data;
    size_t len;
};

/*
 * Client state: one model-shaped float32 block in the exported order that a client keeps between
 * rounds. It is committed when the round that made it was committed with this client's update
 * aggregated, and not before (commit on acknowledgement): see Task.counted in the protocol.
 */
struct fl_keep {
    const char *name;
    /* Only the units that were uploaded are committed; the others keep their old values. */
    bool per_unit;
};

struct fl_solver_setup {
    struct fl_net *net; /* keeps a reference; contains the received model */
    double learning_rate;
    /* heavy ball: v <- m v + g; x <- x - eta v; v starts at 0 each round */
    double momentum;
    double weight_decay; /* adds wd * x to g */
    size_t n_steps;      /* steps that will be made in this round */
    uint64_t round;
    uint64_t seed;       /* for random draws: fl_rng_key(…, seed, FL_RNG_SOLVER, round, 0) */
    uint32_t n_selected; /* K_t; 0: unknown */
    uint32_t population; /* N; 0: unknown */
    /*
     * The steps only adapt a copy of the received model to this client's data before its
     * evaluation: nothing is uploaded, inputs and kept may be empty, finish() is not called.
     */
    bool adapting;
    /*
     * The anchor of the proximal term, exported order, borrowed for create(): the model that
     * this client received last, when it continues from its own model (FedMCSA). NULL: the
     * parameters in `net`.
     */
    const float *anchor;
    /*
     * In the order of ops->inputs and ops->keeps. Inputs are borrowed until destroy() (data
     * summaries of all clients are large), client states for create() only.
     */
    const struct fl_solver_bytes *inputs;
    const struct fl_solver_bytes *kept;
    /*
     * The data summary that this client's summary() made, borrowed for create(); NULL: none, or
     * unknown.
     */
    struct fl_solver_bytes own_summary;
};

struct fl_solver;
struct fl_external;
struct fl_external_task;

/*
 * The training data, for fl_solver_ops.summary(): copies sample i into x[dim] and returns its
 * label.
 */
struct fl_solver_data {
    size_t n, dim, classes;
    int32_t (*sample)(void *ctx, size_t i, float *x);
    void *ctx;
};

/* Largest size of a data summary in bytes. */
#define FL_SUMMARY_MAX ((size_t)64 << 20)

/*
 * Model-shaped byte strings are float32 in the exported order, aligned as such.
 *
 * `server` is the solver's server part (control variates, the last displacement): the
 * aggregation pass runs it after the aggregator's step, whatever the aggregator is. `inputs`
 * names its state vectors, except the payload of `summary`.
 */
struct fl_solver_ops {
    struct fl_policy policy;
    /*
     * NULL-terminated names, or NULL: payloads that clients need beside the model (`inputs`),
     * and model-shaped payloads that they send beside the update (`sends`), float32, only the
     * units of the upload mask. Use fl_solver_sends(): options can leave them out.
     */
    const char *const *inputs;
    const char *const *sends;
    const struct fl_keep *keeps; /* ended by a NULL name, or NULL */
    const struct fl_agg_part *server;
    /*
     * Called once per client, before it can be selected: append the data summary (means, never
     * samples; FedMix). The data summaries of all clients that are connected when the first
     * round begins are sent back as the payload `collection` (one of `inputs`): concatenated in
     * client order, unchanged. Both NULL: no data summaries. The options are the solver's;
     * `seed` is the client's.
     */
    const char *collection;
    int (*summary)(const struct fl_options *o, const struct fl_solver_data *data, uint64_t seed,
                   struct fl_buf *out, struct fl_err *err);
    /*
     * Check a data summary received from a peer: FL_EFORMAT. dim, classes 0: unknown. NULL
     * without data summaries.
     */
    int (*summary_check)(const struct fl_options *o, const void *data, size_t len, size_t dim,
                         size_t classes, struct fl_err *err);
    /*
     * summary_group(): smallest number of samples that summary() averages into one mean; 0: all
     * samples of the client. summary_means(): number of means in a data summary that
     * summary_check() accepts. A client compares both with its own limits. NULL without data
     * summaries.
     */
    uint64_t (*summary_group)(const struct fl_options *o);
    uint64_t (*summary_means)(const void *data, size_t len);
    /*
     * Largest magnitude of the values in a data summary that summary_check() accepts, for
     * comparison with those of other clients. NULL without data summaries.
     */
    double (*summary_largest)(const void *data, size_t len);
    /* Check that the solver fits the aggregator: FL_ECONF with the reason. NULL: fits all. */
    int (*fits)(const struct fl_options *o, const struct fl_aggregate_ops *aggregate,
                struct fl_err *err);
    /*
     * Check that the solver fits the training options: FL_ECONF with the reason; create() fails
     * in the same cases. NULL: fits all.
     */
    int (*fits_training)(const struct fl_options *o, double learning_rate, double momentum,
                         struct fl_err *err);
    /*
     * Factor of this client's update in fl_agg_block.scaled, from its number of steps
     * (SCAFFOLD's 1 / (eta a_k)). NULL: 0.
     */
    double (*factor)(const struct fl_options *o, double learning_rate, double momentum,
                     uint64_t n_steps);
    /* A step makes several steps on the network's parameters, so no entry stays fixed in it. */
    bool steps_inside;
    /*
     * Called for each batch of one pass over the data before the first step, of `samples` samples
     * together, when wants_pass() is true (SCAFFOLD's option I). It does not change parameters or
     * buffers. Both NULL: no such pass.
     */
    bool (*wants_pass)(const struct fl_solver *solver);
    void (*pass)(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch,
                 size_t samples);
    int (*create)(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err);
    void (*destroy)(struct fl_solver *solver);
    /* One step on a batch; returns its mean loss. */
    double (*step)(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch);
    /*
     * Called after the last step: leave in the network the parameters whose displacement is
     * uploaded, append the client states to kept[i] and the payloads to sent[i]. NULL: nothing
     * to do.
     */
    int (*finish)(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                  struct fl_err *err);
    /*
     * Called after finish(), when the result was copied from the network: put the personalized
     * model into it (pFedMe). NULL: it is the trained model, or the solver has none.
     */
    void (*personal)(struct fl_solver *solver);
    /*
     * For external trainers; call the functions of external_training.h, which handle NULLs.
     * parts NULL: no capabilities needed; begin NULL: no vectors to provide; finish NULL: no
     * client state and no payloads.
     */
    struct fl_solver_external {
        unsigned (*parts)(const struct fl_options *o, bool adapting);
        int (*begin)(const struct fl_options *o, const struct fl_external_task *task,
                     struct fl_external *ret, struct fl_err *err);
        int (*finish)(const struct fl_options *o, const struct fl_external_task *task,
                      const float *trained, uint64_t steps, struct fl_buf *kept,
                      struct fl_buf *sent, struct fl_err *err);
    } external;
};

/* Number of names in a NULL-terminated list, which may be NULL. */
size_t fl_solver_names(const char *const *names);
size_t fl_solver_keeps(const struct fl_keep *keeps);
/* The state of its server part is the sum of the clients' states (fl_agg_part.sums_kept). */
static inline bool fl_solver_sums_kept(const struct fl_solver_ops *ops)
{
    return ops->server != NULL && ops->server->sums_kept;
}
/*
 * Payloads that clients send with these options: NULL when the server part computes them from
 * the updates (fl_agg_part.wants_scaled), else ops->sends.
 */
const char *const *fl_solver_sends(const struct fl_solver_ops *ops, const struct fl_options *o);

/*
 * a_k: what a constant gradient of 1 moves a client in so many steps with learning rate 1 and this
 * momentum, at least 0 and below 1; without momentum the steps.
 */
double fl_solver_momentum_steps(double momentum, uint64_t n_steps);

extern const struct fl_solver_ops fl_solver_sgd;
extern const struct fl_solver_ops fl_solver_prox;
extern const struct fl_solver_ops fl_solver_scaffold;
extern const struct fl_solver_ops fl_solver_feddyn;
extern const struct fl_solver_ops fl_solver_igfl_c;
extern const struct fl_solver_ops fl_solver_pfedme;
extern const struct fl_solver_ops fl_solver_per_fedavg;
extern const struct fl_solver_ops fl_solver_fedmix;
extern const struct fl_solver_ops fl_solver_naivemix;
extern const struct fl_solver_ops fl_solver_optimizer;

#endif
