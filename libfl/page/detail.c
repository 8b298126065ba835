/* The pages of one client and of one round (page.h). Pure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/figures/figures_text.h"
#include "libfl/figures/share.h"
#include "libfl/page/overview_impl.h"

/* The part of an overview that texts with times need. */
static struct fl_page_overview detail_overview(const struct fl_page_detail *d)
{
    return (struct fl_page_overview){.status = d->status, .now_ms = d->now_ms};
}

/* Which layers were asked: a row for each participation with a plan, of committed attempts. */
static void detail_grid(struct fl_html *html, const struct fl_page_detail *d)
{
    struct fl_heat heat = {.head = {.id = "grid",
                                    .title = "Layers asked and sent",
                                    .caption = "Filled: the layer was in the upload mask.",
                                    .unit = FL_CHART_COUNT},
                           .row_head = d->client != NULL ? "round" : "client",
                           .columns = d->layers,
                           .n_columns = d->n_layers,
                           .full = 1};
    char(*numbers)[32] = calloc(d->n_parts + 1, sizeof(*numbers));
    const char **rows = calloc(d->n_parts + 1, sizeof(*rows));
    double *values = calloc(d->n_parts * d->n_layers + 1, sizeof(*values));
    size_t i;
    size_t k;

    if (numbers == NULL || rows == NULL || values == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        goto done;
    }
    for (i = 0; i < d->n_parts; i++) {
        const struct fl_page_part *p = &d->parts[i];

        if (p->asked == NULL || (p->aborted != NULL && p->aborted[0] != '\0')) {
            continue;
        }
        (void)snprintf(numbers[i], sizeof(numbers[i]), "round %llu", (unsigned long long)p->round);
        rows[heat.n_rows] = d->client != NULL ? numbers[i] : p->client;
        for (k = 0; k < d->n_layers; k++) {
            values[heat.n_rows * d->n_layers + k] =
                k < strlen(p->asked) && p->asked[k] == '1' ? 1 : 0;
        }
        heat.n_rows++;
    }
    if (heat.n_rows > 0 && d->n_layers > 0) {
        heat.rows = rows;
        heat.values = values;
        fl_html(html, "<div class=\"cards\">");
        fl_chart_heat(html, &heat);
        fl_html(html, "</div>\n");
    }
done:
    free(numbers);
    free(rows);
    free(values);
}

static void detail_older(struct fl_html *html, const struct fl_page_detail *d)
{
    char path[FL_HTML_PATH];

    if (d->older == 0) {
        return;
    }
    if (d->client != NULL) {
        fl_html(html, "<p><a href=\"/clients/%s?before=%llu\">Earlier rounds</a></p>\n",
                fl_html_path(d->client->name, path), (unsigned long long)d->older);
    } else {
        fl_html(html, "<p><a href=\"/rounds/%llu?before=%llu\">Further participants</a></p>\n",
                (unsigned long long)d->round->figures.round, (unsigned long long)d->older);
    }
}

static void detail_parts(struct fl_html *html, const struct fl_page_detail *d)
{
    const struct fl__page_parts parts = {.id = "parts",
                                         .parts = d->parts,
                                         .n = d->n_parts,
                                         .layers = d->layers,
                                         .n_layers = d->n_layers,
                                         .clients = d->client == NULL,
                                         .rounds = d->client != NULL,
                                         .links = true};

    fl_html(html, "<section aria-labelledby=\"parts-h\"><h2 id=\"parts-h\">%s</h2>",
            d->client != NULL ? "Participation" : "Participants");
    if (d->n_parts == 0) {
        fl_html(html, "<p class=\"none\">Nothing is recorded.</p></section>\n");
        return;
    }
    detail_grid(html, d);
    if (d->round != NULL) {
        fl_html(html, "<div class=\"cards\">");
        fl__page_mixing(html, d->parts, d->n_parts, "");
        fl__page_weights(html, d->parts, d->n_parts, "");
        fl_html(html, "</div>\n");
    }
    fl__page_parts(html, &parts);
    detail_older(html, d);
    fl_html(html, "</section>\n");
}

/* --- a client --- */

static void client_facts(struct fl_html *html, const struct fl_client_figures *f)
{
    char value[32];
    char note[64];
    char text[FL_CHART_TEXT];

    fl_html(html, "<dl class=\"facts\">");
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)f->n_accepted);
    (void)snprintf(note, sizeof(note), "of %llu selections", (unsigned long long)f->n_selected);
    fl__page_fact(html, "Accepted updates", value, note);
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)(f->n_rejected + f->n_lost));
    (void)snprintf(note, sizeof(note), "%llu rejected, %llu lost",
                   (unsigned long long)f->n_rejected, (unsigned long long)f->n_lost);
    fl__page_fact(html, "Left out", value, note);
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)f->samples);
    fl__page_fact(html, "Training samples", value, "announced");
    fl__page_fact(html, "Uploaded", fl_chart_text(FL_CHART_BYTES, (double)f->uplink_bytes, text),
                  "accepted updates");
    fl__page_fact(html, "Downloaded",
                  fl_chart_text(FL_CHART_BYTES, (double)f->downlink_bytes, text), "");
    fl__page_fact(
        html, "Training loss",
        fl_chart_text(FL_CHART_NUMBER, f->n_selected > 0 ? f->last_loss : FL_CHART_UNKNOWN, text),
        "newest report");
    fl__page_fact(html, "Score", fl_chart_text(FL_CHART_NUMBER, f->score, text),
                  "attention, or of the selection");
    fl_html(html, "</dl>\n");
}

