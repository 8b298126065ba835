#ifndef FL_STRATEGY_AGGREGATE_H
#define FL_STRATEGY_AGGREGATE_H

/*
 * Aggregation: computes the next model from the clients' updates, block by block, clients in client
 * order, sums in double (docs/algorithms.md#partial-uploads). The result does not depend on the
 * order of arrival, bit for bit. Memory: two models plus one block per client.
 *
 * The pass does no I/O of its own: it reads coded units through callbacks.
 */

#include "libfl/strategy/broadcast/broadcast.h"
#include "libfl/strategy/policy.h"
#include "libfl/strategy/robust/robust.h"

/*
 * How updates are weighted in their mean. AUTO: as the solver's server part requires
 * (fl_agg_part.weighs_equally), else SAMPLES.
 */
enum fl_agg_weights { FL_WEIGHTS_AUTO, FL_WEIGHTS_SAMPLES, FL_WEIGHTS_EQUAL };

/* Limit of state vectors of an aggregator and a solver's server part together. */
#define FL_AGG_MAX_STATE 8

struct fl_agg_block {
    size_t n;
    uint64_t round;
    size_t n_senders;           /* clients that sent this unit */
    size_t members;             /* as in the job */
    const double *dbar;         /* [n] weighted mean displacement */
    const double *const *means; /* [takes][n]: weighted as dbar; in a server part: plain means */
    const double *scaled;       /* [n], plain mean of factor_k Delta_k; only with wants_scaled */
    const float *const *state;  /* [n_state][n] */
    float *const *state_new;    /* [n_state][n], written */
    const double *made;         /* [n] with ops->program: the step that it made */
    double *step;               /* [n], written: theta += step; a server part may change it */
};

/*
 * The server part of a solver, which runs in the aggregation pass after the aggregator. Its
 * state vectors and its payloads (`takes`) follow those of the aggregator. It runs in the same
 * blocks, after the aggregator's step is known, and a block that is frozen freezes its state
 * too.
 */
struct fl_agg_part {
    size_t n_state;
    /* NULL-terminated; names of files and, without `tells`, payloads. */
    const char *const *state_names;
    /*
     * Payloads for clients that are computed from the states: payload tells[i] from state i,
     * entry by entry, by tell(); `members` as in the job of the round. The step may read what
     * tell() computes. Both NULL: clients receive the states as they are.
     */
    const char *const *tells;
    void (*tell)(const float *state, size_t members, float *out, size_t n);
    const char *const *takes; /* NULL-terminated, or NULL */
    /*
     * `means`, `state` and `state_new` of the block belong to this part; dbar is the
     * aggregator's, and so is `step`, which the part may correct (FedDyn). It is not called for
     * buffers: the part's state keeps its value there.
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
    /*
     * The state is a plain mean over clients that corrects each of their steps. The corrections
     * of a round cancel only when all updates have the same weight.
     */
    bool weighs_equally;
    /*
     * The state is the sum of the client states that all clients keep between rounds. When a
     * client that contributed to it is removed, it restarts at zero, as a new epoch
     * (docs/algorithms.md#scaffolds-control).
     */
    bool sums_kept;
    /*
     * The part works entry by entry: upload masks may leave entries out, and the state of these
     * entries is frozen.
     */
    bool takes_masks;
    /*
     * The state is the server's step itself: it is 0 for units and entries that no client sent,
     * because the model did not move there. Other states keep their value.
     */
    bool is_step;
    /*
     * True: the step reads fl_agg_block.scaled instead of `takes`, and clients do not send these
     * payloads. NULL: false.
     */
    bool (*wants_scaled)(const struct fl_options *o);
};

/* Payloads that the part needs with these options, NULL-terminated, or NULL. */
static inline const char *const *fl_agg_part_takes(const struct fl_agg_part *part,
                                                   const struct fl_options *o)
{
    return part->wants_scaled != NULL && part->wants_scaled(o) ? NULL : part->takes;
}

/* The component over which the inner products of an attention are summed. */
enum fl_agg_scope {
    FL_SCOPE_NONE,
    FL_SCOPE_MODEL, /* with partial uploads: each unit separately */
    FL_SCOPE_UNIT,
    FL_SCOPE_TENSOR
};

