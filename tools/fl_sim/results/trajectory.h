#ifndef FL_RESULTS_COURSE_H
#define FL_RESULTS_COURSE_H

/*
 * What the rounds of a trial come to: what was spent so far, and when an accuracy was reached with
 * it.
 *
 * Threading: pure functions.
 */

#include "tools/fl_sim/results/row.h"

/* What was spent from the start to the end of a round. */
struct fl_spent {
    uint64_t round;
    uint64_t time_us;
    uint64_t uplink_bytes; /* that the server accepted */
    uint64_t bytes_up;     /* that clients sent */
    uint64_t bytes_down;
    double full_models;
};

/* The next round; *spent began as {0}. */
void fl_spent_add(struct fl_spent *spent, const struct fl_row *row);

/* What rounds are put against. */
enum fl_axis {
    FL_AXIS_ROUNDS,
    FL_AXIS_UPLINK, /* what the server accepted */
    FL_AXIS_BYTES,  /* all that was sent, up and down */
    FL_AXIS_TIME,   /* simulated; microseconds */
    FL_AXIS_MODELS  /* full models, of what the server accepted */
};
#define FL_N_AXES 5

/* "rounds", "uplink", "bytes", "time", "models" */
extern const char *const fl_axis_names[FL_N_AXES];
double fl_axis_value(enum fl_axis axis, const struct fl_spent *spent);

/* The accuracies of which a summary says when they were reached. */
extern const double fl_targets[];
#define FL_N_TARGETS 9

/* The course of one figure, of which more is better. */
struct fl_trajectory {
    struct fl_row_figure figure;
    const double *targets; /* at most FL_TRAJECTORY_TARGETS */
    size_t n_targets;
    bool known; /* in any round; the four below are only set then */
    double best, last;
    uint64_t best_round, last_round;
#define FL_TRAJECTORY_TARGETS 16
    struct fl_spent reached[FL_TRAJECTORY_TARGETS]; /* round 0: not reached */
#define FL_TRAJECTORY_WINDOW 64
    unsigned mean_of; /* 1 or 0: a value as it is, else the mean of so many, this one the newest */
    size_t n_values;
    double values[FL_TRAJECTORY_WINDOW]; /* the newest in turn */
};

/* Borrows `targets`. `key` is that of a figure (fl_row_find). */
void fl_trajectory_init(struct fl_trajectory *trajectory, const char *key, const double *targets,
                        size_t n_targets);
/*
 * Before the first round: a value is the mean of the newest `n` (1 to FL_TRAJECTORY_WINDOW) that
 * are known, from the n-th on. It stands for the round of the newest.
 */
void fl_trajectory_mean_of(struct fl_trajectory *trajectory, unsigned n);
/* `spent` with that round. */
void fl_trajectory_add(struct fl_trajectory *trajectory, const struct fl_row *row,
                       const struct fl_spent *spent);

#endif
