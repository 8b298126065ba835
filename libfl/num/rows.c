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

void fl_rows_gram(double *gram, size_t stride, const float *x, size_t row, size_t n, size_t columns)
{
    rows_kernels()->gram(gram, stride, x, row, n, columns);
}

void fl_rows_sum(double *sums, const uint8_t *groups, size_t m, const float *x, size_t n)
{
    rows_kernels()->sum(sums, groups, m, x, n);
}

void fl_rows_tile(float *tile, const float *x, size_t row, size_t m, size_t n)
{
    rows_kernels()->load(tile, x, row, m, n);
}

void fl_rows_sort(float *rows, size_t m)
{
    rows_kernels()->sort(rows, m);
}

void fl_rows_sort_wide(double *rows, size_t m)
{
    rows_kernels()->sort_wide(rows, m);
}

void fl_rows_widen(double *wide, const float *x, size_t n)
{
    rows_kernels()->widen(wide, x, n);
}

void fl_rows_mean(double *out, const double *rows, size_t from, size_t to)
{
    rows_kernels()->mean(out, rows, from, to);
}

void fl_rows_nearest(double *out, double *low, double *high, const double *rows, size_t m, size_t f,
                     const double *middle)
{
    rows_kernels()->nearest(out, low, high, rows, m, f, middle);
}

size_t fl_rows_between(const float *x, const double *low, const double *high, size_t n)
{
    return rows_kernels()->between(x, low, high, n);
}

size_t fl_rows_between_wide(const double *x, const double *low, const double *high, size_t n)
{
    return rows_kernels()->between_wide(x, low, high, n);
}
