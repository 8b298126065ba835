/*
 * Named algorithms: what each puts in which slot. Slots that a preset does not name hold
 * what FedAvg has: uniform, constant 1, sgd, full, float32, mean.
 */
#include <string.h>

#include "libfl/strategy/registry.h"

#define FILLINGS_MAX 6

static const struct fl_preset presets[] = {
    {"fedavg", "mean of full updates of uniformly drawn clients", "FedAvg; ALGORITHMS 4.1"},
    {"fedprox", "fedavg with a pull to the received model", "FedProx; ALGORITHMS 4.2"},
    {"fedavgm", "fedavg with momentum on the server", "FedAvgM; ALGORITHMS 4.4"},
    {"adafl", "attention draws the clients, their number grows", "AdaFL; ALGORITHMS 5"},
    {"fedldf", "each unit only from the clients where it moved most", "FedLDF; ALGORITHMS 6.1"},
    {"adafl+fedldf", "attention and growing fraction with layer-wise uploads",
     "AdaFL and FedLDF; ALGORITHMS 15.3.5"},
    {"random_layer", "each unit from clients drawn at random", "FedLDF's baseline; ALGORITHMS 6.2"},
    {NULL, NULL, NULL},
};

/* In the order of `presets`. FedLDF: K = 20 of N = 50 clients (ALGORITHMS 6.1). */
/* clang-format off */
static const struct fl__filling fillings[][FILLINGS_MAX] = {
    {{.policy = NULL}},
    {{.slot = FL_SLOT_SOLVER, .policy = "prox"}, {.policy = NULL}},
    {{.slot = FL_SLOT_AGGREGATE, .policy = "momentum"}, {.policy = NULL}},
    {{.slot = FL_SLOT_SELECTION, .policy = "attention"},
     {.slot = FL_SLOT_FRACTION, .policy = "stepped"}, {.policy = NULL}},
    {{.slot = FL_SLOT_FRACTION, .policy = "constant", .options = {{"fraction", "0.4"}}},
     {.slot = FL_SLOT_UPLOAD, .policy = "ldf"}, {.policy = NULL}},
    {{.slot = FL_SLOT_SELECTION, .policy = "attention"},
     {.slot = FL_SLOT_FRACTION, .policy = "stepped"},
     {.slot = FL_SLOT_UPLOAD, .policy = "ldf"}, {.policy = NULL}},
    {{.slot = FL_SLOT_FRACTION, .policy = "constant", .options = {{"fraction", "0.4"}}},
     {.slot = FL_SLOT_UPLOAD, .policy = "random_layer"}, {.policy = NULL}},
};
/* clang-format on */

_Static_assert(sizeof(fillings) / sizeof(fillings[0]) + 1 == sizeof(presets) / sizeof(presets[0]),
               "one row of fillings for each preset");

const struct fl_preset *fl_strategy_presets(void)
{
    return presets;
}

int fl__preset_find(const char *name, const struct fl__filling **ret, struct fl_err *err)
{
    const char *names[FL__POLICIES_MAX];
    const char *nearest;
    size_t n = 0;

    for (; presets[n].name != NULL; n++) {
        if (strcmp(presets[n].name, name) == 0) {
            *ret = fillings[n];
            return FL_OK;
        }
        names[n] = presets[n].name;
    }
    nearest = fl_str_nearest(name, names, n);
    if (nearest != NULL) {
        return fl_err_set(err, FL_ECONF, "no algorithm '%.64s'; did you mean '%s'?", name, nearest);
    }
    return fl__unknown(err, "algorithm", "", name, names, n);
}
