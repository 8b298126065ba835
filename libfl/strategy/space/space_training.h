#ifndef FL_STRATEGY_SPACE_TRAINING_H
#define FL_STRATEGY_SPACE_TRAINING_H

/* Training of a network in a hashed space (space.h). */

#include "libfl/nn/net.h"
#include "libfl/strategy/space/space.h"

/* Of one training. */
struct fl_space_training {
    struct fl_space_map map;
    struct fl_space_steps steps; /* refer to the map: not to be moved */
};

/* For the model that was loaded into the network. FL_ENOMEM: nothing to free. */
FL_MUST_CHECK int fl_space_training_begin(struct fl_net *net, const struct fl_space *space,
                                          uint64_t draw, struct fl_space_training *ret);
void fl_space_training_done(struct fl_space_training *training); /* All zero is allowed. */

#endif
