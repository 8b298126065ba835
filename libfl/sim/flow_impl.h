#ifndef FL_SIM_FLOW_IMPL_H
#define FL_SIM_FLOW_IMPL_H

/*
 * Flows whose spokes have the same rate always get the same, so they form a class, which has one
 * clock: the service that each of its flows has got so far, in bytes. A flow is complete when that
 * clock reaches what it showed at its beginning and the flow's bytes more: a mark that no change
 * of rates moves.
 *
 * A class is *bound by its spoke* when the level is above its rate: its clock runs with that rate,
 * and when its first flow is complete is a fixed time. Else it *shares the level*: its clock runs
 * as the common clock does, from which it differs by a constant. When the level crosses the rate
 * of a class, that one class goes over to the other side.
 */

#include "libfl/sim/agenda.h"
#include "libfl/sim/flow.h"
#include "libfl/sim/heap_impl.h"

#define FL__FLOW_NONE     UINT32_MAX
#define FL__FLOW_US_PER_S 1e6

struct fl__flow {
    uint64_t tag;
    uint64_t bytes;
    double mark;         /* of the clock of its class, when it is complete */
    uint32_t class;      /* FL__FLOW_NONE: complete, and on the agenda */
    uint32_t generation; /* of this place; part of the id */
    uint32_t next_free;
    bool used; /* false: the place is free */
};

struct fl__flow_class {
    double cap;             /* INFINITY: unlimited */
    bool bound;             /* by its spoke */
    double clock, clock_us; /* bound: what it showed when */
    double ahead;           /* sharing: of the common clock */
    struct fl__heap flows;  /* by their marks */
    uint32_t next;          /* in its bucket, or among the free */
};

struct fl_flows {
    double hub;    /* INFINITY: unlimited */
    uint64_t now;  /* of the last call */
    uint64_t base; /* times in doubles count from here: the last call without flows */
    double time;   /* how far all clocks have come: now, but while ends before it are dealt with */
    double level;  /* bytes a second; INFINITY while no class shares */
    double bound_sum;
    double clock; /* the common one */
    uint32_t n_sharing;
    bool stale; /* level and sides are those before a change at `now` */

    struct fl__flow *flows;
    uint32_t *flow_at; /* place in the heap of its class */
    uint32_t n_flows, cap_flows, free_flow;
    uint32_t n_running;

    struct fl__flow_class *classes;
    uint32_t *cap_at, *end_at; /* places in the heaps of its side */
    uint32_t n_classes, cap_classes, free_class;
    uint32_t *buckets; /* classes by their rate */
    uint32_t n_buckets;
    /* By rate, where the level crosses it first; by the end of the first flow: bound ones as time
       from `base`, sharing ones as what the common clock shows then. */
    struct fl__heap bound_caps, bound_ends, sharing_caps, sharing_ends;

    struct fl_agenda complete; /* words[0]: the flow, ranks: its tag */
};

/* --- classes (flow_class.c) --- */

/* Make room for `n` items of `size` bytes. FL_ENOMEM: the array is as before. */
FL_MUST_CHECK int fl__flow_grow(void **array, size_t n, size_t size);
/* FL__FLOW_NONE when no flow has that rate. */
uint32_t fl__flow_find_class(const struct fl_flows *f, double cap);
/* The class of a rate, with room for one flow more; it may have none yet. */
FL_MUST_CHECK int fl__flow_class_for(struct fl_flows *f, double cap, uint32_t *ret);
/* `left` bytes are still to go. There is room for it in its class. */
void fl__flow_join(struct fl_flows *f, uint32_t i, uint32_t class, double left);
/* Returns the bytes that are still to go. */
double fl__flow_leave(struct fl_flows *f, uint32_t i);
/* Level and sides after all changes of this instant. */
void fl__flow_settle(struct fl_flows *f);

#endif
