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

#include "libfl/figures/figures.h"

/* Counters fit JSON's signed 64 bits for the next centuries. */
json_t *fl_json_whole(uint64_t value);
/* null when it is not known, or what JSON has no number for. */
json_t *fl_json_real(double value, bool known);
/* Every figure of `record` into `object`, by its key; `totals`: those only whose totals are told.
 */
void fl_json_figures(json_t *object, const struct fl_figures *figures, const void *record,
                     bool totals);
/* Indented by two, ASCII only, with a line end. Takes `value`. */
void fl_json_print(json_t *value, FILE *out);

#endif
