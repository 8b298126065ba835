/* Reads one property of clients: a value, a distribution over the clients, or a column of a table.
   One thread, while the network and device model is loaded; dist.c draws from the result. */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define PATH_SIZE 4096

/* --- tables --- */

/* Each file is read once. */
int fl__open_table(struct fl__loader *l, const struct fl_conf_node *node,
                   const struct fl__table **ret)
{
    const char *name = fl_conf_text(node);
    struct fl__table *t = l->world->tables;
    char path[PATH_SIZE];
    struct fl_err why = {0};
    struct fl_buf buf;
    int rv;

    if (name == NULL || name[0] == '\0') {
        return fl_conf_error(node, l->err, "expected the name of a file");
    }
    if (name[0] == '/' || l->ask->dir == NULL) {
        rv = fl_str_copy(path, sizeof(path), name);
    } else {
        rv = fl_fs_join(path, sizeof(path), l->ask->dir, name);
    }
    if (rv != FL_OK) {
        return fl_conf_error(node, l->err, "the path is too long");
    }
    while (t != NULL && strcmp(t->path, path) != 0) {
        t = t->next;
    }
    if (t == NULL) {
        rv = fl_fs_read(path, FL__TABLE_MAX, &buf, &why);
        if (rv != FL_OK) {
            (void)fl_conf_error(node, l->err, "%s", fl_err_text(&why, rv));
            return rv;
        }
        rv = fl__table_parse(path, buf.data, buf.len, &t, l->err);
        fl_buf_done(&buf);
        if (rv != FL_OK) {
            return rv;
        }
        t->next = l->world->tables;
        l->world->tables = t;
    }
    *ret = t;
    return FL_OK;
}

/* `assign:` in_order or drawn; drawn is the default. */
int fl__read_assign(struct fl__loader *l, const struct fl_conf_node *map, bool *ret)
{
    const struct fl_conf_node *node = fl_conf_get(map, "assign");
    const char *text = node != NULL ? fl_conf_text(node) : "drawn";

    if (text == NULL || (strcmp(text, "drawn") != 0 && strcmp(text, "in_order") != 0)) {
        return fl_conf_error(node, l->err, "expected drawn or in_order");
    }
    *ret = strcmp(text, "in_order") == 0;
    return FL_OK;
}

static int prop_read_column(struct fl__loader *l, const struct fl__prop_spec *prop,
                            const struct fl_conf_node *map, struct fl__dist *dist)
{
    static const char *const keys[] = {"table", "column", "assign", NULL};
    const struct fl_conf_node *column = fl_conf_get(map, "column");
    const char *name = column != NULL ? fl_conf_text(column) : NULL;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (name == NULL) {
        return fl_conf_error(map, l->err, "expected the name of a column beside the table");
    }
    rv = fl__open_table(l, fl_conf_get(map, "table"), &dist->table);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__read_assign(l, map, &dist->in_order);
    if (rv != FL_OK) {
        return rv;
    }
    dist->kind = FL__COLUMN;
    dist->column = fl__table_column(dist->table, name);
    if (dist->column == dist->table->n_columns) {
        return fl_conf_error(column, l->err, "there is no column '%s' in '%s'", name,
                             dist->table->path);
    }
    if (dist->table->columns[dist->column].kind != prop->unit) {
        return fl_conf_error(column, l->err, "the unit of column '%s' does not fit: expected %s",
                             name, fl__unit_words(prop->unit));
    }
    if (prop->unit == FL__RATE && strncmp(name, prop->key, strlen(prop->key)) != 0) {
        return fl_conf_error(column, l->err, "column '%s' is a rate of the other direction", name);
    }
    if (dist->in_order && dist->table->n_rows < l->ask->n) {
        return fl_conf_error(
            map, l->err,
            "'%s' has %zu rows, too few for %llu clients in order (`assign: drawn` "
            "gives each a row by chance)",
            dist->table->path, dist->table->n_rows, (unsigned long long)l->ask->n);
    }
    return FL_OK;
}

/* --- distributions --- */

int fl__read_quantity(struct fl__loader *l, enum fl__unit_kind unit,
                      const struct fl_conf_node *node, double *ret)
{
    const char *text = fl_conf_text(node);
    struct fl_err why = {0};

    if (text == NULL) {
        return fl_conf_error(node, l->err, "expected %s", fl__unit_words(unit));
    }
    if (fl__quantity(unit, text, ret, &why) != FL_OK) {
        return fl_conf_error(node, l->err, "%s", why.msg);
    }
    return FL_OK;
}

static int prop_read_uniform(struct fl__loader *l, const struct fl__prop_spec *prop,
                             const struct fl_conf_node *node, struct fl__dist *dist)
{
    int rv;

    if (fl_conf_kind(node) != FL_CONF_SEQ || fl_conf_size(node) != 2) {
        return fl_conf_error(node, l->err, "expected two values, [lowest, highest]");
    }
    dist->kind = FL__UNIFORM;
    rv = fl__read_quantity(l, prop->unit, fl_conf_at(node, 0), &dist->a);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__read_quantity(l, prop->unit, fl_conf_at(node, 1), &dist->b);
    if (rv != FL_OK) {
        return rv;
    }
    if (dist->b < dist->a) {
        return fl_conf_error(node, l->err, "the lowest is above the highest");
    }
    return FL_OK;
}

