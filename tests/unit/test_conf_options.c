#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/options.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct fl_opt_spec specs[] = {
    {.name = "flag", .type = FL_OPT_BOOL, .def = "yes", .help = "A flag."},
    {.name = "count", .type = FL_OPT_INT, .def = "7", .min = 1, .max = 100, .help = "A count."},
    {.name = "share", .type = FL_OPT_FLOAT, .def = "0.5", .min = 0, .max = 1, .help = "A share."},
    {.name = "size",
     .type = FL_OPT_BYTES,
     .def = "64K",
     .min = 1024,
     .max = 1073741824.0,
     .help = "A size."},
    {.name = "wait",
     .type = FL_OPT_DURATION,
     .def = "10s",
     .min = 100,
     .max = 7200000,
     .help = "A span."},
    {.name = "title", .type = FL_OPT_STRING, .help = "A text."},
    {.name = "colour", .type = FL_OPT_ENUM, .def = "red", .choices = colours, .help = "A colour."},
    {.name = "names", .type = FL_OPT_STRING_LIST, .def = "a,b", .help = "Names."},
    {.name = "layers", .type = FL_OPT_INT_LIST, .min = 1, .max = 4096, .help = "Sizes."},
    {.name = "labels", .type = FL_OPT_MAP, .help = "Labels."},
    {.name = "token", .type = FL_OPT_STRING, .flags = FL_OPT_SECRET, .help = "A secret."},
    {.name = "odd",
     .type = FL_OPT_FLOAT,
     .min = 1,
     .max = (double)INFINITY,
     .help = "No upper end."},
    FL_OPT_END,
};

static struct fl_options *fresh(void)
{
    struct fl_options *o = NULL;

    ck_assert_int_eq(fl_options_create(specs, &o), FL_OK);
    return o;
}

START_TEST(defaults_of_the_table_are_the_first_values)
{
    struct fl_options *o = fresh();

    ck_assert(fl_options_bool(o, "flag"));
    ck_assert_int_eq(fl_options_int(o, "count"), 7);
    ck_assert_double_eq(fl_options_float(o, "share"), 0.5);
    ck_assert_uint_eq(fl_options_bytes(o, "size"), 65536);
    ck_assert_uint_eq(fl_options_ms(o, "wait"), 10000);
    ck_assert_str_eq(fl_options_str(o, "title"), "");
    ck_assert_str_eq(fl_options_str(o, "colour"), "red");
    ck_assert_uint_eq(fl_options_count(o, "names"), 2);
    ck_assert_str_eq(fl_options_item(o, "names", 1), "b");
    ck_assert_uint_eq(fl_options_count(o, "layers"), 0);
    ck_assert(!fl_options_is_set(o, "flag"));
    ck_assert_ptr_eq(fl_options_specs(o), specs);
    fl_options_free(o);
}
END_TEST

static const struct {
    const char *name, *text, *back;
} good[] = {
    {"flag", "no", "no"},
    {"flag", "True", "yes"},
    {"flag", "off", "no"},
    {"count", "100", "100"},
    {"share", "1e-3", "0.001"},
    {"share", "0.1", "0.1"},
    {"share", "0.12345678901234568", "0.12345678901234568"},
    {"size", "8M", "8M"},
    {"size", "1G", "1G"},
    {"size", "2048", "2K"},
    {"size", "2049", "2049"},
    {"wait", "500ms", "500ms"},
    {"wait", "1500ms", "1500ms"},
    {"wait", "5m", "5m"},
    {"wait", "2h", "2h"},
    {"wait", "60s", "1m"},
    {"title", "x, y: z", "x, y: z"},
    {"colour", "blue", "blue"},
    {"names", "x, y ,z", "x,y,z"},
    {"names", "", ""},
    {"layers", "200,200,10", "200,200,10"},
    {"labels", "site=lab,rack=7", "site=lab,rack=7"},
    {"token", "hunter2", "(not shown)"},
};

