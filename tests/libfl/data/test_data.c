/* Readers on good input, and what a data set does once it is there. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/data/dataset.h"
#include "libfl/data/npy.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"

static char dir[T_PATH];

static void setup(void)
{
    t_dir(dir);
}

static void teardown(void)
{
    t_dir_remove(dir);
}

static struct fl_dataset *open_good(const char *folder, const char *part)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    int rv = fl_dataset_open(folder, part, &ds, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    return ds;
}

static void expect_dims(const struct fl_dataset *ds, size_t n, size_t c, size_t h, size_t w)
{
    ck_assert_uint_eq(ds->n, n);
    ck_assert_uint_eq(ds->dims[0], c);
    ck_assert_uint_eq(ds->dims[1], h);
    ck_assert_uint_eq(ds->dims[2], w);
    ck_assert_uint_eq(ds->dim, c * h * w);
}

static void check_idx(const char *folder)
{
    struct fl_dataset *ds = open_good(folder, "test");
    float x[12];
    int32_t y[2];

    expect_dims(ds, 3, 1, 2, 3);
    ck_assert_uint_eq(ds->n_dims, 3);
    ck_assert_int_eq(ds->type, FL_DATA_U8);
    ck_assert_uint_eq(ds->classes, 8);
    ck_assert_str_eq(ds->format, "idx");
    fl_dataset_gather(ds, (const uint32_t[]){2, 0}, 2, x, y);
    ck_assert_int_eq(y[0], 7);
    ck_assert_int_eq(y[1], 5);
    ck_assert(x[0] == 12.0F * (1.0F / 255.0F));
    ck_assert(x[6] == 0.0F);
    ck_assert(fabsf(x[5] - 1.0F) < 1e-6F);
    fl_dataset_free(ds);
}

TEST_CASE("readers", setup, teardown);

TEST_EACH(idx_is_read_plain_and_packed, 2)
{
    const uint8_t pixels[18] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 255};
    const uint8_t labels[3] = {5, 0, 7};
    const char *gz = _i != 0 ? ".gz" : "";
    char name[64];

    (void)snprintf(name, sizeof(name), "t10k-images-idx3-ubyte%s", gz);
    t_idx(dir, name, 0x803, (const uint32_t[]){3, 2, 3}, 3, pixels, sizeof(pixels));
    (void)snprintf(name, sizeof(name), "t10k-labels-idx1-ubyte%s", gz);
    t_idx(dir, name, 0x801, (const uint32_t[]){3}, 1, labels, sizeof(labels));
    check_idx(dir);
}

static void write_idx(const char *begin)
{
    const uint8_t pixels[18] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 255};
    const uint8_t labels[3] = {5, 0, 7};
    char name[64];

    (void)snprintf(name, sizeof(name), "%s-images-idx3-ubyte.gz", begin);
    t_idx(dir, name, 0x803, (const uint32_t[]){3, 2, 3}, 3, pixels, sizeof(pixels));
    (void)snprintf(name, sizeof(name), "%s-labels-idx1-ubyte.gz", begin);
    t_idx(dir, name, 0x801, (const uint32_t[]){3}, 1, labels, sizeof(labels));
}

TEST_EACH(emnist_is_read_by_the_names_that_it_is_distributed_with, 6)
{
    static const char *const splits[] = {"byclass", "bymerge", "balanced",
                                         "letters", "digits",  "mnist"};
    char begin[64];
    uint64_t stamp;

    stamp = fl_dataset_stamp(dir);
    (void)snprintf(begin, sizeof(begin), "emnist-%s-train", splits[_i]);
    write_idx(begin);
    ck_assert(fl_dataset_has(dir, "train"));
    ck_assert(!fl_dataset_has(dir, "test"));
    (void)snprintf(begin, sizeof(begin), "emnist-%s-test", splits[_i]);
    write_idx(begin);
    check_idx(dir);
    fl_dataset_free(open_good(dir, "train"));
    ck_assert_uint_ne(fl_dataset_stamp(dir), stamp); /* A change is seen by a client. */
}

