#ifndef FL_RESULTS_TABLE_H
#define FL_RESULTS_TABLE_H

/*
 * Points as the rows of a table. A column is
 *
 *   trials              number of finished trials
 *   best                the best accuracy of a trial
 *   rounds, uplink, bytes, time, models            cost of a trial (fl_axis)
 *   rounds@0.9, uplink@0.9, …                      cost to reach that accuracy
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
    const char *quality; /* the key whose values "best" and "@" use */
    unsigned mean_of;    /* moving mean over so many of its values; 0, 1: none */
    /* in base units, with mean, deviation and number of trials; else Markdown */
    bool csv;
};

/* Parse names with commas between them. FL_EINVAL: an unknown name. */
FL_MUST_CHECK int fl_table_columns(struct fl_table *table, const char *names, struct fl_err *err);
/* Append the whole table. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_table_text(struct fl_buf *out, const struct fl_table *table,
                                const struct fl_read_set *set);

#endif
