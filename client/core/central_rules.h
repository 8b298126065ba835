#ifndef FL_CLIENT_CORE_CENTRAL_RULES_H
#define FL_CLIENT_CORE_CENTRAL_RULES_H

/*
 * What a client makes of its central settings: labels, hours and limits that an operator set for it
 * on the server, of which it carries out those that its owner accepts (`accept`). Pure.
 */

#include "libfl/base/device_limits.h"
#include "libfl/base/hours.h"
#include "libfl/base/match.h"

#define FL_CENTRAL_RULE_TEXT 256

/* What the owner accepts. */
struct fl_central_accept {
    bool labels, schedule, limits;
};

/* The settings as they came; borrowed. */
struct fl_central_given {
    const struct fl_pair *labels;
    size_t n_labels;
    char *const *hours;
    size_t n_hours;
    const struct fl_pair *limits;
    size_t n_limits;
};

/* Limits of the labels of a Hello. */
struct fl_central_limits {
    size_t labels, bytes; /* bytes: keys and values, each with one more */
};

/* What is in force of them. */
struct fl_central_rules {
    bool labels;                         /* all of the given ones */
    struct fl_hours hours[FL_HOURS_MAX]; /* n_hours 0: at any time */
    size_t n_hours;
    bool limited; /* all of the given limits */
    struct fl_device_limits limits;
    char refused[FL_CENTRAL_RULE_TEXT]; /* what is not in force, and why; "": nothing */
};

/* `own` are the labels of the client's configuration. */
void fl_central_decide(const struct fl_central_given *given, const struct fl_central_accept *accept,
                       const struct fl_pair *own, size_t n_own,
                       const struct fl_central_limits *limits, struct fl_central_rules *ret);

/*
 * The client's own labels, in which the central ones replace those with the same key, and the other
 * central ones. `out` has room for n_own + n_central; returns their number. Borrowed texts.
 */
size_t fl_central_merge(const struct fl_pair *own, size_t n_own, const struct fl_pair *central,
                        size_t n_central, struct fl_pair *out);

#endif
