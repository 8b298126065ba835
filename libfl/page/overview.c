/* The overview of a federation: sentence, figures, charts, grid, commands (page.h). Pure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/page/overview_impl.h"

/* The most series of one chart here. */
#define OVERVIEW_SERIES FL_CHART_SERIES

/* Values of figures over the rounds, as charts take them. */
struct overview_columns {
    struct fl_html *html;
    const struct fl_page_overview *o;
    const char *prefix;
    uint64_t *x;
    double *values[OVERVIEW_SERIES];
    char id[96], headline[160];
};

static struct fl_chart overview_chart(struct overview_columns *c, const char *name,
                                      struct fl_chart_series *series, size_t n)
{
    struct fl_chart chart = {
        .x_label = "round", .x = c->x, .n = c->o->n_rounds, .series = series, .n_series = n};
    size_t i;

    (void)snprintf(c->id, sizeof(c->id), "%s%s", c->prefix, name);
    c->headline[0] = '\0';
    chart.head.id = c->id;
    for (i = 0; i < n; i++) {
        series[i].values = c->values[i];
    }
    return chart;
}

/* The newest known value of a column, and its round. */
static double overview_newest(const struct overview_columns *c, size_t column, uint64_t *ret_round)
{
    size_t i = c->o->n_rounds;

    while (i > 0 && isnan(c->values[column][i - 1])) {
        i--;
    }
    *ret_round = i > 0 ? c->x[i - 1] : 0;
    return i > 0 ? c->values[column][i - 1] : FL_CHART_UNKNOWN;
}

/* "91.2 % after round 20" */
static const char *overview_headline(struct overview_columns *c, enum fl_chart_unit unit,
                                     size_t column)
{
    char text[FL_CHART_TEXT];
    uint64_t round;
    double value = overview_newest(c, column, &round);

    (void)snprintf(c->headline, sizeof(c->headline), "%s after round %llu",
                   fl_chart_text(unit, value, text), (unsigned long long)round);
    return c->headline;
}

static const struct fl_round_rec *overview_record(const struct overview_columns *c, size_t i)
{
    return &c->o->rounds[i].figures;
}

double fl__page_figure(const struct fl_round_rec *record, enum fl_round_figure figure)
{
    const struct fl_figure *row = &fl_round_rows.rows[figure];

    if (!fl_figure_known(&fl_round_rows, row, record)) {
        return FL_CHART_UNKNOWN;
    }
    return row->type == FL_FIGURE_F64 ? fl_figure_real(row, record)
                                      : (double)fl_figure_whole(row, record);
}

static void overview_fill(struct overview_columns *c, size_t column, enum fl_round_figure figure)
{
    size_t i;

    for (i = 0; i < c->o->n_rounds; i++) {
        c->values[column][i] = fl__page_figure(overview_record(c, i), figure);
    }
}

static bool overview_any(const struct overview_columns *c, size_t column)
{
    uint64_t round;

    return !isnan(overview_newest(c, column, &round));
}

static void overview_quality(struct overview_columns *c)
{
    struct fl_chart_series accuracy[] = {{.label = "global model"}, {.label = "personal"}};
    struct fl_chart_series loss[] = {{.label = "global model"}, {.label = "in training"}};
    struct fl_chart chart = overview_chart(c, "accuracy", accuracy, 2);

    overview_fill(c, 0, FL_ROUND_accuracy);
    overview_fill(c, 1, FL_ROUND_personal_accuracy);
    if (!overview_any(c, 1)) {
        chart.n_series = 1;
    }
    chart.head.title = "Accuracy";
    chart.head.unit = FL_CHART_SHARE;
    chart.head.headline =
        overview_headline(c, FL_CHART_SHARE, overview_any(c, 0) || chart.n_series == 1 ? 0 : 1);
    chart.head.caption = chart.n_series == 1
                             ? "Accuracy of the global model after each round."
                             : "Accuracy of the global model, and of the personalized models on "
                               "the clients' own test data, after each round.";
    fl_chart_lines(c->html, &chart);
    chart = overview_chart(c, "loss", loss, 2);
    overview_fill(c, 0, FL_ROUND_loss);
    overview_fill(c, 1, FL_ROUND_train_loss);
    chart.head.title = "Loss";
    chart.head.headline = overview_headline(c, FL_CHART_NUMBER, overview_any(c, 0) ? 0 : 1);
    chart.head.caption = "Loss of the global model, and training loss of the clients, mean over "
                         "their samples.";
    fl_chart_lines(c->html, &chart);
}

