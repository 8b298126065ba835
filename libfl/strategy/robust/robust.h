#ifndef FL_STRATEGY_ROBUST_H
#define FL_STRATEGY_ROBUST_H

/*
 * What replaces the weighted mean of the updates where some clients may be hostile
 * (docs/algorithms.md#robust-aggregation). A rule either weighs whole updates, by the distances
 * between them, or computes each entry from the values of all clients. Before it the updates may be
 * mixed: means of buckets, or of nearest neighbours. Names and defaults are those of ByzFL where it
 * has the rule.
 *
 * Clients stand in client order, so results do not depend on the order of arrival, bit for bit.
 * Of equal values the client that stands first is taken.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/num/rows.h"
#include "libfl/strategy/policy.h"

enum fl_robust_mix { FL_MIX_NONE, FL_MIX_BUCKETING, FL_MIX_NNM };

/* First member of the options of all policies but `none`. */
struct fl_robust_common {
    int64_t f; /* hostile clients among the senders of a layer that the rule is to withstand */
    enum fl_robust_mix mix;
    int64_t bucket; /* updates in the mean of a bucket */
    bool report;    /* compute what the rule would do, and take the weighted mean */
};

/* The updates of the senders of a component (model or unit), or their mixtures. */
struct fl_robust_updates {
    size_t n;
    /*
     * [n + 1][n + 1] inner products; row and column n: with the centre, which is the last result of
     * a rule with `centred` and the reference update of one with `trusts`, else 0. With
     * FL_ROBUST_NORMS alone only the diagonal is set, with FL_ROBUST_REFERENCE also row and column
     * n.
     */
    const double *gram;
    const double *weights; /* [n] of the plain mean, sum 1 */
    /* With FL_ROBUST_SIGNS: [n] entries above 0 and equal to 0, of `entries`; else NULL. */
    const double *positive, *zero;
    double entries;
};

/* What rules read of the updates. */
enum fl_robust_wants {
    FL_ROBUST_NORMS = 1u << 0,
    FL_ROBUST_PRODUCTS = 1u << 1, /* and norms */
    FL_ROBUST_SIGNS = 1u << 2,
    FL_ROBUST_REFERENCE = 1u << 3 /* norms, and products with the centre */
};

/* Columns of a tile of values that a rule by entries gets. Kernels for tiles are in
   libfl/num/rows.h. */
#define FL_ROBUST_TILE FL_ROWS_COLUMNS

/* A tile of values: rows[i * FL_ROBUST_TILE + c] for each entry c in rising order of i. They may be
   sums of equally many updates, to be divided afterwards: results must be linear in them. */
struct fl_robust_tile {
    size_t n_rows;
    const double *rows;
    double *out;        /* [FL_ROBUST_TILE] written */
    double *low, *high; /* likewise: the values between them, both included, were used */
};

struct fl_robust_ops {
    struct fl_policy policy;
    /* How many senders of a layer the rule needs at least, without mixing. NULL: `none`. */
    size_t (*needs)(const struct fl_options *o);
    /* The centre is the last result, a state vector that the server keeps. NULL: never. */
    bool (*centred)(const struct fl_options *o);
    /*
     * The centre is an update that the server trains on data of its own, struct
     * fl_robust_root_options. The weights bring all updates to its length, so the share that is
     * used of each is reported without that factor, and buffers take the weights without it. When
     * all weights are 0 the component keeps its value and its state.
     */
    bool trusts;
    /* The weights begin with those of the plain mean; false: with equal ones. */
    bool by_samples;
    unsigned wants; /* of weigh(): enum fl_robust_wants; with a centre also FL_ROBUST_REFERENCE */
    /*
     * Write the weights w[0] … w[n - 1] of the updates and w[n] of the centre: the result is their
     * weighted sum; and the length score[i] by which the rule judges update i, for reports.
     * FL_ENOMEM. NULL: a rule by entries.
     */
    int (*weigh)(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                 double *score);
    /* Compute entries from the sorted values of all clients. NULL: a rule by weights, or `none`. */
    void (*combine)(const struct fl_options *o, const struct fl_robust_tile *tile);
};

