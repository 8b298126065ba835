#ifndef FL_CONF_DIFFER_H
#define FL_CONF_DIFFER_H

/* What was changed in a configuration file between two readings. */

#include <stddef.h>

#include "libfl/conf/yaml.h"

/*
 * The keys that two mappings do not give alike, as "rounds, limits.idle": of the root and, in
 * sections, of those. `except` (NULL-terminated): keys and whole sections that are left out. Values
 * are not told, they may be secret. Cut with "..." when they do not fit; size > 8. Returns how many
 * there are.
 */
size_t fl_conf_differ(const struct fl_conf_node *before, const struct fl_conf_node *now,
                      const char *const *except, char *out, size_t size);

#endif