START_TEST(text_goes_in_and_comes_out_again)
{
    struct fl_options *o = fresh();
    struct fl_err err = {0};
    char back[64];

    ck_assert_msg(fl_options_set(o, good[_i].name, good[_i].text, &err) == FL_OK, "%s", err.msg);
    ck_assert(fl_options_is_set(o, good[_i].name));
    ck_assert_str_eq(fl_options_text(o, good[_i].name, back, sizeof(back)), good[_i].back);
    fl_options_free(o);
}
END_TEST

static const struct {
    const char *name, *text, *message;
} bad[] = {
    {"flag", "maybe", "option 'flag': expected yes or no, found 'maybe'"},
    {"count", "0", "option 'count': expected a whole number, 1 to 100, found '0'"},
    {"count", "101", "option 'count': expected a whole number, 1 to 100, found '101'"},
    {"count", "3.5", "option 'count': expected a whole number, 1 to 100, found '3.5'"},
    {"count", "", "option 'count': expected a whole number, 1 to 100, found ''"},
    {"count", "99999999999999999999",
     "option 'count': expected a whole number, 1 to 100, found '99999999999999999999'"},
    {"share", "1.5", "option 'share': expected a number, 0 to 1, found '1.5'"},
    {"share", "nan", "option 'share': expected a number, 0 to 1, found 'nan'"},
    {"share", "0x1", "option 'share': expected a number, 0 to 1, found '0x1'"},
    {"odd", "0.5", "option 'odd': expected a number, at least 1, found '0.5'"},
    {"size", "1K2", "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '1K2'"},
    {"size", "2G", "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '2G'"},
    {"size", "17179869184G",
     "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '17179869184G'"},
    {"wait", "10",
     "option 'wait': expected a duration such as 10s, 100ms to 2h, found '10': add a unit (ms, s, "
     "m or h)"},
    {"wait", "abc", "option 'wait': expected a duration such as 10s, 100ms to 2h, found 'abc'"},
    {"wait", "3h", "option 'wait': expected a duration such as 10s, 100ms to 2h, found '3h'"},
    {"wait", "-1s", "option 'wait': expected a duration such as 10s, 100ms to 2h, found '-1s'"},
    {"colour", "gren",
     "option 'colour': expected one of red, green, blue, found 'gren', did you mean 'green'?"},
    {"colour", "violet", "option 'colour': expected one of red, green, blue, found 'violet'"},
    {"layers", "10,x",
     "option 'layers': expected a list of whole numbers, 1 to 4096 each, found 'x'"},
    {"layers", "0", "option 'layers': expected a list of whole numbers, 1 to 4096 each, found '0'"},
    {"labels", "site",
     "option 'labels': expected a mapping of text to text, found an entry without '='"},
    {"cuont", "1", "unknown option 'cuont', did you mean 'count'?"},
    {"zzzzzzzz", "1",
     "unknown option 'zzzzzzzz', known: flag, count, share, size, wait, title, colour, names, "
     "layers, labels, token, odd"},
    {"a\nb\x1b", "1",
     "unknown option 'a\\x0ab\\x1b', known: flag, count, share, size, wait, title, colour, names, "
     "layers, labels, token, odd"},
};

