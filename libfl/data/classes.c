/* Lists the classes without samples in data sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/dataset.h"

/* Append "a" or "a to b" to `out`; a range that does not fit ends the list with "...". */
static void classes_add_range(char *out, size_t size, size_t from, size_t to)
{
    size_t len = strlen(out);
    const char *comma = len > 0 ? ", " : "";
    char range[64];

    if (from == to) {
        (void)snprintf(range, sizeof(range), "%s%zu", comma, from);
    } else {
        (void)snprintf(range, sizeof(range), "%s%zu to %zu", comma, from, to);
    }
    if (len + strlen(range) + sizeof(", ...") <= size) {
        (void)snprintf(out + len, size - len, "%s", range);
    } else if (len >= 3 && len + sizeof(", ...") <= size && strcmp(out + len - 3, "...") != 0) {
        (void)snprintf(out + len, size - len, ", ...");
    }
}

int fl_dataset_missing(const struct fl_dataset *const *sets, size_t n, size_t classes, char *out,
                       size_t size, size_t *ret)
{
    bool *there;
    size_t k;
    size_t i;
    size_t missing = 0;
    size_t c = 0;

    for (k = 0; k < n; k++) {
        classes = sets[k] != NULL && sets[k]->classes > classes ? sets[k]->classes : classes;
    }
    there = calloc(classes + 1, sizeof(*there));
    if (there == NULL) {
        return FL_ENOMEM;
    }
    for (k = 0; k < n; k++) {
        for (i = 0; sets[k] != NULL && i < sets[k]->n; i++) {
            there[fl_dataset_label(sets[k], i)] = true;
        }
    }
    out[0] = '\0';
    while (c < classes) {
        size_t from = c;

        for (; c < classes && !there[c]; c++) {
        }
        if (c > from) {
            missing += c - from;
            classes_add_range(out, size, from, c - 1);
        }
        for (; c < classes && there[c]; c++) {
        }
    }
    *ret = missing;
    free(there);
    return FL_OK;
}
