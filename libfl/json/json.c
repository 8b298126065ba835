#include "libfl/json/json.h"

#include <math.h>

#include "libfl/figures/share.h"

json_t *fl_json_whole(uint64_t value)
{
    return json_integer((json_int_t)value);
}

json_t *fl_json_real(double value, bool known)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

void fl_json_figures(json_t *object, const struct fl_figures *figures, const void *record,
                     bool totals)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];
        bool known = fl_figure_known(figures, f, record);

        if (totals && !f->totals) {
            continue;
        }
        if (f->type == FL_FIGURE_F64) {
            (void)json_object_set_new(object, fl_figure_key(f),
                                      fl_json_real(fl_figure_real(f, record), known));
        } else {
            (void)json_object_set_new(object, fl_figure_key(f),
                                      f->unit == FL_UNIT_INSTANT && !known
                                          ? json_null()
                                          : fl_json_whole(fl_figure_whole(f, record)));
        }
    }
}

/* A number beside a share that is null: nothing is a share there (libfl/figures/share.h). */
static void json_read_lead(const struct fl_figures *figures, const struct fl_figure *f,
                           void *record)
{
    const struct fl_figure *lead = &figures->rows[f->lead];

    if (f->lead != 0 && f->unit != FL_UNIT_SHARE && lead->unit == FL_UNIT_SHARE &&
        fl_figure_real(lead, record) < 0.0)
    {
        fl_figure_put_real(lead, record, FL_SHARE_NONE);
    }
}

void fl_json_read_figures(const json_t *object, const struct fl_figures *figures, void *record)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];
        const json_t *value = json_object_get(object, fl_figure_key(f));

        if (f->type == FL_FIGURE_F64) {
            if (json_is_number(value)) {
                fl_figure_put_real(f, record, json_number_value(value));
                json_read_lead(figures, f, record);
            } else if (json_is_null(value) && f->lead == 0) {
                fl_figure_put_real(f, record, (double)NAN);
            }
        } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
            fl_figure_put_whole(f, record, (uint64_t)json_integer_value(value));
        }
    }
}

#define JSON_DOCUMENT (JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(10))

static int json_add_bytes(const char *data, size_t len, void *out)
{
    return fl_buf_add(out, data, len) == FL_OK ? 0 : -1;
}

int fl_json_add_document(struct fl_buf *out, json_t *value)
{
    int rv = value == NULL || json_dump_callback(value, json_add_bytes, out, JSON_DOCUMENT) != 0
                 ? FL_ENOMEM
                 : FL_OK;

    json_decref(value);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(out, "\n", 1);
}

void fl_json_print(json_t *value, FILE *out)
{
    (void)json_dumpf(value, out, JSON_DOCUMENT);
    (void)fputc('\n', out);
    json_decref(value);
}

void fl_json_print_line(json_t *value, FILE *out)
{
    (void)json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(10));
    (void)fputc('\n', out);
    json_decref(value);
}

json_t *fl_json_metrics(const char *text)
{
    json_t *o = json_object();
    char key[FL_EVAL_METRIC_KEY];
    double value;

    while (fl_eval_metrics_next_key(&text, key, &value)) {
        (void)json_object_set_new(o, key, json_real(value));
    }
    return o;
}

void fl_json_read_metrics(const json_t *object, char text[FL_EVAL_METRICS_TEXT])
{
    json_t *o = json_copy((json_t *)(uintptr_t)object);
    const char *key;
    json_t *value;

    text[0] = '\0';
    json_object_foreach(o, key, value)
    {
        if (json_is_number(value)) {
            (void)fl_eval_metrics_add_key(text, key, json_number_value(value));
        }
    }
    json_decref(o);
}

json_t *fl_json_robust_clients(const char *text)
{
    json_t *list = json_array();
    struct fl_robust_client client;

    while (fl_robust_clients_next(&text, &client)) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "client", json_string(client.name));
        (void)json_object_set_new(o, "used", json_real(client.used));
        (void)json_object_set_new(o, "score", json_real(client.score));
        (void)json_array_append_new(list, o);
    }
    return list;
}

void fl_json_read_robust_clients(const json_t *list, char text[FL_ROBUST_CLIENTS_TEXT])
{
    size_t i;

    text[0] = '\0';
    for (i = 0; i < json_array_size(list) && i < FL_ROBUST_CLIENTS; i++) {
        const json_t *o = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(o, "client"));

        if (name != NULL && fl_name_valid(name) &&
            !fl_robust_clients_add(text, name, json_number_value(json_object_get(o, "used")),
                                   json_number_value(json_object_get(o, "score"))))
        {
            return;
        }
    }
}
