/* Lines over rounds (chart.h). Pure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/page/chart_impl.h"

#define LINES_LABEL 15 /* characters of a label at the end of a line */
#define LINES_GAP   14 /* between two labels */

struct lines {
    struct fl_html *html;
    const struct fl_chart *chart;
    size_t m, n_series; /* drawn */
    struct fl__chart_scale y;
    double left, right; /* of the plot */
};

/* The last known value of group `i`; NAN: none. *ret_x: the x that it belongs to. */
static double lines_value(const struct lines *l, size_t series, size_t i, uint64_t *ret_x)
{
    const struct fl_chart *c = l->chart;
    size_t from;
    size_t to;

    fl__chart_group(i, l->m, c->n, &from, &to);
    *ret_x = c->x[to - 1];
    while (to > from) {
        to--;
        if (fl__chart_known(c->series[series].values[to])) {
            *ret_x = c->x[to];
            return c->series[series].values[to];
        }
    }
    return FL_CHART_UNKNOWN;
}

static double lines_x(const struct lines *l, uint64_t x)
{
    const struct fl_chart *c = l->chart;
    uint64_t first = c->x[0];
    uint64_t span = c->x[c->n - 1] - first;

    return span == 0 ? (l->left + l->right) / 2
                     : l->left + (double)(x - first) / (double)span * (l->right - l->left);
}

static double lines_y(const struct lines *l, double value)
{
    return CHART_BOTTOM - fl__chart_place(&l->y, value) * (CHART_BOTTOM - CHART_TOP);
}

/* Extremes of what is drawn; false: nothing is known. */
static bool lines_range(const struct lines *l, double *ret_least, double *ret_most)
{
    bool known = false;
    uint64_t x;
    size_t s;
    size_t i;

    for (s = 0; s < l->n_series; s++) {
        for (i = 0; i < l->m; i++) {
            double v = lines_value(l, s, i, &x);

            if (fl__chart_known(v)) {
                *ret_least = known ? fmin(*ret_least, v) : v;
                *ret_most = known ? fmax(*ret_most, v) : v;
                known = true;
            }
        }
    }
    return known;
}

/* First, middle and last round. */
static void lines_x_axis(const struct lines *l)
{
    const struct fl_chart *c = l->chart;
    uint64_t first = c->x[0];
    uint64_t last = c->x[c->n - 1];
    uint64_t middle = first + (last - first) / 2;

    fl_html(l->html, "<path class=\"a\" d=\"M%.1f %dH%.1f\"/>", l->left, CHART_BOTTOM, l->right);
    fl_html(l->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%llu</text>", lines_x(l, first),
            CHART_BOTTOM + 15, (unsigned long long)first);
    if (last - first >= 4) {
        fl_html(l->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%llu</text>", lines_x(l, middle),
                CHART_BOTTOM + 15, (unsigned long long)middle);
    }
    if (last > first) {
        fl_html(l->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%llu</text>", lines_x(l, last),
                CHART_BOTTOM + 15, (unsigned long long)last);
    }
    fl_html(l->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%s</text>", (l->left + l->right) / 2,
            CHART_BOTTOM + 29, c->x_label);
}

/* Draws a series; returns the y of its end, negative when nothing of it is known. */
static double lines_draw(const struct lines *l, size_t series)
{
    const char *class = l->chart->series[series].reference ? "r" : "";
    double x = 0;
    double y = -1;
    uint64_t at;
    size_t i;

    fl_html(l->html, "<path class=\"l %s s%zu\" d=\"", class, series);
    for (i = 0; i < l->m; i++) {
        double v = lines_value(l, series, i, &at);

        if (fl__chart_known(v)) {
            const char *move = y < 0 ? "M" : "L";

            x = lines_x(l, at);
            y = lines_y(l, v);
            fl_html(l->html, "%s%.1f %.1f", move, x, y);
        }
    }
    fl_html(l->html, "\"/>");
    if (y >= 0 && l->n_series == 1) { /* Else at its label. */
        fl_html(l->html, "<circle class=\"p %s s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", class,
                series, x, y);
    }
    return y;
}

