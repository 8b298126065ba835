#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/buf.h"
#include "libfl/conf/yaml.h"
#include "tests/lib/suites.h"

static const char *const modes[] = {"fast", "safe", NULL};

struct values {
    const char *name;
    uint64_t deadline_ms;
    int64_t clients, key;
    enum { FAST, SAFE } mode;
    struct fl_opt_ints layers;
    struct fl_opt_texts files;
    struct fl_opt_map labels;
};

static const struct fl_opt_spec specs[] = {
    {FL_OPT(struct values, STRING, name), .flags = FL_OPT_REQUIRED, .help = "Its name."},
    {FL_OPT(struct values, DURATION, deadline), .def = "30s", .min = 1000, .max = 3600000,
     .help = "How long | at most."},
    {FL_OPT(struct values, INT, clients), .def = "10", .min = 1, .max = 1000, .help = "Many."},
    {FL_OPT(struct values, ENUM, mode), .def = "safe", .choices = modes, .help = "How."},
    {FL_OPT(struct values, INT_LIST, layers), .min = 1, .max = 9999, .help = "Layer sizes."},
    {FL_OPT(struct values, STRING_LIST, files), .def = "x,y", .help = "Files."},
    {FL_OPT(struct values, MAP, labels), .help = "Labels."},
    {FL_OPT(struct values, INT, key), .flags = FL_OPT_SECRET, .help = "A secret."},
    FL_OPT_END_OF(struct values),
};

static const char *const root_keys[] = {"round", "other", NULL};
static const char *const round_others[] = {"nested", NULL};

/* Read `text` as a daemon would: sections at the top, one of them a table. */
static int apply(const char *text, size_t len, struct fl_options **ret, struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    struct fl_options *o = NULL;
    int rv = fl_conf_parse("f.yaml", text, len, &doc, err);

    if (rv != FL_OK) {
        return rv;
    }
    ck_assert_int_eq(fl_options_create(specs, &o), FL_OK);
    rv = fl_conf_only(fl_conf_root(doc), root_keys, err);
    if (rv == FL_OK) {
        rv = fl_conf_apply(doc, fl_conf_get(fl_conf_root(doc), "round"), "round", round_others, o,
                           err);
    }
    fl_conf_free(doc);
    if (rv != FL_OK || ret == NULL) {
        fl_options_free(o);
        return rv;
    }
    *ret = o;
    return FL_OK;
}

TEST(a_good_file_fills_the_table)
{
    static const char text[] = "%YAML 1.1\n---\n"
                               "# comment\n"
                               "round:\n"
                               "  name: \"caf\\u00e9: one\"\n"
                               "  deadline: 5m   # a comment\n"
                               "  clients: 20\n"
                               "  mode: fast\n"
                               "  layers: [200, 200, 10]\n"
                               "  files: one,two\n"
                               "  labels: {site: lab, rack: '7'}\n"
                               "  nested: {whatever: [1, {a: b}]}\n"
                               "other:\n";
    const struct values *v;
    struct fl_options *o = NULL;
    struct fl_err err = {0};

    ck_assert_msg(apply(text, strlen(text), &o, &err) == FL_OK, "%s", err.msg);
    v = fl_options_values(o);
    ck_assert_str_eq(v->name, "caf\xc3\xa9: one");
    ck_assert_uint_eq(v->deadline_ms, 300000);
    ck_assert_int_eq(v->clients, 20);
    ck_assert_int_eq(v->mode, FAST);
    ck_assert_uint_eq(v->layers.n, 3);
    ck_assert_int_eq(v->layers.list[1], 200);
    /* One text is one item, commas and all. */
    ck_assert_uint_eq(v->files.n, 1);
    ck_assert_str_eq(v->files.list[0], "one,two");
    ck_assert_str_eq(v->labels.list[1].key, "rack");
    ck_assert_str_eq(v->labels.list[1].value, "7");
    fl_options_free(o);
}