START_TEST(a_bad_value_is_refused_and_the_old_one_kept)
{
    struct fl_options *o = fresh();
    struct fl_err err = {0};
    char before[64] = "";
    char after[64] = "";
    bool known = strncmp(bad[_i].message, "unknown", 7) != 0;

    if (known) {
        (void)fl_options_text(o, bad[_i].name, before, sizeof(before));
    }
    ck_assert_int_eq(fl_options_set(o, bad[_i].name, bad[_i].text, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, bad[_i].message);
    ck_assert_int_eq(fl_options_set(o, bad[_i].name, bad[_i].text, NULL), FL_ECONF);
    if (known) {
        (void)fl_options_text(o, bad[_i].name, after, sizeof(after));
        ck_assert_str_eq(before, after);
        ck_assert(!fl_options_is_set(o, bad[_i].name));
    }
    fl_options_free(o);
}
END_TEST

START_TEST(the_first_added_item_replaces_the_default_list)
{
    struct fl_options *o = fresh();
    struct fl_err err = {0};

    ck_assert_int_eq(fl_options_add(o, "names", NULL, "c,d", &err), FL_OK);
    ck_assert_int_eq(fl_options_add(o, "names", NULL, "e", &err), FL_OK);
    ck_assert_uint_eq(fl_options_count(o, "names"), 2);
    ck_assert_str_eq(fl_options_item(o, "names", 0), "c,d");
    ck_assert_int_eq(fl_options_add(o, "layers", NULL, "20", &err), FL_OK);
    ck_assert_int_eq(fl_options_int_item(o, "layers", 0), 20);
    ck_assert_int_eq(fl_options_add(o, "labels", "site", "a", &err), FL_OK);
    ck_assert_int_eq(fl_options_add(o, "labels", "site", "b", &err), FL_OK);
    ck_assert_uint_eq(fl_options_count(o, "labels"), 1);
    ck_assert_str_eq(fl_options_key(o, "labels", 0), "site");
    ck_assert_str_eq(fl_options_item(o, "labels", 0), "b");
    ck_assert_int_eq(fl_options_add(o, "count", NULL, "1", &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "option 'count': takes one value, not a list");
    ck_assert_int_eq(fl_options_add(o, "layers", NULL, "0", &err), FL_ECONF);
    ck_assert_uint_eq(fl_options_count(o, "layers"), 1);
    fl_options_free(o);
}
END_TEST

START_TEST(a_copy_is_equal_and_independent)
{
    struct fl_options *o = fresh();
    struct fl_options *copy = NULL;
    char text[64];

    ck_assert_int_eq(fl_options_set(o, "title", "one", NULL), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "labels", "a=b", NULL), FL_OK);
    ck_assert_int_eq(fl_options_copy(o, &copy), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "title", "two", NULL), FL_OK);
    fl_options_free(o);
    ck_assert_str_eq(fl_options_str(copy, "title"), "one");
    ck_assert_str_eq(fl_options_text(copy, "labels", text, sizeof(text)), "a=b");
    ck_assert(fl_options_is_set(copy, "labels") && !fl_options_is_set(copy, "flag"));
    fl_options_free(copy);
    fl_options_free(NULL);
}
END_TEST

START_TEST(text_that_does_not_fit_is_cut)
{
    struct fl_options *o = fresh();
    char text[4];

    ck_assert_int_eq(fl_options_set(o, "names", "abc,def", NULL), FL_OK);
    ck_assert_str_eq(fl_options_text(o, "names", text, sizeof(text)), "abc");
    fl_options_free(o);
}
END_TEST

START_TEST(asking_for_another_type_is_our_own_bug)
{
    struct fl_options *o = fresh();

    (void)fl_options_int(o, "share");
    fl_options_free(o);
}
END_TEST

START_TEST(asking_for_a_name_without_a_row_is_our_own_bug)
{
    struct fl_options *o = fresh();

    (void)fl_options_int(o, "nothing");
    fl_options_free(o);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf_options");
    TCase *tc = tcase_create("options");
    SRunner *sr = srunner_create(s);
    int failed;

    tcase_add_test(tc, defaults_of_the_table_are_the_first_values);
    tcase_add_loop_test(tc, text_goes_in_and_comes_out_again, 0,
                        (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tc, a_bad_value_is_refused_and_the_old_one_kept, 0,
                        (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(tc, the_first_added_item_replaces_the_default_list);
    tcase_add_test(tc, a_copy_is_equal_and_independent);
    tcase_add_test(tc, text_that_does_not_fit_is_cut);
    tcase_add_test_raise_signal(tc, asking_for_another_type_is_our_own_bug, 6);
    tcase_add_test_raise_signal(tc, asking_for_a_name_without_a_row_is_our_own_bug, 6);
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
