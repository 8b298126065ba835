/* The page of a client for the owner of its device (own_page.h). Pure. */
#include "libfl/page/own_page.h"

#include "libfl/page/overview_impl.h"

static void own_facts(struct fl_html *html, const struct fl_page_own *p)
{
    size_t i;

    fl_html(html, "<dl class=\"facts\">");
    for (i = 0; i < p->n_facts; i++) {
        fl__page_fact(html, p->facts[i].name, p->facts[i].value, p->facts[i].note);
    }
    fl_html(html, "</dl>\n");
}

static void own_task(struct fl_html *html, const struct fl_page_own_task *t)
{
    const struct fl_page_overview o = {.simulated = false};
    char text[FL_CHART_TEXT];

    fl_html(html, "<tr><th scope=\"row\">%llu</th><td class=\"t\">%s</td><td>",
            (unsigned long long)t->round, t->asked);
    fl__page_time(html, &o, t->began_ms);
    fl_html(html, "</td><td>%s</td>",
            fl_chart_text(FL_CHART_TIME,
                          t->ended_ms > t->began_ms ? (double)(t->ended_ms - t->began_ms) * 1000
                          : t->ended_ms > 0         ? 0
                                                    : FL_CHART_UNKNOWN,
                          text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_BYTES, (double)t->bytes_down, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_BYTES, (double)t->bytes_up, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_TIME, (double)t->cpu_ms * 1000, text));
    if (t->bad) {
        fl_html(html, "<td class=\"t bad\">");
    } else {
        fl_html(html, "<td class=\"t\">");
    }
    fl_html(html, "%s%s%s</td></tr>\n", t->result, t->reason[0] != '\0' ? ": " : "", t->reason);
}

static void own_tasks(struct fl_html *html, const struct fl_page_own *p)
{
    static const char *const heads[] = {"Round",    "Asked to", "When",      "Took",
                                        "Received", "Sent",     "Processor", "Result"};
    size_t i;

    fl_html(html, "<section aria-labelledby=\"tasks\"><h2 id=\"tasks\">Last tasks</h2><p>%s</p>",
            p->kept);
    if (p->n_tasks == 0) {
        fl_html(html, "<p class=\"none\">No task so far.</p></section>\n");
        return;
    }
    fl_html(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Last tasks, "
                  "table\"><table id=\"task-table\"><caption class=\"hide\">Last tasks, the newest "
                  "first</caption><thead><tr>");
    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        fl_html(html, "<th scope=\"col\" class=\"%s\">%s</th>", i == 1 || i == 7 ? "t" : "n",
                heads[i]);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    for (i = 0; i < p->n_tasks; i++) {
        own_task(html, &p->tasks[i]);
    }
    fl_html(html, "</tbody></table></div></section>\n");
}

/* A table of rows; `id` is also that of its heading. */
static void own_rows(struct fl_html *html, const char *id, const char *title,
                     const char *const heads[3], const struct fl_page_own_row *rows, size_t n)
{
    size_t i;

    fl_html(html,
            "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2><div class=\"scroll\" "
            "tabindex=\"0\" role=\"group\" aria-label=\"%s, table\"><table><caption "
            "class=\"hide\">%s</caption><thead><tr>",
            id, id, title, title, title);
    for (i = 0; i < 3; i++) {
        fl_html(html, "<th scope=\"col\" class=\"t\">%s</th>", heads[i]);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    for (i = 0; i < n; i++) {
        fl_html(
            html,
            "<tr><th scope=\"row\">%s</th><td class=\"t\">%s</td><td class=\"t\">%s</td></tr>\n",
            rows[i].name, rows[i].value, rows[i].note);
    }
    fl_html(html, "</tbody></table></div></section>\n");
}

int fl_page_own(const struct fl_page_own *p, struct fl_buf *out)
{
    static const char *const limit_heads[] = {"Limit", "Value", "Set by"};
    static const char *const error_heads[] = {"Last time", "Times", "Error"};
    struct fl_html html = {.w = {.out = out}};

    fl__page_begin(&html, "This device", p->client, FL_PAGE_ALONE);
    fl_html(&html, "<h1>This device</h1><p class=\"why\" aria-live=\"polite\">%s</p><p>%s</p>",
            p->now, p->story);
    if (p->needs_owner) {
        fl_html(&html, "<p class=\"bad\"><strong>To do: %s</strong></p>\n", p->next);
    } else {
        fl_html(&html, "<p>To do: %s</p>\n", p->next);
    }
    own_facts(&html, p);
    own_tasks(&html, p);
    own_rows(&html, "limits", "Limits in force", limit_heads, p->limits, p->n_limits);
    if (p->n_errors > 0) {
        own_rows(&html, "errors", "Last errors", error_heads, p->errors, p->n_errors);
    }
    fl__page_end(&html, p->version);
    return html.w.code;
}
