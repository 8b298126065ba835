#include <stdbool.h>
#include <stdlib.h>

#include "libfl/sim/heap_impl.h"

static bool heap_before(const struct fl__slot *a, const struct fl__slot *b)
{
    if (a->key < b->key || a->key > b->key) {
        return a->key < b->key;
    }
    return a->tie < b->tie;
}

void fl__heap_done(struct fl__heap *heap)
{
    free(heap->slots);
    *heap = (struct fl__heap){0};
}

int fl__heap_reserve(struct fl__heap *heap, uint32_t n)
{
    uint32_t cap = heap->cap > 0 ? heap->cap : 1;
    struct fl__slot *slots;

    if (n <= heap->cap) {
        return FL_OK;
    }
    while (cap < n) {
        if (cap > UINT32_MAX / 2) {
            return FL_ENOMEM;
        }
        cap *= 2;
    }
    slots = realloc(heap->slots, cap * sizeof(*slots));
    if (slots == NULL) {
        return FL_ENOMEM;
    }
    heap->slots = slots;
    heap->cap = cap;
    return FL_OK;
}

/* Put `slot` into the free position `i`, or move it up. */
static void heap_sift_up(struct fl__heap *heap, uint32_t *where, uint32_t i, struct fl__slot slot)
{
    while (i > 0 && heap_before(&slot, &heap->slots[(i - 1) / 2])) {
        heap->slots[i] = heap->slots[(i - 1) / 2];
        where[heap->slots[i].item] = i;
        i = (i - 1) / 2;
    }
    heap->slots[i] = slot;
    where[slot.item] = i;
}

void fl__heap_put(struct fl__heap *heap, uint32_t *where, struct fl__slot slot)
{
    FL_REQUIRE(heap->n < heap->cap);
    heap_sift_up(heap, where, heap->n++, slot);
}

void fl__heap_take(struct fl__heap *heap, uint32_t *where, uint32_t item)
{
    uint32_t i = where[item];
    struct fl__slot last;

    FL_REQUIRE(i < heap->n && heap->slots[i].item == item);
    last = heap->slots[--heap->n];
    if (i == heap->n) {
        return;
    }
    while (2 * i + 1 < heap->n) {
        uint32_t child = 2 * i + 1;

        child += child + 1 < heap->n && heap_before(&heap->slots[child + 1], &heap->slots[child]);
        if (!heap_before(&heap->slots[child], &last)) {
            break;
        }
        heap->slots[i] = heap->slots[child];
        where[heap->slots[i].item] = i;
        i = child;
    }
    /* It may be less than its new parent. */
    heap_sift_up(heap, where, i, last);
}
