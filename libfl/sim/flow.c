/*
 * Simulated transfers through a shared hub (flow.h): flows, their completion times, and virtual
 * time. Pure computation; classes of flows and the fair level are in flow_class.c.
 */
#include "libfl/sim/flow.h"

#include <math.h>
#include <stdlib.h>

#include "libfl/sim/flow_impl.h"

#define RATE_STEPS 256.0
/* Tolerance of times for rounding: without it 80 MB at 12.5 MB/s could take 6 400 001 us. */
#define SLACK_US 1e-3

static double flow_rate_of(double rate)
{
    FL_REQUIRE(rate >= 0 && isfinite(rate));
    if (rate <= 0) {
        return INFINITY;
    }
    return fmax(nearbyint(rate * RATE_STEPS), 1) / RATE_STEPS;
}

int fl_flows_create(double hub_rate, struct fl_flows **ret)
{
    struct fl_flows *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return FL_ENOMEM;
    }
    f->hub = flow_rate_of(hub_rate);
    f->level = INFINITY;
    f->free_flow = f->free_class = FL__FLOW_NONE;
    *ret = f;
    return FL_OK;
}

void fl_flows_free(struct fl_flows *f)
{
    uint32_t i;

    if (f == NULL) {
        return;
    }
    for (i = 0; i < f->n_classes; i++) {
        fl__heap_done(&f->classes[i].flows);
    }
    fl__heap_done(&f->bound_caps);
    fl__heap_done(&f->bound_ends);
    fl__heap_done(&f->sharing_caps);
    fl__heap_done(&f->sharing_ends);
    fl_agenda_done(&f->complete);
    free(f->classes);
    free(f->cap_at);
    free(f->end_at);
    free(f->buckets);
    free(f->flows);
    free(f->flow_at);
    free(f);
}

/* --- flows --- */

static int reserve_flow(struct fl_flows *f)
{
    uint32_t cap = f->cap_flows > 0 ? 2 * f->cap_flows : 16;

    /* Completing a flow must not fail, so its event is reserved now. */
    if (fl_agenda_reserve(&f->complete, f->complete.n + f->n_running + 1) != FL_OK) {
        return FL_ENOMEM;
    }
    if (f->free_flow != FL__FLOW_NONE || f->n_flows < f->cap_flows) {
        return FL_OK;
    }
    if (f->cap_flows > UINT32_MAX / 4 ||
        fl__flow_grow((void **)&f->flows, cap, sizeof(*f->flows)) != FL_OK ||
        fl__flow_grow((void **)&f->flow_at, cap, sizeof(*f->flow_at)) != FL_OK)
    {
        return FL_ENOMEM;
    }
    f->cap_flows = cap;
    return FL_OK;
}

static uint32_t make_flow(struct fl_flows *f)
{
    uint32_t i = f->free_flow;

    if (i != FL__FLOW_NONE) {
        f->free_flow = f->flows[i].next_free;
    } else {
        i = f->n_flows++;
        f->flows[i].generation = 0;
    }
    return i;
}

static void drop_flow(struct fl_flows *f, uint32_t i)
{
    f->flows[i].generation++;
    f->flows[i].used = false;
    f->flows[i].next_free = f->free_flow;
    f->free_flow = i;
}

static uint32_t flow_of(const struct fl_flows *f, uint64_t id)
{
    uint32_t i = (uint32_t)id;

    FL_REQUIRE(i < f->n_flows && f->flows[i].used && f->flows[i].generation == id >> 32);
    return i;
}

/* --- time --- */

/* The flow that completes first, and its time, relative to `base`. */
static uint32_t first_end(const struct fl_flows *f, double *ret)
{
    uint32_t class = FL__FLOW_NONE;
    double at = INFINITY;

    if (f->bound_ends.n > 0) {
        class = f->bound_ends.slots[0].item;
        at = f->bound_ends.slots[0].key;
    }
    if (f->sharing_ends.n > 0) {
        double wait = (f->sharing_ends.slots[0].key - f->clock) / f->level * FL__FLOW_US_PER_S;

        if (class == FL__FLOW_NONE || f->time + wait < at) {
            class = f->sharing_ends.slots[0].item;
            at = f->time + wait;
        }
    }
    *ret = at;
    return class == FL__FLOW_NONE ? FL__FLOW_NONE : f->classes[class].flows.slots[0].item;
}

/* Round a completion time up to a microsecond, not before now. */
static uint64_t rounded_up(const struct fl_flows *f, double at)
{
    double up = ceil(at - SLACK_US);

    if (up <= (double)(f->now - f->base)) {
        return f->now;
    }
    return up < 0x1p62 ? f->base + (uint64_t)up : UINT64_MAX;
}

static void run_to(struct fl_flows *f, double time)
{
    if (f->n_sharing > 0 && isfinite(f->level)) {
        f->clock += f->level * (time - f->time) / FL__FLOW_US_PER_S;
    }
    f->time = time;
}

