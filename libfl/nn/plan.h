#ifndef FL_NN_PLAN_H
#define FL_NN_PLAN_H

/*
 * Places for buffers in one block of memory: buffers that are never needed at the same time may
 * lie in the same place. Private to libfl/nn. Pure.
 */

#include <stddef.h>
#include <stdint.h>

struct fl__buffer {
    uint64_t n;      /* floats, at least 1; sums of all stay below 2^64 */
    size_t from, to; /* the moments at which it is needed, both included */
    uint64_t at;     /* where it lies in the block; set by fl__plan() */
    void *of;        /* the caller's */
};

/* Sets `at` of all and sorts them; returns the floats of the block. */
uint64_t fl__plan(struct fl__buffer *buffers, size_t n);

#endif
