/* From `world:` of an experiment to a world. */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define PATH_SIZE 4096
#define MAX_NAMED 16

struct loader {
    const struct fl_world_ask *ask;
    struct fl_world *world;
    struct fl_err *err;
};

/* The keys that a client is described by; `section` "" is the world itself. */
static const struct prop {
    const char *section, *key;
    enum fl__unit_kind unit;
    bool unlimited; /* the word is taken */
} props[FL__N_PROPS] = {
    [FL__UPLINK] = {"", "uplink", FL__RATE, true},
    [FL__DOWNLINK] = {"", "downlink", FL__RATE, true},
    [FL__LATENCY] = {"", "latency", FL__TIME, false},
    [FL__MEMORY] = {"", "memory", FL__SIZE, true},
    [FL__TRAIN_FIXED] = {"train", "fixed", FL__TIME, false},
    [FL__TRAIN_SPEED] = {"train", "samples_per_s", FL__SPEED, true},
    [FL__TRAIN_JITTER] = {"train", "jitter", FL__NUMBER, false},
    [FL__DROP_CHANCE] = {"drop", "chance", FL__SHARE, false},
    [FL__DROP_AT] = {"drop", "at", FL__SHARE, false},
    [FL__DROP_AWAY] = {"drop", "away", FL__TIME, false},
    [FL__UP_FROM] = {"availability", "from", FL__TIME, false},
    [FL__UP_FOR] = {"availability", "up_for", FL__TIME, false},
};

/* --- tables --- */

/* Each file is read once. */
static int open_table(struct loader *l, const struct fl_conf_node *node,
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
        return fl_conf_error(node, l->err, "too long a path");
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

/* `assign: in_order` or `drawn`, which is what it is when not given. */
static int read_assign(struct loader *l, const struct fl_conf_node *map, bool *ret)
{
    const struct fl_conf_node *node = fl_conf_get(map, "assign");
    const char *text = node != NULL ? fl_conf_text(node) : "drawn";

    if (text == NULL || (strcmp(text, "drawn") != 0 && strcmp(text, "in_order") != 0)) {
        return fl_conf_error(node, l->err, "expected drawn or in_order");
    }
    *ret = strcmp(text, "in_order") == 0;
    return FL_OK;
}

static int read_column(struct loader *l, const struct prop *prop, const struct fl_conf_node *map,
                       struct fl__dist *dist)
{
    static const char *const keys[] = {"table", "column", "assign", NULL};
    const struct fl_conf_node *column = fl_conf_get(map, "column");
    const char *name = column != NULL ? fl_conf_text(column) : NULL;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv == FL_OK && name == NULL) {
        return fl_conf_error(map, l->err, "expected the name of a column beside the table");
    }
    rv = rv == FL_OK ? open_table(l, fl_conf_get(map, "table"), &dist->table) : rv;
    rv = rv == FL_OK ? read_assign(l, map, &dist->in_order) : rv;
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
        return fl_conf_error(column, l->err, "column '%s' is of the other direction", name);
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

static int read_quantity(struct loader *l, enum fl__unit_kind unit, const struct fl_conf_node *node,
                         double *ret)
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

static int read_uniform(struct loader *l, const struct prop *prop, const struct fl_conf_node *node,
                        struct fl__dist *dist)
{
    int rv;

    if (fl_conf_kind(node) != FL_CONF_SEQ || fl_conf_size(node) != 2) {
        return fl_conf_error(node, l->err, "expected two values, [lowest, highest]");
    }
    dist->kind = FL__UNIFORM;
    rv = read_quantity(l, prop->unit, fl_conf_at(node, 0), &dist->a);
    rv = rv == FL_OK ? read_quantity(l, prop->unit, fl_conf_at(node, 1), &dist->b) : rv;
    if (rv == FL_OK && dist->b < dist->a) {
        rv = fl_conf_error(node, l->err, "the lowest is above the highest");
    }
    return rv;
}

static int read_lognormal(struct loader *l, const struct prop *prop,
                          const struct fl_conf_node *node, struct fl__dist *dist)
{
    static const char *const keys[] = {"median", "sigma", NULL};
    const struct fl_conf_node *median = fl_conf_get(node, "median");
    const struct fl_conf_node *sigma = fl_conf_get(node, "sigma");
    int rv = fl_conf_only(node, keys, l->err);

    if (rv == FL_OK && (median == NULL || sigma == NULL)) {
        return fl_conf_error(node, l->err, "expected {median: …, sigma: …}");
    }
    dist->kind = FL__LOGNORMAL;
    rv = rv == FL_OK ? read_quantity(l, prop->unit, median, &dist->a) : rv;
    rv = rv == FL_OK ? read_quantity(l, FL__NUMBER, sigma, &dist->b) : rv;
    if (rv == FL_OK && dist->b > 10) {
        rv = fl_conf_error(sigma, l->err, "expected a number, 0 to 10 (of the logarithm)");
    }
    return rv;
}

static int read_choice(struct loader *l, const struct prop *prop, const struct fl_conf_node *map,
                       struct fl__dist *dist)
{
    static const char *const keys[] = {"choice", "weights", NULL};
    const struct fl_conf_node *values = fl_conf_get(map, "choice");
    const struct fl_conf_node *weights = fl_conf_get(map, "weights");
    double sum = 0;
    size_t i;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv == FL_OK && (fl_conf_kind(values) != FL_CONF_SEQ || fl_conf_size(values) == 0)) {
        rv = fl_conf_error(values, l->err, "expected a list of values");
    }
    if (rv == FL_OK && weights != NULL && fl_conf_size(weights) != fl_conf_size(values)) {
        rv = fl_conf_error(weights, l->err, "expected one weight for each value");
    }
    if (rv != FL_OK) {
        return rv;
    }
    dist->kind = FL__CHOICE;
    dist->n = fl_conf_size(values);
    dist->values = calloc(dist->n, sizeof(*dist->values));
    dist->until = calloc(dist->n, sizeof(*dist->until));
    if (dist->values == NULL || dist->until == NULL) {
        return fl_err_set(l->err, FL_ENOMEM, "no memory for a world");
    }
    for (i = 0; rv == FL_OK && i < dist->n; i++) {
        double weight = 1;

        rv = read_quantity(l, prop->unit, fl_conf_at(values, i), &dist->values[i]);
        if (rv == FL_OK && weights != NULL) {
            rv = read_quantity(l, FL__NUMBER, fl_conf_at(weights, i), &weight);
        }
        sum += weight;
        dist->until[i] = sum;
    }
    if (rv == FL_OK && sum <= 0) {
        rv = fl_conf_error(weights, l->err, "all weights are zero");
    }
    return rv;
}

