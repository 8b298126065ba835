/* Reading options back: getters and the text form. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"

bool fl__opt_is_list(enum fl_opt_type type)
{
    return type == FL_OPT_STRING_LIST || type == FL_OPT_INT_LIST || type == FL_OPT_MAP;
}

const char *fl_options_show(const struct fl_options *options, const struct fl_opt_spec *spec,
                            char *out, size_t size)
{
    const union fl__opt_field field = fl__options_load(options, spec);
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

/* --- by name --- */

/* The row of `name`; a name that is not there is a bug of our own. */
static const struct fl_opt_spec *row(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = fl__opt_find(options->specs, name);

    FL_REQUIRE(spec != NULL);
    return spec;
}

static union fl__opt_field get(const struct fl_options *options, const char *name,
                               enum fl_opt_type type)
{
    const struct fl_opt_spec *spec = row(options, name);

    FL_REQUIRE(spec->type == type);
    return fl__options_load(options, spec);
}

bool fl_options_is_set(const struct fl_options *options, const char *name)
{
    return fl_options_given(options, row(options, name));
}

bool fl_options_bool(const struct fl_options *options, const char *name)
{
    return get(options, name, FL_OPT_BOOL).flag;
}

int64_t fl_options_int(const struct fl_options *options, const char *name)
{
    return get(options, name, FL_OPT_INT).i;
}

double fl_options_float(const struct fl_options *options, const char *name)
{
    return get(options, name, FL_OPT_FLOAT).f;
}

uint64_t fl_options_bytes(const struct fl_options *options, const char *name)
{
    return get(options, name, FL_OPT_BYTES).u;
}

uint64_t fl_options_ms(const struct fl_options *options, const char *name)
{
    return get(options, name, FL_OPT_DURATION).u;
}

const char *fl_options_str(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = row(options, name);

    return spec->type == FL_OPT_ENUM ? spec->choices[get(options, name, FL_OPT_ENUM).choice]
                                     : get(options, name, FL_OPT_STRING).text;
}

size_t fl_options_count(const struct fl_options *options, const char *name)
{
    const struct fl_opt_spec *spec = row(options, name);

    FL_REQUIRE(fl__opt_is_list(spec->type));
    return fl__options_load(options, spec).items.n;
}

const char *fl_options_item(const struct fl_options *options, const char *name, size_t i)
{
    const struct fl_opt_spec *spec = row(options, name);
    const union fl__opt_field field = fl__options_load(options, spec);

    FL_REQUIRE(i < fl_options_count(options, name));
    return spec->type == FL_OPT_MAP ? field.items.list.pairs[i].value : field.items.list.texts[i];
}

int64_t fl_options_int_item(const struct fl_options *options, const char *name, size_t i)
{
    const union fl__opt_field field = get(options, name, FL_OPT_INT_LIST);

    FL_REQUIRE(i < field.items.n);
    return field.items.list.ints[i];
}

const char *fl_options_key(const struct fl_options *options, const char *name, size_t i)
{
    const union fl__opt_field field = get(options, name, FL_OPT_MAP);

    FL_REQUIRE(i < field.items.n);
    return field.items.list.pairs[i].key;
}

const char *fl_options_text(const struct fl_options *options, const char *name, char *out,
                            size_t size)
{
    return fl_options_show(options, row(options, name), out, size);
}
