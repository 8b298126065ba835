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

const struct fl_opt_spec fl_opt_none[] = {FL_OPT_END};

const struct fl_opt_spec *fl__opt_find(const struct fl_opt_spec *specs, const char *name)
{
    for (; specs->name != NULL; specs++) {
        if (strcmp(specs->name, name) == 0) {
            return specs;
        }
    }
    return NULL;
}

/* --- what a field holds --- */

static size_t field_size(enum fl_opt_type type)
{
    static const size_t sizes[] = {
        [FL_OPT_BOOL] = sizeof(bool),
        [FL_OPT_INT] = sizeof(int64_t),
        [FL_OPT_FLOAT] = sizeof(double),
        [FL_OPT_BYTES] = sizeof(uint64_t),
        [FL_OPT_DURATION] = sizeof(uint64_t),
        [FL_OPT_STRING] = sizeof(const char *),
        [FL_OPT_ENUM] = sizeof(int),
        [FL_OPT_STRING_LIST] = sizeof(struct fl_opt_texts),
        [FL_OPT_INT_LIST] = sizeof(struct fl_opt_ints),
        [FL_OPT_MAP] = sizeof(struct fl_opt_map),
    };

    return sizes[type];
}

static size_t item_size(enum fl_opt_type type)
{
    static const size_t sizes[] = {
        [FL_OPT_STRING_LIST] = sizeof(const char *),
        [FL_OPT_INT_LIST] = sizeof(int64_t),
        [FL_OPT_MAP] = sizeof(struct fl_opt_pair),
    };

    return sizes[type];
}

static char *field_at(const struct fl_options *options, const struct fl_opt_spec *spec)
{
    /* A table without a struct. */
    if (options->specs[options->n].offset == 0) {
        return options->values + (size_t)(spec - options->specs) * sizeof(union fl__opt_field);
    }
    return options->values + spec->offset;
}

union fl__opt_field fl__options_load(const struct fl_options *options,
                                     const struct fl_opt_spec *spec)
{
    union fl__opt_field field = {.u = 0};

    (void)memcpy(&field, field_at(options, spec), field_size(spec->type));
    return field;
}

static void store(struct fl_options *options, const struct fl_opt_spec *spec,
                  const union fl__opt_field *field)
{
    (void)memcpy(field_at(options, spec), field, field_size(spec->type));
}

static void set_given(struct fl_options *options, const struct fl_opt_spec *spec, bool given)
{
    options->given[spec - options->specs] = given;
    if (spec->given > 0) {
        (void)memcpy(options->values + spec->given - 1, &given, sizeof(given));
    }
}

static void clear_field(const struct fl_opt_spec *spec, union fl__opt_field *field)
{
    size_t i;

    if (spec->type == FL_OPT_STRING) {
        free(field->text);
    } else if (fl__opt_is_list(spec->type)) {
        for (i = 0; i < field->items.n && spec->type != FL_OPT_INT_LIST; i++) {
            if (spec->type == FL_OPT_MAP) {
                free(field->items.list.pairs[i].key);
                free(field->items.list.pairs[i].value);
            } else {
                free(field->items.list.texts[i]);
            }
        }
        free(field->items.list.any);
    }
    *field = (union fl__opt_field){.items = {{NULL}, 0}};
}

/* Put another value into the field, given or not, and free the one that is there. */
static void replace(struct fl_options *options, const struct fl_opt_spec *spec,
                    const union fl__opt_field *fresh, bool given)
{
    union fl__opt_field old = fl__options_load(options, spec);

    clear_field(spec, &old);
    store(options, spec, fresh);
    set_given(options, spec, given);
}

/* Room for one item more, and for the end of a list of texts. */
static int grow(const struct fl_opt_spec *spec, union fl__opt_field *field)
{
    void *list;

    if (field->items.n >= ITEMS_MAX) {
        return FL_ELIMIT;
    }
    list = realloc(field->items.list.any, (field->items.n + 2) * item_size(spec->type));
    if (list == NULL) {
        return FL_ENOMEM;
    }
    field->items.list.any = list;
    return FL_OK;
}

static int put_text(union fl__opt_field *field, const char *text)
{
    char *copy = fl_str_dup(text);

    if (copy == NULL) {
        return FL_ENOMEM;
    }
    field->items.list.texts[field->items.n++] = copy;
    field->items.list.texts[field->items.n] = NULL;
    return FL_OK;
}

/* Append, or replace the value of the same key. */
static int put_pair(union fl__opt_field *field, const char *key, const char *value)
{
    struct fl__opt_pair *pairs = field->items.list.pairs;
    struct fl__opt_pair pair = {fl_str_dup(key), fl_str_dup(value)};
    size_t i;

    if (pair.key == NULL || pair.value == NULL) {
        free(pair.key);
        free(pair.value);
        return FL_ENOMEM;
    }
    for (i = 0; i < field->items.n && strcmp(pairs[i].key, key) != 0; i++) {
    }
    if (i < field->items.n) {
        free(pairs[i].key);
        free(pairs[i].value);
    } else {
        field->items.n++;
    }
    pairs[i] = pair;
    return FL_OK;
}

