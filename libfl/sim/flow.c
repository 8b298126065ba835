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
#include "libfl/sim/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/sim/agenda.h"
#include "libfl/sim/heap_impl.h"

#define NONE       UINT32_MAX
#define RATE_STEPS 256.0
/* What rounding may add to a time: without it 80 MB at 12.5 MB/s could take 6 400 001 us. */
#define SLACK_US 1e-3
#define US_PER_S 1e6

struct flow {
    uint64_t tag;
    uint64_t bytes;
    double mark;         /* of the clock of its class, when it is complete */
    uint32_t class;      /* NONE: complete, and on the agenda */
    uint32_t generation; /* of this place; part of the id */
    uint32_t next_free;
    bool used; /* false in one that is complete: stopped after that */
};

struct class {
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

    struct flow *flows;
    uint32_t *flow_at; /* place in the heap of its class */
    uint32_t n_flows, cap_flows, free_flow;
    uint32_t n_running;

    struct class *classes;
    uint32_t *cap_at, *end_at; /* places in the heaps of its side */
    uint32_t n_classes, cap_classes, free_class;
    uint32_t *buckets; /* classes by their rate */
    uint32_t n_buckets;
    /* By rate, where the level crosses it first; by the end of the first flow: bound ones as time
       from `base`, sharing ones as what the common clock shows then. */
    struct fl__heap bound_caps, bound_ends, sharing_caps, sharing_ends;

    struct fl_agenda complete; /* words[0]: the flow, ranks: its tag */
};

static double rate_of(double rate)
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
    f->hub = rate_of(hub_rate);
    f->level = INFINITY;
    f->free_flow = f->free_class = NONE;
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

/* --- classes --- */

static double clock_of(const struct fl_flows *f, const struct class *c)
{
    return c->bound ? c->clock + c->cap * (f->time - c->clock_us) / US_PER_S : f->clock + c->ahead;
}

/* Put a class that has flows on one side. */
static void join_side(struct fl_flows *f, uint32_t i, bool bound)
{
    struct class *c = &f->classes[i];
    const struct fl__slot *first = &c->flows.slots[0];
    struct fl__slot by_cap = {.key = bound ? -c->cap : c->cap, .item = i};
    struct fl__slot by_end = {.tie = first->tie, .item = i};
    double clock = clock_of(f, c);

    c->bound = bound;
    if (bound) {
        c->clock = clock;
        c->clock_us = f->time;
        by_end.key = c->clock_us + (first->key - clock) / c->cap * US_PER_S;
        f->bound_sum += c->cap * c->flows.n;
        fl__heap_put(&f->bound_caps, f->cap_at, by_cap);
        fl__heap_put(&f->bound_ends, f->end_at, by_end);
    } else {
        c->ahead = clock - f->clock;
        by_end.key = first->key - c->ahead;
        f->n_sharing += c->flows.n;
        fl__heap_put(&f->sharing_caps, f->cap_at, by_cap);
        fl__heap_put(&f->sharing_ends, f->end_at, by_end);
    }
}

static void leave_side(struct fl_flows *f, uint32_t i)
{
    struct class *c = &f->classes[i];

    if (c->bound) {
        f->bound_sum -= c->cap * c->flows.n;
        fl__heap_take(&f->bound_caps, f->cap_at, i);
        fl__heap_take(&f->bound_ends, f->end_at, i);
    } else {
        f->n_sharing -= c->flows.n;
        fl__heap_take(&f->sharing_caps, f->cap_at, i);
        fl__heap_take(&f->sharing_ends, f->end_at, i);
        if (f->n_sharing == 0) {
            c->ahead += f->clock; /* for who puts it back */
            f->clock = 0;         /* small, and so exact, for who shares next */
        }
    }
}

static uint32_t *bucket_of(const struct fl_flows *f, double cap)
{
    uint64_t bits;

    (void)memcpy(&bits, &cap, sizeof(bits));
    return &f->buckets[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (f->n_buckets - 1)];
}

static uint32_t find_class(const struct fl_flows *f, double cap)
{
    uint32_t i = f->n_buckets > 0 ? *bucket_of(f, cap) : NONE;

    while (i != NONE && (f->classes[i].cap < cap || f->classes[i].cap > cap)) {
        i = f->classes[i].next;
    }
    return i;
}

