#include "libfl/num/vec.h"

#include <math.h>

#include "libfl/num/vec_impl.h"

const struct fl__vec_kern fl__vec_plain = FL__VEC_ROW;

/* Looked up on each call: one load and a test, and no state. */
static const struct fl__vec_kern *vec_kernels(void)
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
    vec_kernels()->axpy(y, a, x, n);
}

void fl_vec_scale(float *y, float a, const float *x, size_t n)
{
    vec_kernels()->scale(y, a, x, n);
}

void fl_vec_sub(float *z, const float *x, const float *y, size_t n)
{
    vec_kernels()->sub(z, x, y, n);
}

double fl_vec_dot(const float *x, const float *y, size_t n)
{
    return vec_kernels()->dot(x, y, n);
}

double fl_vec_norm2(const float *x, size_t n)
{
    return sqrt(fl_vec_dot(x, x, n));
}

double fl_vec_distance_sq(const float *x, const float *y, size_t n)
{
    return vec_kernels()->distance_sq(x, y, n);
}

bool fl_vec_finite(const float *x, size_t n)
{
    return vec_kernels()->finite(x, n);
}

void fl_acc_add(double *acc, double w, const float *x, size_t n)
{
    vec_kernels()->acc_add(acc, w, x, n);
}

void fl_acc_step(float *out, const float *x, const double *acc, size_t n)
{
    vec_kernels()->acc_step(out, x, acc, n);
}

void fl_acc_scale(double *acc, double a, size_t n)
{
    vec_kernels()->acc_scale(acc, a, n);
}

double fl_acc_distance_sq(const double *acc, const float *x, size_t n)
{
    return vec_kernels()->acc_distance_sq(acc, x, n);
}
