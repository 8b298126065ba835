#ifndef FL_STRATEGY_UPLOAD_H
#define FL_STRATEGY_UPLOAD_H

/* Upload policies: which units each client uploads (docs/algorithms.md#uploads-by-divergence). */

#include "libfl/strategy/policy.h"

struct fl_upload_input {
    size_t n_clients;  /* responders, in client order */
    size_t n_selected; /* K_t: the base of option `share` */
    size_t n_units;
    const float *divergence; /* [n_clients][n_units], NULL without feedback */
    const double *samples;   /* [n_clients] */
    /*
     * Of plans by divergence: a client is asked for share_cap times its fair share of layers at
     * most (share_cap.h). 0: no bound.
     */
    double share_cap;
    const double *credit; /* [n_clients], with share_cap */
    uint8_t *capped;      /* [n_clients], written then: 1 where another client sends a layer */
};

struct fl_upload_ops {
    struct fl_policy policy;
    /* The upload plan is made from the reports, after training (two phases). */
    bool needs_feedback;
    /* A plan may leave units out, so the server does not receive a client's whole update. */
    bool partial;
    /* With `partial`: each client sends all units or none. */
    bool whole;
    /*
     * Make the upload plan: grant[n_clients][n_units] is 1 when the client uploads the unit,
     * else 0. FL_ENOMEM.
     */
    int (*plan)(const struct fl_options *o, const struct fl_upload_input *in, struct fl_rng *rng,
                uint8_t *grant);
    /* With `partial`: how many clients upload each unit, if enough respond; 0: a share of the
       selected ones. */
    size_t (*senders)(const struct fl_options *o);
    /* No client ever uploads (local training): a round without updates is complete. */
    bool never;
    /*
     * On the client: choose which neurons of each unit in its upload mask are sent (FedADP). A
     * neuron is one index of the first dimension of the unit's tensors. `keep` has one byte per
     * neuron, units in order, fl_neurons_total() of them: at least one neuron of each unit, all
     * of the last unit. Coded units then begin with their neuron mask (codec_masked.h). `theta`
     * is the received model, `delta` the whole update. FL_ENUMERIC when they are not finite,
     * FL_ENOMEM. NULL: whole units.
     */
    int (*mask)(const struct fl_options *o, const struct fl_layout *layout, const float *theta,
                const float *delta, uint8_t *keep);
};

/*
 * Neurons of unit l: the first dimension that all its tensors share, or 1. Outputs are the first
 * dimension of the weights of all built-in layers, so a neuron is a row, a filter, a channel of
 * batch-norm.
 */
size_t fl_neurons(const struct fl_layout *layout, size_t l);
size_t fl_neurons_total(const struct fl_layout *layout);

extern const struct fl_upload_ops fl_upload_fedadp;
extern const struct fl_upload_ops fl_upload_full;
extern const struct fl_upload_ops fl_upload_none;
extern const struct fl_upload_ops fl_upload_hdfl;
extern const struct fl_upload_ops fl_upload_ldf;
extern const struct fl_upload_ops fl_upload_random_layer;

#endif
