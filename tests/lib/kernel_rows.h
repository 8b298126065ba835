#ifndef FL_LIB_KERNEL_ROWS_H
#define FL_LIB_KERNEL_ROWS_H

#include "libfl/num/kernels_impl.h"

/* Rows of kernels, whether this processor has them or not. */
static inline size_t kernel_rows(void)
{
    size_t n = 0;

    while (fl__kernels_row(n) != NULL) {
        n++;
    }
    return n;
}

#endif
