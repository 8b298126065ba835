#ifndef FL_NUM_WINO_POINTS_IMPL_H
#define FL_NUM_WINO_POINTS_IMPL_H

/*
 * One-dimensional transforms of Winograd convolutions, each beside its adjoint
 * (docs/kernels.md#convolutions). A tile applies one to its columns, then to its rows.
 *
 * Six points: m outputs y[i] = sum of g[t] d[i + t] over r weights, m + r = 7, are the values at 0,
 * +-a, +-b and infinity with a = sqrt(1/2), b = sqrt(2). Points of similar magnitude halve the
 * error of the usual +-1, +-2, and a * b = 1 avoids scaling two rows.
 *
 * Three points: two inputs between zeros and two outputs, y[0] = g[1] d[0] + g[2] d[1],
 * y[1] = g[0] d[0] + g[1] d[1], by Karatsuba's g[1] (d[0] + d[1]) and two corrections.
 *
 * vs, ds, ... are the strides of v, d, ... in vectors. Source and target must not overlap.
 */

#include <stddef.h>

#include "libfl/num/lanes_impl.h"

/* Sizes of a form along one side of a tile; constants where it is used. */
struct side {
    size_t points, kernel, outputs;
    size_t inputs; /* inputs that are not always zero */
    /* index of the first of them, relative to the input of output 0 and weight 0 */
    size_t inset;
};

/* a, a^3, b, b^3; a^2 = 1/2, a^4 = 1/4, b^2 = 2, b^4 = 4 */
#define A1 0.70710678118654752440f
#define A3 0.35355339059327376220f
#define B1 1.41421356237309504880f
#define B3 2.82842712474619009760f
/* 1 / (2 a^2 (a^2 - b^2)) and 1 / (2 b^2 (b^2 - a^2)) */
#define NA (-2.0f / 3.0f)
#define NB (1.0f / 6.0f)

INLINE void inputs_to_points(struct side side, vec *v, size_t vs, const vec *d, size_t ds)
{
    if (side.points == 6) {
        vec even_a = d[4 * ds] - 2.0f * d[2 * ds], odd_a = d[3 * ds] - 2.0f * d[ds];
        vec even_b = d[4 * ds] - 0.5f * d[2 * ds], odd_b = d[3 * ds] - 0.5f * d[ds];

        v[0] = d[0] - 2.5f * d[2 * ds] + d[4 * ds];
        v[vs] = even_a + A1 * odd_a;
        v[2 * vs] = even_a - A1 * odd_a;
        v[3 * vs] = even_b + B1 * odd_b;
        v[4 * vs] = even_b - B1 * odd_b;
        v[5 * vs] = d[ds] - 2.5f * d[3 * ds] + d[5 * ds];
    } else {
        v[0] = d[0] + d[ds];
        v[vs] = d[ds];
        v[2 * vs] = d[0];
    }
}

INLINE void points_to_inputs(struct side side, vec *d, size_t ds, const vec *v, size_t vs)
{
    if (side.points == 6) {
        vec sum_a = v[vs] + v[2 * vs], diff_a = v[vs] - v[2 * vs];
        vec sum_b = v[3 * vs] + v[4 * vs], diff_b = v[3 * vs] - v[4 * vs];

        d[0] = v[0];
        d[ds] = v[5 * vs] - (2.0f * A1) * diff_a - (0.5f * B1) * diff_b;
        d[2 * ds] = -2.5f * v[0] - 2.0f * sum_a - 0.5f * sum_b;
        d[3 * ds] = A1 * diff_a + B1 * diff_b - 2.5f * v[5 * vs];
        d[4 * ds] = v[0] + sum_a + sum_b;
        d[5 * ds] = v[5 * vs];
    } else {
        d[0] = v[0] + v[2 * vs];
        d[ds] = v[0] + v[vs];
    }
}

