#ifndef FL_NUM_WINO_WEIGHTS_IMPL_H
#define FL_NUM_WINO_WEIGHTS_IMPL_H

/*
 * The transforms of weights of wino_kern.h; `side` is constant wherever one of these functions
 * is used. The including file sets FL__LANES.
 */

#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"
#include "libfl/num/wino_points_impl.h"

#define MAX_SQUARE 36

/*
 * So many places are written at once that the processor no longer sees what is read in order:
 * rows of weights that are asked for ahead. They may be those of the next call.
 */
#define ROWS_AHEAD  4
#define LINE_FLOATS 16

/* Floats from point to point of u. */
INLINE size_t weights_plane(size_t rows, size_t width)
{
    return rows * width + 16;
}

INLINE void weights_rows(struct side side, float *u, const float *w, size_t rows, size_t width)
{
    size_t plane = weights_plane(rows, width);
    size_t taps = side.taps * side.taps;
    size_t row, o, i, j;

    for (row = 0; row < rows; row++, w += taps * width) {
        for (i = 0; i < taps * width; i += LINE_FLOATS) {
            __builtin_prefetch(w + ROWS_AHEAD * taps * width + i);
        }
        for (o = 0; o < width; o += FL__LANES) {
            vec g[MAX_SQUARE], half[MAX_SQUARE];
            float *to = u + row * width + o;

            UNROLL for (i = 0; i < taps; i++)
            {
                g[i] = load(w + i * width + o);
            }
            UNROLL for (j = 0; j < side.taps; j++)
            {
                taps_to_points(side, half + j, side.taps, g + j, side.taps);
            }
            UNROLL for (i = 0; i < side.points; i++)
            {
                vec line[MAX_SQUARE];

                taps_to_points(side, line, 1, half + i * side.taps, 1);
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
    size_t taps = side.taps * side.taps;
    size_t row, o, i, j;

    for (row = 0; row < rows; row++, g += taps * width) {
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
                points_to_taps(side, half + j, side.points, col, 1);
            }
            UNROLL for (i = 0; i < side.taps; i++)
            {
                points_to_taps(side, w + i * side.taps, 1, half + i * side.points, 1);
            }
            UNROLL for (i = 0; i < taps; i++)
            {
                store(g + i * width + o, w[i]);
            }
        }
    }
}

#endif
