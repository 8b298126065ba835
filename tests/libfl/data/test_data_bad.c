/* Bad input: every message names the file, what was expected and what was found. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/data/dataset.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"
#define NPY_X  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n"
#define NPY_Y  "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n"

static char dir[T_PATH];

static void setup(void)
{
    t_dir(dir);
}

static void teardown(void)
{
    t_dir_remove(dir);
}

/* Open dir/train and find `code` and the file name with the rest of the message. */
static void expect(int code, const char *file, const char *rest)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    char want[T_PATH + 512];
    int rv = fl_dataset_open(dir, "train", &ds, &err);

    (void)snprintf(want, sizeof(want), "'%s/%s'%s", dir, file, rest);
    ck_assert_msg(rv == code, "code %d (%s), expected %d", rv, err.msg, code);
    ck_assert_ptr_null(ds);
    ck_assert_msg(strstr(err.msg, want) != NULL, "message \"%s\" lacks \"%s\"", err.msg, want);
}

static void write_idx(uint32_t magic, uint32_t n, uint32_t rows, uint32_t cols, size_t len)
{
    uint8_t zeros[256] = {0};

    t_idx(dir, IMAGES, magic, (const uint32_t[]){n, rows, cols}, 3, zeros, len);
}

static void write_labels(uint32_t magic, uint32_t n, size_t len)
{
    uint8_t zeros[64] = {0};

    t_idx(dir, LABELS, magic, &n, 1, zeros, len);
}

TEST_CASE("messages", setup, teardown);

TEST(idx_with_the_wrong_magic_is_refused)
{
    write_idx(0x801, 2, 2, 2, 8);
    write_labels(0x801, 2, 2);
    expect(FL_EFORMAT, IMAGES, ": wrong magic: expected 0x00000803 (images), found 0x00000801");
    write_idx(0x803, 2, 2, 2, 8);
    write_labels(0x0d01, 2, 2);
    expect(FL_EFORMAT, LABELS, ": wrong magic: expected 0x00000801 (labels), found 0x00000d01");
}

TEST(truncated_idx_says_how_many_bytes_there_should_be)
{
    write_idx(0x803, 2, 2, 2, 7);
    write_labels(0x801, 2, 2);
    expect(FL_EFORMAT, IMAGES, ": truncated: expected 24 bytes, found 23");
    write_idx(0x803, 2, 2, 2, 8);
    write_labels(0x801, 2, 1);
    expect(FL_EFORMAT, LABELS, ": truncated: expected 10 bytes, found 9");
    t_write(dir, LABELS, "\0\0\x08\x01\0", 5);
    expect(FL_EFORMAT, LABELS, ": truncated: expected 8 bytes, found 5");
    t_write(dir, LABELS, "\0\0", 2);
    expect(FL_EFORMAT, LABELS, ": truncated: expected 8 bytes, found 2");
}

TEST(idx_with_bytes_after_the_last_sample_is_refused)
{
    write_idx(0x803, 2, 2, 2, 9);
    write_labels(0x801, 2, 2);
    expect(FL_EFORMAT, IMAGES, ": expected 24 bytes, found at least 1 more");
}

TEST(counts_of_images_and_labels_must_agree)
{
    write_idx(0x803, 2, 2, 2, 8);
    write_labels(0x801, 3, 3);
    expect(FL_ESHAPE, IMAGES, " holds 2 images but '");
    expect(FL_ESHAPE, LABELS, " holds 3 labels");
}

TEST(an_empty_file_or_set_is_refused)
{
    write_idx(0x803, 0, 2, 2, 0);
    write_labels(0x801, 0, 0);
    expect(FL_EFORMAT, IMAGES, ": holds no sample");
    write_idx(0x803, 2, 0, 2, 0);
    expect(FL_EFORMAT, IMAGES, ": holds samples without values");
    t_write(dir, IMAGES, "", 0);
    expect(FL_EFORMAT, IMAGES, " is empty");
}

TEST(half_a_pair_names_the_missing_half)
{
    write_idx(0x803, 1, 1, 1, 1);
    expect(FL_ENOENT, IMAGES, " exists but '");
    expect(FL_ENOENT, LABELS, " is missing");
}

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* The process may have 512 MB; headers below promise more. AddressSanitizer needs more itself. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
    struct rlimit lim = {.rlim_cur = (rlim_t)1 << 29, .rlim_max = (rlim_t)1 << 29};

    ck_assert_int_eq(setrlimit(RLIMIT_DATA, &lim), 0);
#endif
}

