/*
 * Which units a file of another program has, by default and as its user says, and what of it is
 * passed over.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/model/units.h"
#include "tests/lib/suites.h"

TESTS_APART("each makes a folder from the template of the process");

static char dir[] = "/tmp/fl-test-units-XXXXXX";
static char path[128];

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/m.safetensors", dir);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

/* --- files --- */

static size_t bytes_of(const char *type)
{
    if (strcmp(type, "I64") == 0) {
        return 8;
    }
    return strcmp(type, "BOOL") == 0 || strcmp(type, "U8") == 0 ? 1 : 4;
}

/* "NAME DIMS" a tensor, with commas between dims; ":I64" behind the name is its type. */
static void write_tensor(const char *text, struct fl_buf *header, size_t *at)
{
    const char *shape = strchr(text, ' ') + 1;
    const char *colon = strchr(text, ':');
    char name[64] = "";
    char type[8] = "F32";
    const char *dim = shape;
    char *end;
    size_t bytes;

    (void)memcpy(name, text, (size_t)((colon != NULL ? colon : shape - 1) - text));
    if (colon != NULL) {
        (void)snprintf(type, sizeof(type), "%.*s", (int)(shape - 2 - colon), colon + 1);
    }
    bytes = bytes_of(type);
    do {
        bytes *= strtoul(dim, &end, 10);
        dim = end + 1;
    } while (*end == ',');
    ck_assert_int_eq(fl_buf_printf(header,
                                   "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":"
                                   "[%zu,%zu]}",
                                   *at > 0 ? "," : "", name, type, shape, *at, *at + bytes),
                     FL_OK);
    *at += bytes;
}

static void write_file(const char *const *tensors)
{
    struct fl_buf header;
    struct fl_buf file;
    uint8_t zero[64] = {0};
    uint64_t len;
    size_t at = 0;
    size_t i;

    fl_buf_init(&header, 1 << 16);
    fl_buf_init(&file, 1 << 20);
    ck_assert_int_eq(fl_buf_add(&header, "{", 1), FL_OK);
    for (i = 0; tensors[i] != NULL; i++) {
        write_tensor(tensors[i], &header, &at);
    }
    ck_assert_int_eq(fl_buf_add(&header, "}", 1), FL_OK);
    len = header.len;
    ck_assert_int_eq(fl_buf_add(&file, &len, sizeof(len)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&file, header.data, header.len), FL_OK);
    while (at > 0) {
        size_t n = at < sizeof(zero) ? at : sizeof(zero);

        ck_assert_int_eq(fl_buf_add(&file, zero, n), FL_OK);
        at -= n;
    }
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&header);
    fl_buf_done(&file);
}

static struct fl_layout *layout_of_file(const char *const *tensors)
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};

    write_file(tensors);
    ck_assert_msg(fl_st_layout(path, &layout, &err) == FL_OK, "%s", err.msg);
    return layout;
}

/* "unit: tensor tensor; unit: tensor" */
static const char *text_of(const struct fl_layout *layout)
{
    static char text[2048];
    size_t used = 0;
    size_t i;

    text[0] = '\0';
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, i);
        const struct fl_unit *u = fl_layout_unit(layout, t->unit);

        if (u->first_tensor == i) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:", i > 0 ? "; " : "",
                                     u->name);
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s", t->name);
        ck_assert_uint_lt(used, sizeof(text));
    }
    return text;
}

/* --- by default --- */

static const struct {
    const char *tensors[24];
    const char *units;
} by_default[] = {
    /* The order of a PyTorch state dict. */
    {{"c.0.weight 4,1,3,3", "c.0.bias 4", "c.1.weight 4", "c.1.bias 4", "c.1.running_mean 4",
      "c.1.running_var 4", "c.1.num_batches_tracked:I64 1", "fc.weight 2,4", "fc.bias 2"},
     "c.0: c.0.weight c.0.bias c.1.weight c.1.bias c.1.running_mean c.1.running_var; "
     "fc: fc.weight fc.bias"},
    /* Two after one layer, and one before all of them. */
    {{"n.weight 3", "n.running_mean 3", "a.weight 4,3", "b.running_mean 4", "d.running_var 4",
      "z.weight 1,4"},
     "n: n.weight n.running_mean; a: a.weight b.running_mean d.running_var; z: z.weight"},
    /* Other norms have no statistics, and are layers. */
    {{"l.weight 4,4", "l.bias 4", "norm.weight 4", "norm.bias 4", "k.weight 4,4", "a.bias 4"},
     "l: l.weight l.bias; norm: norm.weight norm.bias; k: k.weight; a: a.bias"},
    /* Sorted by name: the number says which convolution. */
    {{"bn1.bias 4", "bn1.running_mean 4", "bn2.bias 8", "bn2.running_mean 8", "conv1.weight 4,1",
      "conv2.weight 8,4", "fc.bias 2", "fc.weight 2,8"},
     "conv1: bn1.bias bn1.running_mean conv1.weight; conv2: bn2.bias bn2.running_mean "
     "conv2.weight; fc: fc.bias fc.weight"},
    /* Sorted by name, in a container with numbers: 9 before 10. */
    {{"f.10.bias 4", "f.10.running_mean 4", "f.2.bias 3", "f.2.weight 3,3", "f.9.bias 4",
      "f.9.weight 4,3"},
     "f.9: f.10.bias f.10.running_mean f.9.bias f.9.weight; f.2: f.2.bias f.2.weight"},
    /* Sorted, in blocks: each has its own. */
    {{"b.0.bn1.bias 4", "b.0.bn1.running_mean 4", "b.0.conv1.weight 4,4", "b.1.bn1.bias 4",
      "b.1.bn1.running_mean 4", "b.1.conv1.weight 4,4", "bn1.bias 4", "bn1.running_mean 4",
      "conv1.weight 4,1"},
     "b.0.conv1: b.0.bn1.bias b.0.bn1.running_mean b.0.conv1.weight; b.1.conv1: b.1.bn1.bias "
     "b.1.bn1.running_mean b.1.conv1.weight; conv1: bn1.bias bn1.running_mean conv1.weight"},
    /* Sorted, and nothing beside it is as wide: a unit of its own. */
    {{"a.weight 5,5", "b.bias 4", "b.running_mean 4", "b.weight 4"},
     "a: a.weight; b: b.bias b.running_mean b.weight"},
};

