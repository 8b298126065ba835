#ifndef FL_LIB_COORD_CHECK_H
#define FL_LIB_COORD_CHECK_H

/*
 * Invariants of a coordinator after every step, for any events. The checker is outside: it sees
 * events and effects, and survives when the coordinator is killed and created again from its
 * durable state.
 *
 *   - committed rounds increase by one, and a round is committed at most once
 *   - TASK only after its selection is durable, PLAN only after its plan is
 *   - ACCEPTED only after the update (or the plan with an empty mask) is durable
 *   - an aggregation lists every accepted update of its (round, attempt) once, in client order,
 * except those of excluded clients, and nothing else
 *   - within one process, a client that received ACCEPTED never receives DISMISSED or REJECTED, as
 * long as it has its number
 *   - a COMMIT marks as aggregated exactly the durable participants that were not rejected, with
 * their attempt, and those with an update that are in the aggregation; no other record marks a
 * round that is not committed
 *   - a released number is not assigned to a client and receives no commands before the caller
 * frees it
 *   - after a pause no round starts before a resume, also after a restart; once the pause is
 * answered, or a coordinator that paused itself is PAUSED, it is durable; so is its end
 *   - a quarantined client gets no work
 *   - a server that is STOPPED starts and decides nothing
 *   - work numbers increase; a due TICK has an effect
 */

#include "server/core/coord.h"

/* Client numbers that are checked. */
#define COORD_CHECK_NUMBERS 256

struct coord_check {
    uint64_t committed;   /* newest round whose COMMIT became durable */
    uint64_t n_committed; /* number of durable COMMITs */
    uint64_t last_seq;    /* since the last restart */
    struct check_fact *facts;
    size_t n_facts;
    size_t cap_facts;
    struct check_work *works;
    size_t n_works;
    size_t cap_works;
    bool gone[COORD_CHECK_NUMBERS]; /* RELEASE was emitted and not answered */
    unsigned lives;
    bool pause_durable, pause_wanted, pause_failed;
    bool stopped;
    uint64_t begun_round; /* newest selection since the last restart */
    uint32_t begun_attempt;
    enum fl_event_type wish; /* unanswered operator command; 0: none */
    char broken[256];        /* the first violated rule; "" when none */
};

void coord_check_init(struct coord_check *c);
void coord_check_done(struct coord_check *c);
/* Restart with the state in `resume`. */
void coord_check_resume(struct coord_check *c, const struct fl_coord_resume *resume);
/* Before a step: record what the event makes durable. */
void coord_check_event(struct coord_check *c, const struct fl_event *ev);
/* After the step: check its effects. */
void coord_check_effects(struct coord_check *c, const struct fl_coord *coord,
                         const struct fl_event *ev, const struct fl_effects *effects);

#endif
