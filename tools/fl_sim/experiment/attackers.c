/* Reads the section `attackers` of a point: how many clients are attackers, and what they do. Pure
   functions on a document, any thread. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

struct attackers {
    const char *share;
    int64_t clients;
    enum fl_attack_kind attack;
    double scale, z, epsilon;
    enum fl_attack_perturbation perturbation;
    bool share_given, clients_given, scale_given, z_given, epsilon_given, perturbation_given;
};

const struct fl_opt_spec fl__attackers_specs[] = {
    {FL_OPT(struct attackers, STRING, share), FL_OPT_GIVEN(struct attackers, share),
     .help = "Share of the clients that are attackers, as 20% or 0.2; rounded down"},
    {FL_OPT(struct attackers, INT, clients), FL_OPT_GIVEN(struct attackers, clients), .min = 0,
     .max = 2147483648.0, .help = "Their number, in place of the share"},
    {FL_OPT(struct attackers, ENUM, attack), .def = "sign_flip", .choices = fl_attack_names,
     .flags = FL_OPT_REQUIRED, .help = "What they do"},
    {FL_OPT(struct attackers, FLOAT, scale), FL_OPT_GIVEN(struct attackers, scale), .min = 0,
     .max = 1e9, .help = "Of attacks that scale; the default depends on the attack"},
    {FL_OPT(struct attackers, FLOAT, z), FL_OPT_GIVEN(struct attackers, z), .min = -1e6, .max = 1e6,
     .help = "Of `alie`: deviations from the mean; not set: by the paper's formula"},
    {FL_OPT(struct attackers, FLOAT, epsilon), FL_OPT_GIVEN(struct attackers, epsilon),
     .def = "0.1", .min = 0, .max = 1e6, .help = "Of `ipm`"},
    {FL_OPT(struct attackers, ENUM, perturbation), FL_OPT_GIVEN(struct attackers, perturbation),
     .def = "inverse_std", .choices = fl_attack_perturbation_names,
     .help = "Direction of `min_max`, `min_sum` and `tailored`"},
    FL_OPT_END_OF(struct attackers)};

/* "20%" or "0.2". */
static bool attackers_parse_share(const char *text, double *ret)
{
    char *end;

    if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-%")] != '\0') {
        return false;
    }
    *ret = strtod(text, &end);
    if (end[0] == '%') {
        *ret /= 100;
        end++;
    }
    return end[0] == '\0' && *ret >= 0 && *ret <= 1;
}

static int attackers_read_number(const struct attackers *a, const struct fl_conf_node *node,
                                 struct fl_experiment_attackers *ret, struct fl_err *err)
{
    if (a->share_given == a->clients_given) {
        return fl_conf_error(node, err, "expected either 'share' or 'clients'");
    }
    ret->share = -1;
    ret->clients = (size_t)a->clients;
    if (a->share_given && !attackers_parse_share(a->share, &ret->share)) {
        return fl_conf_error(fl_conf_get(node, "share"), err,
                             "expected a share of the clients from 0 to 1, such as 20%% or 0.2, "
                             "found '%.40s'",
                             a->share);
    }
    return FL_OK;
}

/* Refuses options that the attack does not use: a result must not seem to depend on them. */
static int attackers_check_options(const struct attackers *a, const struct fl_conf_node *node,
                                   struct fl_err *err)
{
    const struct {
        bool given;
        unsigned option;
        const char *key;
    } options[] = {{a->scale_given, FL_ATTACK_SCALE, "scale"},
                   {a->z_given, FL_ATTACK_Z, "z"},
                   {a->epsilon_given, FL_ATTACK_EPSILON, "epsilon"},
                   {a->perturbation_given, FL_ATTACK_PERTURBATION, "perturbation"}};
    size_t i;

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].given && (fl_attack_options(a->attack) & options[i].option) == 0) {
            return fl_conf_error(fl_conf_get(node, options[i].key), err,
                                 "the attack '%s' does not use this option",
                                 fl_attack_names[a->attack]);
        }
    }
    return FL_OK;
}

static int attackers_check_algorithm(const struct fl_experiment_point *p, enum fl_attack_kind kind,
                                     const struct fl_conf_node *node, struct fl_err *err)
{
    const unsigned updates = FL_ATTACK_ALTERS | FL_ATTACK_COLLUDES;

    if ((fl_attack_effects(kind) & updates) != 0 &&
        (fl_attack_effects(kind) & FL_ATTACK_MODELS) == 0 && p->server->strategy->personal->own)
    {
        return fl_conf_error(fl_conf_get(node, "attack"), err,
                             "'%s' changes updates, and the clients of this algorithm send models",
                             fl_attack_names[kind]);
    }
    return FL_OK;
}

int fl__attackers_read(struct fl_experiment_point *p, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(fl_conf_root(p->doc), "attackers");
    struct fl_options *options = NULL;
    const struct attackers *a;
    int rv;

    if (node == NULL) {
        return FL_OK;
    }
    rv = fl_options_create(fl__attackers_specs, &options);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_conf_apply(p->doc, node, "attackers", NULL, options, err);
    if (rv != FL_OK) {
        goto done;
    }
    a = fl_options_values(options);
    rv = attackers_read_number(a, node, &p->attackers, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = attackers_check_options(a, node, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = attackers_check_algorithm(p, a->attack, node, err);
    if (rv != FL_OK) {
        goto done;
    }
    p->attackers.node = node;
    p->attackers.attack =
        (struct fl_attack){.kind = a->attack,
                           .scale = a->scale_given ? a->scale : fl_attack_default_scale(a->attack),
                           .z = a->z_given ? a->z : (double)NAN,
                           .epsilon = a->epsilon,
                           .perturbation = a->perturbation,
                           .seed = (uint64_t)p->server->main->seed};
done:
    fl_options_free(options);
    return rv;
}
