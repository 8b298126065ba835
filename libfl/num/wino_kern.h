#ifndef FL_NUM_WINO_KERN_H
#define FL_NUM_WINO_KERN_H

/*
 * Kernels of the convolutions with fewer multiplications (Winograd 1980, in the form of Lavin
 * and Gray 2016), one row per instruction set; private to libfl/num and its tests.
 *
 * A map of outputs is divided into tiles of m x m; the inputs of a tile, the weights and the
 * outputs are transformed to `points` numbers each (the transform points), and for every point a
 * matrix product remains (docs/kernels.md#convolutions):
 *
 *     y = output(m),  m[point] = v[point] u[point],  v = input(x),  u = weights(w)
 *
 * The backward pass is the exact adjoint, including that of the weights:
 *
 *     dw = weights_adjoint(du),  du[point] = v[point]' dm[point],  dm = gradient(dy)
 *     dx = scatter(dv),          dv[point] = dm[point] weights(turn(w))[point]
 *
 * Layouts. Images are NHWC with rows of ldx, ldy floats per sample; channels C and outputs K are
 * multiples of 16. Weights are stored in packed blocks of FL__PANEL outputs, w[K/32][C][r*r][32];
 * when K is an odd multiple of 16 the last packed block is 16 wide. The channels c..c+n of a packed
 * block are one range of floats, and `width` below is 32 or, for such a last block, 16.
 *
 * `plane` is the stride between points in floats, a multiple of 16. With a multiple of a large
 * power of two all points would map to one cache set.
 *
 * Purity: no allocation, no state. Pointers need no alignment; 64 bytes are faster.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/conv.h"

#define FL__PANEL 32 /* outputs per packed block */
#define FL__DEPTH 64 /* maximum rows of u in one product */
/* Maximum number of transform points of a form. */
#define FL__WINO_POINTS 36

/*
 * A Winograd form. Tiles are numbered over the batch: image after image, row after row. A tile
 * that extends over the right or lower edge is clipped.
 */
struct fl__wino_form {
    const char *name;
    size_t points;
    size_t r; /* the kernel is r x r */
    size_t m; /* a tile has m x m outputs */
    /* v[point][tile][c] of the tiles first..first+n, tile stride conv->c. */
    void (*input)(const struct fl_conv *conv, float *v, size_t plane, const float *x, size_t ldx,
                  size_t first, size_t n);
    /*
     * y of these tiles, outputs k..k+width, from m[point][tile][width]; bias points to the bias
     * of output k. NaN passes ReLU.
     */
    void (*output)(const struct fl_conv *conv, float *y, size_t ldy, const float *m, size_t plane,
                   size_t first, size_t n, size_t k, size_t width, const float *bias, bool relu);
    /* m[point][tile][k], tile stride conv->k: adjoint of output without bias and ReLU. */
    void (*gradient)(const struct fl_conv *conv, float *m, size_t plane, const float *dy,
                     size_t lddy, size_t first, size_t n);
    /* Adjoint of input: adds v[point][tile][width] to the channels c..c+width of dx. */
    void (*scatter)(const struct fl_conv *conv, float *dx, size_t lddx, const float *v,
                    size_t plane, size_t first, size_t n, size_t c, size_t width);
    /* u[point][rows][width] from w[rows][r*r][width]; stride between points: rows * width + 16. */
    void (*weights)(float *u, const float *w, size_t rows, size_t width);
    /* Its adjoint, g[rows][r*r][width]. */
    void (*weights_adjoint)(float *g, const float *u, size_t rows, size_t width);
};

enum fl__wino_forms {
    FL__WINO_3X3, /* tiles of 4 x 4, 3 x 3 kernels, stride 1, any map and padding below 3 */
    FL__WINO_5X5, /* tiles of 2 x 2, 5 x 5 kernels, stride 1, any map and padding below 5 */
    FL__WINO_2X2, /* maps of 2 x 2, 3 x 3 kernels, padding 1: a tile is an image, 9 points */
    FL__WINO_FORMS
};

struct fl__wino_kern {
    const struct fl__wino_form *form[FL__WINO_FORMS];
    /*
     * wt[rows][kh*kw][width], the transpose of a part of w: rows are the outputs k..k+rows,
     * columns the channels c..c+width. All of k, rows, c, width are multiples of 16.
     */
    void (*turn)(const struct fl_conv *conv, float *wt, const float *w, size_t k, size_t rows,
                 size_t c, size_t width);
    /* m[tiles][width] = v[tiles][rows] u[rows][width], added to m when `add`. The sums of a row
     * do not depend on how many tiles there are. */
    void (*nn)(float *m, size_t ldm, const float *v, size_t ldv, const float *u, size_t tiles,
               size_t rows, size_t width, bool add);
    /* u[rows][width] = sum over the tiles of v[tile][row] m[tile][column], added when `add`. */
    void (*tn)(float *u, const float *v, size_t ldv, const float *m, size_t ldm, size_t tiles,
               size_t rows, size_t width, bool add);
};

#if defined(__x86_64__)
extern const struct fl__wino_kern fl__wino_avx512;
extern const struct fl__wino_kern fl__wino_avx2;
#endif
/* For every processor. */
extern const struct fl__wino_kern fl__wino_plain;

#endif
