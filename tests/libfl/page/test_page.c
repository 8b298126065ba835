/* Whole pages: complete, escaped, small, and with nothing that comes from elsewhere. */
#include <zlib.h>

#include "libfl/page/page_assets.h"
#include "tests/libfl/page/page_federation.h"

/* Well-formed, and every text that is not of this program is text. */
static void check_document(const char *text)
{
    page_check(text);
    ck_assert_uint_eq(page_count(text, "<script>"), 1);
    ck_assert_uint_eq(page_count(text, "alert('1')"), 0);
    ck_assert_ptr_null(strstr(text, "http://"));
    ck_assert_ptr_null(strstr(text, "https://"));
    ck_assert_ptr_null(strstr(text, " src="));
    ck_assert_ptr_nonnull(strstr(text, "<html lang=\"en\">"));
    ck_assert_uint_eq(page_count(text, "<h1>"), 1);
}

static size_t compressed(const struct fl_buf *page)
{
    uLongf len = compressBound(page->len);
    Bytef *out = malloc(len);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(compress(out, &len, page->data, page->len), Z_OK);
    free(out);
    return len;
}

static const struct {
    size_t rounds, clients;
} sizes[] = {{0, 0}, {1, 1}, {3, 2}, {ROUNDS, 30}};

TEST_EACH(an_overview_of_any_size_is_well_formed_and_escaped, ARRAY_LEN(sizes))
{
    struct federation *f = federation(sizes[_i].rounds, sizes[_i].clients);
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"why\""));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(an_overview_without_anything_optional_is_a_page)
{
    struct federation *f = federation(2, 2);
    struct fl_buf out;

    f->o.why = NULL;
    f->o.n_parts = 0;
    f->o.n_events = 0;
    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(an_overview_of_ten_thousand_clients_has_less_than_60_kb_compressed)
{
    struct federation *f = federation(ROUNDS, CLIENTS);
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_lt(compressed(&out), 60000);
    ck_assert_ptr_nonnull(strstr(page_text(&out), "25 of 10000 clients"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"c-grid\""));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"c-mixing\""));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"c-weights\""));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"c-spread\""));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"c-fraction\""));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(a_quarantined_client_and_disconnected_ones_come_first)
{
    struct federation *f = federation(1, 24);
    const char *text;
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_OK);
    text = strstr(page_text(&out), "<table id=\"clients\"");
    ck_assert_ptr_nonnull(text);
    ck_assert(strstr(text, "client-00005<") < strstr(text, "client-00000"));
    ck_assert(strstr(text, "client-00000") < strstr(text, "client-00001<"));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(what_does_not_fit_the_buffer_is_an_error)
{
    struct federation *f = federation(3, 3);
    struct fl_buf out;

    fl_buf_init(&out, 20000);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_ELIMIT);
    fl_buf_done(&out);
    federation_done(f);
}

TEST(the_policy_names_the_hashes_of_what_is_in_the_page)
{
    struct federation *f = federation(0, 0);
    char policy[FL_PAGE_POLICY];
    struct fl_buf out;

    fl_buf_init(&out, 1 << 20);
    ck_assert_int_eq(fl_page_write_overview(&f->o, &out), FL_OK);
    ck_assert_ptr_nonnull(strstr(fl_page_policy(policy), fl_page_css_hash));
    ck_assert_ptr_nonnull(strstr(policy, fl_page_js_hash));
    ck_assert_uint_eq(strlen(fl_page_js_hash), strlen("sha256-") + 44);
    ck_assert_ptr_nonnull(strstr(policy, "default-src 'none'"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), fl_page_js_hash));
    ck_assert_uint_le(fl_page_js_len, 10 * 1024);
    fl_buf_done(&out);
    federation_done(f);
}

