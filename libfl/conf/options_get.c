/* Reading options back: getters and the text form. */

#include <stdio.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"

bool fl__opt_is_list(enum fl_opt_type type)
{
    return type == FL_OPT_STRING_LIST || type == FL_OPT_INT_LIST || type == FL_OPT_MAP;
}

/* The value of `name`; a name or type that does not fit is a bug of our own. */
static const struct fl__opt_value *get(const struct fl_options *options, const char *name,
                                       const struct fl_opt_spec **ret_spec)
{
    const struct fl_opt_spec *spec = fl__opt_find(options->specs, name);

    FL_REQUIRE(spec != NULL);
    *ret_spec = spec;
    return &options->values[spec - options->specs];
}

static const struct fl__opt_value *get_typed(const struct fl_options *options, const char *name,
                                             enum fl_opt_type type)
{
    const struct fl_opt_spec *spec = NULL;
    const struct fl__opt_value *value = get(options, name, &spec);

    FL_REQUIRE(spec->type == type);
    return value;
}

bool fl_options_is_set(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = NULL;

    return get(options, name, &spec)->given;
}

bool fl_options_bool(const struct fl_options *options, const char *name)
{
    return get_typed(options, name, FL_OPT_BOOL)->number.i != 0;
}

int64_t fl_options_int(const struct fl_options *options, const char *name)
{
    return get_typed(options, name, FL_OPT_INT)->number.i;
}

double fl_options_float(const struct fl_options *options, const char *name)
{
    return get_typed(options, name, FL_OPT_FLOAT)->number.f;
}

uint64_t fl_options_bytes(const struct fl_options *options, const char *name)
{
    return get_typed(options, name, FL_OPT_BYTES)->number.u;
}

uint64_t fl_options_ms(const struct fl_options *options, const char *name)
{
    return get_typed(options, name, FL_OPT_DURATION)->number.u;
}

const char *fl_options_str(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = NULL;
    const struct fl__opt_value *value = get(options, name, &spec);

    FL_REQUIRE(spec->type == FL_OPT_STRING || spec->type == FL_OPT_ENUM);
    return value->text != NULL ? value->text : "";
}

size_t fl_options_count(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = NULL;
    const struct fl__opt_value *value = get(options, name, &spec);

    FL_REQUIRE(fl__opt_is_list(spec->type));
    return value->n_items;
}

const char *fl_options_item(const struct fl_options *options, const char *name, size_t i)
{
    FL_REQUIRE(i < fl_options_count(options, name));
    return options->values[fl__opt_find(options->specs, name) - options->specs].items[i].text;
}

int64_t fl_options_int_item(const struct fl_options *options, const char *name, size_t i)
{
    const struct fl__opt_value *value = get_typed(options, name, FL_OPT_INT_LIST);

    FL_REQUIRE(i < value->n_items);
    return value->items[i].number;
}

const char *fl_options_key(const struct fl_options *options, const char *name, size_t i)
{
    const struct fl__opt_value *value = get_typed(options, name, FL_OPT_MAP);

    FL_REQUIRE(i < value->n_items);
    return value->items[i].key;
}

const char *fl_options_text(const struct fl_options *options, const char *name, char *out,
                            size_t size)
{
    const struct fl_opt_spec *spec = NULL;
    const struct fl__opt_value *value = get(options, name, &spec);
    size_t used = 0;
    size_t i;

    if ((spec->flags & (unsigned)FL_OPT_SECRET) != 0) {
        (void)snprintf(out, size, "(not shown)");
        return out;
    }
    if (spec->type == FL_OPT_STRING || spec->type == FL_OPT_ENUM) {
        (void)snprintf(out, size, "%s", value->text != NULL ? value->text : "");
        return out;
    }
    if (!fl__opt_is_list(spec->type)) {
        return fl__opt_format(spec->type, &value->number, out, size);
    }
    if (size > 0) {
        out[0] = '\0';
    }
    for (i = 0; i < value->n_items && used + 1 < size; i++) {
        const struct fl__opt_item *item = &value->items[i];

        (void)snprintf(out + used, size - used, "%s%s%s%s", i > 0 ? "," : "",
                       item->key != NULL ? item->key : "", item->key != NULL ? "=" : "",
                       item->text);
        used += strlen(out + used);
    }
    return out;
}
