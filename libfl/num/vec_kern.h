#ifndef FL_NUM_VEC_KERN_H
#define FL_NUM_VEC_KERN_H

/* Vector kernels, one row of the instruction-set table each; private to libfl/num and its tests. */

#include <stdbool.h>
#include <stddef.h>

/* As the functions of vec.h. */
struct fl__vec_kern {
    void (*axpy)(float *y, float a, const float *x, size_t n);
    void (*scale)(float *y, float a, const float *x, size_t n);
    void (*sub)(float *z, const float *x, const float *y, size_t n);
    double (*dot)(const float *x, const float *y, size_t n);
    double (*distance_sq)(const float *x, const float *y, size_t n);
    bool (*finite)(const float *x, size_t n);
    void (*acc_add)(double *acc, double w, const float *x, size_t n);
    void (*acc_step)(float *out, const float *x, const double *acc, size_t n);
    void (*acc_scale)(double *acc, double a, size_t n);
    double (*acc_distance_sq)(const double *acc, const float *x, size_t n);
};

extern const struct fl__vec_kern fl__vec_plain;
#if defined(__x86_64__)
extern const struct fl__vec_kern fl__vec_avx2;
#endif

#endif
