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

/* State vectors of an aggregate and a part together. */
#define FL_AGG_MAX_STATE 8

struct fl_agg_block {
    size_t n;
    uint64_t round;
    size_t n_senders;           /* clients that sent this unit */
    size_t population;          /* as in the job */
    const double *dbar;         /* [n] weighted mean displacement */
    const double *const *means; /* [takes][n]: weighted as dbar; a part's are plain means */
    const double *scaled;       /* [n], plain mean of factor_k Delta_k; parts that want it only */
    const float *const *state;  /* [n_state][n] */
    float *const *state_new;    /* [n_state][n], written */
    double *step;               /* [n], written: theta += step; fl_agg_part only reads it */
};

/*
 * What goes along with the pass beside the aggregate: the server's part of a solver. Its
 * state and takes come behind the aggregate's. It runs after the step is known, in the same
 * blocks, and freezes with them (15.3.1).
 */
struct fl_agg_part {
    size_t n_state;
    const char *const *state_names; /* NULL-terminated: bundles for the clients */
    const char *const *takes;       /* NULL-terminated, or NULL */
    /*
     * The block's means, state and state_new are those of this part; dbar is the
     * aggregate's. Entries of buffers are not offered: a part's state of them stays.
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
    /* fl_agg_block.scaled is wanted, in place of `takes`: they are not sent then. NULL: no. */
    bool (*wants_scaled)(const struct fl_options *o);
};

/* What the part takes with these options, NULL-terminated, or NULL. */
static inline const char *const *fl_agg_part_takes(const struct fl_agg_part *part,
                                                   const struct fl_options *o)
{
    return part->wants_scaled != NULL && part->wants_scaled(o) ? NULL : part->takes;
}

/* Over what inner products go in an attention. */
enum fl_agg_scope {
    FL_SCOPE_NONE,
    FL_SCOPE_MODEL, /* with partial uploads: each unit by itself (15.3.6) */
    FL_SCOPE_UNIT,
    FL_SCOPE_TENSOR
};

/* The senders of one component (model, unit or tensor), in client order. */
struct fl_attention {
    size_t n;
    size_t entries;             /* trainable entries of the component */
    const double *gram;         /* [n][n] inner products of what they sent, trainable only */
    const double *samples;      /* [n] n_k */
    const double *previous_dot; /* [n] <Delta_k of its last counted round, Delta_k>; 0: none */
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
    /*
     * Attention between updates, a pass before the step. attend() writes weights[n], not
     * negative, with sum 1, in place of the n_k; when `mixes` it writes q[n][n], rows with
     * sum 1: row i mixes the personal model of sender i out of all (FedMCSA 8.1), and theta
     * becomes the n_k-weighted mean of what was sent. NULL: neither.
     * Components without a trainable entry are not offered; buffers take the unit's weights (the
     * mean over its tensors' is not defined: scope TENSOR leaves buffers to the row's own).
     */
    enum fl_agg_scope (*scope)(const struct fl_options *o);
    void (*attend)(const struct fl_options *o, const struct fl_attention *in, double *out);
    bool mixes;
    /* attend() reads previous_dot: clients report it. NULL: no. */
    bool (*wants_previous_dot)(const struct fl_options *o);
};

extern const struct fl_aggregate_ops fl_aggregate_mean;
extern const struct fl_aggregate_ops fl_aggregate_momentum; /* "mean + server momentum" */
extern const struct fl_aggregate_ops fl_aggregate_adam;

struct fl_agg_client {
    double weight;        /* n_k > 0; normalised per unit over the clients that sent it */
    const uint8_t *units; /* [n_units], 1 when the update holds the unit */
    double factor;        /* of fl_agg_block.scaled; finite */
    double previous_dot;  /* as reported; 0: none */
};

/*
 * The next `n` entries of client `client`'s mixture, exported order from entry 0 on: units in
 * order, of one unit all clients in turn. Units that the client did not send are not mixed
 * and not told (15.3.6). FL_OK, or an error that ends the pass.
 */
typedef int (*fl_agg_mixture_cb)(void *ctx, size_t client, size_t offset, const float *values,
                                 size_t n);

/* How concentrated the attention was, for logs (7.2); 0 without attention. */
struct fl_agg_info {
    double effective;   /* exp(entropy) of the weights, mean over components by entries */
    double self_weight; /* mean of q[i][i] likewise; mixes only */
};

/*
 * Open a decoder for the coded unit of a bundle with fl_codec_open(): bundle 0 is the
 * update, then ops->takes, then extra->takes. Decoders of different clients are used in turn, each
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
    const struct fl_agg_part *extra; /* NULL: none */
    const struct fl_options *extra_options;
    const float *const *state; /* [ops->n_state + extra->n_state] */
    float *const *state_new;
    /*
     * What is sent is the clients' parameters, not their displacement (personal models):
     * theta_new is then the mean of what was sent. Needed and allowed when ops->mixes only.
     */
    fl_agg_mixture_cb mixture; /* ops->mixes only */
    struct fl_agg_info *info;  /* may be NULL */
    bool want_distance;        /* fill `distance`; only with complete uploads */
    double *distance;          /* [n_clients]: ||theta_new - theta_k||, trainable (AdaFL 5.3) */
    size_t block;              /* floats a block; 0: chosen from n_clients */
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
