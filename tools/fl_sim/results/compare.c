/*
 * Compares two points trial by trial (compare.h), and prints the comparison. Pure functions; the
 * statistics are in stats.c.
 */
#include "tools/fl_sim/results/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Number of the largest accuracies that are compared. */
#define N_TARGETS 2

/* The two trials of a seed. */
struct pair {
    struct fl_trajectory trajectory[2];
    struct fl_spent spent[2];
};

static const struct fl_read_trial *compare_find_trial(const struct fl_read_point *p, uint64_t seed)
{
    size_t i;

    for (i = 0; i < p->n_trials; i++) {
        if (p->trials[i].seed == seed && p->trials[i].finished) {
            return &p->trials[i];
        }
    }
    return NULL;
}

static void compare_take_trial(struct pair *pair, int side, const struct fl_read_trial *trial,
                               const char *key)
{
    fl_trajectory_init(&pair->trajectory[side], key, fl_targets, FL_N_TARGETS);
    fl_read_trajectory(trial, &pair->trajectory[side], &pair->spent[side]);
}

static size_t compare_match_pairs(const struct fl_read_point *a, const struct fl_read_point *b,
                                  const char *key, struct pair *pairs, struct fl_comparison *c)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < a->n_trials; i++) {
        const struct fl_read_trial *one = &a->trials[i];
        const struct fl_read_trial *two = compare_find_trial(b, one->seed);

        if (!one->finished || two == NULL) {
            c->n_left_out++;
            continue;
        }
        compare_take_trial(&pairs[n], 0, one, key);
        compare_take_trial(&pairs[n], 1, two, key);
        n++;
        c->diverged_a += one->end.how == FL_TRIAL_DIVERGED;
        c->diverged_b += two->end.how == FL_TRIAL_DIVERGED;
    }
    for (i = 0; i < b->n_trials; i++) {
        c->n_left_out += compare_find_trial(a, b->trials[i].seed) == NULL;
    }
    return n;
}

/* Selects the figure of a pair that a row compares. */
typedef double value_fn(const struct pair *pair, int side, size_t target, enum fl_axis axis);

static double compare_best(const struct pair *pair, int side, size_t target, enum fl_axis axis)
{
    (void)target;
    (void)axis;
    return pair->trajectory[side].known ? pair->trajectory[side].best : (double)NAN;
}

static double compare_last(const struct pair *pair, int side, size_t target, enum fl_axis axis)
{
    (void)target;
    (void)axis;
    return pair->trajectory[side].known ? pair->trajectory[side].last : (double)NAN;
}

static double compare_reached(const struct pair *pair, int side, size_t target, enum fl_axis axis)
{
    const struct fl_spent *spent = &pair->trajectory[side].reached[target];

    return spent->round > 0 ? fl_axis_value(axis, spent) : (double)NAN;
}

/* The pairs in which both trials have the figure. `values` has room for 2 n. */
static struct fl_paired compare_collect_pairs(const struct pair *pairs, size_t n, value_fn *value,
                                              size_t target, enum fl_axis axis, double *values)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        double a = value(&pairs[i], 0, target, axis);
        double b = value(&pairs[i], 1, target, axis);

        if (!isnan(a) && !isnan(b)) {
            values[kept] = a;
            values[n + kept++] = b;
        }
    }
    return fl_pair(values, values + n, kept);
}

static bool compare_all_reached(const struct pair *pairs, size_t n, size_t target)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (pairs[i].trajectory[0].reached[target].round == 0 ||
            pairs[i].trajectory[1].reached[target].round == 0)
        {
            return false;
        }
    }
    return n > 0;
}

static void compare_add_quality(struct fl_comparison *c, const struct pair *pairs, size_t n,
                                const char *when, const char *key, value_fn *value, double *values)
{
    struct fl_compared *row = &c->rows[c->n_rows];

    row->paired = compare_collect_pairs(pairs, n, value, 0, FL_AXIS_ROUNDS, values);
    if (row->paired.n > 0) {
        row->scale = fl_scale_unit(FL_UNIT_SHARE, 1.0);
        (void)snprintf(row->name, sizeof(row->name), "%s %s", when, key);
        c->n_rows++;
    }
}

static void compare_add_reached(struct fl_comparison *c, const struct pair *pairs, size_t n,
                                size_t target, double *values)
{
    static const enum fl_axis axes[] = {FL_AXIS_UPLINK, FL_AXIS_BYTES, FL_AXIS_TIME};
    size_t i;

    for (i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        struct fl_compared *row = &c->rows[c->n_rows];

        row->paired = compare_collect_pairs(pairs, n, compare_reached, target, axes[i], values);
        if (!(row->paired.mean_a > 0.0) && !(row->paired.mean_b > 0.0)) {
            continue; /* 0 in all trials: without network delays there is no time. */
        }
        c->n_rows++;
        row->scale = fl_scale_axis(axes[i], fmax(row->paired.mean_a, row->paired.mean_b));
        (void)snprintf(row->name, sizeof(row->name), "%s to %g", fl_axis_names[axes[i]],
                       fl_targets[target]);
    }
}

