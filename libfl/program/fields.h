#ifndef FL_PROGRAM_FIELDS_H
#define FL_PROGRAM_FIELDS_H

/*
 * JSON fields that are exchanged with programs of the user, the same in files and in messages.
 * `where` names the file or message in errors, FL_EFORMAT.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/model/accuracy.h"
#include "libfl/model/layout.h"

/* Largest integer that JSON readers of other languages represent exactly. */
#define FL_FIELD_EXACT ((UINT64_C(1) << 53) - 1)

/* A count, 0 to FL_FIELD_EXACT. */
FL_MUST_CHECK int fl_field_count(const json_t *object, const char *where, const char *key,
                                 uint64_t *ret, struct fl_err *err);
/* A finite number. */
FL_MUST_CHECK int fl_field_number(const json_t *object, const char *where, const char *key,
                                  double *ret, struct fl_err *err);
/* An evaluation on local test data; `*ret_has`: the field is present. */
FL_MUST_CHECK int fl_field_evaluation(const json_t *object, const char *where, const char *key,
                                      bool *ret_has, struct fl_evaluation *ret, struct fl_err *err);

/* The units of a model with their tensors; with the offset of each when `offsets`. NULL when out of
   memory, as the next. */
json_t *fl_field_units(const struct fl_layout *layout, bool offsets);
/* The network; null for a model without layers. */
json_t *fl_field_network(const size_t *input, size_t n_input, const char *const *layers,
                         size_t n_layers);

#endif
