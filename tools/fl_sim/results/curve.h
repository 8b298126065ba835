#ifndef FL_RESULTS_CURVE_H
#define FL_RESULTS_CURVE_H

/*
 * A figure against its cost, as the mean over the trials of a point with a band around it.
 *
 * Between two rounds in which the figure is known it is interpolated; after its last round a
 * finished trial keeps its last value while others continue. Unfinished trials are left out, unless
 * all are unfinished: then the curve ends with the shortest.
 *
 * Threading: pure functions.
 */

#include "tools/fl_sim/results/read.h"
#include "tools/fl_sim/results/trajectory.h"

enum fl_band { FL_BAND_RANGE, FL_BAND_DEVIATION, FL_BAND_NONE };

struct fl_curve {
    double *x, *mean, *low, *high;
    size_t n; /* 0: the figure is unknown in all rounds */
    size_t n_trials;
};

/* `smooth`: moving mean over so many rounds in which the figure is known, centred; 1: no
   smoothing. */
FL_MUST_CHECK int fl_curve_make(const struct fl_read_point *point, enum fl_axis axis,
                                const struct fl_row_figure *y, unsigned smooth, enum fl_band band,
                                struct fl_curve *ret, struct fl_err *err);
void fl_curve_done(struct fl_curve *curve);

#endif
