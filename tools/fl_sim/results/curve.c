/*
 * Makes the curve of a figure over the trials of a point (curve.h): moving mean, interpolation
 * between rounds, mean and band. Pure functions; plot.c draws it.
 */
#include "tools/fl_sim/results/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/sorted.h"
#include "tools/fl_sim/results/stats.h"

/* Maximum number of points: more than a picture has columns. */
#define POINTS_MAX 1200

/* The points of one trial where the figure is known; x never decreases. */
struct line {
    double *x, *y;
    size_t n;
    size_t at; /* position of the last lookup */
};

static void line_done(struct line *line)
{
    free(line->x);
    free(line->y);
}

static int line_smooth(struct line *line, unsigned smooth)
{
    double *y = calloc(line->n > 0 ? line->n : 1, sizeof(*y));
    size_t half = (smooth - 1) / 2;
    size_t i;

    if (y == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < line->n; i++) {
        /* The same number of values on both sides, so that the ends are not shifted. */
        size_t left = i < half ? i : half;
        size_t side = line->n - 1 - i < left ? line->n - 1 - i : left;

        y[i] = fl_mean(line->y + i - side, 2 * side + 1);
    }
    free(line->y);
    line->y = y;
    return FL_OK;
}

static int line_make(const struct fl_read_trial *trial, enum fl_axis axis,
                     const struct fl_row_figure *y, unsigned smooth, struct line *ret)
{
    struct line line = {.x = calloc(trial->n_rows, sizeof(double)),
                        .y = calloc(trial->n_rows, sizeof(double))};
    struct fl_spent spent = {0};
    size_t i;

    if (line.x == NULL || line.y == NULL) {
        line_done(&line);
        return FL_ENOMEM;
    }
    for (i = 0; i < trial->n_rows; i++) {
        double value = fl_row_value(y, &trial->rows[i]);

        fl_spent_add(&spent, &trial->rows[i]);
        if (isfinite(value)) {
            line.x[line.n] = fl_axis_value(axis, &spent);
            line.y[line.n++] = value;
        }
    }
    if (smooth > 1 && line_smooth(&line, smooth) != FL_OK) {
        line_done(&line);
        return FL_ENOMEM;
    }
    *ret = line;
    return FL_OK;
}

/* `x` never decreases from call to call, and is not before the first point of the line. */
static double line_at(struct line *line, double x)
{
    double from;
    double to;

    while (line->at + 1 < line->n && line->x[line->at + 1] <= x) {
        line->at++;
    }
    if (line->at + 1 >= line->n) {
        return line->y[line->n - 1];
    }
    from = line->x[line->at];
    to = line->x[line->at + 1];
    return line->y[line->at] +
           (line->y[line->at + 1] - line->y[line->at]) * ((x - from) / (to - from));
}

/* The x values of all points of all lines, in the range that all lines cover; thinned out, with
   both ends. */
static int curve_make_grid(const struct line *lines, size_t n, bool finished, struct fl_curve *c)
{
    double begin = 0.0;
    double end = 0.0;
    size_t total = 0;
    size_t kept = 0;
    size_t i;
    size_t k;

    for (i = 0; i < n; i++) {
        double last = lines[i].x[lines[i].n - 1];

        begin = i == 0 || lines[i].x[0] > begin ? lines[i].x[0] : begin;
        end = i == 0 || (finished ? last > end : last < end) ? last : end;
        total += lines[i].n;
    }
    c->x = calloc(total, sizeof(*c->x));
    if (c->x == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        for (k = 0; k < lines[i].n; k++) {
            if (lines[i].x[k] >= begin && lines[i].x[k] <= end) {
                c->x[c->n++] = lines[i].x[k];
            }
        }
    }
    fl_sort(c->x, c->n);
    for (i = 0; i < c->n; i++) {
        if (kept == 0 || c->x[i] > c->x[kept - 1]) {
            c->x[kept++] = c->x[i];
        }
    }
    c->n = kept;
    if (kept > POINTS_MAX) {
        for (i = 0; i < POINTS_MAX; i++) {
            c->x[i] = c->x[i * (kept - 1) / (POINTS_MAX - 1)];
        }
        c->n = POINTS_MAX;
    }
    return FL_OK;
}

static void curve_band_at(struct fl_curve *c, size_t i, const double *values, size_t n,
                          enum fl_band band)
{
    double mean = fl_mean(values, n);
    double off = band == FL_BAND_DEVIATION ? fl_deviation(values, n) : 0.0;
    size_t k;

    c->mean[i] = mean;
    c->low[i] = mean - off;
    c->high[i] = mean + off;
    for (k = 0; band == FL_BAND_RANGE && k < n; k++) {
        c->low[i] = values[k] < c->low[i] ? values[k] : c->low[i];
        c->high[i] = values[k] > c->high[i] ? values[k] : c->high[i];
    }
}

static int curve_join(struct line *lines, size_t n, bool finished, enum fl_band band,
                      struct fl_curve *c)
{
    double *values = calloc(n, sizeof(*values));
    size_t i;
    size_t k;
    int rv = values != NULL ? curve_make_grid(lines, n, finished, c) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    if (c->n > 0) {
        c->mean = calloc(c->n, sizeof(*c->mean));
        c->low = calloc(c->n, sizeof(*c->low));
        c->high = calloc(c->n, sizeof(*c->high));
        rv = c->mean != NULL && c->low != NULL && c->high != NULL ? FL_OK : FL_ENOMEM;
        if (rv != FL_OK) {
            goto done;
        }
    }
    for (i = 0; i < c->n; i++) {
        for (k = 0; k < n; k++) {
            values[k] = line_at(&lines[k], c->x[i]);
        }
        curve_band_at(c, i, values, n, band);
    }
done:
    free(values);
    return rv;
}

int fl_curve_make(const struct fl_read_point *point, enum fl_axis axis,
                  const struct fl_row_figure *y, unsigned smooth, enum fl_band band,
                  struct fl_curve *ret, struct fl_err *err)
{
    struct line *lines = calloc(point->n_trials > 0 ? point->n_trials : 1, sizeof(*lines));
    struct fl_curve c = {0};
    bool finished = false;
    size_t n = 0;
    size_t i;
    int rv = lines != NULL ? FL_OK : FL_ENOMEM;

    for (i = 0; i < point->n_trials; i++) {
        finished = finished || point->trials[i].finished;
    }
    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < point->n_trials; i++) {
        if (finished && !point->trials[i].finished) {
            continue;
        }
        rv = line_make(&point->trials[i], axis, y, smooth, &lines[n]);
        if (rv != FL_OK) {
            goto done;
        }
        if (lines[n].n > 0) {
            n++;
        } else {
            line_done(&lines[n]);
        }
    }
    if (n > 0) {
        rv = curve_join(lines, n, finished, band, &c);
        c.n_trials = n;
    }
done:
    for (i = 0; i < n; i++) {
        line_done(&lines[i]);
    }
    free(lines);
    if (rv != FL_OK) {
        fl_curve_done(&c);
        return fl_err_set(err, rv, "out of memory for the curve of '%s'", point->label);
    }
    *ret = c;
    return FL_OK;
}

void fl_curve_done(struct fl_curve *curve)
{
    free(curve->x);
    free(curve->mean);
    free(curve->low);
    free(curve->high);
    (void)memset(curve, 0, sizeof(*curve));
}
