#include "libfl/base/sorted.h"

#include <stdlib.h>

static int sorted_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

void fl_sort(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), sorted_compare);
}

double fl_lower_median(double *values, size_t n)
{
    fl_sort(values, n);
    return values[(n - 1) / 2];
}
