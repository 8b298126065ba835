/* Traces: intervals of bandwidth or availability of each client, from a file. Made once while the
   network and device model is loaded; then read-only, any thread. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/fl_sim/world/world_impl.h"

/* A row of the file. */
struct row {
    uint64_t client;
    struct fl__span span;
    uint32_t line;
};

struct maker {
    const struct fl__table *table;
    const struct fl__trace_ask *ask;
    size_t client, from, until, up, down; /* columns */
    struct row *rows;
    size_t n;
    uint64_t length;
    struct fl_err *err;
};

static double trace_seconds(uint64_t us)
{
    return (double)us / 1e6;
}

static int trace_find_column(const struct maker *m, const char *name, enum fl__unit_kind kind,
                             size_t *ret)
{
    const struct fl__table *t = m->table;

    *ret = fl__table_column(t, name);
    if (*ret == t->n_columns) {
        return fl_err_set(m->err, FL_ECONF, "%s: column '%s' is missing: expected %s", t->path,
                          name,
                          m->ask->rates ? "client, from [s], until [s], and uplink [Mbit/s] or "
                                          "downlink [Mbit/s] or both"
                                        : "client, up_from [s] and up_until [s]");
    }
    if (t->columns[*ret].kind != kind) {
        return fl_err_set(m->err, FL_ECONF, "%s: column '%s': expected %s", t->path, name,
                          kind == FL__TIME ? "a unit of time, as in [s]" : "no unit");
    }
    return FL_OK;
}

static int trace_find_columns(struct maker *m)
{
    const struct fl__table *t = m->table;
    bool rates = m->ask->rates;
    int rv = trace_find_column(m, FL__NAME_OF_WHOM, FL__NUMBER, &m->client);

    if (rv != FL_OK) {
        return rv;
    }
    rv = trace_find_column(m, rates ? "from" : "up_from", FL__TIME, &m->from);
    if (rv != FL_OK) {
        return rv;
    }
    rv = trace_find_column(m, rates ? "until" : "up_until", FL__TIME, &m->until);
    if (rv != FL_OK) {
        return rv;
    }
    m->up = rates ? fl__table_column(t, "uplink") : t->n_columns;
    m->down = rates ? fl__table_column(t, "downlink") : t->n_columns;
    return rates && m->up == t->n_columns && m->down == t->n_columns
               ? trace_find_column(m, "uplink", FL__RATE, &m->up)
               : FL_OK;
}

static int trace_refuse_row(const struct maker *m, const struct row *row, const char *why)
{
    return fl_err_set(m->err, FL_ECONF, "%s:%" PRIu32 ": client %" PRIu64 ", %g s to %g s: %s",
                      m->table->path, row->line, row->client, trace_seconds(row->span.from),
                      trace_seconds(row->span.until), why);
}

static int trace_read_rows(struct maker *m)
{
    const struct fl__table *t = m->table;
    size_t i;

    m->rows = calloc(t->n_rows, sizeof(*m->rows));
    if (m->rows == NULL) {
        return FL_ENOMEM;
    }
    m->length = fl__us(t->length);
    for (i = 0; i < t->n_rows; i++) {
        const double *cells = &t->cells[i * t->n_columns];
        struct row *row = &m->rows[m->n++];

        row->line = t->lines[i];
        row->client = (uint64_t)cells[m->client];
        row->span.from = fl__us(cells[m->from]);
        row->span.until = fl__us(cells[m->until]);
        row->span.up = m->up < t->n_columns ? cells[m->up] : 0;
        row->span.down = m->down < t->n_columns ? cells[m->down] : 0;
        if (row->span.until <= row->span.from) {
            return trace_refuse_row(m, row, "ends before it begins");
        }
        if (t->length > 0 && row->span.until > m->length) {
            return trace_refuse_row(m, row, "ends after the length that the header gives");
        }
        if (m->ask->in_order && row->client >= m->ask->n) {
            return fl_err_set(m->err, FL_ECONF,
                              "%s:%" PRIu32 ": unknown client %" PRIu64 ": the model has %" PRIu64
                              ", counted from 0 (`assign: drawn` gives each a trace by chance)",
                              t->path, row->line, row->client, m->ask->n);
        }
        m->length = t->length <= 0 && row->span.until > m->length ? row->span.until : m->length;
    }
    return FL_OK;
}

