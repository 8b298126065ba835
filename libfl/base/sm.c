#include "libfl/base/sm.h"

#include <stddef.h>

#include "libfl/base/err.h"

void fl_sm_init(struct fl_sm *sm, const struct fl_sm_state *states, unsigned n_states,
                unsigned initial)
{
    FL_REQUIRE(n_states <= 64 && initial < n_states);
    *sm = (struct fl_sm){.states = states, .n_states = n_states, .state = initial};
}

bool fl_sm_can(const struct fl_sm *sm, unsigned to)
{
    return to < sm->n_states && (sm->states[sm->state].next & FL_SM_TO(to)) != 0;
}

void fl_sm_move(struct fl_sm *sm, unsigned to)
{
    unsigned previous = sm->state;

    FL_REQUIRE(fl_sm_can(sm, to));
    sm->state = to;
    if (sm->trace != NULL) {
        sm->trace(sm, previous, sm->ctx);
    }
    FL_REQUIRE(sm->invariant == NULL || sm->invariant(sm, previous));
}

const char *fl_sm_name(const struct fl_sm *sm)
{
    return sm->states[sm->state].name;
}
