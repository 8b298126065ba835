#ifndef FL_RESULTS_TABLE_H
#define FL_RESULTS_TABLE_H

/*
 * Points as the rows of a table. A column is
 *
 *   trials              how many are finished
 *   best                the best accuracy of a trial
 *   rounds, uplink, bytes, time, models            what a trial took (fl_axis)
 *   rounds@0.9, uplink@0.9, …                      what it took to that accuracy
 *   any key of fl_row_find()                       its last known value
 *
 * as the mean over the finished trials, and the standard deviation.
 *
 * Threading: pure functions.
 */

#include "tools/fl_sim/results/read.h"
#include "tools/fl_sim/results/trajectory.h"

#define FL_TABLE_COLUMNS 32

enum fl_column_kind {
    FL_COLUMN_TRIALS,
    FL_COLUMN_BEST,
    FL_COLUMN_SPENT,
    FL_COLUMN_REACHED,
    FL_COLUMN_LAST
};

struct fl_column {
    char name[64];
    enum fl_column_kind kind;
    enum fl_axis axis;
    double target;
    struct fl_row_figure figure;
};

struct fl_table {
    struct fl_column columns[FL_TABLE_COLUMNS];
    size_t n;
    const char *quality; /* the key whose values "best" and "@" look at */
    unsigned mean_of;    /* these take the mean of so many of its values; 0, 1: each */
    bool csv;            /* in plain units, mean, deviation and number of trials; else Markdown */
};

/* Names with commas between them. FL_EINVAL: which is none. */
FL_MUST_CHECK int fl_table_columns(struct fl_table *table, const char *names, struct fl_err *err);
/* The whole table. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_table_text(struct fl_buf *out, const struct fl_table *table,
                                const struct fl_read_set *set);

#endif
