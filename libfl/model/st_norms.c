/*
 * Finds the layer that a batch-norm of a foreign safetensors file belongs to.
 *
 * A module is the set of tensors with the same name up to the last dot; a batch-norm is a module
 * with running statistics. In a file in program order, such as PyTorch's state dicts, a
 * batch-norm belongs to the nearest preceding module that is no batch-norm. The common
 * safetensors library sorts tensors by name instead: "bn1" precedes "conv1" then, and
 * "features.10" precedes "features.2". In such files names decide: "bn1" belongs to "conv1" in
 * the same container, and "features.10" to the nearest lower number in the same container with
 * the same number of channels. A batch-norm without a match is a unit of its own, which is
 * always valid.
 *
 * Pure functions on the caller's thread; grouping into units is in st_units.c.
 */
#include "libfl/model/st_norms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct module {
    const char *name; /* len bytes */
    size_t len, parent;
    size_t first;    /* index of its first tensor */
    size_t at, n;    /* its tensors in the list sorted by module */
    size_t channels; /* of a batch-norm; 0: no batch-norm */
};

bool fl__st_is_buffer(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot != NULL ? dot + 1 : name;

    return strcmp(last, "running_mean") == 0 || strcmp(last, "running_var") == 0;
}

size_t fl__st_module_len(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL ? (size_t)(dot - name) : strlen(name);
}

/* Compare names with numbers by value: "9" before "10". */
static int compare_natural(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t i = 0;
    size_t j = 0;

    while (i < n_a && j < n_b) {
        size_t from_i = i;
        size_t from_j = j;

        while (i < n_a && isdigit((unsigned char)a[i])) {
            i++;
        }
        while (j < n_b && isdigit((unsigned char)b[j])) {
            j++;
        }
        if (i > from_i && j > from_j && i - from_i != j - from_j) {
            return i - from_i < j - from_j ? -1 : 1;
        }
        if (i == from_i || j == from_j) {
            i = from_i + 1;
            j = from_j + 1;
        }
        if (memcmp(a + from_i, b + from_j, i - from_i) != 0) {
            return memcmp(a + from_i, b + from_j, i - from_i);
        }
    }
    return i < n_a ? 1 : j < n_b ? -1 : 0;
}

static int compare_parents(const struct module *x, const struct module *y)
{
    int order = memcmp(x->name, y->name, x->parent < y->parent ? x->parent : y->parent);

    return order != 0 ? order : x->parent < y->parent ? -1 : x->parent > y->parent;
}

/* Order by container, within a container by number. */
static int by_container(const void *a, const void *b)
{
    const struct module *x = a;
    const struct module *y = b;
    int order = compare_parents(x, y);

    if (order == 0) {
        order = compare_natural(x->name + x->parent, x->len - x->parent, y->name + y->parent,
                                y->len - y->parent);
    }
    return order != 0 ? order : x->first < y->first ? -1 : 1;
}

static int norm_by_first(const void *a, const void *b)
{
    return ((const struct module *)a)->first < ((const struct module *)b)->first ? -1 : 1;
}

