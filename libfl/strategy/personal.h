#ifndef FL_STRATEGY_PERSONAL_H
#define FL_STRATEGY_PERSONAL_H

/*
 * Whose model a client trains and evaluates (docs/formulas.md#personal-models). A policy says
 * only what is to be done; the client does it.
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
     * The client keeps its own model between rounds and trains on from it; what it uploads are
     * parameters, not a displacement; a mixture that the server made for it replaces
     * it. The model of the server is where it starts when it has none.
     */
    bool own;
    /* Reports tell what the trained model is worth on the client's own test data. */
    bool trained;
    /*
     * An evaluation on a client trains a copy of the model for a few steps first and tells
     * what it is worth before and after. Options: steps, epochs (both 0: as the training), data.
     */
    bool adapts;
};

extern const struct fl_personal_ops fl_personal_none;
extern const struct fl_personal_ops fl_personal_trained;
extern const struct fl_personal_ops fl_personal_own;
extern const struct fl_personal_ops fl_personal_adapt;

#endif
