#ifndef FL_SIM_HEAP_IMPL_H
#define FL_SIM_HEAP_IMPL_H

/*
 * A heap of numbered items, lowest key first, then lowest tie, that knows where each item stands,
 * so that any of them can be taken out. Several heaps can share one `where`, when an item is in
 * one of them at a time.
 */

#include <stdint.h>

#include "libfl/base/err.h"

struct fl__slot {
    double key;
    uint64_t tie;
    uint32_t item;
};

struct fl__heap {
    struct fl__slot *slots;
    uint32_t n;
    uint32_t cap;
};

void fl__heap_done(struct fl__heap *heap);
/* FL_ENOMEM: the heap is as before. */
FL_MUST_CHECK int fl__heap_reserve(struct fl__heap *heap, uint32_t n);
/* There is room for it. */
void fl__heap_put(struct fl__heap *heap, uint32_t *where, struct fl__slot slot);
/* The heap has the item. */
void fl__heap_take(struct fl__heap *heap, uint32_t *where, uint32_t item);

#endif