/* The metrics of the newest round that has any, of rounds as far as they have them. */
static void overview_metrics(struct overview_columns *c)
{
    struct fl_chart_series series[OVERVIEW_SERIES] = {{.label = NULL}};
    char keys[OVERVIEW_SERIES][FL_EVAL_METRIC_KEY];
    struct fl_chart chart;
    const char *text = "";
    double value;
    size_t n = 0;
    size_t i;
    size_t s;

    for (i = c->o->n_rounds; i > 0 && text[0] == '\0'; i--) {
        text = c->o->rounds[i - 1].metrics;
    }
    while (n < OVERVIEW_SERIES && fl_eval_metrics_next_key(&text, keys[n], &value)) {
        series[n].label = keys[n];
        n++;
    }
    if (n == 0) {
        return;
    }
    chart = overview_chart(c, "metrics", series, n);
    for (i = 0; i < c->o->n_rounds; i++) {
        for (s = 0; s < n; s++) {
            value = FL_CHART_UNKNOWN;
            (void)fl_eval_metrics_find(c->o->rounds[i].metrics, keys[s], &value);
            c->values[s][i] = value;
        }
    }
    chart.head.title = "Metrics";
    chart.head.headline = overview_headline(c, FL_CHART_NUMBER, 0);
    chart.head.caption = text[0] == '\0' ? "Metrics of the evaluations after each round."
                                         : "Metrics of the evaluations after each round, the "
                                           "first eight; the page of a round has all.";
    fl_chart_lines(c->html, &chart);
}

/* Bytes since the first round of the page, added up: whole models beside what was transferred. */
static void overview_bytes(struct overview_columns *c)
{
    struct fl_chart_series series[] = {{.label = "up"},
                                       {.label = "up, full", .reference = true},
                                       {.label = "down"},
                                       {.label = "down, full", .reference = true}};
    struct fl_chart chart = overview_chart(c, "bytes", series, 4);
    char text[FL_CHART_TEXT];
    double sums[4] = {0};
    size_t i;
    size_t s;

    for (i = 0; i < c->o->n_rounds; i++) {
        const struct fl_round_rec *r = overview_record(c, i);
        double model = r->n_responders > 0 ? (double)r->uplink_bytes_full / r->n_responders : 0;

        sums[0] += (double)r->uplink_bytes;
        sums[1] += (double)r->uplink_bytes_full;
        sums[2] += (double)r->downlink_bytes;
        sums[3] += model * r->n_selected;
        for (s = 0; s < 4; s++) {
            c->values[s][i] = sums[s];
        }
    }
    chart.head.title = "Bytes transferred";
    chart.head.unit = FL_CHART_BYTES;
    if (sums[1] > 0) {
        (void)snprintf(c->headline, sizeof(c->headline), "%s up: %.3g %% of full transfers",
                       fl_chart_text(FL_CHART_BYTES, sums[0], text), sums[0] / sums[1] * 100);
        chart.head.headline = c->headline;
    }
    chart.head.caption = "Accepted uploads and downloads of the selected clients, added up over "
                         "the rounds shown; dashed: whole models in float32 instead.";
    fl_chart_lines(c->html, &chart);
}

const char *const fl__page_phase_names[FL_PAGE_PHASE_N] = {
#define X(member, text) [FL_PAGE_PHASE_##member] = text,
    FL_PAGE_PHASES(X)
#undef X
        [FL_PAGE_PHASE_commit] = "committing"};

void fl__page_phase_times(const struct fl_round_rec *round, const struct fl_round_rec *next,
                          double us[FL_PAGE_PHASE_N])
{
#define X(member, text) us[FL_PAGE_PHASE_##member] = (double)round->member * 1000;
    FL_PAGE_PHASES(X)
#undef X
    us[FL_PAGE_PHASE_commit] = next != NULL && next->round == round->round + 1
                                   ? (double)next->previous_commit_ms * 1000
                                   : FL_CHART_UNKNOWN;
}

_Static_assert(FL_PAGE_PHASE_N <= OVERVIEW_SERIES, "each phase is a series");

/* Of the figures of the rounds; returns the number of phases. */
static size_t overview_phases(struct overview_columns *c, struct fl_chart_series *phases)
{
    double us[FL_PAGE_PHASE_N];
    size_t i;
    size_t k;

    for (i = 0; i < c->o->n_rounds; i++) {
        fl__page_phase_times(overview_record(c, i),
                             i + 1 < c->o->n_rounds ? overview_record(c, i + 1) : NULL, us);
        for (k = 0; k < FL_PAGE_PHASE_N; k++) {
            c->values[k][i] = us[k];
        }
    }
    for (k = 0; k < FL_PAGE_PHASE_N; k++) {
        phases[k] =
            (struct fl_chart_series){.label = fl__page_phase_names[k], .values = c->values[k]};
    }
    return FL_PAGE_PHASE_N;
}