/* The senders of one component (model, unit or tensor), in client order. */
struct fl_attention {
    size_t n;
    size_t entries;        /* trainable entries of the component */
    size_t model_entries;  /* of the whole model, the range of previous_dot */
    const double *gram;    /* [n][n] inner products of the values sent, trainable entries only */
    const double *samples; /* [n] n_k */
    const double *previous_dot; /* [n] <Delta_k of its last aggregated round, Delta_k>; 0: none */
};

/* A program of the operator that makes the step of a whole round, outside of the pass. */
struct fl_agg_program {
    const char *const *argv;           /* NULL-terminated */
    uint64_t limit_ms, start_limit_ms; /* of one round; of a start; 0: none */
    uint64_t memory;                   /* resident; 0: no limit */
    uint64_t state_limit;              /* bytes that it keeps between rounds */
};

struct fl_aggregate_ops {
    struct fl_policy policy;
    /*
     * Model-sized float vectors that the server keeps between rounds (momentum: 1), and their
     * names in file names and payloads. All start at zero: a policy whose state starts elsewhere
     * stores the difference.
     */
    size_t n_state; /* at most FL_AGG_MAX_STATE */
    const char *const *state_names;
    /* Names of payloads beside the update whose weighted means the step reads; NULL: none. */
    const char *const *takes;
    /*
     * The server step of one block of trainable entries. It is not called for units that no
     * client sent, which stay frozen with their state, nor for buffers, which take the mean.
     */
    void (*step)(const struct fl_options *o, const struct fl_agg_block *block);
    /* EQUAL: all senders of a unit have the same weight, whatever their n_k. NULL: SAMPLES. */
    enum fl_agg_weights (*weights)(const struct fl_options *o);
    /*
     * Attention between updates: a pass before the step that decodes every unit a second time.
     * attend() writes weights[n], not negative, with sum 1, which replace the n_k, for buffers
     * too; scope TENSOR is for `mixes` only. Both NULL: no attention.
     *
     * With `mixes` it writes q[n][n], rows with sum 1: row i holds the weights of all senders'
     * models in the personalized model of sender i (FedMCSA, eq. 7). Buffers of a personalized
     * model are the sender's own, whatever the scope. theta becomes the n_k-weighted mean of the
     * models sent, buffers included; units that no client sent keep their value. There is no
     * step, no state and no server part then.
     *
     * attend() is not called for components without a trainable entry: their buffers are
     * weighted by the n_k.
     */
    enum fl_agg_scope (*scope)(const struct fl_options *o);
    void (*attend)(const struct fl_options *o, const struct fl_attention *in, double *out);
    bool mixes;
    /*
     * attend() multiplies by n_k: the fair share of a client is that of its samples. NULL: false,
     * it is that of an equal client.
     */
    bool (*attends_samples)(const struct fl_options *o);
    /*
     * attend() weighs each update by the scores that all updates give it: whether it does with
     * these options, and row i of the scores, [in->n] with sum 1. Not with `mixes`; both NULL: no.
     */
    bool (*scores_pairs)(const struct fl_options *o);
    void (*pair_scores)(const struct fl_options *o, const struct fl_attention *in, size_t i,
                        double *row);
    /* attend() reads previous_dot, which clients must report. NULL: false. */
    bool (*wants_previous_dot)(const struct fl_options *o);
    /*
     * The trainable entries of an update are divided by the local steps of its client, and their
     * mean is multiplied by the mean of the steps, per unit over its senders (FedNova). Returns how
     * far the steps of one client count: at most so many times the median of the senders, and at
     * least the median divided by it; at least 1. NULL: updates are averaged as they are. Not
     * with `attend`.
     */
    double (*steps_cap)(const struct fl_options *o);
    /*
     * The step is made by a program that gets all updates of the round at once (fl_agg_job.whole);
     * step() only reads it (fl_agg_block.made). Of each update the entries that the client sent,
     * so it is not called for masks inside of units, nor with a robust rule. NULL: no program.
     */
    struct fl_agg_program (*program)(const struct fl_options *o);
};

