#ifndef FL_NUM_DENSE_IMPL_H
#define FL_NUM_DENSE_IMPL_H

/*
 * The dense kernels, written once with vectors of FL__LANES floats and compiled once per
 * instruction set. The including file defines the target and the block sizes:
 *
 *     FL__LANES                  floats in a vector
 *     FL__FWD_ROWS               rows of y whose sums are held in registers, times 2 vectors
 *     FL__DW_ROWS                rows of dW likewise, times 3 vectors; divides
 *                                FL__DENSE_DW_ROWS
 *     FL__SMALL_N_ROWS            rows of y of a small-n layer likewise, times 6 outputs
 */

#include <stddef.h>
#include <string.h>

#include "libfl/num/dense_kern.h"
#include "libfl/num/lanes_impl.h"

#define FWD_COLS     2
#define DW_COLS      3
#define SMALL_N_COLS 6

/* Lanes of a, followed by those of b. */
#define SHUFFLE(...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* `rows` rows of y, `cols` vectors from column o on; no bias when that is NULL. */
INLINE void forward_block(size_t rows, size_t cols, float *y, size_t ldy, const float *x,
                          size_t ldx, const float *w, const float *bias, size_t in, size_t out,
                          bool relu)
{
    vec acc[FL__FWD_ROWS][FWD_COLS];
    size_t r, j, k;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = bias != NULL ? load(bias + j * FL__LANES) : (vec){0};
        }
    }
    for (k = 0; k < in; k++) {
        vec row[FWD_COLS];

        UNROLL for (j = 0; j < cols; j++)
        {
            row[j] = load(w + k * out + j * FL__LANES);
        }
        UNROLL for (r = 0; r < rows; r++)
        {
            vec a = broadcast(x[r * ldx + k]);

            UNROLL for (j = 0; j < cols; j++)
            {
                acc[r][j] += a * row[j];
            }
        }
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            store(y + r * ldy + j * FL__LANES, relu ? relu_of(acc[r][j]) : acc[r][j]);
        }
    }
}

INLINE void forward_cols(size_t rows, float *y, size_t ldy, const float *x, size_t ldx,
                         const float *w, const float *bias, size_t in, size_t out, bool relu)
{
    size_t step = (size_t)FWD_COLS * FL__LANES;
    size_t o;

    for (o = 0; o < out; o += step) {
        const float *bias_at = bias != NULL ? bias + o : NULL;

        if (out - o > FL__LANES) {
            forward_block(rows, 2, y + o, ldy, x, ldx, w + o, bias_at, in, out, relu);
        } else {
            forward_block(rows, 1, y + o, ldy, x, ldx, w + o, bias_at, in, out, relu);
        }
    }
}

