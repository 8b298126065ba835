/* Makes the gnuplot script of a picture. Pure functions; gnuplot.c runs it. */

#include "tools/fl_sim/results/plot.h"

#include <math.h>
#include <string.h>

#include "libfl/base/writer.h"
#include "tools/fl_sim/results/scale.h"

/*
 * Colours for all kinds of colour vision: Okabe and Ito, Color Universal Design (2002), without the
 * yellow, which is faint on white. Series beyond the number of colours are dashed.
 */
static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000"};
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))

/* Legend: width of a line of names in pixels, and the width of an entry without and per
   character. */
#define KEY_WIDTH  700
#define KEY_SAMPLE 60
#define KEY_LETTER 9

/* In single quotes, only the quote itself is special to gnuplot. */
static void plot_add_quoted(struct fl_writer *w, const char *text)
{
    const char *p;

    fl_writer_printf(w, "'");
    for (p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;

        fl_writer_printf(w, *p == '\'' ? "'%c" : "%c", c < ' ' || c == 0x7f ? ' ' : *p);
    }
    fl_writer_printf(w, "'");
}

static void plot_add_set(struct fl_writer *w, const char *what, const char *text)
{
    fl_writer_printf(w, "set %s ", what);
    plot_add_quoted(w, text);
    fl_writer_printf(w, "\n");
}

/* The largest and the smallest positive value of the picture. */
struct extent {
    double x_first, x_last;
    double y_low, y_high;
};

static struct extent plot_extent(const struct fl_plot *plot)
{
    struct extent e = {(double)INFINITY, 0.0, (double)INFINITY, -(double)INFINITY};
    size_t s;
    size_t i;

    for (s = 0; s < plot->n_series; s++) {
        const struct fl_curve *c = &plot->series[s].curve;

        for (i = 0; i < c->n; i++) {
            if (c->x[i] > 0.0 && c->x[i] < e.x_first) {
                e.x_first = c->x[i];
            }
            e.x_last = c->x[i] > e.x_last ? c->x[i] : e.x_last;
            e.y_low = c->low[i] < e.y_low ? c->low[i] : e.y_low;
            e.y_high = c->high[i] > e.y_high ? c->high[i] : e.y_high;
        }
    }
    return e;
}

/* "uplink (MB)"; for "wall_us" in seconds "wall (s)". */
static void plot_add_axis_label(struct fl_writer *w, const char *what, const char *name,
                                const char *unit)
{
    int len = (int)strlen(name) - (fl_str_ends_with(name, "_us") ? 3 : 0);
    char text[160];
    char *p;

    (void)snprintf(text, sizeof(text), "%.*s%s%s%s", len, name, unit[0] != '\0' ? " (" : "", unit,
                   unit[0] != '\0' ? ")" : "");
    for (p = text; *p != '\0'; p++) {
        *p = *p == '_' ? ' ' : *p;
    }
    plot_add_set(w, what, text);
}

static const char *plot_axis_label(enum fl_axis axis)
{
    static const char *const labels[FL_N_AXES] = {
        [FL_AXIS_ROUNDS] = "rounds",
        [FL_AXIS_UPLINK] = "uplink bytes that the server accepted",
        [FL_AXIS_BYTES] = "all bytes, up and down",
        [FL_AXIS_TIME] = "simulated time",
        [FL_AXIS_MODELS] = "communication units (full models)"};

    return labels[axis];
}

/*
 * Number of lines of the legend below the curves, estimated from the widths of its names in a
 * picture 800 wide: gnuplot places them, and the picture grows by as many lines so that the curves
 * keep their size.
 */
static unsigned plot_legend_lines(const struct fl_plot *plot)
{
    size_t longest = 1;
    size_t in_a_line;
    size_t s;

    for (s = 0; s < plot->n_series; s++) {
        size_t len = strlen(plot->series[s].label);

        longest = len > longest ? len : longest;
    }
    in_a_line = KEY_WIDTH / (KEY_SAMPLE + longest * KEY_LETTER);
    in_a_line = in_a_line > 0 ? in_a_line : 1;
    return (unsigned)((plot->n_series + in_a_line - 1) / in_a_line);
}

