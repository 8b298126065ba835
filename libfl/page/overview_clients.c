/* Tables of the overview: clients, rounds, events (page.h). Pure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/page/overview_impl.h"

/* --- clients --- */

const struct fl__page_column_row fl__page_column_rows[] = {
#define X(key, head, text) {#key, head, text},
    FL_PAGE_COLUMNS(X)
#undef X
};

const char *fl__page_client_state(const struct fl_wire_client *client)
{
    return client->connected || client->quarantine[0] != '\0' ? client->state : "disconnected";
}

/* Clients that an operator looks for come first: quarantined, disconnected, with losses. */
static uint64_t member_trouble(const struct fl_wire_client *c)
{
    return (c->quarantine[0] != '\0' ? UINT64_C(1) << 63 : 0) +
           (c->connected ? 0 : UINT64_C(1) << 62) +
           ((c->figures.n_rejected + c->figures.n_lost) & ((UINT64_C(1) << 62) - 1));
}

struct member_key {
    uint64_t trouble;
    const char *name;
    uint32_t index;
};

static int member_compare(const void *a, const void *b)
{
    const struct member_key *x = a;
    const struct member_key *y = b;

    return x->trouble != y->trouble ? (x->trouble < y->trouble) - (x->trouble > y->trouble)
                                    : strcmp(x->name, y->name);
}

void fl__page_client_note(struct fl_html *html, const struct fl_page_overview *o,
                          const struct fl_wire_client *c)
{
    char age[FL_CHART_TEXT];

    if (c->quarantine[0] != '\0') {
        fl_html(html, "quarantined for %s: %s", fl__page_age(o, c->quarantined_ms, age),
                c->quarantine);
    }
    if (c->last_error[0] != '\0') {
        fl_html(html, "%s%s", c->quarantine[0] != '\0' ? "; " : "", c->last_error);
        if (c->last_error_ms != 0) {
            fl_html(html, " (%s ago)", fl__page_age(o, c->last_error_ms, age));
        }
    }
}

static void member_row(struct fl_html *html, const struct fl_page_overview *o,
                       const struct fl_wire_client *c)
{
    const struct fl_client_figures *f = &c->figures;
    bool seen = f->last_seen_ms != 0 || o->simulated;
    char text[FL_CHART_TEXT];
    char path[FL_HTML_PATH];

    if (o->simulated) {
        fl_html(html, "<tr><th scope=\"row\">%s</th>", c->name);
    } else {
        fl_html(html, "<tr><th scope=\"row\"><a href=\"/clients/%s\">%s</a></th>",
                fl_html_path(c->name, path), c->name);
    }
    fl_html(html, "<td class=\"t%s\">%s</td><td data-v=\"%llu\">%s</td>",
            c->connected && c->quarantine[0] == '\0' ? "" : " bad", fl__page_client_state(c),
            seen && o->now_ms > f->last_seen_ms ? (unsigned long long)(o->now_ms - f->last_seen_ms)
                                                : 0,
            fl__page_age(o, f->last_seen_ms, text));
    fl_html(html, "<td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td>",
            (unsigned long long)f->samples, (unsigned long long)f->n_selected,
            (unsigned long long)f->n_accepted, (unsigned long long)f->n_rejected,
            (unsigned long long)f->n_lost);
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_NUMBER, f->score, text));
    fl_html(
        html, "<td>%s</td><td class=\"t\">",
        fl_chart_text(FL_CHART_NUMBER, f->n_selected > 0 ? f->last_loss : FL_CHART_UNKNOWN, text));
    fl__page_client_note(html, o, c);
    fl_html(html, "</td></tr>\n");
}

void fl__page_client_rows(struct fl_html *html, const struct fl_page_overview *o,
                          const uint32_t *order, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        member_row(html, o, &o->clients[order[i]]);
    }
}

