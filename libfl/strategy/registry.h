#ifndef FL_STRATEGY_REGISTRY_H
#define FL_STRATEGY_REGISTRY_H

/* Look-ups inside this room. */

#include "libfl/strategy/strategy.h"

/* Policies of one slot, and presets: far above what there is. */
#define FL__POLICIES_MAX 64

/* FL_ECONF with the nearest known name, or all of them. */
FL_MUST_CHECK int fl__policy_find(enum fl_slot slot, const char *name, const struct fl_policy **ret,
                                  struct fl_err *err);
/* The policy in a slot. */
const struct fl_policy *fl__strategy_policy(const struct fl_strategy *strategy, enum fl_slot slot);
/* "no WHAT KIND'name'; known: …" */
int fl__unknown(struct fl_err *err, const char *what, const char *kind, const char *name,
                const char *const *names, size_t n);

/* How a preset differs from FedAvg: a policy in a slot, and options of it. */
struct fl__filling {
    enum fl_slot slot;
    const char *policy;
    struct fl_slot_option options[4]; /* ended by a NULL name */
};

/* Fillings of a preset, ended by policy NULL. FL_ECONF with the nearest known name. */
FL_MUST_CHECK int fl__preset_find(const char *name, const struct fl__filling **ret,
                                  struct fl_err *err);

#endif