int fl_compare(const struct fl_read_point *a, const struct fl_read_point *b, const char *quality,
               struct fl_comparison *ret, struct fl_err *err)
{
    size_t room = a->n_trials > 0 ? a->n_trials : 1;
    struct pair *pairs = calloc(room, sizeof(*pairs));
    double *values = calloc(2 * room, sizeof(*values));
    struct fl_comparison c = {0};
    size_t targets = 0;
    size_t i;
    int rv = FL_OK;

    if (pairs == NULL || values == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "out of memory for the comparison");
        goto done;
    }
    c.n_seeds = compare_match_pairs(a, b, quality, pairs, &c);
    if (c.n_seeds == 0) {
        rv = fl_err_set(err, FL_ENOENT,
                        "'%s' and '%s' have no seed that is finished in both: "
                        "nothing to compare",
                        a->label, b->label);
        goto done;
    }
    compare_add_quality(&c, pairs, c.n_seeds, "best", quality, compare_best, values);
    compare_add_quality(&c, pairs, c.n_seeds, "last", quality, compare_last, values);
    for (i = FL_N_TARGETS; i-- > 0 && targets < N_TARGETS;) {
        if (compare_all_reached(pairs, c.n_seeds, i)) {
            compare_add_reached(&c, pairs, c.n_seeds, i, values);
            targets++;
        }
    }
    *ret = c;
done:
    free(pairs);
    free(values);
    return rv;
}

/* --- printed comparison --- */

static void compare_add_row(struct fl_writer *w, const struct fl_compared *row)
{
    const struct fl_paired *p = &row->paired;
    double per = row->scale.per;
    char interval[64] = "-";
    char error[32] = "-";

    if (p->n >= 2) {
        (void)snprintf(interval, sizeof(interval), "%.4g .. %.4g", p->low / per, p->high / per);
        (void)snprintf(error, sizeof(error), "%.3g", p->error / per);
    }
    fl_writer_printf(w, "%-26s %-5s %10.4g %10.4g %10.4g %10s  %-22s %s\n", row->name,
                     row->scale.unit, p->mean_a / per, p->mean_b / per, p->difference / per, error,
                     interval,
                     p->n < 2               ? "too few pairs"
                     : fl_paired_differs(p) ? p->difference > 0.0 ? "B is more" : "B is less"
                                            : "within noise");
}

/* Names of the rows within noise: "A, B". */
static void compare_add_noise(struct fl_writer *w, const struct fl_comparison *c)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < c->n_rows; i++) {
        if (!fl_paired_differs(&c->rows[i].paired)) {
            fl_writer_printf(
                w, "%s%s",
                n++ > 0 ? ", " : "Within noise, for 95 % intervals that hold 0: ", c->rows[i].name);
        }
    }
    fl_writer_printf(w, "%s.\n",
                     n > 0 ? "" : "No difference is within noise: no 95 % interval holds 0");
}

int fl_comparison_text(struct fl_buf *out, const struct fl_comparison *comparison,
                       const char *label_a, const char *label_b)
{
    struct fl_writer w = {.out = out};
    size_t i;

    fl_writer_printf(&w, "A: %s\nB: %s\n%zu pair%s of the same seed\n\n", label_a, label_b,
                     comparison->n_seeds, comparison->n_seeds == 1 ? "" : "s");
    fl_writer_printf(&w, "%-26s %-5s %10s %10s %10s %10s  %-22s\n", "mean of", "", "A", "B",
                     "B - A", "std error", "95 % interval");
    for (i = 0; i < comparison->n_rows; i++) {
        compare_add_row(&w, &comparison->rows[i]);
    }
    fl_writer_printf(&w, "\n");
    if (comparison->n_seeds < 2) {
        fl_writer_printf(&w, "One pair gives no estimate of noise: run more trials "
                             "(trials: of the experiment).\n");
    } else {
        compare_add_noise(&w, comparison);
    }
    if (comparison->diverged_a + comparison->diverged_b > 0) {
        fl_writer_printf(&w, "Diverged: %zu trials of A, %zu of B.\n", comparison->diverged_a,
                         comparison->diverged_b);
    }
    if (comparison->n_left_out > 0) {
        fl_writer_printf(&w, "Left out: %zu trials whose seed is not finished in both.\n",
                         comparison->n_left_out);
    }
    return w.code;
}
