#ifndef FL_JSON_JSON_H
#define FL_JSON_JSON_H

/*
 * JSON output of programs: jansson's trees with numbers in this project's format, and objects of
 * figures.
 *
 * Memory: functions that return json_t return a new reference, or NULL when out of memory;
 * jansson's json_object_set_new() and json_array_append_new() accept NULL and omit the entry.
 * Threading: a tree belongs to one thread.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libfl/base/buf.h"
#include "libfl/figures/eval_metrics.h"
#include "libfl/figures/figures.h"
#include "libfl/figures/robust_clients.h"

/* Counters fit JSON's signed 64 bits for the next centuries. */
json_t *fl_json_whole(uint64_t value);
/* null when it is unknown, or JSON cannot represent it. */
json_t *fl_json_real(double value, bool known);
/* Adds every figure of `record` to `object`, by its key; `totals`: only the figures that have
   totals. */
void fl_json_figures(json_t *object, const struct fl_figures *figures, const void *record,
                     bool totals);
/*
 * The inverse, into a record that fl_figures_init() initialised: a figure that is not in `object`,
 * or is not a number there, keeps its value; null for a figure without a lead becomes NAN.
 */
void fl_json_read_figures(const json_t *object, const struct fl_figures *figures, void *record);
/* {"macro_f1": 0.5} of a text of a round (libfl/figures/eval_metrics.h), and back. */
json_t *fl_json_metrics(const char *text);
void fl_json_read_metrics(const json_t *object, char text[FL_EVAL_METRICS_TEXT]);
/* [{"client": "a", "used": 0, "score": 12.5}] of a text of libfl/figures/robust_clients.h. */
json_t *fl_json_robust_clients(const char *text);
/* The inverse; entries of another form are omitted. NULL is the empty list. */
void fl_json_read_robust_clients(const json_t *list, char text[FL_ROBUST_CLIENTS_TEXT]);
/* Indented by two, ASCII only, with a line end. Takes `value`. */
void fl_json_print(json_t *value, FILE *out);
/* The same on one line. */
void fl_json_print_line(json_t *value, FILE *out);
/* As fl_json_print(), appended to `out`. Takes `value`, also on error. FL_ENOMEM, also beyond the
 * limit. */
FL_MUST_CHECK int fl_json_add_document(struct fl_buf *out, json_t *value);

/* --- numbers that are read back as the same bits --- */

/* Buffer size for any real number. */
#define FL_JSON_EXACT 32

/*
 * The shortest decimal of 15 to 17 digits that is read back as the same bits, with a point or an
 * exponent; "null" for values that JSON cannot represent. Returns `out`.
 */
const char *fl_json_exact(double value, char out[FL_JSON_EXACT]);
/* `text` with its quotes, ASCII only. FL_ENOMEM, also for a text that is not UTF-8; FL_ELIMIT. */
FL_MUST_CHECK int fl_json_add_text(struct fl_buf *out, const char *text);
/*
 * As fl_json_print(), appended to `out`, with exact numbers. Borrows `value`, whose members are in
 * the order in which they were set. FL_ENOMEM, also for NULL; FL_ELIMIT.
 */
FL_MUST_CHECK int fl_json_add(struct fl_buf *out, const json_t *value);

#endif
