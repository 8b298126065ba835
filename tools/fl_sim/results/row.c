/* Rows of results as JSON and CSV, and back (row.h). Pure functions. */
#include "tools/fl_sim/results/row.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libfl/base/writer.h"
#include "libfl/json/json.h"

/* The tables of a row, in the order of its columns; the texts are last. */
struct table {
    const struct fl_figures *figures;
    size_t offset;
};

static const struct table tables[] = {
    {&fl_round_rows, offsetof(struct fl_row, record)},
    {&fl_sim_round_rows, offsetof(struct fl_row, sim)},
};
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

static const void *row_record(const struct table *table, const struct fl_row *row)
{
    return (const char *)row + table->offset;
}

/* "metrics.NAME": whether a row has it is known only with the row. */
static bool row_find_metric(const char *key, struct fl_row_figure *ret)
{
    static const char prefix[] = "metrics.";
    static const struct fl_figure metric = {.member = "metrics", .unit = FL_UNIT_LOSS};
    char text[FL_EVAL_METRICS_TEXT] = "";

    if (strncmp(key, prefix, sizeof(prefix) - 1) != 0 ||
        !fl_eval_metrics_add_key(text, key + sizeof(prefix) - 1, 0))
    {
        return false;
    }
    *ret = (struct fl_row_figure){.figure = &metric, .metric = key + sizeof(prefix) - 1};
    return true;
}

bool fl_row_find(const char *key, struct fl_row_figure *ret)
{
    size_t t;
    size_t i;

    for (t = 0; t < N_TABLES; t++) {
        for (i = 0; i < tables[t].figures->n; i++) {
            if (strcmp(fl_figure_key(&tables[t].figures->rows[i]), key) == 0) {
                *ret = (struct fl_row_figure){.figures = tables[t].figures,
                                              .figure = &tables[t].figures->rows[i]};
                return true;
            }
        }
    }
    return row_find_metric(key, ret);
}

const char *fl_row_key(const struct fl_row_figure *figure)
{
    return figure->metric != NULL ? figure->metric : fl_figure_key(figure->figure);
}

const char *fl_row_nearest(const char *key)
{
    const char *keys[FL_ROUND_N + FL_SIM_ROUND_N];
    size_t n = 0;
    size_t t;
    size_t i;

    for (t = 0; t < N_TABLES; t++) {
        for (i = 0; i < tables[t].figures->n; i++) {
            keys[n++] = fl_figure_key(&tables[t].figures->rows[i]);
        }
    }
    return fl_str_nearest(key, keys, n);
}

double fl_row_value(const struct fl_row_figure *figure, const struct fl_row *row)
{
    const void *record = row_record(&tables[figure->figures == tables[0].figures ? 0 : 1], row);
    double value = (double)NAN;

    if (figure->metric != NULL) {
        (void)fl_eval_metrics_find(row->record.metrics, figure->metric, &value);
        return value;
    }
    if (!fl_figure_known(figure->figures, figure->figure, record)) {
        return (double)NAN;
    }
    return figure->figure->type == FL_FIGURE_F64 ? fl_figure_real(figure->figure, record)
                                                 : (double)fl_figure_whole(figure->figure, record);
}

/* Appends a number, or `unknown`. */
static void row_add_value(struct fl_writer *w, const struct fl_figures *figures,
                          const struct fl_figure *f, const void *record, const char *unknown)
{
    char number[FL_JSON_EXACT];
    bool known = fl_figure_known(figures, f, record);

    if (f->type != FL_FIGURE_F64 && (known || f->lead != 0)) {
        fl_writer_printf(w, "%" PRIu64, fl_figure_whole(f, record));
        return;
    }
    known = known && f->type == FL_FIGURE_F64 && isfinite(fl_figure_real(f, record));
    fl_writer_printf(w, "%s", known ? fl_json_exact(fl_figure_real(f, record), number) : unknown);
}

/* Appends "key":value of every figure, with commas between them. */
static void row_add_members(struct fl_writer *w, const struct fl_figures *figures,
                            const void *record)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        fl_writer_printf(w, "%s\"%s\":", i > 0 ? "," : "", fl_figure_key(f));
        row_add_value(w, figures, f, record, "null");
    }
}

static void row_add_text_member(struct fl_writer *w, const char *key, const char *text)
{
    fl_writer_printf(w, ",\"%s\":", key);
    if (text != NULL) {
        fl_writer_note(w, fl_json_add_text(w->out, text));
    } else {
        fl_writer_printf(w, "null");
    }
}

