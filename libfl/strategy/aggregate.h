#ifndef FL_STRATEGY_AGGREGATE_H
#define FL_STRATEGY_AGGREGATE_H

/*
 * From updates to the next model, block by block, clients in client order, sums in
 * double (docs/formulas.md#partial-uploads): the result does not depend on arrival order, bit for
 * bit, and memory is two models plus one block a client.
 *
 * The pass is pure: it reads coded units through callbacks.
 */

#include "libfl/strategy/codec.h"
#include "libfl/strategy/policy.h"

/* What updates count by in their mean; AUTO: as the solver's part has it, else SAMPLES. */
enum fl_agg_weights { FL_WEIGHTS_AUTO, FL_WEIGHTS_SAMPLES, FL_WEIGHTS_EQUAL };

/* State vectors of an aggregate and a part together. */
#define FL_AGG_MAX_STATE 8

struct fl_agg_block {
    size_t n;
    uint64_t round;
    size_t n_senders;           /* clients that sent this unit */
    size_t members;             /* as in the job */
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
 * blocks, and freezes with them.
 */
struct fl_agg_part {
    size_t n_state;
    const char *const
        *state_names; /* NULL-terminated: in file names and, without `tells`, bundles */
    /*
     * What clients are told is made of the states: tells[i], a bundle, of state i, entry by entry;
     * `members` as in the job of the round. tell() also makes what the step takes to be told.
     * Both NULL: clients are told the states.
     */
    const char *const *tells;
    void (*tell)(const float *state, size_t members, float *told, size_t n);
    const char *const *takes; /* NULL-terminated, or NULL */
    /*
     * The block's means, state and state_new are those of this part; dbar is the
     * aggregate's. Entries of buffers are not offered: a part's state of them stays.
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
    /*
     * The state is a plain mean over clients that corrects each of their steps: the corrections of
     * a round cancel only when updates weigh the same, too.
     */
    bool weighs_equally;
    /*
     * The state is the sum of what all clients keep between rounds: it restarts at zero, as an
     * epoch, when a part of it belongs to no client any more
     * (docs/algorithms.md#scaffolds-control).
     */
    bool sums_kept;
    /* Nothing of it is of whole units: masks may leave entries out, which freeze its state. */
    bool takes_masks;
    /*
     * The state is the server's step itself: 0 where nobody sent a unit or an entry, for there the
     * model did not move. Other states freeze.
     */
    bool is_step;
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
    FL_SCOPE_MODEL, /* with partial uploads: each unit by itself */
    FL_SCOPE_UNIT,
    FL_SCOPE_TENSOR
};

/* The senders of one component (model, unit or tensor), in client order. */
struct fl_attention {
    size_t n;
    size_t entries;             /* trainable entries of the component */
    size_t model_entries;       /* … of the whole model, which previous_dot is over */
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
     * sent are not offered: they stay frozen, state included. Entries of
     * buffers are not offered either: they take the mean.
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
    /* EQUAL: the n_k do not count, all senders of a unit weigh the same. NULL: SAMPLES. */
    enum fl_agg_weights (*weights)(const struct fl_options *o);
    /*
     * Attention between updates, a pass before the step that decodes every unit once
     * more. attend() writes weights[n], not negative, with sum 1, in place of the n_k, for
     * buffers, too; scope TENSOR is for `mixes` only. Both NULL: no attention.
     *
     * When it `mixes` it writes q[n][n], rows with sum 1: row i mixes the personal model of
     * sender i out of all (FedMCSA, eq. 7). Buffers of a mixture are the sender's own, whatever
     * the scope. theta becomes the n_k-weighted mean of what was sent, buffers included,
     * and units that nobody sent stay; there is no step, no state and no part then.
     *
     * Components without a trainable entry are not offered: their buffers take the n_k.
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
extern const struct fl_aggregate_ops fl_aggregate_igfl_s;
extern const struct fl_aggregate_ops fl_aggregate_mcsa; /* these mix personal models */
extern const struct fl_aggregate_ops fl_aggregate_heur_fedamp;
extern const struct fl_aggregate_ops fl_aggregate_fedamp;

struct fl_agg_client {
    double weight;        /* n_k > 0; normalised per unit over the clients that sent it */
    const uint8_t *units; /* [n_units], 1 when the update holds the unit */
    double factor;        /* of fl_agg_block.scaled; finite */
    double previous_dot;  /* as reported; 0: none; finite */
};

/*
 * Entries offset .. offset + n - 1 (exported order) of the mixture of client `client`. Block
 * by block in rising order, of each block all senders of its unit in client order; so each
 * client's own blocks follow one another without a gap inside a unit. Units that the
 * client did not send are not mixed and not told: it keeps its own. FL_OK, or an error
 * that ends the pass and is returned by it, with what it wrote to fl_aggregate_run()'s `err`.
 */
typedef int (*fl_agg_personal_model_cb)(void *ctx, size_t client, size_t offset,
                                        const float *values, size_t n);

/* How concentrated the attention was, for logs; 0 without attention. */
struct fl_agg_info {
    /* Number of clients that count, exp(entropy) of the weights, of each row of q when it
       mixes: mean over the rows and over the components by their entries. */
    double effective;
    double self_weight; /* mean of q[i][i] likewise; mixes only */
};

/*
 * Open a decoder for the coded unit of a bundle with fl_codec_open(): bundle 0 is the
 * update, then ops->takes, then extra->takes. Decoders of different clients are used in turn, each
 * from the unit's start to its end; a client's decoder of unit l is done with before
 * another unit is opened. With attention the update's units are read twice: unit by
 * unit, or all of them and then all again (scope MODEL).
 */
typedef int (*fl_agg_open_cb)(void *ctx, size_t client, size_t bundle, size_t unit,
                              struct fl_codec_decoder *d);

struct fl_agg_job {
    const struct fl_layout *layout;
    const struct fl_aggregate_ops *ops;
    const struct fl_options *options;
    uint64_t round;   /* 1-based */
    size_t members;   /* clients whose mean a part keeps; above 0 when there is a part */
    size_t n_clients; /* responders in client order; 0: theta_new = theta, state_new = state */
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
     * Needed and allowed when ops->mixes only. What is sent is then the clients' parameters,
     * not their displacement, and theta_new the mean of what was sent. `ctx` as above.
     */
    fl_agg_personal_model_cb mixture;
    /* Entries offset … offset + n - 1 of theta_new and state_new are what they stay: unit by unit,
       in rising order. May be NULL. */
    void (*made)(void *ctx, size_t offset, size_t n);
    struct fl_agg_info *info; /* may be NULL */
    bool want_distance;       /* fill `distance`; only with complete uploads */
    double *distance;         /* [n_clients]: ||theta_new - theta_k||, trainable (AdaFL, eq. 1) */
    size_t block;             /* floats a block; 0: chosen from n_clients */
};

/*
 * Run it. Scratch memory: about n_clients * block * 4 bytes with distances or attention, else
 * one block; at most some MiB. With attention also n_clients^2 doubles, twice (TENSOR: once
 * for each tensor of a unit, and once).
 * FL_EFORMAT / FL_ENUMERIC / FL_EIO from a decoder, FL_ENUMERIC for a weight that is not
 * above 0 or another figure that is not finite, FL_EFORMAT for a unit that distances lack:
 * `*ret_client` is the client. FL_ENUMERIC with *ret_client = n_clients: the new model or a
 * mixture is not finite; an error of the mixture callback with the same.
 * On error the outputs are undefined and the inputs untouched.
 */
FL_MUST_CHECK int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client,
                                   struct fl_err *err);

#endif
