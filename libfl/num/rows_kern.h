#ifndef FL_NUM_ROWS_KERN_H
#define FL_NUM_ROWS_KERN_H

/* Kernels of rows.h, one row of the instruction-set table each; private to libfl/num and its tests.
 */

#include <stddef.h>

/* As the functions of rows.h. */
struct fl__rows_kern {
    void (*gram)(double *gram, size_t stride, const double *x, size_t n, size_t columns);
    void (*sum)(double *sums, const double *members, size_t m, const double *x, size_t n);
    void (*sort)(float *rows, size_t m);
    void (*sort_wide)(double *rows, size_t m);
};

extern const struct fl__rows_kern fl__rows_plain;
#if defined(__x86_64__)
extern const struct fl__rows_kern fl__rows_avx2;
extern const struct fl__rows_kern fl__rows_avx512;
#endif

#endif
