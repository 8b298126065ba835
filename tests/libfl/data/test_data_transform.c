/* Standardisation, cropping, joining and augmentation of data sets. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/data/dataset.h"
#include "libfl/data/npy.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"

/* `n` byte pictures; value v of sample s is (37 s + 11 v + s v) mod 251. */
static struct fl_dataset *pictures(size_t n, size_t channels, size_t height, size_t width)
{
    const size_t dims[3] = {channels, height, width};
    struct fl_dataset *ds = NULL;
    size_t i;
    size_t j;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_U8, n, dims, 3, &ds, NULL), FL_OK);
    for (i = 0; i < n; i++) {
        for (j = 0; j < ds->dim; j++) {
            ((uint8_t *)ds->x)[i * ds->dim + j] = (uint8_t)((37 * i + 11 * j + i * j) % 251);
        }
        ds->y[i] = (int32_t)(i % 3);
    }
    ds->classes = 3;
    return ds;
}

static int raw(const struct fl_dataset *ds, size_t i, size_t j)
{
    return ((const uint8_t *)ds->x)[i * ds->dim + j];
}

/* Sample `i` as it is delivered; free(). */
static float *gather(const struct fl_dataset *ds, uint32_t i)
{
    float *x = malloc(ds->dim * sizeof(*x));

    ck_assert_ptr_nonnull(x);
    fl_dataset_gather(ds, &i, 1, x, NULL);
    return x;
}

/* --- standardisation --- */

/* FedMCSA: (x - mean) / (std + 0.001), x from 0 to 255, over all samples. */
TEST(pixels_are_standardised_over_all_samples)
{
    struct fl_dataset *ds = pictures(53, 1, 5, 7);
    size_t i;
    size_t j;

    for (i = 0; i < 53; i++) {
        ((uint8_t *)ds->x)[i * 35 + 3] = 200; /* One that never changes must not divide by 0. */
    }
    ck_assert_int_eq(fl_dataset_norm_pixels(ds, NULL), FL_OK);
    ck_assert_uint_eq(ds->n_norm, 35);
    for (j = 0; j < 35; j++) {
        double mean = 0.0;
        double var = 0.0;

        for (i = 0; i < 53; i++) {
            mean += raw(ds, i, j) / 53.0;
        }
        for (i = 0; i < 53; i++) {
            var += pow(raw(ds, i, j) - mean, 2.0) / 53.0;
        }
        for (i = 0; i < 53; i += 26) {
            float *x = gather(ds, (uint32_t)i);
            double want = (raw(ds, i, j) - mean) / (sqrt(var) + 0.001);

            ck_assert_double_eq_tol((double)x[j], want, j == 3 ? 0.1 : 2e-5);
            free(x);
        }
    }
    fl_dataset_free(ds);
}

TEST(floats_are_standardised_in_their_own_unit)
{
    struct fl_dataset *ds = NULL;
    float *x;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 2, (const size_t[]){2}, 1, &ds, NULL), FL_OK);
    (void)memcpy(ds->x, (const float[]){1.0F, 7.0F, 3.0F, 7.0F}, 4 * sizeof(float));
    ck_assert_int_eq(fl_dataset_norm_pixels(ds, NULL), FL_OK);
    x = gather(ds, 1);
    ck_assert_double_eq_tol((double)x[0], 1.0 / 1.001, 1e-6);
    ck_assert_double_eq_tol((double)x[1], 0.0, 1e-6);
    free(x);
    fl_dataset_free(ds);
}

