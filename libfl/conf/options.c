/*
 * Structs bound by option tables: defaults, setting from text, lists and maps, and printing.
 * Read-only after filling, then any thread. Reads no YAML (apply.c).
 */
#include "libfl/conf/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

/* Longest single value of a comma list. */
#define SET_TEXT_MAX (1u << 20)

const struct fl_opt_spec fl_opt_none[] = {{.name = NULL}};

const struct fl_opt_spec *fl__opt_find(const struct fl_opt_spec *specs, const char *name)
{
    for (; specs->name != NULL; specs++) {
        if (strcmp(specs->name, name) == 0) {
            return specs;
        }
    }
    return NULL;
}

static char *field_at(const struct fl_options *options, const struct fl_opt_spec *spec)
{
    return options->values + spec->offset;
}

static union fl__opt_field load_defaults(const struct fl_options *options,
                                         const struct fl_opt_spec *spec)
{
    union fl__opt_field field = {.u = 0};

    (void)memcpy(&field, field_at(options, spec), fl__field_size(spec->type));
    return field;
}

static void store_number(struct fl_options *options, const struct fl_opt_spec *spec,
                         const union fl__opt_field *field)
{
    (void)memcpy(field_at(options, spec), field, fl__field_size(spec->type));
}

/* Replaces the value of the field, marked as given or not, and frees the old one. */
static void replace_field(struct fl_options *options, const struct fl_opt_spec *spec,
                          const union fl__opt_field *fresh, bool given)
{
    union fl__opt_field old = load_defaults(options, spec);

    fl__field_clear(spec, &old);
    store_number(options, spec, fresh);
    options->given[spec - options->specs] = given;
    if (spec->given > 0) {
        (void)memcpy(options->values + spec->given - 1, &given, sizeof(given));
    }
}

static int add_item(const struct fl_opt_spec *spec, union fl__opt_field *field, const char *key,
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
    rv = fl__field_put(spec, field, key, text, number.i);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_ECONF, "more than %d items", FL__OPT_ITEMS_MAX);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    return FL_OK;
}

/* Adds one "key=value" or "value" of a comma list, cut from `part` in place. */
static int add_list_item(const struct fl_opt_spec *spec, union fl__opt_field *field, char *part,
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
        return add_item(spec, field, NULL, part, err);
    }
    equals = strchr(part, '=');
    if (equals == NULL) {
        return fl__opt_refuse(spec, "an entry without '='", err);
    }
    *equals = '\0';
    return add_item(spec, field, part, equals + 1, err);
}

static int set_list(const struct fl_opt_spec *spec, union fl__opt_field *field, const char *text,
                    struct fl_err *err)
{
    char *copy = fl_str_dup(text);
    char *part = copy;
    int rv = FL_OK;

