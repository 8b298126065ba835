#include "libfl/base/match.h"

#include <string.h>

bool fl_name_is_pattern(const char *text)
{
    return strpbrk(text, "*?") != NULL;
}

bool fl_name_matches(const char *pattern, const char *name)
{
    const char *star = NULL;
    /* where in `name` the characters of the last star end in the current attempt */
    const char *from = NULL;

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

const char *fl_pairs_find(const struct fl_pair *pairs, size_t n, const char *key)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (strcmp(pairs[i].key, key) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

bool fl_labels_value(const struct fl_pair *wanted, size_t n, const char *key, const char *value)
{
    size_t i;

    for (i = 0; value != NULL && i < n; i++) {
        if (strcmp(wanted[i].key, key) == 0 && strcmp(wanted[i].value, value) == 0) {
            return true;
        }
    }
    return false;
}

bool fl_labels_match(const struct fl_pair *wanted, size_t n_wanted, const struct fl_pair *has,
                     size_t n_has)
{
    size_t i;

    for (i = 0; i < n_wanted; i++) {
        const char *key = wanted[i].key;

        if (!fl_labels_value(wanted, n_wanted, key, fl_pairs_find(has, n_has, key))) {
            return false;
        }
    }
    return true;
}
