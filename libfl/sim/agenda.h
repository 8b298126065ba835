#ifndef FL_SIM_AGENDA_H
#define FL_SIM_AGENDA_H

/*
 * Event queue of a discrete-event simulation: a heap of events. Order: lower time first; at equal
 * time lower `rank1`, then lower `rank2`, then the order of scheduling. The unit of time and the
 * meaning of ranks and words are defined by the owner.
 *
 * Events cannot be removed: an obsolete event is ignored when it is popped. Mark it with one of its
 * words (the generation of a node, the number of a timer).
 *
 * Ownership: an agenda owns only its heap; `data` of events is owned by the caller. Threading:
 * none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_agenda_event {
    uint64_t at;
    uint32_t rank1, rank2;
    uint64_t order; /* order of scheduling, from 0; set by fl_agenda_push() */
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

/* Free the heap; the agenda is then empty and can be used again. */
void fl_agenda_done(struct fl_agenda *agenda);
/* Reserve memory for `n` events in total: pushing up to `n` does not fail. FL_ENOMEM. */
FL_MUST_CHECK int fl_agenda_reserve(struct fl_agenda *agenda, size_t n);
/* Add an event; copies `event`. FL_ENOMEM: the agenda is unchanged. */
FL_MUST_CHECK int fl_agenda_push(struct fl_agenda *agenda, const struct fl_agenda_event *event);
/* The next event, valid until the next push or pop; NULL: none. */
const struct fl_agenda_event *fl_agenda_peek(const struct fl_agenda *agenda);
/* Remove the next event; false when there is none. */
bool fl_agenda_pop(struct fl_agenda *agenda, struct fl_agenda_event *ret);

#endif
