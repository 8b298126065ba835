#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/model/layout.h"
#include "tests/lib/suites.h"

static const char mlp_text[] = "unit fc1\n"
                               "fc1.weight 200x784\n"
                               "fc1.bias 200\n"
                               "unit bn\n"
                               "bn.weight 200\n"
                               "bn.running_mean 200 buffer\n"
                               "bn.scale scalar\n";

static void must_add(struct fl_layout *layout, const char *unit, const char *tensor, size_t rows,
                     size_t cols, bool buffer)
{
    const size_t dims[2] = {rows, cols};
    struct fl_err err = {0};

    ck_assert_msg(fl_layout_add(layout, unit, tensor, dims,
                                cols != 0   ? 2
                                : rows != 0 ? 1
                                            : 0,
                                buffer, &err) == FL_OK,
                  "%s", err.msg);
}

static struct fl_layout *mlp_layout(void)
{
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    must_add(layout, "fc1", "fc1.weight", 200, 784, false);
    must_add(layout, "fc1", "fc1.bias", 200, 0, false);
    must_add(layout, "bn", "bn.weight", 200, 0, false);
    must_add(layout, "bn", "bn.running_mean", 200, 0, true);
    must_add(layout, "bn", "bn.scale", 0, 0, false);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

TEST(units_and_offsets_follow_the_order_of_adding)
{
    struct fl_layout *layout = mlp_layout();
    const struct fl_unit *u = fl_layout_unit(layout, 1);

    ck_assert_uint_eq(fl_layout_units(layout), 2);
    ck_assert_uint_eq(fl_layout_tensors(layout), 5);
    ck_assert_uint_eq(fl_layout_count(layout), 200 * 784 + 200 * 3 + 1);
    ck_assert_uint_eq(fl_layout_trainable(layout), 200 * 784 + 200 * 2 + 1);
    ck_assert_str_eq(u->name, "bn");
    ck_assert_uint_eq(u->first_tensor, 2);
    ck_assert_uint_eq(u->n_tensors, 3);
    ck_assert_uint_eq(u->offset, 200 * 784 + 200);
    ck_assert_uint_eq(u->count, 401);
    ck_assert_uint_eq(u->n_trainable, 201);
    ck_assert_uint_eq(u->n_buffers, 200);
    ck_assert_uint_eq(fl_layout_tensor(layout, 4)->offset, 200 * 784 + 600);
    ck_assert_uint_eq(fl_layout_tensor(layout, 4)->count, 1);
    ck_assert_uint_eq(fl_layout_tensor(layout, 3)->unit, 1);
    ck_assert_ptr_eq(fl_layout_find(layout, "bn.weight"), fl_layout_tensor(layout, 2));
    ck_assert_ptr_null(fl_layout_find(layout, "bn"));
    fl_layout_free(layout);
}

TEST(the_digest_is_the_hash_of_the_documented_text)
{
    struct fl_layout *layout = mlp_layout();
    uint8_t digest[32];
    char hex[65];

    ck_assert_int_eq(fl_sha256(mlp_text, strlen(mlp_text), digest), FL_OK);
    ck_assert_mem_eq(fl_layout_digest(layout), digest, sizeof(digest));
    /* Recorded: a change here breaks every running federation. */
    ck_assert_str_eq(fl_hex(hex, fl_layout_digest(layout), FL_DIGEST_SIZE),
                     "29576677d373f36ba7244365310a71bb545dca7ce46f87950ebf901425e2b7f0");
    fl_layout_free(layout);
}

TEST(a_layout_survives_its_text)
{
    struct fl_layout *layout = mlp_layout();
    struct fl_layout *again = NULL;
    struct fl_buf text;

    ck_assert_int_eq(fl_layout_text(layout, &text), FL_OK);
    ck_assert_uint_eq(text.len, strlen(mlp_text));
    ck_assert_mem_eq(text.data, mlp_text, text.len);
    ck_assert_int_eq(fl_layout_from_text((const char *)text.data, text.len, &again, NULL), FL_OK);
    ck_assert(fl_layout_equal(layout, again));
    ck_assert_uint_eq(fl_layout_trainable(again), fl_layout_trainable(layout));
    fl_buf_done(&text);
    fl_layout_free(layout);
    fl_layout_free(again);
}

/* fc1.weight 2x2 and fc1.bias 2, bn.weight 2, bn.running_mean 2, fc2.weight 2 */
static const char local_text[] = "unit fc1\n"
                                 "fc1.weight 2x2\n"
                                 "fc1.bias 2\n"
                                 "bn.weight 2 local\n"
                                 "bn.running_mean 2 buffer local\n"
                                 "unit fc2\n"
                                 "fc2.weight 2\n";

static bool marks_norms(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)layout;
    return strncmp(tensor->name, "bn.", 3) == 0;
}

