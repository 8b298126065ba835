#ifndef FL_NUM_WINO_IMPL_H
#define FL_NUM_WINO_IMPL_H

/*
 * The transforms of images and maps of wino_kern.h, for every form; `side` is constant
 * wherever one of these functions is used. The including file sets FL__LANES.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"
#include "libfl/num/wino_points_impl.h"

/* Bounds of the arrays below. */
#define MAX_POINTS 6
#define MAX_INPUTS 6

/* A tile of the batch. */
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

/* The pixels of a tile, and which of them lie on the map: rows top..bottom, columns left..right. */
struct square {
    size_t top, bottom, left, right;
    bool whole;        /* all of them */
    ptrdiff_t first;   /* the upper left one, in floats from the image's first; perhaps before it */
    size_t row, pixel; /* strides in floats */
};

/* What of size numbers from `origin` on lies within 0..map. */
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

INLINE size_t place_in(const struct square *q, size_t i, size_t j, size_t channel)
{
    return (size_t)(q->first + (ptrdiff_t)(i * q->row + j * q->pixel + channel));
}

/*
 * One vector of each pixel of a square. Pixels outside the map are left as they are. That a
 * square is whole is known where this is inlined: then its vectors stay in registers.
 */
INLINE void gather(vec *d, size_t size, const float *image, const struct square *q, size_t channel,
                   bool whole)
{
    size_t i, j;

    if (whole) {
        UNROLL for (i = 0; i < size; i++)
        {
            UNROLL for (j = 0; j < size; j++)
            {
                d[i * size + j] = load(image + place_in(q, i, j, channel));
            }
        }
    } else {
        for (i = q->top; i < q->bottom; i++) {
            for (j = q->left; j < q->right; j++) {
                d[i * size + j] = load(image + place_in(q, i, j, channel));
            }
        }
    }
}

INLINE void input_tile(struct side side, float *v, size_t plane, const float *image,
                       const struct square *q, size_t channels, bool whole)
{
    vec d[MAX_INPUTS * MAX_INPUTS] = {{0}};
    size_t c, i, j;

    for (c = 0; c < channels; c += FL__LANES) {
        vec half[MAX_POINTS * MAX_INPUTS];

        gather(d, side.inputs, image, q, c, whole);
        UNROLL for (j = 0; j < side.inputs; j++)
        {
            inputs_to_points(side, half + j, side.inputs, d + j, side.inputs);
        }
        UNROLL for (i = 0; i < side.points; i++)
        {
            vec row[MAX_POINTS];

            inputs_to_points(side, row, 1, half + i * side.inputs, 1);
            UNROLL for (j = 0; j < side.points; j++)
            {
                store(v + (i * side.points + j) * plane + c, row[j]);
            }
        }
    }
}

INLINE void input_tiles(struct side side, const struct fl_conv *conv, float *v, size_t plane,
                        const float *x, size_t ldx, size_t first, size_t n)
{
    struct tile t = tile_at(side, conv, first);
    size_t i;

    for (i = 0; i < n; i++, v += conv->c, tile_next(&t)) {
        struct square q = inputs_of(side, conv, &t);
        const float *image = x + t.image * ldx;

        if (q.whole) {
            input_tile(side, v, plane, image, &q, conv->c, true);
        } else {
            input_tile(side, v, plane, image, &q, conv->c, false);
        }
    }
}

/* Adds one vector to each pixel of a square that lies on the map. */
INLINE void spread(float *image, const struct square *q, size_t channel, const vec *d, size_t size,
                   bool whole)
{
    size_t i, j;

    if (whole) {
        UNROLL for (i = 0; i < size; i++)
        {
            UNROLL for (j = 0; j < size; j++)
            {
                float *p = image + place_in(q, i, j, channel);

                store(p, load(p) + d[i * size + j]);
            }
        }
    } else {
        for (i = q->top; i < q->bottom; i++) {
            for (j = q->left; j < q->right; j++) {
                float *p = image + place_in(q, i, j, channel);

                store(p, load(p) + d[i * size + j]);
            }
        }
    }
}

INLINE void scatter_tile(struct side side, float *image, const struct square *q, const float *v,
                         size_t plane, size_t c, size_t width, bool whole)
{
    size_t o, i, j;

    for (o = 0; o < width; o += FL__LANES) {
        vec half[MAX_INPUTS * MAX_POINTS];
        vec d[MAX_INPUTS * MAX_INPUTS];

        UNROLL for (j = 0; j < side.points; j++)
        {
            vec col[MAX_POINTS];

            UNROLL for (i = 0; i < side.points; i++)
            {
                col[i] = load(v + (i * side.points + j) * plane + o);
            }
            points_to_inputs(side, half + j, side.points, col, 1);
        }
        UNROLL for (i = 0; i < side.inputs; i++)
        {
            points_to_inputs(side, d + i * side.inputs, 1, half + i * side.points, 1);
        }
        spread(image, q, c + o, d, side.inputs, whole);
    }
}

