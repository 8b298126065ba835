#ifndef FL_RESULTS_PLOT_H
#define FL_RESULTS_PLOT_H

/* Pictures of curves, drawn by gnuplot. */

#include "libfl/base/buf.h"
#include "tools/fl_sim/results/curve.h"

struct fl_series {
    const char *label;
    struct fl_curve curve;
};

enum fl_picture { FL_PICTURE_SVG, FL_PICTURE_PNG, FL_PICTURE_PDF };

struct fl_plot {
    const char *title; /* NULL or "": none */
    enum fl_axis axis;
    const struct fl_row_figure *y;
    const struct fl_series *series;
    size_t n_series;
    bool log_x;
    bool band;
    bool pdf;       /* a PDF too */
    bool y_limited; /* the axis of y is from y_low to y_high, in base units */
    double y_low, y_high;
};

/*
 * The whole script, with its data, that writes the picture to `path`. User texts are escaped.
 * FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_plot_script(struct fl_buf *out, const struct fl_plot *plot,
                                 enum fl_picture picture, const char *path);
/*
 * Write `name`.svg, `name`.png and with `pdf` `name`.pdf, each atomically. FL_ENOENT: gnuplot is
 * not in PATH; FL_ESTATE: it failed, with the end of its stderr. Waits for it.
 */
FL_MUST_CHECK int fl_plot_draw(const struct fl_plot *plot, const char *name, struct fl_err *err);

#endif
