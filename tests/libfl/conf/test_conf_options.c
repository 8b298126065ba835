#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"
#include "tests/lib/suites.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

enum colour { RED, GREEN, BLUE };

struct values {
    bool flag, count_given;
    int64_t count;
    double share, odd;
    uint64_t size, wait_ms, link_per_s;
    const char *title, *token;
    enum colour colour;
    int plain;
    struct fl_opt_texts names;
    struct fl_opt_ints layers;
    struct fl_opt_map labels;
};

static const struct fl_opt_spec specs[] = {
    {FL_OPT(struct values, BOOL, flag), .def = "yes", .help = "A flag."},
    {FL_OPT(struct values, INT, count), FL_OPT_GIVEN(struct values, count), .def = "7", .min = 1,
     .max = 100, .help = "A count."},
    {FL_OPT(struct values, FLOAT, share), .def = "0.5", .min = 0, .max = 1, .help = "A share."},
    {FL_OPT(struct values, BYTES, size), .def = "64K", .min = 1024, .max = 1073741824.0,
     .help = "A size."},
    {FL_OPT(struct values, DURATION, wait), .def = "10s", .min = 100, .max = 7200000,
     .help = "A span."},
    {FL_OPT(struct values, RATE, link), .def = "none", .min = 1000, .max = 125e6,
     .help = "A rate."},
    {FL_OPT(struct values, STRING, title), .help = "A text."},
    {FL_OPT(struct values, ENUM, colour), .def = "red", .choices = colours, .help = "A colour."},
    {FL_OPT(struct values, STRING_LIST, names), .def = "a,b", .help = "Names."},
    {FL_OPT(struct values, INT_LIST, layers), .min = 1, .max = 4096, .help = "Sizes."},
    {FL_OPT(struct values, MAP, labels), .help = "Labels."},
    {FL_OPT(struct values, STRING, token), .flags = FL_OPT_SECRET, .help = "A secret."},
    {FL_OPT(struct values, FLOAT, odd), .min = 1, .max = (double)INFINITY, .help = "No upper end."},
    {FL_OPT(struct values, ENUM, plain), .def = "green", .choices = colours, .help = "An int."},
    FL_OPT_END_OF(struct values),
};

static const struct fl_opt_spec *row(const char *name)
{
    const struct fl_opt_spec *spec = specs;

    while (spec->name != NULL && strcmp(spec->name, name) != 0) {
        spec++;
    }
    return spec;
}

static struct fl_options *fresh(void)
{
    struct fl_options *o = NULL;

    ck_assert_int_eq(fl_options_create(specs, &o), FL_OK);
    return o;
}

TEST(defaults_of_the_table_are_the_first_values)
{
    struct fl_options *o = fresh();
    const struct values *v = fl_options_values(o);

    ck_assert(v->flag);
    ck_assert_int_eq(v->count, 7);
    ck_assert_double_eq(v->share, 0.5);
    ck_assert_double_eq(v->odd, 0);
    ck_assert_uint_eq(v->size, 65536);
    ck_assert_uint_eq(v->wait_ms, 10000);
    ck_assert_uint_eq(v->link_per_s, 0);
    ck_assert_str_eq(v->title, "");
    ck_assert_int_eq(v->colour, RED);
    ck_assert_int_eq(v->plain, GREEN);
    ck_assert_uint_eq(v->names.n, 2);
    ck_assert_str_eq(v->names.list[1], "b");
    ck_assert_ptr_null(v->names.list[2]);
    ck_assert_uint_eq(v->layers.n, 0);
    ck_assert_uint_eq(v->labels.n, 0);
    ck_assert(!v->count_given);
    ck_assert(!fl_options_given(o, row("flag")));
    ck_assert_ptr_eq(fl_options_specs(o), specs);
    fl_options_free(o);
}

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
    {"wait", "200000us", "200ms"},
    {"wait", "1.5h", "90m"},
    {"wait", "0.05d", "72m"},
    {"link", "2Mbit/s", "2Mbit/s"},
    {"link", "250 kB/s", "2Mbit/s"},
    {"link", "1000Mbit/s", "1Gbit/s"},
    {"link", "1001B/s", "1001B/s"},
    {"link", "none", "none"},
    {"link", "0", "none"},
    {"title", "x, y: z", "x, y: z"},
    {"colour", "blue", "blue"},
    {"names", "x, y ,z", "x,y,z"},
    {"names", "", ""},
    {"layers", "200,200,10", "200,200,10"},
    {"labels", "site=lab,rack=7", "site=lab,rack=7"},
    {"token", "hunter2", "(not shown)"},
};

