#ifndef FL_SIM_POISON_H
#define FL_SIM_POISON_H

/* The training data of attackers that poison it (docs/simulation.md#attackers). Any thread. */

#include "libfl/data/dataset.h"
#include "tools/fl_sim/attack/attack.h"

/*
 * A copy of the samples that an attacker trains on. *ret NULL: the attack does not change them.
 * Returns owned: fl_dataset_free(). FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_poison_make(const struct fl_attack *attack, const struct fl_dataset *train,
                                 struct fl_dataset **ret, struct fl_err *err);

#endif