/* The script makes its columns sortable. */
static void member_table(struct fl_html *html, const struct fl_page_overview *o, const char *id,
                         const uint32_t *order, size_t n)
{
    size_t i;

    fl_html(html,
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Clients, table\">"
            "<table id=\"%s\" data-sort><caption class=\"hide\">Clients and their participation"
            "</caption><thead><tr>",
            id);
    for (i = 0; i < FL_PAGE_COLUMN_N; i++) {
        fl_html(html, "<th scope=\"col\" class=\"%s\">%s</th>",
                fl__page_column_rows[i].text ? "t" : "n", fl__page_column_rows[i].head);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    fl__page_client_rows(html, o, order, n);
    fl_html(html, "</tbody></table></div>\n");
}

void fl__page_members(struct fl_html *html, const struct fl_page_overview *o, const char *prefix,
                      size_t most)
{
    struct member_key *keys = calloc(o->n_clients + 1, sizeof(*keys));
    uint32_t *order = calloc(o->n_clients + 1, sizeof(*order));
    size_t n = o->n_clients < most ? o->n_clients : most;
    char id[96];
    size_t i;

    if (keys == NULL || order == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        goto done;
    }
    for (i = 0; i < o->n_clients; i++) {
        keys[i] = (struct member_key){o->simulated ? 0 : member_trouble(&o->clients[i]),
                                      o->clients[i].name, (uint32_t)i};
    }
    qsort(keys, o->n_clients, sizeof(*keys), member_compare);
    for (i = 0; i < n; i++) {
        order[i] = keys[i].index;
    }
    (void)snprintf(id, sizeof(id), "%sclients", prefix);
    fl_html(html, "<section aria-labelledby=\"%s-h\"><%s id=\"%s-h\">Clients</%s>", id,
            o->simulated ? "h3" : "h2", id, o->simulated ? "h3" : "h2");
    if (o->n_clients == 0) {
        fl_html(html, "<p class=\"none\">No clients are known.</p>");
    } else {
        member_table(html, o, id, order, n);
    }
    if (n < o->n_clients && o->simulated) {
        fl_html(html, "<p>%zu of %zu clients.</p>", n, o->n_clients);
    } else if (n < o->n_clients) {
        fl_html(html,
                "<p>%zu of %zu clients, those with problems first. <a href=\"/clients\">All "
                "clients</a></p>",
                n, o->n_clients);
    }
    fl_html(html, "</section>\n");
done:
    free(keys);
    free(order);
}

/* --- rounds --- */

static void round_row(struct fl_html *html, const struct fl_page_overview *o,
                      const struct fl_wire_round *round)
{
    const struct fl_round_rec *r = &round->figures;
    char text[FL_CHART_TEXT];
    double wall = r->ended_ms > r->started_ms ? (double)(r->ended_ms - r->started_ms) * 1000
                                              : FL_CHART_UNKNOWN;

    if (o->simulated) {
        fl_html(html, "<tr><th scope=\"row\">%llu</th>", (unsigned long long)r->round);
    } else {
        fl_html(html, "<tr><th scope=\"row\"><a href=\"/rounds/%llu\">%llu</a></th>",
                (unsigned long long)r->round, (unsigned long long)r->round);
    }
    fl_html(html, "<td>%u</td><td>%u</td>", r->n_selected, r->n_responders);
    fl_html(html, "<td>%s</td>",
            fl_chart_text(FL_CHART_SHARE, fl__page_figure(r, FL_ROUND_accuracy), text));
    fl_html(html, "<td>%s</td>",
            fl_chart_text(FL_CHART_SHARE, fl__page_figure(r, FL_ROUND_client_accuracy_worst_tenth),
                          text));
    fl_html(html, "<td>%s</td>",
            fl_chart_text(FL_CHART_NUMBER, fl__page_figure(r, FL_ROUND_loss), text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_NUMBER, r->train_loss, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_BYTES, (double)r->uplink_bytes, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_BYTES, (double)r->uplink_bytes_full, text));
    fl_html(html, "<td>%s</td>", fl_chart_text(FL_CHART_BYTES, (double)r->downlink_bytes, text));
    fl_html(html, "<td>%s</td></tr>\n", fl_chart_text(FL_CHART_TIME, wall, text));
}

void fl__page_rounds(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    static const char *const heads[] = {"Round",       "Selected", "Aggregated",    "Accuracy",
                                        "Worst tenth", "Loss",     "Training loss", "Up",
                                        "Up, full",    "Down",     "Duration"};
    size_t n = o->n_rounds < FL_PAGE_ROUNDS ? o->n_rounds : FL_PAGE_ROUNDS;
    const char *h = o->simulated ? "h3" : "h2";
    size_t i;

    fl_html(html, "<section aria-labelledby=\"%srounds-h\"><%s id=\"%srounds-h\">Rounds</%s>",
            prefix, h, prefix, h);
    if (n == 0) {
        fl_html(html, "<p class=\"none\">No round was committed yet.</p></section>\n");
        return;
    }
    fl_html(html,
            "<details id=\"%srounds-d\"><summary>The last %zu of %zu rounds</summary><div "
            "class=\"scroll\" "
            "tabindex=\"0\" role=\"group\" aria-label=\"Rounds, table\"><table>"
            "<caption class=\"hide\">Committed rounds, newest first</caption><thead><tr>",
            prefix, n, o->n_rounds);
    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        fl_html(html, "<th scope=\"col\">%s</th>", heads[i]);
    }
    fl_html(html, "</tr></thead><tbody>\n");
    for (i = 0; i < n; i++) {
        round_row(html, o, &o->rounds[o->n_rounds - 1 - i]);
    }
    fl_html(html, "</tbody></table></div></details></section>\n");
}