TEST(two_splits_of_emnist_in_a_folder_are_refused_with_both_names)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};

    write_idx("emnist-letters-train");
    write_idx("emnist-digits-train");
    ck_assert_int_eq(fl_dataset_open(dir, "train", &ds, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "emnist-letters-train-images-idx3-ubyte"));
    ck_assert_ptr_nonnull(strstr(err.msg, "emnist-digits-train-images-idx3-ubyte"));
}

TEST(cifar_takes_all_batches_in_order)
{
    uint8_t *raw = calloc(2, 3073);
    struct fl_dataset *ds;

    ck_assert_ptr_nonnull(raw);
    raw[0] = 3;
    raw[3073] = 9;
    raw[3074] = 200;
    t_write(dir, "data_batch_2.bin.gz", raw, 2 * 3073);
    raw[0] = 1;
    t_write(dir, "data_batch_10.bin", raw, 3073);
    raw[0] = 2;
    t_write(dir, "data_batch_10.bin.gz", raw, 3073); /* The plain one wins. */
    t_text(dir, "batches.meta.txt", "airplane\n");
    free(raw);
    ds = open_good(dir, "train");
    expect_dims(ds, 3, 3, 32, 32);
    ck_assert_int_eq(ds->y[0], 3);
    ck_assert_int_eq(ds->y[1], 9);
    ck_assert_int_eq(ds->y[2], 1);
    ck_assert_uint_eq(*(const uint8_t *)fl_dataset_row(ds, 1), 200);
    ck_assert_uint_eq(ds->classes, 10);
    fl_dataset_free(ds);
}

/* Every type of array that is taken, with the values 1 and 2 (or 1.5) in it. */
static const struct npy_case {
    const char *x_dict;
    const char *x;
    size_t x_len;
    const char *y_dict;
    const char *y;
    size_t y_len;
    enum fl_data_type type;
    size_t dims[3];
    double first, last;
} npy_cases[] = {
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n",
     "\x01\x02\x03\x04",
     4,
     "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }",
     "\x01\x02",
     2,
     FL_DATA_U8,
     {2, 1, 1},
     1.0 / 255,
     4.0 / 255},
    {"{'shape': (2, 1, 2), \"descr\": \"<f4\", 'fortran_order': False}",
     "\0\0\x80\x3f\0\0\0\x40\0\0\0\0\0\0\xc0\x3f",
     16,
     "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
     "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0",
     16,
     FL_DATA_F32,
     {1, 1, 2},
     1.0,
     1.5},
    {"{'descr': '>f8', 'fortran_order': False, 'shape': (2L, 1, 1, 1)}",
     "\x3f\xf0\0\0\0\0\0\0\x3f\xf8\0\0\0\0\0\0",
     16,
     "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 1), }",
     "\0\x01\0\x02",
     4,
     FL_DATA_F32,
     {1, 1, 1},
     1.0,
     1.5},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}",
     "\x3f\x80\0\0\x3f\xc0\0\0",
     8,
     "{'descr': '<u4', 'fortran_order': True, 'shape': (2,)}",
     "\x01\0\0\0\x02\0\0\0",
     8,
     FL_DATA_F32,
     {1, 1, 1},
     1.0,
     1.5},
};

TEST_EACH(npy_of_every_accepted_type_is_read, 4)
{
    const struct npy_case *c = &npy_cases[_i];
    struct fl_dataset *ds;
    float x[8];
    int32_t y[2];

    t_npy(dir, "train-x.npy", c->x_dict, c->x, c->x_len);
    t_npy(dir, "train-y.npy", c->y_dict, c->y, c->y_len);
    ds = open_good(dir, "train");
    expect_dims(ds, 2, c->dims[0], c->dims[1], c->dims[2]);
    ck_assert_int_eq(ds->type, c->type);
    ck_assert_uint_eq(ds->classes, 3);
    fl_dataset_gather(ds, (const uint32_t[]){0, 1}, 2, x, y);
    ck_assert_int_eq(y[0], 1);
    ck_assert_int_eq(y[1], 2);
    ck_assert_double_eq_tol((double)x[0], c->first, 1e-7);
    ck_assert_double_eq_tol((double)x[2 * ds->dim - 1], c->last, 1e-7);
    fl_dataset_free(ds);
}

