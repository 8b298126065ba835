/* The samples that attackers train on, of bytes and floats, pictures and flat samples. */
#include <check.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/poison.h"

#define CHANNELS 2
#define SIDE     4
#define PIXELS   (CHANNELS * SIDE * SIDE)
#define SAMPLES  5

static const struct fl_attack label_flip = {.kind = FL_ATTACK_KIND_LABEL_FLIP};
static const struct fl_attack backdoor = {.kind = FL_ATTACK_KIND_BACKDOOR, .scale = 10};

/* Value i of sample s is s + i; its label is 1 + s % 3, of 4 classes. */
static struct fl_dataset *make(enum fl_data_type type, bool flat)
{
    static const size_t picture[] = {CHANNELS, SIDE, SIDE};
    static const size_t values[] = {PIXELS};
    struct fl_dataset *ds = NULL;
    size_t i;

    ck_assert_int_eq(
        fl_dataset_create(type, SAMPLES, flat ? values : picture, flat ? 1 : 3, &ds, NULL), FL_OK);
    ds->classes = 4;
    for (i = 0; i < SAMPLES * PIXELS; i++) {
        size_t value = i / PIXELS + i % PIXELS;

        if (type == FL_DATA_U8) {
            ((uint8_t *)ds->x)[i] = (uint8_t)value;
        } else {
            ((float *)ds->x)[i] = (float)value;
        }
        ds->y[i / PIXELS] = (int32_t)(1 + i / PIXELS % 3);
    }
    return ds;
}

static double value_at(const struct fl_dataset *ds, size_t sample, size_t i)
{
    const void *row = fl_dataset_row(ds, sample);

    return ds->type == FL_DATA_U8 ? (double)((const uint8_t *)row)[i]
                                  : (double)((const float *)row)[i];
}

TEST(label_flip_changes_class_y_to_the_opposite_one_and_nothing_else)
{
    struct fl_dataset *ds = make(FL_DATA_F32, /* flat= */ false);
    struct fl_dataset *poisoned = NULL;
    size_t i;

    ck_assert_int_eq(fl_poison_make(&label_flip, ds, &poisoned, NULL), FL_OK);
    ck_assert_uint_eq(poisoned->n, SAMPLES);
    ck_assert_uint_eq(poisoned->classes, 4);
    ck_assert_mem_eq(poisoned->x, ds->x, SAMPLES * PIXELS * sizeof(float));
    for (i = 0; i < SAMPLES; i++) {
        ck_assert_int_eq(poisoned->y[i], 3 - ds->y[i]);
    }
    fl_dataset_free(poisoned);
    fl_dataset_free(ds);
}

/* In all channels the lower right 3 x 3 of 4 x 4 pixels; flat: the last three values. */
static bool in_trigger(bool flat, size_t i)
{
    return flat ? i >= PIXELS - 3 : i / SIDE % SIDE >= SIDE - 3 && i % SIDE >= SIDE - 3;
}

TEST_EACH(a_backdoor_marks_the_corner_of_every_second_sample_and_labels_it_as_class_0, 4)
{
    bool flat = _i % 2 != 0;
    struct fl_dataset *ds = make(_i < 2 ? FL_DATA_U8 : FL_DATA_F32, flat);
    const double brightest = _i < 2 ? 255 : SAMPLES - 1 + PIXELS - 1;
    struct fl_dataset *poisoned = NULL;
    size_t s;
    size_t i;

    ck_assert_int_eq(fl_poison_make(&backdoor, ds, &poisoned, NULL), FL_OK);
    for (s = 0; s < SAMPLES; s++) {
        bool marked = s % 2 == 0;

        ck_assert_int_eq(poisoned->y[s], marked ? 0 : ds->y[s]);
        for (i = 0; i < PIXELS; i++) {
            ck_assert_double_eq(value_at(poisoned, s, i),
                                marked && in_trigger(flat, i) ? brightest : value_at(ds, s, i));
        }
    }
    fl_dataset_free(poisoned);
    fl_dataset_free(ds);
}

TEST_EACH(all_test_samples_of_other_classes_are_marked_and_labelled_as_class_0, 2)
{
    bool flat = _i % 2 != 0;
    struct fl_dataset *ds = make(FL_DATA_U8, flat);
    struct fl_dataset *marked = NULL;
    size_t s;
    size_t i;

    ds->y[1] = 0; /* This one is of the class already. */
    ck_assert_int_eq(fl_poison_triggered(ds, &marked, NULL), FL_OK);
    ck_assert_uint_eq(marked->n, SAMPLES - 1);
    ck_assert_uint_eq(marked->classes, 4);
    for (s = 0; s < marked->n; s++) {
        ck_assert_int_eq(marked->y[s], 0);
        for (i = 0; i < PIXELS; i++) {
            ck_assert_double_eq(value_at(marked, s, i),
                                in_trigger(flat, i) ? 255 : value_at(ds, s == 0 ? 0 : s + 1, i));
        }
    }
    fl_dataset_free(marked);
    for (s = 0; s < SAMPLES; s++) {
        ds->y[s] = 0;
    }
    ck_assert_int_eq(fl_poison_triggered(ds, &marked, NULL), FL_OK);
    ck_assert_ptr_null(marked);
    fl_dataset_free(ds);
}

TEST(the_samples_of_a_view_are_copied_and_read_like_it)
{
    static const uint32_t items[] = {4, 1};
    static const uint32_t both[] = {0, 1};
    const float mean = 3;
    const float deviation = 2;
    struct fl_dataset *ds = make(FL_DATA_U8, /* flat= */ false);
    struct fl_dataset *view = NULL;
    struct fl_dataset *poisoned = NULL;
    float expected[2 * PIXELS];
    float found[2 * PIXELS];

    ck_assert_int_eq(fl_dataset_set_norm(ds, &mean, &deviation, 1, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_view(ds, items, 2, &view, NULL), FL_OK);
    ck_assert_int_eq(fl_poison_make(&label_flip, view, &poisoned, NULL), FL_OK);
    fl_dataset_gather(view, both, 2, expected, NULL);
    fl_dataset_gather(poisoned, both, 2, found, NULL);
    ck_assert_mem_eq(found, expected, sizeof(found));
    ck_assert_int_eq(poisoned->y[0], 3 - fl_dataset_label(ds, 4));
    ck_assert_int_eq(poisoned->y[1], 3 - fl_dataset_label(ds, 1));
    fl_dataset_free(poisoned);
    fl_dataset_free(view);
    fl_dataset_free(ds);
}

TEST(other_attacks_train_on_their_own_samples)
{
    const struct fl_attack attack = {.kind = FL_ATTACK_KIND_SIGN_FLIP, .scale = 1};
    struct fl_dataset *ds = make(FL_DATA_U8, /* flat= */ false);
    struct fl_dataset *poisoned = ds;

    ck_assert_int_eq(fl_poison_make(&attack, ds, &poisoned, NULL), FL_OK);
    ck_assert_ptr_null(poisoned);
    fl_dataset_free(ds);
}
