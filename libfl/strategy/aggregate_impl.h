#ifndef FL_STRATEGY_AGGREGATE_IMPL_H
#define FL_STRATEGY_AGGREGATE_IMPL_H

/* What the files of the aggregation pass share, and what several policies do alike. */

#include "libfl/strategy/aggregate.h"

/* What the decoded blocks may take together. */
#define FL__AGG_SCRATCH ((size_t)4 << 20)

/* An attention over the components of one unit, or of the model. */
struct fl__agg_attention {
    enum fl_agg_scope scope; /* as it is used: not MODEL when some client sent a part of it */
    size_t block;
    float *in;                     /* [n_clients][block] */
    double *gram;                  /* [n_clients][n_clients] */
    double *samples;               /* [n_clients] */
    double *previous_dot;          /* [n_clients] */
    double *out;                   /* of each component: weights, or q when it mixes */
    size_t stride;                 /* doubles of a component in `out` */
    double entries;                /* trainable, of all components so far; and sums over them */
    double effective, self_weight; /* of the figures of fl_agg_info */
};

struct fl__agg_pass {
    const struct fl_agg_job *job;
    size_t n_weighted; /* bundles of which weighted means are made: the update, ops->takes */
    size_t n_bundles;  /* … and extra->takes behind them, with plain means */
    size_t n_state;    /* the aggregate's and the part's */
    size_t n_sums;     /* n_bundles, one more when the part wants fl_agg_block.scaled */
    size_t block;
    struct fl_codec_decoder *decoders; /* [n_clients][n_bundles] */
    double *weights;                   /* [n_clients], of the unit at hand; 0: not sent */
    size_t *senders;                   /* of the unit at hand, in client order */
    size_t n_senders;
    double *sums;                  /* [n_sums][block] */
    const double **means;          /* [n_bundles]: of bundle 1, 2, … */
    double *step;                  /* [block] */
    float *in;                     /* [n_clients][block] with distances, else [block] */
    double *distance_sq;           /* [n_clients] */
    struct fl__presence *presence; /* of entries, in the unit at hand (aggregate_masked.h) */
    struct fl__agg_attention attention;
    size_t *ret_client;
    struct fl_err *err;
};

/* Refuse what peers can be blamed for; FL_REQUIRE what the caller can. */
FL_MUST_CHECK int fl__agg_check(const struct fl_agg_job *job, size_t *ret_client,
                                struct fl_err *err);
/* n_clients is not 0. On error fl__agg_done() is needed, too. */
FL_MUST_CHECK int fl__agg_init(struct fl__agg_pass *p);
void fl__agg_done(struct fl__agg_pass *p);

/* theta and all states stay as they were. */
void fl__agg_keep(const struct fl_agg_job *job, size_t offset, size_t n);
/* List the unit's senders and their weights, which sum to 1. False when nobody sent it. */
bool fl__agg_weigh(struct fl__agg_pass *p, size_t l);
/*
 * Open, and close, the decoders of the first n_bundles bundles of the unit's senders. Masks are
 * refused where whole units are needed: distances, attention, a solver's part.
 */
FL_MUST_CHECK int fl__agg_open(const struct fl__agg_pass *p, size_t l, size_t n_bundles);
FL_MUST_CHECK int fl__agg_close(const struct fl__agg_pass *p, size_t l, size_t n_bundles);
/* The next n entries of client k's bundle. */
FL_MUST_CHECK int fl__agg_read(const struct fl__agg_pass *p, size_t k, size_t bundle, size_t l,
                               float *out, size_t n);
/* They are added to sum[n], times w (fl_codec_add()). */
FL_MUST_CHECK int fl__agg_add(const struct fl__agg_pass *p, size_t k, size_t bundle, size_t l,
                              double w, double *sum, size_t n);
/* FL_ENUMERIC, blamed on nobody. */
int fl__agg_not_finite(const struct fl__agg_pass *p, size_t l, const char *what);

/*
 * Attention (aggregate_attend.c). Setting up makes the attention of the whole model, when
 * that is the scope; each unit that somebody sent makes its own, otherwise, and puts its
 * weights in the place of p->weights. Without attention both do nothing.
 */
FL_MUST_CHECK int fl__agg_attend_init(struct fl__agg_pass *p);
FL_MUST_CHECK int fl__agg_attend_unit(struct fl__agg_pass *p, size_t l);
void fl__agg_attend_done(struct fl__agg_pass *p);
/* The next n entries of the update of every sender into attention.in, one block a sender. */
FL_MUST_CHECK int fl__agg_read_senders(const struct fl__agg_pass *p, size_t l, size_t n);
/* Mixtures of a unit that somebody sent (aggregate_mix.c), and its theta. */
FL_MUST_CHECK int fl__agg_mix_unit(struct fl__agg_pass *p, size_t l);

/* In place: exp(x[i]) / sum exp(x); no overflow, always finite, sum 1. */
void fl__softmax(double *x, size_t n);
/* Make a sum of 1 of what is not negative and not all 0. */
void fl__normalise(double *x, size_t n);
/* Cosine of senders i and j: 1 for i = j, 0 when one of two is zero. In [-1, 1]. */
double fl__agg_cosine(const struct fl_attention *in, size_t i, size_t j);

/* What the options of policies with a weighted mean or its step begin with. */
struct fl__agg_common {
    double server_lr;
    enum fl_agg_weights weights;
};

/* The row `weights` of such a table; what follows reads it, and server_lr, from any of them. */
/* clang-format off */
#define FL__AGG_WEIGHTS_OPTION(S)                                                         \
    {FL_OPT_IN(S, ENUM, common, weights), .def = "auto", .choices = fl__agg_weights,      \
     .help = "What updates count by in their mean: 'samples' of the client, or all "      \
             "'equal'. 'auto' is equal with solver 'scaffold', whose correction is a "    \
             "plain mean over clients, and samples with all others."}
/* clang-format on */
extern const char *const fl__agg_weights[];
/* fl_aggregate_ops.weights */
enum fl_agg_weights fl__agg_weights_of(const struct fl_options *o);
/* step = server_lr dbar */
void fl__agg_mean_step(const struct fl_options *o, const struct fl_agg_block *block);

#endif
