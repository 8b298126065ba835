#ifndef FL_NUM_DENSE_KERN_H
#define FL_NUM_DENSE_KERN_H

/*
 * Dense kernels, one row per instruction set; private to libfl/num and its tests. They are faster
 * than BLAS for small products: few rows of x (docs/kernels.md#dense-layers).
 *
 * All need the layout rules of dense.h.
 */

#include <stdbool.h>
#include <stddef.h>

/* Rows of dW that a kernel computes at once; blocks are multiples of it. */
#define FL__DENSE_DW_ROWS 8
/* Maximum number of outputs of a small-n layer (fl_dense_small_n()). */
#define FL__DENSE_SMALL_N 12

struct fl__dense_kern {
    const char *name;
    /*
     * The kernels are used for smaller batches; from here on BLAS is as fast. SIZE_MAX: always,
     * as for small-n layers.
     */
    size_t batch_below;
    /* bias NULL: none. */
    void (*forward)(float *y, size_t ldy, const float *x, size_t ldx, const float *w,
                    const float *bias, size_t batch, size_t in, size_t out, bool relu);
    /* With w[out][in], for small-n layers. */
    void (*forward_small_n)(float *y, size_t ldy, const float *x, size_t ldx, const float *w,
                            const float *bias, size_t batch, size_t in, size_t out, bool relu);
    /* NULL: BLAS is faster. */
    void (*backward_data)(float *dx, size_t lddx, const float *dy, size_t lddy, const float *w,
                          size_t batch, size_t in, size_t out);
    /* g[rows][out] = x^T dy for `rows` columns of x; writes up to 15 floats after g. */
    void (*weights)(float *g, const float *x, size_t ldx, const float *dy, size_t lddy,
                    size_t batch, size_t rows, size_t out);
};

#if defined(__x86_64__)
extern const struct fl__dense_kern fl__dense_avx512;
extern const struct fl__dense_kern fl__dense_avx2;
#endif
/* For every processor. */
extern const struct fl__dense_kern fl__dense_plain;

#endif