TEST(npy_that_is_written_is_read_back)
{
    const float values[12] = {0.0F, -1.5F, 3.25F, 1e-30F, 5, 6, 7, 8, 9, 10, 11, -3e38F};
    const int32_t labels[3] = {0, 65535, 12};
    struct fl_npy_writer *w = NULL;
    struct fl_err err = {0};
    struct fl_dataset *ds;
    char path[T_PATH];

    ck_assert_int_eq(fl_npy_create(t_path(path, dir, "train-x.npy"), FL_NPY_F32,
                                   (const uint64_t[]){3, 1, 2, 2}, 4, &w, &err),
                     FL_OK);
    ck_assert_int_eq(fl_npy_add(w, values, 5, &err), FL_OK);
    ck_assert_int_eq(fl_npy_add(w, values + 5, 7, &err), FL_OK);
    ck_assert_int_eq(fl_npy_finish(w, &err), FL_OK);
    ck_assert_int_eq(fl_npy_create(t_path(path, dir, "train-y.npy"), FL_NPY_I32,
                                   (const uint64_t[]){3}, 1, &w, &err),
                     FL_OK);
    ck_assert_int_eq(fl_npy_add(w, labels, 3, &err), FL_OK);
    ck_assert_int_eq(fl_npy_finish(w, &err), FL_OK);
    ds = open_good(dir, "train");
    expect_dims(ds, 3, 1, 2, 2);
    ck_assert_mem_eq(ds->x, values, sizeof(values));
    ck_assert_mem_eq(ds->y, labels, sizeof(labels));
    ck_assert_uint_eq(ds->classes, 65536);
    fl_dataset_free(ds);
}

TEST(a_writer_that_gives_up_leaves_no_file)
{
    struct fl_npy_writer *w = NULL;
    struct fl_err err = {0};
    char path[T_PATH];

    ck_assert_int_eq(
        fl_npy_create(t_path(path, dir, "a.npy"), FL_NPY_U8, (const uint64_t[]){3}, 1, &w, &err),
        FL_OK);
    fl_npy_abort(w);
    fl_npy_abort(NULL);
    ck_assert(!fl_fs_exists(path));
    ck_assert_int_eq(
        fl_npy_create(t_path(path, dir, "no/a.npy"), FL_NPY_U8, (const uint64_t[]){3}, 1, &w, &err),
        FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "no/a.npy"));
}

