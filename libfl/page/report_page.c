/* The report of a simulation: its points compared, and the views of each (page.h). Pure. */
#include <math.h>
#include <stdio.h>

#include "libfl/page/overview_impl.h"

static void report_table(struct fl_html *html, const struct fl_page_report *r)
{
    static const char *const heads[] = {"Point",         "Trials", "End",      "Rounds",
                                        "Last accuracy", "Best",   "Uploaded", "Simulated time"};
    char text[FL_CHART_TEXT];
    size_t i;

    fl_html(html,
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Points, table\">"
            "<table id=\"points\" data-sort><caption class=\"hide\">Points of the experiment: "
            "means over the finished trials</caption><thead><tr>");
    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        fl_html(html, "<th scope=\"col\" class=\"%s\">%s</th>", i == 2 ? "t" : "n", heads[i]);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    for (i = 0; i < r->n_points; i++) {
        const struct fl_page_point *p = &r->points[i];

        if (p->view != NULL && i < FL_PAGE_REPORT_POINTS) {
            fl_html(html, "<tr><th scope=\"row\"><a href=\"#p%zu\">%s</a></th>", i, p->label);
        } else {
            fl_html(html, "<tr><th scope=\"row\">%s</th>", p->label);
        }
        fl_html(html, "<td data-v=\"%zu\">%zu of %zu</td><td class=\"t\">%s</td><td>%llu</td>",
                p->n_finished, p->n_finished, p->n_trials, p->end, (unsigned long long)p->rounds);
        fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_SHARE, p->accuracy, text));
        fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_SHARE, p->best, text));
        fl_html(html, "<td data-v=\"%.1f\">%s</td>", p->uplink_bytes,
                fl_chart_text(FL_CHART_BYTES, p->uplink_bytes, text));
        fl_html(html, "<td data-v=\"%.1f\">%s</td></tr>\n", p->wall_us,
                fl_chart_text(FL_CHART_TIME, p->wall_us, text));
    }
    fl_html(html, "</tbody></table></div>\n");
}

static void report_curves(struct fl_html *html, const struct fl_page_report *r)
{
    struct fl_chart_series series[FL_CHART_SERIES];
    struct fl_chart chart = {.x_label = "round", .x = r->rounds, .n = r->n, .series = series};
    char caption[256];
    size_t i;

    chart.n_series = r->n_points < FL_CHART_SERIES ? r->n_points : FL_CHART_SERIES;
    for (i = 0; i < chart.n_series; i++) {
        series[i] = (struct fl_chart_series){.label = r->points[i].label,
                                             .values = r->points[i].accuracies};
    }
    (void)snprintf(caption, sizeof(caption),
                   "%s after each round, mean over the trials of a point.%s", r->quality,
                   r->n_points > FL_CHART_SERIES ? " The first points are drawn." : "");
    fl_html(html, "<div class=\"cards\">");
    chart.head = (struct fl_chart_head){
        .id = "accuracy", .title = "Accuracy", .unit = FL_CHART_SHARE, .caption = caption};
    fl_chart_lines(html, &chart);
    for (i = 0; i < chart.n_series; i++) {
        series[i].values = r->points[i].losses;
    }
    chart.head = (struct fl_chart_head){.id = "loss",
                                        .title = "Training loss",
                                        .caption = "Training loss of the clients, mean over the "
                                                   "trials of a point."};
    fl_chart_lines(html, &chart);
    fl_html(html, "</div>\n");
}

static void report_parts(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    char id[64];
    struct fl__page_parts table = {.id = id,
                                   .parts = o->parts,
                                   .n = o->n_parts,
                                   .layers = o->layers,
                                   .n_layers = o->n_layers,
                                   .clients = true,
                                   .rounds = true};

    if (o->n_parts == 0) {
        return;
    }
    table.n = table.n < FL_PAGE_REPORT_PARTS ? table.n : FL_PAGE_REPORT_PARTS;
    (void)snprintf(id, sizeof(id), "%sparts", prefix);
    fl_html(html,
            "<section aria-labelledby=\"%s-h\"><h3 id=\"%s-h\">Participation</h3><details "
            "id=\"%s-d\"><summary>What the clients were asked and sent in the last rounds: %zu of "
            "%zu</summary>",
            id, id, id, table.n, o->n_parts);
    fl__page_parts(html, &table);
    fl_html(html, "</details></section>\n");
}

static void report_view(struct fl_html *html, const struct fl_page_point *p, size_t number)
{
    char prefix[32];

    (void)snprintf(prefix, sizeof(prefix), "p%zu-", number);
    fl_html(html, "<section aria-labelledby=\"p%zu\"><h2 id=\"p%zu\">%s</h2><p>Seed %llu. %s</p>",
            number, number, p->label, (unsigned long long)p->seed, p->view->status->why);
    fl__page_charts(html, p->view, prefix);
    if (p->view->n_clients > 0) {
        fl__page_members(html, p->view, prefix, FL_PAGE_REPORT_CLIENTS);
    } else {
        fl_html(html, "<p class=\"none\">The run recorded no clients: 'fl-sim run --clients' does, "
                      "for their table and the layers that they sent.</p>");
    }
    report_parts(html, p->view, prefix);
    fl__page_rounds(html, p->view, prefix);
    fl_html(html, "</section>\n");
}

int fl_page_report(const struct fl_page_report *report, struct fl_buf *out)
{
    struct fl_html html = {.w = {.out = out}};
    size_t shown = 0;
    size_t i;

    fl__page_begin(&html, "Report", report->name, FL_PAGE_FILE);
    fl_html(&html, "<h1>Report of the simulation</h1><p class=\"why\">%s</p>\n", report->sentence);
    if (report->n_points > 0) {
        fl_html(&html, "<section aria-labelledby=\"compared\"><h2 id=\"compared\">Points</h2>");
        report_curves(&html, report);
        report_table(&html, report);
        fl_html(&html, "</section>\n");
    }
    for (i = 0; i < report->n_points && i < FL_PAGE_REPORT_POINTS; i++) {
        if (report->points[i].view != NULL) {
            report_view(&html, &report->points[i], i);
            shown++;
        }
    }
    if (report->n_points > FL_PAGE_REPORT_POINTS) {
        fl_html(&html, "<p>The first %zu points are shown in detail.</p>", shown);
    }
    fl__page_end(&html, report->version);
    return html.w.code;
}
