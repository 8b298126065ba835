/* Views: some samples of a set, without copies, and not to be told from a set that holds them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/dataset.h"
#include "tests/lib/suites.h"

#define SAMPLES 60
#define SHOWN   23
#define SIDE    6
#define DIM     ((size_t)2 * SIDE * SIDE)

/* Pictures of bytes or floats that are all different, standardised per channel. */
static struct fl_dataset *pictures(enum fl_data_type type)
{
    const size_t dims[3] = {2, SIDE, SIDE};
    const float mean[2] = {0.25F, 0.5F};
    const float std[2] = {0.5F, 2.0F};
    struct fl_dataset *ds = NULL;
    struct fl_rng rng;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(type, SAMPLES, dims, 3, &ds, NULL), FL_OK);
    fl_rng_seed(&rng, 4);
    for (i = 0; i < SAMPLES * DIM; i++) {
        if (type == FL_DATA_U8) {
            ((uint8_t *)ds->x)[i] = (uint8_t)fl_rng_below(&rng, 256);
        } else {
            ((float *)ds->x)[i] = (float)fl_rng_normal(&rng);
        }
    }
    for (i = 0; i < SAMPLES; i++) {
        ds->y[i] = (int32_t)(i % 5);
    }
    ds->classes = 5;
    ck_assert_int_eq(fl_dataset_set_norm(ds, mean, std, 2, NULL), FL_OK);
    return ds;
}

/* A set of its own with the samples `items` of `ds`. */
static struct fl_dataset *copy(const struct fl_dataset *ds, const uint32_t *items, size_t n)
{
    struct fl_dataset *ret = NULL;
    size_t bytes = ds->dim * fl_dataset_value_size(ds);
    size_t i;

    ck_assert_int_eq(fl_dataset_create(ds->type, n, ds->dims, ds->n_dims, &ret, NULL), FL_OK);
    for (i = 0; i < n; i++) {
        (void)memcpy((char *)ret->x + i * bytes, (const char *)ds->x + items[i] * bytes, bytes);
        ret->y[i] = ds->y[items[i]];
    }
    ret->classes = ds->classes;
    ck_assert_int_eq(fl_dataset_copy_norm(ret, ds, NULL), FL_OK);
    return ret;
}

/* Neither in order nor one run: 7, 18, 29, … mod 60. */
static void choose(uint32_t items[SHOWN])
{
    uint32_t i;

    for (i = 0; i < SHOWN; i++) {
        items[i] = (7 + 11 * i) % SAMPLES;
    }
}

static void expect_same(const struct fl_dataset *a, const struct fl_dataset *b)
{
    size_t counts[2][5];
    float *x[2];
    int32_t y[2][SHOWN];
    uint32_t idx[SHOWN];
    struct fl_rng rng[2];
    uint32_t i;
    size_t k;
    const struct fl_dataset *both[2] = {a, b};

    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->classes, b->classes);
    ck_assert(fl_dataset_alike(a, b));
    for (i = 0; i < a->n; i++) {
        idx[i] = (uint32_t)a->n - 1 - i;
        ck_assert_mem_eq(fl_dataset_row(a, i), fl_dataset_row(b, i),
                         a->dim * fl_dataset_value_size(a));
        ck_assert_int_eq(fl_dataset_label(a, i), fl_dataset_label(b, i));
    }
    for (k = 0; k < 2; k++) {
        x[k] = malloc((2 * a->n * DIM + 1) * sizeof(float));
        ck_assert_ptr_nonnull(x[k]);
        fl_rng_seed(&rng[k], 9);
        fl_dataset_gather(both[k], idx, a->n, x[k], y[k]);
        fl_dataset_gather_train(both[k], &rng[k], idx, a->n, x[k] + a->n * DIM, NULL);
        fl_dataset_histogram(both[k], counts[k]);
    }
    ck_assert_mem_eq(x[0], x[1], 2 * a->n * DIM * sizeof(float));
    ck_assert_mem_eq(y[0], y[1], a->n * sizeof(int32_t));
    ck_assert_mem_eq(counts[0], counts[1], a->classes * sizeof(size_t));
    ck_assert_uint_eq(fl_rng_u64(&rng[0]), fl_rng_u64(&rng[1]));
    free(x[0]);
    free(x[1]);
}

static struct fl_dataset *show(const struct fl_dataset *ds, const uint32_t *items, size_t n)
{
    struct fl_dataset *view = NULL;

    ck_assert_int_eq(fl_dataset_view(ds, items, n, &view, NULL), FL_OK);
    return view;
}

