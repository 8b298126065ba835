#ifndef FL_RESULTS_CURVE_H
#define FL_RESULTS_CURVE_H

/*
 * A figure against what was spent, as the mean over the trials of a point with a band around it.
 *
 * Between two rounds in which the figure is known it is interpolated; behind its last one a
 * finished trial stays where it ended, as the others go on. Trials that are not finished are left
 * out, unless all are: then the curve ends with the shortest.
 *
 * Threading: pure functions.
 */

#include "tools/fl_sim/results/read.h"
#include "tools/fl_sim/results/trajectory.h"

enum fl_band { FL_BAND_RANGE, FL_BAND_DEVIATION, FL_BAND_NONE };

struct fl_curve {
    double *x, *mean, *low, *high;
    size_t n; /* 0: the figure is not known in any round */
    size_t n_trials;
};

/* `smooth`: mean over so many rounds in which the figure is known, around each; 1: as it is. */
FL_MUST_CHECK int fl_curve_make(const struct fl_read_point *point, enum fl_axis axis,
                                const struct fl_row_figure *y, unsigned smooth, enum fl_band band,
                                struct fl_curve *ret, struct fl_err *err);
void fl_curve_done(struct fl_curve *curve);

#endif
