#ifndef FL_RESULTS_SCALE_H
#define FL_RESULTS_SCALE_H

/* Readable units by the size of a value. Pure functions. */

#include "tools/fl_sim/results/trajectory.h"

/* The value divided by `per` is in `unit`; the unit of a plain number is "". */
struct fl_scale {
    double per;
    const char *unit;
};

/* For values up to `largest`: "MB" of bytes (powers of 1000), "h" of microseconds, "%" of
   shares. */
struct fl_scale fl_scale_unit(enum fl_figure_unit unit, double largest);
struct fl_scale fl_scale_axis(enum fl_axis axis, double largest);

#endif
