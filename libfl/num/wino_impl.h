#ifndef FL_NUM_WINO_IMPL_H
#define FL_NUM_WINO_IMPL_H

/*
 * The transforms of images and maps of wino_kern.h, for every form; `side` is constant wherever one
 * of these functions is used. The including file defines FL__LANES.
 *
 * The code of one tile is a separate function (wino_forms_impl.h): inlined into the loop over the
 * tiles, gcc 12 runs out of registers and needs nearly twice the time.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/wino_kern.h"
#include "libfl/num/wino_points_impl.h"
#include "libfl/num/wino_tile_impl.h"

/* Transform the pixels of a tile, n channels of each, to v[point][n]. */
typedef void tile_fn(float *v, size_t plane, const float *const *at, size_t n);

INLINE void input_tile(struct side side, float *v, size_t plane, const float *const *at, size_t n)
{
    size_t c, i, j;

    for (c = 0; c < n; c += FL__LANES) {
        vec half[MAX_POINTS * MAX_INPUTS];
        float *to = v + c;

        UNROLL for (j = 0; j < side.inputs; j++)
        {
            vec col[MAX_INPUTS];

            UNROLL for (i = 0; i < side.inputs; i++)
            {
                col[i] = load(at[i * side.inputs + j] + c);
            }
            inputs_to_points(side, half + j, side.inputs, col, 1);
        }
        UNROLL for (i = 0; i < side.points; i++)
        {
            vec row[MAX_POINTS];

            inputs_to_points(side, row, 1, half + i * side.inputs, 1);
            OPAQUE(to);
            UNROLL for (j = 0; j < side.points; j++)
            {
                store(to + j * plane, row[j]);
            }
            to += side.points * plane;
        }
    }
}

INLINE void input_tiles(struct side side, tile_fn *tile, const struct fl_conv *conv, float *v,
                        size_t plane, const float *x, size_t ldx, size_t first, size_t n)
{
    struct tile t = tile_at(side, conv, first);
    size_t i;

    for (i = 0; i < n; i++, v += conv->c, tile_next(&t)) {
        struct square q = inputs_of(side, conv, &t);
        const float *at[MAX_INPUTS * MAX_INPUTS];
        size_t c;

        for (c = 0; c < conv->c; c += ZERO_FLOATS) {
            pixels_of(at, side.inputs, x + t.image * ldx, &q, c);
            tile(v + c, plane, at, conv->c - c < ZERO_FLOATS ? conv->c - c : ZERO_FLOATS);
        }
    }
}

/* Add one vector to each pixel of a square inside the map. */
INLINE void spread(float *image, const struct square *q, size_t channel, const vec *d, size_t size)
{
    float *p = image + (q->first + (ptrdiff_t)channel);
    size_t i, j;

    UNROLL for (i = 0; i < size; i++)
    {
        OPAQUE(p);
        if (i >= q->top && i < q->bottom) {
            UNROLL for (j = 0; j < size; j++)
            {
                if (j >= q->left && j < q->right) {
                    store(p + j * q->pixel, load(p + j * q->pixel) + d[i * size + j]);
                }
            }
        }
        p += q->row;
    }
}

INLINE void scatter_tile(struct side side, float *image, const struct square *q, const float *v,
                         size_t plane, size_t c, size_t width)
{
    size_t o, i, j;

    for (o = 0; o < width; o += FL__LANES) {
        vec half[MAX_INPUTS * MAX_POINTS];
        vec d[MAX_INPUTS * MAX_INPUTS];
        const float *from = v + o;

        UNROLL for (j = 0; j < side.points; j++)
        {
            vec col[MAX_POINTS];

            OPAQUE(from);
            UNROLL for (i = 0; i < side.points; i++)
            {
                col[i] = load(from + i * side.points * plane);
            }
            points_to_inputs(side, half + j, side.points, col, 1);
            from += plane;
        }
        UNROLL for (i = 0; i < side.inputs; i++)
        {
            points_to_inputs(side, d + i * side.inputs, 1, half + i * side.points, 1);
        }
        spread(image, q, c + o, d, side.inputs);
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

        scatter_tile(side, dx + t.image * lddx, &q, v, plane, c, width);
    }
}

/* Whether a tile is whole is constant where this is inlined: 16 tests fewer. */
INLINE void output_tile(struct side side, float *image, const struct square *q, const float *m,
                        size_t plane, size_t k, size_t width, const float *bias, vec floor,
                        bool whole)
{
    size_t o, i, j;

    for (o = 0; o < width; o += FL__LANES) {
        vec half[MAX_POINTS * MAX_POINTS];
        vec b = load(bias + o);
        const float *from = m + o;
        float *to = image + (q->first + (ptrdiff_t)(k + o));

        UNROLL for (j = 0; j < side.points; j++)
        {
            vec col[MAX_POINTS];

            OPAQUE(from);
            UNROLL for (i = 0; i < side.points; i++)
            {
                col[i] = load(from + i * side.points * plane);
            }
            points_to_outputs(side, half + j, side.points, col, 1);
            from += plane;
        }
        UNROLL for (i = 0; i < side.outputs; i++)
        {
            vec row[MAX_POINTS];

            points_to_outputs(side, row, 1, half + i * side.points, 1);
            OPAQUE(to);
            UNROLL for (j = 0; j < side.outputs; j++)
            {
                vec y = row[j] + b;
                vec_mask below = y < floor; /* false for NaN, which is kept */

                if (whole || (i < q->bottom && j < q->right)) {
                    store(to + j * q->pixel, (vec)((vec_mask)y & ~below));
                }
            }
            to += q->row;
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

INLINE void gradient_tile(struct side side, float *m, size_t plane, const float *const *at,
                          size_t n)
{
    size_t k, i, j;

    for (k = 0; k < n; k += FL__LANES) {
        vec half[MAX_POINTS * MAX_POINTS];
        float *to = m + k;

        UNROLL for (j = 0; j < side.outputs; j++)
        {
            vec col[MAX_POINTS];

            UNROLL for (i = 0; i < side.outputs; i++)
            {
                col[i] = load(at[i * side.outputs + j] + k);
            }
            outputs_to_points(side, half + j, side.outputs, col, 1);
        }
        UNROLL for (i = 0; i < side.points; i++)
        {
            vec row[MAX_POINTS];

            outputs_to_points(side, row, 1, half + i * side.outputs, 1);
            OPAQUE(to);
            UNROLL for (j = 0; j < side.points; j++)
            {
                store(to + j * plane, row[j]);
            }
            to += side.points * plane;
        }
    }
}

INLINE void gradient_tiles(struct side side, tile_fn *tile, const struct fl_conv *conv, float *m,
                           size_t plane, const float *dy, size_t lddy, size_t first, size_t n)
{
    struct tile t = tile_at(side, conv, first);
    size_t i;

    for (i = 0; i < n; i++, m += conv->k, tile_next(&t)) {
        struct square q = outputs_of(side, conv, &t);
        const float *at[MAX_INPUTS * MAX_INPUTS];
        size_t k;

        for (k = 0; k < conv->k; k += ZERO_FLOATS) {
            pixels_of(at, side.outputs, dy + t.image * lddy, &q, k);
            tile(m + k, plane, at, conv->k - k < ZERO_FLOATS ? conv->k - k : ZERO_FLOATS);
        }
    }
}

#endif
