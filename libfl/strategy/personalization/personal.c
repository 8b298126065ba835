/*
 * personal: none, trained, own, adapt, ditto (docs/algorithms.md#personal-models)
 *
 * Which model is trained and evaluated; see personal.h. `own` starts from (1 - beta) anchor + beta
 * personalized model, where the anchor is the model that training started from when the client last
 * received one. `ditto` (Li et al. 2021, Algorithm 1) trains v of the client beside theta,
 *
 *     v <- v - learning_rate (g(v) + lambda (v - theta^t))
 *
 * with the batches of the global training. State: `own` keeps two models on each client, its own
 * and that anchor, `ditto` v. Cost: an evaluation on the local test data; `adapt` a few steps
 * before it, `ditto` a second training.
 */
#include "libfl/strategy/personalization/personal.h"

#include <stdio.h>

#include "libfl/strategy/strategy.h"

const struct fl_personal_ops fl_personal_none = {
    .policy =
        {
            .name = "none",
            .help = "one model for all clients",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
};

const struct fl_personal_ops fl_personal_trained = {
    .policy =
        {
            .name = "trained",
            .help = "each client also evaluates the model that its training produced",
            .source = "pFedMe",
            .options = fl_opt_none,
        },
    .trained = true,
};

static const struct fl_opt_spec own_options[] = {
    {FL_OPT(struct fl_personal_own_options, FLOAT, beta), .def = "1", .min = 0, .max = 1,
     .help = "Share of the received personalized model in the model that training starts from; the "
             "rest is the one received before it."},
    FL_OPT_END_OF(struct fl_personal_own_options),
};

const struct fl_personal_ops fl_personal_own = {
    .policy =
        {
            .name = "own",
            .help = "each client keeps its own model, which the server may average with others",
            .source = "FedMCSA",
            .options = own_options,
        },
    .own = true,
    .trained = true,
};

static const char *const data_parts[] = {
    [FL_ADAPT_TRAIN] = "train", [FL_ADAPT_TEST] = "test", NULL};
static const struct fl_opt_spec adapt_options[] = {
    {FL_OPT(struct fl_personal_adapt_options, INT, steps), .def = "0", .min = 0, .max = 1e6,
     .help = "Steps on the client's data before its evaluation; 0: see epochs."},
    {FL_OPT(struct fl_personal_adapt_options, INT, epochs), .def = "0", .min = 0, .max = 1000,
     .help = "Epochs over the client's data when steps is 0; both 0: as in training."},
    {FL_OPT(struct fl_personal_adapt_options, ENUM, data), .def = "train", .choices = data_parts,
     .help = "Data of the steps; 'test' reproduces published code that trains on test data, which "
             "leaks it."},
    FL_OPT_END_OF(struct fl_personal_adapt_options),
};

const struct fl_personal_ops fl_personal_adapt = {
    .policy =
        {
            .name = "adapt",
            .help = "before an evaluation each client fine-tunes a copy of the model on its data",
            .source = "FedAvg + fine-tuning; Per-FedAvg",
            .options = adapt_options,
        },
    .adapts = true,
};

static const struct fl_opt_spec ditto_options[] = {
    {FL_OPT(struct fl_personal_beside_options, FLOAT, lambda), .def = "1", .min = 0, .max = 1e6,
     .help = "Strength of the proximal term of the personal model towards the received one; 0: it "
             "is trained locally."},
    FL_OPT_END_OF(struct fl_personal_beside_options),
};

const struct fl_personal_ops fl_personal_ditto = {
    .policy =
        {
            .name = "ditto",
            .help = "each client trains a personal model beside the global one, pulled to it",
            .source = "Ditto, Algorithm 1",
            .options = ditto_options,
        },
    .beside = true,
    .trained = true,
};

int fl_personal_beside_steps(const struct fl_personal_ops *ops, const struct fl_options *o,
                             struct fl_options **ret, struct fl_err *err)
{
    const struct fl_personal_beside_options *v;
    const struct fl_policy *prox = NULL;
    struct fl_component_option mu = {.name = "mu"};
    char lambda[32];

    *ret = NULL;
    if (ops == NULL || !ops->beside) {
        return FL_OK;
    }
    v = fl_options_values(o);
    (void)snprintf(lambda, sizeof(lambda), "%.17g", v->lambda);
    mu.value = lambda;
    return fl_component_by_name(FL_COMPONENT_SOLVER, fl_solver_prox.policy.name, &mu, 1, &prox, ret,
                                err);
}
