/* Reads the sweep of an experiment: a grid over keys, or a list of points. One thread, while the
   experiment is loaded. Values are checked later, when each point is read. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/experiment/experiment_impl.h"

void fl__sweep_free(struct fl_experiment *e)
{
    size_t i;
    size_t k;

    for (i = 0; e->points != NULL && i < e->n_points; i++) {
        for (k = 0; k < e->points[i].n; k++) {
            free(e->points[i].settings[k].own);
        }
        free(e->points[i].settings);
    }
    free(e->points);
}

static bool sweep_is_below(const char *path, const char *root)
{
    size_t n = strlen(root);

    return strncmp(path, root, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

static bool sweep_is_daemon_key(const char *path)
{
    static const char server[] = "server.";
    static const char client[] = "client.";

    if (strncmp(path, server, sizeof(server) - 1) == 0) {
        return fl_server_conf_is_daemons(path + sizeof(server) - 1);
    }
    return strncmp(path, client, sizeof(client) - 1) == 0 &&
           fl_client_conf_is_daemons(path + sizeof(client) - 1);
}

static const char *const swept[] = {"server", "client", "data", "attackers", "world", "stop"};
static const char *const fixed[] = {"name", "trials", "sweep"};

/* Is `path` a key that may differ between points? `node`: its location, for messages. */
static int sweep_check_key(const char *path, const struct fl_conf_node *node, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        if (sweep_is_below(path, fixed[i])) {
            return fl_conf_error(node, err, "'%s' is the same for all points, it cannot be swept",
                                 fixed[i]);
        }
    }
    for (i = 0; i < sizeof(swept) / sizeof(swept[0]) && !sweep_is_below(path, swept[i]); i++) {
    }
    if (i == sizeof(swept) / sizeof(swept[0])) {
        return fl_conf_error(node, err,
                             "unknown key '%.80s': keys are written in full, below server, client, "
                             "data, attackers, world or stop, such as server.algorithm",
                             path);
    }
    if (strcmp(path, "server.seed") == 0) {
        return fl_conf_error(node, err, "the seeds of all points are set by trials");
    }
    if (sweep_is_daemon_key(path)) {
        return fl_conf_error(
            node, err, "'%.80s' is for a daemon only and has no effect in a simulation", path);
    }
    return FL_OK;
}

/* --- the settings of a point --- */

/* Copies `path` unless it is `lent`. */
static int sweep_add_setting(struct fl__point *p, const char *path, bool lent,
                             const struct fl_conf_node *value)
{
    struct fl__setting s = {.path = path, .value = value};

    if (p->n == p->cap) {
        size_t cap = p->cap == 0 ? 4 : 2 * p->cap;
        struct fl__setting *all = realloc(p->settings, cap * sizeof(*all));

        if (all == NULL) {
            return FL_ENOMEM;
        }
        p->settings = all;
        p->cap = cap;
    }
    if (!lent) {
        s.own = fl_str_dup(path);
        s.path = s.own;
    }
    if (s.path == NULL) {
        return FL_ENOMEM;
    }
    p->settings[p->n++] = s;
    return FL_OK;
}

static int sweep_set_value(struct fl__point *p, const char *path, bool lent,
                           const struct fl_conf_node *node, const struct fl_conf_node *value,
                           struct fl_err *err)
{
    char inner[1024];
    size_t i;
    int rv = sweep_check_key(path, node, err);

