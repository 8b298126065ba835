#ifndef FL_NUM_ROWS_KERN_H
#define FL_NUM_ROWS_KERN_H

/* Kernels of rows.h, one row of the instruction-set table each; private to libfl/num and its tests.
 */

#include <stddef.h>
#include <stdint.h>

/* As the functions of rows.h. */
struct fl__rows_kern {
    void (*gram)(double *gram, size_t stride, const float *x, size_t row, size_t n, size_t columns);
    void (*sum)(double *sums, const uint8_t *groups, size_t m, const float *x, size_t n);
    void (*load)(float *tile, const float *x, size_t row, size_t m, size_t n);
    void (*sort)(float *rows, size_t m);
    void (*sort_wide)(double *rows, size_t m);
    void (*widen)(double *wide, const float *x, size_t n);
    void (*mean)(double *out, const double *rows, size_t from, size_t to);
    void (*nearest)(double *out, double *low, double *high, const double *rows, size_t m, size_t f,
                    const double *middle);
    size_t (*between)(const float *x, const double *low, const double *high, size_t n);
    size_t (*between_wide)(const double *x, const double *low, const double *high, size_t n);
};

extern const struct fl__rows_kern fl__rows_plain;
#if defined(__x86_64__)
extern const struct fl__rows_kern fl__rows_avx2;
extern const struct fl__rows_kern fl__rows_avx512;
#endif

#endif