static int rehash(struct fl_flows *f, uint32_t n)
{
    uint32_t *buckets = malloc(n * sizeof(*buckets));
    uint32_t *old = f->buckets;
    uint32_t n_old = f->n_buckets;
    uint32_t b;

    if (buckets == NULL) {
        return FL_ENOMEM;
    }
    for (b = 0; b < n; b++) {
        buckets[b] = NONE;
    }
    f->buckets = buckets;
    f->n_buckets = n;
    for (b = 0; b < n_old; b++) {
        uint32_t i = old[b];

        while (i != NONE) {
            uint32_t next = f->classes[i].next;
            uint32_t *bucket = bucket_of(f, f->classes[i].cap);

            f->classes[i].next = *bucket;
            *bucket = i;
            i = next;
        }
    }
    free(old);
    return FL_OK;
}

static int grow_array(void **array, size_t n, size_t size)
{
    void *grown = realloc(*array, n * size);

    if (grown == NULL) {
        return FL_ENOMEM;
    }
    *array = grown;
    return FL_OK;
}

/* Room for one class more, in every heap that it can come into. */
static int reserve_class(struct fl_flows *f)
{
    struct fl__heap *heaps[] = {&f->bound_caps, &f->bound_ends, &f->sharing_caps, &f->sharing_ends};
    uint32_t cap = f->cap_classes > 0 ? 2 * f->cap_classes : 16;
    int rv = FL_OK;
    size_t i;

    if (f->free_class != NONE || f->n_classes < f->cap_classes) {
        return FL_OK;
    }
    if (f->cap_classes > UINT32_MAX / 4) {
        return FL_ENOMEM;
    }
    for (i = 0; i < sizeof(heaps) / sizeof(heaps[0]) && rv == FL_OK; i++) {
        rv = fl__heap_reserve(heaps[i], cap);
    }
    if (rv != FL_OK || grow_array((void **)&f->classes, cap, sizeof(*f->classes)) != FL_OK ||
        grow_array((void **)&f->cap_at, cap, sizeof(*f->cap_at)) != FL_OK ||
        grow_array((void **)&f->end_at, cap, sizeof(*f->end_at)) != FL_OK ||
        rehash(f, cap) != FL_OK)
    {
        return FL_ENOMEM;
    }
    f->cap_classes = cap;
    return FL_OK;
}

static uint32_t make_class(struct fl_flows *f, double cap)
{
    uint32_t *bucket = bucket_of(f, cap);
    uint32_t i = f->free_class;
    struct class *c;

    if (i != NONE) {
        f->free_class = f->classes[i].next;
    } else {
        i = f->n_classes++;
        f->classes[i] = (struct class){0};
    }
    c = &f->classes[i];
    c->cap = cap;
    c->bound = false;
    c->ahead = -f->clock;
    c->next = *bucket;
    *bucket = i;
    return i;
}

/* Its heap stays for the next one in this place. */
static void drop_class(struct fl_flows *f, uint32_t i)
{
    uint32_t *link = bucket_of(f, f->classes[i].cap);

    while (*link != i) {
        link = &f->classes[*link].next;
    }
    *link = f->classes[i].next;
    f->classes[i].next = f->free_class;
    f->free_class = i;
}

/* --- the level --- */

/* Where the water stands with the sides as they are; when nobody shares, below everything if the
   spokes together are more than the hub. */
static double level_of(const struct fl_flows *f)
{
    if (f->n_sharing == 0) {
        return f->bound_sum <= f->hub ? INFINITY : -INFINITY;
    }
    return (f->hub - f->bound_sum) / f->n_sharing;
}

static void change_side(struct fl_flows *f, uint32_t i)
{
    bool bound = f->classes[i].bound;

    leave_side(f, i);
    join_side(f, i, !bound);
}

/*
 * First those that the level has fallen below go over to share it, then those that it has risen
 * above go back: what the second step does only raises the level, so it undoes nothing of the
 * first.
 */
