/*
 * personal: none, trained, own, adapt (docs/algorithms.md#personal-models)
 *
 * Which model is trained and evaluated; see personal.h. `own` starts from (1 - beta) anchor + beta
 * personalized model, where the anchor is the model that training started from when the client last
 * received one. State: `own` keeps two models on each client, its own and that anchor. Cost: an
 * evaluation on the local test data; `adapt` a few steps before it.
 */
#include "libfl/strategy/personalization/personal.h"

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
