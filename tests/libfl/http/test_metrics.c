/* Metrics as text: both formats, escaping, numbers, histograms, the count of series. */

#include <math.h>
#include <string.h>

#include "libfl/http/metrics.h"
#include "tests/lib/suites.h"

static const char *const results[] = {"accepted", "rejected"};
static const char *const kinds[] = {"a\"b", "c\\d\n"};
static const char *const build[] = {"version", "federation"};
static const double bounds[FL_HISTOGRAM_BOUNDS] = {0.5, 1, 2, 3, 4, 5, 6, 7, 8};

struct sample_figures {
    uint64_t updates[2];
    uint64_t bytes[2][2];
    double loss;
    uint64_t at_ms, cpu_us;
    const char *info[2];
    struct fl_histogram times;
    uint64_t failing[2];
    struct {
        char text[16];
    } reasons[2];
};

static const struct fl_metric sample_rows[] = {
    {FL_METRIC(struct sample_figures, COUNTER, U64, updates), .name = "updates", .help = "Uploads",
     .label = "result", .words = results, .n = 2},
    {FL_METRIC(struct sample_figures, COUNTER, U64, bytes), .name = "wire_bytes",
     .help = "Back\\slash and \"quote\"", .label = "result", .words = results, .n = 2,
     .inner = "kind", .inner_words = kinds, .n_inner = 2},
    {FL_METRIC(struct sample_figures, GAUGE, F64, loss), .name = "loss", .help = "Loss"},
    {FL_METRIC(struct sample_figures, GAUGE, MS, at_ms), .name = "start_timestamp_seconds",
     .help = "Start"},
    {FL_METRIC(struct sample_figures, COUNTER, US, cpu_us), .name = "cpu_seconds", .help = "CPU"},
    {FL_METRIC(struct sample_figures, INFO, TEXT, info), .name = "build", .help = "Build",
     .words = build, .n = 2},
    {FL_METRIC(struct sample_figures, HISTOGRAM, BUCKETS, times), .name = "work_seconds",
     .help = "Work", .bounds = bounds},
    {FL_METRIC(struct sample_figures, GAUGE, U64, failing), .name = "failing", .help = "Failing",
     .label = "result", .words = results, .n = 2, .text = "reason",
     .text_offset = offsetof(struct sample_figures, reasons),
     .text_stride = sizeof(((struct sample_figures *)0)->reasons[0])},
    FL_METRIC_END};

static const struct sample_figures figures = {
    .updates = {3, 0},
    .bytes = {{1, 2}, {3, 18446744073709551615u}},
    .loss = 0.1,
    .at_ms = 1700000000050,
    .cpu_us = 1500000,
    .info = {"1.0", "x\"y\n"},
    .times = {.counts = {1, 0, 2, 0, 0, 0, 0, 0, 0, 1}, .sum = 13.25},
    .failing = {0, 1},
    .reasons = {{""}, {"no \"b\""}}};

static char text[8192];

static const char *written(enum fl_metrics_format format, const struct sample_figures *f)
{
    struct fl_buf buf;

    fl_buf_init(&buf, sizeof(text) - 1);
    ck_assert_int_eq(fl_metrics_add(&buf, format, sample_rows, f), FL_OK);
    ck_assert_int_eq(fl_metrics_end(&buf, format), FL_OK);
    memcpy(text, buf.data, buf.len);
    text[buf.len] = '\0';
    fl_buf_done(&buf);
    return text;
}

static void has(const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "expected \"%s\" in:\n%s", line, text);
}

TEST(the_classic_format_names_counters_with_total)
{
    (void)written(FL_METRICS_CLASSIC, &figures);
    has("# HELP fl_updates_total Uploads\n# TYPE fl_updates_total counter\n"
        "fl_updates_total{result=\"accepted\"} 3\nfl_updates_total{result=\"rejected\"} 0\n");
    has("# HELP fl_wire_bytes_total Back\\\\slash and \"quote\"\n");
    has("# TYPE fl_build_info gauge\nfl_build_info{version=\"1.0\",federation=\"x\\\"y\\n\"} 1\n");
    ck_assert_ptr_null(strstr(text, "# UNIT"));
    ck_assert_ptr_null(strstr(text, "# EOF"));
}

TEST(openmetrics_names_families_without_suffix_and_ends_with_eof)
{
    size_t n = strlen(written(FL_METRICS_OPEN, &figures));

    has("# HELP fl_updates Uploads\n# TYPE fl_updates counter\n"
        "fl_updates_total{result=\"accepted\"} 3\n");
    has("# HELP fl_wire_bytes Back\\\\slash and \\\"quote\\\"\n# TYPE fl_wire_bytes counter\n"
        "# UNIT fl_wire_bytes bytes\n");
    has("# TYPE fl_build info\nfl_build_info{");
    ck_assert_str_eq(text + n - 6, "# EOF\n");
}