/* Labels at the ends of the lines, moved apart. */
static void lines_labels(const struct lines *l, const double *ends)
{
    size_t order[FL_CHART_SERIES];
    double at[FL_CHART_SERIES];
    char text[64];
    size_t n = 0;
    size_t i;
    size_t k;

    for (i = 0; i < l->n_series; i++) {
        if (ends[i] >= 0) {
            for (k = n++; k > 0 && ends[order[k - 1]] > ends[i]; k--) {
                order[k] = order[k - 1];
            }
            order[k] = i;
        }
    }
    for (i = 0; i < n; i++) {
        at[i] = i > 0 ? fmax(ends[order[i]], at[i - 1] + LINES_GAP) : ends[order[i]];
    }
    for (i = n; i > 0; i--) { /* Up again, where they were moved below the axis. */
        double most = i == n ? CHART_BOTTOM : at[i] - LINES_GAP;

        at[i - 1] = fmin(at[i - 1], most);
    }
    for (i = 0; i < n; i++) {
        const struct fl_chart_series *s = &l->chart->series[order[i]];

        fl_html(l->html, "<circle class=\"p %s s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
                s->reference ? "r" : "", order[i], l->right + 11, at[i]);
        fl_html(l->html, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", l->right + 18, at[i] + 4,
                fl__chart_cut(s->label, LINES_LABEL, text, sizeof(text)));
    }
}

static void lines_table(const struct lines *l)
{
    const struct fl_chart *c = l->chart;
    char text[FL_CHART_TEXT];
    uint64_t x;
    size_t s;
    size_t i;

    fl__chart_table(l->html, &c->head);
    fl_html(l->html, "<thead><tr><th scope=\"col\">%s</th>", c->x_label);
    for (s = 0; s < l->n_series; s++) {
        fl_html(l->html, "<th scope=\"col\">%s</th>", c->series[s].label);
    }
    fl_html(l->html, "</tr></thead><tbody>\n");
    for (i = 0; i < l->m; i++) {
        (void)lines_value(l, 0, i, &x);
        fl_html(l->html, "<tr><th scope=\"row\">%llu</th>", (unsigned long long)x);
        for (s = 0; s < l->n_series; s++) {
            fl_html(l->html, "<td>%s</td>",
                    fl_chart_text(c->head.unit, lines_value(l, s, i, &x), text));
        }
        fl_html(l->html, "</tr>\n");
    }
    fl__chart_end(l->html);
}

/* Room for the labels: of as many characters as the longest has. */
static double lines_margin(const struct lines *l)
{
    size_t longest = 0;
    size_t s;

    for (s = 0; l->n_series > 1 && s < l->n_series; s++) {
        size_t len = strlen(l->chart->series[s].label);

        longest = len > longest ? len : longest;
    }
    longest = longest > LINES_LABEL ? LINES_LABEL : longest;
    return longest == 0 ? 14 : 22 + (double)longest * 7;
}

void fl_chart_lines(struct fl_html *html, const struct fl_chart *chart)
{
    struct lines l = {.html = html, .chart = chart, .left = CHART_LEFT};
    double ends[FL_CHART_SERIES] = {0};
    double least = 0;
    double most = 0;
    size_t s;

    l.m = chart->n < FL_CHART_POINTS ? chart->n : FL_CHART_POINTS;
    l.n_series = chart->n_series < FL_CHART_SERIES ? chart->n_series : FL_CHART_SERIES;
    l.right = CHART_WIDTH - lines_margin(&l);
    if (!fl__chart_begin(html, &chart->head, lines_range(&l, &least, &most))) {
        return;
    }
    l.y = fl__chart_scale(chart->head.unit, least, most,
                          chart->head.unit == FL_CHART_BYTES || chart->head.unit == FL_CHART_TIME ||
                              chart->head.unit == FL_CHART_COUNT);
    fl__chart_svg(html, &chart->head, CHART_HEIGHT);
    fl__chart_y_axis(html, &l.y, l.right);
    lines_x_axis(&l);
    for (s = 0; s < l.n_series; s++) { /* What is compared with lies beneath. */
        if (chart->series[s].reference) {
            ends[s] = lines_draw(&l, s);
        }
    }
    for (s = 0; s < l.n_series; s++) {
        if (!chart->series[s].reference) {
            ends[s] = lines_draw(&l, s);
        }
    }
    if (l.n_series > 1) {
        lines_labels(&l, ends);
    }
    fl__chart_svg_end(html);
    fl__chart_caption(html, &chart->head, chart->n / l.m, false, chart->n_series - l.n_series);
    lines_table(&l);
}
