#ifndef FL_PAGE_CHART_IMPL_H
#define FL_PAGE_CHART_IMPL_H

/* What the kinds of charts share: frame, scales and axes. */

#include "libfl/page/chart.h"

/* The picture, in units of its viewBox; on a narrow screen it becomes smaller as a whole. */
#define CHART_WIDTH  360
#define CHART_HEIGHT 210
#define CHART_LEFT   40
#define CHART_TOP    18
#define CHART_BOTTOM 178

bool fl__chart_known(double value);

/* A linear axis with round ticks. */
struct fl__chart_scale {
    double lo, hi, step; /* in shown units */
    double factor;       /* shown units in one of the value */
    const char *unit;    /* "%", "MB"; "" for none */
};
/* A scale that contains both values, and 0 when `zero`. */
struct fl__chart_scale fl__chart_scale(enum fl_chart_unit unit, double least, double most,
                                       bool zero);
/* 0 at its lower end, 1 at its upper. */
double fl__chart_place(const struct fl__chart_scale *scale, double value);

/* The group of values that drawn value `i` of `m` stands for: [*from, *to). */
void fl__chart_group(size_t i, size_t m, size_t n, size_t *from, size_t *to);

/* Begin the figure with its heading; false: nothing is known, which was said. */
bool fl__chart_begin(struct fl_html *html, const struct fl_chart_head *head, bool known);
/* Begin and end the picture. */
void fl__chart_svg(struct fl_html *html, const struct fl_chart_head *head, int height);
void fl__chart_svg_end(struct fl_html *html);
/* Caption; `each` above 1: what is drawn stands for so many rounds. `more`: series not drawn. */
void fl__chart_caption(struct fl_html *html, const struct fl_chart_head *head, size_t each,
                       bool mean, size_t more);
/* Begin and end of the table and of the figure. */
void fl__chart_table(struct fl_html *html, const struct fl_chart_head *head);
void fl__chart_end(struct fl_html *html);
/* Grid lines and their values, from x = CHART_LEFT to `right`. */
void fl__chart_y_axis(struct fl_html *html, const struct fl__chart_scale *scale, double right);
/* `text` cut to `n` characters, with "…". Returns `out`. */
const char *fl__chart_cut(const char *text, size_t n, char *out, size_t size);

#endif