TEST(an_empty_list_replaces_the_default)
{
    const struct values *v;
    struct fl_options *o = NULL;

    ck_assert_int_eq(apply("round: {name: a, files: []}", 27, &o, NULL), FL_OK);
    v = fl_options_values(o);
    ck_assert_uint_eq(v->files.n, 0);
    fl_options_free(o);
    ck_assert_int_eq(apply("round: {name: a}", 16, &o, NULL), FL_OK);
    v = fl_options_values(o);
    ck_assert_uint_eq(v->files.n, 2);
    fl_options_free(o);
}

#define R      "round:\n  name: a\n"
#define BAD(m) "f.yaml:3: key 'round." m

static const struct {
    const char *text, *message;
} bad[] = {
    {R "  deadline: abc\n",
     BAD("deadline': expected a duration such as 10s, 1s to 1h, found 'abc'")},
    {R "  deadline: 10\n", BAD("deadline': expected a duration such as 10s, 1s to 1h, found '10': "
                               "add a unit (us, ms, s, m, h, d)")},
    {R "  deadline: 2h\n", BAD("deadline': expected a duration such as 10s, 1s to 1h, found '2h'")},
    {R "  deadline:\n", BAD("deadline': expected a duration such as 10s, 1s to 1h, found nothing")},
    {R "  deadline: [1s]\n",
     BAD("deadline': expected a duration such as 10s, 1s to 1h, found a list")},
    {R "  clients: {a: 1}\n", BAD("clients': expected a whole number, 1 to 1000, found a section")},
    {R "  clients: 0\n", BAD("clients': expected a whole number, 1 to 1000, found '0'")},
    {R "  mode: fats\n",
     BAD("mode': expected one of fast, safe, found 'fats', did you mean 'fast'?")},
    {R "  layers: [10, x]\n",
     "f.yaml:3: key 'round.layers[1]': expected a list of whole numbers, 1 to 9999 each, found "
     "'x'"},
    {R "  layers:\n    - 10\n    - [1]\n",
     "f.yaml:5: key 'round.layers[1]': expected a whole number, found a list"},
    {R "  labels: {a: [b]}\n", BAD("labels.a': expected a text, found a list")},
    {R "  labels: x\n", BAD("labels': expected a mapping of text to text, found a single value")},
    {R "  key: hunter2\n", BAD("key': expected a whole number, found something else (not shown)")},
    {R "  dedline: 10s\n",
     "f.yaml:3: key 'round': unknown key 'dedline', did you mean 'deadline'?"},
    {R "  nestled: 10s\n", "f.yaml:3: key 'round': unknown key 'nestled', did you mean 'nested'?"},
    {R "  qqqqqqqqqqqq: 1\n",
     "f.yaml:3: key 'round': unknown key 'qqqqqqqqqqqq', known: name, deadline, clients, mode, "
     "layers, files, labels, key, nested"},
    {R "ruond: 1\n", "f.yaml:3: unknown key 'ruond', did you mean 'round'?"},
    {"round:\n", "f.yaml:1: key 'round': the required key 'name' is missing (a text)"},
    {"other: 1\n", "f.yaml: the required key 'round.name' is missing (a text)"},
    {"other: 1\nround:\n  name: ''\n",
     "f.yaml:3: key 'round.name': expected a text, found an empty text"},
    {"other: 1\nround:\n  name: ~\n", "f.yaml:3: key 'round.name': expected a text, found nothing"},
    {"round: [a]\n",
     "f.yaml:1: key 'round': expected a section of 'key: value' lines, found a list"},
    {"round: x\n",
     "f.yaml:1: key 'round': expected a section of 'key: value' lines, found a single value"},
    {R "  name: b\n", "f.yaml:3: key 'round.name': given twice, first on line 2"},
    {R "round: 1\n", "f.yaml:3: key 'round': given twice, first on line 1"},
    {"round:\n\tname: a\n", "f.yaml:2: a tab cannot indent in YAML; use spaces"},
    {"round:\n  name: a\n\tmode: fast\n", "f.yaml:3: a tab cannot indent in YAML; use spaces"},
    {R "  files: &f [a]\n",
     "f.yaml:3: anchors and aliases are not supported, write the value again"},
    {"round: &r {name: a}\n",
     "f.yaml:1: anchors and aliases are not supported, write the value again"},
    {R "  files: *f\n", "f.yaml:3: anchors and aliases are not supported, write the value again"},
    {R "  clients: !!int 3\n", "f.yaml:3: tags such as !!str are not supported"},
    {R "---\nround:\n", "f.yaml:3: a second document begins, one file holds only one"},
    {"", "f.yaml: the file is empty"},
    {"# only a comment\n", "f.yaml: the file is empty"},
    {"---\n", "f.yaml: the file is empty"},
    {"- a\n- b\n", "f.yaml:1: expected 'key: value' lines at the top of the file"},
    {"just a text\n", "f.yaml:1: expected 'key: value' lines at the top of the file"},
    {"round: {name: \"a\\0b\"}\n", "f.yaml:1: a text must not have a NUL character"},
    {"round:\n  ? [a]\n  : b\n", "f.yaml:2: a key must be a text"},
    {"round:\n  \"a\\nb\": c\n", "f.yaml:2: a key must not have control characters"},
    {"round:\n  \"\": c\n", "f.yaml:2: a key must have 1 to 255 bytes"},
    {"a: b\nc: \xff\n", "f.yaml:2: not UTF-8 text"},
    {"a: b\nc: \xc0\xaf\n", "f.yaml:2: not UTF-8 text"},
    {"a: b\nc: \xed\xa0\x80\n", "f.yaml:2: not UTF-8 text"},
    {"a: b\nc: \xe2\x82", "f.yaml:2: not UTF-8 text"},
    {"a: b\nc: \x01\n", "f.yaml:2: bad YAML: control characters are not allowed"},
    {"round: {name: a\n",
     "f.yaml:2: bad YAML: did not find expected ',' or '}' (while parsing a flow mapping that "
     "begins on line 1)"},
    {"round:\n  name: 'a\n",
     "f.yaml:3: bad YAML: found unexpected end of stream (while scanning a quoted scalar that "
     "begins on line 2)"},
    {"a: b: c\n", "f.yaml:1: bad YAML: mapping values are not allowed in this context"},
};

