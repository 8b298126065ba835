#ifndef FL_NUM_ACT_IMPL_H
#define FL_NUM_ACT_IMPL_H

/* Activation functions (pixel_kern.h), written once with vectors of FL__LANES floats. */

#include "libfl/num/lanes_impl.h"
#include "libfl/num/pixel_impl.h"
#include "libfl/num/softmax_impl.h"

/* |x|, also of NaN. */
INLINE vec act_size(vec x)
{
    return (vec)((vec_mask)x & 0x7fffffff);
}

/* |v| with the sign of x. */
INLINE vec act_signed(vec v, vec x)
{
    return (vec)(((vec_mask)v & 0x7fffffff) | ((vec_mask)x & ~0x7fffffff));
}

/* 1 / (1 + exp(-x)); the exponential is never above 1. */
INLINE vec act_sigmoid(vec x)
{
    vec e = exp_of(-act_size(x));
    vec share = 1.0f / (1.0f + e);

    return choose(x < (vec){0}, e * share, share);
}

/*
 * Near 0 by a polynomial (Moshier 1992, Cephes, tanhf), where the quotient would lose the digits of
 * a small result.
 */
INLINE vec act_tanh(vec x)
{
    vec size = act_size(x);
    vec e = exp_of(-2.0f * size);
    vec far = (1.0f - e) / (1.0f + e);
    vec z = x * x;
    vec p = broadcast(-5.70498872745e-3f);

    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return choose(size < 0.625f, p * z * x + x, act_signed(far, x));
}

/*
 * exp(-x^2 / 2) and half of erfc(|x| / sqrt(2)), the weight of the normal distribution beyond |x|,
 * within 1e-7 (Abramowitz and Stegun 1964, 7.1.26).
 */
INLINE vec act_beyond(vec x, vec *ret_bell)
{
    vec bell = exp_of(x * x * -0.5f);
    vec t = 1.0f / (1.0f + 0.3275911f * 0.70710678f * act_size(x));
    vec p = broadcast(1.061405429f * 0.5f);

    p = p * t - 1.453152027f * 0.5f;
    p = p * t + 1.421413741f * 0.5f;
    p = p * t - 0.284496736f * 0.5f;
    p = p * t + 0.254829592f * 0.5f;
    *ret_bell = bell;
    return p * t * bell;
}

/* x times the weight of the normal distribution below x. */
INLINE vec act_gelu(vec x)
{
    vec bell;
    vec beyond = act_beyond(x, &bell);

    return choose(x < (vec){0}, x * beyond, x - x * beyond);
}

INLINE vec act_gelu_slope(vec x)
{
    vec bell;
    vec beyond = act_beyond(x, &bell);

    return choose(x < (vec){0}, beyond, 1.0f - beyond) + x * bell * 0.39894228f;
}

#define ACT_FUNCTION(name)                                                   \
    static void pixel_##name(float *y, const float *x, size_t n)             \
    {                                                                        \
        size_t i = 0;                                                        \
                                                                             \
        for (; i + FL__LANES <= n; i += FL__LANES) {                         \
            store(y + i, act_##name(load(x + i)));                           \
        }                                                                    \
        if (i < n) {                                                         \
            store_lanes(y + i, act_##name(load_lanes(x + i, n - i)), n - i); \
        }                                                                    \
    }

ACT_FUNCTION(sigmoid)
ACT_FUNCTION(tanh)
ACT_FUNCTION(gelu)
ACT_FUNCTION(gelu_slope)

#endif