    if (rv != FL_OK) {
        return rv;
    }
    /*
     * A mapping for the server's or the clients' configuration is merged key by key; any other
     * value replaces the previous one.
     */
    if (!(fl_conf_kind(value) == FL_CONF_MAP &&
          (sweep_is_below(path, "server") || sweep_is_below(path, "client"))))
    {
        if (strcmp(path, "server") == 0 || strcmp(path, "client") == 0) {
            return fl_conf_error(value, err, "expected a section of 'key: value' lines");
        }
        return sweep_add_setting(p, path, lent, value);
    }
    for (i = 0; i < fl_conf_size(value); i++) {
        int n = snprintf(inner, sizeof(inner), "%s.%s", path, fl_conf_key(value, i));

        if (n < 0 || (size_t)n >= sizeof(inner)) {
            return fl_conf_error(value, err, "a key of more than %zu bytes", sizeof(inner) - 1);
        }
        rv = sweep_set_value(p, inner, /* lent= */ false, fl_conf_at(value, i),
                             fl_conf_at(value, i), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* --- a grid --- */

/* Number of points of the grid; the first key changes slowest. */
static int sweep_count_grid(const struct fl_experiment *e, const struct fl_conf_node *sweep,
                            size_t *ret, struct fl_err *err)
{
    size_t n = 1;
    size_t i;

    for (i = 0; i < fl_conf_size(sweep); i++) {
        const struct fl_conf_node *list = fl_conf_at(sweep, i);
        int rv = sweep_check_key(fl_conf_key(sweep, i), list, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (fl_conf_kind(list) != FL_CONF_SEQ) {
            return fl_conf_error(list, err, "expected a list of values, such as [0.05, 0.1]");
        }
        if (fl_conf_size(list) == 0) {
            return fl_conf_error(list, err, "the list is empty: expected at least one value");
        }
        /* No overflow: both factors are far below the square root of SIZE_MAX. */
        n *= fl_conf_size(list);
        if (n > FL_EXPERIMENT_RUNS / e->n_seeds) {
            return fl_conf_error(sweep, err, "more than %d runs (points times %zu trials)",
                                 FL_EXPERIMENT_RUNS, e->n_seeds);
        }
    }
    *ret = n;
    return FL_OK;
}

static int sweep_grid_point(struct fl__point *p, const struct fl_conf_node *sweep, size_t i,
                            size_t n, struct fl_err *err)
{
    size_t k;
    int rv;

    p->node = sweep;
    for (k = 0; k < fl_conf_size(sweep); k++) {
        const struct fl_conf_node *list = fl_conf_at(sweep, k);

        n /= fl_conf_size(list);
        rv = sweep_set_value(p, fl_conf_key(sweep, k), /* lent= */ true, list,
                             fl_conf_at(list, i / n % fl_conf_size(list)), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* --- a list of points --- */

static int sweep_take_label(struct fl__point *p, const struct fl_conf_node *label,
                            struct fl_err *err)
{
    const char *text = fl_conf_text(label);
    size_t n = text != NULL ? strlen(text) : 0;

    if (n == 0 || n >= sizeof(p->label)) {
        return fl_conf_error(label, err, "expected a text of 1 to %zu bytes", sizeof(p->label) - 1);
    }
    (void)memcpy(p->label, text, n + 1);
    (void)fl_str_clean(p->label);
    return FL_OK;
}

static int sweep_list_point(struct fl__point *p, const struct fl_conf_node *node,
                            struct fl_err *err)
{
    size_t i;
    int rv;

    p->node = node;
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, err,
                             "expected a point such as {label: fast, "
                             "server.training.learning_rate: 0.1}");
    }
    for (i = 0; i < fl_conf_size(node); i++) {
        const struct fl_conf_node *value = fl_conf_at(node, i);
        const char *key = fl_conf_key(node, i);

        rv = strcmp(key, "label") == 0
                 ? sweep_take_label(p, value, err)
                 : sweep_set_value(p, key, /* lent= */ true, value, value, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int sweep_count_list(const struct fl_experiment *e, const struct fl_conf_node *sweep,
                            size_t *ret, struct fl_err *err)
{
    size_t n = fl_conf_size(sweep);

    if (n == 0) {
        return fl_conf_error(sweep, err, "the list is empty: expected at least one point");
    }
    if (n > FL_EXPERIMENT_RUNS / e->n_seeds) {
        return fl_conf_error(sweep, err, "more than %d runs (points times %zu trials)",
                             FL_EXPERIMENT_RUNS, e->n_seeds);
    }
    *ret = n;
    return FL_OK;
}

int fl__sweep_read(struct fl_experiment *e, struct fl_err *err)
{
    const struct fl_conf_node *sweep = fl_conf_get(fl_conf_root(e->doc), "sweep");
    bool list = sweep != NULL && fl_conf_kind(sweep) == FL_CONF_SEQ;
    size_t n = 1;
    size_t i;
    int rv;

    if (sweep != NULL && fl_conf_text(sweep) != NULL && fl_conf_text(sweep)[0] != '\0') {
        return fl_conf_error(sweep, err, "expected keys with lists of values, or a list of points");
    }
    if (sweep != NULL) {
        rv = list ? sweep_count_list(e, sweep, &n, err) : sweep_count_grid(e, sweep, &n, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    e->points = calloc(n, sizeof(*e->points));
    if (e->points == NULL) {
        return FL_ENOMEM;
    }
    e->n_points = n;
    for (i = 0; sweep != NULL && i < n; i++) {
        rv = list ? sweep_list_point(&e->points[i], fl_conf_at(sweep, i), err)
                  : sweep_grid_point(&e->points[i], sweep, i, n, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
