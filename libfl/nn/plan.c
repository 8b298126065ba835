#include "libfl/nn/plan.h"

#include <stdbool.h>
#include <stdlib.h>

/*
 * Each buffer in its turn lies in the lowest place that is free for all its time (first fit). What
 * a forward pass leaves to the backward pass is nested in time: placed before what lives for a
 * moment it is a stack, and the free memory above serves the rest. Which order keeps it so depends
 * on the network; of two the better one is taken (docs/kernels.md#memory).
 */
typedef int order_fn(const void *a, const void *b);

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int longest_first(const void *a, const void *b)
{
    const struct fl__buffer *p = a;
    const struct fl__buffer *q = b;
    int order = compare(q->to - q->from, p->to - p->from);

    order = order == 0 ? compare(q->n, p->n) : order;
    return order == 0 ? compare(p->from, q->from) : order;
}

static int last_needed_first(const void *a, const void *b)
{
    const struct fl__buffer *p = a;
    const struct fl__buffer *q = b;
    int order = compare(q->to, p->to);

    order = order == 0 ? compare(p->from, q->from) : order;
    return order == 0 ? compare(q->n, p->n) : order;
}

static bool in_the_way(const struct fl__buffer *placed, const struct fl__buffer *b, uint64_t at)
{
    return placed->from <= b->to && b->from <= placed->to && placed->at < at + b->n &&
           at < placed->at + placed->n;
}

static uint64_t lowest_place(const struct fl__buffer *placed, size_t n, const struct fl__buffer *b)
{
    uint64_t at = 0;
    size_t i = 0;

    while (i < n) {
        if (in_the_way(&placed[i], b, at)) {
            at = placed[i].at + placed[i].n;
            i = 0;
        } else {
            i++;
        }
    }
    return at;
}

static uint64_t place_all(struct fl__buffer *buffers, size_t n, order_fn *order)
{
    uint64_t end = 0;
    size_t i;

    qsort(buffers, n, sizeof(*buffers), order);
    for (i = 0; i < n; i++) {
        struct fl__buffer *b = &buffers[i];

        b->at = lowest_place(buffers, i, b);
        end = b->at + b->n > end ? b->at + b->n : end;
    }
    return end;
}

uint64_t fl__plan(struct fl__buffer *buffers, size_t n)
{
    uint64_t by_life = place_all(buffers, n, longest_first);
    uint64_t by_end = place_all(buffers, n, last_needed_first);

    return by_end < by_life ? by_end : place_all(buffers, n, longest_first);
}