static int by_module(const void *a, const void *b)
{
    const struct fl__st_place *x = a;
    const struct fl__st_place *y = b;
    int order = strncmp(x->unit, y->unit, x->len < y->len ? x->len : y->len);

    if (order != 0 || x->len != y->len) {
        return order != 0 ? order : x->len < y->len ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* True for a file in the order of the common library: by type, then by name. */
static bool is_sorted(const struct fl__st_place *list, size_t n)
{
    size_t i;

    for (i = 1; i < n; i++) {
        if (list[i].entry->dtype == list[i - 1].entry->dtype &&
            strcmp(list[i].entry->name, list[i - 1].entry->name) < 0)
        {
            return false;
        }
    }
    return true;
}

static size_t find_modules(const struct fl__st_place *list, size_t n, struct module *out)
{
    size_t n_modules = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl__st_place *p = &list[i];
        struct module *m = n_modules > 0 ? &out[n_modules - 1] : NULL;

        if (m == NULL || m->len != p->len || memcmp(m->name, p->unit, p->len) != 0) {
            m = &out[n_modules++];
            *m = (struct module){.name = p->unit, .len = p->len, .first = p->index, .at = i};
            for (m->parent = m->len; m->parent > 0 && m->name[m->parent - 1] != '.'; m->parent--) {
            }
        }
        m->n++;
        m->channels = fl__st_is_buffer(p->entry->name) ? (size_t)p->entry->count : m->channels;
    }
    return n_modules;
}

/* True when a dimension of the layer equals the channels of the batch-norm. */
static bool norm_fits_layer(const struct fl__st_place *list, const struct module *layer,
                            const struct module *norm)
{
    size_t i;
    size_t d;

    for (i = layer->at; i < layer->at + layer->n; i++) {
        for (d = 0; d < list[i].entry->n_dims; d++) {
            if (list[i].entry->dims[d] == norm->channels) {
                return true;
            }
        }
    }
    return false;
}

/*
 * The trailing digits of the last component of the module's name; NULL when it consists of
 * digits only.
 */
static const char *norm_module_number(const struct module *m, size_t *ret_len)
{
    size_t at = m->len;

    while (at > m->parent && isdigit((unsigned char)m->name[at - 1])) {
        at--;
    }
    *ret_len = m->len - at;
    return at > m->parent ? m->name + at : NULL;
}

static bool same_number(const struct module *a, const struct module *b)
{
    size_t n_a;
    size_t n_b;
    const char *x = norm_module_number(a, &n_a);
    const char *y = norm_module_number(b, &n_b);

    return x != NULL && y != NULL && n_a == n_b && memcmp(x, y, n_a) == 0;
}

/*
 * The layer of a batch-norm in a file sorted by name; modules are sorted by_container(). NULL:
 * none.
 */
static const struct module *norm_layer_by_name(const struct fl__st_place *list,
                                               const struct module *modules, size_t n, size_t norm)
{
    const struct module *m = &modules[norm];
    size_t from = norm;
    size_t i;

    while (from > 0 && compare_parents(&modules[from - 1], m) == 0) {
        from--;
    }
    for (i = from; i < n && compare_parents(&modules[i], m) == 0; i++) {
        if (modules[i].channels == 0 && same_number(&modules[i], m) &&
            norm_fits_layer(list, &modules[i], m))
        {
            return &modules[i];
        }
    }
    for (i = norm; i-- > from;) {
        if (modules[i].channels == 0 && norm_fits_layer(list, &modules[i], m)) {
            return &modules[i];
        }
    }
    return NULL;
}

/*
 * The layer of a batch-norm in a file in program order; modules are sorted by norm_by_first().
 * NULL: none.
 */
static const struct module *norm_layer_before(const struct module *modules, size_t norm)
{
    size_t i = norm;

    while (i > 0 && modules[i - 1].channels > 0) {
        i--;
    }
    return i > 0 ? &modules[i - 1] : NULL;
}

int fl__st_join_norms(struct fl__st_place *list, size_t n)
{
    struct module *modules = calloc(n + 1, sizeof(*modules));
    bool sorted = is_sorted(list, n);
    size_t n_modules;
    size_t i;
    size_t t;

    if (modules == NULL) {
        return FL_ENOMEM;
    }
    qsort(list, n, sizeof(*list), by_module);
    n_modules = find_modules(list, n, modules);
    qsort(modules, n_modules, sizeof(*modules), sorted ? by_container : norm_by_first);
    for (i = 0; i < n_modules; i++) {
        const struct module *m = &modules[i];
        const struct module *layer = NULL;

        if (m->channels > 0) {
            layer = sorted ? norm_layer_by_name(list, modules, n_modules, i)
                           : norm_layer_before(modules, i);
        }
        for (t = m->at; layer != NULL && t < m->at + m->n; t++) {
            list[t].unit = layer->name;
            list[t].len = layer->len;
        }
    }
    free(modules);
    return FL_OK;
}
