#ifndef FL_BASE_MATCH_H
#define FL_BASE_MATCH_H

/* Which names and labels are meant: patterns of names, and conditions on labels. Pure. */

#include <stdbool.h>
#include <stddef.h>

/* A label, or an option of a component. */
struct fl_pair {
    char *key;
    char *value;
};

/* True when `text` has a star or a question mark. */
bool fl_name_is_pattern(const char *text);
/* True when `name` matches `pattern`: * stands for any characters, ? for one. */
bool fl_name_matches(const char *pattern, const char *name);

/* The value of `key`; NULL: there is none. Of a key that stands twice, the first. */
const char *fl_pairs_find(const struct fl_pair *pairs, size_t n, const char *key);
/* True when a condition on `key` is fulfilled by `value`, which may be NULL. */
bool fl_labels_value(const struct fl_pair *wanted, size_t n, const char *key, const char *value);
/*
 * True when the labels `has` fulfil all conditions `wanted`: conditions with the same key are
 * alternatives, and each key has to be fulfilled. No conditions: true.
 */
bool fl_labels_match(const struct fl_pair *wanted, size_t n_wanted, const struct fl_pair *has,
                     size_t n_has);

#endif
