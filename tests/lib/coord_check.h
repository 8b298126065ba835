#ifndef FL_LIB_COORD_CHECK_H
#define FL_LIB_COORD_CHECK_H

/*
 * What must hold for a coordinator after every step, whatever the events were. The
 * checker stands outside: it sees events and effects, and lives on when the coordinator
 * is killed and made again from what was durable.
 *
 *   - committed rounds rise by one, and a round is committed at most once
 *   - TASK only after its selection is durable, PLAN only after its plan is
 *   - ACCEPTED only after the update (or the plan that asks for nothing) is durable
 *   - an aggregation lists every accepted update of its (round, attempt) once, in client
 *     order, but of those who were excluded, and nothing else
 *   - within one life, a client that was told ACCEPTED is never told DISMISSED or REJECTED, as long
 *     as it has its number
 *   - a COMMIT counts exactly the durable parts that were not blamed, with their attempt, and
 *     those with an update that are in the aggregation; no other record counts a round that
 *     is not committed
 *   - a number that was released is given to nobody, and nobody is spoken to under it, before the
 *     caller says that it may
 *   - from a pause on no round begins before it is resumed, in this life or another; once it is
 *     answered, or the core that made it itself is PAUSED, it is durable; so is its end
 *   - a server that is STOPPED begins and decides nothing
 *   - numbers of work rise; a due TICK leads somewhere
 */

#include "server/core/coord.h"

/* Numbers of clients that are looked at. */
#define COORD_CHECK_NUMBERS 256

struct coord_check {
    uint64_t committed;   /* newest round whose COMMIT became durable */
    uint64_t n_committed; /* how many did, ever */
    uint64_t last_seq;    /* within a life */
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
    uint64_t begun_round; /* newest selection of this life */
    uint32_t begun_attempt;
    enum fl_event_type wish; /* of the operator, that is not answered; 0: none */
    char broken[256];        /* the first rule that did not hold; "" when all did */
};

void coord_check_init(struct coord_check *c);
void coord_check_done(struct coord_check *c);
/* A new life begins with the state that `resume` describes. */
void coord_check_resume(struct coord_check *c, const struct fl_coord_resume *resume);
/* Before a step: what the event makes durable. */
void coord_check_event(struct coord_check *c, const struct fl_event *ev);
/* After it. */
void coord_check_effects(struct coord_check *c, const struct fl_coord *coord,
                         const struct fl_event *ev, const struct fl_effects *effects);

#endif
