/*
 * Puts a tree of YAML nodes into option tables, and writes the reference from the same tables.
 * Start-up and reload only. Does not parse YAML (yaml.c) or single values (optval.c).
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"

/* True when the place of the node already contains its key, as "--set server.seed" does. */
static bool place_has_key(const char *place, const char *path)
{
    size_t n = strlen(place);
    size_t m = strlen(path);

    return n > m && place[n - m - 1] == ' ' && strcmp(place + n - m, path) == 0;
}

/* Sets the message "place: key 'path': text"; the place is that of `node`. */
static int error_at_node(const struct fl_conf_node *node, const char *path, const char *text,
                         struct fl_err *err)
{
    char place[FL_ERR_BUF_SIZE];
    bool key = path[0] != '\0';

    (void)fl__conf_at(node, place, sizeof(place));
    key = key && !(node->line == 0 && place_has_key(place, path));
    return fl_err_set(err, FL_ECONF, "%s: %s%s%s%s", place, key ? "key '" : "", key ? path : "",
                      key ? "': " : "", text);
}

int fl_conf_error(const struct fl_conf_node *node, struct fl_err *err, const char *fmt, ...)
{
    char text[FL_ERR_BUF_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return error_at_node(node, fl_conf_path(node), text, err);
}

/* The unknown entry stands on its own line, so the message has that line and the map's key. */
static int unknown_entry(const struct fl_conf_node *map, size_t i, const char *const *known,
                         size_t n, struct fl_err *err)
{
    struct fl_err bare = {0};

    (void)fl__opt_unknown("key", fl_conf_key(map, i), known, n, &bare);
    return error_at_node(fl_conf_at(map, i), fl_conf_path(map), bare.msg, err);
}

static bool key_is_listed(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_names(const char *const *names)
{
    size_t n = 0;

    while (names != NULL && names[n] != NULL) {
        n++;
    }
    return n;
}

/* A section must be a map; "section:" with nothing below counts as an empty one. */
static int check_map(const struct fl_conf_node *map, struct fl_err *err)
{
    if (fl_conf_kind(map) == FL_CONF_MAP || fl__conf_is_null(map)) {
        return FL_OK;
    }
    return fl_conf_error(map, err, "expected a section of 'key: value' lines, found %s",
                         fl_conf_kind(map) == FL_CONF_SEQ ? "a list" : "a single value");
}

int fl_conf_only(const struct fl_conf_node *map, const char *const *known, struct fl_err *err)
{
    size_t i;
    int rv = check_map(map, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < fl_conf_size(map); i++) {
        if (!key_is_listed(known, fl_conf_key(map, i))) {
            rv = fl_findings_keep(map->doc->all,
                                  unknown_entry(map, i, known, count_names(known), err), err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* Prefixes a bare message with the place of the node. */
static int at_node(const struct fl_conf_node *node, int rv, const struct fl_err *bare,
                   struct fl_err *err)
{
    if (rv == FL_ENOMEM) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    (void)fl_conf_error(node, err, "%s", bare->msg);
    return rv;
}

static const char *kind_words(const struct fl_conf_node *node)
{
    if (fl_conf_kind(node) == FL_CONF_MAP) {
        return "a section";
    }
    if (fl_conf_kind(node) == FL_CONF_SEQ) {
        return "a list";
    }
    return fl__conf_is_null(node) ? "nothing" : "a single value";
}

/* One item of a list, or one entry of a map. */
static int apply_item(const struct fl_conf_node *item, const struct fl_opt_spec *spec,
                      const char *key, struct fl_options *options, struct fl_err *err)
{
    struct fl_err bare = {0};
    int rv;

    if (fl_conf_kind(item) != FL_CONF_SCALAR || fl__conf_is_null(item)) {
        return fl_conf_error(item, err, "expected %s, found %s",
                             spec->type == FL_OPT_INT_LIST ? "a whole number" : "a text",
                             kind_words(item));
    }
    rv = fl__options_add(options, spec, key, fl_conf_text(item), &bare);
    return rv == FL_OK ? FL_OK : at_node(item, rv, &bare, err);
}

/* An entry of a map that has several values. */
static int apply_values(const struct fl_conf_node *list, const struct fl_opt_spec *spec,
                        const char *key, struct fl_options *options, struct fl_err *err)
{
    size_t i;

    if (fl_conf_size(list) == 0) {
        return fl_conf_error(list, err, "expected a text or a list of texts, found an empty list");
    }
    for (i = 0; i < fl_conf_size(list); i++) {
        int rv = apply_item(fl_conf_at(list, i), spec, key, options, err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int apply_one(const struct fl_conf_node *node, const struct fl_opt_spec *spec,
                     struct fl_options *options, struct fl_err *err)
{
    bool list = spec->type == FL_OPT_STRING_LIST || spec->type == FL_OPT_INT_LIST;
    enum fl_conf_kind kind = fl_conf_kind(node);
    struct fl_err bare = {0};
    int rv;

    if ((list && kind == FL_CONF_SEQ) || (spec->type == FL_OPT_MAP && kind == FL_CONF_MAP)) {
        size_t i;

        fl__options_clear(options, spec);
        for (i = 0; i < fl_conf_size(node); i++) {
            const struct fl_conf_node *item = fl_conf_at(node, i);
            const char *key = spec->type == FL_OPT_MAP ? fl_conf_key(node, i) : NULL;

            if ((spec->flags & (unsigned)FL_OPT_MANY) != 0 && fl_conf_kind(item) == FL_CONF_SEQ) {
                rv = apply_values(item, spec, key, options, err);
            } else {
                rv = apply_item(item, spec, key, options, err);
            }
            if (rv != FL_OK) {
                return rv;
            }
        }
        return FL_OK;
    }
    if (kind != FL_CONF_SCALAR || fl__conf_is_null(node) || spec->type == FL_OPT_MAP) {
        rv = fl__opt_refuse(spec, kind_words(node), &bare);
        return at_node(node, rv, &bare, err);
    }
    if (list) {
        /* A single text is a list of one item; commas are part of the item. */
        fl__options_clear(options, spec);
        rv = fl__options_add(options, spec, NULL, fl_conf_text(node), &bare);
    } else {
        rv = fl__options_set(options, spec, fl_conf_text(node), &bare);
    }
    if (rv != FL_OK) {
        return at_node(node, rv, &bare, err);
    }
    return FL_OK;
}

/* Known keys: those of the table and those of the caller, for the suggestion. */
static int unknown_option(const struct fl_conf_node *map, size_t i, const struct fl_opt_spec *specs,
                          const char *const *others, struct fl_err *err)
{
    size_t n_others = count_names(others);
    size_t n = 0;
    size_t k;
    const char **names;
    int rv;

    while (specs[n].name != NULL) {
        n++;
    }
    names = calloc(n + n_others + 1, sizeof(*names));
    if (names == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (k = 0; k < n; k++) {
        names[k] = specs[k].name;
    }
    for (k = 0; k < n_others; k++) {
        names[n + k] = others[k];
    }
    rv = unknown_entry(map, i, names, n + n_others, err);
    free(names);
    return rv;
}

static int check_required(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                          const char *where, unsigned optional, const struct fl_options *options,
                          struct fl_err *err)
{
    const struct fl_opt_spec *spec = fl_options_specs(options);
    const char *dot = where != NULL && where[0] != '\0' ? "." : "";
    char want[320];
    int rv;

    for (; spec->name != NULL; spec++) {
        if ((spec->flags & (unsigned)FL_OPT_REQUIRED) == 0 || (spec->flags & optional) != 0 ||
            fl_options_given(options, spec) || fl_conf_get(map, spec->name) != NULL)
        {
            continue; /* A key that is present but invalid has a finding of its own. */
        }
        (void)fl__opt_describe(spec, want, sizeof(want));
        if (map != NULL) {
            rv = fl_conf_error(map, err, "the required key '%s' is missing (%s)", spec->name, want);
        } else {
            rv = fl_err_set(err, FL_ECONF, "%s: the required key '%s%s%s' is missing (%s)",
                            doc != NULL ? fl__conf_name(doc) : "configuration",
                            where != NULL ? where : "", dot, spec->name, want);
        }
        rv = fl_findings_keep(doc != NULL ? doc->all : NULL, rv, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl__conf_apply(const struct fl_conf_doc *doc, const struct fl_conf_node *map, const char *where,
                   const char *const *others, unsigned optional, struct fl_options *options,
                   struct fl_err *err)
{
    const struct fl_opt_spec *specs = fl_options_specs(options);
    size_t i;
    int rv = FL_OK;

    if (map != NULL) {
        rv = check_map(map, err);
    }
    if (rv != FL_OK) {
        return fl_findings_keep(map->doc->all, rv, err);
    }
    for (i = 0; map != NULL && i < fl_conf_size(map); i++) {
        const char *key = fl_conf_key(map, i);
        const struct fl_opt_spec *spec = fl__opt_find(specs, key);

        if (key_is_listed(others, key)) {
            continue;
        }
        rv = spec != NULL ? apply_one(fl_conf_at(map, i), spec, options, err)
                          : unknown_option(map, i, specs, others, err);
        rv = fl_findings_keep(map->doc->all, rv, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return check_required(doc, map, where, optional, options, err);
}

int fl_conf_apply(const struct fl_conf_doc *doc, const struct fl_conf_node *map, const char *where,
                  const char *const *others, struct fl_options *options, struct fl_err *err)
{
    return fl__conf_apply(doc, map, where, others, 0, options, err);
}

/* --- reference --- */

/* Escapes '|', which would end a cell of a Markdown table. */
static int reference_add_cell(struct fl_buf *out, const char *text)
{
    int rv = fl_buf_add(out, " ", 1);

    if (rv != FL_OK) {
        return rv;
    }
    for (; *text != '\0'; text++) {
        rv = *text == '|'    ? fl_buf_add(out, "\\|", 2)
             : *text == '\n' ? fl_buf_add(out, " ", 1)
                             : fl_buf_add(out, text, 1);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_add(out, " |", 2);
}

static const char *const type_names[] = {
    [FL_OPT_BOOL] = "yes/no",
    [FL_OPT_INT] = "integer",
    [FL_OPT_FLOAT] = "number",
    [FL_OPT_BYTES] = "size",
    [FL_OPT_DURATION] = "duration",
    [FL_OPT_RATE] = "rate",
    [FL_OPT_STRING] = "text",
    [FL_OPT_ENUM] = "choice",
    [FL_OPT_STRING_LIST] = "list of texts",
    [FL_OPT_INT_LIST] = "list of integers",
    [FL_OPT_MAP] = "map of texts",
};

static int reference_add_row(const struct fl_opt_spec *spec, const char *prefix, struct fl_buf *out)
{
    bool required = (spec->flags & (unsigned)FL_OPT_REQUIRED) != 0;
    bool has_prefix = prefix != NULL && prefix[0] != '\0';
    char name[512];
    char range[512];
    char def[512] = "";
    bool many = (spec->flags & (unsigned)FL_OPT_MANY) != 0;
    const char *const cells[] = {
        name, many ? "map of texts or lists of texts" : type_names[spec->type],
        required ? "required" : def, range, spec->help != NULL ? spec->help : ""};
    size_t i;
    char words[512];
    int rv;

    (void)snprintf(name, sizeof(name), "`%s%s%s`", has_prefix ? prefix : "", has_prefix ? "." : "",
                   spec->name);
    if (spec->def != NULL && spec->def[0] != '\0') {
        (void)snprintf(def, sizeof(def), "`%s`", spec->def);
    }
    if (spec->type == FL_OPT_ENUM) {
        /* Without the leading "one of ". */
        (void)fl__opt_describe(spec, words, sizeof(words));
        (void)snprintf(range, sizeof(range), "%s", words + strlen("one of "));
    } else {
        (void)fl__opt_range(spec, range, sizeof(range));
    }
    rv = fl_buf_add(out, "|", 1);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        rv = reference_add_cell(out, cells[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_add(out, "\n", 1);
}

int fl_conf_reference(const struct fl_opt_spec *specs, const char *prefix, struct fl_buf *out)
{
    for (; specs->name != NULL; specs++) {
        int rv = reference_add_row(specs, prefix, out);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_conf_reference_of(const struct fl_opt_spec *specs, const char *prefix, unsigned tier,
                         struct fl_buf *out)
{
    const unsigned tiers = (unsigned)FL_OPT_BASIC | (unsigned)FL_OPT_DEBUG;

    for (; specs->name != NULL; specs++) {
        int rv = (specs->flags & tiers) == tier ? reference_add_row(specs, prefix, out) : FL_OK;

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
