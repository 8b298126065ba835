#ifndef FL_STRATEGY_UPLOAD_H
#define FL_STRATEGY_UPLOAD_H

/* Which units each client uploads (ALGORITHMS 6). */

#include "libfl/strategy/policy.h"

struct fl_upload_input {
    size_t n_clients;  /* responders, in client order */
    size_t n_selected; /* K_t: what a share is taken of */
    size_t n_units;
    const float *divergence; /* [n_clients][n_units], NULL without feedback */
    const double *samples;   /* [n_clients] */
};

struct fl_upload_ops {
    struct fl_policy policy;
    /* The plan is made from reports, after training (two phases). */
    bool needs_feedback;
    /* Some plan leaves units out, so a client's whole update is not known to the server. */
    bool partial;
    /* grant[n_clients][n_units]: 1 when the client uploads the unit, else 0. FL_ENOMEM. */
    int (*plan)(const struct fl_options *o, const struct fl_upload_input *in, struct fl_rng *rng,
                uint8_t *grant);
};

extern const struct fl_upload_ops fl_upload_full;
extern const struct fl_upload_ops fl_upload_hdfl;
extern const struct fl_upload_ops fl_upload_ldf;
extern const struct fl_upload_ops fl_upload_random_layer;

#endif
