/* Values to be predicted in place of classes. */
#include <check.h>
#include <string.h>

#include "libfl/data/dataset.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"

#define N 10

/* Sample i is the number i, its values are 10 i and 10 i + 1. */
static struct fl_dataset *numbered(void)
{
    struct fl_dataset *ds = NULL;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, N, (const size_t[]){1}, 1, &ds, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_add_targets(ds, 2, NULL), FL_OK);
    for (i = 0; i < N; i++) {
        ((float *)ds->x)[i] = (float)i;
        ds->target[2 * i] = (float)(10 * i);
        ds->target[2 * i + 1] = (float)(10 * i + 1);
    }
    return ds;
}

static void belong(const struct fl_dataset *ds)
{
    uint32_t idx[N];
    float x[N];
    int32_t y[N];
    size_t i;

    for (i = 0; i < ds->n; i++) {
        idx[i] = (uint32_t)i;
    }
    fl_dataset_gather(ds, idx, ds->n, x, y);
    for (i = 0; i < ds->n; i++) {
        const float *t = fl_dataset_target(ds, i);

        ck_assert_ptr_eq(t, ds->target + (size_t)y[i] * 2); /* y is its row */
        ck_assert(t[0] == 10 * x[i] && t[1] == 10 * x[i] + 1);
    }
}

TEST(values_stay_with_their_samples_when_a_set_is_split)
{
    struct fl_dataset *ds = numbered();
    struct fl_dataset *rest = NULL;

    ck_assert_int_eq(fl_dataset_split(ds, 0.3, 7, &rest, NULL), FL_OK);
    ck_assert(ds->n == 7 && rest->n == 3 && rest->n_targets == 2 && rest->classes == 1);
    belong(ds);
    belong(rest);
    fl_dataset_free(rest);
    fl_dataset_free(ds);
}

TEST(a_view_has_the_values_of_its_samples)
{
    const uint32_t items[] = {9, 0, 4, 4};
    struct fl_dataset *ds = numbered();
    struct fl_dataset *view = NULL;
    struct fl_dataset *rest = NULL;

    ck_assert_int_eq(fl_dataset_view(ds, items, 4, &view, NULL), FL_OK);
    belong(view);
    ck_assert_int_eq(fl_dataset_split(view, 0.5, 7, &rest, NULL), FL_OK);
    belong(view);
    belong(rest);
    fl_dataset_free(rest);
    fl_dataset_free(view);
    fl_dataset_free(ds);
}

TEST(appended_samples_bring_their_values_and_must_have_as_many)
{
    struct fl_dataset *a = numbered();
    struct fl_dataset *b = numbered();
    struct fl_dataset *c = NULL;
    struct fl_dataset *half = NULL;

    ck_assert_int_eq(fl_dataset_split(b, 0.5, 1, &half, NULL), FL_OK);
    ck_assert(fl_dataset_alike(b, half));
    ck_assert_int_eq(fl_dataset_append(b, half, NULL), FL_OK);
    ck_assert_uint_eq(b->n, N);
    belong(b);
    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, N, (const size_t[]){1}, 1, &c, NULL), FL_OK);
    ck_assert(!fl_dataset_alike(a, c));
    fl_dataset_free(half);
    fl_dataset_free(c);
    fl_dataset_free(b);
    fl_dataset_free(a);
}

TEST(float_labels_in_npy_are_values_to_be_predicted)
{
    char dir[T_PATH];
    struct fl_dataset *ds = NULL;
    const float x[2] = {1, 2};
    const double y[4] = {0.5, 1e3, -2, 0};

    t_dir(dir);
    t_npy(dir, "train-x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", x,
          sizeof(x));
    t_npy(dir, "train-y.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n", y,
          sizeof(y));
    ck_assert_int_eq(fl_dataset_open(dir, "train", &ds, NULL), FL_OK);
    ck_assert(ds->n_targets == 2 && ds->classes == 1 && ds->y[1] == 0);
    ck_assert_mem_eq(ds->target, ((float[]){0.5F, 1000, -2, 0}), 4 * sizeof(float));
    fl_dataset_free(ds);
    t_dir_remove(dir);
}

TEST(a_shape_with_channels_last_is_noted)
{
    static const struct {
        size_t dims[3];
        bool noted;
    } cases[] = {{{1, 28, 28}, false}, {{3, 32, 32}, false}, {{28, 28, 1}, true},
                 {{1, 32, 3}, true},   {{3, 4, 4}, false},   {{32, 32, 4}, true}};
    struct fl_dataset *ds = NULL;
    char note[256];
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ck_assert_int_eq(fl_dataset_create(FL_DATA_U8, 1, cases[i].dims, 3, &ds, NULL), FL_OK);
        ck_assert_msg(fl_dataset_shape_note(ds, note, sizeof(note)) == cases[i].noted, "case %zu",
                      i);
        fl_dataset_free(ds);
    }
}