static void client_labels(struct fl_html *html, const struct fl_wire_client *c)
{
    size_t i;

    fl_html(html, "<section aria-labelledby=\"labels\"><h2 id=\"labels\">Labels</h2>");
    if (c->n_labels == 0) {
        fl_html(html, "<p class=\"none\">It announced none.</p>");
    }
    for (i = 0; i < c->n_labels; i++) {
        fl_html(html, "<p>%s: %s</p>", c->labels[i].key, c->labels[i].value);
    }
    if (c->central[0] != '\0') {
        fl_html(html, "<p>Set by operators: %s</p>", c->central);
    }
    if (c->ineligible[0] != '\0') {
        fl_html(html, "<p>Not selected now: %s</p>", c->ineligible);
    }
    fl_html(html, "<p>Program: %s. Sessions that replaced another one of it: %llu.</p></section>\n",
            c->agent[0] != '\0' ? c->agent : "unknown", (unsigned long long)c->takeovers);
}

int fl_page_client(const struct fl_page_detail *detail, struct fl_buf *out)
{
    struct fl_html html = {.w = {.out = out}};
    const struct fl_wire_client *c = detail->client;
    const struct fl_page_overview o = detail_overview(detail);
    char quarantine[FL_NAME_MAX + 64];
    char release[FL_NAME_MAX + 64];
    char forget[FL_NAME_MAX + 64];
    const char *const commands[][2] = {{quarantine, "do not select it until it is released"},
                                       {release, "end its quarantine"},
                                       {forget, "delete it; when it reconnects it is new"}};
    char age[FL_CHART_TEXT];

    (void)snprintf(quarantine, sizeof(quarantine), "flctl clients quarantine %s", c->name);
    (void)snprintf(release, sizeof(release), "flctl clients release %s", c->name);
    (void)snprintf(forget, sizeof(forget), "flctl clients forget %s", c->name);
    fl__page_begin(&html, c->name, detail->status->federation, FL_PAGE_LIVE);
    fl_html(&html,
            "<h1>%s</h1><p class=\"why\" id=\"why\" role=\"status\">%s%s%s; last contact %s ago. ",
            c->name, c->connected ? "connected, " : "", fl__page_client_state(c),
            !c->connected && c->quarantine[0] != '\0' ? ", disconnected" : "",
            fl__page_age(&o, c->figures.last_seen_ms, age));
    fl__page_client_note(&html, &o, c);
    fl_html(&html, "</p>\n");
    client_facts(&html, &c->figures);
    detail_parts(&html, detail);
    client_labels(&html, c);
    fl__page_commands(&html, commands, sizeof(commands) / sizeof(commands[0]));
    fl__page_end(&html, detail->status->version);
    return html.w.code;
}

/* --- a round --- */

/* Where its time went; a round that was too short to be measured has no chart. */
static void round_phases(struct fl_html *html, const struct fl_page_detail *d)
{
    const struct fl_chart_head head = {.id = "time",
                                       .title = "Time by phase",
                                       .unit = FL_CHART_TIME,
                                       .caption = "Duration of the phases of the committed "
                                                  "attempt."};
    struct fl_chart_rank ranks[FL_PAGE_PHASE_N];
    double us[FL_PAGE_PHASE_N];
    size_t n = 0;
    size_t i;

    fl__page_phase_times(&d->round->figures, d->next != NULL ? &d->next->figures : NULL, us);
    for (i = 0; i < FL_PAGE_PHASE_N; i++) {
        if (us[i] > 0) {
            ranks[n++] = (struct fl_chart_rank){fl__page_phase_names[i], us[i]};
        }
    }
    if (n > 0) {
        fl_html(html, "<section aria-labelledby=\"time-h\"><h2 id=\"time-h\">Time</h2>"
                      "<div class=\"cards\">");
        fl_chart_ranks(html, &head, "phase", ranks, n);
        fl_html(html, "</div></section>\n");
    }
}

