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

struct fl__preset {
    struct fl__filling list[FL_SLOT_COUNT + 1]; /* ended by policy NULL */
    char name[FL_NAME_MAX];                     /* texts that the list may point to */
    const char *fraction;
};
/*
 * The fillings of a preset, or of several joined with '+', maybe with a fraction behind.
 * FL_ECONF with the nearest known name, or with what does not go together. `*ret` must stay
 * where it is.
 */
FL_MUST_CHECK int fl__preset_find(const char *name, struct fl__preset *ret, struct fl_err *err);

#endif
