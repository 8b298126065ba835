#ifndef FL_STRATEGY_SELECTION_H
#define FL_STRATEGY_SELECTION_H

/*
 * Selection: which clients take part in a round, and how many.
 *
 * Every client has one score, a double that the caller stores and persists; only its share of
 * the sum of all scores has a meaning (for `attention`: the client's attention). A client that
 * joins or leaves therefore changes no other client's score, and a round changes only the scores
 * of its responders. All arrays are in client order (ascending name), so the result does not
 * depend on the order of arrival.
 */

#include "libfl/strategy/policy.h"

struct fl_select_input {
    size_t n;              /* candidates: connected, with samples */
    const double *scores;  /* [n] */
    const double *samples; /* [n], > 0 */
    size_t want;           /* K_t, 1 <= want <= n */
    /* Of policies whose scores follow from what clients send: bound of the probability of one of
       them in a draw, times 1 / n (share_cap.h); 0: none. */
    double share_cap;
    uint8_t *capped; /* [n], written by those: 1 for a candidate that the bound lowered; or NULL */
};

/* Sums over all clients that have a score. */
struct fl_score_sums {
    double scores, samples;
};

enum fl_distance {
    FL_DISTANCE_NONE,
    FL_DISTANCE_NEW, /* ||theta^{t+1} - theta_i||, from the aggregation pass */
    FL_DISTANCE_OLD  /* ||theta^t - theta_i||, from the reports' divergences */
};

struct fl_selection_ops {
    struct fl_policy policy;
    /*
     * Score of a new client with `samples` > 0; `others`: sums over the clients that have a
     * score, 0 when there are none. NULL: the policy has no scores.
     */
    double (*join)(const struct fl_options *o, double samples, const struct fl_score_sums *others);
    /* `want` distinct candidate indices, ascending, into chosen[want]. FL_ENOMEM. */
    int (*pick)(const struct fl_options *o, const struct fl_select_input *in, struct fl_rng *rng,
                uint32_t *chosen);
    /*
     * Called after a committed round: update the scores of the `n` responders from their
     * distances, of the kind that distance() names; the sum of the scores stays. `all`: sums
     * over every client. Sums that are 0 or not finite change nothing. NULL: no updates.
     */
    void (*update)(const struct fl_options *o, const struct fl_score_sums *all, double *scores,
                   const double *distance, size_t n);
    /*
     * The kind of distance for update(); `partial`: the server never receives a client's whole
     * update (fl_upload_ops.partial, fl_codec_ops.sparse). NULL: unused.
     */
    enum fl_distance (*distance)(const struct fl_options *o, bool partial);
};

/*
 * d_i = sqrt(sum_l D[i][l]^2) = ||theta_i - theta^t||, exactly, from one client's
 * reported divergences.
 */
double fl_distance_from_divergence(const float *divergence, size_t n_units);

struct fl_fraction_ops {
    struct fl_policy policy;
    /* gamma_t of round t (1-based). */
    double (*at)(const struct fl_options *o, uint64_t round);
};

/* K_t = llround(gamma * n_clients), at least 1. */
size_t fl_fraction_count(double gamma, size_t n_clients);

extern const struct fl_selection_ops fl_selection_uniform;
extern const struct fl_selection_ops fl_selection_weighted;
extern const struct fl_selection_ops fl_selection_attention;
extern const struct fl_fraction_ops fl_fraction_constant;
extern const struct fl_fraction_ops fl_fraction_stepped;
extern const struct fl_fraction_ops fl_fraction_curve;
extern const struct fl_fraction_ops fl_fraction_listed;

#endif
