/*
 * Named algorithms: what each puts in which slot. Slots that a preset does not name hold
 * what FedAvg has: uniform, constant 1, sgd, full, float32, mean.
 */
#include <string.h>

#include "libfl/strategy/registry.h"

#define FILLINGS_MAX 6

static const struct fl_preset presets[] = {
    {"fedavg", "mean of full updates of uniformly drawn clients", "FedAvg"},
    {"fedprox", "fedavg with a pull to the received model", "FedProx"},
    {"fedavgm", "fedavg with momentum on the server", "FedAvgM"},
    {"adafl", "attention draws the clients, their number grows", "AdaFL"},
    {"fedldf", "each unit only from the clients where it moved most", "FedLDF"},
    {"adafl+fedldf", "attention and growing fraction with layer-wise uploads", "AdaFL and FedLDF"},
    {"random_layer", "each unit from clients drawn at random", "FedLDF's baseline"},
    {"hdfl", "some clients drawn at random send their update, the others nothing",
     "FedLDF's baseline"},
    {"fedadam", "fedavg with Adam on the server", "FedAdam"},
    {"adafl+fedprox", "adafl with a pull to the received model", "AdaFL, FedProx"},
    {"adafl+fedavgm", "adafl with momentum on the server", "AdaFL, FedAvgM"},
    {"adafl+fedadam", "adafl with Adam on the server", "AdaFL, FedAdam"},
    {"fedldf+fedprox", "fedldf with a pull to the received model", "FedLDF, FedProx"},
    {"fedldf+fedavgm", "fedldf with momentum on the server", "FedLDF, FedAvgM"},
    {"fedldf+fedadam", "fedldf with Adam on the server", "FedLDF, FedAdam"},
    {"lean", "fewest bytes up: growing fraction, layer-wise uploads, ternary coding",
     "FedLDF with AdaFL's schedule; ours"},
    {NULL, NULL, NULL},
};

/* FedLDF: K = 20 of N = 50 clients (ALGORITHMS 6.1). */
/* clang-format off */
#define ATTENTION   {.slot = FL_SLOT_SELECTION, .policy = "attention"}
#define STEPPED     {.slot = FL_SLOT_FRACTION, .policy = "stepped"}
#define FOUR_TENTHS {.slot = FL_SLOT_FRACTION, .policy = "constant", \
                     .options = {{"fraction", "0.4"}}}
#define UPLOAD(name)    {.slot = FL_SLOT_UPLOAD, .policy = (name)}
#define SOLVER(name)    {.slot = FL_SLOT_SOLVER, .policy = (name)}
#define AGGREGATE(name) {.slot = FL_SLOT_AGGREGATE, .policy = (name)}
#define END             {.policy = NULL}

/*
 * In the order of `presets`. "lean" draws uniformly: with its uploads, attention changed
 * nothing that could be measured, and without it the server keeps no state but the model.
 * Its fraction grows every 20 rounds, as measured; AdaFL's 200 are for other networks.
 */
static const struct fl__filling fillings[][FILLINGS_MAX] = {
    {END},
    {SOLVER("prox"), END},
    {AGGREGATE("momentum"), END},
    {ATTENTION, STEPPED, END},
    {FOUR_TENTHS, UPLOAD("ldf"), END},
    {ATTENTION, STEPPED, UPLOAD("ldf"), END},
    {FOUR_TENTHS, UPLOAD("random_layer"), END},
    {FOUR_TENTHS, UPLOAD("hdfl"), END},
    {AGGREGATE("fedadam"), END},
    {ATTENTION, STEPPED, SOLVER("prox"), END},
    {ATTENTION, STEPPED, AGGREGATE("momentum"), END},
    {ATTENTION, STEPPED, AGGREGATE("fedadam"), END},
    {FOUR_TENTHS, UPLOAD("ldf"), SOLVER("prox"), END},
    {FOUR_TENTHS, UPLOAD("ldf"), AGGREGATE("momentum"), END},
    {FOUR_TENTHS, UPLOAD("ldf"), AGGREGATE("fedadam"), END},
    {{.slot = FL_SLOT_FRACTION, .policy = "stepped", .options = {{"every", "20"}}},
     {.slot = FL_SLOT_UPLOAD, .policy = "ldf", .options = {{"share", "0.2"}}},
     {.slot = FL_SLOT_CODEC, .policy = "ternary", .options = {{"share", "0.05"}}}, END},
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