/* CIFAR-10: mean (.4914, .4822, .4465), std (.2023, .1994, .2010) of values from 0 to 1. */
TEST(cifar_is_standardised_by_the_usual_numbers)
{
    static const double mean[3] = {.4914, .4822, .4465};
    static const double std[3] = {.2023, .1994, .2010};
    struct fl_dataset *ds = pictures(2, 3, 32, 32);
    struct fl_dataset *grey = pictures(2, 1, 32, 32);
    struct fl_err err = {0};
    float *x;
    size_t j;

    ck_assert_int_eq(fl_dataset_norm_cifar(ds, NULL), FL_OK);
    x = gather(ds, 1);
    for (j = 0; j < 3072; j++) {
        ck_assert_double_eq_tol((double)x[j],
                                (raw(ds, 1, j) / 255.0 - mean[j / 1024]) / std[j / 1024], 1e-5);
    }
    free(x);
    ck_assert_int_eq(fl_dataset_norm_cifar(grey, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(strstr(err.msg, "three channels, found 1 x 32 x 32"));
    fl_dataset_free(ds);
    fl_dataset_free(grey);
}

TEST(a_standardisation_that_makes_no_sense_is_refused)
{
    struct fl_dataset *ds = pictures(2, 2, 3, 3);
    const float ones[18] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, ones, 3, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected one mean, 2 (a channel) or 18 (a value)"));
    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, (const float[]){1.0F, 0.0F}, 2, &err),
                     FL_ENUMERIC);
    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, (const float[]){-1.0F}, 1, &err), FL_ENUMERIC);
    ck_assert_int_eq(fl_dataset_set_norm(ds, (const float[]){NAN}, ones, 1, &err), FL_ENUMERIC);
    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, (const float[]){INFINITY}, 1, &err),
                     FL_ENUMERIC);
    ck_assert_uint_eq(ds->n_norm, 0);
    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, ones, 18, &err), FL_OK);
    ck_assert_int_eq(fl_dataset_set_norm(ds, ones, ones, 2, &err), FL_OK);
    ck_assert_uint_eq(ds->n_norm, 2);
    fl_dataset_free(ds);
}

TEST(a_local_test_part_is_standardised_like_the_training_part)
{
    struct fl_dataset *ds = pictures(20, 1, 4, 4);
    struct fl_dataset *rest = NULL;

    ck_assert_int_eq(fl_dataset_norm_pixels(ds, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_split(ds, 0.25, 1, &rest, NULL), FL_OK);
    ck_assert_uint_eq(rest->n_norm, 16);
    ck_assert_mem_eq(rest->mean, ds->mean, 16 * sizeof(float));
    ck_assert_mem_eq(rest->std, ds->std, 16 * sizeof(float));
    fl_dataset_free(ds);
    fl_dataset_free(rest);
}

/* --- norm.npy --- */

static void write_npy(const char *dir, const char *name, enum fl_npy_type type,
                      const uint64_t *shape, size_t n_dims, const void *values, size_t n)
{
    char path[T_PATH];
    struct fl_npy_writer *w = NULL;

    ck_assert_int_eq(fl_npy_create(t_path(path, dir, name), type, shape, n_dims, &w, NULL), FL_OK);
    ck_assert_int_eq(fl_npy_add(w, values, n, NULL), FL_OK);
    ck_assert_int_eq(fl_npy_finish(w, NULL), FL_OK);
}

/* A folder with two samples of two values in both parts. */
static void write_folder(char dir[T_PATH])
{
    static const float x[4] = {1, 2, 3, 4};
    static const int32_t y[2] = {0, 1};

    t_dir(dir);
    write_npy(dir, "train-x.npy", FL_NPY_F32, (const uint64_t[]){2, 2}, 2, x, 4);
    write_npy(dir, "train-y.npy", FL_NPY_I32, (const uint64_t[]){2}, 1, y, 2);
    write_npy(dir, "test-x.npy", FL_NPY_F32, (const uint64_t[]){2, 2}, 2, x, 4);
    write_npy(dir, "test-y.npy", FL_NPY_I32, (const uint64_t[]){2}, 1, y, 2);
}

TEST(both_parts_of_a_client_are_opened_with_the_standardisation_beside_them)
{
    static const char *const parts[2] = {"train", "test"};
    const float norm[4] = {1.0F, 10.0F, 2.0F, 0.5F}; /* means, deviations */
    char dir[T_PATH];
    size_t p;

    write_folder(dir);
    write_npy(dir, "norm.npy", FL_NPY_F32, (const uint64_t[]){2, 2}, 2, norm, 4);
    for (p = 0; p < 2; p++) {
        struct fl_dataset *ds = NULL;
        struct fl_err err = {0};
        float *x;

        ck_assert_msg(fl_dataset_open(dir, parts[p], &ds, &err) == FL_OK, "%s", err.msg);
        x = gather(ds, 1);
        ck_assert(x[0] == 1.0F && x[1] == -12.0F);
        ck_assert(((const float *)ds->x)[2] == 3.0F); /* The samples stay as they are. */
        free(x);
        fl_dataset_free(ds);
    }
    t_dir_remove(dir);
}

static const struct bad_norm {
    const char *what;
    enum fl_npy_type type;
    uint64_t shape[2];
    size_t n_dims;
    float values[6];
    int code;
} bad_norms[] = {
    {"one row", FL_NPY_F32, {1, 2}, 2, {1, 1}, FL_ESHAPE},
    {"flat", FL_NPY_F32, {2, 0}, 1, {1, 1}, FL_ESHAPE},
    {"integers", FL_NPY_I32, {2, 2}, 2, {1, 1, 1, 1}, FL_ESHAPE},
    {"too many", FL_NPY_F32, {2, 3}, 2, {1, 1, 1, 1, 1, 1}, FL_ESHAPE},
    {"none", FL_NPY_F32, {2, 0}, 2, {0}, FL_ESHAPE},
    {"no deviation", FL_NPY_F32, {2, 1}, 2, {1, 0}, FL_ENUMERIC},
    {"not finite", FL_NPY_F32, {2, 1}, 2, {1, INFINITY}, FL_ENUMERIC},
};

TEST_EACH(a_bad_norm_file_is_refused_by_name, ARRAY_LEN(bad_norms))
{
    const struct bad_norm *bad = &bad_norms[_i];
    size_t n = (size_t)(bad->n_dims == 1 ? bad->shape[0] : bad->shape[0] * bad->shape[1]);
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    char dir[T_PATH];

    write_folder(dir);
    write_npy(dir, "norm.npy", bad->type, bad->shape, bad->n_dims, bad->values, n);
    ck_assert_msg(fl_dataset_open(dir, "train", &ds, &err) == bad->code, "%s: %s", bad->what,
                  err.msg);
    ck_assert_msg(strstr(err.msg, "norm.npy") != NULL, "%s: %s", bad->what, err.msg);
    ck_assert_ptr_null(ds);
    t_dir_remove(dir);
}

TEST(a_cut_norm_file_is_refused)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    char dir[T_PATH];

    write_folder(dir);
    t_npy(dir, "norm.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", "abcdefg",
          7);
    ck_assert_int_eq(fl_dataset_open(dir, "test", &ds, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "norm.npy': truncated"));
    t_npy(dir, "norm.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }",
          "\0\0\0\0\0\0\x80?more", 12);
    ck_assert_int_eq(fl_dataset_open(dir, "test", &ds, &err), FL_EFORMAT);
    t_dir_remove(dir);
}

