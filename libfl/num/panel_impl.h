#ifndef FL_NUM_PANEL_IMPL_H
#define FL_NUM_PANEL_IMPL_H

/*
 * Products with packed blocks of FL__PANEL columns, and transposed packed blocks (wino_kern.h). The
 * including file defines FL__LANES and
 *
 *     FL__PANEL_ROWS    rows whose sums are kept in registers, times 2 vectors; at most 14
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"

#define PANEL_COLS 2

/*
 * Layout of the left factor: forward its rows are those of the result; for the gradient of the
 * weights they are the summation index.
 */
struct left {
    const float *p;
    size_t row, step; /* strides in floats between rows of the result, and between terms of a sum */
};

/* d[rows][cols vectors] (+)= the sum over `depth` of left by b. */
INLINE void packed_product_block(size_t rows, size_t cols, float *d, size_t ldd, struct left a,
                                 const float *b, size_t ldb, size_t depth, bool add)
{
    vec acc[FL__PANEL_ROWS][PANEL_COLS];
    size_t r, j, k;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = (vec){0};
        }
    }
    for (k = 0; k < depth; k++) {
        vec row[PANEL_COLS];

        UNROLL for (j = 0; j < cols; j++)
        {
            row[j] = load(b + k * ldb + j * FL__LANES);
        }
        UNROLL for (r = 0; r < rows; r++)
        {
            vec x = broadcast(a.p[r * a.row + k * a.step]);

            UNROLL for (j = 0; j < cols; j++)
            {
                acc[r][j] += x * row[j];
            }
        }
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            float *p = d + r * ldd + j * FL__LANES;

            store(p, add ? load(p) + acc[r][j] : acc[r][j]);
        }
    }
}

INLINE void packed_product_cols(size_t rows, size_t width, float *d, size_t ldd, struct left a,
                                const float *b, size_t ldb, size_t depth, bool add)
{
    size_t cols = width / FL__LANES < PANEL_COLS ? width / FL__LANES : PANEL_COLS;
    size_t o;

    for (o = 0; o < width; o += cols * FL__LANES) {
        packed_product_block(rows, cols, d + o, ldd, a, b + o, ldb, depth, add);
    }
}

/* Blocks of nearly equal height: 64 rows are not split into five times 12 and 4. */
INLINE void packed_product_rows(size_t n, size_t width, float *d, size_t ldd, struct left a,
                                const float *b, size_t ldb, size_t depth, bool add)
{
    size_t blocks = (n + FL__PANEL_ROWS - 1) / FL__PANEL_ROWS;

    for (; blocks > 0; blocks--) {
        size_t rows = (n + blocks - 1) / blocks;

#define BLOCK(rows_)                                                      \
    case rows_:                                                           \
        packed_product_cols(rows_, width, d, ldd, a, b, ldb, depth, add); \
        break

        switch (rows) {
            BLOCK(1);
            BLOCK(2);
            BLOCK(3);
            BLOCK(4);
#if FL__PANEL_ROWS > 4
            BLOCK(5);
            BLOCK(6);
#endif
#if FL__PANEL_ROWS > 6
            BLOCK(7);
            BLOCK(8);
            BLOCK(9);
            BLOCK(10);
            BLOCK(11);
            BLOCK(12);
#endif
#if FL__PANEL_ROWS > 12
            BLOCK(13);
            BLOCK(14);
#endif
        default:
            break;
        }
#undef BLOCK
        n -= rows;
        a.p += rows * a.row;
        d += rows * ldd;
    }
}

static void packed_product_nn(float *m, size_t ldm, const float *v, size_t ldv, const float *u,
                              size_t tiles, size_t rows, size_t width, bool add)
{
    struct left a = {.p = v, .row = ldv, .step = 1};

    if (width == FL__PANEL) {
        packed_product_rows(tiles, FL__PANEL, m, ldm, a, u, FL__PANEL, rows, add);
    } else {
        packed_product_rows(tiles, 16, m, ldm, a, u, 16, rows, add);
    }
}

static void packed_product_tn(float *u, const float *v, size_t ldv, const float *m, size_t ldm,
                              size_t tiles, size_t rows, size_t width, bool add)
{
    struct left a = {.p = v, .row = 1, .step = ldv};

    if (width == FL__PANEL) {
        packed_product_rows(rows, FL__PANEL, u, FL__PANEL, a, m, ldm, tiles, add);
    } else {
        packed_product_rows(rows, 16, u, 16, a, m, ldm, tiles, add);
    }
}

/* Interleave the first halves of two vectors, and the second halves. */
#if FL__LANES == 16
#define MERGE_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MERGE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif FL__LANES == 8
#define MERGE_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define MERGE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define MERGE_LOW  0, 4, 1, 5
#define MERGE_HIGH 2, 6, 3, 7
#endif

/* One of the log2(FL__LANES) rounds of a transposition. */
INLINE void transpose_round(vec *to, const vec *from)
{
    size_t i;

    UNROLL for (i = 0; i < FL__LANES / 2; i++)
    {
        to[2 * i] = __builtin_shufflevector(from[i], from[i + FL__LANES / 2], MERGE_LOW);
        to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + FL__LANES / 2], MERGE_HIGH);
    }
}

/* Transpose: to[j][i] = from[i][j], FL__LANES of each. */
INLINE void transpose_square(float *to, size_t ldto, const float *from, size_t ldfrom)
{
    vec a[FL__LANES];
    vec b[FL__LANES];
    size_t i;

    UNROLL for (i = 0; i < FL__LANES; i++)
    {
        a[i] = load(from + i * ldfrom);
    }
    transpose_round(b, a);
    transpose_round(a, b);
#if FL__LANES > 4
    transpose_round(b, a);
#if FL__LANES > 8
    transpose_round(a, b);
#else
    UNROLL for (i = 0; i < FL__LANES; i++)
    {
        a[i] = b[i];
    }
#endif
#endif
    UNROLL for (i = 0; i < FL__LANES; i++)
    {
        store(to + i * ldto, a[i]);
    }
}

static void packed_transpose(const struct fl_conv *conv, float *wt, const float *w, size_t k,
                             size_t rows, size_t c, size_t width)
{
    size_t n_weights = conv->kh * conv->kw;
    size_t o, i, j;

    for (o = 0; o < rows; o += FL__LANES) {
        size_t panel = (k + o) / FL__PANEL * FL__PANEL;
        size_t wide = conv->k - panel < FL__PANEL ? conv->k - panel : FL__PANEL;
        const float *from = w + (panel * conv->c + c * wide) * n_weights + (k + o - panel);

        for (i = 0; i < width; i += FL__LANES) {
            for (j = 0; j < n_weights; j++) {
                transpose_square(wt + (o * n_weights + j) * width + i, n_weights * width,
                                 from + (i * n_weights + j) * wide, n_weights * wide);
            }
        }
    }
}

#endif