static int read_map(struct loader *l, const struct prop *prop, const struct fl_conf_node *map,
                    struct fl__dist *dist)
{
    static const char *const keys[] = {"uniform", "lognormal", "exponential", "choice", "weights",
                                       "table",   "column",    "assign",      NULL};
    const struct fl_conf_node *node;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_conf_get(map, "choice") != NULL) {
        return read_choice(l, prop, map, dist);
    }
    if (fl_conf_get(map, "table") != NULL) {
        return read_column(l, prop, map, dist);
    }
    if (fl_conf_size(map) != 1) {
        return fl_conf_error(map, l->err,
                             "expected one of uniform, lognormal, exponential, choice "
                             "and table");
    }
    node = fl_conf_get(map, "uniform");
    if (node != NULL) {
        return read_uniform(l, prop, node, dist);
    }
    node = fl_conf_get(map, "lognormal");
    if (node != NULL) {
        return read_lognormal(l, prop, node, dist);
    }
    node = fl_conf_get(map, "exponential");
    if (node == NULL) {
        return fl_conf_error(map, l->err,
                             "expected one of uniform, lognormal, exponential, choice "
                             "and table");
    }
    dist->kind = FL__EXPONENTIAL;
    return read_quantity(l, prop->unit, node, &dist->a);
}

static int read_prop(struct loader *l, size_t i, const struct fl_conf_node *node)
{
    const struct prop *prop = &props[i];
    const char *text = fl_conf_text(node);
    struct fl__dist dist = {.unit = prop->unit};
    int rv;

    if (text != NULL && prop->unlimited && strcmp(text, "unlimited") == 0) {
        rv = FL_OK;
    } else if (fl_conf_kind(node) == FL_CONF_MAP) {
        rv = read_map(l, prop, node, &dist);
    } else {
        rv = read_quantity(l, prop->unit, node, &dist.a);
    }
    if (rv != FL_OK) {
        fl__dist_done(&dist);
        return rv;
    }
    fl__dist_done(&l->world->props[i]);
    l->world->props[i] = dist;
    return FL_OK;
}

