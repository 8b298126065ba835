#ifndef FL_HTTP_METRICS_H
#define FL_HTTP_METRICS_H

/*
 * Metrics as text for Prometheus: a table of rows that bind fields of a struct, from which the text
 * in both formats and the reference (docs/http.md) follow.
 *
 *     struct figures { uint64_t accepted[2]; double loss; };
 *
 *     static const struct fl_metric rows[] = {
 *         {FL_METRIC(struct figures, COUNTER, U64, accepted), .name = "updates", .help = "…",
 *          .label = "result", .words = results, .n = 2},
 *         {FL_METRIC(struct figures, GAUGE, F64, loss), .name = "loss", .help = "…"},
 *         FL_METRIC_END};
 *
 * Every row is written in every scrape, so that a series exists from the start. Names have one
 * prefix and base units (seconds, bytes); a point in time is a timestamp, never an age, 0: never.
 *
 * Pure: no clock, no I/O.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"

/* Begins the name of every metric. */
#define FL_METRICS_PREFIX "fl_"
/* Bounds of a histogram; the tenth bucket is +Inf. */
#define FL_HISTOGRAM_BOUNDS 9

struct fl_histogram {
    uint64_t counts[FL_HISTOGRAM_BOUNDS + 1]; /* values up to each bound and above the one before */
    double sum;
};

enum fl_metric_type { FL_METRIC_GAUGE, FL_METRIC_COUNTER, FL_METRIC_INFO, FL_METRIC_HISTOGRAM };

enum fl_metric_value {
    FL_METRIC_U64,
    FL_METRIC_F64,    /* NAN: not known */
    FL_METRIC_MS,     /* uint64_t, written in seconds */
    FL_METRIC_US,     /* likewise, of microseconds */
    FL_METRIC_TEXT,   /* const char *, for INFO: the values of the labels, 1 is the value */
    FL_METRIC_BUCKETS /* struct fl_histogram */
};

struct fl_metric {
    const char *name; /* without prefix and without _total, _info; with its unit at the end */
    enum fl_metric_type type;
    enum fl_metric_value value;
    size_t offset;
    const char *help; /* one sentence without full stop */
    /*
     * Labels: the field is an array [n], or [n][n_inner] with two. INFO: `words` are the names of
     * the labels, the field their values [n].
     */
    const char *label, *inner;
    const char *const *words, *const *inner_words;
    size_t n, n_inner;
    /*
     * A further label whose values are texts of the record, the first at `text_offset`, one each
     * `text_stride` bytes; an empty one is left out. NULL: none. Its values must be few: each is a
     * series of its own in the data base of Prometheus.
     */
    const char *text;
    size_t text_offset, text_stride;
    const double *bounds; /* [FL_HISTOGRAM_BOUNDS], growing */
};

#define FL_METRIC_END \
    {                 \
        .name = NULL  \
    }
/* Type, value and field of a row; a field of a type of another size does not compile. */
/* clang-format off */
#define FL_METRIC(S, TYPE, VALUE, field) \
    .type = FL_METRIC_##TYPE, .value = FL_METRIC_##VALUE, .offset = offsetof(S, field) + \
    0 * sizeof(struct { _Static_assert(sizeof(((S *)0)->field) % sizeof(FL__METRIC_##VALUE) == 0, \
                                       "another type than " #VALUE); char unused; })
/* clang-format on */
#define FL__METRIC_U64     uint64_t
#define FL__METRIC_F64     double
#define FL__METRIC_MS      uint64_t
#define FL__METRIC_US      uint64_t
#define FL__METRIC_TEXT    const char *
#define FL__METRIC_BUCKETS struct fl_histogram

enum fl_metrics_format { FL_METRICS_CLASSIC, FL_METRICS_OPEN };

/* Content types of the two. */
extern const char *const fl_metrics_types[];

/* The format for an Accept header, or NULL: OpenMetrics when it is asked for, else classic. */
enum fl_metrics_format fl_metrics_format_of(const char *accept);

/* Count `value` in a histogram of these bounds. */
void fl_histogram_add(struct fl_histogram *h, const double bounds[FL_HISTOGRAM_BOUNDS],
                      double value);

/* Append the metrics of `rows` with the values of `record`. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                                 const struct fl_metric *rows, const void *record);
/* What ends the text. */
FL_MUST_CHECK int fl_metrics_end(struct fl_buf *out, enum fl_metrics_format format);
/* The number of series of the rows: lines of the text that are no comments. */
size_t fl_metrics_series(const struct fl_metric *rows);
/* Append a table of the rows (Markdown); the second: further rows of it. */
FL_MUST_CHECK int fl_metrics_reference(struct fl_buf *out, const struct fl_metric *rows);
FL_MUST_CHECK int fl_metrics_rows(struct fl_buf *out, const struct fl_metric *rows);

#endif