static void overview_time(struct overview_columns *c)
{
    struct fl_chart_series phases[FL_CHART_SERIES];
    const struct fl_page_phases *p = c->o->phases;
    struct fl_chart chart = overview_chart(c, "time", phases, 0);
    char text[FL_CHART_TEXT];
    double sum = 0;
    size_t i;
    size_t k;

    for (k = 0; p != NULL && k < p->n && k < FL_CHART_SERIES; k++) {
        phases[k] =
            (struct fl_chart_series){.label = p->names[k], .values = p->us + k * c->o->n_rounds};
    }
    chart.n_series = p != NULL ? k : overview_phases(c, phases);
    for (k = 0; k < chart.n_series; k++) {
        for (i = 0; i < c->o->n_rounds; i++) {
            sum += isfinite(phases[k].values[i]) ? phases[k].values[i] : 0;
        }
    }
    chart.head.title = "Round time by phase";
    chart.head.unit = FL_CHART_TIME;
    if (c->o->n_rounds > 0) {
        (void)snprintf(c->headline, sizeof(c->headline), "%s a round on average",
                       fl_chart_text(FL_CHART_TIME, sum / (double)c->o->n_rounds, text));
        chart.head.headline = c->headline;
    }
    chart.head.caption = p != NULL ? "Duration of the rounds, by what they waited for."
                                   : "Duration of the committed attempts, without the time between "
                                     "rounds; the commit of the newest round is not known yet.";
    fl_chart_bars(c->html, &chart);
}

static void overview_participants(struct overview_columns *c)
{
    struct fl_chart_series series[] = {{.label = "selected"}, {.label = "aggregated"}};
    struct fl_chart chart = overview_chart(c, "participants", series, 2);

    overview_fill(c, 0, FL_ROUND_n_selected);
    overview_fill(c, 1, FL_ROUND_n_responders);
    chart.head.title = "Clients in a round";
    chart.head.unit = FL_CHART_COUNT;
    chart.head.caption = "Selected clients, and those whose report was accepted.";
    if (c->o->n_rounds > 0) {
        const struct fl_round_rec *r = overview_record(c, c->o->n_rounds - 1);

        (void)snprintf(c->headline, sizeof(c->headline), "%u of %u in round %llu", r->n_responders,
                       r->n_selected, (unsigned long long)r->round);
        chart.head.headline = c->headline;
    }
    fl_chart_lines(c->html, &chart);
}

/* Over how many clients the attention of the aggregation is spread. */
static void overview_attention(struct overview_columns *c)
{
    struct fl_chart_series series[] = {{.label = "effective"}};
    struct fl_chart chart = overview_chart(c, "attention", series, 1);

    overview_fill(c, 0, FL_ROUND_effective);
    if (overview_any(c, 0)) {
        chart.head.title = "Effective clients";
        chart.head.headline = overview_headline(c, FL_CHART_NUMBER, 0);
        chart.head.caption = "Over how many clients the attention of the aggregation was spread.";
        fl_chart_lines(c->html, &chart);
    }
}

/* The part of the clients that a round selects; none where every round selects all of them. */
static void overview_fraction(struct overview_columns *c)
{
    struct fl_chart_series series[] = {{.label = "selected"}};
    struct fl_chart chart = overview_chart(c, "fraction", series, 1);
    bool any = false;
    size_t i;

    for (i = 0; i < c->o->n_rounds; i++) {
        const struct fl_round_rec *r = overview_record(c, i);

        c->values[0][i] =
            r->population > 0 ? (double)r->n_selected / (double)r->population : FL_CHART_UNKNOWN;
        any = any || (r->population > 0 && r->n_selected != r->population);
    }
    if (!any) {
        return;
    }
    chart.head.title = "Selected fraction";
    chart.head.unit = FL_CHART_SHARE;
    chart.head.headline = overview_headline(c, FL_CHART_SHARE, 0);
    chart.head.caption = "Selected clients as a share of those that the fraction is taken of. It "
                         "grows with a stepped fraction (AdaFL).";
    fl_chart_lines(c->html, &chart);
}

void fl__page_charts(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    struct overview_columns c = {.html = html, .o = o, .prefix = prefix};
    double *values = calloc((o->n_rounds + 1) * OVERVIEW_SERIES, sizeof(*values));
    size_t i;

    c.x = calloc(o->n_rounds + 1, sizeof(*c.x));
    if (values == NULL || c.x == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        goto done;
    }
    for (i = 0; i < OVERVIEW_SERIES; i++) {
        c.values[i] = values + i * o->n_rounds;
    }
    for (i = 0; i < o->n_rounds; i++) {
        c.x[i] = o->rounds[i].figures.round;
    }
    fl_html(html, "<div class=\"cards\">");
    overview_quality(&c);
    overview_metrics(&c);
    overview_bytes(&c);
    overview_time(&c);
    overview_participants(&c);
    overview_fraction(&c);
    overview_attention(&c);
    fl__page_scores(html, o, prefix);
    fl__page_grid(html, o, prefix);
    fl__page_mixing(html, o->parts, o->n_parts, prefix);
    fl__page_weights(html, o->parts, o->n_parts, prefix);
    fl_html(html, "</div>\n");
done:
    free(values);
    free(c.x);
}