TEST(a_header_that_lies_allocates_nothing)
{
    uint8_t zeros[64] = {0};
    char path[T_PATH];

    limit_memory();
    write_labels(0x801, 2, 2);
    write_idx(0x803, 2, 65535, 65535, 8);
    expect(FL_ELIMIT, IMAGES, ": expected at most 16777216 values a sample, found more");
    write_idx(0x803, 0x80000000u, 4000, 1000, 8);
    expect(FL_ELIMIT, IMAGES, ": expected at most 68719476736 bytes of features, found");
    write_idx(0x803, 0x80000001u, 1, 1, 8);
    expect(FL_ELIMIT, IMAGES, ": expected at most 2147483648 samples, found 2147483649");
    write_labels(0x801, 16000, 2);
    write_idx(0x803, 16000, 1000, 1000, 8);
    expect(FL_EFORMAT, LABELS, ": truncated: expected 16008 bytes, found 10");
    write_labels(0x801, 40, 40);
    write_idx(0x803, 40, 4000, 4000, 8);
    expect(FL_EFORMAT, IMAGES, ": truncated: expected 640000016 bytes, found 24");
    /* Packed, the size is not known: what is read grows with what comes. */
    ck_assert_int_eq(unlink(t_path(path, dir, IMAGES)), 0);
    t_idx(dir, IMAGES ".gz", 0x803, (const uint32_t[]){40, 4000, 4000}, 3, zeros, 8);
    expect(FL_EFORMAT, IMAGES ".gz", ": truncated: expected 640000016 bytes unpacked, found 24");
}

