/*
 * Derives the units of a file without "fl.layout" from the names of its tensors up to the last
 * dot; a batch-norm joins the layer that it follows, so that a unit is a meaningful part to
 * upload separately in FedLDF (docs/models.md#units-of-a-file).
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/model/st_norms.h"
#include "libfl/model/st_parse.h"

static int compare_text(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = strncmp(a, b, n_a < n_b ? n_a : n_b);

    return order != 0 ? order : n_a < n_b ? -1 : n_a > n_b ? 1 : 0;
}

static int st_unit_by_name(const void *a, const void *b)
{
    const struct fl__st_place *x = a;
    const struct fl__st_place *y = b;
    int order = compare_text(x->unit, x->len, y->unit, y->len);

    return order != 0 ? order : x->index < y->index ? -1 : 1;
}

static int st_unit_by_first(const void *a, const void *b)
{
    const struct fl__st_place *x = a;
    const struct fl__st_place *y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/*
 * Sort entries in data order with those of one unit together: a writer that sorts by name writes
 * "a.bias", "a.sub.weight", "a.weight" in this order.
 */
static void group_units(struct fl__st_place *list, size_t n)
{
    size_t i;

    qsort(list, n, sizeof(*list), st_unit_by_name);
    for (i = 0; i < n; i++) {
        bool same = i > 0 &&
                    compare_text(list[i].unit, list[i].len, list[i - 1].unit, list[i - 1].len) == 0;

        list[i].first = same ? list[i - 1].first : list[i].index;
    }
    qsort(list, n, sizeof(*list), st_unit_by_first);
}

int fl_st_layout_by_names(const struct fl_st_file *file, struct fl_layout **ret, struct fl_err *err)
{
    struct fl__st_place *list = calloc(file->n_entries + 1, sizeof(*list));
    struct fl_layout *layout = NULL;
    size_t n = 0;
    size_t i;
    char unit[FL_NAME_MAX];
    int rv;

    if (list == NULL || fl_layout_create(&layout) != FL_OK) {
        free(list);
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i < file->n_entries; i++) {
        const struct fl_st_entry *e = &file->entries[i];

        if (e->dtype != FL_ST_SKIPPED) {
            list[n] = (struct fl__st_place){
                .entry = e, .unit = e->name, .len = fl__st_module_len(e->name), .index = n};
            n++;
        }
    }
    rv = fl__st_join_norms(list, n);
    if (rv != FL_OK) {
        goto done;
    }
    group_units(list, n);
    for (i = 0; i < n; i++) {
        const struct fl_st_entry *e = list[i].entry;

        if (list[i].len >= sizeof(unit)) {
            rv = fl_err_set(err, FL_EFORMAT, "the name '%.64s…' is too long", e->name);
            goto done;
        }
        (void)memcpy(unit, list[i].unit, list[i].len);
        unit[list[i].len] = '\0';
        rv = fl_layout_add(layout, unit, e->name, e->dims, e->n_dims, fl__st_is_buffer(e->name),
                           err);
        if (rv != FL_OK) {
            rv = rv == FL_EINVAL ? FL_EFORMAT : rv;
            goto done;
        }
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        rv = FL_EFORMAT;
        goto done;
    }
    *ret = layout;
    layout = NULL;
done:
    free(list);
    fl_layout_free(layout);
    return rv;
}
