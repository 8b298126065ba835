#ifndef FL_STRATEGY_AGGREGATE_IMPL_H
#define FL_STRATEGY_AGGREGATE_IMPL_H

/* Shared by the files of the aggregation pass, and helpers of several aggregators. */

#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/share_cap.h"

/* Limit of the memory of all decoded blocks together, in bytes. */
#define FL__AGG_SCRATCH ((size_t)4 << 20)

/* An attention over the components of one unit, or of the model. */
struct fl__agg_attention {
    enum fl_agg_scope
        /* The scope in effect: not MODEL when some client sent only a part of the units. */
        scope;
    size_t block;
    size_t in_row;                 /* from one row of `in` to the next */
    float *in;                     /* [n_clients + 1][in_row]: a block of each, and of the centre */
    size_t rows;                   /* of `gram`: senders, and the centre with a robust rule */
    double *gram;                  /* [rows][rows] inner products */
    double *samples;               /* [n_clients] */
    double *previous_dot;          /* [n_clients] */
    double *out;                   /* of each component: weights, or q with `mixes` */
    size_t stride;                 /* doubles of a component in `out` */
    double entries;                /* trainable, of all components so far */
    double effective, self_weight; /* sums over them of the values of fl_agg_info */
    double *fair;                  /* [n_clients] of a component's senders */
    double *factor;                /* [n_clients] left to them by share_cap */
    double *row;                   /* [n_clients] of ops->pair_scores() */
    struct fl_share *scratch;      /* [n_clients] */
    uint8_t *capped;               /* [n_clients] */
    /* [n_clients], sums over the components that each sent: entries, the same times what share_cap
       left of its influence, and times its influence over its fair share */
    double *sent, *left, *relative;
};

/* A robust rule (aggregate_robust.c). */
struct fl__agg_robust {
    bool on, by_entries, report;
    unsigned wants;                     /* enum fl_robust_wants */
    struct fl_robust_mixtures mixtures; /* of the current component */
    double *means;                      /* [n_clients] weights of the plain mean */
    double *weights; /* [n_clients + 1] of the rule, of the component's senders */
    double centre_weight;
    double *trust;           /* [n_clients] of a rule that `trusts`: weights of the buffers */
    bool unused;             /* it gives no update of the component a weight */
    double *tile;            /* fl_robust_scratch() */
    double *out;             /* [block], with `report` */
    double *columns;         /* [n_clients] */
    double *used, *entries;  /* [n_clients]: used, and sent */
    double *scores;          /* [n_clients] of a rule by weights, of the component's senders */
    double *sorted;          /* [n_clients] for medians */
    double *positive, *zero; /* [n_clients] signs of the component's senders */
    /* [n_clients] scores times entries; by entries: squared distances from the result */
    double *apart;
};

struct fl__agg_pass {
    const struct fl_agg_job *job;
    size_t n_weighted; /* payloads that are averaged with weights: the update, ops->takes */
    size_t n_payloads; /* and extra->takes after them, averaged without weights */
    size_t n_state;    /* fl__agg_states() */
    size_t n_sums;     /* n_payloads, plus one when the part reads fl_agg_block.scaled */
    size_t block;
    struct fl_codec_decoder *decoders; /* [n_clients][n_payloads] */
    double *weights;                   /* [n_clients], of the current unit; 0: not sent */
    size_t *senders;                   /* of the current unit, in client order */
    size_t n_senders;
    double *sums;                  /* [n_sums][block] */
    const double **means;          /* [n_payloads]: of payload 1, 2, … */
    double *step;                  /* [block] */
    double *made;                  /* [entries] with ops->program */
    float *in;                     /* [n_clients][block] with distances, else [block] */
    double *distance_sq;           /* [n_clients] */
    double *steps_scale;           /* [n_clients] of the unit's senders with steps_cap, else NULL */
    double *steps_sorted;          /* [n_clients] likewise */
    struct fl__presence *presence; /* per entry of the current unit (aggregate_masked.h) */
    struct fl__agg_attention attention;
    struct fl__agg_robust robust;
    size_t *ret_client;
    struct fl_err *err;
};

/* Check the job: an error for values that come from peers, FL_REQUIRE for errors of the caller. */
FL_MUST_CHECK int fl__agg_check(const struct fl_agg_job *job, size_t *ret_client,
                                struct fl_err *err);
/* n_clients must not be 0. Call fl__agg_done() also after an error. */
FL_MUST_CHECK int fl__agg_init(struct fl__agg_pass *p);
void fl__agg_done(struct fl__agg_pass *p);

/* As calloc(), aligned to the lines of a cache; NULL also when n * size is too large. */
void *fl__agg_zeroed(size_t n, size_t size);

/* Does the server keep a rest beside the model that clients hold? */
static inline bool fl__agg_keeps_rest(const struct fl_agg_job *job)
{
    return job->broadcast != NULL && fl_broadcast_keeps_rest(job->broadcast);
}
/* State vectors of the aggregator and of the broadcast; and with those of the server part. */
size_t fl__agg_own_states(const struct fl_agg_job *job);
size_t fl__agg_states(const struct fl_agg_job *job);
/* Copy theta and all states unchanged for entries offset .. offset + n - 1. */
void fl__agg_keep(const struct fl_agg_job *job, size_t offset, size_t n);
/* List the unit's senders and their weights, which sum to 1. False: no client sent it. */
bool fl__agg_weigh(struct fl__agg_pass *p, size_t l);
/* Of the unit's senders, whose weights are known: the mean of their steps over those of each. */
void fl__agg_scale_steps(struct fl__agg_pass *p);
/*
 * Open, and close, the decoders of the first n_payloads payloads of the unit's senders. Upload
 * masks are refused where whole units are needed: distances, attention, a solver's server part.
 */
