#ifndef FL_CLIENT_TRAIN_COMMAND_IMPL_H
#define FL_CLIENT_TRAIN_COMMAND_IMPL_H

/* Private to the command trainer: a solver and its steps as JSON for the program. */

#include "client/train/trainer_impl.h"
#include "libfl/strategy/external_training.h"

/* Number of parts, with room for the terminating NULL. */
#define FL__PARTS_MAX 32

/* Names of a set of enum fl_part, NULL-terminated. */
void fl__parts_names(unsigned parts, const char *ret[FL__PARTS_MAX + 1]);
/* The vectors that the parts need, a set of 1u << enum fl_persistent_vector. */
unsigned fl__parts_vectors(unsigned parts);
/*
 * FL_CAPABILITY_SPACE, or 0: without a space (NULL), for a program that did not declare it, and for
 * solvers whose steps are their own. The displacement is folded into the space at the end anyway.
 */
unsigned fl__parts_space(const struct fl_persistent *r, const struct fl_space *space,
                         unsigned parts);
/* The parts of the steps of a model beside the global one, by their options; NULL: none. */
unsigned fl__parts_beside(const struct fl_options *beside);
/*
 * Checks that the program can do what this federation needs. FL_EUNIMPL names the capability that
 * it did not declare, or that a program per task cannot have.
 */
FL_MUST_CHECK int fl__parts_check(const struct fl_persistent *r, const char *program,
                                  const struct fl_train_model *model, struct fl_err *err);
/* A policy with its options as JSON text; owned, NULL without memory. */
char *fl__policy_text(const struct fl_policy *policy, const struct fl_options *options);
/*
 * `do` of a task as JSON text; owned, NULL without memory. `summary_seed`: seed of the data summary
 * that the program was asked for, below 2^53.
 */
char *fl__parts_text(const struct fl_solver_ops *solver, const struct fl_options *o,
                     const struct fl_external *external, uint64_t summary_seed);

#endif
