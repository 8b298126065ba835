/*
 * fl-sim plot: draws results. Reads the command line and the results, makes the curves
 * (results/curve.c) and calls results/plot.c for each picture. Main thread only; the script and
 * gnuplot are in results/.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/results/plot.h"

#define COMMAND    "plot"
#define SMOOTH_MAX 10001
/* A picture has no room for more curves. */
#define SERIES_MAX 64
#define LABEL_SIZE 512
/* Ratio of curve lengths above which the axis is logarithmic: on a linear one a longer curve would
   hide the shorter one. */
#define FAR_APART 16.0

struct options {
    const char *out, *title, *y;
    int axis; /* -1: the four axes of the help */
    unsigned smooth;
    enum fl_band band;
    const char *scale;
    bool pdf;
    bool y_limited;
    double y_low, y_high;
};

/* The curves of all pictures. */
struct drawn {
    struct fl_read_set set;
    struct fl_series series[SERIES_MAX];
    const struct fl_read_point *points[SERIES_MAX];
    char labels[SERIES_MAX][LABEL_SIZE];
    size_t n;
};

static const struct fl_arg rows[] = {
    FL_ARG("x", '\0', "AXIS", 'x',
           "rounds, uplink (bytes that the server accepted), bytes (all that was sent), time "
           "(simulated) or models (uplink in full models)"),
    FL_ARG("y", '\0', "FIGURE", 'y',
           "accuracy, loss, personal_accuracy, client_accuracy_worst_tenth, wall_us, or any "
           "other key of rounds.jsonl, such as metrics.macro_f1; default: accuracy, else "
           "personal_accuracy, else "
           "(--no-training) uplink_bytes"),
    FL_ARG("out", '\0', "NAME", 'o', "default: the figure, in the current folder"),
    FL_ARG("title", '\0', "TEXT", 't', "above the picture"),
    FL_ARG("smooth", '\0', "N", 's',
           "moving mean over N rounds in which the figure is known (odd)"),
    FL_ARG("band", '\0', "WHAT", 'b',
           "range (smallest to largest of the trials, the default), std or none"),
    FL_ARG("scale", '\0', "WHAT", 'c',
           "of the bytes or the time: linear, log, or auto (the default): log when one curve is "
           "more than 16 times as long as another"),
    FL_ARG("ylim", '\0', "LO:HI", 'l',
           "range of the figure's axis, in its base unit: of shares 0.8:1, bytes, microseconds"),
    FL_ARG("pdf", '\0', NULL, 'p', "also write NAME.pdf"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static const char help_before[] =
    "Usage: fl-sim plot [OPTION]... DIR...\n\n"
    "Draw the results of runs (DIR) or of single points of them (DIR/POINT) in one picture: a\n"
    "curve for each point, the mean over its trials, with a band around it. Writes NAME.svg and\n"
    "NAME.png through gnuplot; without --x NAME-rounds, NAME-uplink, NAME-bytes and NAME-time.\n";
static const char help_after[] = "\nExit status: 0 done, 1 failed, 2 wrong usage.";

static int plot_find_name(const char *const *names, size_t n, const char *name)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int plot_take_range(const char *text, struct options *o)
{
    char low[64];
    const char *colon = strchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : sizeof(low);

    if (len >= sizeof(low)) {
        len = 0;
    }
    (void)snprintf(low, sizeof(low), "%.*s", (int)len, text);
    o->y_limited = len > 0 && fl_str_to_double(low, &o->y_low) == FL_OK &&
                   fl_str_to_double(colon + 1, &o->y_high) == FL_OK && o->y_low < o->y_high;
    return o->y_limited ? 0
                        : usage_error(COMMAND,
                                      "--ylim: expected two numbers LO:HI, the smaller one first, "
                                      "found '%s'",
                                      text);
}

/* 0, or an exit code after a usage error was printed. */
static int plot_take_option(int opt, const char *value, struct options *o)
{
    static const char *const bands[] = {
        [FL_BAND_RANGE] = "range", [FL_BAND_DEVIATION] = "std", [FL_BAND_NONE] = "none"};
    static const char *const scales[] = {"auto", "linear", "log"};
    uint64_t number;
    int found;

    switch (opt) {
    case 'x':
        o->axis = plot_find_name(fl_axis_names, FL_N_AXES, value);
        return o->axis >= 0 ? 0
                            : usage_error(COMMAND,
                                          "--x: expected rounds, uplink, bytes, time or "
                                          "models, found '%s'",
                                          value);
    case 'b':
        found = plot_find_name(bands, 3, value);
        o->band = (enum fl_band)found;
        return found >= 0
                   ? 0
                   : usage_error(COMMAND, "--band: expected range, std or none, found '%s'", value);
    case 'c':
        o->scale = value;
        return plot_find_name(scales, 3, value) >= 0
                   ? 0
                   : usage_error(COMMAND, "--scale: expected auto, linear or log, found '%s'",
                                 value);
    case 's':
        if (fl_str_to_u64(value, &number) != FL_OK || number % 2 == 0 || number > SMOOTH_MAX) {
            return usage_error(COMMAND, "--smooth: expected an odd number from 1 to %d, found '%s'",
                               SMOOTH_MAX, value);
        }
        o->smooth = (unsigned)number;
        return 0;
    case 'l':
        return plot_take_range(value, o);
    case 'p':
        o->pdf = true;
        return 0;
    case 'y':
        o->y = value;
        return 0;
    case 'o':
        o->out = value;
        return 0;
    default:
        o->title = value;
        return 0;
    }
}

/* --- the curves --- */

static int plot_make_curves(struct drawn *d, const struct options *o, enum fl_axis axis,
                            const struct fl_row_figure *y, struct fl_err *err)
{
    bool known = false;
    size_t i;

    for (i = 0; i < d->n; i++) {
        int rv;

        fl_curve_done(&d->series[i].curve);
        rv = fl_curve_make(d->points[i], axis, y, o->smooth, o->band, &d->series[i].curve, err);
        if (rv != FL_OK) {
            return rv;
        }
        known = known || d->series[i].curve.n > 0;
    }
    return known ? FL_OK
                 : fl_err_set(err, FL_ENOENT,
                              "'%s' is unknown in all rounds of these results: figures that are "
                              "not evaluated, or not "
                              "computed with --no-training, cannot be drawn; uplink_bytes, "
                              "downlink_bytes and wall_us are always known",
                              fl_row_key(y));
}

static bool plot_has_figure(const struct drawn *d, const char *key)
{
    struct fl_row_figure figure;
    bool known = false;
    size_t i;

    FL_REQUIRE(fl_row_find(key, &figure));
    for (i = 0; !known && i < d->n; i++) {
        struct fl_curve curve = {.n = 0};

        known = fl_curve_make(d->points[i], FL_AXIS_ROUNDS, &figure, 1, FL_BAND_NONE, &curve,
                              NULL) == FL_OK &&
                curve.n > 0;
        fl_curve_done(&curve);
    }
    return known;
}

/* A run with --no-training has bytes and times only. */
static const char *plot_default_figure(const struct drawn *d)
{
    const char *quality = fl_read_quality(&d->set);

    if (d->n == 0 || plot_has_figure(d, quality)) {
        return quality;
    }
    (void)fprintf(
        stderr, "fl-sim " COMMAND
                ": the accuracy is unknown in all rounds of these results (--no-training, "
                "or no evaluation): drawing uplink_bytes; --y downlink_bytes or --y wall_us draws "
                "other known figures\n");
    return "uplink_bytes";
}

/* *ret_drawn: false when the axis is 0 in all rounds. */
static int plot_draw(struct drawn *d, const struct options *o, enum fl_axis axis,
                     const struct fl_row_figure *y, const char *name, bool *ret_drawn,
                     struct fl_err *err)
{
    struct fl_plot plot_run = {.title = o->title,
                               .axis = axis,
                               .y = y,
                               .series = d->series,
                               .n_series = d->n,
                               .band = o->band != FL_BAND_NONE,
                               .pdf = o->pdf,
                               .y_limited = o->y_limited,
                               .y_low = o->y_low,
                               .y_high = o->y_high};
    size_t i;
    double shortest;
    double longest;
    int rv = plot_make_curves(d, o, axis, y, err);

    if (rv != FL_OK) {
        return rv;
    }
    /* Ends of the shortest and of the longest curve. */
    shortest = 0.0;
    longest = 0.0;
    for (i = 0; i < d->n; i++) {
        const struct fl_curve *c = &d->series[i].curve;
        double end = c->n > 0 ? c->x[c->n - 1] : 0.0;

        if (end > 0.0 && (!(shortest > 0.0) || end < shortest)) {
            shortest = end;
        }
        longest = end > longest ? end : longest;
    }
    *ret_drawn = longest > 0.0;
    if (!*ret_drawn) {
        return FL_OK;
    }
    plot_run.log_x = axis != FL_AXIS_ROUNDS &&
                     (strcmp(o->scale, "log") == 0 ||
                      (strcmp(o->scale, "auto") == 0 && longest > FAR_APART * shortest));
    rv = fl_plot_draw(&plot_run, name, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)printf("%s.svg\n%s.png\n", name, name);
    if (o->pdf) {
        (void)printf("%s.pdf\n", name);
    }
    return FL_OK;
}

/* The name of a file: a metric may have "/" in it. `own` has FL_EVAL_METRIC_KEY bytes. */
static const char *plot_own_name(const struct fl_row_figure *y, char *own)
{
    size_t i;

    if (y->metric == NULL) {
        return fl_row_key(y);
    }
    (void)snprintf(own, FL_EVAL_METRIC_KEY, "%s", y->metric);
    for (i = 0; own[i] != '\0'; i++) {
        own[i] = own[i] == '/' ? '-' : own[i];
    }
    return own;
}

static int plot_draw_all(struct drawn *d, const struct options *o, const struct fl_row_figure *y,
                         struct fl_err *err)
{
    char own[FL_EVAL_METRIC_KEY];
    const char *base = o->out != NULL ? o->out : plot_own_name(y, own);
    char name[2048];
    bool drawn = true;
    int axis;
    int rv;

    if (o->axis >= 0) {
        rv = plot_draw(d, o, (enum fl_axis)o->axis, y, base, &drawn, err);
        if (rv != FL_OK) {
            return rv;
        }
        return drawn ? FL_OK
                     : fl_err_set(err, FL_ENOENT,
                                  "these results have no '%s': it is 0 in every round",
                                  fl_axis_names[o->axis]);
    }
    for (axis = FL_AXIS_ROUNDS; axis <= FL_AXIS_TIME; axis++) {
        (void)snprintf(name, sizeof(name), "%s-%s", base, fl_axis_names[axis]);
        rv = plot_draw(d, o, (enum fl_axis)axis, y, name, &drawn, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (!drawn) {
            (void)fprintf(stderr,
                          "fl-sim " COMMAND ": no picture over %s, which is 0 in every "
                          "round\n",
                          fl_axis_names[axis]);
        }
    }
    return FL_OK;
}

static int plot_run(const struct options *o, char *const *paths, size_t n, struct fl_err *err)
{
    struct drawn *d = calloc(1, sizeof(*d));
    struct fl_row_figure y;
    size_t r;
    size_t p;
    size_t i;
    int rv = d != NULL ? fl_read_all(paths, n, &d->set, err)
                       : fl_err_set(err, FL_ENOMEM, "out of memory for the results");

    if (rv != FL_OK) {
        goto done;
    }
    for (r = 0; r < d->set.n; r++) {
        const struct fl_read_run *run = d->set.runs[r];

        for (p = 0; p < run->n_points; p++) {
            if (run->points[p].n_trials == 0) {
                continue;
            }
            if (d->n == SERIES_MAX) {
                rv = fl_err_set(err, FL_ELIMIT,
                                "more than %d curves in a picture: choose points (DIR/POINT)",
                                SERIES_MAX);
                goto done;
            }
            d->points[d->n] = &run->points[p];
            d->series[d->n].label =
                fl_read_label(&d->set, run, &run->points[p], d->labels[d->n], LABEL_SIZE);
            d->n++;
        }
    }
    FL_REQUIRE(fl_row_find(o->y != NULL ? o->y : plot_default_figure(d), &y));
    rv = plot_draw_all(d, o, &y, err);
done:
    for (i = 0; d != NULL && i < d->n; i++) {
        fl_curve_done(&d->series[i].curve);
    }
    if (d != NULL) {
        fl_read_set_done(&d->set);
    }
    free(d);
    return rv;
}

int cmd_plot(int argc, char **argv)
{
    struct fl_args args = {.program = "fl-sim " COMMAND, .rows = rows, .argc = argc, .argv = argv};
    struct options o = {.axis = -1, .smooth = 1, .scale = "auto"};
    struct fl_row_figure y;
    struct fl_err err = {0};
    int opt;
    int rv;

    while ((opt = command_next(&args, help_before, help_after)) != FL_ARGS_END) {
        rv = plot_take_option(opt, args.value, &o);
        if (rv != 0) {
            return rv;
        }
    }
    if (args.n_operands == 0) {
        return usage_error(COMMAND, "expected the folder of a run");
    }
    if (o.y != NULL && !fl_row_find(o.y, &y)) {
        const char *near = fl_row_nearest(o.y);

        return usage_error(COMMAND, "--y: unknown figure '%s'%s%s%s", o.y,
                           near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                           near != NULL ? "'?" : "");
    }
    rv = plot_run(&o, argv + 1, (size_t)args.n_operands, &err);
    return command_end(COMMAND, rv, &err);
}