/* Each figure with its unit and meaning, as the documents have it. */
static void round_figures(struct fl_html *html, const struct fl_round_rec *r)
{
    char text[FL_FIGURE_TEXT];
    size_t i;

    fl_html(html,
            "<section aria-labelledby=\"figures\"><h2 id=\"figures\">Figures</h2>"
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Figures, table\">"
            "<table><caption class=\"hide\">Figures of the round</caption><thead><tr>"
            "<th scope=\"col\">Figure</th><th scope=\"col\">Value</th>"
            "<th scope=\"col\" class=\"t\">Meaning</th></tr></thead><tbody>\n");
    for (i = 0; i < fl_round_rows.n; i++) {
        const struct fl_figure *row = &fl_round_rows.rows[i];

        fl_html(html, "<tr><th scope=\"row\">%s</th><td>%s</td><td class=\"t\">%s (%s)</td></tr>\n",
                fl_figure_key(row), fl_figure_text(&fl_round_rows, row, r, 4, text), row->meaning,
                fl_figure_unit_text(row));
    }
    fl_html(html, "</tbody></table></div></section>\n");
}

static void round_changes(struct fl_html *html, const struct fl_wire_round *round)
{
    const char *at = round->robust_clients;
    struct fl_robust_client robust;
    char path[FL_HTML_PATH];
    char text[FL_CHART_TEXT];
    size_t i;

    if (round->n_changes > 0) {
        fl_html(
            html,
            "<section aria-labelledby=\"changes\"><h2 id=\"changes\">Changed settings</h2><ul>");
        for (i = 0; i < round->n_changes; i++) {
            fl_html(html, "<li>%s</li>", round->changes[i]);
        }
        fl_html(html, "</ul></section>\n");
    }
    if (at[0] == '\0') {
        return;
    }
    fl_html(html,
            "<section aria-labelledby=\"robust\"><h2 id=\"robust\">Left out by the robust rule"
            "</h2><ul>");
    while (fl_robust_clients_next(&at, &robust)) {
        fl_html(html, "<li><a href=\"/clients/%s\">%s</a>: %s of an equal share was used, ",
                fl_html_path(robust.name, path), robust.name,
                fl_chart_text(FL_CHART_SHARE, robust.used, text));
        fl_html(html, "%s times as far from the others as the median</li>",
                fl_chart_text(FL_CHART_NUMBER, robust.score, text));
    }
    fl_html(html, "</ul></section>\n");
}

static void round_metrics(struct fl_html *html, const char *text)
{
    char key[FL_EVAL_METRIC_KEY];
    char number[FL_CHART_TEXT];
    double value;

    if (text[0] == '\0') {
        return;
    }
    fl_html(html, "<section aria-labelledby=\"metrics\"><h2 id=\"metrics\">Metrics</h2>"
                  "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                  "aria-label=\"Metrics, table\"><table><caption class=\"hide\">Metrics of the "
                  "evaluations of the round</caption><thead><tr><th scope=\"col\">Metric</th>"
                  "<th scope=\"col\">Value</th></tr></thead><tbody>\n");
    while (fl_eval_metrics_next_key(&text, key, &value)) {
        (void)snprintf(number, sizeof(number), "%.6g", value);
        fl_html(html, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", key, number);
    }
    fl_html(html, "</tbody></table></div></section>\n");
}

int fl_page_round(const struct fl_page_detail *detail, struct fl_buf *out)
{
    struct fl_html html = {.w = {.out = out}};
    const struct fl_round_rec *r = &detail->round->figures;
    const struct fl_page_overview o = detail_overview(detail);
    char title[40];
    char text[FL_CHART_TEXT];

    (void)snprintf(title, sizeof(title), "Round %llu", (unsigned long long)r->round);
    fl__page_begin(&html, title, detail->status->federation, FL_PAGE_FIXED);
    fl_html(&html, "<h1>%s</h1><p class=\"why\">%u of %u selected clients were aggregated", title,
            r->n_responders, r->n_selected);
    if (r->accuracy >= 0) {
        fl_html(&html, "; the model has an accuracy of %s",
                fl_chart_text(FL_CHART_SHARE, r->accuracy, text));
    } else if (fl_share_is_none(r->accuracy)) {
        fl_html(&html, "; the model has a loss of %.4f", r->loss);
    }
    fl_html(&html, ". Committed ");
    fl__page_time(&html, &o, r->ended_ms);
    if (detail->round->abandoned_by[0] != '\0') {
        fl_html(&html, "; %s", detail->round->abandoned_by);
    }
    fl_html(&html, ".</p><nav class=\"tools\" aria-label=\"Rounds\">");
    if (r->round > 1) {
        fl_html(&html, " <a href=\"/rounds/%llu\">Previous round</a>",
                (unsigned long long)(r->round - 1));
    }
    if (r->round < detail->status->rounds_committed) {
        fl_html(&html, " <a href=\"/rounds/%llu\">Next round</a>",
                (unsigned long long)(r->round + 1));
    }
    fl_html(&html, "</nav>\n");
    round_changes(&html, detail->round);
    round_phases(&html, detail);
    detail_parts(&html, detail);
    round_metrics(&html, detail->round->metrics);
    round_figures(&html, r);
    fl__page_end(&html, detail->status->version);
    return html.w.code;
}
