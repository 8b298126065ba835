/* Trees of YAML files that are changed before they are read, and written again. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/conf/differ.h"
#include "libfl/conf/edit.h"
#include "tests/lib/suites.h"

struct values {
    double rate;
    int64_t rounds;
    struct fl_opt_texts layers;
};

static const struct fl_opt_spec specs[] = {
    {FL_OPT(struct values, FLOAT, rate), .def = "1", .min = 0, .max = 9, .help = "A rate."},
    {FL_OPT(struct values, INT, rounds), .def = "0", .min = 0, .max = 9, .help = "Rounds."},
    {FL_OPT(struct values, STRING_LIST, layers), .help = "Layers."},
    FL_OPT_END_OF(struct values),
};

static struct fl_conf_doc *parse(const char *text)
{
    struct fl_conf_doc *doc = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_conf_parse("f.yaml", text, strlen(text), &doc, &err) == FL_OK, "%s", err.msg);
    return doc;
}

/* The tree as text, to be freed. */
static char *text_of(const struct fl_conf_node *node)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(fl_conf_write(node, &buf), FL_OK);
    ck_assert_int_eq(fl_buf_add(&buf, "", 1), FL_OK);
    return (char *)buf.data;
}

static void is_written(const struct fl_conf_doc *doc, const char *expected)
{
    char *text = text_of(fl_conf_root(doc));

    ck_assert_str_eq(text, expected);
    free(text);
}

static void assign(struct fl_conf_doc *doc, const char *text)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_conf_assign(doc, "--set", text, &err) == FL_OK, "%s", err.msg);
}

/* What the section `a.b` says when it is read through the table. */
static int apply(const struct fl_conf_doc *doc, struct fl_options **ret, struct fl_err *err)
{
    const struct fl_conf_node *map = fl_conf_get(fl_conf_get(fl_conf_root(doc), "a"), "b");

    ck_assert_int_eq(fl_options_create(specs, ret), FL_OK);
    return fl_conf_apply(doc, map, "a.b", NULL, *ret, err);
}

TEST(a_value_is_put_at_its_path_and_what_is_missing_is_made)
{
    struct fl_conf_doc *doc = parse("a:\n  b: {rate: 2}\nempty:\n");
    const struct values *v;
    struct fl_options *o = NULL;
    struct fl_err err = {0};

    assign(doc, "a.b.rate=0.5");
    assign(doc, "a.b.layers=[dense 200, relu]");
    assign(doc, "empty.x.y=text with = in it");
    assign(doc, "new={k: v}");
    ck_assert_msg(apply(doc, &o, &err) == FL_OK, "%s", err.msg);
    v = fl_options_values(o);
    ck_assert_double_eq(v->rate, 0.5);
    ck_assert_uint_eq(v->layers.n, 2);
    fl_options_free(o);
    is_written(doc, "a:\n  b:\n    rate: 0.5\n    layers: [dense 200, relu]\n"
                    "empty:\n  x:\n    y: \"text with = in it\"\nnew:\n  k: v\n");
    fl_conf_free(doc);
}

/* text of --set, and the message when it is put or read */
static const struct {
    const char *text, *message;
} bad[] = {
    {"a.b.rate=abc", "--set a.b.rate: expected a number, 0 to 9, found 'abc'"},
    {"a.b.rate=", "--set a.b.rate: expected a number, 0 to 9, found nothing"},
    {"a.b={rate: abc}", "--set a.b: key 'a.b.rate': expected a number, 0 to 9, found 'abc'"},
    {"a.b.raet=1", "--set a.b.raet: key 'a.b': unknown key 'raet', did you mean 'rate'?"},
    {"a.b=1", "--set a.b: expected a section of 'key: value' lines, found a single value"},
    {"a.one.x=1",
     "--set a.one.x: 'a.one' is a single value (f.yaml:4), nothing can be set below it"},
    {"a.list.x=1", "--set a.list.x: 'a.list' is a list (f.yaml:5), nothing can be set below it"},
    {"a.b.rate", "--set: expected key=value, found 'a.b.rate'"},
    {"=1", "--set: expected key=value, found '=1'"},
    {"a..b=1", "--set a..b: expected keys joined by dots, such as server.rounds, found 'a..b'"},
    {"a.=1", "--set a.: expected keys joined by dots, such as server.rounds, found 'a.'"},
    {"a.b.rate=[1",
     "--set a.b.rate: bad YAML: did not find expected ',' or ']' (while parsing a flow "
     "sequence that begins on line 1)"},
    {"a.b.rate=&x 1",
     "--set a.b.rate: anchors and aliases are not supported, write the value again"},
    {"a.b.rate=!!str 1", "--set a.b.rate: tags such as !!str are not supported"},
};

TEST_EACH(a_bad_value_is_refused_with_who_set_it, ARRAY_LEN(bad))
{
    struct fl_conf_doc *doc = parse("a:\n  b:\n    rate: 2\n  one: 1\n  list: [1]\n");
    struct fl_options *o = NULL;
    struct fl_err err = {0};
    int rv = fl_conf_assign(doc, "--set", bad[_i].text, &err);

    rv = rv == FL_OK ? apply(doc, &o, &err) : rv;
    ck_assert_int_eq(rv, FL_ECONF);
    ck_assert_str_eq(err.msg, bad[_i].message);
    fl_options_free(o);
    fl_conf_free(doc);
}

