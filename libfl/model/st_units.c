#include <stdlib.h>
#include <string.h>

#include "libfl/model/st_parse.h"

static bool is_buffer(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot != NULL ? dot + 1 : name;

    return strcmp(last, "running_mean") == 0 || strcmp(last, "running_var") == 0;
}

/* Length of the part of a tensor's name that is its unit's: up to the last dot, or all. */
static size_t unit_len(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL ? (size_t)(dot - name) : strlen(name);
}

/* Where a unit comes first in the file, so that entries can be sorted by unit. */
struct by_unit {
    const struct fl_st_entry *entry;
    size_t first; /* index of the unit's first entry */
    size_t index;
};

static int by_unit_name(const void *a, const void *b)
{
    const struct by_unit *x = a;
    const struct by_unit *y = b;
    size_t nx = unit_len(x->entry->name);
    size_t ny = unit_len(y->entry->name);
    int order = strncmp(x->entry->name, y->entry->name, nx < ny ? nx : ny);

    if (order != 0 || nx != ny) {
        return order != 0 ? order : nx < ny ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
    const struct by_unit *x = a;
    const struct by_unit *y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/*
 * Entries in data order, but with those of one unit together: a writer that sorts by name
 * puts "a.bias", "a.sub.weight", "a.weight" in this order.
 */
static void group_units(struct by_unit *list, size_t n)
{
    size_t i;

    qsort(list, n, sizeof(*list), by_unit_name);
    for (i = 0; i < n; i++) {
        bool same = i > 0 && unit_len(list[i].entry->name) == unit_len(list[i - 1].entry->name) &&
                    strncmp(list[i].entry->name, list[i - 1].entry->name,
                            unit_len(list[i].entry->name)) == 0;

        list[i].first = same ? list[i - 1].first : list[i].index;
    }
    qsort(list, n, sizeof(*list), by_first);
}

static int add_entries(const struct by_unit *list, size_t n, struct fl_layout *layout,
                       struct fl_err *err)
{
    char unit[FL_NAME_MAX];
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        const struct fl_st_entry *e = list[i].entry;
        size_t len = unit_len(e->name);

        if (len >= sizeof(unit)) {
            return fl_err_set(err, FL_EFORMAT, "the name '%.64s…' is too long", e->name);
        }
        (void)memcpy(unit, e->name, len);
        unit[len] = '\0';
        rv = fl_layout_add(layout, unit, e->name, e->dims, e->n_dims, is_buffer(e->name), err);
        if (rv != FL_OK) {
            return rv == FL_EINVAL ? FL_EFORMAT : rv;
        }
    }
    return fl_layout_finish(layout, err) == FL_OK ? FL_OK : FL_EFORMAT;
}

int fl_st_layout_by_names(const struct fl_st_file *file, struct fl_layout **ret, struct fl_err *err)
{
    struct by_unit *list = calloc(file->n_entries + 1, sizeof(*list));
    struct fl_layout *layout = NULL;
    size_t n = 0;
    size_t i;
    int rv;

    if (list == NULL || fl_layout_create(&layout) != FL_OK) {
        free(list);
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i < file->n_entries; i++) {
        if (file->entries[i].dtype != FL_ST_SKIPPED) {
            list[n] = (struct by_unit){.entry = &file->entries[i], .index = n};
            n++;
        }
    }
    group_units(list, n);
    rv = add_entries(list, n, layout, err);
    free(list);
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    *ret = layout;
    return FL_OK;
}