/* Bands first, so that they do not cover curves. */
static void plot_add_curves(struct fl_writer *w, const struct fl_plot *plot)
{
    const char *lead = "plot ";
    size_t s;

    for (s = 0; s < plot->n_series; s++) {
        const struct fl_curve *c = &plot->series[s].curve;

        if (c->n > 0 && plot->band && c->n_trials > 1) {
            fl_writer_printf(w,
                             "%s$s%zu using 1:3:4 with filledcurves "
                             "fillcolor rgb '%s' fillstyle transparent solid 0.15 noborder "
                             "notitle",
                             lead, s, colours[s % N_COLOURS]);
            lead = ", \\\n  ";
        }
    }
    for (s = 0; s < plot->n_series; s++) {
        if (plot->series[s].curve.n == 0) {
            continue;
        }
        fl_writer_printf(w,
                         "%s$s%zu using 1:2 with lines linewidth 2 dashtype %zu "
                         "linecolor rgb '%s' title ",
                         lead, s, s / N_COLOURS + 1, colours[s % N_COLOURS]);
        plot_add_quoted(w, plot->series[s].label);
        lead = ", \\\n  ";
    }
    fl_writer_printf(w, "\n");
}

/* `height` is that of the SVG, in pixels. */
static void plot_add_terminal(struct fl_writer *w, enum fl_picture picture, unsigned height)
{
    if (picture == FL_PICTURE_SVG) {
        fl_writer_printf(w,
                         "set encoding utf8\nset terminal svg size 800,%u dynamic "
                         "noenhanced font 'DejaVu Sans,15' linewidth 1 "
                         "background '#FFFFFF'\n",
                         height);
    } else if (picture == FL_PICTURE_PDF) {
        fl_writer_printf(w,
                         "set encoding utf8\nset terminal pdfcairo size 16cm,%.1fcm "
                         "noenhanced font 'DejaVu Sans,9' linewidth 1 "
                         "background '#FFFFFF'\n",
                         height / 50.0);
    } else {
        fl_writer_printf(w,
                         "set encoding utf8\nset terminal pngcairo size 1600,%u "
                         "noenhanced font 'DejaVu Sans,23' linewidth 2 "
                         "background '#FFFFFF'\n",
                         2 * height);
    }
}

int fl_plot_script(struct fl_buf *out, const struct fl_plot *plot, enum fl_picture picture,
                   const char *path)
{
    struct extent e = plot_extent(plot);
    struct fl_scale x = fl_scale_axis(plot->axis, e.x_last);
    struct fl_scale y = fl_scale_unit(plot->y->figure->unit, e.y_high);
    struct fl_writer w = {.out = out};
    size_t i;
    size_t s;

    plot_add_terminal(&w, picture, 488 + 24 * plot_legend_lines(plot));
    plot_add_set(&w, "output", path);
    fl_writer_printf(&w, "set border 3 linecolor rgb '#606060'\n"
                         "set tics nomirror out scale 0.6 textcolor rgb '#303030'\n"
                         "set grid xtics ytics linetype 1 linewidth 0.6 "
                         "linecolor rgb '#E0E0E0'\n"
                         "set key outside bottom left horizontal Left reverse samplen 3 "
                         "spacing 1.2 height 1\n");
    if (plot->title != NULL && plot->title[0] != '\0') {
        plot_add_set(&w, "title", plot->title);
    }
    plot_add_axis_label(&w, "xlabel", plot_axis_label(plot->axis), x.unit);
    plot_add_axis_label(&w, "ylabel", fl_row_key(plot->y), y.unit);
    /* If the axis is 0 everywhere, neither a logarithm nor a range is possible. */
    if (plot->log_x && e.x_last > 0.0) {
        fl_writer_printf(&w, "set logscale x 10\nset xrange [%.6g:%.6g]\n",
                         e.x_first / x.per * 0.95, e.x_last / x.per * 1.05);
    } else {
        fl_writer_printf(&w, "set xrange [0:%.6g]\n", e.x_last > 0.0 ? e.x_last / x.per : 1.0);
    }
    if (plot->y_limited) {
        fl_writer_printf(&w, "set yrange [%.9g:%.9g]\n", plot->y_low / y.per, plot->y_high / y.per);
    }
    for (s = 0; s < plot->n_series; s++) {
        if (plot->series[s].curve.n > 0) {
            fl_writer_printf(&w, "$s%zu << END\n", s);
            for (i = 0; i < plot->series[s].curve.n; i++) {
                fl_writer_printf(&w, "%.9g %.9g %.9g %.9g\n", plot->series[s].curve.x[i] / x.per,
                                 plot->series[s].curve.mean[i] / y.per,
                                 plot->series[s].curve.low[i] / y.per,
                                 plot->series[s].curve.high[i] / y.per);
            }
            fl_writer_printf(&w, "END\n");
        }
    }
    plot_add_curves(&w, plot);
    return w.code;
}
