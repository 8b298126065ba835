#ifndef FL_SIM_HEAP_H
#define FL_SIM_HEAP_H

/*
 * A program that simulates frees in each round what it takes again in the next: updates, by the
 * megabyte. Given back to the kernel they come back as zeroed pages, which cost as much as what is
 * done with them. Once, at the start of the program.
 */

#include <malloc.h>

static inline void fl_sim_keep_heap(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
}

#endif
