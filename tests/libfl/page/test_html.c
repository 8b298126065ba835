/* Texts are escaped by the only function that writes them. */
#include "libfl/page/html.h"

#include "tests/libfl/page/page_fixture.h"

TEST(a_text_cannot_leave_its_element_or_its_attribute)
{
    struct fl_buf out;
    struct fl_html html = {.w = {.out = &out}};

    fl_buf_init(&out, 4096);
    fl_html(&html, "<p title=\"%s\">%s</p>", EVIL, EVIL);
    ck_assert_int_eq(html.w.code, FL_OK);
    ck_assert_str_eq(page_text(&out),
                     "<p title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"
                     "\xef\xbf\xbd\xef\xbf\xbd&lt;b x=&quot;\">"
                     "&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"
                     "\xef\xbf\xbd\xef\xbf\xbd&lt;b x=&quot;</p>");
    fl_buf_done(&out);
}

TEST(other_languages_stay_and_numbers_are_written)
{
    struct fl_buf out;
    struct fl_html html = {.w = {.out = &out}};

    fl_buf_init(&out, 4096);
    fl_html(&html, "%s %d %u %zu %llu %.1f %.1f %% x", "Zürich 東京", -1, 2U, (size_t)3, 4ULL, 5.25,
            (double)NAN);
    ck_assert_str_eq(page_text(&out), "Zürich 東京 -1 2 3 4 5.2 0.0 % x");
    fl_buf_done(&out);
}

TEST(a_name_is_one_segment_of_a_path)
{
    char path[FL_HTML_PATH];
    char longest[1000];

    ck_assert_str_eq(fl_html_path("edge-1.x_~", path), "edge-1.x_~");
    ck_assert_str_eq(fl_html_path("../a?b#c\"<é", path), "..%2Fa%3Fb%23c%22%3C%C3%A9");
    (void)memset(longest, '<', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    ck_assert_uint_lt(strlen(fl_html_path(longest, path)), FL_HTML_PATH);
}

TEST(a_full_buffer_is_an_error_at_the_end)
{
    struct fl_buf out;
    struct fl_html html = {.w = {.out = &out}};

    fl_buf_init(&out, 8);
    fl_html(&html, "<p>%s</p>", "more than eight bytes");
    fl_html(&html, "<p>");
    ck_assert_int_eq(html.w.code, FL_ELIMIT);
    fl_buf_done(&out);
}
