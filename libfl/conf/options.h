#ifndef FL_CONF_OPTIONS_H
#define FL_CONF_OPTIONS_H

/*
 * Option tables: each row binds a field of a struct to its key, type, range, default and help.
 * Daemons and the components of an algorithm describe their settings in such tables; the reader,
 * the checker, --help and the generated reference walk the same table. Code that runs reads the
 * fields.
 *
 *     struct adam { double beta1; uint64_t wait_ms; };
 *
 *     static const struct fl_opt_spec options[] = {
 *         {FL_OPT(struct adam, FLOAT, beta1), .def = "0.9", .max = 1, .help = "…"},
 *         {FL_OPT(struct adam, DURATION, wait), .def = "10s", .max = 60000, .help = "…"},
 *         FL_OPT_END_OF(struct adam)};
 *
 * A field of another type than its row's does not compile.
 *
 * Ownership: tables are static and outlive everything. A struct fl_options owns the struct of its
 * table and all that its fields point to.
 * Threading: a struct fl_options is read-only after it was filled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/match.h"

enum fl_opt_type {
    FL_OPT_BOOL,        /* yes/no, true/false, on/off: bool */
    FL_OPT_INT,         /* int64_t */
    FL_OPT_FLOAT,       /* finite double */
    FL_OPT_BYTES,       /* "64K", "1.5GB", a plain number (base/quantity.h): uint64_t */
    FL_OPT_DURATION,    /* "500ms", "10s", "30d": uint64_t in ms, named KEY_ms */
    FL_OPT_RATE,        /* "2Mbit/s", "500kB/s", "none": uint64_t in bytes/s, named KEY_per_s */
    FL_OPT_STRING,      /* any text: const char *, never NULL */
    FL_OPT_ENUM,        /* one of `choices`, which has a default: its index, an enum or int */
    FL_OPT_STRING_LIST, /* sequence of texts, or one text: struct fl_opt_texts */
    FL_OPT_INT_LIST,    /* sequence of integers: struct fl_opt_ints */
    FL_OPT_MAP          /* mapping of text to text, e.g. labels: struct fl_opt_map */
};

struct fl_opt_texts {
    const char *const *list; /* NULL-terminated; NULL when there are none */
    size_t n;
};

struct fl_opt_ints {
    const int64_t *list;
    size_t n;
};

struct fl_opt_map {
    /* in the order of the file, each key once; with FL_OPT_MANY once for each of its values */
    const struct fl_pair *list;
    size_t n;
};

enum fl_opt_flags {
    FL_OPT_REQUIRED = 1u << 0,
    FL_OPT_SECRET = 1u << 1, /* never printed back */
    FL_OPT_BASIC = 1u << 2,  /* a first configuration sets it; the reference begins with these */
    FL_OPT_DEBUG = 1u << 3,  /* for tests and diagnosis only; the reference ends with these */
    FL_OPT_MANY = 1u << 4,   /* of a map: an entry is a text or a list of texts */
    FL_OPT_OWNERS = 1u << 8  /* this flag and higher ones are defined by the owner of the table */
};

struct fl_opt_spec {
    const char *name;
    enum fl_opt_type type;
    size_t offset;   /* Of the field; in the last row, size of the struct. */
    size_t given;    /* 0, or 1 + the offset of a bool that is true when the option was given. */
    const char *def; /* Default as text; NULL: unset ("", empty list, 0). */
    double min, max; /* Numbers, bytes, ms, bytes/s; both 0: no range; may be infinite. */
    const char *const *choices; /* NULL-terminated, for FL_OPT_ENUM. */
    const char *help;           /* One sentence. */
    unsigned flags;
};

/* Name, type and field of a row; the key has the name of the field. */
/* clang-format off */
#define FL_OPT(S, TYPE, field) \
    .name = #field, .type = FL_OPT_##TYPE, .offset = FL__OPT_AT_##TYPE(S, field)
/*
 * The same for a field of `part`, the first member of S, so that code that knows only `part` can
 * read it through a pointer to it.
 */
#define FL_OPT_IN(S, TYPE, part, field) \
    .name = #field, .type = FL_OPT_##TYPE, \
    .offset = FL__OPT_AT_##TYPE(S, part.field) + 0 * sizeof(struct { \
        _Static_assert(offsetof(S, part) == 0, #part " does not come first"); char unused; })
/* The bool `field`_given: true when the option was given; a default does not set it. */
#define FL_OPT_GIVEN(S, field) .given = 1 + FL__OPT_AT(S, field##_given, bool)
/* Ends a table whose rows bind fields of S. */
#define FL_OPT_END_OF(S) { .name = NULL, .offset = sizeof(S) }
/* clang-format on */

#define FL__OPT_AT(S, field, T)          (offsetof(S, field) + _Generic(((S *)0)->field, T : 0))
#define FL__OPT_AT_BOOL(S, field)        FL__OPT_AT(S, field, bool)
#define FL__OPT_AT_INT(S, field)         FL__OPT_AT(S, field, int64_t)
#define FL__OPT_AT_FLOAT(S, field)       FL__OPT_AT(S, field, double)
#define FL__OPT_AT_BYTES(S, field)       FL__OPT_AT(S, field, uint64_t)
#define FL__OPT_AT_DURATION(S, field)    FL__OPT_AT(S, field##_ms, uint64_t)
#define FL__OPT_AT_RATE(S, field)        FL__OPT_AT(S, field##_per_s, uint64_t)
#define FL__OPT_AT_STRING(S, field)      FL__OPT_AT(S, field, const char *)
#define FL__OPT_AT_STRING_LIST(S, field) FL__OPT_AT(S, field, struct fl_opt_texts)
#define FL__OPT_AT_INT_LIST(S, field)    FL__OPT_AT(S, field, struct fl_opt_ints)
#define FL__OPT_AT_MAP(S, field)         FL__OPT_AT(S, field, struct fl_opt_map)
/* What a compiler takes for an enum. */
#define FL__OPT_AT_ENUM(S, field) \
    (offsetof(S, field) + _Generic(((S *)0)->field, int : 0, unsigned : 0))

/* A table without rows. */
extern const struct fl_opt_spec fl_opt_none[];

struct fl_options;

/* Creates all options of `specs` (ended by FL_OPT_END_OF) with their defaults. */
FL_MUST_CHECK int fl_options_create(const struct fl_opt_spec *specs, struct fl_options **ret);
FL_MUST_CHECK int fl_options_copy(const struct fl_options *from, struct fl_options **ret);
void fl_options_free(struct fl_options *options);
const struct fl_opt_spec *fl_options_specs(const struct fl_options *options);
/*
 * The struct that the table binds, valid as long as the options. Later changes are visible through
 * the same pointer, so read a text or list again after a change.
 */
const void *fl_options_values(const struct fl_options *options);

/*
 * Sets one option from text, checking type, range and choices. FL_ECONF with what was expected; for
 * an unknown name with the nearest known one. Lists take comma-separated text here.
 */
FL_MUST_CHECK int fl_options_set(struct fl_options *options, const char *name, const char *text,
                                 struct fl_err *err);

/* For code that iterates over a table; `spec` is a row of fl_options_specs(). */

/* True when the option was given; a default alone does not count. */
bool fl_options_given(const struct fl_options *options, const struct fl_opt_spec *spec);
/* Text form of the value as fl_options_set() takes it; returns `out`. Lists and maps by commas
   ("a,b", "k=v,l=w"); secrets as "(not shown)". */
const char *fl_options_show(const struct fl_options *options, const struct fl_opt_spec *spec,
                            char *out, size_t size);

#endif
