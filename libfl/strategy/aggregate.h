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

#define FL_AGG_MAX_STATE 8

struct fl_agg_block {
    size_t n;
    uint64_t round;
    size_t n_senders;           /* clients that sent this unit */
    size_t population;          /* as in the job */
    const double *dbar;         /* [n] weighted mean displacement */
    const double *const *means; /* [takes][n] */
    const float *const *state;  /* [n_state][n] */
    float *const *state_new;    /* [n_state][n], written */
    double *step;               /* [n], written: theta += step */
};

struct fl_aggregate_ops {
    struct fl_policy policy;
    /*
     * Model-sized float vectors that the server keeps between rounds (momentum: 1), and
     * their names in file names and bundles. All zero at the start: a policy whose state
     * starts elsewhere keeps the difference.
     */
    size_t n_state; /* at most FL_AGG_MAX_STATE */
    const char *const *state_names;
    /* Names of bundles beside the update whose weighted means the step reads; NULL: none. */
    const char *const *takes;
    /*
     * The server step of one block of trainable entries. Blocks of units that nobody
     * sent are not offered: they stay frozen, state included (15.3.1). Entries of
     * buffers are not offered either: they take the mean (15.3.8).
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
};

extern const struct fl_aggregate_ops fl_aggregate_mean;
extern const struct fl_aggregate_ops fl_aggregate_momentum; /* "mean + server momentum" */
extern const struct fl_aggregate_ops fl_aggregate_adam;

struct fl_agg_client {
    double weight;        /* n_k > 0; normalised per unit over the clients that sent it */
    const uint8_t *units; /* [n_units], 1 when the update holds the unit */
};

/*
 * Open a decoder for the coded unit of a bundle with fl_codec_open(): bundle 0 is the
 * update, 1 + i is ops->takes[i]. Decoders of different clients are used in turn, each
 * from the unit's start to its end; a client's decoder of unit l is done with before
 * its unit l + 1 is opened.
 */
typedef int (*fl_agg_open_cb)(void *ctx, size_t client, size_t bundle, size_t unit,
                              struct fl_codec_decoder *d);

struct fl_agg_job {
    const struct fl_layout *layout;
    const struct fl_aggregate_ops *ops;
    const struct fl_options *options;
    uint64_t round;    /* 1-based */
    size_t population; /* N, all known clients; for control variates */
    size_t n_clients;  /* responders in client order; 0: theta_new = theta, state_new = state */
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
 * Run it. Scratch memory: about n_clients * block * 4 bytes with distances, else one
 * block; at most some MiB.
 * FL_EFORMAT / FL_ENUMERIC / FL_EIO from a decoder, FL_ENUMERIC for a weight that is not
 * above 0, FL_EFORMAT for a unit that distances lack: `*ret_client` is the client;
 * FL_ENUMERIC with *ret_client = n_clients: the new model is not finite.
 * On error the outputs are undefined and the inputs untouched.
 */
FL_MUST_CHECK int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client,
                                   struct fl_err *err);

#endif
