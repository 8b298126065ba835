#include "tools/fl_sim/results/stats.h"

#include <math.h>

#include "libfl/base/err.h"

#define INSIDE 0.95

double fl_mean(const double *x, size_t n)
{
    double sum = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += x[i];
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

double fl_deviation(const double *x, size_t n)
{
    double mean = fl_mean(x, n);
    double sum = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }
    return n > 1 ? sqrt(sum / (double)(n - 1)) : n == 1 ? 0.0 : (double)NAN;
}

/*
 * P(|T| <= t) for whole degrees of freedom: Abramowitz and Stegun, Handbook of Mathematical
 * Functions (1964), equations 26.7.3 (odd) and 26.7.4 (even), with theta = atan(t / sqrt(degrees)).
 */
static double t_inside(double t, unsigned degrees)
{
    double theta = atan(t / sqrt((double)degrees));
    double c2 = cos(theta) * cos(theta);
    bool odd = degrees % 2 == 1;
    double term = odd ? cos(theta) : 1.0;
    double sum = degrees > 1 ? term : 0.0;
    unsigned k;

    for (k = odd ? 3 : 2; k < degrees; k += 2) {
        term *= c2 * (double)(k - 1) / (double)k;
        sum += term;
    }
    return odd ? 2.0 / M_PI * (theta + sin(theta) * sum) : sin(theta) * sum;
}

double fl_t_quantile(unsigned degrees, double inside)
{
    double low = 0.0;
    double high = 1.0;
    int i;

    FL_REQUIRE(degrees >= 1 && inside > 0.0 && inside < 1.0);
    while (t_inside(high, degrees) < inside && high < 1e12) {
        high *= 2.0;
    }
    for (i = 0; i < 200 && low < high; i++) {
        double middle = low + (high - low) / 2.0;

        if (t_inside(middle, degrees) < inside) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

struct fl_paired fl_pair(const double *a, const double *b, size_t n)
{
    struct fl_paired p = {.n = n,
                          .mean_a = fl_mean(a, n),
                          .mean_b = fl_mean(b, n),
                          .error = (double)NAN,
                          .low = (double)NAN,
                          .high = (double)NAN};
    double sum = 0.0;
    double t;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += b[i] - a[i];
    }
    p.difference = n > 0 ? sum / (double)n : (double)NAN;
    if (n < 2) {
        return p;
    }
    sum = 0.0;
    for (i = 0; i < n; i++) {
        double off = b[i] - a[i] - p.difference;

        sum += off * off;
    }
    p.error = sqrt(sum / (double)(n - 1) / (double)n);
    t = fl_t_quantile((unsigned)(n - 1), INSIDE);
    p.low = p.difference - t * p.error;
    p.high = p.difference + t * p.error;
    return p;
}

bool fl_paired_differs(const struct fl_paired *paired)
{
    return paired->n >= 2 && (paired->low > 0.0 || paired->high < 0.0);
}