static void row_add_robust_clients(struct fl_writer *w, const char *text)
{
    struct fl_robust_client client;
    const char *comma = "";

    fl_writer_printf(w, ",\"robust_clients\":[");
    for (; fl_robust_clients_next(&text, &client); comma = ",") {
        fl_writer_printf(w, "%s{\"client\":\"%s\",\"used\":%.3g,\"score\":%.3g}", comma,
                         client.name, client.used, client.score);
    }
    fl_writer_printf(w, "]");
}

static void row_add_metrics(struct fl_writer *w, const char *text)
{
    char number[FL_JSON_EXACT];
    char key[FL_EVAL_METRIC_KEY];
    const char *comma = "";
    double value;

    fl_writer_printf(w, ",\"metrics\":{");
    for (; fl_eval_metrics_next_key(&text, key, &value); comma = ",") {
        fl_writer_printf(w, "%s\"%s\":%s", comma, key, fl_json_exact(value, number));
    }
    fl_writer_printf(w, "}");
}

int fl_row_json(struct fl_buf *out, const struct fl_row *row)
{
    struct fl_writer w = {.out = out};

    fl_writer_printf(&w, "{");
    row_add_members(&w, &fl_round_rows, &row->record);
    fl_writer_printf(&w, ",");
    row_add_members(&w, &fl_sim_round_rows, &row->sim);
    row_add_text_member(&w, "waiting_for", row->sim.waiting_for);
    row_add_robust_clients(&w, row->record.robust_clients);
    row_add_metrics(&w, row->record.metrics);
    fl_writer_printf(&w, "}\n");
    return w.code;
}

int fl_row_client_json(struct fl_buf *out, const struct fl_sim_client_round *client)
{
    struct fl_writer w = {.out = out};

    fl_writer_printf(&w, "{");
    row_add_members(&w, &fl_sim_client_rows, client);
    row_add_text_member(&w, "name", client->name);
    row_add_text_member(&w, "state", fl_sim_fate_text(client->fate));
    row_add_text_member(&w, "asked", client->asked);
    row_add_metrics(&w, client->metrics);
    fl_writer_printf(&w, "%s}\n", client->attacker ? ",\"attacker\":true" : "");
    return w.code;
}

void fl_csv_add(struct fl_writer *w, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fl_writer_printf(w, "%s", text);
        return;
    }
    fl_writer_printf(w, "\"");
    fl_writer_escape(w, text, '"', '"');
    fl_writer_printf(w, "\"");
}

int fl_row_csv(struct fl_buf *out, const struct fl_row *row)
{
    struct fl_writer w = {.out = out};
    size_t t;
    size_t i;

    for (t = 0; t < N_TABLES; t++) {
        for (i = 0; i < tables[t].figures->n; i++) {
            row_add_value(&w, tables[t].figures, &tables[t].figures->rows[i],
                          row_record(&tables[t], row), "");
            fl_writer_printf(&w, ",");
        }
    }
    fl_csv_add(&w, row->sim.waiting_for);
    fl_writer_printf(&w, ",");
    fl_csv_add(&w, row->record.robust_clients);
    fl_writer_printf(&w, ",");
    fl_csv_add(&w, row->record.metrics);
    fl_writer_printf(&w, "\n");
    return w.code;
}

int fl_row_csv_head(struct fl_buf *out)
{
    struct fl_writer w = {.out = out};
    size_t t;
    size_t i;

    for (t = 0; t < N_TABLES; t++) {
        for (i = 0; i < tables[t].figures->n; i++) {
            fl_writer_printf(&w, "%s,", fl_figure_key(&tables[t].figures->rows[i]));
        }
    }
    fl_writer_printf(&w, "waiting_for,robust_clients,metrics\n");
    return w.code;
}

int fl_row_read(const json_t *object, struct fl_row *ret)
{
    const char *name = json_string_value(json_object_get(object, "waiting_for"));
    struct fl_row row;

    fl_figures_init(&fl_round_rows, &row.record);
    fl_sim_round_init(&row.sim);
    fl_json_read_figures(object, &fl_round_rows, &row.record);
    fl_json_read_figures(object, &fl_sim_round_rows, &row.sim);
    fl_json_read_robust_clients(json_object_get(object, "robust_clients"),
                                row.record.robust_clients);
    fl_json_read_metrics(json_object_get(object, "metrics"), row.record.metrics);
    if (row.record.round == 0 ||
        (name != NULL && fl_str_copy(row.sim.waiting_for, sizeof(row.sim.waiting_for), name) != 0))
    {
        return FL_EFORMAT;
    }
    *ret = row;
    return FL_OK;
}
