#include "tools/fl_sim/results/course.h"

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

void fl_course_init(struct fl_course *course, const char *key, const double *targets,
                    size_t n_targets)
{
    (void)memset(course, 0, sizeof(*course));
    FL_REQUIRE(n_targets <= FL_COURSE_TARGETS);
    FL_REQUIRE(fl_row_find(key, &course->figure));
    course->targets = targets;
    course->n_targets = n_targets;
}

void fl_course_mean_of(struct fl_course *course, unsigned n)
{
    FL_REQUIRE(n >= 1 && n <= FL_COURSE_WINDOW);
    course->mean_of = n;
}

/* NAN: they are too few yet. Added up anew each time, so that no error of rounding builds up. */
static double mean_with(struct fl_course *course, double value)
{
    double sum = 0.0;
    size_t i;

    course->values[course->n_values++ % course->mean_of] = value;
    if (course->n_values < course->mean_of) {
        return (double)NAN;
    }
    for (i = 0; i < course->mean_of; i++) {
        sum += course->values[i];
    }
    return sum / course->mean_of;
}

void fl_course_add(struct fl_course *course, const struct fl_row *row, const struct fl_spent *spent)
{
    double value = fl_row_value(&course->figure, row);
    size_t i;

    if (!isnan(value) && course->mean_of > 1) {
        value = mean_with(course, value);
    }
    if (isnan(value)) {
        return;
    }
    if (!course->known || value > course->best) {
        course->best = value;
        course->best_round = spent->round;
    }
    course->known = true;
    course->last = value;
    course->last_round = spent->round;
    for (i = 0; i < course->n_targets; i++) {
        if (course->reached[i].round == 0 && value >= course->targets[i]) {
            course->reached[i] = *spent;
        }
    }
}
