#ifndef FL_SIM_POISON_H
#define FL_SIM_POISON_H

/* The training data of attackers that poison it, and the test data that shows how far a backdoor
   works (docs/simulation.md#attackers). Any thread. */

#include "libfl/data/dataset.h"
#include "tools/fl_sim/attack/attack.h"

/*
 * A copy of the samples that an attacker trains on. *ret NULL: the attack does not change them.
 * Returns owned: fl_dataset_free(). FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_poison_make(const struct fl_attack *attack, const struct fl_dataset *train,
                                 struct fl_dataset **ret, struct fl_err *err);
/*
 * The test samples of all classes but that of the backdoor, with the trigger and labelled as its
 * class: the accuracy of a model on them is the success rate of the backdoor. *ret NULL: there are
 * none. Returns owned, errors as above.
 */
FL_MUST_CHECK int fl_poison_triggered(const struct fl_dataset *test, struct fl_dataset **ret,
                                      struct fl_err *err);

#endif