TEST(what_is_local_counts_in_no_norm_and_is_part_of_the_digest)
{
    const float zeros[10] = {0};
    const float moved[10] = {0, 3, 0, 0, 4, 0, 100, 100, 100, 100};
    struct fl_layout *layout = NULL;
    struct fl_layout *plain = NULL;
    struct fl_layout *marked = NULL;

    ck_assert_int_eq(fl_layout_from_text(local_text, strlen(local_text), &layout, NULL), FL_OK);
    ck_assert_uint_eq(fl_layout_local(layout), 4);
    ck_assert_uint_eq(fl_layout_trainable(layout), 8);
    ck_assert_uint_eq(fl_layout_unit(layout, 0)->n_trainable, 6);
    ck_assert_uint_eq(fl_layout_unit(layout, 0)->n_buffers, 4);
    ck_assert_uint_eq(fl_layout_unit(layout, 0)->n_local, 4);
    ck_assert_double_eq(fl_unit_distance(layout, 0, moved, zeros), 5);
    /* Without the marks it is the same shape and another layout; with them, the same again. */
    ck_assert_int_eq(fl_layout_copy(layout, NULL, NULL, &plain, NULL), FL_OK);
    ck_assert_uint_eq(fl_layout_local(plain), 0);
    ck_assert(!fl_layout_equal(plain, layout));
    ck_assert_mem_eq(fl_layout_shape_digest(plain), fl_layout_digest(plain), FL_DIGEST_SIZE);
    ck_assert_mem_eq(fl_layout_shape_digest(layout), fl_layout_digest(plain), FL_DIGEST_SIZE);
    ck_assert_int_eq(fl_layout_copy(plain, marks_norms, NULL, &marked, NULL), FL_OK);
    ck_assert(fl_layout_equal(marked, layout));
    fl_layout_free(layout);
    fl_layout_free(plain);
    fl_layout_free(marked);
}

static const struct {
    const char *text;
    int code;
    const char *words;
} bad_texts[] = {
    {"unit a\na.w 2 local buffer\n", FL_EFORMAT, "line 2: expected"},
    {"unit a\na.w 2 buffer local x\n", FL_EFORMAT, "line 2: expected"},
    {"", FL_EINVAL, "no tensors"},
    {"unit a\n", FL_EINVAL, "no tensors"},
    {"unit a\na.w 3", FL_EFORMAT, "line 2: too long or not ended"},
    {"a.w 3\n", FL_EINVAL, "line 1"},
    {"unit a\na.w\n", FL_EFORMAT, "line 2: expected 'unit NAME'"},
    {"unit a\na.w 3x\n", FL_EFORMAT, "line 2: expected"},
    {"unit a\na.w 3x-1\n", FL_EFORMAT, "line 2: expected"},
    {"unit a\na.w 1x1x1x1x1x1x1x1x1\n", FL_EFORMAT, "line 2: expected"},
    {"unit a\na.w 3 trainable\n", FL_EFORMAT, "line 2: expected"},
    {"unit a\na.w 0\n", FL_EINVAL, "dimension 1 is zero"},
    {"unit a\na.w 3\na.w 3\n", FL_EINVAL, "line 3: tensor 'a.w' is listed twice"},
    {"unit a\na.w 3\nunit b\nb.w 3\nunit a\na.v 3\n", FL_EINVAL, "unit 'a' is listed twice"},
    {"unit a\na.w 03\n", FL_EFORMAT, "not canonical"},
    {"unit a\nunit a\na.w 3\n", FL_EFORMAT, "repeated or empty units"},
    {"unit a\na.w 99999999999999999999\n", FL_EFORMAT, "line 2"},
    {"unit a\na.w 65536x65536x65536\n", FL_ELIMIT, "more than 2^"},
    {"unit a\na.w 16384x16384\na.v 16384x16384x255\na.u 1\n", FL_ELIMIT, "more than 2^"},
    {"unit a/b\na.w 3\n", FL_EINVAL, "invalid unit name"},
    {"unit a\na$w 3\n", FL_EINVAL, "invalid tensor name"},
};