/* The keys of `map` that describe clients; `others` (NULL-terminated) are read elsewhere. */
static int read_props(struct loader *l, const char *section, const struct fl_conf_node *map,
                      const char *const *others)
{
    const char *known[FL__N_PROPS + 8];
    size_t n = 0;
    size_t i;
    int rv;

    for (i = 0; i < FL__N_PROPS; i++) {
        if (strcmp(props[i].section, section) == 0) {
            known[n++] = props[i].key;
        }
    }
    for (i = 0; others[i] != NULL; i++) {
        known[n++] = others[i];
    }
    known[n] = NULL;
    rv = fl_conf_only(map, known, l->err);
    for (i = 0; rv == FL_OK && i < FL__N_PROPS; i++) {
        const struct fl_conf_node *node = fl_conf_get(map, props[i].key);

        if (node != NULL && strcmp(props[i].section, section) == 0) {
            rv = read_prop(l, i, node);
        }
    }
    return rv;
}

/* --- sections --- */

static bool is_word(const struct fl_conf_node *node, const char *word)
{
    const char *text = fl_conf_text(node);

    return text != NULL && strcmp(text, word) == 0;
}

static int read_server(struct loader *l, const struct fl_conf_node *map)
{
    static const char *const keys[] = {"uplink", "downlink", NULL};
    double *const rates[] = {&l->world->server.up, &l->world->server.down};
    int rv = fl_conf_only(map, keys, l->err);
    size_t i;

    for (i = 0; rv == FL_OK && i < 2; i++) {
        const struct fl_conf_node *node = fl_conf_get(map, keys[i]);

        if (node != NULL && is_word(node, "unlimited")) {
            *rates[i] = 0;
        } else if (node != NULL) {
            rv = read_quantity(l, FL__RATE, node, rates[i]);
        }
    }
    return rv;
}

/* `{trace: FILE, repeat: yes, assign: drawn}` */
static int read_trace(struct loader *l, const struct fl_conf_node *map, bool rates,
                      struct fl__trace **ret)
{
    static const char *const keys[] = {"trace", "repeat", "assign", NULL};
    const struct fl_conf_node *repeat = fl_conf_get(map, "repeat");
    struct fl__trace_ask ask = {.rates = rates, .n = l->ask->n, .horizon_us = l->ask->horizon_us};
    const struct fl__table *table = NULL;
    struct fl__trace *trace = NULL;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv == FL_OK && fl_conf_get(map, "trace") == NULL) {
        return fl_conf_error(map, l->err, "expected a trace: {trace: FILE, repeat: yes}");
    }
    if (rv == FL_OK && repeat != NULL && !is_word(repeat, "yes") && !is_word(repeat, "no")) {
        rv = fl_conf_error(repeat, l->err, "expected yes or no");
    }
    ask.repeat = repeat != NULL && is_word(repeat, "yes");
    rv = rv == FL_OK ? read_assign(l, map, &ask.in_order) : rv;
    rv = rv == FL_OK ? open_table(l, fl_conf_get(map, "trace"), &table) : rv;
    rv = rv == FL_OK ? fl__trace_make(table, &ask, &trace, l->err) : rv;
    if (rv == FL_OK) {
        fl__trace_free(*ret);
        *ret = trace;
    }
    return rv;
}

static int read_bandwidth(struct loader *l, const struct fl_conf_node *node)
{
    if (is_word(node, "steady")) {
        fl__trace_free(l->world->bandwidth);
        l->world->bandwidth = NULL;
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err,
                             "expected steady, or a trace: {trace: FILE, repeat: yes}");
    }
    return read_trace(l, node, true, &l->world->bandwidth);
}

