#ifndef FL_STRATEGY_PERSONAL_H
#define FL_STRATEGY_PERSONAL_H

/*
 * Which model a client trains and evaluates (docs/algorithms.md#personal-models). A policy only
 * declares it; the client carries it out.
 */

#include "libfl/strategy/policy.h"

/* Options of policies with `own`. */
struct fl_personal_own_options {
    double beta;
};

/* Options of policies with `adapts`. */
struct fl_personal_adapt_options {
    int64_t steps, epochs;
    enum { FL_ADAPT_TRAIN, FL_ADAPT_TEST } data;
};

struct fl_personal_ops {
    struct fl_policy policy;
    /*
     * The client keeps its own model between rounds and continues training from it. It uploads
     * parameters, not a displacement; a personalized model that the server computed for it
     * replaces its own. A client without an own model starts from the server's model.
     */
    bool own;
    /* Reports contain the accuracy of the trained model on the client's own test data. */
    bool trained;
    /*
     * An evaluation on a client first trains a copy of the model for a few steps and reports the
     * accuracy before and after. Options: steps, epochs (both 0: as in training), data.
     */
    bool adapts;
};

extern const struct fl_personal_ops fl_personal_none;
extern const struct fl_personal_ops fl_personal_trained;
extern const struct fl_personal_ops fl_personal_own;
extern const struct fl_personal_ops fl_personal_adapt;

#endif
