#include "libfl/num/vec.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * Sums keep FL_VEC_LANES independent partial sums so that the compiler can hold them in
 * registers of any width without reordering anything (see the header).
 */
static double lanes_total(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

void fl_vec_axpy(float *restrict y, float a, const float *restrict x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

void fl_vec_scale(float *y, float a, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = x[i] * a;
    }
}

void fl_vec_sub(float *z, const float *x, const float *y, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        z[i] = x[i] - y[i];
    }
}

double fl_vec_dot(const float *x, const float *y, size_t n)
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

double fl_vec_norm2(const float *x, size_t n)
{
    return sqrt(fl_vec_dot(x, x, n));
}

double fl_vec_distance_sq(const float *x, const float *y, size_t n)
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

double fl_vec_distance(const float *x, const float *y, size_t n)
{
    return sqrt(fl_vec_distance_sq(x, y, n));
}

/* A float is infinite or NaN when all its exponent bits are set. */
#define EXPONENT_BITS UINT32_C(0x7f800000)
/* Floats between two looks at the result: enough to vectorise, few enough to stop early. */
#define FINITE_BLOCK 1024

bool fl_vec_finite(const float *x, size_t n)
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

void fl_acc_add(double *restrict acc, double w, const float *restrict x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        acc[i] += w * (double)x[i];
    }
}

void fl_acc_scale(double *acc, double a, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        acc[i] *= a;
    }
}

double fl_acc_distance_sq(const double *acc, const float *x, size_t n)
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