/* --- cropping and joining --- */

TEST(the_middle_of_every_picture_is_kept)
{
    struct fl_dataset *ds = pictures(3, 3, 32, 32);
    struct fl_dataset *whole = pictures(3, 3, 32, 32);
    size_t i;
    size_t c;
    size_t r;
    size_t k;

    ck_assert_int_eq(fl_dataset_norm_pixels(ds, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_norm_pixels(whole, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_crop(ds, 24, NULL), FL_OK);
    ck_assert_uint_eq(ds->dim, 3 * 24 * 24);
    ck_assert(ds->dims[0] == 3 && ds->dims[1] == 24 && ds->dims[2] == 24);
    ck_assert_uint_eq(ds->n_norm, ds->dim);
    for (i = 0; i < 3; i++) {
        for (c = 0; c < 3; c++) {
            for (r = 0; r < 24; r++) {
                for (k = 0; k < 24; k++) {
                    size_t at = (c * 24 + r) * 24 + k;
                    size_t was = (c * 32 + r + 4) * 32 + k + 4;

                    ck_assert_int_eq(raw(ds, i, at), raw(whole, i, was));
                    ck_assert(ds->mean[at] == whole->mean[was]);
                    ck_assert(ds->std[at] == whole->std[was]);
                }
            }
        }
    }
    fl_dataset_free(ds);
    fl_dataset_free(whole);
}

TEST(what_cannot_be_cropped_is_refused)
{
    struct fl_dataset *ds = pictures(2, 1, 10, 8);
    struct fl_dataset *flat = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_dataset_crop(ds, 9, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "expected pictures of at least 9 x 9, found samples of 1 x 10 x 8"));
    ck_assert_int_eq(fl_dataset_crop(ds, 0, &err), FL_ESHAPE);
    ck_assert_int_eq(fl_dataset_crop(ds, 8, &err), FL_OK);
    ck_assert_uint_eq(ds->dim, 64);
    ck_assert_int_eq(raw(ds, 0, 0), 11 * 8 % 251); /* The first row went. */
    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, (const size_t[]){100}, 1, &flat, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_dataset_crop(flat, 1, &err), FL_ESHAPE);
    fl_dataset_free(ds);
    fl_dataset_free(flat);
}