TEST_EACH(a_full_disk_is_reported_and_leaves_no_file, 2)
{
    uint8_t *zeros = calloc(1, 1 << 20);
    struct fl_npy_writer *w = NULL;
    struct fl_err err = {0};
    char path[T_PATH];
    int rv;

    ck_assert_ptr_nonnull(zeros);
    ck_assert_int_eq(symlink("/dev/full", t_path(path, dir, "a.npy")), 0);
    ck_assert_int_eq(
        fl_npy_create(path, FL_NPY_U8, (const uint64_t[]){_i != 0 ? 1 << 20 : 1}, 1, &w, &err),
        FL_OK);
    if (_i != 0) { /* More than any buffer: adding fails. */
        rv = fl_npy_add(w, zeros, 1 << 20, &err);
        fl_npy_abort(w);
    } else { /* Less: only the end finds out. */
        ck_assert_int_eq(fl_npy_add(w, zeros, 1, &err), FL_OK);
        rv = fl_npy_finish(w, &err);
    }
    ck_assert_int_eq(rv, FL_ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot write '"));
    ck_assert(!fl_fs_exists(path));
    free(zeros);
}

static const char *const csv_texts[] = {
    "1,2.5,0\n-3e2,.5,4\n",
    "1,2.5,0\r\n-300,0.5,4",
    "width, height ,class\n\n 1 ,\t2.5, 0\n-3E+2,+0.5,4.0\n\n",
    "\xef\xbb\xbf\x31,2.5,0\n-3.00e+2,0.50000000000000000000,4\n",
};

TEST_EACH(csv_with_or_without_heading_gives_the_same_set, 4)
{
    struct fl_dataset *ds;
    const float *x;

    t_text(dir, "train.csv", csv_texts[_i]);
    ds = open_good(dir, "train");
    expect_dims(ds, 2, 2, 1, 1);
    ck_assert_uint_eq(ds->n_dims, 1);
    ck_assert_uint_eq(ds->classes, 5);
    ck_assert_int_eq(ds->y[0], 0);
    ck_assert_int_eq(ds->y[1], 4);
    x = ds->x;
    ck_assert(x[0] == 1.0F && x[1] == 2.5F && x[2] == -300.0F && x[3] == 0.5F);
    fl_dataset_free(ds);
}

TEST(csv_longer_than_any_buffer_is_read_whole)
{
    size_t rows = 20000;
    char *text = malloc(rows * 32);
    struct fl_dataset *ds;
    const float *x;
    size_t len = 0;
    size_t i;

    ck_assert_ptr_nonnull(text);
    for (i = 0; i < rows; i++) {
        len += (size_t)snprintf(text + len, 32, "%zu,%zu.25,%zu\n", i, i * 7, i % 13);
    }
    t_write(dir, "test.csv.gz", text, len);
    free(text);
    ds = open_good(dir, "test");
    expect_dims(ds, rows, 2, 1, 1);
    x = ds->x;
    for (i = 0; i < rows; i++) {
        ck_assert(x[2 * i] == (float)i && x[2 * i + 1] == (float)((double)(i * 7) + 0.25));
        ck_assert_int_eq(ds->y[i], (int)(i % 13));
    }
    fl_dataset_free(ds);
}

static struct fl_dataset *make_numbered(enum fl_data_type type, size_t n, size_t dim)
{
    struct fl_dataset *ds = NULL;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(type, n, &dim, 1, &ds, NULL), FL_OK);
    for (i = 0; i < n * dim; i++) {
        if (type == FL_DATA_U8) {
            ((uint8_t *)ds->x)[i] = (uint8_t)(i / dim);
        } else {
            ((float *)ds->x)[i] = (float)i;
        }
    }
    for (i = 0; i < n; i++) {
        ds->y[i] = (int32_t)(i % 10);
    }
    ds->classes = 10;
    return ds;
}

TEST_CASE("set", setup, teardown);

TEST_EACH(gather_follows_the_formula_for_every_width, 14)
{
    size_t widths[] = {1, 2, 15, 16, 17, 48, 784};
    enum fl_data_type type = _i % 2 != 0 ? FL_DATA_F32 : FL_DATA_U8;
    struct fl_dataset *ds = make_numbered(type, 5, widths[_i / 2]);
    float *x = malloc(2 * ds->dim * sizeof(*x));
    size_t i;

    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(
        fl_dataset_set_norm(ds, (const float[]){0.25F}, (const float[]){3.0F}, 1, NULL), FL_OK);
    fl_dataset_gather(ds, (const uint32_t[]){4, 1}, 2, x, NULL);
    for (i = 0; i < 2 * ds->dim; i++) {
        size_t at = i < ds->dim ? 4 * ds->dim + i : ds->dim + (i - ds->dim);
        float raw =
            type == FL_DATA_U8 ? (float)((const uint8_t *)ds->x)[at] : ((const float *)ds->x)[at];
        float want = (raw * ds->scale - 0.25F) / 3.0F;

        ck_assert_msg(x[i] == want, "value %zu: %g, expected %g", i, (double)x[i], (double)want);
    }
    free(x);
    fl_dataset_free(ds);
}

TEST(gather_standardises_each_channel_by_its_own)
{
    const size_t dims[3] = {2, 1, 3};
    struct fl_dataset *ds = NULL;
    float x[6];
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, dims, 3, &ds, NULL), FL_OK);
    for (i = 0; i < 6; i++) {
        ((float *)ds->x)[i] = (float)i;
    }
    ck_assert_int_eq(
        fl_dataset_set_norm(ds, (const float[]){1.0F, 3.0F}, (const float[]){2.0F, 0.5F}, 2, NULL),
        FL_OK);
    fl_dataset_gather(ds, (const uint32_t[]){0}, 1, x, NULL);
    ck_assert(x[0] == -0.5F && x[2] == 0.5F && x[3] == 0.0F && x[5] == 4.0F);
    fl_dataset_free(ds);
}

