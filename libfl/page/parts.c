/* The table of participations: what clients were asked, what they sent, why they were left out. */
#include <stdio.h>

#include "libfl/figures/share.h"
#include "libfl/page/overview_impl.h"

/* "3 of 8: conv1, conv2, fc" */
static void parts_asked(struct fl_html *html, const struct fl__page_parts *t, const char *asked)
{
    size_t n = 0;
    size_t i;

    if (asked == NULL) {
        fl_html(html, "no plan");
        return;
    }
    for (i = 0; asked[i] != '\0'; i++) {
        n += asked[i] == '1';
    }
    fl_html(html, "%zu of %zu", n, i);
    for (i = 0, n = 0; asked[i] != '\0' && i < t->n_layers; i++) {
        if (asked[i] == '1') {
            fl_html(html, "%s%s", n++ == 0 ? ": " : ", ", t->layers[i]);
        }
    }
}

/* The first cells: client and round, of which the first one names the row. */
static void parts_names(struct fl_html *html, const struct fl__page_parts *t,
                        const struct fl_page_part *p)
{
    char path[FL_HTML_PATH];

    if (t->clients && t->links) {
        fl_html(html, "<th scope=\"row\"><a href=\"/clients/%s\">%s</a></th>",
                fl_html_path(p->client, path), p->client);
    } else if (t->clients) {
        fl_html(html, "<th scope=\"row\">%s</th>", p->client);
    }
    if (t->rounds && t->links) {
        fl_html(html, "<th scope=\"row\"><a href=\"/rounds/%llu\">%llu</a></th>",
                (unsigned long long)p->round, (unsigned long long)p->round);
    } else if (t->rounds) {
        fl_html(html, "<td>%llu</td>", (unsigned long long)p->round);
    }
}

/* Columns that are left out where no participation has a value for them. */
struct parts_optional {
    bool received, personal, metrics;
};

static bool parts_measured(const struct fl_page_part *p)
{
    return p->metrics != NULL && p->metrics[0] != '\0';
}

static struct parts_optional parts_columns(const struct fl__page_parts *t)
{
    struct parts_optional any = {false, false, false};
    size_t i;

    for (i = 0; i < t->n; i++) {
        any.received = any.received || fl_share_measured(t->parts[i].received.accuracy);
        any.personal = any.personal || fl_share_measured(t->parts[i].personal.accuracy);
        any.metrics = any.metrics || parts_measured(&t->parts[i]);
    }
    return any;
}

/* Where no prediction is right or wrong, the loss. */
static void parts_evaluation(struct fl_html *html, const struct fl_page_eval *eval)
{
    bool loss = fl_share_is_none(eval->accuracy);
    double value = loss ? eval->loss : eval->accuracy;
    char text[FL_CHART_TEXT];
    char number[32];

    if (fl_share_measured(eval->accuracy)) {
        (void)snprintf(number, sizeof(number), "%.6g", value);
        fl_html(html, "<td data-v=\"%s\">%s%s</td>", number, loss ? "loss " : "",
                fl_chart_text(loss ? FL_CHART_NUMBER : FL_CHART_SHARE, value, text));
    } else {
        fl_html(html, "<td></td>");
    }
}

static void parts_row(struct fl_html *html, const struct fl__page_parts *t,
                      struct parts_optional shown, const struct fl_page_part *p)
{
    char text[FL_CHART_TEXT];

    fl_html(html, "<tr>");
    parts_names(html, t, p);
    fl_html(html, "<td>%u</td><td class=\"t\">%s</td><td class=\"t\">", p->attempt, p->state);
    parts_asked(html, t, p->asked);
    fl_html(html, "</td><td data-v=\"%llu\">%s</td>", (unsigned long long)p->bytes_up,
            fl_chart_text(FL_CHART_BYTES, (double)p->bytes_up, text));
    fl_html(html, "<td data-v=\"%llu\">%s</td>", (unsigned long long)p->bytes_down,
            fl_chart_text(FL_CHART_BYTES, (double)p->bytes_down, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_NUMBER, p->train_loss, text));
    if (shown.received) {
        parts_evaluation(html, &p->received);
    }
    if (shown.personal) {
        parts_evaluation(html, &p->personal);
    }
    if (shown.metrics) {
        fl_html(html, "<td class=\"t\">%s</td>", parts_measured(p) ? p->metrics : "");
    }
    fl_html(html, "<td class=\"t\">%s", p->remark);
    if (p->aborted != NULL && p->aborted[0] != '\0') {
        fl_html(html, "%sattempt aborted: %s", p->remark[0] != '\0' ? "; " : "", p->aborted);
    }
    fl_html(html, "</td></tr>\n");
}

void fl__page_parts(struct fl_html *html, const struct fl__page_parts *table)
{
    const struct parts_optional shown = parts_columns(table);
    const struct {
        const char *head;
        bool text, left_out;
    } heads[] = {{"Attempt", false, false},
                 {"Outcome", true, false},
                 {"Asked layers", true, false},
                 {"Sent", false, false},
                 {"Received", false, false},
                 {"Loss", false, false},
                 {"Accuracy", false, !shown.received},
                 {"Own model", false, !shown.personal},
                 {"Metrics", true, !shown.metrics},
                 {"Remarks", true, false}};
    size_t i;

    fl_html(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Participation, table\">"
        "<table id=\"%s\" data-sort><caption class=\"hide\">What was asked, sent and left out"
        "</caption><thead><tr>",
        table->id);
    if (table->clients) {
        fl_html(html, "<th scope=\"col\">Client</th>");
    }
    if (table->rounds) {
        fl_html(html, "<th scope=\"col\">Round</th>");
    }
    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        if (heads[i].left_out) {
            continue;
        }
        fl_html(html, "<th scope=\"col\" class=\"%s\">%s</th>", heads[i].text ? "t" : "n",
                heads[i].head);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    for (i = 0; i < table->n; i++) {
        parts_row(html, table, shown, &table->parts[i]);
    }
    fl_html(html, "</tbody></table></div>\n");
}
