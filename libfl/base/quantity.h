#ifndef FL_BASE_QUANTITY_H
#define FL_BASE_QUANTITY_H

/*
 * Spans of time, sizes and rates as people write them, the only reader of units: options in files
 * and on command lines, fl-sim's descriptions of networks and its tables, benchmarks. A number,
 * with a fraction or an exponent if any, one space if any, and a unit:
 *
 *   time   us, ms, s, m or min, h, d                          base unit: microsecond
 *   size   B or none, K, M, G, T and KiB, MiB, GiB, TiB       base unit: byte
 *          (powers of 1024), kB, MB, GB, TB (of 1000)
 *   rate   bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s,    base unit: bit/s
 *          GB/s (powers of 1000, as links are named)
 *
 * K for k is taken in rates and sizes of powers of 1000. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

enum fl_quantity { FL_QUANTITY_TIME, FL_QUANTITY_SIZE, FL_QUANTITY_RATE, FL_QUANTITY_COUNT };

/* Up to here a double holds every whole number. */
#define FL_QUANTITY_MAX (UINT64_C(1) << 53)
/* Room for fl_quantity_text(). */
#define FL_QUANTITY_TEXT 40

/* What one value is stored in, and its range. */
struct fl_quantity_range {
    enum fl_quantity kind;
    uint64_t step;     /* base units in one of the result: 1000 of a time in ms; at least 1 */
    uint64_t min, max; /* in steps, up to FL_QUANTITY_MAX; max 0: no upper bound but that */
    const char *none;  /* this word, and "0", are 0, outside of the range; NULL: neither is taken */
};

/* In base units. FL_EINVAL. */
FL_MUST_CHECK int fl_quantity_parse(enum fl_quantity kind, const char *text, double *ret,
                                    struct fl_err *err);
/*
 * In steps. A rate is rounded to the next step; of times and sizes only whole steps are taken.
 * FL_EINVAL, with what was expected, what was found and the units that there are.
 */
FL_MUST_CHECK int fl_quantity_read(const struct fl_quantity_range *range, const char *text,
                                   uint64_t *ret, struct fl_err *err);
/*
 * `value` steps in the largest unit of which they are a whole number, which reads back as the same;
 * 0 is `none` where there is that. The step is a unit. Returns `out`.
 */
const char *fl_quantity_text(const struct fl_quantity_range *range, uint64_t value, char *out,
                             size_t size);
/* "a duration such as 10s" */
const char *fl_quantity_words(enum fl_quantity kind);
/* "us, ms, s, m, h, d" */
const char *fl_quantity_units(enum fl_quantity kind);
/* Base units in one of the unit `name`; false: there is no such unit. "" is none. */
bool fl_quantity_unit(const char *name, enum fl_quantity *ret_kind, double *ret_base);
/* Length of the number that `text` begins with; an e is of it only when digits follow. */
size_t fl_quantity_number(const char *text);

#endif
