#ifndef FL_SERVER_WORK_AGGREGATION_SPACE_H
#define FL_SERVER_WORK_AGGREGATION_SPACE_H

/*
 * The aggregation of a round in a hashed space (libfl/strategy/space/space.h): the aggregator works
 * on numbers that start at 0, and on its state vectors as numbers. In memory and on disk these are
 * model-sized, P times their numbers, so that they need no format of their own. They start at zero
 * when a draw begins.
 */

#include "server/work/server_work.h"

struct fl__agg_space {
    struct fl_space_map map;
    float *z, *z_new; /* in the layout of updates */
    size_t n_state;
    float *state[FL_AGG_MAX_STATE], *state_new[FL_AGG_MAX_STATE];
};

/*
 * What the aggregator reads, from the model that a round of `draw` starts with. `fresh`: it is the
 * draw's first. FL_ENOMEM.
 */
FL_MUST_CHECK int fl__agg_space_begin(const struct fl_federation *federation,
                                      const struct fl_model_state *model, uint64_t draw, bool fresh,
                                      struct fl__agg_space *ret);
/*
 * From what the aggregator wrote, the new model with its state, and the step to it. FL_ENUMERIC: it
 * left the range of the lattice; FL_ENOMEM.
 */
FL_MUST_CHECK int fl__agg_space_finish(const struct fl__agg_space *space,
                                       const struct fl_hashed_round *round,
                                       const struct fl_model_state *model,
                                       struct fl_model_state *next, struct fl_step *ret,
                                       struct fl_err *err);
void fl__agg_space_done(struct fl__agg_space *space);

#endif
