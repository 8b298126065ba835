#ifndef FL_TESTS_CLIENT_SPY_H
#define FL_TESTS_CLIENT_SPY_H

/*
 * A solver that records its arguments and has known results: each step adds SPY_STEP to every
 * parameter. Its inputs are "second", "first" in this order; its client state is "one" (per unit)
 * and "two"; it sends the payload "beside".
 */

#include "tests/lib/client_rig.h"

#define SPY_STEP  0.5f
#define SPY_STEPS 11 /* of an epoch over the data of a rig */
#define SPY_MOVED (SPY_STEP * SPY_STEPS)

struct spy_bytes {
    size_t len;
    double first; /* 0 when there are no bytes */
};

struct spy {
    /* The arguments of the last create(). */
    struct fl_solver_setup setup;
    double start, anchor; /* first entry of each; the anchor is 0 when there is none */
    struct spy_bytes inputs[2], kept[2];
    /* Output of finish(): blocks of this value; at most `len` floats when that is not 0. */
    float keeps[2], sends;
    size_t keeps_len[2], sends_len;
    bool leaves_two; /* "two" stays empty */
    /* Called at the first step; may be NULL. */
    void (*at_step)(void *ctx);
    void *ctx;
};

extern struct spy spy;
extern const struct fl_solver_ops spy_solver;

/* Reset the spy and let the rig train with it; `server` sets the rest. */
void spy_describe(struct rig *r, const struct rig_server *server);

#endif