static void dense_kern_forward(float *y, size_t ldy, const float *x, size_t ldx, const float *w,
                               const float *bias, size_t batch, size_t in, size_t out, bool relu)
{
    size_t blocks = (batch + FL__FWD_ROWS - 1) / FL__FWD_ROWS;

    /* Blocks of nearly equal height: 32 rows are 4 times 8 instead of 3 times 10 and 2. */
    for (; blocks > 0; blocks--) {
        size_t rows = (batch + blocks - 1) / blocks;

        switch (rows) {
        case 1:
            forward_cols(1, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 2:
            forward_cols(2, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 3:
            forward_cols(3, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 4:
            forward_cols(4, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 5:
            forward_cols(5, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
#if FL__FWD_ROWS > 5
        case 6:
            forward_cols(6, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 7:
            forward_cols(7, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 8:
            forward_cols(8, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 9:
            forward_cols(9, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
        case 10:
            forward_cols(10, y, ldy, x, ldx, w, bias, in, out, relu);
            break;
#endif
        default:
            break;
        }
        batch -= rows;
        x += rows * ldx;
        y += rows * ldy;
    }
}

/* g rows 0..rows of `cols` vectors: sums over the batch of x[b][r] * dy[b]. */
INLINE void weights_block(size_t rows, size_t cols, float *g, const float *x, size_t ldx,
                          const float *dy, size_t lddy, size_t batch, size_t out)
{
    vec acc[FL__DW_ROWS][DW_COLS];
    size_t r, j, b;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = (vec){0};
        }
    }
    for (b = 0; b < batch; b++) {
        vec d[DW_COLS];

        UNROLL for (j = 0; j < cols; j++)
        {
            d[j] = load(dy + b * lddy + j * FL__LANES);
        }
        UNROLL for (r = 0; r < rows; r++)
        {
            vec a = broadcast(x[b * ldx + r]);

            UNROLL for (j = 0; j < cols; j++)
            {
                acc[r][j] += a * d[j];
            }
        }
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            store(g + r * out + j * FL__LANES, acc[r][j]);
        }
    }
}

/*
 * The last vector of a row overlaps the next row. Rows are processed upwards and column blocks
 * downwards, so overwritten numbers are written again later, and no masks are needed.
 */
INLINE void weights_rows(size_t rows, float *g, const float *x, size_t ldx, const float *dy,
                         size_t lddy, size_t batch, size_t out)
{
    size_t left = (out + FL__LANES - 1) / FL__LANES; /* vectors */
    size_t cols = left % DW_COLS != 0 ? left % DW_COLS : DW_COLS;

    while (left > 0) {
        size_t o = (left - cols) * FL__LANES;

        if (cols == DW_COLS) {
            weights_block(rows, DW_COLS, g + o, x, ldx, dy + o, lddy, batch, out);
        } else if (cols == 2) {
            weights_block(rows, 2, g + o, x, ldx, dy + o, lddy, batch, out);
        } else {
            weights_block(rows, 1, g + o, x, ldx, dy + o, lddy, batch, out);
        }
        left -= cols;
        cols = DW_COLS;
    }
}

static void dense_kern_weights(float *g, const float *x, size_t ldx, const float *dy, size_t lddy,
                               size_t batch, size_t rows, size_t out)
{
    size_t blocks = (rows + FL__DW_ROWS - 1) / FL__DW_ROWS;

    /* Blocks of nearly equal height, as in forward. */
    for (; blocks > 0; blocks--) {
        size_t height = (rows + blocks - 1) / blocks;

        switch (height) {
        case 1:
            weights_rows(1, g, x, ldx, dy, lddy, batch, out);
            break;
        case 2:
            weights_rows(2, g, x, ldx, dy, lddy, batch, out);
            break;
        case 3:
            weights_rows(3, g, x, ldx, dy, lddy, batch, out);
            break;
        case 4:
            weights_rows(4, g, x, ldx, dy, lddy, batch, out);
            break;
#if FL__DW_ROWS > 4
        case 5:
            weights_rows(5, g, x, ldx, dy, lddy, batch, out);
            break;
        case 6:
            weights_rows(6, g, x, ldx, dy, lddy, batch, out);
            break;
        case 7:
            weights_rows(7, g, x, ldx, dy, lddy, batch, out);
            break;
        case 8:
            weights_rows(8, g, x, ldx, dy, lddy, batch, out);
            break;
#endif
        default:
            break;
        }
        rows -= height;
        x += height;
        g += height * out;
    }
}

/* Add lanes at distance `apart`, of one vector and then of the other: half as many of each. */
INLINE vec fold(vec a, vec b, size_t apart)
{
#if FL__LANES == 16
    if (apart == 8) {
        return SHUFFLE(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               SHUFFLE(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
    if (apart == 4) {
        return SHUFFLE(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
               SHUFFLE(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    if (apart == 2) {
        return SHUFFLE(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
               SHUFFLE(2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
    }
    return SHUFFLE(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           SHUFFLE(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif FL__LANES == 8
    if (apart == 4) {
        return SHUFFLE(0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(4, 5, 6, 7, 12, 13, 14, 15);
    }
    if (apart == 2) {
        return SHUFFLE(0, 1, 4, 5, 8, 9, 12, 13) + SHUFFLE(2, 3, 6, 7, 10, 11, 14, 15);
    }
    return SHUFFLE(0, 2, 4, 6, 8, 10, 12, 14) + SHUFFLE(1, 3, 5, 7, 9, 11, 13, 15);
#else
    return apart == 2 ? SHUFFLE(0, 1, 4, 5) + SHUFFLE(2, 3, 6, 7)
                      : SHUFFLE(0, 2, 4, 6) + SHUFFLE(1, 3, 5, 7);
#endif
}

/* Reduce n vectors pairwise; the last one of an odd number is paired with itself. */
INLINE size_t fold_pairs(vec *a, size_t n, size_t apart)
{
    size_t i;

    UNROLL for (i = 0; i < (n + 1) / 2; i++)
    {
        a[i] = fold(a[2 * i], a[2 * i + 1 < n ? 2 * i + 1 : 2 * i], apart);
    }
    return (n + 1) / 2;
}

/* Lane i < n: the sum of all lanes of a[i]. */
INLINE vec sums_of_lanes(vec *a, size_t n)
{
#if FL__LANES > 8
    n = fold_pairs(a, n, 8);
#endif
#if FL__LANES > 4
    n = fold_pairs(a, n, 4);
#endif
    n = fold_pairs(a, n, 2);
    (void)fold_pairs(a, n, 1);
    return a[0];
}

/* Store at most the first 8 lanes. */
INLINE void store_few(float *p, vec v)
{
    (void)memcpy(p, &v, (FL__LANES < 8 ? FL__LANES : 8) * sizeof(*p));
}

/*
 * `rows` rows of y, `cols` outputs of a small-n layer. Vectors run along the inputs, so that no
 * lanes are idle and x is read contiguously.
 */
INLINE void small_n_block(size_t rows, size_t cols, float *y, size_t ldy, const float *x,
                          size_t ldx, const float *w, const float *bias, size_t in, bool relu)
{
    vec acc[FL__SMALL_N_ROWS][SMALL_N_COLS];
    size_t r, j, k;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = (vec){0};
        }
    }
    for (k = 0; k < in; k += FL__LANES) {
        vec a[FL__SMALL_N_ROWS];

        UNROLL for (r = 0; r < rows; r++)
        {
            a[r] = load(x + r * ldx + k);
        }
        UNROLL for (j = 0; j < cols; j++)
        {
            vec v = load(w + j * in + k);

            UNROLL for (r = 0; r < rows; r++)
            {
                acc[r][j] += a[r] * v;
            }
        }
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j += FL__LANES)
        {
            size_t n = cols - j < FL__LANES ? cols - j : FL__LANES;
            vec sum = sums_of_lanes(acc[r] + j, n) + load(bias + j);

            store_few(y + r * ldy + j, relu ? relu_of(sum) : sum);
        }
    }
}

INLINE void small_n_cols(size_t cols, float *y, size_t ldy, const float *x, size_t ldx,
                         const float *w, const float *bias, size_t batch, size_t in, bool relu)
{
    /* The last block may end at the end of the model's memory, so it is padded here. */
    float padded[SMALL_N_COLS + FL__LANES] = {0};
    size_t b = 0;

    (void)memcpy(padded, bias, cols * sizeof(*bias));
    for (; b + FL__SMALL_N_ROWS <= batch; b += FL__SMALL_N_ROWS) {
        small_n_block(FL__SMALL_N_ROWS, cols, y + b * ldy, ldy, x + b * ldx, ldx, w, padded, in,
                      relu);
    }
    for (; b < batch; b++) {
        small_n_block(1, cols, y + b * ldy, ldy, x + b * ldx, ldx, w, padded, in, relu);
    }
}

/*
 * A block stores beyond its outputs: into those of the next block, which overwrites them later,
 * or after the last output, where a row has space for 16.
 */
static void dense_kern_forward_small_n(float *y, size_t ldy, const float *x, size_t ldx,
                                       const float *w, const float *bias, size_t batch, size_t in,
                                       size_t out, bool relu)
{
    size_t blocks = (out + SMALL_N_COLS - 1) / SMALL_N_COLS;

    for (; blocks > 0; blocks--) {
        size_t cols = (out + blocks - 1) / blocks;

        switch (cols) {
        case 1:
            small_n_cols(1, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        case 2:
            small_n_cols(2, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        case 3:
            small_n_cols(3, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        case 4:
            small_n_cols(4, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        case 5:
            small_n_cols(5, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        case 6:
            small_n_cols(6, y, ldy, x, ldx, w, bias, batch, in, relu);
            break;
        default:
            break;
        }
        out -= cols;
        y += cols;
        w += cols * in;
        bias += cols;
    }
}

#if FL__LANES == 16

/* nb * ni <= 16 dot products of rows of dy and of w; the padding of dy is zero. */
INLINE void data_block(size_t nb, size_t ni, float *dx, size_t lddx, const float *dy, size_t lddy,
                       const float *w, size_t out)
{
    vec acc[16];
    float sums[16];
    size_t b, i, o;

    UNROLL for (i = 0; i < 16; i++)
    {
        acc[i] = (vec){0};
    }
    for (o = 0; o < out; o += FL__LANES) {
        vec d[4];

        UNROLL for (b = 0; b < nb; b++)
        {
            d[b] = load(dy + b * lddy + o);
        }
        UNROLL for (i = 0; i < ni; i++)
        {
            vec v = load(w + i * out + o);

            UNROLL for (b = 0; b < nb; b++)
            {
                acc[b * ni + i] += v * d[b];
            }
        }
    }
    store(sums, sums_of_lanes(acc, 16));
    UNROLL for (b = 0; b < nb; b++)
    {
        UNROLL for (i = 0; i < ni; i++)
        {
            dx[b * lddx + i] = sums[b * ni + i];
        }
    }
}

/* `ni` columns of dx for the whole batch; ni is 8 or 1. */
INLINE void data_columns(size_t ni, float *dx, size_t lddx, const float *dy, size_t lddy,
                         const float *w, size_t batch, size_t out)
{
    size_t half = ni < 4 ? ni : 4;
    size_t b = 0;
    size_t i;

    for (; b + 4 <= batch; b += 4) {
        for (i = 0; i < ni; i += half) {
            data_block(4, half, dx + b * lddx + i, lddx, dy + b * lddy, lddy, w + i * out, out);
        }
    }
    for (; b + 2 <= batch; b += 2) {
        data_block(2, ni, dx + b * lddx, lddx, dy + b * lddy, lddy, w, out);
    }
    if (b < batch) {
        data_block(1, ni, dx + b * lddx, lddx, dy + b * lddy, lddy, w, out);
    }
}

static void dense_kern_backward_data(float *dx, size_t lddx, const float *dy, size_t lddy,
                                     const float *w, size_t batch, size_t in, size_t out)
{
    size_t i = 0;

    for (; i + 8 <= in; i += 8) {
        data_columns(8, dx + i, lddx, dy, lddy, w + i * out, batch, out);
    }
    for (; i < in; i++) {
        data_columns(1, dx + i, lddx, dy, lddy, w + i * out, batch, out);
    }
}

#endif

#endif
