/* Stacked bars over rounds, and horizontal bars with names (chart.h). Pure. */
#include <math.h>
#include <string.h>

#include "libfl/page/chart_impl.h"

#define RANK_STEP  17
#define RANK_LABEL 16 /* characters */
#define RANK_LEFT  112
#define RANK_RIGHT 296

struct bars {
    struct fl_html *html;
    const struct fl_chart *chart;
    size_t m;                      /* drawn */
    size_t shown[FL_CHART_SERIES]; /* series that are not 0 everywhere */
    size_t n_shown;
};

/* The mean of the known values of group `i`; NAN: none. */
static double bars_value(const struct bars *b, size_t series, size_t i)
{
    double sum = 0;
    size_t known = 0;
    size_t from;
    size_t to;

    fl__chart_group(i, b->m, b->chart->n, &from, &to);
    for (; from < to; from++) {
        double v = b->chart->series[series].values[from];

        if (fl__chart_known(v)) {
            sum += fmax(v, 0);
            known++;
        }
    }
    return known > 0 ? sum / (double)known : FL_CHART_UNKNOWN;
}

static double bars_sum(const struct bars *b, size_t i)
{
    double sum = 0;
    size_t s;

    for (s = 0; s < b->n_shown; s++) {
        double v = bars_value(b, b->shown[s], i);

        sum += fl__chart_known(v) ? v : 0;
    }
    return sum;
}

/* Which series are drawn; returns the number of those left out for their number. */
static size_t bars_choose(struct bars *b)
{
    size_t more = 0;
    size_t s;
    size_t i;

    for (s = 0; s < b->chart->n_series; s++) {
        for (i = 0; i < b->m && !(bars_value(b, s, i) > 0); i++) {
        }
        if (i < b->m && b->n_shown < FL_CHART_SERIES) {
            b->shown[b->n_shown++] = s;
        } else {
            more += i < b->m;
        }
    }
    return more;
}