static void settle(struct fl_flows *f)
{
    if (!f->stale) {
        return;
    }
    f->stale = false;
    while (f->bound_caps.n > 0 && -f->bound_caps.slots[0].key > level_of(f)) {
        change_side(f, f->bound_caps.slots[0].item);
    }
    while (f->sharing_caps.n > 0 && f->sharing_caps.slots[0].key <= level_of(f) &&
           isfinite(f->sharing_caps.slots[0].key))
    {
        change_side(f, f->sharing_caps.slots[0].item);
    }
    f->level = level_of(f);
}

/* --- flows --- */

static int reserve_flow(struct fl_flows *f)
{
    uint32_t cap = f->cap_flows > 0 ? 2 * f->cap_flows : 16;

    /* Every flow under way becomes complete one day, when nothing may fail. */
    if (fl_agenda_reserve(&f->complete, f->complete.n + f->n_running + 1) != FL_OK) {
        return FL_ENOMEM;
    }
    if (f->free_flow != NONE || f->n_flows < f->cap_flows) {
        return FL_OK;
    }
    if (f->cap_flows > UINT32_MAX / 4 ||
        grow_array((void **)&f->flows, cap, sizeof(*f->flows)) != FL_OK ||
        grow_array((void **)&f->flow_at, cap, sizeof(*f->flow_at)) != FL_OK)
    {
        return FL_ENOMEM;
    }
    f->cap_flows = cap;
    return FL_OK;
}

static uint32_t make_flow(struct fl_flows *f)
{
    uint32_t i = f->free_flow;

    if (i != NONE) {
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

/* The class of a rate, with room for one flow more; it may have none yet. */
static int class_for(struct fl_flows *f, double cap, uint32_t *ret)
{
    uint32_t i = find_class(f, cap);

    if (i == NONE) {
        if (reserve_class(f) != FL_OK) {
            return FL_ENOMEM;
        }
        i = make_class(f, cap);
    }
    if (fl__heap_reserve(&f->classes[i].flows, f->classes[i].flows.n + 1) != FL_OK) {
        if (f->classes[i].flows.n == 0) {
            drop_class(f, i);
        }
        return FL_ENOMEM;
    }
    *ret = i;
    return FL_OK;
}

/* `left` bytes are still to go. There is room for it in its class. */
static void join_class(struct fl_flows *f, uint32_t i, uint32_t class, double left)
{
    struct class *c = &f->classes[class];
    struct flow *flow = &f->flows[i];

    if (c->flows.n > 0) {
        leave_side(f, class);
    }
    flow->class = class;
    flow->mark = clock_of(f, c) + left;
    fl__heap_put(&c->flows, f->flow_at,
                 (struct fl__slot){.key = flow->mark, .tie = flow->tag, .item = i});
    join_side(f, class, c->bound);
    f->n_running++;
    f->stale = true;
}

/* Returns the bytes that are still to go. */
static double leave_class(struct fl_flows *f, uint32_t i)
{
    struct flow *flow = &f->flows[i];
    uint32_t class = flow->class;
    struct class *c = &f->classes[class];
    double left = fmin(fmax(flow->mark - clock_of(f, c), 0), (double)flow->bytes);

    leave_side(f, class);
    fl__heap_take(&c->flows, f->flow_at, i);
    if (c->flows.n > 0) {
        join_side(f, class, c->bound);
    } else {
        drop_class(f, class);
    }
    flow->class = NONE;
    f->n_running--;
    f->stale = true;
    return left;
}

/* --- time --- */

/* The first flow to be complete, and when, counted from `base`. */
static uint32_t first_end(const struct fl_flows *f, double *ret)
{
    uint32_t class = NONE;
    double at = INFINITY;

    if (f->bound_ends.n > 0) {
        class = f->bound_ends.slots[0].item;
        at = f->bound_ends.slots[0].key;
    }
    if (f->sharing_ends.n > 0) {
        double wait = (f->sharing_ends.slots[0].key - f->clock) / f->level * US_PER_S;

        if (class == NONE || f->time + wait < at) {
            class = f->sharing_ends.slots[0].item;
            at = f->time + wait;
        }
    }
    *ret = at;
    return class == NONE ? NONE : f->classes[class].flows.slots[0].item;
}

/* The microsecond by which the last byte went; not before now. */
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
        f->clock += f->level * (time - f->time) / US_PER_S;
    }
    f->time = time;
}

