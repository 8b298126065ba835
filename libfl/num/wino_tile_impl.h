#ifndef FL_NUM_WINO_TILE_IMPL_H
#define FL_NUM_WINO_TILE_IMPL_H

/*
 * Positions of the tiles of a Winograd convolution on its maps (wino_kern.h). Tiles overlap in
 * the inputs; at the edge of a map a part of a tile is outside.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"
#include "libfl/num/wino_points_impl.h"

/* Array bounds along one side. */
#define MAX_POINTS 6
#define MAX_INPUTS 6

/* Position of a tile in the batch. */
struct tile {
    size_t image, row, col;
    size_t rows, cols; /* tiles of an image */
};

INLINE struct tile tile_at(struct side side, const struct fl_conv *conv, size_t i)
{
    struct tile t = {
        .rows = (conv->oh + side.outputs - 1) / side.outputs,
        .cols = (conv->ow + side.outputs - 1) / side.outputs,
    };

    t.image = i / (t.rows * t.cols);
    t.row = i / t.cols % t.rows;
    t.col = i % t.cols;
    return t;
}

INLINE void tile_next(struct tile *t)
{
    if (++t->col == t->cols) {
        t->col = 0;
        if (++t->row == t->rows) {
            t->row = 0;
            t->image++;
        }
    }
}

/* The pixels of a tile, and those inside the map: rows top..bottom, columns left..right. */
struct square {
    size_t top, bottom, left, right;
    bool whole;        /* all are inside */
    ptrdiff_t first;   /* offset of the upper left pixel in floats; negative before the image */
    size_t row, pixel; /* strides in floats */
};

/* Clip the range of `size` numbers from `origin` to 0..map. */
INLINE void clip(size_t *from, size_t *to, ptrdiff_t origin, size_t size, size_t map)
{
    ptrdiff_t room = (ptrdiff_t)map - origin;

    *from = origin < 0 ? (size_t)-origin : 0;
    *to = room < (ptrdiff_t)size ? (size_t)room : size;
}

INLINE struct square square_at(ptrdiff_t y, ptrdiff_t x, size_t size, size_t map_h, size_t map_w,
                               size_t channels)
{
    struct square q = {
        .first = (y * (ptrdiff_t)map_w + x) * (ptrdiff_t)channels,
        .row = map_w * channels,
        .pixel = channels,
    };

    clip(&q.top, &q.bottom, y, size, map_h);
    clip(&q.left, &q.right, x, size, map_w);
    q.whole = q.bottom - q.top == size && q.right - q.left == size;
    return q;
}

INLINE struct square inputs_of(struct side side, const struct fl_conv *conv, const struct tile *t)
{
    ptrdiff_t back = (ptrdiff_t)side.inset - (ptrdiff_t)conv->pad;

    return square_at((ptrdiff_t)(t->row * side.outputs) + back,
                     (ptrdiff_t)(t->col * side.outputs) + back, side.inputs, conv->h, conv->w,
                     conv->c);
}

INLINE struct square outputs_of(struct side side, const struct fl_conv *conv, const struct tile *t)
{
    return square_at((ptrdiff_t)(t->row * side.outputs), (ptrdiff_t)(t->col * side.outputs),
                     side.outputs, conv->oh, conv->ow, conv->k);
}

/* Zeros for the pixels outside the map, this many channels at a time. */
#define ZERO_FLOATS 512
static const float zeros[ZERO_FLOATS] __attribute__((aligned(64)));

/* Pointers to the pixels of a square, starting at one channel, row by row. */
INLINE void pixels_of(const float **at, size_t size, const float *image, const struct square *q,
                      size_t channel)
{
    const float *row = image + (q->first + (ptrdiff_t)channel);
    size_t i, j;

    UNROLL for (i = 0; i < size; i++)
    {
        bool on = i >= q->top && i < q->bottom;
        const float *p = row;

        UNROLL for (j = 0; j < size; j++)
        {
            at[i * size + j] = on && j >= q->left && j < q->right ? p : zeros;
            p += q->pixel;
            OPAQUE(p);
        }
        row += q->row;
    }
}

#endif
