#ifndef FL_BASE_QUANTITY_H
#define FL_BASE_QUANTITY_H

/*
 * Parsing and printing durations, sizes and rates with units: for options in files and on command
 * lines, fl-sim's network descriptions and tables, benchmarks. A number, with a fraction or an
 * exponent if any, one space if any, and a unit:
 *
 *   time   us, ms, s, m or min, h, d                          base unit: microsecond
 *   size   B or none, K, M, G, T and KiB, MiB, GiB, TiB       base unit: byte
 *          (powers of 1024), kB, MB, GB, TB (of 1000)
 *   rate   bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s,    base unit: bit/s
 *          GB/s (powers of 1000, as links are named)
 *
 * In rates and sizes of powers of 1000, K is accepted for k. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

enum fl_quantity { FL_QUANTITY_TIME, FL_QUANTITY_SIZE, FL_QUANTITY_RATE, FL_QUANTITY_COUNT };

/* A double represents every integer up to this one. */
#define FL_QUANTITY_MAX (UINT64_C(1) << 53)
/* Room for fl_quantity_text(). */
#define FL_QUANTITY_TEXT 40

/* Unit and range of a stored value. */
struct fl_quantity_range {
    enum fl_quantity kind;
    uint64_t step;     /* base units in one of the result: 1000 of a time in ms; at least 1 */
    uint64_t min, max; /* in steps, up to FL_QUANTITY_MAX; max 0: no upper bound but that */
    const char
        *none; /* this word and "0" mean 0, also outside the range; NULL: neither is accepted */
};

/* Parse to base units. FL_EINVAL. */
FL_MUST_CHECK int fl_quantity_parse(enum fl_quantity kind, const char *text, double *ret,
                                    struct fl_err *err);
/*
 * Parse to steps. A rate is rounded to the nearest step; times and sizes must be whole steps.
 * FL_EINVAL, with the expected and the found value and the valid units.
 */
FL_MUST_CHECK int fl_quantity_read(const struct fl_quantity_range *range, const char *text,
                                   uint64_t *ret, struct fl_err *err);
/*
 * Print `value` steps in the largest unit that divides them; parsing gives the same value. 0 is
 * printed as `none` when that is set. The step must be a unit. Returns `out`.
 */
const char *fl_quantity_text(const struct fl_quantity_range *range, uint64_t value, char *out,
                             size_t size);
/* "a duration such as 10s" */
const char *fl_quantity_words(enum fl_quantity kind);
/* "us, ms, s, m, h, d" */
const char *fl_quantity_units(enum fl_quantity kind);
/* Number of base units in the unit `name`; false: no such unit, or "". */
bool fl_quantity_unit(const char *name, enum fl_quantity *ret_kind, double *ret_base);
/* Length of the number at the start of `text`; an e belongs to it only when digits follow. */
size_t fl_quantity_number(const char *text);

#endif
