#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/buf.h"
#include "libfl/conf/sections.h"
#include "tests/lib/suites.h"

struct top {
    const char *name;
    int64_t seed;
};

struct part {
    uint64_t wait_ms;
    struct fl_opt_ints sizes;
};

struct conf {
    const struct top *top;
    const struct part *part, *other;
};

static const struct fl_opt_spec top_specs[] = {
    {FL_OPT(struct top, STRING, name), .flags = FL_OPT_REQUIRED | FL_OPT_BASIC,
     .help = "Its name."},
    {FL_OPT(struct top, INT, seed), .def = "1", .help = "A seed."},
    FL_OPT_END_OF(struct top),
};

static const struct fl_opt_spec part_specs[] = {
    {FL_OPT(struct part, DURATION, wait), .flags = FL_OPT_DEBUG, .def = "1s", .min = 1, .max = 1e6,
     .help = "A span."},
    {FL_OPT(struct part, INT_LIST, sizes), .help = "Sizes."},
    FL_OPT_END_OF(struct part),
};

static const struct fl_conf_section sections[] = {
    {FL_CONF_SECTION("", top_specs, struct conf, top, struct top)},
    {FL_CONF_SECTION("part", part_specs, struct conf, part, struct part)},
    {FL_CONF_SECTION("other", part_specs, struct conf, other, struct part)},
    {.name = NULL},
};

static int read_text(const char *text, struct conf *conf, struct fl_conf_file **ret,
                     struct fl_err *err)
{
    static const char *const others[] = {"mine", NULL};
    char path[] = "/tmp/fl-conf-XXXXXX";
    char *place;
    int fd = mkstemp(path);
    int rv;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    ck_assert_int_eq(close(fd), 0);
    rv = fl_conf_read(path, sections, others, NULL, conf, ret, err);
    (void)unlink(path);
    /* The folder's name changes, the rest of a message does not. */
    place = strstr(err->msg, path);
    if (place != NULL) {
        (void)memmove(place, place + strlen(path), strlen(place + strlen(path)) + 1);
    }
    return rv;
}

TEST(each_section_fills_its_struct)
{
    struct conf conf;
    struct fl_conf_file *file = NULL;
    struct fl_err err = {0};
    const char *text = "name: a\nmine: {x: 1}\npart: {wait: 5s, sizes: [3, 4]}\n";

    ck_assert_msg(read_text(text, &conf, &file, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(conf.top->name, "a");
    ck_assert_int_eq(conf.top->seed, 1);
    ck_assert_uint_eq(conf.part->wait_ms, 5000);
    ck_assert_int_eq(conf.part->sizes.list[1], 4);
    ck_assert_uint_eq(conf.other->wait_ms, 1000);
    ck_assert_ptr_eq(fl_options_values(fl_conf_file_options(file, 2)), conf.other);
    ck_assert_ptr_nonnull(fl_conf_get(fl_conf_root(fl_conf_file_doc(file)), "mine"));
    fl_conf_file_free(file);
    fl_conf_file_free(NULL);
}

TEST(a_field_knows_where_its_key_stands)
{
    struct conf conf;
    struct fl_conf_file *file = NULL;
    struct fl_err err = {0};
    const char *text = "name: a\npart:\n  sizes: [3]\n  wait: 5s\n";

    ck_assert_msg(read_text(text, &conf, &file, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_conf_line(fl_conf_field(file, &conf.part->wait_ms)), 4);
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.part->wait_ms)), "part.wait");
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.top->name)), "name");
    ck_assert_str_eq(fl_conf_path(fl_conf_section(file, conf.part)), "part");
    /* Not given: the section, or the file. */
    ck_assert_ptr_eq(fl_conf_field(file, &conf.other->sizes), fl_conf_root(fl_conf_file_doc(file)));
    ck_assert_ptr_eq(fl_conf_field(file, &conf.top->seed), fl_conf_root(fl_conf_file_doc(file)));
    fl_conf_file_free(file);
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"name: a\npart: {wiat: 5s}\n", ":2: key 'part': unknown key 'wiat', did you mean 'wait'?"},
    {"name: a\npart: {wait: 5}\n",
     ":2: key 'part.wait': expected a duration such as 10s, 1ms to 1000s, found '5': add a unit "
     "(us, ms, s, m, h, d)"},
    {"name: a\nzzzzzzz: 1\n", ":2: unknown key 'zzzzzzz', known: name, seed, mine, part, other"},
    {"seed: 1\n", ":1: the required key 'name' is missing (a text)"},
    {"name: a\npart: 5\n",
     ":2: key 'part': expected a section of 'key: value' lines, found a single value"},
};

