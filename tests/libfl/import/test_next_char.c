/* Next-character prediction from a text. */
#include <unistd.h>

#include "tests/lib/suites.h"
#include "tests/libfl/import/import_fixture.h"

static struct import_fixture f;

static void setup(void)
{
    fixture_up(&f);
    f.conf.window = 3;
}

static void teardown(void)
{
    fixture_down(&f);
}

TEST_CASE("texts", setup, teardown);

TEST(a_sample_is_a_window_and_its_class_the_next_character)
{
    const struct fl_dataset *ds;

    t_text(f.dir, "train.txt", "abcab");
    fixture_read(&f);
    ds = f.got.train;
    ck_assert(ds->n == 2 && ds->dim == 3 && ds->n_dims == 1 && ds->classes == 3);
    ck_assert_mem_eq(ds->x, ((float[]){0, 1, 2, 1, 2, 0}), 6 * sizeof(float));
    ck_assert_mem_eq(ds->y, ((int32_t[]){0, 1}), 2 * sizeof(int32_t));
    f.conf.stride = 2;
    fixture_read(&f);
    ck_assert_uint_eq(f.got.train->n, 1);
}

TEST(characters_are_code_points_in_their_order)
{
    t_text(f.dir, "train.txt", "\xef\xbb\xbfzö\xf0\x9f\x90\x88\n");
    fixture_read(&f);
    ck_assert_uint_eq(f.got.schema.labels.n, 4);
    ck_assert_str_eq(f.got.schema.labels.text[0], "\n");
    ck_assert_str_eq(f.got.schema.labels.text[2], "ö");
    ck_assert_str_eq(f.got.schema.labels.text[3], "\xf0\x9f\x90\x88");
    ck_assert_mem_eq(f.got.train->x, ((float[]){1, 2, 3}), 3 * sizeof(float));
}

TEST(given_characters_have_the_given_order)
{
    t_text(f.dir, "train.txt", "abca");
    f.conf.characters = "xcba";
    fixture_read(&f);
    ck_assert(f.got.train->classes == 4 && f.got.train->y[0] == 3);
    ck_assert_mem_eq(f.got.train->x, ((float[]){3, 2, 1}), 3 * sizeof(float));
}

TEST(an_unknown_character_is_named_with_line_and_column)
{
    t_text(f.dir, "train.txt", "ab\nab\n");
    t_text(f.dir, "test.txt", "ab\nbäa");
    fixture_refused(&f, FL_ERANGE, "test.txt",
                    ", line 2, column 2: expected one of the 3 known characters, found U+00E4");
}

TEST(a_nul_or_a_byte_that_is_not_utf8_is_named_with_line_and_column)
{
    t_write(f.dir, "train.txt", "ab\na\0bcd", 8);
    fixture_refused(&f, FL_EFORMAT, "train.txt",
                    ", line 2, column 2: expected text in UTF-8, found byte 0x00, which no text "
                    "has");
    t_text(f.dir, "train.txt", "ö\nöö\xff");
    fixture_refused(&f, FL_EFORMAT, "train.txt",
                    ", line 2, column 3: expected text in UTF-8, found byte 0xff");
}

TEST(a_text_that_is_no_longer_than_the_window_is_refused)
{
    t_text(f.dir, "train.txt", "abc");
    fixture_refused(&f, FL_ESHAPE, "train.txt",
                    ": expected more than a window of 3 characters, found 3");
    t_text(f.dir, "train.txt", "");
    fixture_refused(&f, FL_EFORMAT, "train.txt", " is empty");
}

TEST(a_packed_text_is_read_and_a_cut_one_refused)
{
    char path[T_PATH];

    t_write(f.dir, "train.txt.gz", "abcab", 5);
    fixture_read(&f);
    ck_assert_uint_eq(f.got.train->n, 2);
    ck_assert_int_eq(truncate(t_path(path, f.dir, "train.txt.gz"), 20), 0);
    fixture_refused(&f, FL_EFORMAT, "train.txt.gz", ": the gzip stream is cut short");
}
