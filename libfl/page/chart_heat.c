/* Heat maps: rows by columns, a cell the darker the larger its value (chart.h). Pure. */
#include <math.h>
#include <string.h>

#include "libfl/page/chart_impl.h"

#define HEAT_LABEL   14 /* characters of the name of a row */
#define HEAT_COLUMN  12 /* of a column */
#define HEAT_LEFT    98
#define HEAT_WIDEST  40
#define HEAT_TALLEST 16
#define HEAT_NAMES   16 /* columns with a name each; of more only some have one */

struct heat_map {
    struct fl_html *html;
    const struct fl_heat *heat;
    size_t rows, columns; /* drawn */
    double full, width, height, top;
};

static double heat_value(const struct heat_map *m, size_t row, size_t column)
{
    return m->heat->values[row * m->heat->n_columns + column];
}

/* The largest value; negative: none is known. */
static double heat_most(const struct heat_map *m)
{
    double most = -1;
    size_t r;
    size_t c;

    for (r = 0; r < m->rows; r++) {
        for (c = 0; c < m->columns; c++) {
            double v = heat_value(m, r, c);

            most = fl__chart_known(v) ? fmax(most, fmax(v, 0)) : most;
        }
    }
    return most;
}

static void heat_names(const struct heat_map *m)
{
    size_t every = (m->columns + HEAT_NAMES - 1) / HEAT_NAMES;
    char text[64];
    size_t i;

    for (i = 0; i < m->columns; i += every) {
        double x = HEAT_LEFT + m->width * ((double)i + 0.5) + 4;

        fl_html(m->html, "<text transform=\"translate(%.1f %.1f) rotate(-60)\">%s</text>", x,
                m->top - 5, fl__chart_cut(m->heat->columns[i], HEAT_COLUMN, text, sizeof(text)));
    }
    for (i = 0; i < m->rows; i++) {
        fl_html(m->html, "<text x=\"%d\" y=\"%.1f\" class=\"e\">%s</text>", HEAT_LEFT - 6,
                m->top + m->height * ((double)i + 0.5) + 4,
                fl__chart_cut(m->heat->rows[i], HEAT_LABEL, text, sizeof(text)));
    }
}

static void heat_cells(const struct heat_map *m)
{
    size_t r;
    size_t c;

    for (r = 0; r < m->rows; r++) {
        for (c = 0; c < m->columns; c++) {
            double v = heat_value(m, r, c);
            double share = fmin(fmax(v, 0) / m->full, 1);
            const char *class = !fl__chart_known(v) ? "x" : share > 0 ? "h" : "z";

            /* Tenths: a cell differs from its neighbour where an eye can see it. */
            fl_html(m->html,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
                    class, HEAT_LEFT + m->width * (double)c + 0.5,
                    m->top + m->height * (double)r + 0.5, m->width - 1, m->height - 1);
            if (class[0] == 'h' && share < 0.95) {
                fl_html(m->html, " fill-opacity=\"%.1f\"", fmax(share, 0.1));
            }
            fl_html(m->html, "/>");
        }
    }
}

static void heat_table(const struct heat_map *m)
{
    char text[FL_CHART_TEXT];
    size_t r;
    size_t c;

    fl__chart_table(m->html, &m->heat->head);
    fl_html(m->html, "<thead><tr><th scope=\"col\">%s</th>", m->heat->row_head);
    for (c = 0; c < m->columns; c++) {
        fl_html(m->html, "<th scope=\"col\">%s</th>", m->heat->columns[c]);
    }
    fl_html(m->html, "</tr></thead><tbody>\n");
    for (r = 0; r < m->rows; r++) {
        fl_html(m->html, "<tr><th scope=\"row\">%s</th>", m->heat->rows[r]);
        for (c = 0; c < m->columns; c++) {
            fl_html(m->html, "<td>%s</td>",
                    fl_chart_text(m->heat->head.unit, heat_value(m, r, c), text));
        }
        fl_html(m->html, "</tr>\n");
    }
    fl__chart_end(m->html);
}

void fl_chart_heat(struct fl_html *html, const struct fl_heat *heat)
{
    struct heat_map m = {.html = html, .heat = heat};
    size_t longest = 0;
    double most;
    size_t i;

    m.rows = heat->n_rows < FL_HEAT_ROWS ? heat->n_rows : FL_HEAT_ROWS;
    m.columns = heat->n_columns < FL_HEAT_COLUMNS ? heat->n_columns : FL_HEAT_COLUMNS;
    most = heat_most(&m);
    if (!fl__chart_begin(html, &heat->head, most >= 0)) {
        return;
    }
    for (i = 0; i < m.columns; i++) {
        size_t len = strlen(heat->columns[i]);

        longest = len > longest ? len : longest;
    }
    m.top = 16 + 5.8 * (double)(longest < HEAT_COLUMN ? longest : HEAT_COLUMN);
    m.full = heat->full > 0 ? heat->full : most > 0 ? most : 1;
    m.width = fmin((CHART_WIDTH - HEAT_LEFT - 30) / (double)m.columns, HEAT_WIDEST);
    m.height = HEAT_TALLEST;
    fl__chart_svg(html, &heat->head, (int)(m.top + m.height * (double)m.rows) + 4);
    heat_names(&m);
    heat_cells(&m);
    fl__chart_svg_end(html);
    fl__chart_caption(html, &heat->head, 1, false, 0);
    if (m.rows < heat->n_rows || m.columns < heat->n_columns) {
        fl_html(html, "<p class=\"none\">%zu of %zu rows and %zu of %zu columns are drawn.</p>",
                m.rows, heat->n_rows, m.columns, heat->n_columns);
    }
    heat_table(&m);
}
