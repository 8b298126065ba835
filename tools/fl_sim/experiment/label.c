/* Labels of points and names of their folders: the values that differ between the points, with the
   shortest unique names of their keys. One thread, while the experiment is loaded. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

/* The keys of all points, and their names in labels. */
struct names {
    const char *path[FL__SWEEP_KEYS];
    const char *shorter[FL__SWEEP_KEYS];
    size_t n;
};

static size_t label_find_key(const struct names *names, const char *path)
{
    size_t i = 0;

    while (i < names->n && names->path[i] != path && strcmp(names->path[i], path) != 0) {
        i++;
    }
    return i;
}

/* Does `path` end with the keys of `end`? */
static bool label_ends_with(const char *path, const char *end)
{
    size_t n = strlen(path);
    size_t m = strlen(end);

    return n >= m && strcmp(path + n - m, end) == 0 && (n == m || path[n - m - 1] == '.');
}

/* The shortest suffix of keys of the i-th path that no other path has. */
static const char *label_shortest_name(const struct names *names, size_t i)
{
    const char *path = names->path[i];
    const char *end = path + strlen(path);
    size_t k = 0;

    while (end > path && k < names->n) {
        do {
            end--;
        } while (end > path && end[-1] != '.');
        for (k = 0; k < names->n && (k == i || !label_ends_with(names->path[k], end)); k++) {
        }
    }
    return end;
}

/* --- texts that are cut at the end of their buffer --- */

struct text {
    char *out;
    size_t size, n;
};

static void label_add(struct text *t, const char *more)
{
    for (; *more != '\0' && t->n + 1 < t->size; more++) {
        t->out[t->n++] = *more;
    }
    t->out[t->n] = '\0';
}

static void label_add_value(struct text *t, const struct fl_conf_node *value)
{
    bool map = fl_conf_kind(value) == FL_CONF_MAP;
    size_t i;

    if (fl_conf_kind(value) == FL_CONF_SCALAR) {
        label_add(t, fl_conf_text(value));
        return;
    }
    label_add(t, map ? "{" : "[");
    for (i = 0; i < fl_conf_size(value) && t->n + 1 < t->size; i++) {
        label_add(t, i > 0 ? "," : "");
        label_add(t, map ? fl_conf_key(value, i) : "");
        label_add(t, map ? ":" : "");
        label_add_value(t, fl_conf_at(value, i));
    }
    label_add(t, map ? "}" : "]");
}

static void label_make(struct fl__point *p, const struct names *names)
{
    struct text t = {p->label, sizeof(p->label), 0};
    size_t k;

    label_add(&t, p->n == 0 ? "base" : "");
    for (k = 0; k < p->n; k++) {
        label_add(&t, k > 0 ? " " : "");
        label_add(&t, names->shorter[label_find_key(names, p->settings[k].path)]);
        label_add(&t, "=");
        label_add_value(&t, p->settings[k].value);
    }
    (void)fl_str_clean(p->label); /* Cuts an incomplete UTF-8 character off the end. */
}

/* The number is first, as labels may be equal in the characters that a folder's name can have. */
static void label_make_slug(struct fl_experiment *e, size_t i)
{
    struct fl__point *p = &e->points[i];
    char digits[32];
    int width = snprintf(digits, sizeof(digits), "%zu", e->n_points);
    size_t n = 0;
    size_t k;

    if (e->n_points > 1) {
        n = (size_t)snprintf(p->slug, sizeof(p->slug), "%0*zu-", width, i + 1);
    }
    for (k = 0; p->label[k] != '\0' && n + 1 < sizeof(p->slug); k++) {
        char c = p->label[k];

        p->slug[n++] = c == ' '                                                       ? '_'
                       : isalnum((unsigned char)c) != 0 || strchr("._=+-", c) != NULL ? c
                                                                                      : '-';
    }
    p->slug[n] = '\0';
    if (p->slug[0] == '.') {
        p->slug[0] = '-';
    }
}

static int label_compare(const void *a, const void *b)
{
    const struct fl__point *x = *(struct fl__point *const *)a;
    const struct fl__point *y = *(struct fl__point *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : (x > y) - (x < y);
}

/* Two rows of a table with one label would be indistinguishable. */
int fl__label_check(struct fl_experiment *e, struct fl_err *err)
{
    struct fl__point **sorted = e->n_points > 0 ? calloc(e->n_points, sizeof(*sorted)) : NULL;
    size_t i;
    int rv = FL_OK;

    if (sorted == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < e->n_points; i++) {
        sorted[i] = &e->points[i];
    }
    qsort(sorted, e->n_points, sizeof(struct fl__point *), label_compare);
    for (i = 1; i < e->n_points; i++) {
        if (strcmp(sorted[i]->label, sorted[i - 1]->label) == 0) {
            rv = fl_conf_error(sorted[i]->node, err,
                               "points %zu and %zu have the same name '%.100s': give them "
                               "different labels in a list of "
                               "points",
                               (size_t)(sorted[i - 1] - e->points) + 1,
                               (size_t)(sorted[i] - e->points) + 1, sorted[i]->label);
            goto done;
        }
    }
done:
    free(sorted);
    return rv;
}

int fl__label_points(struct fl_experiment *e, struct fl_err *err)
{
    struct names names = {.n = 0};
    size_t i;
    size_t k;

    for (i = 0; i < e->n_points; i++) {
        for (k = 0; k < e->points[i].n; k++) {
            const char *path = e->points[i].settings[k].path;

            if (label_find_key(&names, path) < names.n) {
                continue;
            }
            if (names.n == FL__SWEEP_KEYS) {
                return fl_conf_error(e->points[i].node, err, "more than %d keys are swept",
                                     FL__SWEEP_KEYS);
            }
            names.path[names.n++] = path;
        }
    }
    for (i = 0; i < names.n; i++) {
        names.shorter[i] = label_shortest_name(&names, i);
    }
    for (i = 0; i < e->n_points; i++) {
        if (e->points[i].label[0] == '\0') {
            label_make(&e->points[i], &names);
        }
        label_make_slug(e, i);
    }
    return FL_OK;
}
