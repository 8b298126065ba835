#ifndef FL_RESULTS_STATS_H
#define FL_RESULTS_STATS_H

/* Means over trials, and whether the difference of two means is more than noise. Pure functions. */

#include <stdbool.h>
#include <stddef.h>

/* NAN for n = 0. */
double fl_mean(const double *x, size_t n);
/* Sample standard deviation, with divisor n - 1; 0 for n = 1, NAN for n = 0. */
double fl_deviation(const double *x, size_t n);
/*
 * The t that |Student's t with `degrees` of freedom| exceeds with probability 1 - `inside`; degrees
 * >= 1, 0 < inside < 1.
 */
double fl_t_quantile(unsigned degrees, double inside);

/* Pairs of the same seed. */
struct fl_paired {
    size_t n;
    double mean_a, mean_b;
    double difference; /* mean of b - a */
    /* For two pairs or more, else NAN. The interval contains the true difference in 95 % of
       cases. */
    double error; /* standard error of the difference */
    double low, high;
};

struct fl_paired fl_pair(const double *a, const double *b, size_t n);
/* The interval is known and does not contain 0. */
bool fl_paired_differs(const struct fl_paired *paired);

#endif
