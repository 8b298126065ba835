/*
 * Reads `algorithm:` and `strategy:` of a configuration file into a strategy
 * (fl_strategy_load()).
 */
#include <string.h>

#include "libfl/conf/yaml.h"
#include "libfl/strategy/registry.h"

static bool policy_has(const struct fl_policy *policy, const char *option)
{
    const struct fl_opt_spec *spec = policy->options;

    while (spec->name != NULL && strcmp(spec->name, option) != 0) {
        spec++;
    }
    return spec->name != NULL;
}

/* Options without a policy are those of the preset's: says which one has an option that it lacks.
 */
static int load_check_owner(const struct fl_conf_node *map, enum fl_component component,
                            const struct fl_strategy *strategy, struct fl_err *err)
{
    const struct fl_policy *own = fl__strategy_policy(strategy, component);
    const struct fl_policy *const *p;
    size_t i;

    for (i = 0; i < fl_conf_size(map); i++) {
        const char *key = fl_conf_key(map, i);

        for (p = fl_strategy_policies(component); !policy_has(own, key) && *p != NULL; p++) {
            if (policy_has(*p, key)) {
                return fl_conf_error(fl_conf_at(map, i), err,
                                     "policy '%s' has no such option, '%s' has: add 'policy: %s'",
                                     own->name, (*p)->name, (*p)->name);
            }
        }
    }
    return FL_OK;
}

static int load_component(const struct fl_conf_doc *doc, const struct fl_conf_node *node,
                          enum fl_component component, struct fl_strategy *strategy,
                          struct fl_err *err)
{
    static const char *const others[] = {"policy", NULL};
    const struct fl_conf_node *name = node;
    struct fl_err why = {0};
    int rv = FL_OK;

    if (fl_conf_kind(node) == FL_CONF_SEQ) {
        return fl_conf_error(
            node, err,
            "expected the name of a policy or a map {policy: NAME, option: value}, "
            "found a list");
    }
    if (fl_conf_kind(node) == FL_CONF_MAP) {
        name = fl_conf_get(node, "policy");
    }
    if (name != NULL) {
        if (fl_conf_text(name) == NULL) {
            return fl_conf_error(name, err, "expected the name of a policy");
        }
        rv = fl_strategy_set(strategy, component, fl_conf_text(name), &why);
        if (rv != FL_OK) {
            return rv == FL_ECONF ? fl_conf_error(name, err, "%s", why.msg)
                                  : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
        }
    }
    if (fl_conf_kind(node) == FL_CONF_MAP) {
        rv = name == NULL ? load_check_owner(node, component, strategy, err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_conf_apply(doc, node, NULL, others, strategy->options[component], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__strategy_check_options(strategy, component, &why);
    return rv == FL_OK ? FL_OK : fl_conf_error(node, err, "%s", why.msg);
}

int fl_strategy_load(const struct fl_conf_doc *doc, const struct fl_conf_node *algorithm,
                     const struct fl_conf_node *strategy, struct fl_strategy **ret,
                     struct fl_err *err)
{
    const struct fl_conf_node *blame = strategy != NULL ? strategy : algorithm;
    const char *preset = "fedavg";
    struct fl_strategy *s = NULL;
    struct fl_err why = {0};
    int rv;

    if (algorithm != NULL) {
        preset = fl_conf_text(algorithm);
        if (preset == NULL) {
            return fl_conf_error(algorithm, err, "expected the name of an algorithm");
        }
    }
    rv = fl_strategy_create(preset, &s, &why);
    if (rv != FL_OK) {
        return algorithm != NULL && rv == FL_ECONF
                   ? fl_conf_error(algorithm, err, "%s", why.msg)
                   : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
    }
    if (strategy != NULL) {
        const char *names[FL_COMPONENT_COUNT + 1];
        size_t component;

        if (fl_conf_kind(strategy) != FL_CONF_MAP) {
            rv = fl_conf_error(strategy, err, "expected a map from components to policies");
            goto fail;
        }
        for (component = 0; component < FL_COMPONENT_COUNT; component++) {
            names[component] = fl_component_name((enum fl_component)component);
        }
        names[FL_COMPONENT_COUNT] = NULL;
        rv = fl_conf_only(strategy, names, err);
        if (rv != FL_OK) {
            goto fail;
        }
        for (component = 0; component < FL_COMPONENT_COUNT; component++) {
            const struct fl_conf_node *entry = fl_conf_get(strategy, names[component]);

            if (entry != NULL) {
                rv = load_component(doc, entry, (enum fl_component)component, s, err);
                if (rv != FL_OK) {
                    goto fail;
                }
            }
        }
    }
    rv = fl_strategy_check(s, &why);
    if (rv != FL_OK) {
        rv = blame != NULL ? fl_conf_error(blame, err, "%s", why.msg)
                           : fl_err_set(err, rv, "%s", why.msg);
        goto fail;
    }
    if (algorithm == NULL && strategy != NULL) {
        rv = fl_str_copy(s->algorithm, sizeof(s->algorithm), "custom");
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = s;
    return FL_OK;
fail:
    fl_strategy_free(s);
    return rv;
}
