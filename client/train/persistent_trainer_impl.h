#ifndef FL_CLIENT_TRAIN_RESIDENT_IMPL_H
#define FL_CLIENT_TRAIN_RESIDENT_IMPL_H

/* Inside the resident trainer: what a solver's steps are, in words for the program. */

#include "client/train/command_impl.h"
#include "libfl/strategy/external_training.h"

/* How many parts there are, and room for the NULL behind them. */
#define FL__PARTS_MAX 32

/* Names of a set of enum fl_part, NULL-terminated. */
void fl__parts_names(unsigned parts, const char *ret[FL__PARTS_MAX + 1]);
/* The vectors that they need, a set of 1u << enum fl_persistent_vector. */
unsigned fl__parts_vectors(unsigned parts);
/*
 * Can the program do what this federation needs? FL_EUNIMPL with the name of what it did not
 * declare.
 */
FL_MUST_CHECK int fl__parts_check(const struct fl_persistent *r, const char *program,
                                  const struct fl_train_model *model, struct fl_err *err);
/*
 * `do` of a task as JSON text; owned, NULL without memory. `offer_seed`: what the program was asked
 * for its offer with, below 2^53.
 */
char *fl__parts_text(const struct fl_solver_ops *solver, const struct fl_options *o,
                     const struct fl_external *outside, uint64_t offer_seed);

#endif