extern const struct fl_aggregate_ops fl_aggregate_mean;
extern const struct fl_aggregate_ops fl_aggregate_momentum; /* "mean + server momentum" */
extern const struct fl_aggregate_ops fl_aggregate_adam;
extern const struct fl_aggregate_ops fl_aggregate_yogi;
extern const struct fl_aggregate_ops fl_aggregate_adagrad;
extern const struct fl_aggregate_ops fl_aggregate_nova;
extern const struct fl_aggregate_ops fl_aggregate_igfl_s;
extern const struct fl_aggregate_ops fl_aggregate_mcsa; /* these compute personalized models */
extern const struct fl_aggregate_ops fl_aggregate_heur_fedamp;
extern const struct fl_aggregate_ops fl_aggregate_fedamp;
extern const struct fl_aggregate_ops fl_aggregate_command; /* a program of the operator */

struct fl_agg_client {
    double weight;        /* n_k > 0; normalised per unit over its senders */
    const uint8_t *units; /* [n_units], 1 when the update contains the unit */
    double factor;        /* factor_k of fl_agg_block.scaled; finite */
    double previous_dot;  /* as reported; 0: none; finite */
    const double *clip; /* [n_units] the trainable entries of each unit are multiplied by it; NULL:
                           by 1; above 0, finite */
    double steps; /* a_k: local steps as its momentum makes them; read with steps_cap, above 0 */
};

/*
 * Receives entries offset .. offset + n - 1 (exported order) of the personalized model of client
 * `client`. Blocks come in rising order, each for all senders of its unit in client order, so
 * the blocks of one client follow one another without a gap inside a unit. Units that the client
 * did not send are not mixed and not passed on: the client keeps its own. Returns FL_OK, or an
 * error that ends the pass; fl_aggregate_run() returns it and reports it in its `err`.
 */
typedef int (*fl_agg_personal_model_cb)(void *ctx, size_t client, size_t offset,
                                        const float *values, size_t n);

/* Of a robust rule, less than this of an equal share: the update was left out. */
#define FL_AGG_LEFT_OUT 0.05

/* How concentrated the attention was, for logs; 0 without attention. */
struct fl_agg_info {
    /*
     * Effective number of clients: exp(entropy) of the weights, or of each row of q with
     * `mixes`. Mean over the rows, and over the components weighted by their entries.
     */
    double effective;
    double self_weight; /* mean of q[i][i] likewise; mixes only */
    /* Of a robust rule: mean of fl_agg_job.used, and how many updates were left out; 0: no rule. */
    double robust_used;
    size_t robust_out;
    size_t robust_kept; /* units that kept their value because the rule used no update of them */
    /* Largest influence of one update relative to its fair share, of fl_agg_job.influence. */
    double influence;
    size_t n_capped; /* clients of which share_cap lowered the influence */
};

/*
 * Opens a decoder for the coded unit of a payload with fl_codec_open(): payload 0 is the update,
 * then ops->takes, then extra->takes. Decoders of different clients are read alternately, each
 * from the unit's start to its end; a client's decoder of unit l is finished before another unit
 * is opened. With attention the update's units are read twice: unit by unit, or all units and
 * then all of them again (scope MODEL).
 */
typedef int (*fl_agg_open_cb)(void *ctx, size_t client, size_t payload, size_t unit,
                              struct fl_codec_decoder *d);

/* The updates of a whole round for a program, in memory of the caller. */
struct fl_agg_whole {
    /* Written before make(); of units that a client did not send 0. */
    float *updates;  /* [n_clients][entries of the layout] displacements, clipped */
    double *mean;    /* [entries] their weighted mean */
    double *weights; /* [n_clients][n_units] of that mean; 0: not sent */
    /* Writes step[entries], all finite; those of buffers and of units that no client sent are not
       read. An error ends the pass. Called with the `ctx` of this struct. */
    int (*make)(void *ctx, double *step, struct fl_err *err);
    void *ctx;
};