TEST_EACH(a_bad_text_is_refused_with_its_line, ARRAY_LEN(bad_texts))
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(
        fl_layout_from_text(bad_texts[_i].text, strlen(bad_texts[_i].text), &layout, &err),
        bad_texts[_i].code);
    ck_assert_ptr_null(layout);
    ck_assert_msg(strstr(err.msg, bad_texts[_i].words) != NULL, "'%s' does not say '%s'", err.msg,
                  bad_texts[_i].words);
    /* The same without anybody to tell. */
    ck_assert_int_eq(
        fl_layout_from_text(bad_texts[_i].text, strlen(bad_texts[_i].text), &layout, NULL),
        bad_texts[_i].code);
}

TEST(limits_hold_and_a_refused_tensor_changes_nothing)
{
    const size_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};
    char name[32];
    size_t i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "a", "unit", dims, 1, false, &err), FL_EINVAL);
    ck_assert_int_eq(fl_layout_add(layout, "a", "w", dims, 9, false, &err), FL_ELIMIT);
    ck_assert_uint_eq(fl_layout_units(layout), 0);
    for (i = 0; i < FL_LAYOUT_MAX_TENSORS; i++) {
        (void)snprintf(name, sizeof(name), "t%zu", i);
        ck_assert_int_eq(fl_layout_add(layout, "a", name, dims, 1, i % 2 == 1, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_layout_add(layout, "a", "more", dims, 1, false, &err), FL_ELIMIT);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_uint_eq(fl_layout_count(layout), FL_LAYOUT_MAX_TENSORS);
    ck_assert_uint_eq(fl_layout_trainable(layout), FL_LAYOUT_MAX_TENSORS / 2);
    fl_layout_free(layout);
    fl_layout_free(NULL);
}

static const struct {
    const char *text;
    const char *words;
} diffs[] = {
    {"unit a\na.w 3x2\na.b 3\nunit b\nb.w 1\n", "no difference"},
    {"unit a\na.w 3x2\na.b 3\n", "1 units, expected 2"},
    {"unit c\na.w 3x2\na.b 3\nunit b\nb.w 1\n", "unit 1 is 'c', expected 'a'"},
    {"unit a\na.w 3x4\na.b 3\nunit b\nb.w 1\n", "unit 1 'a': tensor 'a.w' is 3x4, expected 3x2"},
    {"unit a\na.w 3x2\na.c 3\nunit b\nb.w 1\n", "unit 1 'a': tensor 2 is 'a.c', expected 'a.b'"},
    {"unit a\na.w 3x2\na.b scalar\nunit b\nb.w 1\n", "'a.b' is scalar, expected 3"},
    {"unit a\na.w 3x2\nunit b\nb.w 1\n", "unit 1 'a' has 1 tensors, expected 2"},
    {"unit a\na.w 3x2\na.b 3\nunit b\nb.w 1 buffer\n", "'b.w' is a buffer, expected trainable"},
};

TEST_EACH(the_first_difference_is_named, ARRAY_LEN(diffs))
{
    struct fl_layout *have = NULL;
    struct fl_layout *want = NULL;
    char text[256];

    ck_assert_int_eq(fl_layout_from_text(diffs[0].text, strlen(diffs[0].text), &want, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_from_text(diffs[_i].text, strlen(diffs[_i].text), &have, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_layout_equal(have, want), _i == 0);
    fl_layout_diff(have, want, text, sizeof(text));
    ck_assert_msg(strstr(text, diffs[_i].words) != NULL, "'%s' does not say '%s'", text,
                  diffs[_i].words);
    fl_layout_free(have);
    fl_layout_free(want);
}

TEST(the_distance_of_a_unit_leaves_buffers_out)
{
    static const char text[] = "unit a\na.w 2\na.m 2 buffer\na.b 1\nunit b\nb.w 1\n";
    const float x[] = {1.0f, 2.0f, 100.0f, 100.0f, 3.0f, 9.0f};
    const float y[] = {4.0f, 2.0f, -5.0f, -5.0f, 7.0f, 10.0f};
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_from_text(text, strlen(text), &layout, NULL), FL_OK);
    ck_assert_double_eq(fl_unit_distance(layout, 0, x, y), 5.0);
    ck_assert_double_eq(fl_unit_distance(layout, 1, x, y), 1.0);
    fl_layout_free(layout);
}

TEST(hex_and_hash_are_the_standard_ones)
{
    uint8_t digest[32];
    uint8_t a[24];
    uint8_t b[24];
    char hex[65];

    ck_assert_int_eq(fl_sha256("abc", 3, digest), FL_OK);
    ck_assert_str_eq(fl_hex(hex, digest, 32),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(fl_random_bytes(a, sizeof(a)), FL_OK);
    ck_assert_int_eq(fl_random_bytes(b, sizeof(b)), FL_OK);
    ck_assert_mem_ne(a, b, sizeof(a));
}
