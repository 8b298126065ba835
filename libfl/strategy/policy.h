#ifndef FL_STRATEGY_POLICY_H
#define FL_STRATEGY_POLICY_H

/*
 * Common part of all policies of all components. A policy is one const struct in one file: its
 * name, its option table and a few pure functions of (options, inputs, generator). Policies have
 * no globals, do no I/O and read no clock. Adding one changes its file, its test, the build
 * list, the registry line and the table in the documents.
 */

#include "libfl/base/rng.h"
#include "libfl/conf/options.h"
#include "libfl/model/layout.h"

/*
 * Flag of an option that bounds how a policy works and changes nothing of what it computes: it is
 * not part of the text of a component, so that a change of it is no other algorithm.
 */
#define FL_POLICY_BOUND FL_OPT_OWNERS

enum fl_component {
    FL_COMPONENT_SELECTION,
    FL_COMPONENT_FRACTION,
    FL_COMPONENT_SOLVER,
    FL_COMPONENT_UPLOAD,
    FL_COMPONENT_CODEC,
    FL_COMPONENT_AGGREGATE,
    FL_COMPONENT_PERSONAL,
    FL_COMPONENT_BROADCAST,
    FL_COMPONENT_SPACE,
    FL_COMPONENT_ROBUST,
    FL_COMPONENT_COUNT
};

struct fl_policy {
    const char *name;   /* in the configuration and on the wire */
    const char *help;   /* one line: its purpose */
    const char *source; /* paper and equation, or "ours" */
    const struct fl_opt_spec *options;
    /* Check of several options together ("start is above end"): FL_ECONF. NULL: none. */
    int (*check)(const struct fl_options *o, struct fl_err *err);
};

/* "selection", "fraction", … */
const char *fl_component_name(enum fl_component component);

#endif