static int put_item(const struct fl_opt_spec *spec, union fl__opt_field *field, const char *key,
                    const char *text, int64_t number)
{
    int rv = grow(spec, field);

    if (rv != FL_OK) {
        return rv;
    }
    if (spec->type == FL_OPT_MAP) {
        return put_pair(field, key, text);
    }
    if (spec->type == FL_OPT_STRING_LIST) {
        return put_text(field, text);
    }
    field->items.list.ints[field->items.n++] = number;
    return FL_OK;
}

/* --- reading text --- */

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
    rv = put_item(spec, field, key, text, number.i);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_ECONF, "more than %d items", ITEMS_MAX);
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_strerror(rv));
}

/* One "key=value" or "value" of a comma list, cut out of `part` in place. */
static int add_part(const struct fl_opt_spec *spec, union fl__opt_field *field, char *part,
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
    while (rv == FL_OK && text[0] != '\0' && part != NULL) {
        char *comma = strchr(part, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        rv = add_part(spec, field, part, err);
        part = comma != NULL ? comma + 1 : NULL;
    }
    free(copy);
    return rv;
}

static void take_number(const struct fl_opt_spec *spec, const struct fl__opt_number *number,
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

/* Read `text` into `fresh`, which is empty; on error the caller clears it. */
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
        take_number(spec, &number, fresh);
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
        clear_field(spec, &fresh);
        return rv;
    }
    replace(options, spec, &fresh, true);
    return FL_OK;
}

int fl__options_add(struct fl_options *options, const struct fl_opt_spec *spec, const char *key,
                    const char *text, struct fl_err *err)
{
    union fl__opt_field field = fl__options_load(options, spec);
    union fl__opt_field fresh = {.items = {{NULL}, 0}};
    int rv;

    FL_REQUIRE(fl__opt_is_list(spec->type));
    if (fl_options_given(options, spec)) {
        rv = add_item(spec, &field, key, text, err);
        /* The list may have moved even when there was no memory for its item. */
        store(options, spec, &field);
        return rv;
    }
    /* What is given replaces the default as a whole. */
    rv = add_item(spec, &fresh, key, text, err);
    if (rv != FL_OK) {
        clear_field(spec, &fresh);
        return rv;
    }
    replace(options, spec, &fresh, true);
    return FL_OK;
}

void fl__options_clear(struct fl_options *options, const struct fl_opt_spec *spec)
{
    const union fl__opt_field none = {.items = {{NULL}, 0}};

    replace(options, spec, &none, true);
}

/* --- the whole table --- */

/* Fields all zero, which for a text is none yet. */
static int make(const struct fl_opt_spec *specs, struct fl_options **ret)
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
        FL_REQUIRE(size == 0 ||
                   (specs[i].offset + field_size(specs[i].type) <= size && specs[i].given <= size));
    }
    options = calloc(1, sizeof(*options) + n * sizeof(options->given[0]));
    if (options == NULL) {
        return FL_ENOMEM;
    }
    options->values = calloc(1, size > 0 ? size : (n + 1) * sizeof(union fl__opt_field));
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
    int rv = make(specs, &options);

    for (i = 0; rv == FL_OK && i < options->n; i++) {
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
        /* A default that its own row refuses is a bug in the table. */
        FL_REQUIRE(rv == FL_OK || rv == FL_ENOMEM);
        replace(options, &specs[i], &fresh, false);
    }
    if (rv != FL_OK) {
        fl_options_free(options);
        return rv;
    }
    *ret = options;
    return FL_OK;
}

static int copy_items(const struct fl_opt_spec *spec, const union fl__opt_field *from,
                      union fl__opt_field *to)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < from->items.n; i++) {
        switch (spec->type) {
        case FL_OPT_MAP:
            rv = put_item(spec, to, from->items.list.pairs[i].key, from->items.list.pairs[i].value,
                          0);
            break;
        case FL_OPT_INT_LIST:
            rv = put_item(spec, to, NULL, NULL, from->items.list.ints[i]);
            break;
        default:
            rv = put_item(spec, to, NULL, from->items.list.texts[i], 0);
            break;
        }
    }
    return rv;
}

int fl_options_copy(const struct fl_options *from, struct fl_options **ret)
{
    struct fl_options *options = NULL;
    size_t i;
    int rv = make(from->specs, &options);

    for (i = 0; rv == FL_OK && i < from->n; i++) {
        const struct fl_opt_spec *spec = &from->specs[i];
        const union fl__opt_field field = fl__options_load(from, spec);
        union fl__opt_field fresh = field;

        if (spec->type == FL_OPT_STRING) {
            fresh.text = fl_str_dup(field.text);
            rv = fresh.text != NULL ? FL_OK : FL_ENOMEM;
        } else if (fl__opt_is_list(spec->type)) {
            fresh = (union fl__opt_field){.items = {{NULL}, 0}};
            rv = copy_items(spec, &field, &fresh);
        }
        replace(options, spec, &fresh, from->given[i]);
    }
    if (rv != FL_OK) {
        fl_options_free(options);
        return rv;
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
        union fl__opt_field field = fl__options_load(options, &options->specs[i]);

        clear_field(&options->specs[i], &field);
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