INLINE void points_to_outputs(struct side side, vec *y, size_t ys, const vec *m, size_t ms)
{
    if (side.points == 6) {
        vec sum_a = m[ms] + m[2 * ms], diff_a = m[ms] - m[2 * ms];
        vec sum_b = m[3 * ms] + m[4 * ms], diff_b = m[3 * ms] - m[4 * ms];

        y[0] = m[0] + sum_a + sum_b;
        if (side.outputs == 4) {
            y[ys] = A1 * diff_a + B1 * diff_b;
            y[2 * ys] = 0.5f * sum_a + 2.0f * sum_b;
            y[3 * ys] = A3 * diff_a + B3 * diff_b + m[5 * ms];
        } else {
            y[ys] = A1 * diff_a + B1 * diff_b + m[5 * ms];
        }
    } else {
        y[0] = m[0] + m[ms];
        y[ys] = m[0] + m[2 * ms];
    }
}

INLINE void outputs_to_points(struct side side, vec *m, size_t ms, const vec *y, size_t ys)
{
    if (side.points == 6) {
        vec even_a, odd_a, even_b, odd_b;

        if (side.outputs == 4) {
            even_a = y[0] + 0.5f * y[2 * ys];
            odd_a = A1 * y[ys] + A3 * y[3 * ys];
            even_b = y[0] + 2.0f * y[2 * ys];
            odd_b = B1 * y[ys] + B3 * y[3 * ys];
            m[5 * ms] = y[3 * ys];
        } else {
            even_a = even_b = y[0];
            odd_a = A1 * y[ys];
            odd_b = B1 * y[ys];
            m[5 * ms] = y[ys];
        }
        m[0] = y[0];
        m[ms] = even_a + odd_a;
        m[2 * ms] = even_a - odd_a;
        m[3 * ms] = even_b + odd_b;
        m[4 * ms] = even_b - odd_b;
    } else {
        m[0] = y[0] + y[ys];
        m[ms] = y[0];
        m[2 * ms] = y[ys];
    }
}

INLINE void weights_to_points(struct side side, vec *u, size_t us, const vec *g, size_t gs)
{
    if (side.points == 6) {
        vec even_a = NA * g[0] + (NA * 0.5f) * g[2 * gs];
        vec even_b = NB * g[0] + (NB * 2.0f) * g[2 * gs];
        vec odd_a = (NA * A1) * g[gs];
        vec odd_b = (NB * B1) * g[gs];

        if (side.kernel == 5) {
            even_a += (NA * 0.25f) * g[4 * gs];
            odd_a += (NA * A3) * g[3 * gs];
            even_b += (NB * 4.0f) * g[4 * gs];
            odd_b += (NB * B3) * g[3 * gs];
        }
        u[0] = g[0];
        u[us] = even_a + odd_a;
        u[2 * us] = even_a - odd_a;
        u[3 * us] = even_b + odd_b;
        u[4 * us] = even_b - odd_b;
        u[5 * us] = g[(side.kernel - 1) * gs];
    } else {
        u[0] = g[gs];
        u[us] = g[2 * gs] - g[gs];
        u[2 * us] = g[0] - g[gs];
    }
}

INLINE void points_to_weights(struct side side, vec *g, size_t gs, const vec *u, size_t us)
{
    if (side.points == 6) {
        vec sum_a = u[us] + u[2 * us], diff_a = u[us] - u[2 * us];
        vec sum_b = u[3 * us] + u[4 * us], diff_b = u[3 * us] - u[4 * us];
        vec last = u[5 * us];

        g[0] = u[0] + NA * sum_a + NB * sum_b;
        g[gs] = (NA * A1) * diff_a + (NB * B1) * diff_b;
        if (side.kernel == 5) {
            g[2 * gs] = (NA * 0.5f) * sum_a + (NB * 2.0f) * sum_b;
            g[3 * gs] = (NA * A3) * diff_a + (NB * B3) * diff_b;
            g[4 * gs] = last + (NA * 0.25f) * sum_a + (NB * 4.0f) * sum_b;
        } else {
            g[2 * gs] = last + (NA * 0.5f) * sum_a + (NB * 2.0f) * sum_b;
        }
    } else {
        g[0] = u[2 * us];
        g[gs] = u[0] - u[us] - u[2 * us];
        g[2 * gs] = u[us];
    }
}

#endif
