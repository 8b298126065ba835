/*
 * Named algorithms (presets), one row each: the policies of the components in which it differs
 * from FedAvg, which has uniform, constant 1, sgd, full, float32, mean, none.
 *
 * Names can be joined with '+': their components are combined, and two names that set one
 * component to different policies are refused, except that the fraction of an earlier name wins
 * (AdaFL's growing fraction with FedLDF's uploads). "-0.1" at the end is that constant fraction
 * of the clients, as papers write it (FedAvg-0.1).
 *
 * Pure look-ups; whether components fit together is checked in strategy_check.c.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/registry.h"

/* clang-format off */
#define ATTENTION  {.component = FL_COMPONENT_SELECTION, .policy = "attention"}
#define STEPPED    {.component = FL_COMPONENT_FRACTION, .policy = "stepped"}
#define CONSTANT(text) {.component = FL_COMPONENT_FRACTION, .policy = "constant", \
                        .options = {{"fraction", (text)}}}
#define UPLOAD(name)    {.component = FL_COMPONENT_UPLOAD, .policy = (name)}
#define SOLVER(name)    {.component = FL_COMPONENT_SOLVER, .policy = (name)}
#define AGGREGATE(name) {.component = FL_COMPONENT_AGGREGATE, .policy = (name)}
#define PERSONAL(name)  {.component = FL_COMPONENT_PERSONAL, .policy = (name)}
#define EQUAL_MEAN      {.component = FL_COMPONENT_AGGREGATE, .policy = "mean", \
                         .options = {{"weights", "equal"}}}
#define IGFL_S(which)   {.component = FL_COMPONENT_AGGREGATE, .policy = "igfl_s", \
                         .options = {{"attention", (which)}}}
/* FedMCSA's proximal term: "moving" as in its code, "fixed" as in its text (eq. 9). */
#define PULL(which)     {.component = FL_COMPONENT_SOLVER, .policy = "prox", \
                         .options = {{"mu", "5"}, {"anchor", (which)}}}
/* All clients train, a fifth of them uploads: S = 20 of N = 100, as on Synthetic. */
#define ALL_TRAIN       CONSTANT("1"), {.component = FL_COMPONENT_UPLOAD, .policy = "hdfl", \
                                        .options = {{"share", "0.2"}}}
#define END             {.policy = NULL}
#define FILL(...)       (const struct fl__filling[]){__VA_ARGS__, END}
#define FILL_NOTHING    (const struct fl__filling[]){END}

/*
 * FedLDF: K = 20 of N = 50 clients. Dyn. FedAvg: every 300 rounds (docs/algorithms.md#fractions).
 * "lean" (docs/algorithms.md#the-preset-lean) selects uniformly: with its uploads, attention had no measurable
 * effect, and without attention the server keeps no state but the model. Its fraction grows every
 * 20 rounds, as in the measurements; AdaFL's 200 is for other networks.
 */
