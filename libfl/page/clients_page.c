/* All clients, a page of them at a time, sorted and filtered by what the URL asks for. Pure. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/page/overview_impl.h"

/* --- the query --- */

const char *const fl_page_query_keys[] = {"sort", "down", "filter", "page", NULL};

void fl_page_query_set(struct fl_page_query *q, const char *key, const char *value)
{
    unsigned i;

    if (strcmp(key, "sort") == 0) {
        for (i = 0; i < FL_PAGE_COLUMN_N; i++) {
            q->column = strcmp(value, fl__page_column_rows[i].key) == 0 ? i : q->column;
        }
    } else if (strcmp(key, "down") == 0) {
        q->down = strcmp(value, "1") == 0;
    } else if (strcmp(key, "filter") == 0) {
        (void)snprintf(q->filter, sizeof(q->filter), "%s", value);
    } else if (strcmp(key, "page") == 0 && fl_str_to_u64(value, &q->page) != FL_OK) {
        q->page = 0;
    }
}

/* The query of a link: another column, direction or page. Returns `out`. */
static const char *query_link(const struct fl_page_query *q, unsigned column, bool down,
                              uint64_t page, char out[FL_HTML_PATH])
{
    char filter[FL_HTML_PATH];

    (void)snprintf(out, FL_HTML_PATH, "/clients?sort=%s&down=%d&page=%llu&filter=%.384s",
                   fl__page_column_rows[column].key, down ? 1 : 0, (unsigned long long)page,
                   fl_html_path(q->filter, filter));
    return out;
}

/* --- order and filter --- */

struct clients_key {
    double number;
    const char *text; /* before `number`; NULL: none */
    const char *name;
    uint32_t index;
    bool down;
};

static double clients_number(const struct fl_wire_client *c, unsigned column)
{
    const struct fl_client_figures *f = &c->figures;

    switch (column) {
    case FL_PAGE_COLUMN_contact:
        return -(double)f->last_seen_ms;
    case FL_PAGE_COLUMN_samples:
        return (double)f->samples;
    case FL_PAGE_COLUMN_selected:
        return (double)f->n_selected;
    case FL_PAGE_COLUMN_accepted:
        return (double)f->n_accepted;
    case FL_PAGE_COLUMN_rejected:
        return (double)f->n_rejected;
    case FL_PAGE_COLUMN_lost:
        return (double)f->n_lost;
    case FL_PAGE_COLUMN_score:
        return isfinite(f->score) ? f->score : -1;
    case FL_PAGE_COLUMN_loss:
        return isfinite(f->last_loss) ? f->last_loss : -1;
    default:
        return 0;
    }
}

static int clients_compare(const void *a, const void *b)
{
    const struct clients_key *x = a;
    const struct clients_key *y = b;
    int order = x->text != NULL ? strcmp(x->text, y->text) : 0;

    order = order != 0 ? order : (x->number > y->number) - (x->number < y->number);
    order = x->down ? -order : order;
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* Without regard to the case of ASCII letters. */
static bool clients_contain(const char *text, const char *word)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;

        while (word[i] != '\0' &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)word[i])) {
            i++;
        }
        if (word[i] == '\0') {
            return true;
        }
    }
    return false;
}

static bool clients_match(const struct fl_wire_client *c, const char *filter)
{
    size_t i;

    if (filter[0] == '\0' || clients_contain(c->name, filter) ||
        clients_contain(fl__page_client_state(c), filter) ||
        clients_contain(c->last_error, filter) || clients_contain(c->quarantine, filter))
    {
        return true;
    }
    for (i = 0; i < c->n_labels; i++) {
        if (clients_contain(c->labels[i].key, filter) ||
            clients_contain(c->labels[i].value, filter)) {
            return true;
        }
    }
    return false;
}

/* The matching clients in order; returns their number. */
static size_t clients_order(const struct fl_page_overview *o, const struct fl_page_query *q,
                            struct clients_key *keys)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < o->n_clients; i++) {
        const struct fl_wire_client *c = &o->clients[i];

        if (clients_match(c, q->filter)) {
            keys[n++] = (struct clients_key){
                .number = clients_number(c, q->column),
                .text = q->column == FL_PAGE_COLUMN_state     ? fl__page_client_state(c)
                        : q->column == FL_PAGE_COLUMN_remarks ? c->last_error
                        : q->column == FL_PAGE_COLUMN_name    ? c->name
                                                              : NULL,
                .name = c->name,
                .index = (uint32_t)i,
                .down = q->down};
        }
    }
    qsort(keys, n, sizeof(*keys), clients_compare);
    return n;
}

