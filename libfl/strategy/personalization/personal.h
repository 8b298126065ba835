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

/* Options of policies with `beside`. */
struct fl_personal_beside_options {
    double lambda;
};

/* Options of policies with `head`. */
struct fl_personal_head_options {
    struct fl_opt_texts layers;
    int64_t last, epochs;
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
    /*
     * The client trains a personal model beside the global one: after the training whose update is
     * uploaded it repeats the steps from its personal model (in its first round from the received
     * model), with a proximal term towards the received model: solver 'prox' with mu = lambda. The
     * personal model is client state; the server does not receive it.
     */
    bool beside;
    /*
     * Some layers, the head, stay on the client: their tensors are local ones (fl_tensor.local).
     * With option epochs the head is trained alone first, then the other layers alone.
     */
    bool head;
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
extern const struct fl_personal_ops fl_personal_ditto;
extern const struct fl_personal_ops fl_personal_head;

/* The client keeps a model between rounds, its own or the one trained beside the global one. */
static inline bool fl_personal_keeps_model(const struct fl_personal_ops *ops)
{
    return ops->own || ops->beside;
}

/* Is the tensor part of the head? False for a policy without `head`, and for NULL. */
bool fl_personal_in_head(const struct fl_personal_ops *ops, const struct fl_options *o,
                         const struct fl_layout *layout, const struct fl_tensor *tensor);
/* Epochs that train the head alone; 0: it is trained with the body, or there is none. */
uint32_t fl_personal_head_epochs(const struct fl_personal_ops *ops, const struct fl_options *o);
/*
 * Check that the layout has the head, and a body beside it: FL_ECONF with the reason; `*ret_bad` is
 * then the index of the bad one of option layers, or SIZE_MAX.
 */
FL_MUST_CHECK int fl_personal_check_head(const struct fl_personal_ops *ops,
                                         const struct fl_options *o, const struct fl_layout *layout,
                                         size_t *ret_bad, struct fl_err *err);

/*
 * The options of solver 'prox' for the steps of a policy with `beside`; NULL for any other policy.
 * Returns owned. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_personal_beside_steps(const struct fl_personal_ops *ops,
                                           const struct fl_options *o, struct fl_options **ret,
                                           struct fl_err *err);

#endif