static const struct fl_preset presets[] = {
    {"fedavg", "mean of full updates of uniformly drawn clients", "FedAvg",
     FILL_NOTHING},
    {"fedprox", "fedavg with a proximal term towards the received model", "FedProx",
     FILL(SOLVER("prox"))},
    {"fedavgm", "fedavg with momentum on the server", "FedAvgM",
     FILL(AGGREGATE("momentum"))},
    {"fedadam", "fedavg with Adam on the server", "FedAdam",
     FILL(AGGREGATE("fedadam"))},
    {"fedyogi", "fedavg with Yogi on the server", "FedYogi",
     FILL(AGGREGATE("fedyogi"))},
    {"fedadagrad", "fedavg with Adagrad on the server", "FedAdagrad",
     FILL(AGGREGATE("fedadagrad"))},
    {"fednova", "fedavg with each update divided by its local steps", "FedNova",
     FILL(AGGREGATE("fednova"))},
    {"scaffold", "control variates correct the client drift of local steps", "SCAFFOLD",
     FILL(SOLVER("scaffold"))},
    {"feddyn", "a dynamic regularizer corrects the client drift of local steps", "FedDyn",
     FILL(SOLVER("feddyn"))},
    {"fedmix", "mix-up with means of other clients' data (clients send data summaries)",
     "FedMix",
     FILL(SOLVER("fedmix"))},
    {"naivemix", "fedmix without its Taylor term (clients send data summaries)", "FedMix's control",
     FILL(SOLVER("naivemix"))},
    {"adafl", "clients selected by attention, a growing number of them", "AdaFL",
     FILL(ATTENTION, STEPPED)},
    {"attn", "clients selected by attention, a constant fraction of them", "AdaFL's ablation",
     FILL(ATTENTION)},
    {"dyn_fedavg", "fedavg with a growing fraction", "AdaFL's ablation",
     FILL({.component = FL_COMPONENT_FRACTION, .policy = "stepped", .options = {{"every", "300"}}})},
    {"fedldf", "each layer uploaded only by the clients where it changed most", "FedLDF",
     FILL(CONSTANT("0.4"), UPLOAD("ldf"))},
    {"random_layer", "each layer uploaded by randomly drawn clients", "FedLDF's baseline",
     FILL(CONSTANT("0.4"), UPLOAD("random_layer"))},
    {"hdfl", "some randomly drawn clients send their update, the others nothing",
     "FedLDF's baseline",
     FILL(CONSTANT("0.4"), UPLOAD("hdfl"))},
    {"fedadp", "each client sends the neurons that changed most", "FedLDF's baseline",
     FILL(CONSTANT("0.4"), UPLOAD("fedadp"))},
    {"igfl_c", "local steps use the last displacements of client and server", "IGFL",
     FILL(SOLVER("igfl_c"), EQUAL_MEAN)},
    {"igfl_s", "updates weighted by attention between them", "IGFL",
     FILL(IGFL_S("global"))},
    {"igfl", "igfl_c and igfl_s with global attention", "IGFL",
     FILL(SOLVER("igfl_c"), IGFL_S("global"))},
    {"igfl_sa", "igfl with self attention", "IGFL",
     FILL(SOLVER("igfl_c"), IGFL_S("self"))},
    {"igfl_ta", "igfl with time attention", "IGFL",
     FILL(SOLVER("igfl_c"), IGFL_S("time"))},
    {"fedmcsa", "personalized models, averaged by attention between their components", "FedMCSA",
     FILL(ALL_TRAIN, PULL("moving"), AGGREGATE("mcsa"), PERSONAL("own"))},
    {"fedmcsa_fixed", "fedmcsa with the proximal term towards the received model, as in the paper's text",
     "FedMCSA",
     FILL(ALL_TRAIN, PULL("fixed"), {.component = FL_COMPONENT_AGGREGATE, .policy = "mcsa",
           .options = {{"component", "unit"}, {"size_weight", "no"}}},
           PERSONAL("own"))},
    {"fedmcsa_mean", "fedmcsa's training with one mean model for all", "FedMCSA's ablation",
     FILL(ALL_TRAIN, PULL("moving"), PERSONAL("trained"))},
    {"fedavg+mcsa", "fedmcsa without proximal term", "FedMCSA's ablation",
     FILL(ALL_TRAIN, AGGREGATE("mcsa"), PERSONAL("own"))},
    {"pfedme+mcsa", "pfedme's training with fedmcsa's aggregation", "FedMCSA's ablation",
     FILL(ALL_TRAIN, SOLVER("pfedme"), AGGREGATE("mcsa"), PERSONAL("own"))},
    {"pfedme", "personalized models with a proximal term towards a global model", "pFedMe",
     FILL(ALL_TRAIN, SOLVER("pfedme"), PERSONAL("trained"))},
    {"per_fedavg", "a global model that one local step personalizes", "Per-FedAvg",
     FILL(SOLVER("per_fedavg"), {.component = FL_COMPONENT_PERSONAL, .policy = "adapt",
           .options = {{"steps", "1"}}})},
    {"heur_fedamp", "personalized models, averaged by attention between whole models", "HeurFedAMP",
     FILL(ALL_TRAIN, PULL("fixed"), AGGREGATE("heur_fedamp"), PERSONAL("own"))},
    {"fedamp", "personalized models, averaged by their distances", "FedAMP",
     FILL(ALL_TRAIN, PULL("fixed"), AGGREGATE("fedamp"), PERSONAL("own"))},
    {"ditto", "a personal model trained beside fedavg's, with a proximal term towards it", "Ditto",
     FILL(PERSONAL("ditto"))},
    {"fedper", "the last layer stays on each client, trained with the others", "FedPer",
     FILL(PERSONAL("head"))},
    {"fedrep", "the last layer stays on each client, trained before the others", "FedRep",
     FILL({.component = FL_COMPONENT_PERSONAL, .policy = "head", .options = {{"epochs", "10"}}})},
    {"local_only", "every client trains locally, without uploads", "control",
     FILL(UPLOAD("none"), PERSONAL("own"))},
    {"fedavg+ft", "fedavg, evaluated after each client fine-tuned it", "control",
     FILL(PERSONAL("adapt"))},
    {"stc", "sparse ternary coding in both directions", "STC",
     FILL({.component = FL_COMPONENT_CODEC, .policy = "ternary",
           .options = {{"share", "0.01"}, {"residual", "yes"}}},
          {.component = FL_COMPONENT_BROADCAST, .policy = "ternary", .options = {{"share", "0.01"}}})},
    {"topk", "a hundredth of each update's entries with their values, the others later", "top-k",
     FILL({.component = FL_COMPONENT_CODEC, .policy = "topk",
           .options = {{"share", "0.01"}, {"residual", "yes"}}})},
    {"qsgd", "updates rounded at random to levels of their norm", "QSGD",
     FILL({.component = FL_COMPONENT_CODEC, .policy = "qsgd"})},
    {"lean", "fewest bytes: growing fraction, layer-wise uploads, ternary coding, lattice downloads",
     "FedLDF with AdaFL's schedule; ours",
     FILL({.component = FL_COMPONENT_FRACTION, .policy = "stepped", .options = {{"every", "20"}}},
           {.component = FL_COMPONENT_UPLOAD, .policy = "ldf", .options = {{"share", "0.2"}}},
           {.component = FL_COMPONENT_CODEC, .policy = "ternary", .options = {{"share", "0.05"}}},
          {.component = FL_COMPONENT_BROADCAST, .policy = "lattice"})},
    /* Combinations of the presets above */
    {"adafl+fedldf", "attention and growing fraction with layer-wise uploads", "AdaFL and FedLDF", NULL},
    {"adafl+fedprox", "adafl with a proximal term towards the received model", "AdaFL, FedProx", NULL},
    {"adafl+scaffold", "adafl with control variates", "AdaFL, SCAFFOLD", NULL},
    {"adafl+fedmix", "adafl with mix-up (clients send data summaries)", "AdaFL, FedMix", NULL},
    {"adafl+fedavgm", "adafl with momentum on the server", "AdaFL, FedAvgM", NULL},
    {"adafl+fedadam", "adafl with Adam on the server", "AdaFL, FedAdam", NULL},
    {"adafl+igfl_s", "adafl with attention between updates", "AdaFL, IGFL", NULL},
    {"fedldf+fedprox", "fedldf with a proximal term towards the received model", "FedLDF, FedProx", NULL},
    {"fedldf+scaffold", "fedldf with control variates", "FedLDF, SCAFFOLD", NULL},
    {"fedldf+fedavgm", "fedldf with momentum on the server", "FedLDF, FedAvgM", NULL},
    {"fedldf+fedadam", "fedldf with Adam on the server", "FedLDF, FedAdam", NULL},
    {"fedldf+igfl_c", "fedldf with local steps that use the last displacements", "FedLDF, IGFL", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct fl_preset *fl_strategy_presets(void)
{
    return presets;
}

static const struct fl__filling *preset_find_components(const char *name)
{
    const struct fl_preset *p = presets;

    while (p->name != NULL && strcmp(p->name, name) != 0) {
        p++;
    }
    return p->filling;
}

static int unknown_preset(const char *name, struct fl_err *err)
{
    const char *names[sizeof(presets) / sizeof(presets[0])];
    const char *nearest;
    size_t n;

    for (n = 0; presets[n].name != NULL; n++) {
        names[n] = presets[n].name;
    }
    nearest = fl_str_nearest(name, names, n);
    if (nearest != NULL) {
        return fl_err_set(err, FL_ECONF, "no algorithm '%.64s'; did you mean '%s'?", name, nearest);
    }
    return fl_err_set(err, FL_ECONF,
                      "no algorithm '%.64s': fl-serverd --help lists the %zu names; join names "
                      "with '+', append '-0.1' for the fraction of clients",
                      name, n);
}

static bool preset_same_component(const struct fl__filling *a, const struct fl__filling *b)
{
    size_t i;

    if (strcmp(a->policy, b->policy) != 0) {
        return false;
    }
    for (i = 0; a->options[i].name != NULL && b->options[i].name != NULL; i++) {
        if (strcmp(a->options[i].name, b->options[i].name) != 0 ||
            strcmp(a->options[i].value, b->options[i].value) != 0)
        {
            return false;
        }
    }
    return a->options[i].name == b->options[i].name;
}

/* Add the components of one name of a joined preset to `list`. */
static int preset_add_name(const char *part, struct fl__filling *list, size_t *n,
                           struct fl_err *err)
{
    const struct fl__filling *own = preset_find_components(part);
    size_t before = *n;

    if (own == NULL) {
        return unknown_preset(part, err);
    }
    for (; own->policy != NULL; own++) {
        size_t i = 0;

        while (i < before && list[i].component != own->component) {
            i++;
        }
        if (i == before) {
            list[(*n)++] = *own;
        } else if (own->component != FL_COMPONENT_FRACTION && !preset_same_component(&list[i], own))
        {
            return fl_err_set(err, FL_ECONF,
                              "'%.64s' needs %s '%s', but an earlier part of the name needs '%s': "
                              "an algorithm has one policy per component; remove one of the names",
                              part, fl_component_name(own->component), own->policy, list[i].policy);
        }
    }
    return FL_OK;
}

/* Cut "-0.1" off the end of `name` and return "0.1"; NULL when there is none. */
static const char *cut_fraction(char *name)
{
    char *dash = strrchr(name, '-');
    char *end = NULL;
    double value;

    if (dash == NULL || dash == name || dash[1] < '0' || dash[1] > '1') {
        return NULL;
    }
    value = strtod(dash + 1, &end);
    if (*end != '\0' || !(value > 0) || value > 1) {
        return NULL;
    }
    *dash = '\0';
    return dash + 1;
}

static int set_fraction(struct fl__preset *ret, struct fl_err *err)
{
    struct fl__filling *f = ret->list;

    while (f->policy != NULL && f->component != FL_COMPONENT_FRACTION) {
        f++;
    }
    if (f->policy != NULL && strcmp(f->policy, "constant") != 0) {
        return fl_err_set(err, FL_ECONF,
                          "the fraction of '%.64s' grows, so '-%s' is not allowed; set "
                          "strategy.fraction",
                          ret->name, ret->fraction);
    }
    *f = (struct fl__filling){.component = FL_COMPONENT_FRACTION,
                              .policy = "constant",
                              .options = {{"fraction", ret->fraction}}};
    return FL_OK;
}

int fl__preset_find(const char *name, struct fl__preset *ret, struct fl_err *err)
{
    char parts[FL_NAME_MAX];
    char *part = parts;
    size_t n = 0;
    int rv;

    *ret = (struct fl__preset){.fraction = NULL};
    rv = fl_str_copy(ret->name, sizeof(ret->name), name);
    if (rv != FL_OK) {
        return unknown_preset(name, err);
    }
    ret->fraction = cut_fraction(ret->name);
    if (preset_find_components(ret->name) != NULL) {
        rv = preset_add_name(ret->name, ret->list, &n, err);
        if (rv != FL_OK) {
            return rv;
        }
        part = NULL;
    }
    (void)memcpy(parts, ret->name, sizeof(parts));
    while (part != NULL) {
        char *plus = strchr(part, '+');

        if (plus != NULL) {
            *plus = '\0';
        }
        /* A name without '+' is looked up with its fraction, for the nearest name in the message.
         */
        rv = preset_add_name(part == parts && plus == NULL ? name : part, ret->list, &n, err);
        if (rv != FL_OK) {
            return rv;
        }
        part = plus != NULL ? plus + 1 : NULL;
    }
    return ret->fraction != NULL ? set_fraction(ret, err) : FL_OK;
}