/* `{every: 24h, from: …, up_for: …}` */
static int read_windows(struct loader *l, const struct fl_conf_node *map)
{
    static const char *const others[] = {"every", NULL};
    const struct fl_conf_node *every = fl_conf_get(map, "every");
    double period = 0;
    int rv;

    if (every == NULL || fl_conf_get(map, "up_for") == NULL) {
        return fl_conf_error(map, l->err,
                             "expected always, {every: 24h, from: …, up_for: …} or "
                             "{trace: FILE, repeat: yes}");
    }
    rv = read_quantity(l, FL__TIME, every, &period);
    if (rv == FL_OK && fl__us(period) == 0) {
        rv = fl_conf_error(every, l->err, "a period that lasts no time");
    }
    rv = rv == FL_OK ? read_props(l, "availability", map, others) : rv;
    if (rv == FL_OK) {
        l->world->windows = true;
        l->world->period_us = fl__us(period);
    }
    return rv;
}

static int read_availability(struct loader *l, const struct fl_conf_node *node)
{
    struct fl_world *w = l->world;

    if (fl_conf_kind(node) == FL_CONF_MAP && fl_conf_get(node, "trace") != NULL) {
        return read_trace(l, node, false, &w->availability);
    }
    fl__trace_free(w->availability);
    w->availability = NULL;
    w->windows = false;
    if (is_word(node, "always")) {
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err, "expected always, or a mapping");
    }
    return read_windows(l, node);
}

static int read_drop(struct loader *l, const struct fl_conf_node *node)
{
    static const char *const none[] = {NULL};

    if (is_word(node, "never")) {
        fl__dist_set(&l->world->props[FL__DROP_CHANCE], FL__SHARE, 0);
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err, "expected never, or {chance: 5%%, at: …, away: …}");
    }
    return read_props(l, "drop", node, none);
}

/* --- the whole --- */

static int read_world_map(struct loader *l, const struct fl_conf_node *map)
{
    static const char *const none[] = {NULL};
    static const char *const others[] = {"base",      "train", "server", "availability",
                                         "bandwidth", "drop",  NULL};
    const struct fl_conf_node *node;
    int rv = read_props(l, "", map, others);

    node = fl_conf_get(map, "train");
    if (rv == FL_OK && node != NULL) {
        rv = read_props(l, "train", node, none);
    }
    node = fl_conf_get(map, "server");
    if (rv == FL_OK && node != NULL) {
        rv = read_server(l, node);
    }
    node = fl_conf_get(map, "availability");
    if (rv == FL_OK && node != NULL) {
        rv = read_availability(l, node);
    }
    node = fl_conf_get(map, "bandwidth");
    if (rv == FL_OK && node != NULL) {
        rv = read_bandwidth(l, node);
    }
    node = fl_conf_get(map, "drop");
    return rv == FL_OK && node != NULL ? read_drop(l, node) : rv;
}

static int read_named(struct loader *l, const struct fl_conf_node *node)
{
    const char *names[MAX_NAMED];
    const char *text = fl_conf_text(node);
    struct fl_conf_doc *doc = NULL;
    const char *near;
    size_t n;
    int rv;

    if (text == NULL) {
        return fl_conf_error(node, l->err, "expected the name of a world");
    }
    for (n = 0; n < MAX_NAMED && fl_world_named(n) != NULL; n++) {
        names[n] = fl_world_named(n)->name;
        if (strcmp(names[n], text) == 0) {
            const char *yaml = fl_world_named(n)->yaml;

            rv = fl_conf_parse(names[n], yaml, strlen(yaml), &doc, l->err);
            rv = rv == FL_OK ? read_world_map(l, fl_conf_root(doc)) : rv;
            fl_conf_free(doc);
            return rv;
        }
    }
    near = fl_str_nearest(text, names, n);
    return fl_conf_error(node, l->err, "unknown world '%s'%s%s%s (`fl-sim world` lists them)", text,
                         near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "");
}

int fl__world_read(struct fl_world *world, const struct fl_world_ask *ask, struct fl_err *err)
{
    struct loader l = {.ask = ask, .world = world, .err = err};
    const struct fl_conf_node *base;
    int rv = FL_OK;

    if (fl_conf_kind(ask->node) == FL_CONF_SCALAR) {
        return read_named(&l, ask->node);
    }
    base = fl_conf_kind(ask->node) == FL_CONF_MAP ? fl_conf_get(ask->node, "base") : NULL;
    if (base != NULL) {
        rv = read_named(&l, base);
    }
    return rv == FL_OK ? read_world_map(&l, ask->node) : rv;
}