static int trace_compare_rows(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;

    if (x->client != y->client) {
        return x->client < y->client ? -1 : 1;
    }
    if (x->span.from != y->span.from) {
        return x->span.from < y->span.from ? -1 : 1;
    }
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Rows are sorted; `previous` is NULL for the first of a client. */
static int trace_check_next(const struct maker *m, const struct row *previous,
                            const struct row *row, bool last)
{
    uint64_t before = previous != NULL ? previous->span.until : 0;

    if (row->span.from < before) {
        return trace_refuse_row(m, row, "begins before the previous row of this client ends");
    }
    if (m->ask->rates && row->span.from > before) {
        return trace_refuse_row(m, row, "the rate is not known for the time before it");
    }
    if (m->ask->rates && last && row->span.until < m->length) {
        return trace_refuse_row(
            m, row, "the trace is longer, and the rate of this client is not known after it");
    }
    return FL_OK;
}

static int trace_check_length(const struct maker *m)
{
    const struct fl__trace_ask *ask = m->ask;

    if (ask->repeat || (ask->horizon_us > 0 && m->length >= ask->horizon_us)) {
        return FL_OK;
    }
    if (ask->horizon_us > 0) {
        return fl_err_set(m->err, FL_ECONF,
                          "%s: the trace ends early, after %g s, and the experiment may take %g s; "
                          "set `repeat: yes` to repeat it",
                          m->table->path, trace_seconds(m->length), trace_seconds(ask->horizon_us));
    }
    return fl_err_set(m->err, FL_ECONF,
                      "%s: the trace may end early, after %g s: set `repeat: yes` to repeat it, "
                      "or let the experiment stop at a simulated time before that",
                      m->table->path, trace_seconds(m->length));
}

static int trace_fill(struct maker *m, struct fl__trace *trace)
{
    size_t i;
    int rv;

    for (i = 0; i < m->n; i++) {
        bool begins = i == 0 || m->rows[i - 1].client != m->rows[i].client;
        bool last = i + 1 == m->n || m->rows[i + 1].client != m->rows[i].client;

        if (begins) {
            if (m->ask->in_order && m->rows[i].client != trace->n_clients) {
                break; /* the previous client has no row */
            }
            trace->first[trace->n_clients++] = i;
        }
        trace->spans[i] = m->rows[i].span;
        rv = trace_check_next(m, begins ? NULL : &m->rows[i - 1], &m->rows[i], last);
        if (rv != FL_OK) {
            return rv;
        }
    }
    trace->first[trace->n_clients] = m->n;
    if (m->ask->in_order && trace->n_clients < m->ask->n) {
        return fl_err_set(m->err, FL_ECONF,
                          "%s: client %zu has no row, and the model has %" PRIu64
                          " clients (`assign: drawn` gives each a trace by chance)",
                          m->table->path, trace->n_clients, m->ask->n);
    }
    return FL_OK;
}

int fl__trace_make(const struct fl__table *table, const struct fl__trace_ask *ask,
                   struct fl__trace **ret, struct fl_err *err)
{
    struct maker m = {.table = table, .ask = ask, .err = err};
    struct fl__trace *trace = calloc(1, sizeof(*trace));
    int rv = trace != NULL ? trace_find_columns(&m) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    rv = trace_read_rows(&m);
    if (rv != FL_OK) {
        goto done;
    }
    rv = trace_check_length(&m);
    if (rv != FL_OK) {
        goto done;
    }
    qsort(m.rows, m.n, sizeof(*m.rows), trace_compare_rows);
    trace->spans = calloc(m.n, sizeof(*trace->spans));
    trace->first = calloc(m.n + 1, sizeof(*trace->first));
    rv = trace->spans != NULL && trace->first != NULL ? trace_fill(&m, trace) : FL_ENOMEM;
done:
    free(m.rows);
    if (rv != FL_OK) {
        fl__trace_free(trace);
        return rv == FL_ENOMEM
                   ? fl_err_set(err, rv, "out of memory for the trace '%s'", table->path)
                   : rv;
    }
    trace->length = m.length;
    trace->has_up = m.up < table->n_columns;
    trace->has_down = m.down < table->n_columns;
    trace->repeat = ask->repeat;
    trace->in_order = ask->in_order;
    *ret = trace;
    return FL_OK;
}

void fl__trace_free(struct fl__trace *trace)
{
    if (trace != NULL) {
        free(trace->spans);
        free(trace->first);
        free(trace);
    }
}

const struct fl__span *fl__trace_at(const struct fl__trace *trace, uint64_t seed, uint64_t client,
                                    uint64_t t, uint64_t *ret_until)
{
    uint64_t begun = trace->repeat ? t / trace->length * trace->length : 0;
    const struct fl__span *spans;
    struct fl_rng rng;
    size_t low;
    size_t high;
    size_t n;

    if (!trace->in_order) {
        fl__world_key(&rng, seed, FL__DRAW_TRACE, client);
        client = fl_rng_below(&rng, trace->n_clients);
    }
    spans = &trace->spans[trace->first[client]];
    high = n = trace->first[client + 1] - trace->first[client];
    for (low = 0; low < high;) { /* first interval that ends after `t` */
        size_t mid = low + (high - low) / 2;

        if (spans[mid].until <= t - begun) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low < n && spans[low].from <= t - begun) {
        *ret_until = begun + spans[low].until;
        return &spans[low];
    }
    if (low < n) {
        *ret_until = begun + spans[low].from;
    } else {
        *ret_until = trace->repeat ? begun + trace->length + spans[0].from : UINT64_MAX;
    }
    return NULL;
}
