#ifndef FL_SERVER_WORK_JUDGE_H
#define FL_SERVER_WORK_JUDGE_H

/*
 * Can the federation go on from a checkpoint that was read? What it names it has to have; and a
 * vector that it does not name may only be zero where the algorithm would have begun with zeros
 * there.
 */

#include "server/work/server_work.h"

/*
 * The first state vector that the checkpoint of `round` lacks and may not begin as zero; n_state:
 * none. `anew`: what goes with the clients' part begins anew anyway.
 */
size_t fl_judge_misses(const struct fl_federation *federation, uint64_t round,
                       const struct fl_models_found *found, bool anew);
/*
 * FL_EVERSION, with the way out: the checkpoint of `round` lacks a state vector that it would have
 * if this version had made it (fl_judge_misses()). Else the log says what is zero.
 */
FL_MUST_CHECK int fl_judge_checkpoint(const struct fl_federation *federation, uint64_t round,
                                      const struct fl_models_found *found, bool anew,
                                      struct fl_err *err);
/* Open the mixtures that the checkpoint names, if they are wanted. FL_ENOENT: gone; FL_EFORMAT:
   damaged, or others. */
FL_MUST_CHECK int fl_judge_personal_models(const struct fl_federation *federation, uint64_t round,
                                           const struct fl_models_found *found,
                                           struct fl_personal_models **ret, struct fl_err *err);
/* What clients kept began anew behind the last `round`: so does the server's part of it. */
void fl_judge_begin_anew(const struct fl_federation *federation, uint64_t round,
                         struct fl_outcome *committed);

#endif
