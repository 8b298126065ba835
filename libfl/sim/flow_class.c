/*
 * Classes of flows with equal spoke rates, their two sides (bound by the spoke, sharing the
 * level), and the computation of the level (flow_impl.h). Pure computation; virtual time is in
 * flow.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/sim/flow_impl.h"

/* --- classes --- */

static double clock_of(const struct fl_flows *f, const struct fl__flow_class *c)
{
    return c->bound ? c->clock + c->cap * (f->time - c->clock_us) / FL__FLOW_US_PER_S
                    : f->clock + c->ahead;
}

/* Put a class with flows on one side. */
static void join_side(struct fl_flows *f, uint32_t i, bool bound)
{
    struct fl__flow_class *c = &f->classes[i];
    const struct fl__slot *first = &c->flows.slots[0];
    struct fl__slot by_cap = {.key = bound ? -c->cap : c->cap, .item = i};
    struct fl__slot by_end = {.tie = first->tie, .item = i};
    double clock = clock_of(f, c);

    c->bound = bound;
    if (bound) {
        c->clock = clock;
        c->clock_us = f->time;
        by_end.key = c->clock_us + (first->key - clock) / c->cap * FL__FLOW_US_PER_S;
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
    struct fl__flow_class *c = &f->classes[i];

    if (c->bound) {
        f->bound_sum -= c->cap * c->flows.n;
        fl__heap_take(&f->bound_caps, f->cap_at, i);
        fl__heap_take(&f->bound_ends, f->end_at, i);
    } else {
        f->n_sharing -= c->flows.n;
        fl__heap_take(&f->sharing_caps, f->cap_at, i);
        fl__heap_take(&f->sharing_ends, f->end_at, i);
        if (f->n_sharing == 0) {
            c->ahead += f->clock; /* used when the class is put back */
            f->clock = 0;         /* small, so exact, for the next sharing class */
        }
    }
}

static uint32_t *flow_class_bucket_of(const struct fl_flows *f, double cap)
{
    uint64_t bits;

    (void)memcpy(&bits, &cap, sizeof(bits));
    return &f->buckets[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (f->n_buckets - 1)];
}

uint32_t fl__flow_find_class(const struct fl_flows *f, double cap)
{
    uint32_t i = f->n_buckets > 0 ? *flow_class_bucket_of(f, cap) : FL__FLOW_NONE;

    while (i != FL__FLOW_NONE && (f->classes[i].cap < cap || f->classes[i].cap > cap)) {
        i = f->classes[i].next;
    }
    return i;
}

static int flow_class_rehash(struct fl_flows *f, uint32_t n)
{
    uint32_t *buckets = malloc(n * sizeof(*buckets));
    uint32_t *old = f->buckets;
    uint32_t n_old = f->n_buckets;
    uint32_t b;

    if (buckets == NULL) {
        return FL_ENOMEM;
    }
    for (b = 0; b < n; b++) {
        buckets[b] = FL__FLOW_NONE;
    }
    f->buckets = buckets;
    f->n_buckets = n;
    for (b = 0; b < n_old; b++) {
        uint32_t i = old[b];

        while (i != FL__FLOW_NONE) {
            uint32_t next = f->classes[i].next;
            uint32_t *bucket = flow_class_bucket_of(f, f->classes[i].cap);

            f->classes[i].next = *bucket;
            *bucket = i;
            i = next;
        }
    }
    free(old);
    return FL_OK;
}

int fl__flow_grow(void **array, size_t n, size_t size)
{
    void *grown = realloc(*array, n * size);

    if (grown == NULL) {
        return FL_ENOMEM;
    }
    *array = grown;
    return FL_OK;
}

/* Reserve memory for one more class in all heaps. */
static int reserve_class(struct fl_flows *f)
{
    struct fl__heap *heaps[] = {&f->bound_caps, &f->bound_ends, &f->sharing_caps, &f->sharing_ends};
    uint32_t cap = f->cap_classes > 0 ? 2 * f->cap_classes : 16;
    size_t i;

    if (f->free_class != FL__FLOW_NONE || f->n_classes < f->cap_classes) {
        return FL_OK;
    }
    if (f->cap_classes > UINT32_MAX / 4) {
        return FL_ENOMEM;
    }
    for (i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
        if (fl__heap_reserve(heaps[i], cap) != FL_OK) {
            return FL_ENOMEM;
        }
    }
    if (fl__flow_grow((void **)&f->classes, cap, sizeof(*f->classes)) != FL_OK ||
        fl__flow_grow((void **)&f->cap_at, cap, sizeof(*f->cap_at)) != FL_OK ||
        fl__flow_grow((void **)&f->end_at, cap, sizeof(*f->end_at)) != FL_OK ||
        flow_class_rehash(f, cap) != FL_OK)
    {
        return FL_ENOMEM;
    }
    f->cap_classes = cap;
    return FL_OK;
}

static uint32_t make_class(struct fl_flows *f, double cap)
{
    uint32_t *bucket = flow_class_bucket_of(f, cap);
    uint32_t i = f->free_class;
    struct fl__flow_class *c;

    if (i != FL__FLOW_NONE) {
        f->free_class = f->classes[i].next;
    } else {
        i = f->n_classes++;
        f->classes[i] = (struct fl__flow_class){0};
    }
    c = &f->classes[i];
    c->cap = cap;
    c->bound = false;
    c->ahead = -f->clock;
    c->next = *bucket;
    *bucket = i;
    return i;
}

/* Its heap is kept for reuse. */
static void drop_class(struct fl_flows *f, uint32_t i)
{
    uint32_t *link = flow_class_bucket_of(f, f->classes[i].cap);

    while (*link != i) {
        link = &f->classes[*link].next;
    }
    *link = f->classes[i].next;
    f->classes[i].next = f->free_class;
    f->free_class = i;
}

/* --- the level --- */

/*
 * The level with the current sides; when no class shares: -INFINITY if the spokes together
 * exceed the hub, else INFINITY.
 */
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
 * First, bound classes above the level start sharing it; then sharing classes below the level
 * become bound. The second step only raises the level, so it does not undo the first.
 */
void fl__flow_settle(struct fl_flows *f)
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

/* --- flows of a class --- */

/* The class of a rate, with memory reserved for one more flow; it may have no flows yet. */
int fl__flow_class_for(struct fl_flows *f, double cap, uint32_t *ret)
{
    uint32_t i = fl__flow_find_class(f, cap);

    if (i == FL__FLOW_NONE) {
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

/* Add flow `i` with `left` remaining bytes to its class, where memory is reserved. */
void fl__flow_join(struct fl_flows *f, uint32_t i, uint32_t class, double left)
{
    struct fl__flow_class *c = &f->classes[class];
    struct fl__flow *flow = &f->flows[i];

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

/* Remove flow `i` from its class; returns its remaining bytes. */
double fl__flow_leave(struct fl_flows *f, uint32_t i)
{
    struct fl__flow *flow = &f->flows[i];
    uint32_t class = flow->class;
    struct fl__flow_class *c = &f->classes[class];
    double left = fmin(fmax(flow->mark - clock_of(f, c), 0), (double)flow->bytes);

    leave_side(f, class);
    fl__heap_take(&c->flows, f->flow_at, i);
    if (c->flows.n > 0) {
        join_side(f, class, c->bound);
    } else {
        drop_class(f, class);
    }
    flow->class = FL__FLOW_NONE;
    f->n_running--;
    f->stale = true;
    return left;
}
