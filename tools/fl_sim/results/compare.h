#ifndef FL_RESULTS_COMPARE_H
#define FL_RESULTS_COMPARE_H

/* Compares two points, trial by trial with the same seeds. */

#include "tools/fl_sim/results/read.h"
#include "tools/fl_sim/results/scale.h"
#include "tools/fl_sim/results/stats.h"
#include "tools/fl_sim/results/trajectory.h"

/* Best and last accuracy, and three axes for each of two target accuracies. */
#define FL_COMPARED_ROWS 8

struct fl_compared {
    char name[64]; /* "last accuracy", "uplink to 0.9" */
    struct fl_scale scale;
    struct fl_paired paired;
};

struct fl_comparison {
    size_t n_seeds; /* seeds finished in both */
    struct fl_compared rows[FL_COMPARED_ROWS];
    size_t n_rows;
    size_t n_left_out;             /* seeds of one that are not finished in the other */
    size_t diverged_a, diverged_b; /* of the seeds in both */
};

/*
 * `quality`: a key of fl_row_find(). The costs of an accuracy are compared for the two largest of
 * fl_targets that every trial of both reached. FL_ENOENT: no seed is finished in both.
 */
FL_MUST_CHECK int fl_compare(const struct fl_read_point *a, const struct fl_read_point *b,
                             const char *quality, struct fl_comparison *ret, struct fl_err *err);
/* Appends a printed table with the differences within noise. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_comparison_text(struct fl_buf *out, const struct fl_comparison *comparison,
                                     const char *label_a, const char *label_b);

#endif