TEST(two_labels_run_through_all_pairs_and_values_are_escaped)
{
    (void)written(FL_METRICS_CLASSIC, &figures);
    has("fl_wire_bytes_total{result=\"accepted\",kind=\"a\\\"b\"} 1\n"
        "fl_wire_bytes_total{result=\"accepted\",kind=\"c\\\\d\\n\"} 2\n"
        "fl_wire_bytes_total{result=\"rejected\",kind=\"a\\\"b\"} 3\n"
        "fl_wire_bytes_total{result=\"rejected\",kind=\"c\\\\d\\n\"} 18446744073709551615\n");
}

TEST(times_are_seconds_without_rounding)
{
    (void)written(FL_METRICS_CLASSIC, &figures);
    has("fl_start_timestamp_seconds 1700000000.05\n");
    has("fl_cpu_seconds_total 1.5\n");
    has("fl_loss 0.1\n");
}

TEST(unknown_and_infinite_numbers_have_the_names_of_prometheus)
{
    struct sample_figures odd = figures;

    odd.loss = NAN;
    (void)written(FL_METRICS_CLASSIC, &odd);
    has("fl_loss NaN\n");
    odd.loss = -INFINITY;
    (void)written(FL_METRICS_CLASSIC, &odd);
    has("fl_loss -Inf\n");
}

TEST(buckets_are_cumulative_and_end_with_inf)
{
    (void)written(FL_METRICS_CLASSIC, &figures);
    has("fl_work_seconds_bucket{le=\"0.5\"} 1\nfl_work_seconds_bucket{le=\"1.0\"} 1\n"
        "fl_work_seconds_bucket{le=\"2.0\"} 3\n");
    has("fl_work_seconds_bucket{le=\"8.0\"} 3\nfl_work_seconds_bucket{le=\"+Inf\"} 4\n"
        "fl_work_seconds_sum 13.25\nfl_work_seconds_count 4\n");
}

TEST(a_text_of_the_record_is_a_label_and_an_empty_one_is_left_out)
{
    (void)written(FL_METRICS_CLASSIC, &figures);
    has("fl_failing{result=\"accepted\"} 0\n"
        "fl_failing{result=\"rejected\",reason=\"no \\\"b\\\"\"} 1\n");
}

TEST(a_value_on_a_bound_counts_below_it)
{
    struct fl_histogram h = {.sum = 0};

    fl_histogram_add(&h, bounds, 1.0);
    fl_histogram_add(&h, bounds, 1.5);
    fl_histogram_add(&h, bounds, 100.0);
    ck_assert_uint_eq(h.counts[1], 1);
    ck_assert_uint_eq(h.counts[2], 1);
    ck_assert_uint_eq(h.counts[FL_HISTOGRAM_BOUNDS], 1);
    ck_assert_double_eq(h.sum, 102.5);
}

TEST(the_number_of_series_is_that_of_the_lines)
{
    const char *at;
    size_t n = 0;

    for (at = written(FL_METRICS_CLASSIC, &figures); *at != '\0'; at = strchr(at, '\n') + 1) {
        n += *at != '#';
    }
    ck_assert_uint_eq(fl_metrics_series(sample_rows), n);
}

TEST(openmetrics_is_written_only_when_it_is_asked_for)
{
    ck_assert_int_eq(fl_metrics_format_of(NULL), FL_METRICS_CLASSIC);
    ck_assert_int_eq(fl_metrics_format_of("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
                     FL_METRICS_CLASSIC);
    ck_assert_int_eq(
        fl_metrics_format_of("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
        FL_METRICS_OPEN);
    ck_assert_int_eq(fl_metrics_format_of("application/openmetrics-text;q=0,text/plain"),
                     FL_METRICS_CLASSIC);
    ck_assert_int_eq(fl_metrics_format_of("application/openmetrics-text;q=0.5"), FL_METRICS_OPEN);
}

TEST(a_text_beyond_the_limit_is_an_error)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(fl_metrics_add(&buf, FL_METRICS_CLASSIC, sample_rows, &figures), FL_ELIMIT);
    fl_buf_done(&buf);
}

TEST(the_reference_has_a_line_for_each_row)
{
    struct fl_buf buf;

    fl_buf_init(&buf, sizeof(text) - 1);
    ck_assert_int_eq(fl_metrics_reference(&buf, sample_rows), FL_OK);
    memcpy(text, buf.data, buf.len);
    text[buf.len] = '\0';
    fl_buf_done(&buf);
    has("| `fl_updates_total` | counter | `result`: accepted, rejected | Uploads |\n");
    has("| `fl_build_info` | info | `version`, `federation` | Build |\n");
}
