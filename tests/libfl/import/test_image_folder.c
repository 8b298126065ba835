/* Pictures in class folders. */
#include "tests/lib/suites.h"
#include "tests/libfl/import/import_fixture.h"

static struct import_fixture f;

static void setup(void)
{
    fixture_up(&f);
    fixture_picture(&f, "train/dog/b.png", PNG_FORMAT_RGB, 3, 2);
    fixture_picture(&f, "train/dog/a.PNG", PNG_FORMAT_RGB, 3, 2);
    fixture_picture(&f, "train/cat/c.png", PNG_FORMAT_RGB, 3, 2);
    fixture_picture(&f, "test/dog/d.png", PNG_FORMAT_RGB, 3, 2);
}

static void teardown(void)
{
    fixture_down(&f);
}

TEST_CASE("folders", setup, teardown);

TEST(classes_are_numbered_by_the_order_of_their_folders)
{
    t_text(f.dir, "train/.hidden", "not read");
    fixture_read(&f);
    ck_assert(f.got.train->n == 3 && f.got.train->dims[0] == 3 && f.got.train->dims[1] == 2 &&
              f.got.train->dims[2] == 3);
    ck_assert_mem_eq(f.got.train->y, ((int32_t[]){0, 1, 1}), 3 * sizeof(int32_t));
    ck_assert_str_eq(f.got.schema.labels.text[0], "cat");
    ck_assert(f.got.test->n == 1 && f.got.test->y[0] == 1 && f.got.test->classes == 2);
    ck_assert_uint_eq(((uint8_t *)f.got.train->x)[6], 11); /* the first green value */
}

TEST(a_given_schema_decides_numbers_and_shape)
{
    struct fl_schema schema = {.kind = FL_IMPORT_IMAGES, .dims = {3, 2, 3}};
    uint32_t number;

    ck_assert_int_eq(fl_words_add(&schema.labels, "dog", 3, &number), FL_OK);
    ck_assert_int_eq(fl_words_add(&schema.labels, "cat", 3, &number), FL_OK);
    f.conf.schema = &schema;
    fixture_read(&f);
    ck_assert_mem_eq(f.got.train->y, ((int32_t[]){1, 0, 0}), 3 * sizeof(int32_t));
    schema.dims[2] = 4;
    fixture_refused(&f, FL_ESHAPE, "train/cat/c.png",
                    ": expected a picture of 2 x 4 pixels and 3 channels as the schema has, found "
                    "2 x 3 and 3");
    fl_schema_done(&schema);
}

TEST(a_picture_of_another_size_names_both_files)
{
    fixture_picture(&f, "train/dog/z.png", PNG_FORMAT_RGB, 4, 2);
    fixture_refused(&f, FL_ESHAPE, "train/dog/z.png",
                    ": expected a picture of 2 x 3 pixels and 3 channels as that of ");
    ck_assert_ptr_nonnull(strstr(f.err.msg, "train/cat/c.png, found 2 x 4 and 3"));
}

TEST(a_grey_picture_among_colours_is_refused_unless_channels_are_converted)
{
    fixture_picture(&f, "train/dog/z.png", PNG_FORMAT_GRAY, 3, 2);
    fixture_refused(&f, FL_ESHAPE, "train/dog/z.png", ": expected");
    ck_assert_ptr_nonnull(strstr(f.err.msg, "the option channels: 1 or 3 converts all pictures"));
    f.conf.channels = 1;
    fixture_read(&f);
    ck_assert(f.got.train->n == 4 && f.got.train->dims[0] == 1);
}

TEST(a_file_that_is_no_picture_is_named)
{
    t_text(f.dir, "train/cat/x.png", "no picture");
    fixture_refused(&f, FL_EFORMAT, "train/cat/x.png",
                    ": expected a PNG or JPEG picture, found neither");
    ck_assert_int_eq(fl_fs_remove(t_path((char[T_PATH]){0}, f.dir, "train/cat/x.png")), FL_OK);
    t_text(f.dir, "train/cat/list.txt", "no picture");
    fixture_refused(&f, FL_EFORMAT, "train/cat/list.txt",
                    ": expected the name of a picture, ending with .png, .jpg or .jpeg");
}

TEST(one_class_or_an_empty_one_is_refused)
{
    char path[T_PATH];

    ck_assert_int_eq(mkdir(t_path(path, f.dir, "train/elk"), 0777), 0);
    fixture_refused(&f, FL_EFORMAT, "train/elk", ": expected PNG or JPEG pictures of a class");
    ck_assert_int_eq(fl_fs_remove_tree(path, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_remove_tree(t_path(path, f.dir, "train/dog"), NULL), FL_OK);
    fixture_refused(&f, FL_EFORMAT, "train",
                    ": expected a folder for each of at least two classes, found 1: cat");
}

TEST(a_file_beside_the_class_folders_is_refused)
{
    t_text(f.dir, "train/readme", "text");
    fixture_refused(&f, FL_EFORMAT, "train/readme", ": expected a folder for each class");
}

TEST(a_class_that_only_the_test_part_has_is_refused)
{
    fixture_picture(&f, "test/elk/e.png", PNG_FORMAT_RGB, 3, 2);
    fixture_refused(&f, FL_ERANGE, "test/elk", ": class 'elk' is not one of the 2 classes");
}

TEST(pictures_beside_a_table_are_refused)
{
    t_text(f.dir, "train.csv", "1,2\n");
    ck_assert_int_eq(fl_import_open(f.dir, &f.conf, &f.got, &f.err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "contains data of two kinds, images and table"));
}