INLINE void scatter_tiles(struct side side, const struct fl_conv *conv, float *dx, size_t lddx,
                          const float *v, size_t plane, size_t first, size_t n, size_t c,
                          size_t width)
{
    struct tile t = tile_at(side, conv, first);
    size_t i;

    for (i = 0; i < n; i++, v += width, tile_next(&t)) {
        struct square q = inputs_of(side, conv, &t);
        float *image = dx + t.image * lddx;

        if (q.whole) {
            scatter_tile(side, image, &q, v, plane, c, width, true);
        } else {
            scatter_tile(side, image, &q, v, plane, c, width, false);
        }
    }
}

INLINE void output_tile(struct side side, float *image, const struct square *q, const float *m,
                        size_t plane, size_t k, size_t width, const float *bias, vec floor,
                        bool whole)
{
    size_t o, i, j;

    for (o = 0; o < width; o += FL__LANES) {
        vec half[MAX_POINTS * MAX_POINTS];
        vec b = load(bias + o);

        UNROLL for (j = 0; j < side.points; j++)
        {
            vec col[MAX_POINTS];

            UNROLL for (i = 0; i < side.points; i++)
            {
                col[i] = load(m + (i * side.points + j) * plane + o);
            }
            points_to_outputs(side, half + j, side.points, col, 1);
        }
        UNROLL for (i = 0; i < side.outputs; i++)
        {
            vec row[MAX_POINTS];

            points_to_outputs(side, row, 1, half + i * side.points, 1);
            UNROLL for (j = 0; j < side.outputs; j++)
            {
                vec y = row[j] + b;
                vec_mask below = y < floor; /* false for NaN, which stays */

                if (whole || (i < q->bottom && j < q->right)) {
                    store(image + place_in(q, i, j, k + o), (vec)((vec_mask)y & ~below));
                }
            }
        }
    }
}

INLINE void output_tiles(struct side side, const struct fl_conv *conv, float *y, size_t ldy,
                         const float *m, size_t plane, size_t first, size_t n, size_t k,
                         size_t width, const float *bias, bool relu)
{
    struct tile t = tile_at(side, conv, first);
    vec floor = broadcast(relu ? 0.0f : -INFINITY);
    size_t i;

    for (i = 0; i < n; i++, m += width, tile_next(&t)) {
        struct square q = outputs_of(side, conv, &t);
        float *image = y + t.image * ldy;

        if (q.whole) {
            output_tile(side, image, &q, m, plane, k, width, bias, floor, true);
        } else {
            output_tile(side, image, &q, m, plane, k, width, bias, floor, false);
        }
    }
}

INLINE void gradient_tile(struct side side, float *m, size_t plane, const float *image,
                          const struct square *q, size_t channels, bool whole)
{
    vec d[MAX_POINTS * MAX_POINTS] = {{0}};
    size_t k, i, j;

    for (k = 0; k < channels; k += FL__LANES) {
        vec half[MAX_POINTS * MAX_POINTS];

        gather(d, side.outputs, image, q, k, whole);
        UNROLL for (j = 0; j < side.outputs; j++)
        {
            outputs_to_points(side, half + j, side.outputs, d + j, side.outputs);
        }
        UNROLL for (i = 0; i < side.points; i++)
        {
            vec row[MAX_POINTS];

            outputs_to_points(side, row, 1, half + i * side.outputs, 1);
            UNROLL for (j = 0; j < side.points; j++)
            {
                store(m + (i * side.points + j) * plane + k, row[j]);
            }
        }
    }
}

INLINE void gradient_tiles(struct side side, const struct fl_conv *conv, float *m, size_t plane,
                           const float *dy, size_t lddy, size_t first, size_t n)
{
    struct tile t = tile_at(side, conv, first);
    size_t i;

    for (i = 0; i < n; i++, m += conv->k, tile_next(&t)) {
        struct square q = outputs_of(side, conv, &t);
        const float *image = dy + t.image * lddy;

        if (q.whole) {
            gradient_tile(side, m, plane, image, &q, conv->k, true);
        } else {
            gradient_tile(side, m, plane, image, &q, conv->k, false);
        }
    }
}

#endif
