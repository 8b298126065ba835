#ifndef FL_SIM_HEAP_IMPL_H
#define FL_SIM_HEAP_IMPL_H

/*
 * A heap of numbered items, lowest key first, then lowest tie, with the position of each item in
 * `where`, so that any item can be removed. Several heaps can share one `where` if an item is in
 * only one of them at a time.
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
/* FL_ENOMEM: the heap is unchanged. */
FL_MUST_CHECK int fl__heap_reserve(struct fl__heap *heap, uint32_t n);
/* Add an item; memory must be reserved. */
void fl__heap_put(struct fl__heap *heap, uint32_t *where, struct fl__slot slot);
/* Remove an item, which must be in the heap. */
void fl__heap_take(struct fl__heap *heap, uint32_t *where, uint32_t item);

#endif
