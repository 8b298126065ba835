#ifndef FL_JSON_JSON_H
#define FL_JSON_JSON_H

/*
 * JSON that programs print: jansson's trees with numbers as ours are, and objects of figures.
 *
 * Memory: what returns a json_t returns a new reference, or NULL without memory; jansson's
 * json_object_set_new() and json_array_append_new() take that and leave the entry out.
 * Threading: a tree belongs to one thread.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libfl/base/buf.h"
#include "libfl/figures/figures.h"

/* Counters fit JSON's signed 64 bits for the next centuries. */
json_t *fl_json_whole(uint64_t value);
/* null when it is not known, or what JSON has no number for. */
json_t *fl_json_real(double value, bool known);
/* Every figure of `record` into `object`, by its key; `totals`: those only whose totals are told.
 */
void fl_json_figures(json_t *object, const struct fl_figures *figures, const void *record,
                     bool totals);
/*
 * The inverse, into a record that began with fl_figures_init(): a figure that is not in `object`,
 * or is no number there, stays as it is; what has no lead and is null is not a number (NAN).
 */
void fl_json_read_figures(const json_t *object, const struct fl_figures *figures, void *record);
/* Indented by two, ASCII only, with a line end. Takes `value`. */
void fl_json_print(json_t *value, FILE *out);

/* --- numbers that are read back as they were --- */

/* Room for any real number. */
#define FL_JSON_EXACT 32

/*
 * The shortest decimal of 15 to 17 digits that is read back as the same bits, with a point or an
 * exponent; "null" for what JSON has no number for. Returns `out`.
 */
const char *fl_json_exact(double value, char out[FL_JSON_EXACT]);
/* `text` with its quotes, ASCII only. FL_ENOMEM, also of a text that is no UTF-8; FL_ELIMIT. */
FL_MUST_CHECK int fl_json_add_text(struct fl_buf *out, const char *text);
/*
 * As fl_json_print(), to the end of `out`, with exact numbers. Borrows `value`, whose members come
 * in the order in which they were set. FL_ENOMEM, also of NULL; FL_ELIMIT.
 */
FL_MUST_CHECK int fl_json_add(struct fl_buf *out, const json_t *value);

#endif