/* --- events --- */

struct page_event {
    uint64_t at_ms;
    const char *subject; /* "client a", "round 7" without a number: see round */
    uint64_t round;      /* 0: none */
    const char *text;
};

static int event_newest_first(const void *a, const void *b)
{
    const struct page_event *x = a;
    const struct page_event *y = b;

    return x->at_ms != y->at_ms   ? (x->at_ms < y->at_ms) - (x->at_ms > y->at_ms)
           : x->round != y->round ? (x->round < y->round) - (x->round > y->round)
                                  : strcmp(x->text, y->text);
}

/* How many events there are; with `events`, fills them in. */
static size_t events_list(const struct fl_page_overview *o, struct page_event *events)
{
    size_t n = 0;
    size_t i;
    size_t k;

#define ADD(...)                                          \
    do {                                                  \
        if (events != NULL) {                             \
            events[n] = (struct page_event){__VA_ARGS__}; \
        }                                                 \
        n++;                                              \
    } while (0)
    for (i = 0; i < o->n_events; i++) {
        ADD(o->events[i].at_ms, NULL, 0, o->events[i].text);
    }
    for (i = 0; i < o->n_rounds; i++) {
        for (k = 0; k < o->rounds[i].n_changes; k++) {
            ADD(o->rounds[i].figures.started_ms, NULL, o->rounds[i].figures.round,
                o->rounds[i].changes[k]);
        }
    }
    for (i = 0; i < o->n_clients; i++) {
        if (o->clients[i].last_error[0] != '\0') {
            ADD(o->clients[i].last_error_ms, o->clients[i].name, 0, o->clients[i].last_error);
        }
        if (o->clients[i].quarantine[0] != '\0') {
            ADD(o->clients[i].quarantined_ms, o->clients[i].name, 0, o->clients[i].quarantine);
        }
    }
#undef ADD
    return n;
}

void fl__page_events(struct fl_html *html, const struct fl_page_overview *o, const char *prefix)
{
    size_t n = events_list(o, NULL);
    struct page_event *events = calloc(n + 1, sizeof(*events));
    const char *h = o->simulated ? "h3" : "h2";
    size_t i;

    if (events == NULL) {
        fl_writer_note(&html->w, FL_ENOMEM);
        return;
    }
    (void)events_list(o, events);
    qsort(events, n, sizeof(*events), event_newest_first);
    fl_html(html, "<section aria-labelledby=\"%sevents-h\"><%s id=\"%sevents-h\">Events</%s>",
            prefix, h, prefix, h);
    if (n == 0) {
        fl_html(html, "<p class=\"none\">No errors, quarantines or changed settings.</p>");
    } else {
        fl_html(html, "<ol class=\"events\">");
    }
    for (i = 0; i < n && i < FL_PAGE_EVENTS; i++) {
        fl_html(html, "<li>");
        fl__page_time(html, o, events[i].at_ms);
        if (events[i].subject != NULL) {
            fl_html(html, " <b>%s</b>", events[i].subject);
        } else if (events[i].round != 0) {
            fl_html(html, " <b>from round %llu</b>", (unsigned long long)events[i].round);
        }
        fl_html(html, " %s</li>\n", events[i].text);
    }
    if (n > 0) {
        fl_html(html, "</ol>");
    }
    if (n > FL_PAGE_EVENTS) {
        fl_html(html, "<p>The newest %d of %zu.</p>", FL_PAGE_EVENTS, n);
    }
    fl_html(html, "</section>\n");
    free(events);
}