    if (copy == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    while (text[0] != '\0' && part != NULL) {
        char *comma = strchr(part, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        rv = add_list_item(spec, field, part, err);
        if (rv != FL_OK) {
            goto done;
        }
        part = comma != NULL ? comma + 1 : NULL;
    }
done:
    free(copy);
    return rv;
}

static void option_take_number(const struct fl_opt_spec *spec, const struct fl__opt_number *number,
                               union fl__opt_field *ret)
{
    switch (spec->type) {
    case FL_OPT_BOOL:
        ret->flag = number->i != 0;
        break;
    case FL_OPT_INT:
        ret->i = number->i;
        break;
    case FL_OPT_FLOAT:
        ret->f = number->f;
        break;
    case FL_OPT_BYTES:
    case FL_OPT_DURATION:
    case FL_OPT_RATE:
        ret->u = number->u;
        break;
    case FL_OPT_ENUM:
        ret->choice = (int)number->i;
        break;
    case FL_OPT_STRING:
    case FL_OPT_STRING_LIST:
    case FL_OPT_INT_LIST:
    case FL_OPT_MAP:
        break;
    }
}

/* Reads `text` into `fresh`, which is empty; on error the caller clears it. */
static int read_value(const struct fl_opt_spec *spec, const char *text, union fl__opt_field *fresh,
                      struct fl_err *err)
{
    struct fl__opt_number number = {0};
    int rv;

    if (strlen(text) > SET_TEXT_MAX) {
        return fl_err_set(err, FL_ECONF, "a value of more than %u bytes", SET_TEXT_MAX);
    }
    if (fl__opt_is_list(spec->type)) {
        return set_list(spec, fresh, text, err);
    }
    rv = fl__opt_parse(spec, text, &number, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (spec->type != FL_OPT_STRING) {
        option_take_number(spec, &number, fresh);
        return FL_OK;
    }
    if (text[0] == '\0' && (spec->flags & (unsigned)FL_OPT_REQUIRED) != 0) {
        return fl__opt_refuse(spec, "an empty text", err);
    }
    fresh->text = fl_str_dup(text);
    return fresh->text != NULL ? FL_OK : fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

int fl__options_set(struct fl_options *options, const struct fl_opt_spec *spec, const char *text,
                    struct fl_err *err)
{
    union fl__opt_field fresh = {.items = {{NULL}, 0}};
    int rv = read_value(spec, text, &fresh, err);

    if (rv != FL_OK) {
        fl__field_clear(spec, &fresh);
        return rv;
    }
    replace_field(options, spec, &fresh, true);
    return FL_OK;
}

int fl__options_add(struct fl_options *options, const struct fl_opt_spec *spec, const char *key,
                    const char *text, struct fl_err *err)
{
    union fl__opt_field field = load_defaults(options, spec);
    union fl__opt_field fresh = {.items = {{NULL}, 0}};
    int rv;

    FL_REQUIRE(fl__opt_is_list(spec->type));
    if (fl_options_given(options, spec)) {
        rv = add_item(spec, &field, key, text, err);
        /* Stored also on an error: a failed append may have moved the memory of the items. */
        store_number(options, spec, &field);
        return rv;
    }
    /* A given value replaces the default as a whole. */
    rv = add_item(spec, &fresh, key, text, err);
    if (rv != FL_OK) {
        fl__field_clear(spec, &fresh);
        return rv;
    }
    replace_field(options, spec, &fresh, true);
    return FL_OK;
}

void fl__options_clear(struct fl_options *options, const struct fl_opt_spec *spec)
{
    const union fl__opt_field none = {.items = {{NULL}, 0}};

    replace_field(options, spec, &none, true);
}

static int options_make(const struct fl_opt_spec *specs, struct fl_options **ret)
{
    struct fl_options *options;
    size_t size;
    size_t n = 0;
    size_t i;

    while (specs[n].name != NULL) {
        n++;
    }
    size = specs[n].offset;
    for (i = 0; i < n; i++) {
        FL_REQUIRE(specs[i].type != FL_OPT_ENUM ||
                   (specs[i].choices != NULL && specs[i].def != NULL));
        FL_REQUIRE(specs[i].offset + fl__field_size(specs[i].type) <= size &&
                   specs[i].given <= size);
    }
    options = calloc(1, sizeof(*options) + n * sizeof(options->given[0]));
    if (options == NULL) {
        return FL_ENOMEM;
    }
    options->values = calloc(1, size > 0 ? size : 1);
    if (options->values == NULL) {
        free(options);
        return FL_ENOMEM;
    }
    options->specs = specs;
    options->n = n;
    *ret = options;
    return FL_OK;
}

int fl_options_create(const struct fl_opt_spec *specs, struct fl_options **ret)
{
    struct fl_options *options = NULL;
    size_t i;
    int rv = options_make(specs, &options);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < options->n; i++) {
        union fl__opt_field fresh = {.items = {{NULL}, 0}};

        if (specs[i].def == NULL && specs[i].type != FL_OPT_STRING) {
            continue;
        }
        if (specs[i].def == NULL) {
            fresh.text = fl_str_dup("");
            rv = fresh.text != NULL ? FL_OK : FL_ENOMEM;
        } else {
            rv = read_value(&specs[i], specs[i].def, &fresh, NULL);
        }
        /* A default that its own row rejects is a bug in the table. */
        FL_REQUIRE(rv == FL_OK || rv == FL_ENOMEM);
        replace_field(options, &specs[i], &fresh, false);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = options;
    return FL_OK;
fail:
    fl_options_free(options);
    return rv;
}

int fl_options_copy(const struct fl_options *from, struct fl_options **ret)
{
    struct fl_options *options = NULL;
    size_t i;
    int rv = options_make(from->specs, &options);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < from->n; i++) {
        const struct fl_opt_spec *spec = &from->specs[i];
        const union fl__opt_field field = load_defaults(from, spec);
        union fl__opt_field fresh;

        rv = fl__field_copy(spec, &field, &fresh);
        replace_field(options, spec, &fresh, from->given[i]);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = options;
    return FL_OK;
fail:
    fl_options_free(options);
    return rv;
}

void fl_options_free(struct fl_options *options)
{
    size_t i;

    if (options == NULL) {
        return;
    }
    for (i = 0; i < options->n; i++) {
        union fl__opt_field field = load_defaults(options, &options->specs[i]);

        fl__field_clear(&options->specs[i], &field);
    }
    free(options->values);
    free(options);
}

const void *fl_options_values(const struct fl_options *options)
{
    return options->values;
}

bool fl_options_given(const struct fl_options *options, const struct fl_opt_spec *spec)
{
    return options->given[spec - options->specs];
}

const char *fl_options_show(const struct fl_options *options, const struct fl_opt_spec *spec,
                            char *out, size_t size)
{
    const union fl__opt_field field = load_defaults(options, spec);
    const struct fl__opt_number number = {
        .i = spec->type == FL_OPT_BOOL ? field.flag : field.i, .f = field.f, .u = field.u};
    size_t used = 0;
    size_t i;

    if ((spec->flags & (unsigned)FL_OPT_SECRET) != 0) {
        (void)snprintf(out, size, "(not shown)");
        return out;
    }
    if (spec->type == FL_OPT_STRING || spec->type == FL_OPT_ENUM) {
        (void)snprintf(out, size, "%s",
                       spec->type == FL_OPT_ENUM ? spec->choices[field.choice] : field.text);
        return out;
    }
    if (!fl__opt_is_list(spec->type)) {
        return fl__opt_format(spec->type, &number, out, size);
    }
    if (size > 0) {
        out[0] = '\0';
    }
    for (i = 0; i < field.items.n && used + 1 < size; i++) {
        const char *comma = i > 0 ? "," : "";

        if (spec->type == FL_OPT_MAP) {
            (void)snprintf(out + used, size - used, "%s%s=%s", comma, field.items.list.pairs[i].key,
                           field.items.list.pairs[i].value);
        } else if (spec->type == FL_OPT_STRING_LIST) {
            (void)snprintf(out + used, size - used, "%s%s", comma, field.items.list.texts[i]);
        } else {
            (void)snprintf(out + used, size - used, "%s%" PRId64, comma, field.items.list.ints[i]);
        }
        used += strlen(out + used);
    }
    return out;
}

const struct fl_opt_spec *fl_options_specs(const struct fl_options *options)
{
    return options->specs;
}

/* Returns the row of `name`, or NULL with the message of an unknown option. */
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
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "option '%s'", name);
    }
    return FL_OK;
}