TEST_EACH(a_view_delivers_what_a_copy_delivers, 2)
{
    struct fl_dataset *ds = pictures(_i == 0 ? FL_DATA_U8 : FL_DATA_F32);
    struct fl_dataset *own;
    struct fl_dataset *view;
    uint32_t items[SHOWN];

    choose(items);
    own = copy(ds, items, SHOWN);
    view = show(ds, items, SHOWN);
    expect_same(view, own);
    ck_assert_int_eq(fl_dataset_set_augment(view, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_set_augment(own, FL_AUGMENT_FLIP_CROP, NULL), FL_OK);
    expect_same(view, own);
    ck_assert_int_eq(ds->augment, FL_AUGMENT_NONE); /* It is the view's own. */
    fl_dataset_free(view);
    fl_dataset_free(own);
    view = show(ds, NULL, 0); /* A client without a test part. */
    ck_assert_uint_eq(view->n, 0);
    fl_dataset_free(view);
    fl_dataset_free(ds);
}

TEST(a_view_copies_no_features)
{
    struct fl_dataset *ds = pictures(FL_DATA_U8);
    struct fl_dataset *view;
    uint32_t items[SHOWN];

    choose(items);
    view = show(ds, items, SHOWN);
    ck_assert_ptr_eq(fl_dataset_row(view, 3), fl_dataset_row(ds, items[3]));
    fl_dataset_free(view);
    fl_dataset_free(ds);
}

TEST_EACH(a_view_is_split_as_a_copy_is, 4)
{
    static const double shares[] = {0.0, 0.1, 0.5, 0.99};
    struct fl_dataset *ds = pictures(FL_DATA_F32);
    struct fl_dataset *own;
    struct fl_dataset *view;
    struct fl_dataset *rest[3] = {NULL, NULL, NULL};
    uint32_t items[SHOWN];
    uint32_t before[SHOWN];

    choose(items);
    (void)memcpy(before, items, sizeof(before));
    own = copy(ds, items, SHOWN);
    view = show(ds, items, SHOWN);
    ck_assert_int_eq(fl_dataset_split(own, shares[_i], 1, &rest[0], NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_split(view, shares[_i], 1, &rest[1], NULL), FL_OK);
    expect_same(view, own);
    expect_same(rest[1], rest[0]);
    ck_assert_mem_eq(items, before, sizeof(items)); /* Others show the same list. */
    fl_dataset_free(rest[0]);
    fl_dataset_free(rest[1]);
    /* What was split can be split again. */
    ck_assert_int_eq(fl_dataset_split(own, 0.5, 2, &rest[0], NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_split(view, 0.5, 2, &rest[1], NULL), FL_OK);
    fl_dataset_free(own);
    expect_same(rest[1], rest[0]);
    ck_assert_int_eq(fl_dataset_split(rest[1], 1.0, 2, &rest[2], NULL), FL_ERANGE);
    fl_dataset_free(view);
    expect_same(rest[1], rest[0]);
    fl_dataset_free(rest[0]);
    fl_dataset_free(rest[1]);
    fl_dataset_free(ds);
}

TEST(classes_without_a_sample_are_named_over_all_sets)
{
    const size_t dims[] = {1};
    struct fl_dataset *a = NULL;
    struct fl_dataset *b = NULL;
    const struct fl_dataset *sets[3];
    char text[64];
    char small[16];
    size_t n = 9;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 2, dims, 1, &a, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, 1, dims, 1, &b, NULL), FL_OK);
    a->y[0] = 3;
    a->y[1] = 7;
    a->classes = 8;
    b->y[0] = 5;
    b->classes = 6;
    sets[0] = a;
    sets[1] = b;
    sets[2] = NULL;
    ck_assert_int_eq(fl_dataset_missing(sets, 3, 10, text, sizeof(text), &n), FL_OK);
    ck_assert_str_eq(text, "0 to 2, 4, 6, 8 to 9");
    ck_assert_uint_eq(n, 7);
    ck_assert_int_eq(fl_dataset_missing(sets, 1, 0, small, sizeof(small), &n), FL_OK);
    ck_assert_uint_eq(n, 6);
    ck_assert_str_eq(small, "0 to 2, ...");
    a->y[0] = 0;
    a->y[1] = 1;
    a->classes = 2;
    ck_assert_int_eq(fl_dataset_missing(sets, 1, 0, text, sizeof(text), &n), FL_OK);
    ck_assert_uint_eq(n, 0);
    ck_assert_str_eq(text, "");
    fl_dataset_free(a);
    fl_dataset_free(b);
}