static int prop_read_lognormal(struct fl__loader *l, const struct fl__prop_spec *prop,
                               const struct fl_conf_node *node, struct fl__dist *dist)
{
    static const char *const keys[] = {"median", "sigma", NULL};
    const struct fl_conf_node *median = fl_conf_get(node, "median");
    const struct fl_conf_node *sigma = fl_conf_get(node, "sigma");
    int rv = fl_conf_only(node, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (median == NULL || sigma == NULL) {
        return fl_conf_error(node, l->err, "expected {median: …, sigma: …}");
    }
    dist->kind = FL__LOGNORMAL;
    rv = fl__read_quantity(l, prop->unit, median, &dist->a);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__read_quantity(l, FL__NUMBER, sigma, &dist->b);
    if (rv != FL_OK) {
        return rv;
    }
    if (dist->b > 10) {
        return fl_conf_error(sigma, l->err, "expected a number, 0 to 10 (sigma of the logarithm)");
    }
    return FL_OK;
}

static int prop_read_choice(struct fl__loader *l, const struct fl__prop_spec *prop,
                            const struct fl_conf_node *map, struct fl__dist *dist)
{
    static const char *const keys[] = {"choice", "weights", NULL};
    const struct fl_conf_node *values = fl_conf_get(map, "choice");
    const struct fl_conf_node *weights = fl_conf_get(map, "weights");
    double sum = 0;
    size_t i;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_conf_kind(values) != FL_CONF_SEQ || fl_conf_size(values) == 0) {
        return fl_conf_error(values, l->err, "expected a list of values");
    }
    if (weights != NULL && fl_conf_size(weights) != fl_conf_size(values)) {
        return fl_conf_error(weights, l->err, "expected one weight for each value");
    }
    dist->kind = FL__CHOICE;
    dist->n = fl_conf_size(values);
    dist->values = calloc(dist->n, sizeof(*dist->values));
    dist->until = calloc(dist->n, sizeof(*dist->until));
    if (dist->values == NULL || dist->until == NULL) {
        return fl_err_set(l->err, FL_ENOMEM, "out of memory for a network and device model");
    }
    for (i = 0; i < dist->n; i++) {
        double weight = 1;

        rv = fl__read_quantity(l, prop->unit, fl_conf_at(values, i), &dist->values[i]);
        if (rv != FL_OK) {
            return rv;
        }
        if (weights != NULL) {
            rv = fl__read_quantity(l, FL__NUMBER, fl_conf_at(weights, i), &weight);
            if (rv != FL_OK) {
                return rv;
            }
        }
        sum += weight;
        dist->until[i] = sum;
    }
    if (sum <= 0) {
        return fl_conf_error(weights, l->err, "all weights are zero");
    }
    return FL_OK;
}

static int prop_read_map(struct fl__loader *l, const struct fl__prop_spec *prop,
                         const struct fl_conf_node *map, struct fl__dist *dist)
{
    static const char *const keys[] = {"uniform", "lognormal", "exponential", "choice", "weights",
                                       "table",   "column",    "assign",      NULL};
    const struct fl_conf_node *node;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_conf_get(map, "choice") != NULL) {
        return prop_read_choice(l, prop, map, dist);
    }
    if (fl_conf_get(map, "table") != NULL) {
        return prop_read_column(l, prop, map, dist);
    }
    if (fl_conf_size(map) != 1) {
        return fl_conf_error(map, l->err,
                             "expected one of uniform, lognormal, exponential, choice "
                             "and table");
    }
    node = fl_conf_get(map, "uniform");
    if (node != NULL) {
        return prop_read_uniform(l, prop, node, dist);
    }
    node = fl_conf_get(map, "lognormal");
    if (node != NULL) {
        return prop_read_lognormal(l, prop, node, dist);
    }
    node = fl_conf_get(map, "exponential");
    if (node == NULL) {
        return fl_conf_error(map, l->err,
                             "expected one of uniform, lognormal, exponential, choice "
                             "and table");
    }
    dist->kind = FL__EXPONENTIAL;
    return fl__read_quantity(l, prop->unit, node, &dist->a);
}

int fl__read_prop(struct fl__loader *l, const struct fl__prop_spec *prop,
                  const struct fl_conf_node *node, struct fl__dist *ret)
{
    const char *text = fl_conf_text(node);
    struct fl__dist dist = {.unit = prop->unit};
    int rv;

    if (text != NULL && prop->unlimited && strcmp(text, "unlimited") == 0) {
        rv = FL_OK;
    } else if (fl_conf_kind(node) == FL_CONF_MAP) {
        rv = prop_read_map(l, prop, node, &dist);
    } else {
        rv = fl__read_quantity(l, prop->unit, node, &dist.a);
    }
    if (rv != FL_OK) {
        fl__dist_done(&dist);
        return rv;
    }
    fl__dist_done(ret);
    *ret = dist;
    return FL_OK;
}