/* Of rules with `trusts`. */
struct fl_robust_root_options {
    struct fl_robust_common common; /* only `report` is an option */
    int64_t samples;                /* of the root data set */
    int64_t steps;                  /* of the server in a round; 0: those of a client */
};

/* Largest score beside the median one, also when that is 0. */
#define FL_ROBUST_SCORE_MAX 1e9

/* Name of the state vector of the centre. */
#define FL_ROBUST_CENTRE "centre"

extern const struct fl_robust_ops fl_robust_none;
extern const struct fl_robust_ops fl_robust_median;
extern const struct fl_robust_ops fl_robust_trimmed_mean;
extern const struct fl_robust_ops fl_robust_meamed;
extern const struct fl_robust_ops fl_robust_krum;
extern const struct fl_robust_ops fl_robust_multi_krum;
extern const struct fl_robust_ops fl_robust_mda;
extern const struct fl_robust_ops fl_robust_geometric_median;
extern const struct fl_robust_ops fl_robust_centered_clipping;
extern const struct fl_robust_ops fl_robust_clipping;
extern const struct fl_robust_ops fl_robust_dnc;
extern const struct fl_robust_ops fl_robust_signguard;
extern const struct fl_robust_ops fl_robust_fltrust;

/* Is there a rule? NULL and `none`: no. */
bool fl_robust_on(const struct fl_robust_ops *ops);
bool fl_robust_centred(const struct fl_robust_ops *ops, const struct fl_options *o);
bool fl_robust_trusts(const struct fl_robust_ops *ops);
bool fl_robust_reports(const struct fl_robust_ops *ops, const struct fl_options *o);
/* Does it draw random numbers, which clients must not know? */
bool fl_robust_draws(const struct fl_robust_ops *ops, const struct fl_options *o);
/* What the rule and what is before it read: enum fl_robust_wants; 0 without a rule. */
unsigned fl_robust_wants(const struct fl_robust_ops *ops, const struct fl_options *o);
/* How many senders of a layer rule and mixing need at least; 1 without a rule. */
size_t fl_robust_needs(const struct fl_robust_ops *ops, const struct fl_options *o);

/*
 * Updates that a rule sees, from the n sent ones: mixtures [m][n], means of some of them, so rows
 * with sum 1. `mix` NULL: the updates themselves, m = n. Owned: fl_robust_mixtures_done().
 */
struct fl_robust_mixtures {
    size_t m;
    double *mix;
    double *sizes;   /* [m] updates in each; behind `mix`, not owned */
    uint8_t *groups; /* [m][fl_rows_groups(n)] which ones, as of fl_rows_sum(); likewise */
};

/*
 * `rng` determines the permutation of bucketing; clients must not know its seed. FL_ENOMEM: call
 * fl_robust_mixtures_done() all the same.
 */
FL_MUST_CHECK int fl_robust_mix_updates(const struct fl_options *o,
                                        const struct fl_robust_updates *in, struct fl_rng *rng,
                                        struct fl_robust_mixtures *ret);
void fl_robust_mixtures_done(struct fl_robust_mixtures *mixtures);

/*
 * The weights out[n + 1] of the n updates and of the centre with a rule by weights, through the
 * mixtures, and the scores[n]: of each update that of the rule, with mixtures the mean of those it
 * is in. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_robust_weigh(const struct fl_robust_ops *ops, const struct fl_options *o,
                                  const struct fl_robust_updates *in,
                                  const struct fl_robust_mixtures *mixtures, double *out,
                                  double *scores);

/* The updates of a block, for a rule by entries. */
struct fl_robust_values {
    const float *rows; /* [n_rows][stride] */
    size_t n_rows, stride, n;
    double *scratch; /* [fl_robust_scratch()], fastest with the alignment of a cache line */
    double *out;     /* [n] written */
    /*
     * [n_rows] increased: of updates themselves by the number of columns in which the value was
     * used, with mixtures by the shares of the update in mixtures that were.
     */
    double *used;
    double *apart; /* [n_rows] increased: squared distance of the update from the result */
};

/* A rule by entries. */
void fl_robust_combine(const struct fl_robust_ops *ops, const struct fl_options *o,
                       const struct fl_robust_mixtures *mixtures,
                       const struct fl_robust_values *values);
size_t fl_robust_scratch(size_t n_rows);

#endif