/* --- the page --- */

void fl__page_fact(struct fl_html *html, const char *name, const char *value, const char *note)
{
    fl_html(html, "<div><dt>%s</dt><dd>%s <span>%s</span></dd></div>", name, value, note);
}

static void overview_facts(struct fl_html *html, const struct fl_wire_status *s)
{
    const struct fl_round_rec *t = &s->totals;
    char value[64];
    char note[96];
    char text[FL_CHART_TEXT];

    fl_html(html, "<dl class=\"facts\">");
    fl__page_fact(html, "Phase", s->phase, s->algorithm);
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)s->rounds_committed);
    (void)snprintf(note, sizeof(note), s->rounds_total > 0 ? "of %llu committed" : "committed",
                   (unsigned long long)s->rounds_total);
    fl__page_fact(html, "Rounds", value, note);
    (void)snprintf(value, sizeof(value), "%u", s->clients_connected);
    (void)snprintf(note, sizeof(note), "of %u connected", s->clients_known);
    fl__page_fact(html, "Clients", value, note);
    (void)snprintf(note, sizeof(note), "loss %s",
                   fl_chart_text(FL_CHART_NUMBER, fl__page_figure(t, FL_ROUND_loss), text));
    fl__page_fact(html, "Accuracy",
                  fl_chart_text(FL_CHART_SHARE, fl__page_figure(t, FL_ROUND_accuracy), text), note);
    (void)snprintf(note, sizeof(note), t->uplink_bytes_full > 0 ? "%.3g %% of full" : " ",
                   (double)t->uplink_bytes / (double)t->uplink_bytes_full * 100);
    fl__page_fact(html, "Uploaded", fl_chart_text(FL_CHART_BYTES, (double)t->uplink_bytes, text),
                  note);
    fl__page_fact(html, "Downloaded",
                  fl_chart_text(FL_CHART_BYTES, (double)t->downlink_bytes, text), "");
    fl_html(html, "</dl>\n");
}

static void overview_sentence(struct fl_html *html, const struct fl_page_overview *o)
{
    size_t i;

    fl_html(html, "<p class=\"why\" id=\"why\" role=\"status\">%s</p>\n", o->status->why);
    if (o->why == NULL || o->why->n_missing == 0) {
        return;
    }
    fl_html(html, "<p class=\"missing\">Missing: ");
    for (i = 0; i < o->why->n_missing; i++) {
        char path[FL_HTML_PATH];

        fl_html(html, "%s<a href=\"/clients/%s\">%s</a>", i > 0 ? ", " : "",
                fl_html_path(o->why->missing[i], path), o->why->missing[i]);
    }
    fl_html(html, "</p>\n");
}

void fl__page_commands(struct fl_html *html, const char *const (*commands)[2], size_t n)
{
    size_t i;

    fl_html(html, "<section aria-labelledby=\"commands\"><h2 id=\"commands\">Commands</h2>"
                  "<ul class=\"commands\">");
    for (i = 0; i < n; i++) {
        fl_html(html, "<li><code>%s</code> <span>%s</span></li>", commands[i][0], commands[i][1]);
    }
    fl_html(html, "</ul></section>\n");
}

static const char *const overview_commands[][2] = {
    {"flctl why", "what the round waits for, as above"},
    {"flctl pause --reason \"maintenance\"", "start no round after the open one"},
    {"flctl resume", "continue after a pause"},
    {"flctl drain", "stop the server when the open round has ended"}};

int fl_page_write_overview(const struct fl_page_overview *overview, struct fl_buf *out)
{
    struct fl_html html = {.w = {.out = out}};

    fl__page_begin(&html, "Overview", overview->status->federation, FL_PAGE_LIVE);
    fl_html(&html, "<h1>Status</h1>");
    overview_sentence(&html, overview);
    overview_facts(&html, overview->status);
    fl_html(&html, "<section aria-labelledby=\"rounds\"><h2 id=\"rounds\">Training</h2>");
    fl__page_charts(&html, overview, "c-");
    fl_html(&html, "</section>\n");
    fl__page_members(&html, overview, "", FL_PAGE_MEMBERS);
    fl__page_rounds(&html, overview, "");
    fl__page_events(&html, overview, "");
    fl__page_commands(&html, overview_commands,
                      sizeof(overview_commands) / sizeof(overview_commands[0]));
    fl__page_end(&html, overview->status->version);
    return html.w.code;
}