static void bars_draw(const struct bars *b, const struct fl__chart_scale *y)
{
    const struct fl_chart *c = b->chart;
    double right = CHART_WIDTH - 14;
    double step = (right - CHART_LEFT) / (double)b->m;
    double width = fmin(step * 0.8, 40);
    size_t labels = b->m > 1 ? 2 : 1;
    size_t from;
    size_t to;
    size_t i;
    size_t s;

    fl__chart_y_axis(b->html, y, right);
    for (i = 0; i < b->m; i++) {
        double sum = 0;
        double bottom = CHART_BOTTOM;

        for (s = 0; s < b->n_shown; s++) {
            double v = bars_value(b, b->shown[s], i);
            double top;

            sum += fl__chart_known(v) ? v : 0;
            top = CHART_BOTTOM - fl__chart_place(y, sum) * (CHART_BOTTOM - CHART_TOP);
            if (bottom - top > 0.05) {
                fl_html(
                    b->html,
                    "<rect class=\"s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                    s, CHART_LEFT + step * ((double)i + 0.5) - width / 2, top, width, bottom - top);
            }
            bottom = top;
        }
    }
    fl_html(b->html, "<path class=\"a\" d=\"M%d %dH%.1f\"/>", CHART_LEFT, CHART_BOTTOM, right);
    for (i = 0; i < labels; i++) { /* First and last round. */
        size_t at = i == 0 ? 0 : b->m - 1;

        fl__chart_group(at, b->m, c->n, &from, &to);
        fl_html(b->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%llu</text>",
                CHART_LEFT + step * ((double)at + 0.5), CHART_BOTTOM + 15,
                (unsigned long long)c->x[i == 0 ? from : to - 1]);
    }
    fl_html(b->html, "<text x=\"%.1f\" y=\"%d\" class=\"m\">%s</text>", (CHART_LEFT + right) / 2,
            CHART_BOTTOM + 29, c->x_label);
}

static void bars_legend(const struct bars *b)
{
    size_t s;

    fl_html(b->html, "<ul class=\"legend\">");
    for (s = 0; s < b->n_shown; s++) {
        fl_html(b->html,
                "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"s%zu\" "
                "width=\"10\" height=\"10\"/></svg> %s</li>",
                s, b->chart->series[b->shown[s]].label);
    }
    fl_html(b->html, "</ul>");
}

static void bars_table(const struct bars *b)
{
    const struct fl_chart *c = b->chart;
    char text[FL_CHART_TEXT];
    size_t from;
    size_t to;
    size_t i;
    size_t s;

    fl__chart_table(b->html, &c->head);
    fl_html(b->html, "<thead><tr><th scope=\"col\">%s</th>", c->x_label);
    for (s = 0; s < b->n_shown; s++) {
        fl_html(b->html, "<th scope=\"col\">%s</th>", c->series[b->shown[s]].label);
    }
    fl_html(b->html, "</tr></thead><tbody>\n");
    for (i = 0; i < b->m; i++) {
        fl__chart_group(i, b->m, c->n, &from, &to);
        fl_html(b->html, "<tr><th scope=\"row\">%llu", (unsigned long long)c->x[from]);
        if (to - from > 1) {
            fl_html(b->html, " to %llu", (unsigned long long)c->x[to - 1]);
        }
        fl_html(b->html, "</th>");
        for (s = 0; s < b->n_shown; s++) {
            fl_html(b->html, "<td>%s</td>",
                    fl_chart_text(c->head.unit, bars_value(b, b->shown[s], i), text));
        }
        fl_html(b->html, "</tr>\n");
    }
    fl__chart_end(b->html);
}

void fl_chart_bars(struct fl_html *html, const struct fl_chart *chart)
{
    struct bars b = {.html = html, .chart = chart};
    struct fl__chart_scale y;
    double most = 0;
    size_t more;
    size_t i;

    b.m = chart->n < FL_CHART_BARS ? chart->n : FL_CHART_BARS;
    more = bars_choose(&b);
    for (i = 0; i < b.m; i++) {
        most = fmax(most, bars_sum(&b, i));
    }
    if (!fl__chart_begin(html, &chart->head, most > 0)) {
        return;
    }
    y = fl__chart_scale(chart->head.unit, 0, most, true);
    fl__chart_svg(html, &chart->head, CHART_HEIGHT);
    bars_draw(&b, &y);
    fl__chart_svg_end(html);
    if (b.n_shown > 1) {
        bars_legend(&b);
    }
    fl__chart_caption(html, &chart->head, chart->n / b.m, true, more);
    bars_table(&b);
}

/* --- with names --- */

void fl_chart_ranks(struct fl_html *html, const struct fl_chart_head *head, const char *label_head,
                    const struct fl_chart_rank *ranks, size_t n)
{
    size_t m = n < FL_CHART_RANKS ? n : FL_CHART_RANKS;
    char text[FL_CHART_TEXT];
    double most = 0;
    size_t i;

    for (i = 0; i < m; i++) {
        most = fl__chart_known(ranks[i].value) ? fmax(most, ranks[i].value) : most;
    }
    if (!fl__chart_begin(html, head, most > 0)) {
        return;
    }
    fl__chart_svg(html, head, (int)m * RANK_STEP + 4);
    for (i = 0; i < m; i++) {
        double y = (double)i * RANK_STEP + 2;
        double v = fl__chart_known(ranks[i].value) ? fmax(ranks[i].value, 0) : 0;
        double width = v / most * (RANK_RIGHT - RANK_LEFT);
        char label[80];

        fl_html(html, "<text x=\"%d\" y=\"%.1f\" class=\"e\">%s</text>", RANK_LEFT - 6, y + 11,
                fl__chart_cut(ranks[i].label, RANK_LABEL, label, sizeof(label)));
        fl_html(html,
                "<rect class=\"s0\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>"
                "<text x=\"%.1f\" y=\"%.1f\">%s</text>",
                RANK_LEFT, y, width, RANK_STEP - 4, RANK_LEFT + width + 5, y + 11,
                fl_chart_text(head->unit, ranks[i].value, text));
    }
    fl__chart_svg_end(html);
    fl__chart_caption(html, head, 1, false, n - m);
    fl__chart_table(html, head);
    fl_html(html,
            "<thead><tr><th scope=\"col\">%s</th><th scope=\"col\">%s</th></tr></thead><tbody>\n",
            label_head, head->title);
    for (i = 0; i < m; i++) {
        fl_html(html, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", ranks[i].label,
                fl_chart_text(head->unit, ranks[i].value, text));
    }
    fl__chart_end(html);
}
