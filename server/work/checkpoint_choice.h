#ifndef FL_SERVER_WORK_CHECKPOINT_CHOICE_H
#define FL_SERVER_WORK_CHECKPOINT_CHOICE_H

/*
 * Can the federation resume from a checkpoint that was read? What the checkpoint names has to
 * exist; a vector that it does not name may be zero only where the algorithm would have started
 * with zeros.
 */

#include "server/work/server_work.h"

/* The first state vector that the checkpoint of `round` lacks and that may not start at zero;
   n_state: none. `restart`: client state and the server's part of it are reset anyway. */
size_t fl_judge_misses(const struct fl_federation *federation, uint64_t round,
                       const struct fl_models_found *found, bool restart);
/* FL_EVERSION, with the way out: the checkpoint of `round` lacks a state vector that this
   version would have written (fl_judge_misses()). Else vectors that start at zero are logged. */
FL_MUST_CHECK int fl_judge_checkpoint(const struct fl_federation *federation, uint64_t round,
                                      const struct fl_models_found *found, bool restart,
                                      struct fl_err *err);
/* The checkpoint was made under the settings of this start, which define what an update means. */
bool fl_judge_same_settings(const struct fl_federation *federation,
                            const struct fl_models_found *found);
/* Open the personal models that the checkpoint names, if the strategy needs them. FL_ENOENT:
   missing; FL_EFORMAT: damaged, or of another checkpoint. */
FL_MUST_CHECK int fl_judge_personal_models(const struct fl_federation *federation, uint64_t round,
                                           const struct fl_models_found *found,
                                           struct fl_personal_models **ret, struct fl_err *err);
/* If client state was reset after the last `round`, reset the server's part of it, too. */
void fl_judge_begin_anew(const struct fl_federation *federation, uint64_t round,
                         struct fl_outcome *committed);

#endif