static const char *const given[] = {"flag=no",     "count=1",       "share=1e-3",  "size=8M",
                                    "wait=1500ms", "title=x, y",    "token=t",     "colour=blue",
                                    "plain=red",   "names=x, y ,z", "layers=2,1",  "labels=k=v,l=w",
                                    "odd=1e9",     "count=100",     "link=1.5MB/s"};

TEST(what_is_set_stands_in_the_field_of_its_type)
{
    struct fl_options *o = fresh();
    const struct values *v = fl_options_values(o);
    size_t i;

    for (i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        const char *equals = strchr(given[i], '=');
        char name[16] = "";

        (void)memcpy(name, given[i], (size_t)(equals - given[i]));
        ck_assert_int_eq(fl_options_set(o, name, equals + 1, NULL), FL_OK);
    }
    ck_assert(!v->flag);
    ck_assert_int_eq(v->count, 100);
    ck_assert(v->count_given);
    ck_assert_double_eq(v->share, 0.001);
    ck_assert_double_eq(v->odd, 1e9);
    ck_assert_uint_eq(v->size, 8388608);
    ck_assert_uint_eq(v->wait_ms, 1500);
    ck_assert_uint_eq(v->link_per_s, 1500000);
    ck_assert_str_eq(v->title, "x, y");
    ck_assert_str_eq(v->token, "t");
    ck_assert_int_eq(v->colour, BLUE);
    ck_assert_int_eq(v->plain, RED);
    ck_assert_uint_eq(v->names.n, 3);
    ck_assert_str_eq(v->names.list[0], "x");
    ck_assert_str_eq(v->names.list[1], "y");
    ck_assert_str_eq(v->names.list[2], "z");
    ck_assert_ptr_null(v->names.list[3]);
    ck_assert_uint_eq(v->layers.n, 2);
    ck_assert_int_eq(v->layers.list[0], 2);
    ck_assert_int_eq(v->layers.list[1], 1);
    ck_assert_uint_eq(v->labels.n, 2);
    ck_assert_str_eq(v->labels.list[1].key, "l");
    ck_assert_str_eq(v->labels.list[1].value, "w");
    fl_options_free(o);
}

TEST_EACH(text_goes_in_and_comes_out_again, ARRAY_LEN(good))
{
    struct fl_options *o = fresh();
    struct fl_err err = {0};
    char back[64];

    ck_assert_msg(fl_options_set(o, good[_i].name, good[_i].text, &err) == FL_OK, "%s", err.msg);
    ck_assert(fl_options_given(o, row(good[_i].name)));
    ck_assert_str_eq(fl_options_show(o, row(good[_i].name), back, sizeof(back)), good[_i].back);
    fl_options_free(o);
}

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
    {"size", "1K2",
     "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '1K2'"
     ": units are B, K, M, G, T, kB, MB, GB, TB, KiB, MiB, GiB, TiB"},
    {"size", "2G", "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '2G'"},
    {"size", "17179869184G",
     "option 'size': expected a size such as 64K, 8M or 1G, 1K to 1G, found '17179869184G'"},
    {"wait", "10",
     "option 'wait': expected a duration such as 10s, 100ms to 2h, found '10': add a unit (us, ms, "
     "s, m, h, d)"},
    {"wait", "abc", "option 'wait': expected a duration such as 10s, 100ms to 2h, found 'abc'"},
    {"wait", "3h", "option 'wait': expected a duration such as 10s, 100ms to 2h, found '3h'"},
    {"wait", "-1s", "option 'wait': expected a duration such as 10s, 100ms to 2h, found '-1s'"},
    {"link", "250000",
     "option 'link': expected a rate such as 2Mbit/s or 500kB/s, or none, 1kB/s to 1Gbit/s, found "
     "'250000': add a unit (bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s)"},
    {"link", "2Mb/s",
     "option 'link': expected a rate such as 2Mbit/s or 500kB/s, or none, 1kB/s to 1Gbit/s, found "
     "'2Mb/s': units are bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s"},
    {"link", "999B/s",
     "option 'link': expected a rate such as 2Mbit/s or 500kB/s, or none, 1kB/s to 1Gbit/s, found "
     "'999B/s'"},
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
     "unknown option 'zzzzzzzz', known: flag, count, share, size, wait, link, title, colour, "
     "names, "
     "layers, labels, token, odd, plain"},
    {"a\nb\x1b", "1",
     "unknown option 'a\\x0ab\\x1b', known: flag, count, share, size, wait, link, title, colour, "
     "names, "
     "layers, labels, token, odd, plain"},
};