TEST_CASE("units", set_up, tear_down);

TEST_EACH(a_batch_norm_joins_the_layer_that_it_follows, ARRAY_LEN(by_default))
{
    struct fl_layout *layout = layout_of_file(by_default[_i].tensors);

    ck_assert_str_eq(text_of(layout), by_default[_i].units);
    fl_layout_free(layout);
}

TEST(whole_numbers_are_passed_over_and_named)
{
    static const char *const tensors[] = {"e.position_ids:I64 1,4",
                                          "e.weight 2,4",
                                          "m.mask:BOOL 3",
                                          "m.num_batches_tracked:I64 1",
                                          "m.a:U8 1",
                                          "m.b:I32 1",
                                          "m.c:I32 1",
                                          NULL};
    struct fl_layout *layout = layout_of_file(tensors);
    struct fl_layout *wants = NULL;
    static const char other[] = "unit e\ne.weight 2x4\nunit m\nm.a 1\n";
    struct fl_err err = {0};
    float params[9];
    char names[128];
    size_t n = 0;

    ck_assert_str_eq(text_of(layout), "e: e.weight");
    ck_assert_int_eq(fl_st_load(path, layout, params, NULL), FL_OK);
    ck_assert_int_eq(fl_st_constants(path, names, sizeof(names), &n, NULL), FL_OK);
    ck_assert_uint_eq(n, 5);
    ck_assert_str_eq(names, "'e.position_ids', 'm.mask', 'm.a', 'm.b' and 1 more");
    /* What has to be trained is not passed over. */
    ck_assert_int_eq(fl_layout_from_text(other, strlen(other), &wants, NULL), FL_OK);
    ck_assert_int_eq(fl_st_load(path, wants, params, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(strstr(err.msg, "'m.a' contains integers"));
    fl_layout_free(wants);
    fl_layout_free(layout);
}

/* --- by patterns --- */

static const char net[] = "unit t.wte\nt.wte.weight 9x4\n"
                          "unit t.h.0.attn\nt.h.0.attn.weight 4x4\nt.h.0.attn.bias 4\n"
                          "unit t.h.0.mlp\nt.h.0.mlp.weight 4x4\n"
                          "unit t.h.1.attn\nt.h.1.attn.weight 4x4\nt.h.1.attn.bias 4\n"
                          "unit t.h.1.mlp\nt.h.1.mlp.weight 4x4\n"
                          "unit head\nhead.weight 9x4\n";

static struct fl_layout *net_layout(void)
{
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_from_text(net, strlen(net), &layout, NULL), FL_OK);
    return layout;
}

static const struct {
    const char *patterns[4];
    const char *units;
} wishes[] = {
    {{"t.h.{}.*"},
     "t.wte: t.wte.weight; t.h.0: t.h.0.attn.weight t.h.0.attn.bias t.h.0.mlp.weight; "
     "t.h.1: t.h.1.attn.weight t.h.1.attn.bias t.h.1.mlp.weight; head: head.weight"},
    /* The first that matches counts, and names are given. */
    {{"ends=head.*", "block{}=t.h.{}.*", "t.*"},
     "t: t.wte.weight; block0: t.h.0.attn.weight t.h.0.attn.bias t.h.0.mlp.weight; "
     "block1: t.h.1.attn.weight t.h.1.attn.bias t.h.1.mlp.weight; ends: head.weight"},
    /* Tensors that lie apart come together, at the place of the first. */
    {{"attention=*.attn.*"},
     "t.wte: t.wte.weight; attention: t.h.0.attn.weight t.h.0.attn.bias t.h.1.attn.weight "
     "t.h.1.attn.bias; t.h.0.mlp: t.h.0.mlp.weight; t.h.1.mlp: t.h.1.mlp.weight; head: "
     "head.weight"},
    {{"{}-{}=t.h.{}.{}.*"},
     "t.wte: t.wte.weight; 0-attn: t.h.0.attn.weight t.h.0.attn.bias; 0-mlp: t.h.0.mlp.weight; "
     "1-attn: t.h.1.attn.weight t.h.1.attn.bias; 1-mlp: t.h.1.mlp.weight; head: head.weight"},
};

static size_t count_of(const char *const *patterns)
{
    size_t n = 0;

    while (n < 4 && patterns[n] != NULL) {
        n++;
    }
    return n;
}

TEST_EACH(patterns_say_what_is_a_unit, ARRAY_LEN(wishes))
{
    struct fl_layout *from = net_layout();
    struct fl_layout *made = NULL;
    struct fl_err err = {0};
    size_t bad = 0;

    ck_assert_msg(fl_layout_regroup(from, wishes[_i].patterns, count_of(wishes[_i].patterns), &made,
                                    &bad, &err) == FL_OK,
                  "%s", err.msg);
    ck_assert_str_eq(text_of(made), wishes[_i].units);
    ck_assert(fl_layout_same_tensors(from, made));
    ck_assert(!fl_layout_equal(from, made));
    fl_layout_free(made);
    fl_layout_free(from);
}

static const struct {
    const char *patterns[4];
    size_t bad;
    const char *words;
} slips[] = {
    {{"t.h.{}.*", "x.*"}, 1, "'x.*' matches none of the 8 tensors; the first one is 't.wte"},
    {{"t.*", "t.h.*"}, 1, "all matches of 't.h.*' among the 8 tensors belong to earlier patterns"},
    {{"*.weight"}, 0, "gives no valid unit name"},
    {{"{}{}=t.h.{}.*"}, 0, "gives no valid unit name"},
    {{"a b=t.*"}, 0, "gives no valid unit name"},
    {{""}, 0, "expected a pattern of 1 to 256 bytes"},
    {{"x={}.{}.{}.{}.{}.{}.{}.{}.{}"}, 0, "has 9 {}, the limit is 8"},
    {{"a=head.*", "a=t.*"}, 1, "unit 'a' is also made by an earlier pattern"},
    {{"t.h.0.attn=*.bias"}, 0, "has the name of an existing unit with other tensors"},
};

TEST_EACH(a_pattern_that_makes_no_unit_is_named, ARRAY_LEN(slips))
{
    struct fl_layout *from = net_layout();
    struct fl_layout *made = NULL;
    struct fl_err err = {0};
    size_t bad = 99;

    ck_assert_int_eq(fl_layout_regroup(from, slips[_i].patterns, count_of(slips[_i].patterns),
                                       &made, &bad, &err),
                     FL_EINVAL);
    ck_assert_msg(strstr(err.msg, slips[_i].words) != NULL, "'%s' does not say '%s'", err.msg,
                  slips[_i].words);
    ck_assert_uint_eq(bad, slips[_i].bad);
    fl_layout_free(from);
}

TEST(a_pattern_takes_no_longer_than_both_lengths)
{
    static const char slow[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
    char name[FL_NAME_MAX];

    (void)memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert(!fl_pattern_matches(slow, name));
    ck_assert(fl_pattern_matches("*a*", name));
    ck_assert(fl_pattern_matches("{}", name));
    ck_assert(!fl_pattern_matches("{}.{}", name));
    ck_assert(!fl_pattern_matches("{}", "a.b"));
    ck_assert(fl_pattern_matches("*", ""));
}

TEST(more_patterns_than_are_possible_are_refused)
{
    const char *many[FL_UNITS_MAX_PATTERNS + 1];
    struct fl_layout *from = net_layout();
    struct fl_layout *made = NULL;
    size_t bad = 0;
    size_t i;

    for (i = 0; i < FL_UNITS_MAX_PATTERNS + 1; i++) {
        many[i] = "t.*";
    }
    ck_assert_int_eq(fl_layout_regroup(from, many, FL_UNITS_MAX_PATTERNS + 1, &made, &bad, NULL),
                     FL_ELIMIT);
    fl_layout_free(from);
}

TEST(the_table_has_layers_with_their_tensors_and_parameters)
{
    static const char text[] = "unit a\na.w 2x3\nb.running_mean 2 buffer local\nunit long.name\n"
                               "long.name.w 7\n";
    struct fl_layout *layout = NULL;
    struct fl_buf table;

    ck_assert_int_eq(fl_layout_from_text(text, strlen(text), &layout, NULL), FL_OK);
    fl_buf_init(&table, 4096);
    ck_assert_int_eq(fl_layout_table(layout, &table), FL_OK);
    ck_assert_int_eq(fl_buf_add(&table, "", 1), FL_OK);
    ck_assert_str_eq((const char *)table.data, "layer      tensors  parameters  on clients\n"
                                               "a                2           8           2\n"
                                               "long.name        1           7           0\n");
    fl_buf_done(&table);
    fl_layout_free(layout);
}