/* Complete a flow at `end`. */
static void flow_complete(struct fl_flows *f, uint32_t i, double end)
{
    const struct fl__flow *flow = &f->flows[i];
    struct fl_agenda_event e = {.at = rounded_up(f, end),
                                .rank1 = (uint32_t)(flow->tag >> 32),
                                .rank2 = (uint32_t)flow->tag,
                                .words = {i, flow->generation}};

    (void)fl__flow_leave(f, i);
    /* reserved when the flow was added */
    FL_REQUIRE(fl_agenda_push(&f->complete, &e) == FL_OK);
}

/* Advance to `now_us`: all flows that complete until then are put on the agenda. */
static void flow_advance(struct fl_flows *f, uint64_t now_us)
{
    double now = (double)(now_us - f->base);

    FL_REQUIRE(now_us >= f->now);
    while (f->n_running > 0) {
        double end;
        uint32_t i;

        fl__flow_settle(f);
        i = first_end(f, &end);
        /*
         * Twice the tolerance: a flow that was reported complete at `now` stays so after later
         * rounding.
         */
        if (end > now + 2 * SLACK_US) {
            break;
        }
        run_to(f, fmin(fmax(end, f->time), now));
        /* Complete all flows that end in this instant before the level changes. */
        do {
            flow_complete(f, i, end);
            i = first_end(f, &end);
        } while (i != FL__FLOW_NONE && end <= f->time + SLACK_US);
    }
    run_to(f, now);
    f->now = now_us;
    if (f->n_running == 0) {
        f->base = now_us;
        f->time = 0;
    }
}

/*
 * Advance to a change at `now_us`. Within one instant the level is computed after the last
 * change only, so that the order of changes has no effect.
 */
static void advance_to_change(struct fl_flows *f, uint64_t now_us)
{
    if (now_us != f->now) {
        flow_advance(f, now_us);
    }
}

/* --- interface --- */

int fl_flows_add(struct fl_flows *f, uint64_t now_us, uint64_t bytes, double cap, uint64_t tag,
                 uint64_t *ret_id)
{
    uint32_t class;
    uint32_t i;

    advance_to_change(f, now_us);
    if (reserve_flow(f) != FL_OK || fl__flow_class_for(f, flow_rate_of(cap), &class) != FL_OK) {
        return FL_ENOMEM;
    }
    i = make_flow(f);
    f->flows[i] = (struct fl__flow){
        .tag = tag, .bytes = bytes, .used = true, .generation = f->flows[i].generation};
    fl__flow_join(f, i, class, (double)bytes);
    *ret_id = (uint64_t)f->flows[i].generation << 32 | i;
    return FL_OK;
}

int fl_flows_set_cap(struct fl_flows *f, uint64_t now_us, uint64_t id, double cap)
{
    uint32_t i = flow_of(f, id);
    uint32_t class;
    double left;

    advance_to_change(f, now_us);
    class = f->flows[i].class;
    if (class == FL__FLOW_NONE || fl__flow_find_class(f, flow_rate_of(cap)) == class) {
        return FL_OK;
    }
    if (fl__flow_class_for(f, flow_rate_of(cap), &class) != FL_OK) {
        return FL_ENOMEM;
    }
    left = fl__flow_leave(f, i);
    fl__flow_join(f, i, class, left);
    return FL_OK;
}

void fl_flows_stop(struct fl_flows *f, uint64_t now_us, uint64_t id, uint64_t *ret_done)
{
    uint32_t i = flow_of(f, id);
    uint64_t done = f->flows[i].bytes;

    advance_to_change(f, now_us);
    if (f->flows[i].class != FL__FLOW_NONE) {
        done -= (uint64_t)ceil(fl__flow_leave(f, i));
    }
    drop_flow(f, i);
    if (ret_done != NULL) {
        *ret_done = done;
    }
}

/* The next completed flow that was not stopped. */
static const struct fl_agenda_event *next_complete(struct fl_flows *f)
{
    const struct fl_agenda_event *e = fl_agenda_peek(&f->complete);
    struct fl_agenda_event stopped;

    while (e != NULL && f->flows[e->words[0]].generation != e->words[1]) {
        (void)fl_agenda_pop(&f->complete, &stopped);
        e = fl_agenda_peek(&f->complete);
    }
    return e;
}

bool fl_flows_next(struct fl_flows *f, uint64_t *ret_at_us)
{
    const struct fl_agenda_event *e = next_complete(f);
    double end;

    if (e != NULL) {
        *ret_at_us = e->at;
        return true;
    }
    if (f->n_running == 0) {
        return false;
    }
    fl__flow_settle(f);
    (void)first_end(f, &end);
    *ret_at_us = rounded_up(f, end);
    return true;
}

bool fl_flows_pop(struct fl_flows *f, uint64_t now_us, uint64_t *ret_tag)
{
    const struct fl_agenda_event *e;
    struct fl_agenda_event taken;

    flow_advance(f, now_us);
    e = next_complete(f);
    if (e == NULL) {
        return false;
    }
    (void)fl_agenda_pop(&f->complete, &taken);
    *ret_tag = f->flows[taken.words[0]].tag;
    drop_flow(f, (uint32_t)taken.words[0]);
    return true;
}