FL_MUST_CHECK int fl__agg_open(const struct fl__agg_pass *p, size_t l, size_t n_payloads);
FL_MUST_CHECK int fl__agg_close(const struct fl__agg_pass *p, size_t l, size_t n_payloads);
/* Decode the next n entries of a payload of client k. */
FL_MUST_CHECK int fl__agg_read(const struct fl__agg_pass *p, size_t k, size_t payload, size_t l,
                               float *out, size_t n);
/* The same, added to sum[n] with weight w (fl_codec_add()). */
FL_MUST_CHECK int fl__agg_add(const struct fl__agg_pass *p, size_t k, size_t payload, size_t l,
                              double w, double *sum, size_t n);
/* Report FL_ENUMERIC that no single client caused (*ret_client = n_clients). */
int fl__agg_not_finite(const struct fl__agg_pass *p, size_t l, const char *what);

/*
 * Attention (aggregate_attend.c). fl__agg_attend_init() computes the attention of the whole
 * model when the scope is MODEL; otherwise fl__agg_attend_unit() computes it for each unit that
 * was sent. The resulting weights replace p->weights. Without attention both do nothing.
 */
FL_MUST_CHECK int fl__agg_attend_init(struct fl__agg_pass *p);
FL_MUST_CHECK int fl__agg_attend_unit(struct fl__agg_pass *p, size_t l);
void fl__agg_attend_done(struct fl__agg_pass *p);
/* Bound the weights of a component, or its rows with `mixes`, by the share_cap of the job. */
void fl__agg_share(struct fl__agg_pass *p, const struct fl_attention *in, double *out);
/* The means over the components, for the job. */
void fl__agg_share_report(const struct fl__agg_pass *p);
/* Decode the next n entries of every sender's update into attention.in, one block per sender. */
FL_MUST_CHECK int fl__agg_read_senders(const struct fl__agg_pass *p, size_t l, size_t n);
/* The step of a program, for all units (aggregate_whole.c); without one nothing. */
FL_MUST_CHECK int fl__agg_whole_make(struct fl__agg_pass *p);
/* Personalized models of a unit that was sent, and its theta (aggregate_mix.c). */
FL_MUST_CHECK int fl__agg_mix_unit(struct fl__agg_pass *p, size_t l);

/*
 * A robust rule (aggregate_robust.c). Weights of a rule by weights take the place of those of the
 * mean, the values of a rule by entries that of their sum.
 */
FL_MUST_CHECK int fl__agg_robust_init(struct fl__agg_pass *p);
void fl__agg_robust_done(struct fl__agg_pass *p);
/* Too few senders of the current unit for the rule: it stays as it is. */
bool fl__agg_robust_lacks(const struct fl__agg_pass *p);
/* The last result or the reference update, of the model; NULL: 0. */
const float *fl__agg_robust_centre(const struct fl__agg_pass *p);
/* The weight of sender s in the mean of buffers. */
double fl__agg_robust_buffer_weight(const struct fl__agg_pass *p, size_t s);
/* The rule used no update of the current unit: it stays as it is. */
bool fl__agg_robust_keeps(const struct fl__agg_pass *p);
/* Begin a component; and count the signs of n entries of its sender s. */
void fl__agg_robust_clear(struct fl__agg_pass *p);
void fl__agg_robust_signs(const struct fl__agg_pass *p, size_t s, const float *x, size_t n);
/* Mixtures and weights of a component, whose distances are complete or not needed. */
FL_MUST_CHECK int fl__agg_robust_component(struct fl__agg_pass *p, size_t entries);
/* For each unit, when the weights of its mean are known. */
FL_MUST_CHECK int fl__agg_robust_unit(struct fl__agg_pass *p, size_t l);
/* The sum of a block, p->sums, from the updates in p->in or from their weighted sum. */
void fl__agg_robust_block(struct fl__agg_pass *p, size_t offset, size_t n, bool buffer);
/* What was used of each update, and its score, for the job. */
void fl__agg_robust_report(struct fl__agg_pass *p);

/* In place: exp(x[i]) / sum exp(x); no overflow, always finite, sum 1. */
void fl__softmax(double *x, size_t n);
/* Scale x[n], not negative and not all 0, to sum 1. */
void fl__normalise(double *x, size_t n);
/* Cosine of the uploads of senders i and j, in [-1, 1]: 1 for i = j, 0 when one is zero. */
double fl__agg_cosine(const struct fl_attention *in, size_t i, size_t j);

/* First member of the options of all policies with a weighted mean or fl__agg_mean_step(). */
struct fl__agg_common {
    double server_lr;
    enum fl_agg_weights weights;
};

/* The option row `weights` of such a policy. */
/* clang-format off */
#define FL__AGG_WEIGHTS_OPTION(S)                                                         \
    {FL_OPT_IN(S, ENUM, common, weights), .def = "auto", .choices = fl__agg_weights,      \
     .help = "How updates are weighted in their mean: by the 'samples' of the client, or "   \
             "all 'equal'. 'auto' is equal with solvers 'scaffold' and 'feddyn', whose "      \
             "corrections are plain means over clients, and samples with all others."}
/* clang-format on */
extern const char *const fl__agg_weights[];
/* fl_aggregate_ops.weights */
enum fl_agg_weights fl__agg_weights_of(const struct fl_options *o);
/* step = server_lr dbar */
void fl__agg_mean_step(const struct fl_options *o, const struct fl_agg_block *block);

#endif
