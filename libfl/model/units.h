#ifndef FL_MODEL_UNITS_H
#define FL_MODEL_UNITS_H

/*
 * Units as their user says them, by patterns over the names of tensors (docs/networks.md).
 *
 * A pattern is "[NAME=]GLOB" over the whole name of a tensor: "*" stands for any text, "{}" for one
 * part of a name, which has no dot and is not empty. All that a pattern matches is one unit, or one
 * for each text that its "{}" stand for. NAME, in which "{}" are those texts in their order, is
 * what the unit is called; without it, the glob up to its first "*".
 *
 * Limits: FL_UNITS_MAX_PATTERNS, FL_PATTERN_MAX bytes each, and those of a layout.
 */

#include "libfl/model/layout.h"

#define FL_UNITS_MAX_PATTERNS 256
#define FL_PATTERN_MAX        256

/* Does the whole name match? For globs that make no units, where "{}" is as above. */
bool fl_pattern_matches(const char *glob, const char *name);
/*
 * `from` with other units: those of the patterns, of which the first that matches a tensor counts,
 * and of what none matches those that `from` has. Units lie in the order of their first tensors;
 * marks of local tensors are kept. FL_EINVAL: a pattern is none, matches nothing that is left for
 * it, or makes a unit that is there already; FL_ELIMIT: too many. `*ret_bad` is then the pattern at
 * fault, n: none of them alone. Free with fl_layout_free().
 */
FL_MUST_CHECK int fl_layout_regroup(const struct fl_layout *from, const char *const *patterns,
                                    size_t n, struct fl_layout **ret, size_t *ret_bad,
                                    struct fl_err *err);
/* Same tensors, by name, dimensions and buffer, in whatever units and order? */
bool fl_layout_same_tensors(const struct fl_layout *a, const struct fl_layout *b);
/* The units for people, a line each: name, tensors, parameters, and what of them is local. */
FL_MUST_CHECK int fl_layout_table(const struct fl_layout *layout, struct fl_buf *out);

#endif
