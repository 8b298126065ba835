/* Reads `world:` of an experiment into a network and device model. One thread; the loaded model is
   read by world.c. */
#include <string.h>

#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define MAX_NAMED 16

/* The keys that describe a client; `section` "" is the top level of `world:`. */
static const struct fl__prop_spec props[FL__N_PROPS] = {
    [FL__UPLINK] = {"", "uplink", FL__RATE, true},
    [FL__DOWNLINK] = {"", "downlink", FL__RATE, true},
    [FL__LATENCY] = {"", "latency", FL__TIME, false},
    [FL__MEMORY] = {"", "memory", FL__SIZE, true},
    [FL__TRAIN_FIXED] = {"train", "fixed", FL__TIME, false},
    [FL__TRAIN_SPEED] = {"train", "samples_per_s", FL__SPEED, true},
    [FL__TRAIN_JITTER] = {"train", "jitter", FL__NUMBER, false},
    [FL__DROP_CHANCE] = {"drop", "chance", FL__SHARE, false},
    [FL__DROP_AT] = {"drop", "at", FL__SHARE, false},
    [FL__DROP_DISCONNECTED] = {"drop", "away", FL__TIME, false},
    [FL__UP_FROM] = {"availability", "from", FL__TIME, false},
    [FL__UP_FOR] = {"availability", "up_for", FL__TIME, false},
};

