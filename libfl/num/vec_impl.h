#ifndef FL_NUM_VEC_IMPL_H
#define FL_NUM_VEC_IMPL_H

/*
 * The vector kernels, written once and compiled once per instruction set by the including file,
 * without contraction: every row of the instruction-set table gives the same bits.
 */

#include <stdint.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/num/vec_kern.h"

/*
 * Sums keep FL_VEC_LANES independent partial sums so that the compiler can hold them in
 * registers of any width without reordering anything (see the header).
 */
static double lanes_total(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static void vec_kern_axpy(float *restrict y, float a, const float *restrict x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

static void vec_kern_scale(float *y, float a, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = x[i] * a;
    }
}

static void vec_kern_sub(float *z, const float *x, const float *y, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        z[i] = x[i] - y[i];
    }
}

static double vec_kern_dot(const float *x, const float *y, size_t n)
{
    double s[FL_VEC_LANES] = {0};
    size_t i;
    size_t j;

    for (i = 0; i + FL_VEC_LANES <= n; i += FL_VEC_LANES) {
        for (j = 0; j < FL_VEC_LANES; j++) {
            s[j] += (double)x[i + j] * (double)y[i + j];
        }
    }
    for (j = 0; i + j < n; j++) {
        s[j] += (double)x[i + j] * (double)y[i + j];
    }
    return lanes_total(s);
}

static double distance_sq(const float *x, const float *y, size_t n)
{
    double s[FL_VEC_LANES] = {0};
    size_t i;
    size_t j;

    for (i = 0; i + FL_VEC_LANES <= n; i += FL_VEC_LANES) {
        for (j = 0; j < FL_VEC_LANES; j++) {
            double d = (double)x[i + j] - (double)y[i + j];

            s[j] += d * d;
        }
    }
    for (j = 0; i + j < n; j++) {
        double d = (double)x[i + j] - (double)y[i + j];

        s[j] += d * d;
    }
    return lanes_total(s);
}

/* A float is infinite or NaN when all its exponent bits are set. */
#define EXPONENT_BITS UINT32_C(0x7f800000)
/* Floats between two checks of the result: enough to vectorise, few enough to stop early. */
#define FINITE_BLOCK 1024

static bool all_finite(const float *x, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t end = n - i < FINITE_BLOCK ? n : i + FINITE_BLOCK;
        uint32_t bad = 0;

        for (; i < end; i++) {
            uint32_t bits;

            (void)memcpy(&bits, x + i, sizeof(bits));
            bad |= (uint32_t)((bits & EXPONENT_BITS) == EXPONENT_BITS);
        }
        if (bad != 0) {
            return false;
        }
    }
    return true;
}

static void acc_add(double *restrict acc, double w, const float *restrict x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        acc[i] += w * (double)x[i];
    }
}

static void acc_step(float *restrict out, const float *restrict x, const double *restrict acc,
                     size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        uint64_t bits;
        double step;

        (void)memcpy(&bits, acc + i, sizeof(bits));
        bits |= (uint64_t)(bits == 0) << 63; /* x + -0.0 is x for any x */
        (void)memcpy(&step, &bits, sizeof(step));
        out[i] = (float)((double)x[i] + step);
    }
}

static void acc_scale(double *acc, double a, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        acc[i] *= a;
    }
}

static double acc_distance_sq(const double *acc, const float *x, size_t n)
{
    double s[FL_VEC_LANES] = {0};
    size_t i;
    size_t j;

    for (i = 0; i + FL_VEC_LANES <= n; i += FL_VEC_LANES) {
        for (j = 0; j < FL_VEC_LANES; j++) {
            double d = acc[i + j] - (double)x[i + j];

            s[j] += d * d;
        }
    }
    for (j = 0; i + j < n; j++) {
        double d = acc[i + j] - (double)x[i + j];

        s[j] += d * d;
    }
    return lanes_total(s);
}

#define FL__VEC_ROW                                                                               \
    {                                                                                             \
        .axpy = vec_kern_axpy, .scale = vec_kern_scale, .sub = vec_kern_sub, .dot = vec_kern_dot, \
        .distance_sq = distance_sq, .finite = all_finite, .acc_add = acc_add,                     \
        .acc_step = acc_step, .acc_scale = acc_scale, .acc_distance_sq = acc_distance_sq,         \
    }

#endif
