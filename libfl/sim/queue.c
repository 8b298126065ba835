#include "libfl/sim/queue.h"

#include <stdlib.h>

#include "libfl/base/err.h"

static bool before(const struct fl__sim_event *a, const struct fl__sim_event *b)
{
    if (a->at != b->at) {
        return a->at < b->at;
    }
    if (a->node != b->node) {
        return a->node < b->node;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind;
    }
    return a->order < b->order;
}

void fl__sim_push(struct fl__sim_queue *q, const struct fl__sim_event *event)
{
    struct fl__sim_event *heap;
    struct fl__sim_event e = *event;
    size_t i = q->n;

    if (q->n == q->cap) {
        size_t cap = q->cap > 0 ? 2 * q->cap : 64;

        heap = realloc(q->heap, cap * sizeof(*heap));
        FL_REQUIRE(heap != NULL);
        q->heap = heap;
        q->cap = cap;
    }
    e.order = q->n_scheduled++;
    while (i > 0 && before(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
    q->n++;
}

bool fl__sim_pop(struct fl__sim_queue *q, struct fl__sim_event *ret)
{
    struct fl__sim_event last;
    size_t i = 0;

    if (q->n == 0) {
        return false;
    }
    *ret = q->heap[0];
    last = q->heap[--q->n];
    while (2 * i + 1 < q->n) {
        size_t child = 2 * i + 1;

        child += child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]);
        if (!before(&q->heap[child], &last)) {
            break;
        }
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
    return true;
}

void fl__sim_queue_done(struct fl__sim_queue *q)
{
    size_t i;

    for (i = 0; i < q->n; i++) {
        free(q->heap[i].data);
    }
    free(q->heap);
}
