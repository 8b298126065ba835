#include "server/core/summary_range.h"

#include <math.h>
#include <stdlib.h>

#include "libfl/base/sorted.h"

/* An index of `value` in `sorted`. */
static size_t sorted_position(const double *sorted, size_t n, double value)
{
    size_t low = 0;
    size_t high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sorted[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/*
 * The median without the value at `left_out`; of two in the middle their mean. With one false
 * summary among three, the smaller one would make it reject both others, the larger one would let
 * it pass.
 */
static double summary_median(const double *sorted, size_t n, size_t left_out)
{
    size_t low = (n - 2) / 2;
    size_t high = (n - 1) / 2;

    return 0.5 * sorted[low + (low >= left_out)] + 0.5 * sorted[high + (high >= left_out)];
}

int fl_summary_bounds(const double *largest, size_t n, double factor, double *ret_bounds)
{
    double *sorted = malloc((n + 1) * sizeof(*sorted));
    size_t i;

    if (sorted == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        sorted[i] = largest[i];
    }
    fl_sort(sorted, n);
    for (i = 0; i < n; i++) {
        double middle =
            n >= 3 ? summary_median(sorted, n, sorted_position(sorted, n, largest[i])) : 0.0;

        ret_bounds[i] = factor > 0.0 && middle > 0.0 ? factor * middle : (double)INFINITY;
    }
    free(sorted);
    return FL_OK;
}