TEST(joined_sets_come_one_after_the_other)
{
    struct fl_dataset *ds = pictures(5, 1, 2, 3);
    struct fl_dataset *more = pictures(7, 1, 2, 3);
    struct fl_dataset *none = NULL;
    size_t i;

    more->y[6] = 9;
    more->classes = 10;
    ck_assert_int_eq(fl_dataset_append(ds, more, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_create(FL_DATA_U8, 0, ds->dims, 3, &none, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_append(ds, none, NULL), FL_OK);
    ck_assert_uint_eq(ds->n, 12);
    ck_assert_uint_eq(ds->classes, 10);
    ck_assert_int_eq(ds->y[11], 9);
    for (i = 0; i < 42; i++) {
        ck_assert_int_eq(raw(ds, 5, i), raw(more, 0, i));
    }
    ck_assert(fl_dataset_alike(ds, more));
    fl_dataset_free(ds);
    fl_dataset_free(more);
    fl_dataset_free(none);
}

/* --- augmentation --- */

/* Value of a picture after a crop by (down, right) and perhaps a flip. */
static float expected(const struct fl_dataset *ds, size_t i, size_t j, int down, int right,
                      bool flip)
{
    int height = (int)ds->dims[1];
    int width = (int)ds->dims[2];
    int c = (int)j / (height * width);
    int r = (int)j / width % height + down;
    int k = (flip ? width - 1 - (int)j % width : (int)j % width) + right;

    if (r < 0 || r >= height || k < 0 || k >= width) {
        return 0.0F;
    }
    return (float)raw(ds, i, (size_t)((c * height + r) * width + k)) * ds->scale;
}

/* Which (down, right, flip) makes sample `i` into `x`; how many do. */
static size_t find_change(const struct fl_dataset *ds, size_t i, const float *x, size_t *ret_which)
{
    size_t found = 0;
    size_t which;
    size_t j;

    for (which = 0; which < 162; which++) {
        int down = (int)(which % 9) - 4;
        int right = (int)(which / 9 % 9) - 4;

        for (j = 0; j < ds->dim && x[j] == expected(ds, i, j, down, right, which >= 81); j++) {
        }
        if (j == ds->dim) {
            *ret_which = which;
            found++;
        }
    }
    return found;
}

TEST(every_flip_and_shift_up_to_four_comes_equally_often)
{
    enum { DRAWS = 16200 };
    struct fl_dataset *ds = pictures(4, 2, 12, 10);
    float *x = malloc(4 * ds->dim * sizeof(*x));
    size_t counts[162] = {0};
    struct fl_rng rng;
    size_t n;
    size_t i;

    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(fl_dataset_set_augment(ds, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    fl_rng_seed(&rng, 3);
    for (n = 0; n < DRAWS; n += 4) {
        int32_t y[4];

        fl_dataset_gather_train(ds, &rng, (const uint32_t[]){3, 0, 2, 1}, 4, x, y);
        for (i = 0; i < 4; i++) {
            size_t sample = (const size_t[]){3, 0, 2, 1}[i];
            size_t which = 0;

            ck_assert_uint_eq(find_change(ds, sample, x + i * ds->dim, &which), 1);
            ck_assert_int_eq(y[i], ds->y[sample]);
            counts[which]++;
        }
    }
    for (i = 0; i < 162; i++) { /* 100 each; six standard deviations */
        ck_assert_msg(counts[i] > 40 && counts[i] < 160, "change %zu: %zu times", i, counts[i]);
    }
    free(x);
    fl_dataset_free(ds);
}

/* The margin is black before standardisation, as the paddings of image libraries are. */
TEST(the_margin_is_standardised_like_a_black_pixel)
{
    struct fl_dataset *ds = pictures(1, 3, 8, 8);
    float *x = malloc(ds->dim * sizeof(*x));
    struct fl_rng rng;
    size_t black[3] = {0};
    size_t draw;
    size_t j;

    ck_assert_ptr_nonnull(x);
    (void)memset(ds->x, 255, ds->dim);
    ck_assert_int_eq(fl_dataset_norm_cifar(ds, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_set_augment(ds, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    fl_rng_seed(&rng, 1);
    for (draw = 0; draw < 20; draw++) {
        fl_dataset_gather_train(ds, &rng, (const uint32_t[]){0}, 1, x, NULL);
        for (j = 0; j < ds->dim; j++) {
            size_t c = j / 64;
            bool is_black = x[j] == (0.0F - ds->mean[c]) / ds->std[c];

            ck_assert(is_black || x[j] == (255.0F * ds->scale - ds->mean[c]) / ds->std[c]);
            black[c] += is_black;
        }
    }
    ck_assert_uint_gt(black[0], 0);
    ck_assert(black[0] == black[1] && black[1] == black[2]);
    free(x);
    fl_dataset_free(ds);
}

TEST(pictures_smaller_than_the_margin_can_be_shifted_out)
{
    struct fl_dataset *ds = pictures(1, 1, 2, 2);
    struct fl_rng rng;
    float x[4];
    size_t blank = 0;
    size_t draw;

    ck_assert_int_eq(fl_dataset_set_augment(ds, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    fl_rng_seed(&rng, 1);
    for (draw = 0; draw < 200; draw++) {
        fl_dataset_gather_train(ds, &rng, (const uint32_t[]){0}, 1, x, NULL);
        blank += x[0] == 0.0F && x[1] == 0.0F && x[2] == 0.0F && x[3] == 0.0F;
    }
    ck_assert_uint_gt(blank, 100); /* 1 - (3/9)^2 and a little, of 200 */
    fl_dataset_free(ds);
}

TEST(augmentation_follows_its_stream_and_floats_are_augmented_too)
{
    struct fl_dataset *ds = NULL;
    struct fl_rng rng;
    float a[36];
    float b[36];
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, (const size_t[]){1, 6, 6}, 3, &ds, NULL),
                     FL_OK);
    for (i = 0; i < 36; i++) {
        ((float *)ds->x)[i] = 1.0F + (float)i;
    }
    ck_assert_int_eq(fl_dataset_set_augment(ds, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    fl_rng_seed(&rng, 5);
    fl_dataset_gather_train(ds, &rng, (const uint32_t[]){0}, 1, a, NULL);
    fl_rng_seed(&rng, 5);
    fl_dataset_gather_train(ds, &rng, (const uint32_t[]){0}, 1, b, NULL);
    ck_assert_mem_eq(a, b, sizeof(a));
    fl_dataset_gather_train(ds, &rng, (const uint32_t[]){0}, 1, b, NULL);
    ck_assert_mem_ne(a, b, sizeof(a));
    fl_dataset_gather(ds, (const uint32_t[]){0}, 1, b, NULL); /* Never for evaluation. */
    ck_assert_mem_eq(b, ds->x, sizeof(b));
    fl_dataset_free(ds);
}

TEST(without_augmentation_a_training_batch_is_the_plain_one)
{
    struct fl_dataset *ds = pictures(2, 1, 5, 5);
    struct fl_dataset *flat = NULL;
    struct fl_rng rng;
    struct fl_rng before;
    struct fl_err err = {0};
    float *x = gather(ds, 1);
    float y[25];

    fl_rng_seed(&rng, 1);
    before = rng;
    fl_dataset_gather_train(ds, &rng, (const uint32_t[]){1}, 1, y, NULL);
    ck_assert_mem_eq(x, y, sizeof(y));
    ck_assert_mem_eq(&rng, &before, sizeof(rng)); /* Nothing was drawn. */
    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, (const size_t[]){9}, 1, &flat, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_set_augment(flat, FL_AUGMENT_FLIP_CROP, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected pictures to flip and crop"));
    ck_assert_int_eq(fl_dataset_set_augment(flat, FL_AUGMENT_NONE, &err), FL_OK);
    free(x);
    fl_dataset_free(ds);
    fl_dataset_free(flat);
}