TEST(a_node_that_is_put_keeps_its_line)
{
    struct fl_conf_doc *doc = parse("a:\n  b: {rate: 2}\nsweep:\n  a.b.rate:\n  - 3\n  - x\n");
    const struct fl_conf_node *values = fl_conf_at(fl_conf_get(fl_conf_root(doc), "sweep"), 0);
    struct fl_conf_doc *copy = NULL;
    struct fl_options *o = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_conf_copy(doc, &copy), FL_OK);
    fl_conf_drop(copy, "sweep");
    ck_assert_int_eq(fl_conf_put(copy, "a.b.rate", fl_conf_at(values, 1), &err), FL_OK);
    fl_conf_free(doc); /* The copy has nothing of it. */
    ck_assert_int_eq(apply(copy, &o, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:6: key 'a.b.rate': expected a number, 0 to 9, found 'x'");
    is_written(copy, "a:\n  b:\n    rate: x\n");
    fl_options_free(o);
    fl_conf_free(copy);
}

TEST(nothing_gets_deeper_than_a_file_may_be)
{
    struct fl_conf_doc *doc = parse("a: 1\n");
    struct fl_err err = {0};

    /* 31 keys and a mapping are as deep as a file may be. */
    assign(doc, "k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k={a: 1}");
    ck_assert_int_eq(
        fl_conf_assign(doc, "--set",
                       "l.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k.k={a: {}}",
                       &err),
        FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "nested deeper than 32 levels"));
    fl_conf_free(doc);
}

TEST(what_is_written_is_read_as_the_same)
{
    static const char text[] = "plain: some words\nnumber: -0.5\nquoted: \"a: b # c\"\nempty: ''\n"
                               "null: \nword: 'null'\ntilde: '~'\nlines: \"one\\ntwo\\t\\u00e9\"\n"
                               "dash: '-'\nend: '...'\nlist: [1, \"2,3\", [4, {x: []}]]\n"
                               "maps:\n- {a: 1}\n- {}\n'odd: key': {}\n? \"caf\\u00e9\"\n: yes\n";
    struct fl_conf_doc *doc = parse(text);
    char *first = text_of(fl_conf_root(doc));
    struct fl_conf_doc *again = parse(first);

    is_written(again, first);
    ck_assert_str_eq(fl_conf_text(fl_conf_get(fl_conf_root(again), "lines")), "one\ntwo\t\303\251");
    ck_assert_str_eq(fl_conf_text(fl_conf_get(fl_conf_root(again), "quoted")), "a: b # c");
    ck_assert_str_eq(fl_conf_text(fl_conf_get(fl_conf_root(again), "tilde")), "~");
    ck_assert_ptr_nonnull(strstr(first, "number: -0.5\n"));
    ck_assert_ptr_nonnull(strstr(first, "\n\"null\": null\nword: \"null\"\n"));
    free(first);
    fl_conf_free(again);
    fl_conf_free(doc);
}

static const char *const live[] = {"log_level", "tls", NULL};

static void differ(const char *before, const char *now, size_t n, const char *expected)
{
    struct fl_conf_doc *a = parse(before);
    struct fl_conf_doc *b = parse(now);
    char keys[128];

    ck_assert_uint_eq(fl_conf_differ(fl_conf_root(a), fl_conf_root(b), live, keys, sizeof(keys)),
                      n);
    ck_assert_str_eq(keys, expected);
    fl_conf_free(a);
    fl_conf_free(b);
}

TEST(what_was_changed_between_two_readings_is_named)
{
    differ("a: 1\nb: {c: 2}\n", "b: {c: 2}\na: 1\n", 0, "");
    differ("a: 1\nb: {c: 2}\n", "a: 2\nb: {c: 3, d: 4}\n", 3, "a, b.c, b.d");
    differ("a: 1\nb: {c: 2}\n", "a: 1\n", 1, "b.c");
    differ("a: 1\n", "a: 1\nb: {c: 2}\n", 1, "b.c");
    differ("a: [1, 2]\n", "a: [2, 1]\n", 1, "a");
    differ("a: [1, 2]\n", "a: [1]\n", 1, "a");
    differ("a: {b: {c: 1}}\n", "a: {b: {c: 2}}\n", 1, "a.b");
    differ("a: {b: 1}\n", "a: x\n", 1, "a");
    differ("log_level: info\ntls: {key: a}\na: 1\n", "log_level: debug\ntls: {key: b}\na: 2\n", 1,
           "a");
}

TEST(a_long_list_of_changes_says_that_it_was_cut)
{
    char text[4096] = "";
    char keys[64];
    struct fl_conf_doc *a = parse("{}\n");
    struct fl_conf_doc *b;
    size_t i;

    for (i = 0; i < 100; i++) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "key_%zu: 1\n", i);
    }
    b = parse(text);
    for (i = 9; i <= sizeof(keys); i++) {
        ck_assert_uint_eq(fl_conf_differ(fl_conf_root(a), fl_conf_root(b), live, keys, i), 100);
        ck_assert_uint_eq(strlen(keys), i - 1);
        ck_assert_str_eq(keys + i - 4, "...");
    }
    fl_conf_free(a);
    fl_conf_free(b);
}
