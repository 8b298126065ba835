/*
 * Reads `algorithm:` and `strategy:` of a configuration file into a strategy
 * (fl_strategy_load()).
 */
#include "libfl/conf/yaml.h"
#include "libfl/strategy/strategy.h"
#include <string.h>

static int load_slot(const struct fl_conf_doc *doc, const struct fl_conf_node *node,
                     enum fl_slot slot, struct fl_strategy *strategy, struct fl_err *err)
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
        rv = fl_strategy_set(strategy, slot, fl_conf_text(name), &why);
        if (rv != FL_OK) {
            return rv == FL_ECONF ? fl_conf_error(name, err, "%s", why.msg)
                                  : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
        }
    }
    if (fl_conf_kind(node) == FL_CONF_MAP) {
        rv = fl_conf_apply(doc, node, NULL, others, strategy->options[slot], err);
    }
    return rv;
}

static int load_slots(const struct fl_conf_doc *doc, const struct fl_conf_node *node,
                      struct fl_strategy *strategy, struct fl_err *err)
{
    const char *names[FL_SLOT_COUNT + 1];
    size_t slot;
    int rv;

    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, err, "expected a map from components to policies");
    }
    for (slot = 0; slot < FL_SLOT_COUNT; slot++) {
        names[slot] = fl_slot_name((enum fl_slot)slot);
    }
    names[FL_SLOT_COUNT] = NULL;
    rv = fl_conf_only(node, names, err);
    for (slot = 0; rv == FL_OK && slot < FL_SLOT_COUNT; slot++) {
        const struct fl_conf_node *entry = fl_conf_get(node, names[slot]);

        if (entry != NULL) {
            rv = load_slot(doc, entry, (enum fl_slot)slot, strategy, err);
        }
    }
    return rv;
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
        rv = load_slots(doc, strategy, s, err);
    }
    if (rv == FL_OK) {
        rv = fl_strategy_check(s, &why);
        if (rv != FL_OK) {
            rv = blame != NULL ? fl_conf_error(blame, err, "%s", why.msg)
                               : fl_err_set(err, rv, "%s", why.msg);
        }
    }
    if (rv == FL_OK && algorithm == NULL && strategy != NULL) {
        rv = fl_str_copy(s->algorithm, sizeof(s->algorithm), "custom");
    }
    if (rv != FL_OK) {
        fl_strategy_free(s);
        return rv;
    }
    *ret = s;
    return FL_OK;
}