/* The keys of `map` that describe clients; the caller reads `others` (NULL-terminated). */
static int load_props(struct fl__loader *l, const char *section, const struct fl_conf_node *map,
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
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < FL__N_PROPS; i++) {
        const struct fl_conf_node *node = fl_conf_get(map, props[i].key);

        if (node != NULL && strcmp(props[i].section, section) == 0) {
            rv = fl__read_prop(l, &props[i], node, &l->world->props[i]);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* --- sections --- */

static int load_train(struct fl__loader *l, const struct fl_conf_node *map)
{
    static const char *const none[] = {NULL};

    return load_props(l, "train", map, none);
}

static bool load_is_word(const struct fl_conf_node *node, const char *word)
{
    const char *text = fl_conf_text(node);

    return text != NULL && strcmp(text, word) == 0;
}

static int load_server_link(struct fl__loader *l, const struct fl_conf_node *map)
{
    static const char *const keys[] = {"uplink", "downlink", NULL};
    double *const rates[] = {&l->world->server.up, &l->world->server.down};
    int rv = fl_conf_only(map, keys, l->err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < 2; i++) {
        const struct fl_conf_node *node = fl_conf_get(map, keys[i]);

        if (node == NULL) {
            continue;
        }
        if (load_is_word(node, "unlimited")) {
            *rates[i] = 0;
            continue;
        }
        rv = fl__read_quantity(l, FL__RATE, node, rates[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* `{trace: FILE, repeat: yes, assign: drawn}` */
static int load_trace(struct fl__loader *l, const struct fl_conf_node *map, bool rates,
                      struct fl__trace **ret)
{
    static const char *const keys[] = {"trace", "repeat", "assign", NULL};
    const struct fl_conf_node *repeat = fl_conf_get(map, "repeat");
    struct fl__trace_ask ask = {.rates = rates, .n = l->ask->n, .horizon_us = l->ask->horizon_us};
    const struct fl__table *table = NULL;
    struct fl__trace *trace = NULL;
    int rv = fl_conf_only(map, keys, l->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_conf_get(map, "trace") == NULL) {
        return fl_conf_error(map, l->err, "expected a trace: {trace: FILE, repeat: yes}");
    }
    if (repeat != NULL && !load_is_word(repeat, "yes") && !load_is_word(repeat, "no")) {
        return fl_conf_error(repeat, l->err, "expected yes or no");
    }
    ask.repeat = repeat != NULL && load_is_word(repeat, "yes");
    rv = fl__read_assign(l, map, &ask.in_order);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__open_table(l, fl_conf_get(map, "trace"), &table);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__trace_make(table, &ask, &trace, l->err);
    if (rv != FL_OK) {
        return rv;
    }
    fl__trace_free(*ret);
    *ret = trace;
    return FL_OK;
}

static int load_bandwidth(struct fl__loader *l, const struct fl_conf_node *node)
{
    if (load_is_word(node, "steady")) {
        fl__trace_free(l->world->bandwidth);
        l->world->bandwidth = NULL;
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err,
                             "expected steady, or a trace: {trace: FILE, repeat: yes}");
    }
    return load_trace(l, node, true, &l->world->bandwidth);
}

static int load_availability(struct fl__loader *l, const struct fl_conf_node *node)
{
    static const char *const others[] = {"every", NULL};
    const struct fl_conf_node *every;
    struct fl_world *w = l->world;
    double period;
    int rv;

    if (fl_conf_kind(node) == FL_CONF_MAP && fl_conf_get(node, "trace") != NULL) {
        return load_trace(l, node, false, &w->availability);
    }
    fl__trace_free(w->availability);
    w->availability = NULL;
    w->windows = false;
    if (load_is_word(node, "always")) {
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err, "expected always, or a mapping");
    }
    /* `{every: 24h, from: …, up_for: …}` */
    every = fl_conf_get(node, "every");
    period = 0;
    if (every == NULL || fl_conf_get(node, "up_for") == NULL) {
        return fl_conf_error(node, l->err,
                             "expected always, {every: 24h, from: …, up_for: …} or "
                             "{trace: FILE, repeat: yes}");
    }
    rv = fl__read_quantity(l, FL__TIME, every, &period);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl__us(period) == 0) {
        return fl_conf_error(every, l->err, "a period of length 0: expected more, such as 24h");
    }
    rv = load_props(l, "availability", node, others);
    if (rv != FL_OK) {
        return rv;
    }
    l->world->windows = true;
    l->world->period_us = fl__us(period);
    return FL_OK;
}

static int load_drop(struct fl__loader *l, const struct fl_conf_node *node)
{
    static const char *const none[] = {NULL};

    if (load_is_word(node, "never")) {
        fl__dist_set(&l->world->props[FL__DROP_CHANCE], FL__SHARE, 0);
        return FL_OK;
    }
    if (fl_conf_kind(node) != FL_CONF_MAP) {
        return fl_conf_error(node, l->err, "expected never, or {chance: 5%%, at: …, away: …}");
    }
    return load_props(l, "drop", node, none);
}

/* --- the whole model --- */

static int load_world_map(struct fl__loader *l, const struct fl_conf_node *map)
{
    static const char *const others[] = {"base",      "train", "server", "availability",
                                         "bandwidth", "drop",  NULL};
    static const struct {
        const char *key;
        int (*load)(struct fl__loader *, const struct fl_conf_node *);
    } sections[] = {{"train", load_train},
                    {"server", load_server_link},
                    {"availability", load_availability},
                    {"bandwidth", load_bandwidth},
                    {"drop", load_drop}};
    size_t i;
    int rv = load_props(l, "", map, others);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        const struct fl_conf_node *node = fl_conf_get(map, sections[i].key);

        rv = node != NULL ? sections[i].load(l, node) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int load_named_world(struct fl__loader *l, const struct fl_conf_node *node)
{
    const char *names[MAX_NAMED];
    const char *text = fl_conf_text(node);
    struct fl_conf_doc *doc = NULL;
    const char *near;
    size_t n;
    int rv;

    if (text == NULL) {
        return fl_conf_error(node, l->err, "expected the name of a network and device model");
    }
    for (n = 0; n < MAX_NAMED && fl_world_named(n) != NULL; n++) {
        names[n] = fl_world_named(n)->name;
        if (strcmp(names[n], text) == 0) {
            const char *yaml = fl_world_named(n)->yaml;

            rv = fl_conf_parse(names[n], yaml, strlen(yaml), &doc, l->err);
            if (rv != FL_OK) {
                return rv;
            }
            rv = load_world_map(l, fl_conf_root(doc));
            fl_conf_free(doc);
            return rv;
        }
    }
    near = fl_str_nearest(text, names, n);
    return fl_conf_error(node, l->err,
                         "unknown network and device model '%s'%s%s%s (`fl-sim world` lists them)",
                         text, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "");
}

int fl__world_read(struct fl_world *world, const struct fl_world_ask *ask, struct fl_err *err)
{
    struct fl__loader l = {.ask = ask, .world = world, .err = err};
    const struct fl_conf_node *base;
    int rv = FL_OK;

    if (fl_conf_kind(ask->node) == FL_CONF_SCALAR) {
        return load_named_world(&l, ask->node);
    }
    base = fl_conf_kind(ask->node) == FL_CONF_MAP ? fl_conf_get(ask->node, "base") : NULL;
    if (base != NULL) {
        rv = load_named_world(&l, base);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return load_world_map(&l, ask->node);
}