TEST_EACH(a_bad_key_of_any_section_is_refused_with_its_line, ARRAY_LEN(bad))
{
    struct conf conf;
    struct fl_conf_file *file = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(read_text(bad[_i].text, &conf, &file, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, bad[_i].message);
    ck_assert_ptr_null(file);
}

/* The owner's: of a row that only matters at the root of a file. */
enum { OWN_FILE = FL_OPT_OWNERS };

static const struct fl_opt_spec lax_specs[] = {
    {FL_OPT(struct top, STRING, name), .flags = FL_OPT_REQUIRED | OWN_FILE, .help = "Its name."},
    {FL_OPT(struct top, INT, seed), .flags = FL_OPT_REQUIRED, .help = "A seed."},
    FL_OPT_END_OF(struct top),
};

static const struct fl_conf_section lax[] = {
    {FL_CONF_SECTION("", lax_specs, struct conf, top, struct top)},
    {FL_CONF_SECTION("part", part_specs, struct conf, part, struct part), .flags = OWN_FILE << 1},
    {.name = NULL},
};

static int read_below(const struct fl_conf_doc *doc, const char *key, struct conf *conf,
                      struct fl_conf_file **ret, struct fl_err *err)
{
    const struct fl_conf_part part = {
        .doc = doc, .map = fl_conf_get(fl_conf_root(doc), key), .optional = OWN_FILE};

    return fl_conf_read_map(&part, lax, NULL, conf, ret, err);
}

TEST(sections_below_a_key_of_another_document_have_its_line_and_full_key)
{
    static const char text[] = "good:\n  seed: 3\n  part: {wait: 2s}\n"
                               "slip:\n  seed: 3\n  part: {wiat: 2s}\n"
                               "none:\n  name: x\nlist: [1]\nbare: {seed: 3}\n";
    struct fl_conf_doc *doc = NULL;
    struct fl_conf_file *file = NULL;
    struct fl_err err = {0};
    struct conf conf;

    ck_assert_int_eq(fl_conf_parse("f.yaml", text, strlen(text), &doc, &err), FL_OK);
    ck_assert_msg(read_below(doc, "good", &conf, &file, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(conf.top->name, "");
    ck_assert_uint_eq(conf.part->wait_ms, 2000);
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.part->wait_ms)), "good.part.wait");
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.top->name)), "good");
    ck_assert_ptr_eq(fl_conf_file_map(file), fl_conf_get(fl_conf_root(doc), "good"));
    fl_conf_file_free(file); /* The document stays. */
    ck_assert_int_eq(read_below(doc, "bare", &conf, &file, &err), FL_OK);
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.part->wait_ms)), "bare");
    fl_conf_file_free(file);
    ck_assert_int_eq(read_below(doc, "slip", &conf, &file, &err), FL_ECONF);
    ck_assert_str_eq(err.msg,
                     "f.yaml:6: key 'slip.part': unknown key 'wiat', did you mean 'wait'?");
    ck_assert_int_eq(read_below(doc, "none", &conf, &file, &err), FL_ECONF);
    ck_assert_str_eq(err.msg,
                     "f.yaml:7: key 'none': the required key 'seed' is missing (a whole number)");
    ck_assert_int_eq(read_below(doc, "list", &conf, &file, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "f.yaml:9: key 'list': expected a section of 'key: value' lines, "
                              "found a list");
    fl_conf_free(doc);
}

TEST(flags_of_a_key_are_its_own_and_its_sections)
{
    ck_assert_uint_eq(fl_conf_key_flags(lax, "name"), FL_OPT_REQUIRED | OWN_FILE);
    ck_assert_uint_eq(fl_conf_key_flags(lax, "part.wait"), FL_OPT_DEBUG | OWN_FILE << 1);
    ck_assert_uint_eq(fl_conf_key_flags(lax, "part"), OWN_FILE << 1);
    ck_assert_uint_eq(fl_conf_key_flags(lax, "part.wait.x"), 0);
    ck_assert_uint_eq(fl_conf_key_flags(lax, "par"), 0);
    ck_assert_uint_eq(fl_conf_key_flags(lax, "part."), 0);
}

TEST(the_reference_begins_with_basic_options_and_ends_with_those_for_debugging)
{
#define HEAD                                       \
    "| key | type | default | range | meaning |\n" \
    "| --- | --- | --- | --- | --- |\n"
    static const char want[] =
        "### Basic: what a first configuration sets\n\n" HEAD
        "| `name` | text | required |  | Its name. |\n"
        "\n### Advanced: the defaults suit most federations\n\n" HEAD
        "| `seed` | integer | `1` |  | A seed. |\n"
        "| `part.sizes` | list of integers |  |  | Sizes. |\n"
        "| `other.sizes` | list of integers |  |  | Sizes. |\n"
        "\n### Debug: for tests and diagnosis, to be left alone otherwise\n\n" HEAD
        "| `part.wait` | duration | `1s` | 1ms to 1000s | A span. |\n"
        "| `other.wait` | duration | `1s` | 1ms to 1000s | A span. |\n";
#undef HEAD
    struct fl_buf out;

    fl_buf_init(&out, 65536);
    ck_assert_int_eq(fl_conf_sections_reference(sections, &out), FL_OK);
    ck_assert_int_eq(fl_buf_add(&out, "", 1), FL_OK);
    ck_assert_str_eq((const char *)out.data, want);
    fl_buf_done(&out);
}

