#include "libfl/num/rows.h"

#include "libfl/num/rows_kern.h"

/* Looked up on each call: a load and a test or two, and no state. */
static const struct fl__rows_kern *rows_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) {
        return &fl__rows_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &fl__rows_avx2;
    }
#endif
    return &fl__rows_plain;
}

void fl_rows_gram(double *gram, size_t stride, const double *x, size_t n, size_t columns)
{
    rows_kernels()->gram(gram, stride, x, n, columns);
}

void fl_rows_sum(double *sums, const double *members, size_t m, const double *x, size_t n)
{
    rows_kernels()->sum(sums, members, m, x, n);
}

void fl_rows_sort(float *rows, size_t m)
{
    rows_kernels()->sort(rows, m);
}

void fl_rows_sort_wide(double *rows, size_t m)
{
    rows_kernels()->sort_wide(rows, m);
}