static void put_raw(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

TEST(a_gzip_file_cut_short_or_damaged_is_noticed)
{
    uint8_t noise[4096];
    struct fl_buf buf;
    uint32_t seed = 1;
    char path[T_PATH];
    size_t i;

    for (i = 0; i < sizeof(noise); i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (uint8_t)(seed >> 24);
    }
    write_labels(0x801, 16, 16);
    t_idx(dir, IMAGES ".gz", 0x803, (const uint32_t[]){16, 16, 16}, 3, noise, sizeof(noise));
    ck_assert_int_eq(fl_fs_read(t_path(path, dir, IMAGES ".gz"), 1 << 20, &buf, NULL), FL_OK);
    put_raw(path, buf.data, 2000);
    expect(FL_EFORMAT, IMAGES ".gz", ": truncated: expected 4112 bytes unpacked, found ");
    buf.data[buf.len - 6] ^= 1; /* in the checksum */
    put_raw(path, buf.data, buf.len);
    expect(FL_EFORMAT, IMAGES ".gz", ": damaged gzip data after ");
    fl_buf_done(&buf);
}

static const struct csv_case {
    const char *text;
    int code;
    const char *message;
} csv_cases[] = {
    {"1,2,0\n3,4\n", FL_EFORMAT, ", line 2: expected 3 columns as in the first line, found 2"},
    {"a,b,c\n1,2,0\n\n1,2,3,4,0\n", FL_EFORMAT,
     ", line 4: expected 3 columns as in the first line, found 5"},
    {"1,2,0\n3,nan,1\n", FL_ENUMERIC, ", line 2, column 2: expected a finite number, found 'nan'"},
    {"1,2,0\n3,-Inf,1\n", FL_ENUMERIC,
     ", line 2, column 2: expected a finite number, found '-Inf'"},
    {"1,2,0\n3,1e39,1\n", FL_ENUMERIC,
     ", line 2, column 2: expected a finite number, found '1e39'"},
    {"nan,2,0\n", FL_ENUMERIC, ", line 1, column 1: expected a finite number, found 'nan'"},
    {"1,2,0\n3,,1\n", FL_EFORMAT, ", line 2, column 2: expected a number, found nothing"},
    {"1,2,0\n3,x\x01y,1\n", FL_EFORMAT, ", line 2, column 2: expected a number, found 'x\\x01y'"},
    {"1,two,0\n", FL_EFORMAT, ", line 1, column 2: expected a number, found 'two'"},
    {"0,1,label\n1,2,0\n", FL_EFORMAT, ", line 1, column 3: expected a number, found 'label'"},
    {"1,2,0\n3,4,65536\n", FL_ERANGE,
     ", line 2: expected a class number from 0 to 65535 in the last column, found 65536"},
    {"1,2,-1\n", FL_ERANGE,
     ", line 1: expected a class number from 0 to 65535 in the last column, found -1"},
    {"1,2,1.5\n", FL_ERANGE,
     ", line 1: expected a class number from 0 to 65535 in the last column, found 1.5"},
    {"1\n2\n", FL_EFORMAT, ", line 1: expected at least one feature and a class number"},
    {"a,b\n", FL_EFORMAT, ": holds no sample"},
    {"\n\n \n", FL_EFORMAT, ": holds no sample"},
    {"1,0000000000000000000000000000000000000000000000000000000000000000000000000,0\n", FL_EFORMAT,
     ", line 1, column 2: expected a number, found more than 64 characters"},
    {"", FL_EFORMAT, " is empty"},
};

TEST_EACH(bad_csv_is_refused_with_its_line, ARRAY_LEN(csv_cases))
{
    const struct csv_case *c = &csv_cases[_i];

    t_text(dir, "train.csv", c->text);
    expect(c->code, "train.csv", c->message);
}

TEST(a_byte_zero_hides_nothing_in_a_csv)
{
    t_write(dir, "train.csv", "1,2\0junk,0\n", 11);
    expect(FL_EFORMAT, "train.csv", ", line 1, column 2: expected a number, found '2\\x00junk'");
}

/* A good pair with the header or the data of one half replaced. */
static const struct npy_case {
    const char *x_dict;
    size_t x_len;
    const char *y_dict;
    size_t y_len;
    int code;
    const char *file;
    const char *message;
} npy_cases[] = {
    {NPY_X, 7, NPY_Y, 2, FL_EFORMAT, "train-x.npy", ": truncated: expected 78 bytes, found 77"},
    {NPY_X, 9, NPY_Y, 2, FL_EFORMAT, "train-x.npy", ": expected 78 bytes, found at least 1 more"},
    {NPY_X, 8, NPY_Y, 1, FL_EFORMAT, "train-y.npy", ": truncated: expected 70 bytes, found 69"},
    {NPY_X, 8, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", 3, FL_ESHAPE,
     "train-x.npy", " holds 2 samples but '"},
    {NPY_X, 8, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", 2, FL_EFORMAT,
     "train-y.npy",
     ": expected labels of an integer type, or values to be predicted of a float type, found "
     "'|b1'"},
    {NPY_X, 8, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 1), }", 8, FL_ESHAPE,
     "train-y.npy", ": expected shape (n,) or (n, k), found 3 dimension(s)"},
    {NPY_X, 8, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 8, FL_EFORMAT,
     "train-y.npy", ": truncated"},
    {NPY_X, 8, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }", 0, FL_ESHAPE,
     "train-y.npy", ": expected shape (n,) or (n, k)"},
    {NPY_X, 8, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", 4, FL_ESHAPE,
     "train-y.npy", ": expected shape (n,), found 2 dimension(s) of '|u1'"},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": expected features of type uint8, float32 or float64, found '<i4'"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": expected values in C order, found Fortran order"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, NPY_Y, 2, FL_ESHAPE,
     "train-x.npy", ": expected shape (n, d), (n, h, w) or (n, c, h, w), found 1 dimension(s)"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 8, 8, 3), }", 64, NPY_Y, 2, FL_ESHAPE,
     "train-x.npy",
     ": expected shape (n, channels, height, width), found (2, 8, 8, 3), which looks like channels "
     "last: save numpy.ascontiguousarray(a.transpose(0, 3, 1, 2)) instead"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 1, 1, 1), }", 8, NPY_Y, 2,
     FL_EFORMAT, "train-x.npy", ": NPY header: expected a shape of at most 4 dimensions, found '{"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 1), }", 8, NPY_Y, 2,
     FL_EFORMAT, "train-x.npy", ": NPY header: expected a plain type as descr, found '{"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 1), }", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": expected a type of numbers such as '|u1', '<f4' or '<i4', found '|O'"},
    {"{'descr': '<f4', 'fortran_order': False, }", 8, NPY_Y, 2, FL_EFORMAT, "train-x.npy",
     ": NPY header: expected the keys descr, fortran_order and shape, found '{"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, }", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": NPY header: expected each key once, found '{"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), } x", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": NPY header: expected nothing after the dict, found '{"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }", 8, NPY_Y, 2,
     FL_EFORMAT, "train-x.npy", ": NPY header: expected a shape of at most 4 dimensions, found '{"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 3000000), }", 8, NPY_Y, 2,
     FL_ELIMIT, "train-x.npy", ": expected at most 2147483648 samples, found 4294967295"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1), }", 0, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": holds no sample"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)", 8, NPY_Y, 2, FL_EFORMAT,
     "train-x.npy", ": NPY header: expected a closing brace, found '{"},
};

TEST_EACH(bad_npy_is_refused_with_what_was_expected, ARRAY_LEN(npy_cases))
{
    const struct npy_case *c = &npy_cases[_i];
    uint8_t zeros[64] = {0};

    t_npy(dir, "train-x.npy", c->x_dict, zeros, c->x_len);
    t_npy(dir, "train-y.npy", c->y_dict, zeros, c->y_len);
    expect(c->code, c->file, c->message);
}

