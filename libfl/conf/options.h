#ifndef FL_CONF_OPTIONS_H
#define FL_CONF_OPTIONS_H

/*
 * Option tables: name, type, range, default, help. Daemons and strategy slots
 * describe their settings in such tables; the reader, the checker, --help and the
 * generated reference walk the same table.
 *
 * Ownership: tables are static and outlive everything. A struct fl_options owns
 * its values.
 * Threading: a struct fl_options is read-only after it was filled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

enum fl_opt_type {
    FL_OPT_BOOL,        /* yes/no, true/false, on/off */
    FL_OPT_INT,         /* int64 */
    FL_OPT_FLOAT,       /* finite double */
    FL_OPT_BYTES,       /* "64K", "8M", "1G" (powers of 1024) or plain number */
    FL_OPT_DURATION,    /* "500ms", "10s", "5m", "2h"; kept in ms */
    FL_OPT_STRING,      /* any text */
    FL_OPT_ENUM,        /* one of `choices` */
    FL_OPT_STRING_LIST, /* sequence of texts, or one text */
    FL_OPT_INT_LIST,    /* sequence of integers */
    FL_OPT_MAP          /* mapping of text to text, e.g. labels */
};

enum fl_opt_flags {
    FL_OPT_REQUIRED = 1u << 0,
    FL_OPT_SECRET = 1u << 1 /* never printed back */
};

struct fl_opt_spec {
    const char *name;
    enum fl_opt_type type;
    const char *def;            /* Default as text; NULL: unset ("", empty list, 0). */
    double min, max;            /* Numbers, bytes, ms; both 0: no range; may be infinite. */
    const char *const *choices; /* NULL-terminated, for FL_OPT_ENUM. */
    const char *help;           /* One sentence. */
    unsigned flags;
};

/* End of a table. */
/* clang-format off */
#define FL_OPT_END { .name = NULL }
/* clang-format on */

struct fl_options;

/* All options of `specs` (ended by FL_OPT_END) at their defaults. */
FL_MUST_CHECK int fl_options_create(const struct fl_opt_spec *specs, struct fl_options **ret);
FL_MUST_CHECK int fl_options_copy(const struct fl_options *from, struct fl_options **ret);
void fl_options_free(struct fl_options *options);
const struct fl_opt_spec *fl_options_specs(const struct fl_options *options);

/*
 * Set one option from text, with type, range and choices checked. FL_ECONF with a
 * message that says what was expected; an unknown name says the nearest known one.
 * Lists take comma-separated text here.
 */
FL_MUST_CHECK int fl_options_set(struct fl_options *options, const char *name, const char *text,
                                 struct fl_err *err);
/* Append to a list, or put a key in a map. The first one replaces the default. */
FL_MUST_CHECK int fl_options_add(struct fl_options *options, const char *name, const char *key,
                                 const char *text, struct fl_err *err);
/* Was it given? A default alone does not count. */
bool fl_options_is_set(const struct fl_options *options, const char *name);
/* Text form of the value as fl_options_set() takes it; returns `out`. Lists and maps by commas
   ("a,b", "k=v,l=w"); secrets as "(not shown)". */
const char *fl_options_text(const struct fl_options *options, const char *name, char *out,
                            size_t size);

/* Getters. A name that is not in the table, or another type, is a bug (FL_REQUIRE). */
bool fl_options_bool(const struct fl_options *options, const char *name);
int64_t fl_options_int(const struct fl_options *options, const char *name);
double fl_options_float(const struct fl_options *options, const char *name);
uint64_t fl_options_bytes(const struct fl_options *options, const char *name);
uint64_t fl_options_ms(const struct fl_options *options, const char *name);
/* Strings and enums; never NULL. */
const char *fl_options_str(const struct fl_options *options, const char *name);
/* Lists: count and items; maps: count, keys and values. */
size_t fl_options_count(const struct fl_options *options, const char *name);
const char *fl_options_item(const struct fl_options *options, const char *name, size_t i);
int64_t fl_options_int_item(const struct fl_options *options, const char *name, size_t i);
const char *fl_options_key(const struct fl_options *options, const char *name, size_t i);

#endif
