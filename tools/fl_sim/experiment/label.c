/* What is different about a point, in a few words, and as the name of a folder. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

/* The keys of all points, and how they are called in labels. */
struct names {
    const char *path[FL__SWEEP_KEYS];
    const char *shorter[FL__SWEEP_KEYS];
    size_t n;
};

static size_t find(const struct names *names, const char *path)
{
    size_t i = 0;

    while (i < names->n && names->path[i] != path && strcmp(names->path[i], path) != 0) {
        i++;
    }
    return i;
}

/* Does `path` end with the keys of `end`? */
static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path);
    size_t m = strlen(end);

    return n >= m && strcmp(path + n - m, end) == 0 && (n == m || path[n - m - 1] == '.');
}

/* The fewest last keys of the i-th path that no other path ends with. */
static const char *shortest(const struct names *names, size_t i)
{
    const char *path = names->path[i];
    const char *end = path + strlen(path);
    size_t k = 0;

    while (end > path && k < names->n) {
        do {
            end--;
        } while (end > path && end[-1] != '.');
        for (k = 0; k < names->n && (k == i || !ends_with(names->path[k], end)); k++) {
        }
    }
    return end;
}

static int collect(const struct fl_experiment *e, struct names *names, struct fl_err *err)
{
    size_t i;
    size_t k;

    for (i = 0; i < e->n_points; i++) {
        for (k = 0; k < e->points[i].n; k++) {
            const char *path = e->points[i].settings[k].path;

            if (find(names, path) < names->n) {
                continue;
            }
            if (names->n == FL__SWEEP_KEYS) {
                return fl_conf_error(e->points[i].node, err, "more than %d keys are swept",
                                     FL__SWEEP_KEYS);
            }
            names->path[names->n++] = path;
        }
    }
    for (i = 0; i < names->n; i++) {
        names->shorter[i] = shortest(names, i);
    }
    return FL_OK;
}

/* --- texts that end where their room does --- */

struct text {
    char *out;
    size_t size, n;
};

static void add(struct text *t, const char *more)
{
    for (; *more != '\0' && t->n + 1 < t->size; more++) {
        t->out[t->n++] = *more;
    }
    t->out[t->n] = '\0';
}

static void add_value(struct text *t, const struct fl_conf_node *value)
{
    bool map = fl_conf_kind(value) == FL_CONF_MAP;
    size_t i;

    if (fl_conf_kind(value) == FL_CONF_SCALAR) {
        add(t, fl_conf_text(value));
        return;
    }
    add(t, map ? "{" : "[");
    for (i = 0; i < fl_conf_size(value) && t->n + 1 < t->size; i++) {
        add(t, i > 0 ? "," : "");
        add(t, map ? fl_conf_key(value, i) : "");
        add(t, map ? ":" : "");
        add_value(t, fl_conf_at(value, i));
    }
    add(t, map ? "}" : "]");
}

static void make_label(struct fl__point *p, const struct names *names)
{
    struct text t = {p->label, sizeof(p->label), 0};
    size_t k;

    add(&t, p->n == 0 ? "base" : "");
    for (k = 0; k < p->n; k++) {
        add(&t, k > 0 ? " " : "");
        add(&t, names->shorter[find(names, p->settings[k].path)]);
        add(&t, "=");
        add_value(&t, p->settings[k].value);
    }
    (void)fl_str_clean(p->label); /* It may end within a character. */
}

/* The number first: labels may be alike in the characters that a folder's name takes. */
static void make_slug(struct fl_experiment *e, size_t i)
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

static int by_label(const void *a, const void *b)
{
    const struct fl__point *x = *(struct fl__point *const *)a;
    const struct fl__point *y = *(struct fl__point *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : (x > y) - (x < y);
}

/* Two rows of a table with one label would be one. */
int fl__label_check(const struct fl_experiment *e, struct fl_err *err)
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
    qsort(sorted, e->n_points, sizeof(struct fl__point *), by_label);
    for (i = 1; rv == FL_OK && i < e->n_points; i++) {
        if (strcmp(sorted[i]->label, sorted[i - 1]->label) == 0) {
            rv = fl_conf_error(sorted[i]->node, err,
                               "points %zu and %zu are both called '%.100s': labels, in a list of "
                               "points, tell them apart",
                               (size_t)(sorted[i - 1] - e->points) + 1,
                               (size_t)(sorted[i] - e->points) + 1, sorted[i]->label);
        }
    }
    free(sorted);
    return rv;
}

int fl__label_points(struct fl_experiment *e, struct fl_err *err)
{
    struct names names = {.n = 0};
    size_t i;
    int rv = collect(e, &names, err);

    for (i = 0; rv == FL_OK && i < e->n_points; i++) {
        if (e->points[i].label[0] == '\0') {
            make_label(&e->points[i], &names);
        }
        make_slug(e, i);
    }
    return rv;
}
