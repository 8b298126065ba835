/*
 * Writes metrics as text: the classic format of Prometheus, and OpenMetrics 1.0, which differ in
 * the names of TYPE lines, in UNIT lines and in the end. Pure.
 */

#include "libfl/http/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

const char *const fl_metrics_types[] = {
    [FL_METRICS_CLASSIC] = "text/plain; version=0.0.4; charset=utf-8",
    [FL_METRICS_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8"};

enum fl_metrics_format fl_metrics_format_of(const char *accept)
{
    const char *open = accept != NULL ? strstr(accept, "application/openmetrics-text") : NULL;
    const char *end;

    if (open == NULL) {
        return FL_METRICS_CLASSIC;
    }
    end = strchr(open, ',');
    open = strstr(open, "q=0"); /* q=0 refuses it; q=0.5 does not. */
    return open != NULL && (end == NULL || open < end) && open[3] != '.' ? FL_METRICS_CLASSIC
                                                                         : FL_METRICS_OPEN;
}

void fl_histogram_add(struct fl_histogram *h, const double bounds[FL_HISTOGRAM_BOUNDS],
                      double value)
{
    size_t i = 0;

    while (i < FL_HISTOGRAM_BOUNDS && value > bounds[i]) {
        i++;
    }
    h->counts[i]++;
    h->sum += value;
}

/* Longest number, with its NUL. */
#define METRIC_NUMBER 32

static const char *number_text(double value, char out[METRIC_NUMBER])
{
    int digits;

    if (isnan(value)) {
        return "NaN";
    }
    if (isinf(value)) {
        return value > 0 ? "+Inf" : "-Inf";
    }
    for (digits = 6; digits <= 17; digits++) {
        double back = 0;

        (void)snprintf(out, METRIC_NUMBER, "%.*g", digits, value);
        if (fl_str_to_double(out, &back) == FL_OK && back == value) {
            break;
        }
    }
    return out;
}

/* A whole number divided by a power of ten up to 10^6, without rounding: 1500 of 1000 is "1.5". */
static const char *scaled_text(uint64_t value, uint64_t scale, char out[METRIC_NUMBER])
{
    uint64_t rest = value % scale * (1000000 / scale);
    size_t n;

    if (rest == 0) {
        (void)snprintf(out, METRIC_NUMBER, "%llu", (unsigned long long)(value / scale));
        return out;
    }
    (void)snprintf(out, METRIC_NUMBER, "%llu.%06llu", (unsigned long long)(value / scale),
                   (unsigned long long)rest);
    for (n = strlen(out); out[n - 1] == '0'; n--) {
        out[n - 1] = '\0';
    }
    return out;
}

static const char *metric_suffix(const struct fl_metric *m)
{
    return m->type == FL_METRIC_COUNTER ? "_total" : m->type == FL_METRIC_INFO ? "_info" : "";
}

/* "seconds" or "bytes", when the name ends with it. */
static const char *metric_unit(const struct fl_metric *m)
{
    return fl_str_ends_with(m->name, "_seconds") ? "seconds"
           : fl_str_ends_with(m->name, "_bytes") ? "bytes"
                                                 : "";
}

static int add_escaped(struct fl_buf *out, const char *text, bool label)
{
    int rv = FL_OK;

    for (; *text != '\0' && rv == FL_OK; text++) {
        const char *plain = *text == '\\'           ? "\\\\"
                            : *text == '\n'         ? "\\n"
                            : *text == '"' && label ? "\\\""
                                                    : NULL;

        rv = plain != NULL ? fl_buf_add(out, plain, 2) : fl_buf_add(out, text, 1);
    }
    return rv;
}

static int metric_head(struct fl_buf *out, enum fl_metrics_format format, const struct fl_metric *m)
{
    static const char *const classic[] = {"gauge", "counter", "gauge", "histogram"};
    static const char *const open[] = {"gauge", "counter", "info", "histogram"};
    bool is_open = format == FL_METRICS_OPEN;
    const char *suffix = is_open ? "" : metric_suffix(m);
    const char *type = is_open ? open[m->type] : classic[m->type];
    int rv = fl_buf_printf(out, "# HELP " FL_METRICS_PREFIX "%s%s ", m->name, suffix);

    if (rv != FL_OK) {
        return rv;
    }
    rv = add_escaped(out, m->help, is_open);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_printf(out, "\n# TYPE " FL_METRICS_PREFIX "%s%s %s\n", m->name, suffix, type);
    if (rv != FL_OK || !is_open || metric_unit(m)[0] == '\0') {
        return rv;
    }
    return fl_buf_printf(out, "# UNIT " FL_METRICS_PREFIX "%s %s\n", m->name, metric_unit(m));
}

/* Place of a sample: its labels; `le`: of a bucket, or NULL. */
struct sample {
    const struct fl_metric *m;
    size_t i, j;
    const char *text; /* of the label m->text; NULL: none */
};

static int add_label(struct fl_buf *out, bool *first, const char *name, const char *value)
{
    int rv = fl_buf_printf(out, "%s%s=\"", *first ? "{" : ",", name);

    if (rv != FL_OK) {
        return rv;
    }
    *first = false;
    rv = add_escaped(out, value, true);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(out, "\"", 1);
}

static int add_sample(struct fl_buf *out, const struct sample *s, const char *suffix,
                      const char *le, const char *value)
{
    const struct fl_metric *m = s->m;
    bool first = true;
    int rv = fl_buf_printf(out, FL_METRICS_PREFIX "%s%s", m->name, suffix);

    if (rv != FL_OK) {
        return rv;
    }
    if (m->label != NULL) {
        rv = add_label(out, &first, m->label, m->words[s->i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (m->inner != NULL) {
        rv = add_label(out, &first, m->inner, m->inner_words[s->j]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (s->text != NULL && s->text[0] != '\0') {
        rv = add_label(out, &first, m->text, s->text);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (le != NULL) {
        rv = add_label(out, &first, "le", le);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_printf(out, "%s %s\n", first ? "" : "}", value);
}

/* OpenMetrics wants whole bounds with a decimal point. */
static const char *bound_text(double bound, char out[METRIC_NUMBER])
{
    (void)number_text(bound, out);
    if (strpbrk(out, ".e") == NULL) {
        size_t n = strlen(out);

        (void)snprintf(out + n, METRIC_NUMBER - n, ".0");
    }
    return out;
}

static int add_histogram(struct fl_buf *out, const struct sample *s, const struct fl_histogram *h)
{
    char bound[METRIC_NUMBER];
    char text[METRIC_NUMBER];
    uint64_t count = 0;
    size_t i;
    int rv;

    for (i = 0; i <= FL_HISTOGRAM_BOUNDS; i++) {
        count += h->counts[i];
        rv = add_sample(out, s, "_bucket",
                        i < FL_HISTOGRAM_BOUNDS ? bound_text(s->m->bounds[i], bound) : "+Inf",
                        scaled_text(count, 1, text));
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = add_sample(out, s, "_sum", NULL, number_text(h->sum, text));
    if (rv != FL_OK) {
        return rv;
    }
    return add_sample(out, s, "_count", NULL, scaled_text(count, 1, text));
}

static size_t metric_size(enum fl_metric_value value)
{
    return value == FL_METRIC_BUCKETS ? sizeof(struct fl_histogram) : sizeof(uint64_t);
}

static int add_value(struct fl_buf *out, const struct sample *s, const void *at)
{
    const char *suffix = metric_suffix(s->m);
    char text[METRIC_NUMBER];
    uint64_t whole = 0;
    double real = 0;

    switch (s->m->value) {
    case FL_METRIC_BUCKETS:
        return add_histogram(out, s, at);
    case FL_METRIC_F64:
        memcpy(&real, at, sizeof(real));
        return add_sample(out, s, suffix, NULL, number_text(real, text));
    case FL_METRIC_U64:
    case FL_METRIC_MS:
    case FL_METRIC_US:
    case FL_METRIC_TEXT:
        break;
    }
    memcpy(&whole, at, sizeof(whole));
    return add_sample(out, s, suffix, NULL,
                      scaled_text(whole,
                                  s->m->value == FL_METRIC_MS   ? 1000
                                  : s->m->value == FL_METRIC_US ? 1000000
                                                                : 1,
                                  text));
}

/* Of INFO: one sample, whose labels have the values. */
static int add_info(struct fl_buf *out, const struct fl_metric *m, const char *const *values)
{
    bool first = true;
    size_t i;
    int rv = fl_buf_printf(out, FL_METRICS_PREFIX "%s_info", m->name);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < m->n; i++) {
        rv = add_label(out, &first, m->words[i], values[i] != NULL ? values[i] : "");
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_printf(out, "} 1\n");
}

static int metric_add(struct fl_buf *out, enum fl_metrics_format format, const struct fl_metric *m,
                      const void *record)
{
    const uint8_t *at = (const uint8_t *)record + m->offset;
    struct sample s = {.m = m};
    int rv = metric_head(out, format, m);

    if (rv != FL_OK) {
        return rv;
    }
    if (m->type == FL_METRIC_INFO) {
        return add_info(out, m, (const char *const *)(const void *)at);
    }
    for (s.i = 0; s.i < (m->n > 0 ? m->n : 1); s.i++) {
        s.text =
            m->text != NULL ? (const char *)record + m->text_offset + s.i * m->text_stride : NULL;
        for (s.j = 0; s.j < (m->n_inner > 0 ? m->n_inner : 1); s.j++) {
            rv = add_value(out, &s, at);
            if (rv != FL_OK) {
                return rv;
            }
            at += metric_size(m->value);
        }
    }
    return FL_OK;
}

int fl_metrics_add(struct fl_buf *out, enum fl_metrics_format format, const struct fl_metric *rows,
                   const void *record)
{
    int rv;

    for (; rows->name != NULL; rows++) {
        rv = metric_add(out, format, rows, record);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_metrics_end(struct fl_buf *out, enum fl_metrics_format format)
{
    return format == FL_METRICS_OPEN ? fl_buf_printf(out, "# EOF\n") : FL_OK;
}

size_t fl_metrics_series(const struct fl_metric *rows)
{
    size_t n = 0;

    for (; rows->name != NULL; rows++) {
        size_t one = rows->type == FL_METRIC_HISTOGRAM ? FL_HISTOGRAM_BOUNDS + 3 : 1;
        size_t places = rows->type == FL_METRIC_INFO || rows->n == 0 ? 1 : rows->n;

        n += one * places * (rows->n_inner > 0 ? rows->n_inner : 1);
    }
    return n;
}

static int reference_labels(struct fl_buf *out, const struct fl_metric *m)
{
    size_t i;
    int rv;

    if (m->type == FL_METRIC_INFO) {
        for (i = 0; i < m->n; i++) {
            rv = fl_buf_printf(out, "%s`%s`", i > 0 ? ", " : "", m->words[i]);
            if (rv != FL_OK) {
                return rv;
            }
        }
        return FL_OK;
    }
    for (i = 0; i < m->n; i++) {
        rv = i == 0 ? fl_buf_printf(out, "`%s`: %s", m->label, m->words[i])
                    : fl_buf_printf(out, ", %s", m->words[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < m->n_inner; i++) {
        rv = i == 0 ? fl_buf_printf(out, "; `%s`: %s", m->inner, m->inner_words[i])
                    : fl_buf_printf(out, ", %s", m->inner_words[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return m->text != NULL ? fl_buf_printf(out, "; `%s`", m->text) : FL_OK;
}

int fl_metrics_reference(struct fl_buf *out, const struct fl_metric *rows)
{
    int rv =
        fl_buf_printf(out, "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");

    if (rv != FL_OK) {
        return rv;
    }
    return fl_metrics_rows(out, rows);
}

int fl_metrics_rows(struct fl_buf *out, const struct fl_metric *rows)
{
    static const char *const types[] = {"gauge", "counter", "info", "histogram"};
    int rv = FL_OK;

    for (; rows->name != NULL && rv == FL_OK; rows++) {
        rv = fl_buf_printf(out, "| `" FL_METRICS_PREFIX "%s%s` | %s | ", rows->name,
                           metric_suffix(rows), types[rows->type]);
        if (rv != FL_OK) {
            return rv;
        }
        rv = reference_labels(out, rows);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_buf_printf(out, " | %s |\n", rows->help);
    }
    return rv;
}