TEST_EACH(a_bad_file_is_refused_with_its_line, ARRAY_LEN(bad))
{
    struct fl_err err = {0};

    ck_assert_int_eq(apply(bad[_i].text, strlen(bad[_i].text), NULL, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, bad[_i].message);
    ck_assert_int_eq(err.code, FL_ECONF);
    ck_assert_int_eq(apply(bad[_i].text, strlen(bad[_i].text), NULL, NULL), FL_ECONF);
}

TEST(depth_size_and_number_are_bounded)
{
    static char text[(1 << 20) + 64];
    struct fl_err err = {0};
    struct fl_conf_doc *doc = NULL;
    size_t n = 0;
    size_t i;

    n = (size_t)snprintf(text, sizeof(text), "a: ");
    (void)memset(text + n, '[', 31);
    (void)memset(text + n + 31, ']', 31);
    ck_assert_int_eq(fl_conf_parse("f.yaml", text, n + 62, &doc, &err), FL_OK);
    fl_conf_free(doc);
    (void)memset(text + n, '[', 1000);
    ck_assert_int_eq(fl_conf_parse("f.yaml", text, n + 1000, &doc, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:1: nested deeper than 32 levels");

    (void)memset(text, '#', sizeof(text));
    ck_assert_int_eq(fl_conf_parse("f.yaml", text, (1 << 20) + 1, &doc, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml: the file has more than 1048576 bytes");

    n = (size_t)snprintf(text, sizeof(text), "a: [");
    for (i = 0; i < 70000; i++) {
        (void)memcpy(text + n, "b,\n", 3);
        n += 3;
    }
    text[n++] = ']';
    ck_assert_int_eq(fl_conf_parse("f.yaml", text, n, &doc, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:65535: more than 65536 values in one file");

    for (n = 0, i = 0; i < 1100; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "k%zu: 1\n", i);
    }
    ck_assert_int_eq(fl_conf_parse("f.yaml", text, n, &doc, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:1025: more than 1024 entries in one section");
}

TEST(nodes_know_line_path_and_kind)
{
    static const char text[] = "a: 1\nmodel:\n  layers:\n    - 2\n    - x: 3\n";
    struct fl_conf_doc *doc = NULL;
    const struct fl_conf_node *layers;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_conf_parse("f.yaml", text, strlen(text), &doc, NULL), FL_OK);
    layers = fl_conf_get(fl_conf_get(fl_conf_root(doc), "model"), "layers");
    ck_assert_ptr_nonnull(layers);
    ck_assert_int_eq(fl_conf_kind(layers), FL_CONF_SEQ);
    ck_assert_uint_eq(fl_conf_size(layers), 2);
    ck_assert_ptr_null(fl_conf_text(layers));
    /* A section counts from its key. */
    ck_assert_uint_eq(fl_conf_line(layers), 3);
    ck_assert_str_eq(fl_conf_path(fl_conf_get(fl_conf_at(layers, 1), "x")), "model.layers[1].x");
    ck_assert_uint_eq(fl_conf_line(fl_conf_at(layers, 1)), 5);
    ck_assert_str_eq(fl_conf_text(fl_conf_at(layers, 0)), "2");
    ck_assert_str_eq(fl_conf_key(fl_conf_root(doc), 0), "a");
    ck_assert_ptr_null(fl_conf_get(NULL, "a"));
    ck_assert_ptr_null(fl_conf_get(layers, "a"));
    ck_assert_int_eq(fl_conf_error(fl_conf_at(layers, 0), &err, "no %d", 7), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:4: key 'model.layers[0]': no 7");
    fl_conf_free(doc);
}

TEST(a_file_is_read_from_disk_and_named_in_errors)
{
    char path[] = "/tmp/fl-conf-XXXXXX";
    struct fl_conf_doc *doc = NULL;
    struct fl_err err = {0};
    char want[128];
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fl_conf_load(path, &doc, &err), FL_ECONF);
    (void)snprintf(want, sizeof(want), "%s: the file is empty", path);
    ck_assert_str_eq(err.msg, want);
    ck_assert_int_eq(write(fd, "a: 1\n", 5), 5);
    ck_assert_int_eq(fl_conf_load(path, &doc, &err), FL_OK);
    fl_conf_free(doc);
    (void)close(fd);
    (void)unlink(path);
    ck_assert_int_eq(fl_conf_load(path, &doc, &err), FL_ENOENT);
    (void)snprintf(want, sizeof(want), "cannot open '%s': No such file or directory", path);
    ck_assert_str_eq(err.msg, want);
}

TEST(every_row_is_in_the_reference)
{
    static const char want[] =
        "| `round.name` | text | required |  | Its name. |\n"
        "| `round.deadline` | duration | `30s` | 1s to 1h | How long \\| at most. |\n"
        "| `round.clients` | integer | `10` | 1 to 1000 | Many. |\n"
        "| `round.mode` | choice | `safe` | fast, safe | How. |\n"
        "| `round.layers` | list of integers |  | 1 to 9999 | Layer sizes. |\n"
        "| `round.files` | list of texts | `x,y` |  | Files. |\n"
        "| `round.labels` | map of texts |  |  | Labels. |\n"
        "| `round.key` | integer |  |  | A secret. |\n";
    struct fl_buf out;

    fl_buf_init(&out, 65536);
    ck_assert_int_eq(fl_conf_reference(specs, "round", &out), FL_OK);
    ck_assert_int_eq(fl_buf_add(&out, "", 1), FL_OK);
    ck_assert_str_eq((const char *)out.data, want);
    fl_buf_clear(&out);
    ck_assert_int_eq(fl_conf_reference(specs, "", &out), FL_OK);
    ck_assert_int_eq(memcmp(out.data, "| `name` |", 10), 0);
    fl_buf_done(&out);
    fl_buf_init(&out, 40);
    ck_assert_int_eq(fl_conf_reference(specs, "round", &out), FL_ELIMIT);
    fl_buf_done(&out);
}
