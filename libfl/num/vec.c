#include "libfl/num/vec.h"

#include <math.h>

#include "libfl/num/vec_impl.h"

const struct fl__vec_kern fl__vec_plain = FL__VEC_ROW;

/* Asked anew each time: one load and a test, and no state to be kept. */
static const struct fl__vec_kern *kern(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return &fl__vec_avx2;
    }
#endif
    return &fl__vec_plain;
}

void fl_vec_axpy(float *y, float a, const float *x, size_t n)
{
    kern()->axpy(y, a, x, n);
}

void fl_vec_scale(float *y, float a, const float *x, size_t n)
{
    kern()->scale(y, a, x, n);
}

void fl_vec_sub(float *z, const float *x, const float *y, size_t n)
{
    kern()->sub(z, x, y, n);
}

void fl_vec_heavy_ball(float *x, float *v, float rate, float m, const float *g, size_t n)
{
    kern()->heavy_ball(x, v, rate, m, g, n);
}

double fl_vec_dot(const float *x, const float *y, size_t n)
{
    return kern()->dot(x, y, n);
}

double fl_vec_norm2(const float *x, size_t n)
{
    return sqrt(fl_vec_dot(x, x, n));
}

double fl_vec_distance_sq(const float *x, const float *y, size_t n)
{
    return kern()->distance_sq(x, y, n);
}

double fl_vec_distance(const float *x, const float *y, size_t n)
{
    return sqrt(fl_vec_distance_sq(x, y, n));
}

bool fl_vec_finite(const float *x, size_t n)
{
    return kern()->finite(x, n);
}

void fl_acc_add(double *acc, double w, const float *x, size_t n)
{
    kern()->acc_add(acc, w, x, n);
}

void fl_acc_step(float *out, const float *x, const double *acc, size_t n)
{
    kern()->acc_step(out, x, acc, n);
}

void fl_acc_scale(double *acc, double a, size_t n)
{
    kern()->acc_scale(acc, a, n);
}

double fl_acc_distance_sq(const double *acc, const float *x, size_t n)
{
    return kern()->acc_distance_sq(acc, x, n);
}