TEST_EACH(a_bad_value_is_refused_and_the_old_one_kept, ARRAY_LEN(bad))
{
    struct fl_options *o = fresh();
    struct fl_err err = {0};
    char before[64] = "";
    char after[64] = "";
    bool known = strncmp(bad[_i].message, "unknown", 7) != 0;

    if (known) {
        (void)fl_options_show(o, row(bad[_i].name), before, sizeof(before));
    }
    ck_assert_int_eq(fl_options_set(o, bad[_i].name, bad[_i].text, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, bad[_i].message);
    ck_assert_int_eq(fl_options_set(o, bad[_i].name, bad[_i].text, NULL), FL_ECONF);
    if (known) {
        (void)fl_options_show(o, row(bad[_i].name), after, sizeof(after));
        ck_assert_str_eq(before, after);
        ck_assert(!fl_options_given(o, row(bad[_i].name)));
    }
    fl_options_free(o);
}

TEST(the_first_added_item_replaces_the_default_list)
{
    struct fl_options *o = fresh();
    const struct values *v = fl_options_values(o);
    struct fl_err err = {0};

    ck_assert_int_eq(fl__options_add(o, row("names"), NULL, "c,d", &err), FL_OK);
    ck_assert_int_eq(fl__options_add(o, row("names"), NULL, "e", &err), FL_OK);
    ck_assert_uint_eq(v->names.n, 2);
    ck_assert_str_eq(v->names.list[0], "c,d");
    ck_assert_int_eq(fl__options_add(o, row("layers"), NULL, "20", &err), FL_OK);
    ck_assert_int_eq(v->layers.list[0], 20);
    ck_assert_int_eq(fl__options_add(o, row("labels"), "site", "a", &err), FL_OK);
    ck_assert_int_eq(fl__options_add(o, row("labels"), "site", "b", &err), FL_OK);
    ck_assert_uint_eq(v->labels.n, 1);
    ck_assert_str_eq(v->labels.list[0].key, "site");
    ck_assert_str_eq(v->labels.list[0].value, "b");
    ck_assert_int_eq(fl__options_add(o, row("layers"), NULL, "0", &err), FL_ECONF);
    ck_assert_uint_eq(v->layers.n, 1);
    fl_options_free(o);
}

TEST(a_copy_is_equal_and_independent)
{
    struct fl_options *o = fresh();
    struct fl_options *copy = NULL;
    const struct values *v;
    char text[64];

    ck_assert_int_eq(fl_options_set(o, "title", "one", NULL), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "labels", "a=b", NULL), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "layers", "3,4", NULL), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "count", "8", NULL), FL_OK);
    ck_assert_int_eq(fl_options_copy(o, &copy), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "title", "two", NULL), FL_OK);
    fl_options_free(o);
    v = fl_options_values(copy);
    ck_assert_str_eq(v->title, "one");
    ck_assert_str_eq(v->names.list[1], "b");
    ck_assert_int_eq(v->layers.list[1], 4);
    ck_assert_int_eq(v->count, 8);
    ck_assert(v->count_given);
    ck_assert_str_eq(fl_options_show(copy, row("labels"), text, sizeof(text)), "a=b");
    ck_assert(fl_options_given(copy, row("labels")) && !fl_options_given(copy, row("flag")));
    fl_options_free(copy);
    fl_options_free(NULL);
}

TEST(text_that_does_not_fit_is_cut)
{
    struct fl_options *o = fresh();
    char text[4];

    ck_assert_int_eq(fl_options_set(o, "names", "abc,def", NULL), FL_OK);
    ck_assert_str_eq(fl_options_show(o, row("names"), text, sizeof(text)), "abc");
    fl_options_free(o);
}

static const size_t too_small[] = {offsetof(struct values, labels), 0};

TEST_ROW(a_table_for_a_smaller_struct_is_our_own_bug, 6, 0, 0, (ARRAY_LEN(too_small)))
{
    struct fl_opt_spec wrong[] = {{FL_OPT(struct values, MAP, labels), .help = "Labels."},
                                  {.name = NULL, .offset = too_small[_i]}};
    struct fl_options *o = NULL;

    ck_assert_int_eq(fl_options_create(wrong, &o), FL_OK);
}

TEST(a_table_may_have_no_rows)
{
    struct fl_options *o = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_options_create(fl_opt_none, &o), FL_OK);
    ck_assert_ptr_nonnull(fl_options_values(o));
    ck_assert_int_eq(fl_options_set(o, "x", "1", &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "unknown option 'x', known: none");
    fl_options_free(o);
}
