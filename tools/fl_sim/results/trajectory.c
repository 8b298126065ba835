#include "tools/fl_sim/results/trajectory.h"

#include <math.h>
#include <string.h>

const double fl_targets[FL_N_TARGETS] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99};

void fl_spent_add(struct fl_spent *spent, const struct fl_row *row)
{
    spent->round = row->record.round;
    spent->time_us = row->sim.time_us;
    spent->uplink_bytes += row->record.uplink_bytes;
    spent->bytes_up += fl_sim_round_up(&row->sim);
    spent->bytes_down += fl_sim_round_down(&row->sim);
    spent->full_models += row->sim.full_models;
}

const char *const fl_axis_names[FL_N_AXES] = {[FL_AXIS_ROUNDS] = "rounds",
                                              [FL_AXIS_UPLINK] = "uplink",
                                              [FL_AXIS_BYTES] = "bytes",
                                              [FL_AXIS_TIME] = "time",
                                              [FL_AXIS_MODELS] = "models"};

double fl_axis_value(enum fl_axis axis, const struct fl_spent *spent)
{
    switch (axis) {
    case FL_AXIS_ROUNDS:
        return (double)spent->round;
    case FL_AXIS_UPLINK:
        return (double)spent->uplink_bytes;
    case FL_AXIS_BYTES:
        return (double)spent->bytes_up + (double)spent->bytes_down;
    case FL_AXIS_TIME:
        return (double)spent->time_us;
    case FL_AXIS_MODELS:
        return spent->full_models;
    }
    return 0.0;
}

void fl_trajectory_init(struct fl_trajectory *trajectory, const char *key, const double *targets,
                        size_t n_targets)
{
    (void)memset(trajectory, 0, sizeof(*trajectory));
    FL_REQUIRE(n_targets <= FL_TRAJECTORY_TARGETS);
    FL_REQUIRE(fl_row_find(key, &trajectory->figure));
    trajectory->targets = targets;
    trajectory->n_targets = n_targets;
}

void fl_trajectory_mean_of(struct fl_trajectory *trajectory, unsigned n)
{
    FL_REQUIRE(n >= 1 && n <= FL_TRAJECTORY_WINDOW);
    trajectory->mean_of = n;
}

/* NAN: too few values yet. Summed up from scratch each time, so that rounding errors do not
   accumulate. */
static double mean_with(struct fl_trajectory *trajectory, double value)
{
    double sum = 0.0;
    size_t i;

    trajectory->values[trajectory->n_values++ % trajectory->mean_of] = value;
    if (trajectory->n_values < trajectory->mean_of) {
        return (double)NAN;
    }
    for (i = 0; i < trajectory->mean_of; i++) {
        sum += trajectory->values[i];
    }
    return sum / trajectory->mean_of;
}

void fl_trajectory_add(struct fl_trajectory *trajectory, const struct fl_row *row,
                       const struct fl_spent *spent)
{
    double value = fl_row_value(&trajectory->figure, row);
    size_t i;

    if (!isnan(value) && trajectory->mean_of > 1) {
        value = mean_with(trajectory, value);
    }
    if (isnan(value)) {
        return;
    }
    if (!trajectory->known || value > trajectory->best) {
        trajectory->best = value;
        trajectory->best_round = spent->round;
    }
    trajectory->known = true;
    trajectory->last = value;
    trajectory->last_round = spent->round;
    for (i = 0; i < trajectory->n_targets; i++) {
        if (trajectory->reached[i].round == 0 && value >= trajectory->targets[i]) {
            trajectory->reached[i] = *spent;
        }
    }
}