/* --- the page --- */

static void clients_tools(struct fl_html *html, const struct fl_page_query *q, size_t from,
                          size_t to, size_t n)
{
    char link[FL_HTML_PATH];

    fl_html(html,
            "<form class=\"tools\" action=\"/clients\" role=\"search\"><label>Filter <input "
            "type=\"search\" id=\"filter\" name=\"filter\" value=\"%s\"></label>"
            "<input type=\"hidden\" name=\"sort\" value=\"%s\"><input type=\"hidden\" "
            "name=\"down\" value=\"%d\"><button id=\"show\">Show</button></form>",
            q->filter, fl__page_column_rows[q->column].key, q->down ? 1 : 0);
    fl_html(html, "<nav class=\"tools\" aria-label=\"Pages of the table\">");
    if (n > 0) {
        fl_html(html, "<span>%zu to %zu of %zu</span>", from + 1, to, n);
    } else {
        fl_html(html, "<span>No client matches.</span>");
    }
    if (from > 0) {
        fl_html(html, " <a id=\"previous\" href=\"%s\">Previous</a>",
                query_link(q, q->column, q->down, q->page - 1, link));
    }
    if (to < n) {
        fl_html(html, " <a id=\"next\" href=\"%s\">Next</a>",
                query_link(q, q->column, q->down, q->page + 1, link));
    }
    fl_html(html, "</nav>\n");
}

static void clients_head(struct fl_html *html, const struct fl_page_query *q)
{
    char link[FL_HTML_PATH];
    unsigned i;

    fl_html(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Clients, "
                  "table\"><table id=\"clients\"><caption class=\"hide\">Clients and their "
                  "participation</caption><thead><tr>");
    for (i = 0; i < FL_PAGE_COLUMN_N; i++) {
        const struct fl__page_column_row *row = &fl__page_column_rows[i];
        bool here = i == q->column;
        /* Numbers begin with the largest, texts with the first. */
        bool down = here ? !q->down : !row->text;

        fl_html(html, "<th scope=\"col\" class=\"%s\" aria-sort=\"%s\">", row->text ? "t" : "n",
                !here     ? "none"
                : q->down ? "descending"
                          : "ascending");
        fl_html(html, "<a id=\"sort-%s\" href=\"%s\">%s</a></th>", row->key,
                query_link(q, i, down, 0, link), row->head);
    }
    fl_html(html, "</tr></thead><tbody>\n");
}

int fl_page_clients(const struct fl_page_overview *overview, const struct fl_page_query *query,
                    struct fl_buf *out)
{
    struct fl_html html = {.w = {.out = out}};
    struct fl_page_query q = *query;
    struct clients_key *keys = calloc(overview->n_clients + 1, sizeof(*keys));
    uint32_t order[FL_PAGE_CLIENTS];
    size_t n;
    size_t from;
    size_t to;
    size_t i;

    if (keys == NULL) {
        return FL_ENOMEM;
    }
    q.column = q.column < FL_PAGE_COLUMN_N ? q.column : 0;
    n = clients_order(overview, &q, keys);
    q.page = q.page * FL_PAGE_CLIENTS / FL_PAGE_CLIENTS == q.page ? q.page : 0;
    if (q.page * FL_PAGE_CLIENTS >= n) {
        q.page = n > 0 ? (n - 1) / FL_PAGE_CLIENTS : 0;
    }
    from = (size_t)q.page * FL_PAGE_CLIENTS;
    to = from + FL_PAGE_CLIENTS < n ? from + FL_PAGE_CLIENTS : n;
    for (i = from; i < to; i++) {
        order[i - from] = keys[i].index;
    }
    fl__page_begin(&html, "Clients", overview->status->federation, FL_PAGE_LIVE);
    fl_html(&html, "<h1>Clients</h1>");
    fl_html(&html, "<p class=\"why\" id=\"why\" role=\"status\">%s</p>\n", overview->status->why);
    clients_tools(&html, &q, from, to, n);
    clients_head(&html, &q);
    fl__page_client_rows(&html, overview, order, to - from);
    fl_html(&html, "</tbody></table></div>\n");
    fl__page_end(&html, overview->status->version);
    free(keys);
    return html.w.code;
}
