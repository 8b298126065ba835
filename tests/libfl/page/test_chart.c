/* Charts: what they draw of odd values, and that each has its table. */
#include "tests/libfl/page/page_fixture.h"

#define N 1000

static const char *lines(struct fl_buf *out, const uint64_t *x, const double *values, size_t n,
                         enum fl_chart_unit unit)
{
    const struct fl_chart_series series[] = {{"a " EVIL, values, false}, {"b", values, true}};
    const struct fl_chart chart = {.head = {"c", "Title " EVIL, NULL, "Caption.", unit},
                                   .x_label = "round",
                                   .x = x,
                                   .n = n,
                                   .series = series,
                                   .n_series = 2};
    struct fl_html html = {.w = {.out = out}};

    fl_buf_init(out, 1 << 20);
    fl_chart_lines(&html, &chart);
    ck_assert_int_eq(html.w.code, FL_OK);
    page_check(page_text(out));
    return page_text(out);
}

static const char *bars(struct fl_buf *out, const uint64_t *x, const double *values, size_t n)
{
    const struct fl_chart_series series[] = {{"a", values, false}, {"b " EVIL, values, false}};
    const struct fl_chart chart = {.head = {"c", "Title", NULL, "Caption.", FL_CHART_TIME},
                                   .x_label = "round",
                                   .x = x,
                                   .n = n,
                                   .series = series,
                                   .n_series = 2};
    struct fl_html html = {.w = {.out = out}};

    fl_buf_init(out, 1 << 20);
    fl_chart_bars(&html, &chart);
    ck_assert_int_eq(html.w.code, FL_OK);
    page_check(page_text(out));
    return page_text(out);
}

static const struct {
    size_t n;
    double values[4];
    bool drawn;
} odd[] = {{0, {0}, false},
           {1, {0.5}, true},
           {1, {0}, true},
           {1, {NAN}, false},
           {3, {NAN, 0.25, NAN}, true},
           {2, {INFINITY, -INFINITY}, false},
           {3, {1e308, -1e308, 3}, true},
           {2, {-1e299, 1e299}, true},
           {2, {7, 7}, true},
           {2, {5e-324, 0}, true},
           {3, {-1, -2, -3}, true}};

TEST_EACH(lines_of_odd_values_are_drawn_or_said_to_be_unknown, ARRAY_LEN(odd))
{
    const uint64_t x[] = {1, 2, 3, 4};
    enum fl_chart_unit unit;

    for (unit = FL_CHART_NUMBER; unit <= FL_CHART_TIME; unit++) {
        struct fl_buf out;
        const char *text = lines(&out, x, odd[_i].values, odd[_i].n, unit);

        ck_assert(odd[_i].drawn == (strstr(text, "<svg") != NULL));
        ck_assert(odd[_i].drawn != (strstr(text, "No values yet") != NULL));
        ck_assert(odd[_i].drawn == (strstr(text, "<table>") != NULL));
        ck_assert_ptr_null(strstr(text, "nan"));
        ck_assert_ptr_null(strstr(text, "inf\""));
        fl_buf_done(&out);
    }
}

TEST_EACH(bars_of_odd_values_are_drawn_or_said_to_be_unknown, ARRAY_LEN(odd))
{
    const uint64_t x[] = {1, 2, 3, 4};
    struct fl_buf out;
    const char *text = bars(&out, x, odd[_i].values, odd[_i].n);
    size_t i;
    bool some = false;

    for (i = 0; i < odd[_i].n; i++) { /* 0 and negative values have no bar. */
        some = some || (odd[_i].values[i] > 0 && odd[_i].values[i] <= 1e300);
    }
    ck_assert(some == (strstr(text, "<svg") != NULL));
    ck_assert_ptr_null(strstr(text, "nan"));
    fl_buf_done(&out);
}

TEST(a_thousand_rounds_are_thinned_and_the_caption_says_so)
{
    static double values[N];
    static uint64_t x[N];
    struct fl_buf out;
    const char *text;
    size_t i;

    for (i = 0; i < N; i++) {
        x[i] = i + 1;
        values[i] = i % 7 == 0 ? (double)NAN : 1.0 / (double)(i + 1);
    }
    text = lines(&out, x, values, N, FL_CHART_NUMBER);
    ck_assert_uint_eq(page_count(text, "<tr>"), FL_CHART_POINTS + 1);
    ck_assert_ptr_nonnull(strstr(text, "about 10 rounds"));
    ck_assert_ptr_nonnull(
        strstr(text, "<th scope=\"row\">1000</th>")); /* The last is one of them. */
    ck_assert_uint_lt(out.len, 24000);
    fl_buf_done(&out);
    text = bars(&out, x, values, N);
    ck_assert_uint_eq(page_count(text, "<tr>"), FL_CHART_BARS + 1);
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">1 to 20</th>"));
    fl_buf_done(&out);
}

