#ifndef FL_RESULTS_TRAJECTORY_H
#define FL_RESULTS_TRAJECTORY_H

/*
 * The trajectory of a trial: accumulated costs, and when an accuracy was reached at which cost.
 *
 * Threading: pure functions.
 */

#include "tools/fl_sim/results/row.h"

/* Accumulated costs from the start to the end of a round. */
struct fl_spent {
    uint64_t round;
    uint64_t time_us;
    uint64_t uplink_bytes; /* accepted by the server */
    uint64_t bytes_up;     /* sent by clients */
    uint64_t bytes_down;
    double full_models;
};

/* Adds the next round; *spent starts as {0}. */
void fl_spent_add(struct fl_spent *spent, const struct fl_row *row);

/* The axes of curves and tables. */
enum fl_axis {
    FL_AXIS_ROUNDS,
    FL_AXIS_UPLINK, /* bytes accepted by the server */
    FL_AXIS_BYTES,  /* all bytes sent, up and down */
    FL_AXIS_TIME,   /* simulated; microseconds */
    FL_AXIS_MODELS  /* accepted bytes in full models */
};
#define FL_N_AXES 5

/* "rounds", "uplink", "bytes", "time", "models" */
extern const char *const fl_axis_names[FL_N_AXES];
double fl_axis_value(enum fl_axis axis, const struct fl_spent *spent);

/* The accuracies whose first round a summary lists. */
extern const double fl_targets[];
#define FL_N_TARGETS 9

/* The trajectory of one figure that is better when larger. */
struct fl_trajectory {
    struct fl_row_figure figure;
    const double *targets; /* at most FL_TRAJECTORY_TARGETS */
    size_t n_targets;
    bool known; /* known in any round; the four below are set only then */
    double best, last;
    uint64_t best_round, last_round;
#define FL_TRAJECTORY_TARGETS 16
    struct fl_spent reached[FL_TRAJECTORY_TARGETS]; /* round 0: not reached */
#define FL_TRAJECTORY_WINDOW 64
    unsigned mean_of; /* 1 or 0: single values, else the mean of so many, this one the newest */
    size_t n_values;
    double values[FL_TRAJECTORY_WINDOW]; /* ring buffer of the newest values */
};

/* Borrows `targets`. `key` is that of a figure (fl_row_find()). */
void fl_trajectory_init(struct fl_trajectory *trajectory, const char *key, const double *targets,
                        size_t n_targets);
/*
 * Before the first round: a value is the mean of the newest `n` (1 to FL_TRAJECTORY_WINDOW) known
 * values, from the n-th on. It belongs to the round of the newest.
 */
void fl_trajectory_mean_of(struct fl_trajectory *trajectory, unsigned n);
/* `spent` includes that round. */
void fl_trajectory_add(struct fl_trajectory *trajectory, const struct fl_row *row,
                       const struct fl_spent *spent);

#endif
