#include "libfl/conf/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

/* Items of one list: far above any real setting, so that a peer's option text stays bounded. */
#define ITEMS_MAX 65536
/* Longest single value of a comma list. */
#define SET_TEXT_MAX (1u << 20)

static void clear_items(struct fl__opt_value *value)
{
    size_t i;

    for (i = 0; i < value->n_items; i++) {
        free(value->items[i].key);
        free(value->items[i].text);
    }
    free(value->items);
    value->items = NULL;
    value->n_items = 0;
    value->cap = 0;
}

const struct fl_opt_spec *fl__opt_find(const struct fl_opt_spec *specs, const char *name)
{
    for (; specs->name != NULL; specs++) {
        if (strcmp(specs->name, name) == 0) {
            return specs;
        }
    }
    return NULL;
}

static struct fl__opt_value *value_of(struct fl_options *options, const struct fl_opt_spec *spec)
{
    return &options->values[spec - options->specs];
}

/* Append, or replace the item with the same key of a map. */
static int put_item(struct fl__opt_value *value, const char *key, const char *text, int64_t number)
{
    struct fl__opt_item item = {.number = number};
    size_t i = value->n_items;

    if (key != NULL) {
        for (i = 0; i < value->n_items && strcmp(value->items[i].key, key) != 0; i++) {
        }
    }
    if (i == value->n_items && value->n_items == value->cap) {
        size_t cap = value->cap == 0 ? 4 : value->cap * 2;
        struct fl__opt_item *items;

        if (value->n_items >= ITEMS_MAX) {
            return FL_ELIMIT;
        }
        items = realloc(value->items, cap * sizeof(*items));
        if (items == NULL) {
            return FL_ENOMEM;
        }
        value->items = items;
        value->cap = cap;
    }
    item.key = key != NULL ? fl_str_dup(key) : NULL;
    item.text = fl_str_dup(text);
    if (item.text == NULL || (key != NULL && item.key == NULL)) {
        free(item.key);
        free(item.text);
        return FL_ENOMEM;
    }
    if (i < value->n_items) {
        free(value->items[i].key);
        free(value->items[i].text);
    } else {
        value->n_items++;
    }
    value->items[i] = item;
    return FL_OK;
}

static int add_item(const struct fl_opt_spec *spec, struct fl__opt_value *value, const char *key,
                    const char *text, struct fl_err *err)
{
    struct fl__opt_number number = {0};
    int rv = fl__opt_parse(spec, text, &number, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (spec->type == FL_OPT_MAP && (key == NULL || key[0] == '\0')) {
        return fl__opt_refuse(spec, "a value without a key", err);
    }
    rv = put_item(value, spec->type == FL_OPT_MAP ? key : NULL, text, number.i);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_ECONF, "more than %d items", ITEMS_MAX);
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_strerror(rv));
}

/* One "key=value" or "value" of a comma list, cut out of `part` in place. */
static int add_part(const struct fl_opt_spec *spec, struct fl__opt_value *value, char *part,
                    struct fl_err *err)
{
    char *equals = NULL;
    size_t len;

    while (*part == ' ') {
        part++;
    }
    for (len = strlen(part); len > 0 && part[len - 1] == ' '; len--) {
        part[len - 1] = '\0';
    }
    if (spec->type != FL_OPT_MAP) {
        return add_item(spec, value, NULL, part, err);
    }
    equals = strchr(part, '=');
    if (equals == NULL) {
        return fl__opt_refuse(spec, "an entry without '='", err);
    }
    *equals = '\0';
    return add_item(spec, value, part, equals + 1, err);
}

static int set_list(const struct fl_opt_spec *spec, struct fl__opt_value *value, const char *text,
                    struct fl_err *err)
{
    char *copy = fl_str_dup(text);
    char *part = copy;
    int rv = FL_OK;

