#ifndef FL_NN_PLAN_H
#define FL_NN_PLAN_H

/*
 * Placement of buffers in one block of memory: buffers that are never needed at the same time
 * may overlap. Private to libfl/nn. Pure.
 */

#include <stddef.h>
#include <stdint.h>

struct fl__buffer {
    uint64_t n;      /* floats, at least 1; sums of all stay below 2^64 */
    size_t from, to; /* lifetime: first and last time at which it is needed */
    uint64_t at;     /* offset in the block; set by fl__plan() */
    void *of;        /* the caller's */
};

/* Set `at` of all buffers and sort them; returns the size of the block in floats. */
uint64_t fl__plan(struct fl__buffer *buffers, size_t n);

#endif
