#ifndef FL_MODEL_UNITS_H
#define FL_MODEL_UNITS_H

/*
 * Units defined by the user with patterns over tensor names (docs/models.md).
 *
 * A pattern is "[NAME=]GLOB" over the whole name of a tensor: "*" matches any text, "{}" one
 * non-empty component of a name without dots. All matches of a pattern form one unit, or one for
 * each combination of texts that its "{}" match. NAME is the name of the unit, where "{}" are
 * replaced by these texts in order; without NAME the name is the glob up to its first "*".
 *
 * Limits: FL_UNITS_MAX_PATTERNS, FL_PATTERN_MAX bytes each, and those of a layout.
 */

#include "libfl/model/layout.h"

#define FL_UNITS_MAX_PATTERNS 256
#define FL_PATTERN_MAX        256

/* True when the whole name matches; for globs that do not define units. "{}" is as above. */
bool fl_pattern_matches(const char *glob, const char *name);
/*
 * Regroup `from` into other units: the first pattern that matches a tensor decides; tensors
 * without a match keep their units. Units are in the order of their first tensors; marks of
 * local tensors are kept. FL_EINVAL: an invalid pattern, a pattern without remaining matches, or
 * one that makes an existing unit; FL_ELIMIT: too many patterns. `*ret_bad` is then the index of
 * the pattern at fault; n: no single pattern. Free with fl_layout_free().
 */
FL_MUST_CHECK int fl_layout_regroup(const struct fl_layout *from, const char *const *patterns,
                                    size_t n, struct fl_layout **ret, size_t *ret_bad,
                                    struct fl_err *err);
/* True when both have the same tensors by name, dimensions and buffer, in any units and order. */
bool fl_layout_same_tensors(const struct fl_layout *a, const struct fl_layout *b);
/*
 * Append a table of the units, one line each: name, tensors, parameters, and how many of them
 * are local.
 */
FL_MUST_CHECK int fl_layout_table(const struct fl_layout *layout, struct fl_buf *out);

#endif