/* All its bytes went by `end`. */
static void complete(struct fl_flows *f, uint32_t i, double end)
{
    const struct flow *flow = &f->flows[i];
    struct fl_agenda_event e = {.at = rounded_up(f, end),
                                .rank1 = (uint32_t)(flow->tag >> 32),
                                .rank2 = (uint32_t)flow->tag,
                                .words = {i, flow->generation}};

    (void)leave_class(f, i);
    FL_REQUIRE(fl_agenda_push(&f->complete, &e) == FL_OK); /* reserved with the flow */
}

/* Everything that is complete at `now_us` is on the agenda then. */
static void advance(struct fl_flows *f, uint64_t now_us)
{
    double now = (double)(now_us - f->base);

    FL_REQUIRE(now_us >= f->now);
    while (f->n_running > 0) {
        double end;
        uint32_t i;

        settle(f);
        i = first_end(f, &end);
        /* Twice: what was told to be complete at now is, whatever was rounded since. */
        if (end > now + 2 * SLACK_US) {
            break;
        }
        run_to(f, fmin(fmax(end, f->time), now));
        /* All that end in this instant, before the level is another. */
        do {
            complete(f, i, end);
            i = first_end(f, &end);
        } while (i != NONE && end <= f->time + SLACK_US);
    }
    run_to(f, now);
    f->now = now_us;
    if (f->n_running == 0) {
        f->base = now_us;
        f->time = 0;
    }
}

/*
 * For a change at `now_us`. Within one instant nothing settles before the last change of it, so
 * that the order of changes means nothing.
 */
static void advance_to_change(struct fl_flows *f, uint64_t now_us)
{
    if (now_us != f->now) {
        advance(f, now_us);
    }
}

/* --- what callers do --- */

void fl_flows_set_hub(struct fl_flows *f, uint64_t now_us, double rate)
{
    advance_to_change(f, now_us);
    f->hub = rate_of(rate);
    f->stale = true;
}

int fl_flows_add(struct fl_flows *f, uint64_t now_us, uint64_t bytes, double cap, uint64_t tag,
                 uint64_t *ret_id)
{
    uint32_t class;
    uint32_t i;

    advance_to_change(f, now_us);
    if (reserve_flow(f) != FL_OK || class_for(f, rate_of(cap), &class) != FL_OK) {
        return FL_ENOMEM;
    }
    i = make_flow(f);
    f->flows[i] = (struct flow){
        .tag = tag, .bytes = bytes, .used = true, .generation = f->flows[i].generation};
    join_class(f, i, class, (double)bytes);
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
    if (class == NONE || find_class(f, rate_of(cap)) == class) {
        return FL_OK;
    }
    if (class_for(f, rate_of(cap), &class) != FL_OK) {
        return FL_ENOMEM;
    }
    left = leave_class(f, i);
    join_class(f, i, class, left);
    return FL_OK;
}

void fl_flows_stop(struct fl_flows *f, uint64_t now_us, uint64_t id, uint64_t *ret_done)
{
    uint32_t i = flow_of(f, id);
    uint64_t done = f->flows[i].bytes;

    advance_to_change(f, now_us);
    if (f->flows[i].class != NONE) {
        done -= (uint64_t)ceil(leave_class(f, i));
    }
    drop_flow(f, i);
    if (ret_done != NULL) {
        *ret_done = done;
    }
}

/* The next that is complete and was not stopped since. */
static const struct fl_agenda_event *next_complete(struct fl_flows *f)
{
    const struct fl_agenda_event *e = fl_agenda_peek(&f->complete);
    struct fl_agenda_event gone;

    while (e != NULL && f->flows[e->words[0]].generation != e->words[1]) {
        (void)fl_agenda_pop(&f->complete, &gone);
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
    settle(f);
    (void)first_end(f, &end);
    *ret_at_us = rounded_up(f, end);
    return true;
}

bool fl_flows_pop(struct fl_flows *f, uint64_t now_us, uint64_t *ret_tag)
{
    const struct fl_agenda_event *e;
    struct fl_agenda_event taken;

    advance(f, now_us);
    e = next_complete(f);
    if (e == NULL) {
        return false;
    }
    (void)fl_agenda_pop(&f->complete, &taken);
    *ret_tag = f->flows[taken.words[0]].tag;
    drop_flow(f, (uint32_t)taken.words[0]);
    return true;
}
