#ifndef FL_DATA_DIRICHLET_H
#define FL_DATA_DIRICHLET_H

/* Draws from Gamma and Dirichlet distributions, using libfl/base/rng.h. */

#include <stddef.h>

#include "libfl/base/rng.h"

/* Logarithm of a Gamma(shape, 1) variate, shape > 0; finite even where the variate underflows. */
double fl_log_gamma_draw(struct fl_rng *rng, double shape);
/* p[n] ~ Dirichlet(alpha, …, alpha), alpha > 0; sums to 1. */
void fl_dirichlet_draw(struct fl_rng *rng, double alpha, double *p, size_t n);

#endif