TEST(equal_ends_of_lines_have_labels_apart)
{
    const double values[] = {1, 2};
    const uint64_t x[] = {1, 2};
    struct fl_chart_series series[FL_CHART_SERIES + 2];
    struct fl_chart chart = {.head = {"c", "T", NULL, "C.", FL_CHART_NUMBER},
                             .x_label = "round",
                             .x = x,
                             .n = 2,
                             .series = series,
                             .n_series = FL_CHART_SERIES + 2};
    struct fl_buf out;
    struct fl_html html = {.w = {.out = &out}};
    double last = 1e9;
    const char *p;
    size_t i;

    for (i = 0; i < ARRAY_LEN(series); i++) {
        series[i] = (struct fl_chart_series){.label = "label", .values = values};
    }
    fl_buf_init(&out, 1 << 20);
    fl_chart_lines(&html, &chart);
    for (p = page_text(&out), i = 0; (p = strstr(p, "\">label</text>")) != NULL; p++, i++) {
        const char *y = p;

        while (strncmp(y, " y=\"", 4) != 0) {
            y--;
        }
        ck_assert(fabs(strtod(y + 4, NULL) - last) >= 13.9);
        last = strtod(y + 4, NULL);
        ck_assert(last > 0);
    }
    ck_assert_uint_eq(i, FL_CHART_SERIES);
    ck_assert_ptr_nonnull(strstr(page_text(&out), "2 more are not drawn"));
    fl_buf_done(&out);
}

static const char *heat(struct fl_buf *out, size_t n_rows, size_t n_columns, double value)
{
    const char **names = calloc(n_rows + n_columns + 1, sizeof(*names));
    double *values = calloc(n_rows * n_columns + 1, sizeof(*values));
    struct fl_heat h = {.head = {"h", "Heat", NULL, "Caption.", FL_CHART_SHARE},
                        .row_head = "client",
                        .n_rows = n_rows,
                        .n_columns = n_columns};
    struct fl_html html = {.w = {.out = out}};
    size_t i;

    ck_assert(names != NULL && values != NULL);
    for (i = 0; i < n_rows + n_columns; i++) {
        names[i] = EVIL " with a very long name é";
    }
    for (i = 0; i < n_rows * n_columns; i++) {
        values[i] = i % 3 == 0 ? value : (double)i;
    }
    h.rows = h.columns = names;
    h.values = values;
    fl_buf_init(out, 1 << 22);
    fl_chart_heat(&html, &h);
    ck_assert_int_eq(html.w.code, FL_OK);
    free(names);
    free(values);
    page_check(page_text(out));
    return page_text(out);
}

static const struct {
    size_t rows, columns, cells;
} maps[] = {{0, 0, 0}, {0, 5, 0}, {5, 0, 0}, {1, 1, 1}, {8, 12, 96}, {500, 300, 1600}};

TEST_EACH(a_heat_map_of_any_size_has_as_many_cells_as_can_be_seen, ARRAY_LEN(maps))
{
    static const double values[] = {0, NAN, INFINITY, -1, 1e308};
    size_t i;

    for (i = 0; i < ARRAY_LEN(values); i++) {
        struct fl_buf out;
        const char *text = heat(&out, maps[_i].rows, maps[_i].columns, values[i]);
        bool known = maps[_i].cells > 1 || (maps[_i].cells == 1 && fabs(values[i]) <= 1e300);

        ck_assert_uint_eq(page_count(text, "<rect"), known ? maps[_i].cells : 0);
        ck_assert_ptr_null(strstr(text, "nan"));
        ck_assert((maps[_i].rows > FL_HEAT_ROWS) == (strstr(text, "40 of 500 rows") != NULL));
        fl_buf_done(&out);
    }
}

TEST(values_are_written_in_units_that_people_read)
{
    static const struct {
        enum fl_chart_unit unit;
        double value;
        const char *text;
    } all[] = {{FL_CHART_SHARE, 0.9123, "91.23 %"},  {FL_CHART_BYTES, 0, "0 B"},
               {FL_CHART_BYTES, 1536000, "1.54 MB"}, {FL_CHART_TIME, 3200000, "3.2 s"},
               {FL_CHART_TIME, 86400e6 * 3, "3 d"},  {FL_CHART_TIME, 400, "400 µs"},
               {FL_CHART_COUNT, 12345, "12345"},     {FL_CHART_NUMBER, 0.123456, "0.1235"},
               {FL_CHART_NUMBER, (double)NAN, "–"},  {FL_CHART_COUNT, INFINITY, "–"},
               {FL_CHART_BYTES, 1e299, "1e+287 TB"}};
    char text[FL_CHART_TEXT];
    size_t i;

    for (i = 0; i < ARRAY_LEN(all); i++) {
        ck_assert_str_eq(fl_chart_text(all[i].unit, all[i].value, text), all[i].text);
    }
}
