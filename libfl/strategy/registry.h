#ifndef FL_STRATEGY_REGISTRY_H
#define FL_STRATEGY_REGISTRY_H

/* Look-ups of policies and presets, private to libfl/strategy. */

#include "libfl/strategy/strategy.h"

/* Limit of the policies of one component. */
#define FL__POLICIES_MAX 64

/* Find a policy by name; FL_ECONF with the nearest known name, or all names. */
FL_MUST_CHECK int fl__policy_find(enum fl_component component, const char *name,
                                  const struct fl_policy **ret, struct fl_err *err);
/* The policy of a component. */
const struct fl_policy *fl__strategy_policy(const struct fl_strategy *strategy,
                                            enum fl_component component);
/* Check the options of a component by themselves: FL_ECONF with component and policy. */
FL_MUST_CHECK int fl__strategy_check_options(const struct fl_strategy *strategy,
                                             enum fl_component component, struct fl_err *err);
/* "no WHAT KIND'name'; known: …" */
int fl__unknown(struct fl_err *err, const char *what, const char *kind, const char *name,
                const char *const *names, size_t n);

/* How a preset differs from FedAvg: the policy of a component, and its options. */
struct fl__filling {
    enum fl_component component;
    const char *policy;
    struct fl_component_option options[4]; /* ended by a NULL name */
};

struct fl__preset {
    struct fl__filling list[FL_COMPONENT_COUNT + 1]; /* ended by policy NULL */
    char name[FL_NAME_MAX];                          /* texts that the list may point to */
    const char *fraction;
};
/*
 * The components of a preset, or of several joined with '+', with an optional fraction at the
 * end. FL_ECONF with the nearest known name, or with the components that conflict. `*ret` must
 * not be moved afterwards: the list points into it.
 */
FL_MUST_CHECK int fl__preset_find(const char *name, struct fl__preset *ret, struct fl_err *err);

#endif
