#ifndef FL_STRATEGY_SELECTION_H
#define FL_STRATEGY_SELECTION_H

/*
 * Who takes part in a round, and how many (ALGORITHMS 3 and 5).
 *
 * Every client has one score, a double that the caller keeps and persists: its
 * attention for `attention`, unused elsewhere. All arrays are in client order
 * (ascending name), so a result does not depend on who came first.
 */

#include "libfl/strategy/policy.h"

struct fl_select_input {
    size_t n;              /* candidates: alive, with samples */
    const double *scores;  /* [n] */
    const double *samples; /* [n], > 0 */
    size_t want;           /* K_t, 1 <= want <= n */
};

enum fl_distance {
    FL_DISTANCE_NONE,
    FL_DISTANCE_NEW, /* ||theta^{t+1} - theta_i||, from the aggregation pass */
    FL_DISTANCE_OLD  /* ||theta^t - theta_i||, from the reports' divergences */
};

struct fl_selection_ops {
    struct fl_policy policy;
    /*
     * Scores of all `n` known clients at the start, from their sample counts.
     */
    void (*init)(const struct fl_options *o, const double *samples, size_t n, double *scores);
    /*
     * A client joined later: set scores[i]; may rescale the others.
     */
    void (*join)(const struct fl_options *o, const double *samples, size_t n, size_t i,
                 double *scores);
    /* `want` distinct candidate indices, ascending, into chosen[want]. FL_ENOMEM. */
    int (*pick)(const struct fl_options *o, const struct fl_select_input *in, struct fl_rng *rng,
                uint32_t *chosen);
    /*
     * After a committed round: distance[r] of responder index who[r] (into the `n`
     * known clients, each at most once), d_i of ALGORITHMS 5.3 or 15.3.5. Non-finite
     * or zero sums leave the scores alone.
     */
    void (*update)(const struct fl_options *o, uint64_t round, double *scores, size_t n,
                   const uint32_t *who, const double *distance, size_t n_responders);
    /*
     * Where the d_i of update() come from; `partial`: the server never sees a client's whole
     * update (fl_upload_ops.partial, fl_codec_ops.sparse). NULL: unused.
     */
    enum fl_distance (*distance)(const struct fl_options *o, bool partial);
};

/*
 * d_i = sqrt(sum_l D[i][l]^2) = ||theta_i - theta^t||, exactly, from one client's
 * reported divergences (15.3.5).
 */
double fl_distance_from_divergence(const float *divergence, size_t n_units);

struct fl_fraction_ops {
    struct fl_policy policy;
    /* gamma_t of round t (1-based). */
    double (*at)(const struct fl_options *o, uint64_t round);
};

/* K_t = llround(gamma * n_clients), at least 1 (ALGORITHMS 2.4). */
size_t fl_fraction_count(double gamma, size_t n_clients);

extern const struct fl_selection_ops fl_selection_uniform;
extern const struct fl_selection_ops fl_selection_weighted;
extern const struct fl_selection_ops fl_selection_attention;
extern const struct fl_fraction_ops fl_fraction_constant;
extern const struct fl_fraction_ops fl_fraction_stepped;

#endif
