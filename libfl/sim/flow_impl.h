#ifndef FL_SIM_FLOW_IMPL_H
#define FL_SIM_FLOW_IMPL_H

/*
 * Flows whose spokes have the same rate always have the same rate, so they form a class with one
 * clock: the bytes that each of its flows has received so far. A flow is complete when the clock
 * reaches its value at the start of the flow plus the flow's bytes: a mark that does not depend on
 * changes of rates.
 *
 * A class is *bound by its spoke* when the level is above its rate: its clock runs at that rate,
 * and the completion time of its first flow is fixed. Otherwise it *shares the level*: its clock
 * runs like the common clock, with a constant difference. When the level crosses the rate of a
 * class, that class changes to the other side.
 */

#include "libfl/sim/agenda.h"
#include "libfl/sim/flow.h"
#include "libfl/sim/heap_impl.h"

#define FL__FLOW_NONE     UINT32_MAX
#define FL__FLOW_US_PER_S 1e6

struct fl__flow {
    uint64_t tag;
    uint64_t bytes;
    double mark;         /* clock of its class at completion */
    uint32_t class;      /* FL__FLOW_NONE: complete, and on the agenda */
    uint32_t generation; /* generation of this entry; part of the id */
    uint32_t next_free;
    bool used; /* false: the entry is free */
};

struct fl__flow_class {
    double cap;             /* INFINITY: unlimited */
    bool bound;             /* by its spoke */
    double clock, clock_us; /* bound: value of the clock at time clock_us */
    double ahead;           /* sharing: difference to the common clock */
    struct fl__heap flows;  /* by their marks */
    uint32_t next;          /* next in its bucket, or in the free list */
};

struct fl_flows {
    double hub;    /* INFINITY: unlimited */
    uint64_t now;  /* of the last call */
    uint64_t base; /* origin of times in doubles: the last call without flows */
    double time;   /* time of all clocks: now, except while earlier completions are processed */
    double level;  /* bytes per second; INFINITY while no class shares */
    double bound_sum;
    double clock; /* the common clock */
    uint32_t n_sharing;
    bool stale; /* level and sides must be recomputed after a change at `now` */

    struct fl__flow *flows;
    uint32_t *flow_at; /* position in the heap of its class */
    uint32_t n_flows, cap_flows, free_flow;
    uint32_t n_running;

    struct fl__flow_class *classes;
    uint32_t *cap_at, *end_at; /* positions in the heaps of its side */
    uint32_t n_classes, cap_classes, free_class;
    uint32_t *buckets; /* classes by their rate */
    uint32_t n_buckets;
    /*
     * Classes by rate, the one that the level crosses first on top; and by the end of their
     * first flow: of bound classes as time from `base`, of sharing classes as value of the
     * common clock.
     */
    struct fl__heap bound_caps, bound_ends, sharing_caps, sharing_ends;

    struct fl_agenda complete; /* words[0]: the flow, ranks: its tag */
};

/* --- classes (flow_class.c) --- */

/* Grow an array to `n` items of `size` bytes. FL_ENOMEM: the array is unchanged. */
FL_MUST_CHECK int fl__flow_grow(void **array, size_t n, size_t size);
/* The class of a rate; FL__FLOW_NONE when no flow has that rate. */
uint32_t fl__flow_find_class(const struct fl_flows *f, double cap);
/* The class of a rate, with memory reserved for one more flow; it may have no flows yet. */
FL_MUST_CHECK int fl__flow_class_for(struct fl_flows *f, double cap, uint32_t *ret);
/* Add flow `i` with `left` remaining bytes to its class, where memory is reserved. */
void fl__flow_join(struct fl_flows *f, uint32_t i, uint32_t class, double left);
/* Remove flow `i` from its class; returns its remaining bytes. */
double fl__flow_leave(struct fl_flows *f, uint32_t i);
/* Recompute level and sides after all changes of this instant. */
void fl__flow_settle(struct fl_flows *f);

#endif
