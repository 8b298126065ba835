#ifndef FL_NUM_WINO_WEIGHTS_IMPL_H
#define FL_NUM_WINO_WEIGHTS_IMPL_H

/*
 * The transforms of weights of wino_kern.h; `side` is constant wherever one of these functions is
 * used. The including file defines FL__LANES.
 */

#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"
#include "libfl/num/wino_points_impl.h"

#define MAX_SQUARE 36

/*
 * Rows of weights to prefetch: with this many write streams the hardware prefetcher does not
 * detect the reads. They may belong to the next call.
 */
#define ROWS_AHEAD  4
#define LINE_FLOATS 16

/* Stride between transform points of u, in floats. */
INLINE size_t weights_plane(size_t rows, size_t width)
{
    return rows * width + 16;
}

INLINE void weights_rows(struct side side, float *u, const float *w, size_t rows, size_t width)
{
    size_t plane = weights_plane(rows, width);
    size_t n_weights = side.kernel * side.kernel;
    size_t row, o, i, j;

    for (row = 0; row < rows; row++, w += n_weights * width) {
        for (i = 0; i < n_weights * width; i += LINE_FLOATS) {
            __builtin_prefetch(w + ROWS_AHEAD * n_weights * width + i);
        }
        for (o = 0; o < width; o += FL__LANES) {
            vec g[MAX_SQUARE], half[MAX_SQUARE];
            float *to = u + row * width + o;

            UNROLL for (i = 0; i < n_weights; i++)
            {
                g[i] = load(w + i * width + o);
            }
            UNROLL for (j = 0; j < side.kernel; j++)
            {
                weights_to_points(side, half + j, side.kernel, g + j, side.kernel);
            }
            UNROLL for (i = 0; i < side.points; i++)
            {
                vec line[MAX_SQUARE];

                weights_to_points(side, line, 1, half + i * side.kernel, 1);
                OPAQUE(to);
                UNROLL for (j = 0; j < side.points; j++)
                {
                    store(to + j * plane, line[j]);
                }
                to += side.points * plane;
            }
        }
    }
}

INLINE void weights_adjoint_rows(struct side side, float *g, const float *u, size_t rows,
                                 size_t width)
{
    size_t plane = weights_plane(rows, width);
    size_t n_weights = side.kernel * side.kernel;
    size_t row, o, i, j;

    for (row = 0; row < rows; row++, g += n_weights * width) {
        for (o = 0; o < width; o += FL__LANES) {
            vec half[MAX_SQUARE], w[MAX_SQUARE];
            const float *from = u + row * width + o;

            UNROLL for (j = 0; j < side.points; j++)
            {
                vec col[MAX_SQUARE];

                OPAQUE(from);
                UNROLL for (i = 0; i < side.points; i++)
                {
                    col[i] = load(from + i * side.points * plane);
                }
                from += plane;
                points_to_weights(side, half + j, side.points, col, 1);
            }
            UNROLL for (i = 0; i < side.kernel; i++)
            {
                points_to_weights(side, w + i * side.kernel, 1, half + i * side.points, 1);
            }
            UNROLL for (i = 0; i < n_weights; i++)
            {
                store(g + i * width + o, w[i]);
            }
        }
    }
}

#endif