TEST_ROW(a_table_for_another_struct_is_our_own_bug, 6, 0, 0, 1)
{
    static const struct fl_conf_section wrong[] = {
        {.name = "", .specs = part_specs, .size = sizeof(struct part) + 8}, {.name = NULL}};
    struct conf conf;
    struct fl_conf_file *file = NULL;
    char path[64] = "/tmp/fl-conf-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "wait: 5s\n", 9), 9);
    /* Nothing of it is left when this test ends as it should. */
    ck_assert_int_eq(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(fl_conf_read(path, wrong, NULL, NULL, &conf, &file, NULL), FL_OK);
}

/* --- sections in sections, and maps with several values of a key --- */

struct inner {
    struct fl_opt_map labels;
};

struct nested {
    const struct part *part;
    const struct inner *inner;
};

static const struct fl_opt_spec inner_specs[] = {
    {FL_OPT(struct inner, MAP, labels), .flags = FL_OPT_MANY, .help = "Labels."},
    FL_OPT_END_OF(struct inner),
};

static const struct fl_conf_section nested_sections[] = {
    {FL_CONF_SECTION("part", part_specs, struct nested, part, struct part)},
    {FL_CONF_SECTION("part.inner", inner_specs, struct nested, inner, struct inner), .flags = 1024},
    {.name = NULL},
};

static int read_nested(const char *text, struct nested *conf, struct fl_conf_doc **doc,
                       struct fl_conf_file **ret, struct fl_err *err)
{
    struct fl_conf_part part = {0};

    ck_assert_int_eq(fl_conf_parse("some.yaml", text, strlen(text), doc, err), FL_OK);
    part.doc = *doc;
    part.map = fl_conf_root(*doc);
    return fl_conf_read_map(&part, nested_sections, NULL, conf, ret, err);
}

TEST(a_section_stands_in_another_one)
{
    struct nested conf;
    struct fl_conf_doc *doc = NULL;
    struct fl_conf_file *file = NULL;
    struct fl_err err = {0};
    const char *text = "part:\n  wait: 5s\n  inner: {labels: {site: [a, b], rack: c}}\n";
    char shown[64];

    ck_assert_msg(read_nested(text, &conf, &doc, &file, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(conf.part->wait_ms, 5000);
    ck_assert_uint_eq(conf.inner->labels.n, 3);
    ck_assert_str_eq(conf.inner->labels.list[1].key, "site");
    ck_assert_str_eq(conf.inner->labels.list[1].value, "b");
    ck_assert_str_eq(
        fl_options_show(fl_conf_file_options(file, 1), &inner_specs[0], shown, sizeof(shown)),
        "site=a,site=b,rack=c");
    ck_assert_str_eq(fl_conf_path(fl_conf_field(file, &conf.inner->labels)), "part.inner.labels");
    ck_assert_uint_eq(fl_conf_line(fl_conf_section(file, conf.inner)), 3);
    ck_assert_uint_eq(fl_conf_key_flags(nested_sections, "part.inner.labels"),
                      1024 | (unsigned)FL_OPT_MANY);
    fl_conf_file_free(file);
    fl_conf_free(doc);
}

TEST(what_stands_wrongly_in_an_inner_section_is_told_with_its_line)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"part:\n  inner: {label: {a: b}}\n", "some.yaml:2: key 'part.inner': unknown key 'label'"},
        {"part:\n  innner: {}\n", "some.yaml:2: key 'part': unknown key 'innner', did you mean "
                                  "'inner'?"},
        {"part:\n  inner: 3\n", "some.yaml:2: key 'part.inner': expected a section"},
        {"part:\n  inner: {labels: [a]}\n", "some.yaml:2: key 'part.inner.labels': expected a "
                                            "mapping of text to text or to a list of texts, found "
                                            "a list"},
        {"part:\n  inner: {labels: {a: [b, [c]]}}\n",
         "some.yaml:2: key 'part.inner.labels.a[1]': expected a text, found a list"},
        {"part:\n  inner: {labels: {a: []}}\n", "some.yaml:2: key 'part.inner.labels.a': expected "
                                                "a text or a list of texts, found an empty list"},
    };
    size_t i;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct nested conf;
        struct fl_conf_doc *doc = NULL;
        struct fl_conf_file *file = NULL;
        struct fl_err err = {0};

        ck_assert_msg(read_nested(rows[i].text, &conf, &doc, &file, &err) == FL_ECONF, "%s",
                      rows[i].text);
        ck_assert_msg(strstr(err.msg, rows[i].says) != NULL, "%s", err.msg);
        fl_conf_free(doc);
    }
}