TEST(split_moves_the_share_and_loses_nothing)
{
    struct fl_dataset *ds = make_numbered(FL_DATA_F32, 103, 3);
    struct fl_dataset *rest = NULL;
    uint8_t seen[103] = {0};
    size_t set;
    size_t i;

    ck_assert_int_eq(fl_dataset_split(ds, 0.25, 7, &rest, NULL), FL_OK);
    ck_assert_uint_eq(ds->n, 77); /* floor(0.75 * 103) */
    ck_assert_uint_eq(rest->n, 26);
    ck_assert_uint_eq(rest->classes, 10);
    for (set = 0; set < 2; set++) {
        const struct fl_dataset *part = set == 0 ? ds : rest;
        size_t before = 0;

        for (i = 0; i < part->n; i++) {
            size_t was = (size_t)((const float *)part->x)[3 * i] / 3;

            ck_assert_int_eq(part->y[i], (int)(was % 10));
            ck_assert_uint_eq(seen[was], 0);
            ck_assert(i == 0 || was > before);
            seen[was] = 1;
            before = was;
        }
    }
    fl_dataset_free(rest);
    fl_dataset_free(ds);
}

TEST(split_depends_on_the_seed_and_on_nothing_else)
{
    struct fl_dataset *first = NULL;
    uint64_t seed;

    for (seed = 1; seed <= 3; seed++) {
        struct fl_dataset *ds = make_numbered(FL_DATA_U8, 100, 1);
        struct fl_dataset *rest = NULL;

        ck_assert_int_eq(fl_dataset_split(ds, 0.2, seed < 3 ? 5 : 6, &rest, NULL), FL_OK);
        ck_assert_uint_eq(rest->n, 20);
        if (seed == 1) {
            first = rest;
            rest = NULL;
        } else if (seed == 2) {
            ck_assert_mem_eq(rest->x, first->x, 20);
        } else {
            ck_assert_mem_ne(rest->x, first->x, 20);
        }
        fl_dataset_free(rest);
        fl_dataset_free(ds);
    }
    fl_dataset_free(first);
}

TEST(split_counts_keep_the_floor_of_the_rest)
{
    ck_assert_uint_eq(fl_dataset_split_count(100, 0.0), 0);
    ck_assert_uint_eq(fl_dataset_split_count(100, 0.1), 10);
    ck_assert_uint_eq(fl_dataset_split_count(10, 0.3), 3);
    ck_assert_uint_eq(fl_dataset_split_count(10, 0.9), 9);
    ck_assert_uint_eq(fl_dataset_split_count(255, 0.25), 64);
    ck_assert_uint_eq(fl_dataset_split_count(2, 0.01), 1);
    ck_assert_uint_eq(fl_dataset_split_count(2, 0.99), 1);
    ck_assert_uint_eq(fl_dataset_split_count(1, 0.5), 0);
    ck_assert_uint_eq(fl_dataset_split_count(0, 0.5), 0);
}

TEST(split_refuses_a_share_outside_its_range)
{
    struct fl_dataset *ds = make_numbered(FL_DATA_U8, 4, 1);
    const double bad[] = {-0.1, 1.0, 2.0, (double)NAN};
    struct fl_dataset *rest = NULL;
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(fl_dataset_split(ds, bad[i], 1, &rest, &err), FL_ERANGE);
        ck_assert_ptr_nonnull(strstr(err.msg, "0 <= share < 1"));
    }
    ck_assert_int_eq(fl_dataset_split(ds, 0.0, 1, &rest, &err), FL_OK);
    ck_assert_uint_eq(rest->n, 0);
    ck_assert_uint_eq(ds->n, 4);
    fl_dataset_free(rest);
    fl_dataset_free(ds);
}

