#ifndef FL_STRATEGY_AGGREGATE_H
#define FL_STRATEGY_AGGREGATE_H

/*
 * From updates to the next model, block by block, clients in client order, sums in
 * double (ALGORITHMS 4, 15.3): the result does not depend on arrival order, bit for
 * bit, and memory is two models plus one block a client.
 *
 * The pass is pure: it reads coded units through callbacks.
 */

#include "libfl/strategy/codec.h"
#include "libfl/strategy/policy.h"

struct fl_aggregate_ops {
    struct fl_policy policy;
    /* Model-sized float vectors that the server keeps between rounds (momentum: 1). */
    size_t n_state;
    /*
     * The server step of one block of trainable entries: from the weighted mean
     * displacement dbar[n] to step[n] (theta += step), reading state[s][n] and writing
     * state_new[s][n]. Blocks of units that nobody sent are not offered: they stay
     * frozen, state included (15.3.1).
     */
    void (*step)(const struct fl_options *o, const double *dbar, const float *const *state,
                 float *const *state_new, double *step, size_t n);
};

extern const struct fl_aggregate_ops fl_aggregate_mean;
extern const struct fl_aggregate_ops fl_aggregate_momentum; /* "mean + server momentum" */

struct fl_agg_client {
    double weight;        /* n_k; normalised per unit over the clients that sent it */
    const uint8_t *units; /* [n_units], 1 when the update holds the unit */
};

/*
 * Open a decoder for the coded unit. Readers of different clients are used in turn.
 */
typedef int (*fl_agg_open_cb)(void *ctx, size_t client, size_t unit, struct fl_codec_decoder *d);

struct fl_agg_job {
    const struct fl_layout *layout;
    const struct fl_aggregate_ops *ops;
    const struct fl_options *options;
    size_t n_clients; /* responders in client order; 0: theta_new = theta, state_new = state */
    const struct fl_agg_client *clients;
    fl_agg_open_cb open;
    void *ctx;
    const float *theta; /* exported order */
    float *theta_new;
    const float *const *state; /* [ops->n_state] */
    float *const *state_new;
    bool want_distance; /* fill `distance`; only with complete uploads */
    double *distance;   /* [n_clients]: ||theta_new - theta_k||, trainable (AdaFL 5.3) */
    size_t block;       /* floats a block; 0: chosen from n_clients */
};

/*
 * Run it. Scratch memory: about n_clients * block * 4 bytes, at most some MiB.
 * FL_EFORMAT / FL_ENUMERIC / FL_EIO from a decoder: `*ret_client` is the client;
 * FL_ENUMERIC with *ret_client = n_clients: the new model is not finite.
 * On error the outputs are undefined and the inputs untouched.
 */
FL_MUST_CHECK int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client,
                                   struct fl_err *err);

/*
 * Decode one coded unit to its end and throw the values away: the validation that an
 * upload passes before it is accepted. `*ret_norm_sq` is the squared norm over the
 * trainable entries.
 */
FL_MUST_CHECK int fl_codec_validate(struct fl_codec_decoder *d, double *ret_norm_sq);

#endif