    if (copy == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    while (rv == FL_OK && text[0] != '\0' && part != NULL) {
        char *comma = strchr(part, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        rv = add_part(spec, value, part, err);
        part = comma != NULL ? comma + 1 : NULL;
    }
    free(copy);
    return rv;
}

/* Read `text` into `fresh`, which is empty; on error the caller clears it. */
static int read_value(const struct fl_opt_spec *spec, const char *text, struct fl__opt_value *fresh,
                      struct fl_err *err)
{
    int rv;

    if (strlen(text) > SET_TEXT_MAX) {
        return fl_err_set(err, FL_ECONF, "a value of more than %u bytes", SET_TEXT_MAX);
    }
    if (fl__opt_is_list(spec->type)) {
        return set_list(spec, fresh, text, err);
    }
    rv = fl__opt_parse(spec, text, &fresh->number, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (spec->type == FL_OPT_STRING && text[0] == '\0' &&
        (spec->flags & (unsigned)FL_OPT_REQUIRED) != 0)
    {
        return fl__opt_refuse(spec, "an empty text", err);
    }
    if (spec->type == FL_OPT_STRING || spec->type == FL_OPT_ENUM) {
        fresh->text = fl_str_dup(text);
        if (fresh->text == NULL) {
            return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        }
    }
    return FL_OK;
}

int fl__options_set(struct fl_options *options, const struct fl_opt_spec *spec, const char *text,
                    struct fl_err *err)
{
    struct fl__opt_value *value = value_of(options, spec);
    struct fl__opt_value fresh = {.given = true};
    int rv = read_value(spec, text, &fresh, err);

    if (rv != FL_OK) {
        clear_items(&fresh);
        free(fresh.text);
        return rv;
    }
    clear_items(value);
    free(value->text);
    *value = fresh;
    return FL_OK;
}

int fl__options_add(struct fl_options *options, const struct fl_opt_spec *spec, const char *key,
                    const char *text, struct fl_err *err)
{
    struct fl__opt_value *value = value_of(options, spec);
    struct fl__opt_value fresh = {.given = true};
    int rv;

    FL_REQUIRE(fl__opt_is_list(spec->type));
    if (value->given) {
        return add_item(spec, value, key, text, err);
    }
    /* What is given replaces the default as a whole. */
    rv = add_item(spec, &fresh, key, text, err);
    if (rv != FL_OK) {
        clear_items(&fresh);
        return rv;
    }
    clear_items(value);
    *value = fresh;
    return FL_OK;
}

void fl__options_clear(struct fl_options *options, const struct fl_opt_spec *spec)
{
    struct fl__opt_value *value = value_of(options, spec);

    clear_items(value);
    value->given = true;
}

int fl_options_create(const struct fl_opt_spec *specs, struct fl_options **ret)
{
    struct fl_options *options;
    size_t n = 0;
    size_t i;
    int rv;

    while (specs[n].name != NULL) {
        n++;
    }
    options = calloc(1, sizeof(*options) + n * sizeof(options->values[0]));
    if (options == NULL) {
        return FL_ENOMEM;
    }
    options->specs = specs;
    options->n = n;
    for (i = 0; i < n; i++) {
        FL_REQUIRE(specs[i].type != FL_OPT_ENUM || specs[i].choices != NULL);
        if (specs[i].def == NULL) {
            continue;
        }
        rv = fl__options_set(options, &specs[i], specs[i].def, NULL);
        /* A default that its own row refuses is a bug in the table. */
        FL_REQUIRE(rv == FL_OK || rv == FL_ENOMEM);
        if (rv != FL_OK) {
            fl_options_free(options);
            return rv;
        }
        options->values[i].given = false;
    }
    *ret = options;
    return FL_OK;
}

static int copy_value(const struct fl__opt_value *from, struct fl__opt_value *to)
{
    size_t i;

    to->given = from->given;
    to->number = from->number;
    if (from->text != NULL) {
        to->text = fl_str_dup(from->text);
        if (to->text == NULL) {
            return FL_ENOMEM;
        }
    }
    for (i = 0; i < from->n_items; i++) {
        int rv = put_item(to, from->items[i].key, from->items[i].text, from->items[i].number);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_options_copy(const struct fl_options *from, struct fl_options **ret)
{
    struct fl_options *options = calloc(1, sizeof(*options) + from->n * sizeof(options->values[0]));
    size_t i;

    if (options == NULL) {
        return FL_ENOMEM;
    }
    options->specs = from->specs;
    options->n = from->n;
    for (i = 0; i < from->n; i++) {
        if (copy_value(&from->values[i], &options->values[i]) != FL_OK) {
            fl_options_free(options);
            return FL_ENOMEM;
        }
    }
    *ret = options;
    return FL_OK;
}

void fl_options_free(struct fl_options *options)
{
    size_t i;

    if (options == NULL) {
        return;
    }
    for (i = 0; i < options->n; i++) {
        clear_items(&options->values[i]);
        free(options->values[i].text);
    }
    free(options);
}

const struct fl_opt_spec *fl_options_specs(const struct fl_options *options)
{
    return options->specs;
}

/* The row of `name`, or NULL with the message of an unknown option. */
static const struct fl_opt_spec *find_or_say(const struct fl_options *options, const char *name,
                                             struct fl_err *err)
{
    const struct fl_opt_spec *spec = fl__opt_find(options->specs, name);
    const char **names;
    size_t i;

    if (spec != NULL) {
        return spec;
    }
    names = calloc(options->n + 1, sizeof(*names));
    if (names == NULL) {
        (void)fl_err_set(err, FL_ECONF, "unknown option '%s'", name);
        return NULL;
    }
    for (i = 0; i < options->n; i++) {
        names[i] = options->specs[i].name;
    }
    (void)fl__opt_unknown("option", name, names, options->n, err);
    free(names);
    return NULL;
}

int fl_options_set(struct fl_options *options, const char *name, const char *text,
                   struct fl_err *err)
{
    const struct fl_opt_spec *spec = find_or_say(options, name, err);
    int rv;

    if (spec == NULL) {
        return FL_ECONF;
    }
    rv = fl__options_set(options, spec, text, err);
    return rv == FL_OK ? FL_OK : fl_err_wrap(err, rv, "option '%s'", name);
}

int fl_options_add(struct fl_options *options, const char *name, const char *key, const char *text,
                   struct fl_err *err)
{
    const struct fl_opt_spec *spec = find_or_say(options, name, err);
    int rv;

    if (spec == NULL) {
        return FL_ECONF;
    }
    if (!fl__opt_is_list(spec->type)) {
        return fl_err_set(err, FL_ECONF, "option '%s': takes one value, not a list", name);
    }
    rv = fl__options_add(options, spec, key, text, err);
    return rv == FL_OK ? FL_OK : fl_err_wrap(err, rv, "option '%s'", name);
}
