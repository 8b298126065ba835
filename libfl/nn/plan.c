#include "libfl/nn/plan.h"

#include <stdbool.h>
#include <stdlib.h>

/*
 * Each buffer in turn is placed at the lowest offset that is free during its lifetime (first
 * fit). Buffers kept from the forward to the backward pass have nested lifetimes: placed first
 * they form a stack, and the free memory above serves the short-lived ones. The best order
 * depends on the network; the better one of two is used (docs/kernels.md#memory).
 */
typedef int order_fn(const void *a, const void *b);

static int plan_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int longest_first(const void *a, const void *b)
{
    const struct fl__buffer *p = a;
    const struct fl__buffer *q = b;
    int order = plan_compare(q->to - q->from, p->to - p->from);

    order = order == 0 ? plan_compare(q->n, p->n) : order;
    return order == 0 ? plan_compare(p->from, q->from) : order;
}

static int last_needed_first(const void *a, const void *b)
{
    const struct fl__buffer *p = a;
    const struct fl__buffer *q = b;
    int order = plan_compare(q->to, p->to);

    order = order == 0 ? plan_compare(p->from, q->from) : order;
    return order == 0 ? plan_compare(q->n, p->n) : order;
}

static bool plan_overlaps(const struct fl__buffer *placed, const struct fl__buffer *b, uint64_t at)
{
    return placed->from <= b->to && b->from <= placed->to && placed->at < at + b->n &&
           at < placed->at + placed->n;
}

static uint64_t plan_lowest_offset(const struct fl__buffer *placed, size_t n,
                                   const struct fl__buffer *b)
{
    uint64_t at = 0;
    size_t i = 0;

    while (i < n) {
        if (plan_overlaps(&placed[i], b, at)) {
            at = placed[i].at + placed[i].n;
            i = 0;
        } else {
            i++;
        }
    }
    return at;
}

static uint64_t plan_place_all(struct fl__buffer *buffers, size_t n, order_fn *order)
{
    uint64_t end = 0;
    size_t i;

    qsort(buffers, n, sizeof(*buffers), order);
    for (i = 0; i < n; i++) {
        struct fl__buffer *b = &buffers[i];

        b->at = plan_lowest_offset(buffers, i, b);
        end = b->at + b->n > end ? b->at + b->n : end;
    }
    return end;
}

uint64_t fl__plan(struct fl__buffer *buffers, size_t n)
{
    uint64_t by_life = plan_place_all(buffers, n, longest_first);
    uint64_t by_end = plan_place_all(buffers, n, last_needed_first);

    return by_end < by_life ? by_end : plan_place_all(buffers, n, longest_first);
}