TEST(a_histogram_counts_the_samples_of_each_class)
{
    struct fl_dataset *ds;
    size_t counts[8];

    t_text(dir, "train.csv", "1,0\n1,7\n1,2\n1,7\n");
    ds = open_good(dir, "train");
    ck_assert_uint_eq(ds->classes, 8);
    fl_dataset_histogram(ds, counts);
    ck_assert_uint_eq(counts[0] + counts[2] + counts[7], 4);
    ck_assert_uint_eq(counts[7], 2);
    ck_assert_uint_eq(counts[6], 0);
    fl_dataset_free(ds);
}

/* The folder `name` under $FL_DATA_DIR, or NULL with a message when it is not there. */
static const char *real_data(const char *name, char out[T_PATH])
{
    const char *base = getenv("FL_DATA_DIR");

    if (base == NULL || !fl_fs_exists(t_path(out, base, name))) {
        (void)printf("skipped: no %s under $FL_DATA_DIR\n", name);
        return NULL;
    }
    return out;
}

TEST(mnist_has_its_published_counts)
{
    static const size_t train[10] = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
    static const size_t test[10] = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
    struct fl_dataset *ds;
    size_t counts[10];
    char path[T_PATH];

    if (real_data("mnist", path) == NULL) {
        return;
    }
    ds = open_good(path, "train");
    expect_dims(ds, 60000, 1, 28, 28);
    ck_assert_uint_eq(ds->classes, 10);
    fl_dataset_histogram(ds, counts);
    ck_assert_mem_eq(counts, train, sizeof(counts));
    ck_assert_int_eq(ds->y[0], 5);
    fl_dataset_free(ds);
    ds = open_good(path, "test");
    expect_dims(ds, 10000, 1, 28, 28);
    fl_dataset_histogram(ds, counts);
    ck_assert_mem_eq(counts, test, sizeof(counts));
    ck_assert_int_eq(ds->y[0], 7);
    fl_dataset_free(ds);
}

TEST(cifar_test_part_has_a_thousand_of_each_class)
{
    struct fl_dataset *ds;
    size_t counts[10];
    char path[T_PATH];
    size_t i;

    if (real_data("cifar-10", path) == NULL) {
        return;
    }
    ds = open_good(path, "test");
    expect_dims(ds, 10000, 3, 32, 32);
    ck_assert_uint_eq(ds->classes, 10);
    fl_dataset_histogram(ds, counts);
    for (i = 0; i < 10; i++) {
        ck_assert_uint_eq(counts[i], 1000);
    }
    fl_dataset_free(ds);
    ds = open_good(path, "train");
    ck_assert_uint_eq(ds->n % 10000, 0);
    ck_assert_uint_ge(ds->n, 10000);
    ck_assert_int_eq(ds->y[0], 6); /* a frog */
    fl_dataset_free(ds);
}

static void put(const char *name, const char *text)
{
    char path[T_PATH];

    ck_assert_int_eq(fl_fs_join(path, sizeof(path), dir, name), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, text, strlen(text), false, NULL), FL_OK);
}

TEST(a_stamp_changes_with_the_files_of_the_data_and_with_nothing_else)
{
    char path[T_PATH];
    uint64_t first;
    uint64_t second;

    ck_assert_uint_eq(fl_dataset_stamp("/no/such/folder"), 0);
    ck_assert_uint_eq(fl_dataset_stamp(dir), 0);
    put("train.csv", "1,2,0\n");
    first = fl_dataset_stamp(dir);
    ck_assert_uint_ne(first, 0);
    put("notes.txt", "nothing of ours");
    ck_assert_uint_eq(fl_dataset_stamp(dir), first);
    put("train.csv", "1,3,0\n"); /* the same size, within the same tick: another inode */
    second = fl_dataset_stamp(dir);
    ck_assert_uint_ne(second, first);
    put("test.csv", "1,3,0\n");
    ck_assert_uint_ne(fl_dataset_stamp(dir), second);
    ck_assert_int_eq(fl_fs_join(path, sizeof(path), dir, "test.csv"), FL_OK);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(fl_dataset_stamp(dir), second);
}