TEST(a_report_has_its_points_and_at_most_twelve_of_them_in_detail)
{
    struct federation *f = federation(3, 4);
    const uint64_t rounds[] = {1, 2, 3};
    const double curve[] = {0.1, NAN, 0.3};
    struct fl_page_point points[20];
    struct fl_page_report report = {.name = evil,
                                    .sentence = evil,
                                    .quality = evil,
                                    .version = evil,
                                    .points = points,
                                    .n_points = ARRAY_LEN(points),
                                    .rounds = rounds,
                                    .n = 3};
    struct fl_buf out;
    size_t i;

    f->o.simulated = true;
    for (i = 0; i < ARRAY_LEN(points); i++) {
        points[i] = (struct fl_page_point){.label = evil,
                                           .end = evil,
                                           .accuracies = curve,
                                           .losses = curve,
                                           .accuracy = NAN,
                                           .view = i != 1 ? &f->o : NULL};
    }
    fl_buf_init(&out, 1 << 23);
    ck_assert_int_eq(fl_page_report(&report, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_eq(page_count(page_text(&out), "<h2 id=\"p"), FL_PAGE_REPORT_POINTS - 1);
    ck_assert_ptr_null(strstr(page_text(&out), "href=\"/")); /* A file has no other pages. */
    ck_assert_ptr_null(strstr(page_text(&out), "data-live"));
    fl_buf_clear(&out);
    report.n_points = report.n = 0;
    ck_assert_int_eq(fl_page_report(&report, &out), FL_OK);
    check_document(page_text(&out));
    fl_buf_done(&out);
    federation_done(f);
}

/* --- clients, a client, a round --- */

TEST(a_query_is_read_and_what_is_malformed_is_ignored)
{
    static const struct {
        const char *text, *filter;
        unsigned column;
        bool down;
        uint64_t page;
    } all[] = {{"", "", 0, false, 0},
               {"sort=lost&down=1&filter=a%20b%2B+c&page=2", "a b+ c", 7, true, 2},
               {"page=-1&sort=nothing&down=2", "", 0, false, 0},
               {"&&=&filter=%&filter=%4&x", "%4", 0, false, 0},
               {"filter=%00a", "a", 0, false, 0},
               {"page=99999999999999999999", "", 0, false, 0}};
    char longest[3000];
    struct fl_page_query q;
    size_t i;

    for (i = 0; i < ARRAY_LEN(all); i++) {
        page_query_read(all[i].text, &q);
        ck_assert_str_eq(q.filter, all[i].filter);
        ck_assert_uint_eq(q.column, all[i].column);
        ck_assert_int_eq(q.down, all[i].down);
        ck_assert_uint_eq(q.page, all[i].page);
    }
    (void)memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    (void)memcpy(longest, "filter=", 7);
    page_query_read(longest, &q);
    ck_assert_uint_eq(strlen(q.filter), sizeof(q.filter) - 1);
}

static const char *clients(struct fl_buf *out, const struct federation *f, const char *query)
{
    struct fl_page_query q;

    page_query_read(query, &q);
    fl_buf_init(out, 1 << 22);
    ck_assert_int_eq(fl_page_clients(&f->o, &q, out), FL_OK);
    check_document(page_text(out));
    return page_text(out);
}

TEST(the_clients_are_paged_sorted_and_filtered_without_a_script)
{
    struct federation *f = federation(1, CLIENTS);
    const char *text;
    struct fl_buf out;

    text = clients(&out, f, "");
    ck_assert_ptr_nonnull(strstr(text, "1 to 200 of 10000"));
    ck_assert_ptr_nonnull(strstr(text, "client-00199<"));
    ck_assert_ptr_null(strstr(text, "client-00200"));
    ck_assert_uint_lt(compressed(&out), 60000);
    fl_buf_done(&out);
    text = clients(&out, f, "page=49");
    ck_assert_ptr_nonnull(strstr(text, "9801 to 10000 of 10000"));
    ck_assert_ptr_null(strstr(text, "id=\"next\""));
    fl_buf_done(&out);
    text = clients(&out, f, "page=18446744073709551615");
    ck_assert_ptr_nonnull(strstr(text, " of 10000"));
    fl_buf_done(&out);
    text = clients(&out, f, "sort=samples&down=1");
    ck_assert(strstr(text, "client-09999<") < strstr(text, "client-09998<"));
    ck_assert_ptr_nonnull(strstr(text, "aria-sort=\"descending\"><a id=\"sort-samples\""));
    fl_buf_done(&out);
    text = clients(&out, f, "filter=CLIENT-0123");
    ck_assert_ptr_nonnull(strstr(text, "1 to 10 of 10<"));
    fl_buf_done(&out);
    text = clients(&out, f, "filter=%3Cscript%3E%22&page=3");
    ck_assert_ptr_nonnull(strstr(text, "value=\"&lt;script&gt;&quot;\""));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(no_clients_are_a_page_too)
{
    struct federation *f = federation(0, 0);
    struct fl_buf out;

    ck_assert_ptr_nonnull(strstr(clients(&out, f, "page=7&filter=x"), "No client matches"));
    fl_buf_done(&out);
    federation_done(f);
}

TEST_EACH(a_client_and_a_round_have_well_formed_pages, 4)
{
    static char robust[] = "a 0 12, b 0.5 3";
    struct federation *f = federation(3, 3);
    struct fl_buf out;

    f->clients[0].labels = &f->label;
    f->clients[0].n_labels = _i % 2 == 0;
    f->rounds[1].robust_clients = _i % 2 == 0 ? robust : none;
    f->rounds[1].n_changes = _i % 2 == 0;
    f->rounds[1].abandoned_by = _i % 2 == 0 ? evil : none;
    f->detail.n_parts = _i < 2 ? 3 : 0;
    f->detail.client = &f->clients[0];
    fl_buf_init(&out, 1 << 20);
    ck_assert_int_eq(fl_page_client(&f->detail, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_eq(page_count(page_text(&out), ">2 of 3"), _i < 2 ? 1 : 0);
    fl_buf_clear(&out);
    f->detail.client = NULL;
    f->detail.round = &f->rounds[1];
    ck_assert_int_eq(fl_page_round(&f->detail, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "9 of 10 selected clients were aggregated"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "href=\"/rounds/3\">Next"));
    fl_buf_done(&out);
    federation_done(f);
}

TEST(participations_have_columns_of_evaluations_where_a_client_made_some)
{
    struct federation *f = federation(3, 3);
    struct fl_buf out;
    size_t i;

    f->detail.client = &f->clients[0];
    fl_buf_init(&out, 1 << 20);
    ck_assert_int_eq(fl_page_client(&f->detail, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_eq(page_count(page_text(&out), "<td data-v=\"0.875\">87.5 %</td>"), 1);
    ck_assert_uint_eq(page_count(page_text(&out), "<td data-v=\"0.25\">loss 0.25</td>"), 1);
    ck_assert_uint_eq(page_count(page_text(&out), ">Own model</th>"), 1);
    ck_assert_uint_eq(page_count(page_text(&out), ">Metrics</th>"), 1);
    for (i = 0; i < 3; i++) {
        f->parts[i].received.accuracy = f->parts[i].personal.accuracy = FL_SHARE_UNKNOWN;
        f->parts[i].metrics = NULL;
    }
    fl_buf_clear(&out);
    ck_assert_int_eq(fl_page_client(&f->detail, &out), FL_OK);
    ck_assert_uint_eq(page_count(page_text(&out), ">Accuracy</th>"), 0);
    ck_assert_uint_eq(page_count(page_text(&out), ">Own model</th>"), 0);
    ck_assert_uint_eq(page_count(page_text(&out), ">Metrics</th>"), 0);
    fl_buf_done(&out);
    federation_done(f);
}

TEST(the_page_of_a_client_has_its_labels_and_what_operators_set)
{
    static char key[] = "site<b>";
    static char value[] = "berlin & rome";
    static char central[] = "labels site=<i>berlin</i>; hours 22:00-06:00 (in force)";
    static char ineligible[] = "its label 'site' is \"rome\"";
    struct fl_pair label = {key, value};
    struct federation *f = federation(3, 3);
    struct fl_buf out;

    f->clients[1].labels = &label;
    f->clients[1].n_labels = 1;
    f->clients[1].central = central;
    f->clients[1].ineligible = ineligible;
    f->detail.client = &f->clients[1];
    fl_buf_init(&out, 1 << 20);
    ck_assert_int_eq(fl_page_client(&f->detail, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "<p>site&lt;b&gt;: berlin &amp; rome</p>"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "<p>Set by operators: labels "
                                                  "site=&lt;i&gt;berlin&lt;/i&gt;; hours "
                                                  "22:00-06:00 (in force)</p>"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "<p>Not selected now: its label "));
    fl_buf_clear(&out);
    f->clients[1].central = none;
    f->clients[1].ineligible = none;
    ck_assert_int_eq(fl_page_client(&f->detail, &out), FL_OK);
    ck_assert_ptr_null(strstr(page_text(&out), "Set by operators"));
    ck_assert_ptr_null(strstr(page_text(&out), "Not selected now"));
    fl_buf_done(&out);
    federation_done(f);
}
