#ifndef FL_BASE_SM_H
#define FL_BASE_SM_H

/*
 * State machines as tables: which states there are, which moves are allowed,
 * an invariant that holds after every move, and one trace call per move.
 *
 * A forbidden move is a programming error and aborts the process (FL_REQUIRE): code that handles a
 * peer's event checks the state first.
 */

#include <stdbool.h>
#include <stdint.h>

#define FL_SM_TO(state) (UINT64_C(1) << (state))

struct fl_sm_state {
    const char *name;
    uint64_t next; /* Set of FL_SM_TO(state). */
};

struct fl_sm;

typedef bool (*fl_sm_invariant_cb)(const struct fl_sm *sm, unsigned previous);
typedef void (*fl_sm_trace_cb)(const struct fl_sm *sm, unsigned previous, void *ctx);

struct fl_sm {
    const struct fl_sm_state *states;
    unsigned n_states; /* At most 64. */
    unsigned state;
    fl_sm_invariant_cb invariant; /* May be NULL. */
    fl_sm_trace_cb trace;         /* May be NULL. */
    void *ctx;
};

void fl_sm_init(struct fl_sm *sm, const struct fl_sm_state *states, unsigned n_states,
                unsigned initial);
bool fl_sm_can(const struct fl_sm *sm, unsigned to);
void fl_sm_move(struct fl_sm *sm, unsigned to);
const char *fl_sm_name(const struct fl_sm *sm);

#endif
