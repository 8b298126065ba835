#ifndef FL_SIM_HEAP_H
#define FL_SIM_HEAP_H

/*
 * A simulation frees updates of megabytes in each round and allocates them again in the next.
 * Memory that returns to the kernel comes back as zeroed pages, which costs as much as the work on
 * it. So malloc() is configured to keep it. Call once, at the start of the program.
 */

#include <malloc.h>

static inline void fl_sim_keep_heap(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
}

#endif