TEST(npy_values_and_labels_are_checked)
{
    t_npy(dir, "train-x.npy", NPY_X, "\0\0\0\0\0\0\xc0\x7f", 8);
    t_npy(dir, "train-y.npy", NPY_Y, "\0\0", 2);
    expect(FL_ENUMERIC, "train-x.npy", ": sample 1, value 0: expected a finite number, found nan");
    t_npy(dir, "train-x.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }",
          "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\x7f", 16);
    t_npy(dir, "train-y.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }",
          "\xff\xff", 2);
    expect(FL_ERANGE, "train-y.npy", ": sample 0 has label -1, expected 0 to 65535");
    t_npy(dir, "train-y.npy", "{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }",
          "\0\0\x01\0", 4);
    expect(FL_ERANGE, "train-y.npy", ": sample 0 has label 65536, expected 0 to 65535");
    t_npy(dir, "train-y.npy", "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }",
          "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    expect(FL_ERANGE, "train-y.npy", ": sample 0 has label 9223372036854775807, expected");
    t_npy(dir, "train-y.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", "\0", 1);
    expect(FL_ENUMERIC, "train-x.npy", ": sample 0, value 1: expected a finite number, found ");
}

TEST(a_file_that_is_no_npy_is_refused)
{
    t_npy(dir, "train-y.npy", NPY_Y, "\0\0", 2);
    t_text(dir, "train-x.npy", "PK\x03\x04 and more of a zip");
    expect(FL_EFORMAT, "train-x.npy",
           ": wrong magic: expected an NPY file ('\\x93NUMPY'), found 'PK\\x03\\x04 a'");
    t_write(dir, "train-x.npy", "\x93NUMPY\x04\x00\x10\x00", 10);
    expect(FL_EVERSION, "train-x.npy", ": expected NPY version 1, 2 or 3, found 4.0");
    t_write(dir, "train-x.npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    expect(FL_ELIMIT, "train-x.npy", ": expected a header of at most 4096 bytes, found 4294967295");
    t_write(dir, "train-x.npy", "\x93NUMPY\x01\x00\x10\x00{", 11);
    expect(FL_EFORMAT, "train-x.npy", ": truncated: expected 26 bytes, found 11");
    t_write(dir, "train-x.npy", "\x93NUMPY\x01", 7);
    expect(FL_EFORMAT, "train-x.npy", ": truncated: expected 10 bytes, found 7");
}

TEST(bad_cifar_is_refused_with_its_record)
{
    uint8_t *raw = calloc(2, 3073);

    ck_assert_ptr_nonnull(raw);
    raw[3073] = 10;
    t_write(dir, "data_batch_1.bin", raw, 2 * 3073);
    expect(FL_ERANGE, "data_batch_1.bin", ": record 1 has label 10, expected 0 to 9");
    t_write(dir, "data_batch_1.bin", raw, 3073 + 5);
    expect(FL_EFORMAT, "data_batch_1.bin",
           ": truncated: expected whole records of 3073 bytes, found 5 bytes after record 1");
    free(raw);
}

TEST(a_folder_without_the_part_lists_what_was_looked_for)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    char path[T_PATH];

    ck_assert_int_eq(fl_dataset_open(dir, "train", &ds, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "contains no train data; looked for train-images-idx3"));
    ck_assert_ptr_nonnull(strstr(err.msg, "data_batch_*.bin[.gz]; train-x.npy"));
    ck_assert_ptr_nonnull(strstr(err.msg, "train.csv[.gz]"));
    ck_assert_int_eq(fl_dataset_open(dir, "test", &ds, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "t10k-images-idx3-ubyte[.gz]"));
    ck_assert_int_eq(fl_dataset_open(t_path(path, dir, "none"), "train", &ds, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot open folder '"));
    ck_assert_int_eq(fl_dataset_open(dir, "val", &ds, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "expected part 'train' or 'test', found 'val'");
}

TEST(a_part_in_two_formats_is_refused)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};

    t_text(dir, "train.csv", "1,0\n");
    write_idx(0x803, 1, 1, 1, 1);
    write_labels(0x801, 1, 1);
    ck_assert_int_eq(fl_dataset_open(dir, "train", &ds, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "the train part in two formats, IDX and CSV; remove one"));
}

TEST(a_pipe_in_place_of_a_file_does_not_block)
{
    char path[T_PATH];

    ck_assert_int_eq(mkfifo(t_path(path, dir, "train.csv"), 0600), 0);
    expect(FL_EFORMAT, "train.csv", " is not a regular file");
}
