#ifndef FL_RESULTS_REPORT_H
#define FL_RESULTS_REPORT_H

/*
 * report.html: the views of a results folder in one file that needs no other (libfl/page). It is
 * made of the files of the run, so that it is the same, byte for byte, for the same experiment, and
 * it may be made while trials are unfinished.
 *
 * Threading: one thread, under the lock of the folder.
 */

#include "tools/fl_sim/results/results.h"

/* Names of the layers of a point; the folder has only their number. */
struct fl_report_layers {
    const char *const *names;
    size_t n;
};

/*
 * Replace `dir`/report.html. `layers` are those of the first `n_layers` points; points behind them
 * have numbers in place of names. Memory: the trials of one point, and the first trial of each
 * point that is shown in detail.
 */
FL_MUST_CHECK int fl_report_write(const char *dir, const struct fl_report_layers *layers,
                                  size_t n_layers, struct fl_err *err);

#endif