struct fl_agg_job {
    const struct fl_layout *layout;
    const struct fl_aggregate_ops *ops;
    const struct fl_options *options;
    uint64_t round;   /* 1-based */
    size_t members;   /* clients in the mean of a part's state; > 0 with a part */
    size_t n_clients; /* responders in client order; 0: theta_new = theta, state_new = state */
    const struct fl_agg_client *clients;
    fl_agg_open_cb open;
    void *ctx;
    const float *theta; /* exported order */
    float *theta_new;
    const struct fl_agg_part *extra; /* NULL: none */
    const struct fl_options *extra_options;
    const struct fl_broadcast_ops *broadcast; /* NULL: float32 */
    const struct fl_options *broadcast_options;
    uint32_t grid;                      /* fl_broadcast_grid() of the model and the round */
    const struct fl_robust_ops *robust; /* NULL: none */
    const struct fl_options *robust_options;
    /* With a rule that `trusts`: the reference update, exported order; else NULL. */
    const float *reference;
    uint64_t seed; /* of random buckets; clients must not know it */
    /*
     * Bound of one client's influence with an attention, relative to its share of a mean
     * (share_cap.h); 0: none. The influence is its weight, or with `mixes` what it has in the
     * models of the others together.
     */
    double share_cap;
    /* [n_clients] written with an attention, or NULL: how much of its influence the bound left to a
       client, 1: all. Mean over the components that it sent, weighted by their entries. */
    double *influence;
    /*
     * [n_mixing * n_mixing] zeros, written if fl_aggregate_has_mixing(), or NULL: the weight of the
     * model of client j (column) in the personalized model of client i (row), or the score that
     * update i gives update j, of the first n_mixing clients; mean over the components, weighted by
     * their entries.
     */
    double *mixing;
    size_t n_mixing; /* at most n_clients */
    /* [n_clients] zeros, written with an attention without `mixes`, or NULL: the weight of each
       update; mean over the components, weighted by their entries. */
    double *attention;
    /*
     * [n_clients] written with a robust rule, or NULL: how much of each update it used, from 0
     * (left out) to 1 (as much as an equal share, or more): the weight, or the share of the
     * entries; mean over the layers sent.
     */
    double *used;
    /*
     * [n_clients] written with a robust rule, or NULL: what the rule judges an update by
     * (fl_robust_ops.weigh), by entries its distance from the result, beside the median of the
     * senders: 1 is as far as the median; mean over the layers sent, at most FL_ROBUST_SCORE_MAX.
     */
    double *score;
    /*
     * [ops->n_state + fl_robust_centred() + fl_broadcast_keeps_rest() + extra->n_state], in this
     * order
     */
    const float *const *state;
    float *const *state_new;
    /*
     * Required with ops->mixes, not allowed without. The uploads are then the clients'
     * parameters, not their displacements, and theta_new is the mean of the uploads. Called with
     * `ctx`.
     */
    fl_agg_personal_model_cb personal_model;
    /*
     * Called when entries offset … offset + n - 1 of theta_new and state_new are final: unit by
     * unit, in rising order. May be NULL.
     */
    void (*made)(void *ctx, size_t offset, size_t n);
    const struct fl_agg_whole *whole; /* with ops->program; NULL: none */
    struct fl_agg_info *info;         /* may be NULL */
    bool want_distance;               /* fill `distance`; needs complete uploads */
    double *distance; /* [n_clients]: ||theta_new - theta_k||, trainable (AdaFL, eq. 1) */
    size_t block;     /* floats per block; 0: chosen from n_clients */
};

/* Whether these options make weights for pairs of clients: fl_agg_job.mixing. */
bool fl_aggregate_has_mixing(const struct fl_aggregate_ops *ops, const struct fl_options *options);

/*
 * Runs the aggregation pass. Scratch memory: about n_clients * block * 4 bytes with distances,
 * attention or a robust rule, else one block; at most some MiB. Attention takes n_clients^2 doubles
 * twice more (TENSOR: once for each tensor of a unit, and once).
 *
 * FL_EFORMAT / FL_ENUMERIC / FL_EIO from a decoder, FL_ENUMERIC for a weight that is not above 0
 * or another value that is not finite, FL_EFORMAT for a unit that is missing for a distance:
 * `*ret_client` is the client. FL_ENUMERIC with *ret_client = n_clients: the new model or a
 * personalized model is not finite; an error of the `personalized model` callback or of
 * fl_agg_whole.make() also sets n_clients. On error the outputs are undefined and the inputs
 * unchanged.
 */
FL_MUST_CHECK int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client,
                                   struct fl_err *err);

#endif
