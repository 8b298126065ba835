#ifndef FL_SERVER_CORE_CLIENT_ACCURACY_H
#define FL_SERVER_CORE_CLIENT_ACCURACY_H

/*
 * How the accuracies of the clients that evaluated in a round differ: the figures client_accuracy_…
 * and client_loss_mean of libfl/figures/round_figures.h. Pure; allocates nothing.
 */

#include <stddef.h>

#include "libfl/figures/round_figures.h"

/* The sum, bounded by DBL_MAX on both sides: finite for all finite arguments. */
double fl_bounded_add(double sum, double x);
/*
 * Fill in these figures of `rec` from the accuracies (0 to 1) and the mean losses (finite) of `n`
 * clients, in any order; n = 0: unknown. Sorts both arrays, so that the bits of the results do not
 * depend on the order.
 */
void fl_client_accuracy_put(double *accuracies, double *losses, size_t n, struct fl_round_rec *rec);

#endif
