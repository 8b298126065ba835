#ifndef FL_CONF_DIFFER_H
#define FL_CONF_DIFFER_H

/* The difference between two readings of a configuration file. */

#include <stddef.h>

#include "libfl/conf/yaml.h"

/*
 * The keys whose values differ between two mappings, as "rounds, limits.idle": of the root and of
 * its sections. `except` (NULL-terminated): keys and whole sections to ignore. Values are not
 * included, they may be secret. Truncated with "..." when they do not fit; size > 8. Returns the
 * number of keys.
 */
size_t fl_conf_differ(const struct fl_conf_node *before, const struct fl_conf_node *now,
                      const char *const *except, char *out, size_t size);

#endif
