#ifndef FL_PAGE_CHART_H
#define FL_PAGE_CHART_H

/*
 * Charts as SVG in a <figure> with heading, caption, and the same values as a table behind
 * <details>. Nothing in them needs a style attribute or a script, so a strict content-security
 * policy holds; colours come from the classes s0 to s7 of the style sheet.
 *
 * Values: NAN, infinity and magnitudes above 1e300 are unknown: they are not drawn, and "–" in the
 * table. A chart without a known value says so in place of the picture. Many values are thinned to
 * what can be seen: a line to FL_CHART_POINTS points (the last known value of each group of
 * rounds), bars to FL_CHART_BARS (the mean of each group); the table has the drawn values, and the
 * caption says how many rounds a value stands for.
 *
 * All pointers are borrowed. Errors are kept in the writer. Threading: as the buffer.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/page/html.h"

/* A value that is not known. */
#define FL_CHART_UNKNOWN ((double)NAN)

enum fl_chart_unit {
    FL_CHART_NUMBER,
    FL_CHART_COUNT,
    FL_CHART_SHARE, /* 0 to 1, shown as per cent */
    FL_CHART_BYTES,
    FL_CHART_TIME /* microseconds */
};

/* Room for a value as text. */
#define FL_CHART_TEXT 48
/* "91.2 %", "1.5 MB", "3.2 s"; "–" for an unknown value. Returns `out`. */
const char *fl_chart_text(enum fl_chart_unit unit, double value, char out[FL_CHART_TEXT]);

#define FL_CHART_SERIES 8   /* drawn at most; further ones are only counted in the caption */
#define FL_CHART_POINTS 100 /* of a line */
#define FL_CHART_BARS   50
#define FL_CHART_RANKS  20 /* bars of fl_chart_ranks() */
#define FL_HEAT_ROWS    40
#define FL_HEAT_COLUMNS 40

/* What all charts have. */
struct fl_chart_head {
    const char *id;       /* unique in the page: letters, digits, '-' */
    const char *title;    /* "Accuracy" */
    const char *headline; /* the newest value in words; NULL: none */
    const char *caption;  /* what is drawn; one sentence */
    enum fl_chart_unit unit;
};

struct fl_chart_series {
    const char *label;
    const double *values; /* [n] */
    bool reference;       /* something to compare with: drawn grey and dashed */
};

struct fl_chart {
    struct fl_chart_head head;
    const char *x_label; /* "round" */
    const uint64_t *x;   /* [n], increasing */
    size_t n;
    const struct fl_chart_series *series;
    size_t n_series;
};

/* A line for each series, labelled at its end. */
void fl_chart_lines(struct fl_html *html, const struct fl_chart *chart);
/* Stacked bars; series that are 0 everywhere are left out. Negative values count as 0. */
void fl_chart_bars(struct fl_html *html, const struct fl_chart *chart);

/* Horizontal bars with a label each, in their order. Negative values count as 0. */
struct fl_chart_rank {
    const char *label;
    double value;
};
void fl_chart_ranks(struct fl_html *html, const struct fl_chart_head *head, const char *label_head,
                    const struct fl_chart_rank *ranks, size_t n);

/* A heat map: a cell is the darker the larger its value, from 0 to `full`. */
struct fl_heat {
    struct fl_chart_head head;
    const char *row_head;       /* "client" */
    const char *const *rows;    /* [n_rows] */
    const char *const *columns; /* [n_columns] */
    size_t n_rows, n_columns;
    const double *values; /* [n_rows * n_columns], row by row; NAN: an empty cell */
    double full;          /* 0: the largest value */
};
void fl_chart_heat(struct fl_html *html, const struct fl_heat *heat);

#endif
