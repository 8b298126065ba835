#ifndef FL_NUM_SOFTMAX_IMPL_H
#define FL_NUM_SOFTMAX_IMPL_H

/* Exponentials and softmax (pixel_kern.h), written once with vectors of FL__LANES floats. */

#include <math.h>
#include <string.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/pixel_kern.h"

typedef uint32_t vec_bits __attribute__((vector_size(4 * FL__LANES)));
/* Half a vector, and as many doubles. */
typedef float vec_half __attribute__((vector_size(2 * FL__LANES)));
typedef double vec_double __attribute__((vector_size(4 * FL__LANES)));

/* a where `mask` is set, otherwise b. */
INLINE vec choose(vec_mask mask, vec a, vec b)
{
    return (vec)(((vec_mask)a & mask) | ((vec_mask)b & ~mask));
}

/* Added to a number below 2^22 it leaves the nearest integer in the last bits. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */
/* ln 2 in two parts: products of the first with integers up to 2^15 are exact. */
#define LN2_FIRST  0.693359375f
#define LN2_SECOND (-2.12194440e-4f)
/* The least x whose exponential is a normal number. */
#define LEAST (-87.33654f)

/*
 * exp(x) for x <= 0, within 1.1 ulp; 0 where that is below the smallest normal number, and NaN for
 * NaN. With k the integer nearest to x / ln 2 it is 2^k exp(x - k ln 2), the second by a polynomial
 * (Moshier 1992, Cephes, expf), the first by adding k to the exponent.
 */
INLINE vec exp_of(vec x)
{
    vec shifted = x * 1.44269504f + ROUNDER;
    vec k = shifted - ROUNDER;
    vec r = x - k * LN2_FIRST - k * LN2_SECOND;
    vec p = broadcast(1.9875691500e-4f);
    vec_bits bits;

    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    bits = (vec_bits)p + ((vec_bits)shifted << 23);
    /* Neither comparison is true for NaN, whose computed bits are meaningless. */
    return choose(x >= LEAST, (vec)bits, choose(x < LEAST, (vec){0}, x));
}

/* Mask of the first n lanes. */
INLINE vec_mask first_lanes(size_t n)
{
#if FL__LANES == 16
    const vec_mask lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif FL__LANES == 8
    const vec_mask lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
    const vec_mask lane = {0, 1, 2, 3};
#endif

    return lane < (int32_t)(n < FL__LANES ? n : FL__LANES);
}

/* Load the first n numbers at p, padded with -inf. */
INLINE vec load_first(const float *p, size_t n)
{
    return choose(first_lanes(n), load(p), broadcast(-INFINITY));
}

INLINE float largest_lane(vec v)
{
    float all[FL__LANES];
    size_t n, i;

    store(all, v);
    UNROLL for (n = FL__LANES / 2; n > 0; n /= 2)
    {
        UNROLL for (i = 0; i < n; i++)
        {
            all[i] = all[i] > all[i + n] ? all[i] : all[i + n];
        }
    }
    return all[0];
}

INLINE vec_double sum_of_halves(vec v)
{
    vec_half half[2];

    (void)memcpy(half, &v, sizeof(half));
    return __builtin_convertvector(half[0], vec_double) +
           __builtin_convertvector(half[1], vec_double);
}

INLINE double sum_of_doubles(vec_double v)
{
    double all[FL__LANES / 2];
    size_t n, i;

    (void)memcpy(all, &v, sizeof(all));
    UNROLL for (n = FL__LANES / 4; n > 0; n /= 2)
    {
        UNROLL for (i = 0; i < n; i++)
        {
            all[i] += all[i + n];
        }
    }
    return all[0];
}

static double pixel_softmax(float *q, const float *z, size_t n, double scale, float *ret_top)
{
    vec best = load_first(z, n);
    vec_double sum = {0};
    double total;
    float top, factor;
    size_t j;

    for (j = FL__LANES; j < n; j += FL__LANES) {
        vec v = load_first(z + j, n - j);

        best = choose(v > best, v, best);
    }
    top = largest_lane(best);
    for (j = 0; j < n; j += FL__LANES) {
        vec e = exp_of(load_first(z + j, n - j) - top);

        sum += sum_of_halves(e);
        if (q != NULL) {
            store(q + j, e);
        }
    }
    total = sum_of_doubles(sum);
    factor = (float)(scale / total);
    for (j = 0; q != NULL && j < n; j += FL__LANES) {
        store(q + j, choose(first_lanes(n - j), load(q + j) * factor, (vec){0}));
    }
    for (; q != NULL && j % 16 != 0; j += FL__LANES) {
        store(q + j, (vec){0});
    }
    *ret_top = top;
    return total;
}

#endif
