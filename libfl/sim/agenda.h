#ifndef FL_SIM_AGENDA_H
#define FL_SIM_AGENDA_H

/*
 * What will happen in a virtual world: a heap of events. Order: lower time first; at equal time
 * lower `rank1`, then lower `rank2`, then the order of scheduling. What time counts in, and what
 * the ranks and the words of an event mean, is the owner's.
 *
 * An event that is no longer wanted is let come and thrown away then: put into one of its words
 * what tells (the life of a node, the number of a timer).
 *
 * Ownership: an agenda borrows nothing and owns nothing but its heap; `data` of events stays
 * their owner's. Threading: none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_agenda_event {
    uint64_t at;
    uint32_t rank1, rank2;
    uint64_t order; /* of scheduling, from 0; fl_agenda_push() sets it */
    uint64_t words[2];
    void *data;
};

/* All zero: empty. */
struct fl_agenda {
    struct fl_agenda_event *heap;
    size_t n;
    size_t cap;
    uint64_t n_scheduled;
};

/* Frees the heap; the agenda is empty then, and can be used again. */
void fl_agenda_done(struct fl_agenda *agenda);
/* Room for `n` events in all: pushing up to there does not fail. FL_ENOMEM. */
FL_MUST_CHECK int fl_agenda_reserve(struct fl_agenda *agenda, size_t n);
/* Copies `event`. FL_ENOMEM: the agenda is as before. */
FL_MUST_CHECK int fl_agenda_push(struct fl_agenda *agenda, const struct fl_agenda_event *event);
/* The next event, until the next push or pop; NULL when there is none. */
const struct fl_agenda_event *fl_agenda_peek(const struct fl_agenda *agenda);
/* Take the next event out; false when there is none. */
bool fl_agenda_pop(struct fl_agenda *agenda, struct fl_agenda_event *ret);

#endif
