#include "libfl/data/dirichlet.h"

#include <math.h>

#include "libfl/base/err.h"

/*
 * Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000): d (1 +
 * c z)^3 with rejection, for shapes of at least 1. Below 1 their section 6 applies, Gamma(a) =
 * Gamma(a + 1) U^(1/a), here in logarithms: with shapes of 0.01, as in strongly skewed splits, the
 * power itself underflows to 0 for most U.
 */
double fl_log_gamma_draw(struct fl_rng *rng, double shape)
{
    double boost = 0.0;
    double d;
    double c;

    FL_REQUIRE(shape > 0.0);
    if (shape < 1.0) {
        boost = log(fl_rng_unit(rng)) / shape;
        shape += 1.0;
    }
    d = shape - 1.0 / 3.0;
    c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double z = fl_rng_normal(rng);
        double v = 1.0 + c * z;

        if (v <= 0.0) {
            continue;
        }
        v = v * v * v;
        if (log(fl_rng_unit(rng)) < 0.5 * z * z + d - d * v + d * log(v)) {
            return log(d * v) + boost;
        }
    }
}

void fl_dirichlet_draw(struct fl_rng *rng, double alpha, double *p, size_t n)
{
    double top = -HUGE_VAL;
    double sum = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        p[i] = fl_log_gamma_draw(rng, alpha);
        top = p[i] > top ? p[i] : top;
    }
    for (i = 0; i < n; i++) {
        p[i] = exp(p[i] - top);
        sum += p[i];
    }
    for (i = 0; i < n; i++) {
        p[i] /= sum;
    }
}
