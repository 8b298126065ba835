/* Cross-entropy towards labels and towards distributions of classes. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/nn/loss.h"
#include "tests/lib/suites.h"

#define BATCH   6
#define CLASSES 5
#define LD      16

struct rig {
    float z[BATCH * LD], t[BATCH * CLASSES], dz[BATCH * LD];
    int32_t y[BATCH];
};

/* Logits far apart in some rows, distributions with zeros in them, dirt in the padding. */
static void rig_up(struct rig *rig)
{
    struct fl_rng rng;
    size_t b, j;

    fl_rng_seed(&rng, 6);
    for (b = 0; b < BATCH; b++) {
        double sum = 0;

        rig->y[b] = (int32_t)fl_rng_below(&rng, CLASSES);
        for (j = 0; j < LD; j++) {
            rig->z[b * LD + j] = (float)(fl_rng_normal(&rng) * (double)(b + 1));
            rig->dz[b * LD + j] = NAN;
        }
        for (j = 0; j < CLASSES; j++) {
            rig->t[b * CLASSES + j] = j == b ? 0.0f : (float)fl_rng_unit(&rng);
            sum += (double)rig->t[b * CLASSES + j];
        }
        for (j = 0; j < CLASSES; j++) {
            rig->t[b * CLASSES + j] /= (float)sum;
        }
    }
}

/* One sample in double, its logit `moved` shifted by e. */
static double plain(const float *z, const float *t, size_t moved, double e)
{
    double sum = 0;
    double loss = 0;
    size_t j;

    for (j = 0; j < CLASSES; j++) {
        sum += exp((double)z[j] + (j == moved ? e : 0));
    }
    for (j = 0; j < CLASSES; j++) {
        loss -= (double)t[j] * ((double)z[j] + (j == moved ? e : 0) - log(sum));
    }
    return loss;
}

static double soft_loss(const struct rig *rig, const float *target, float scale, float *dz)
{
    const struct fl__ce ce = {.z = rig->z,
                              .ld = LD,
                              .target = target,
                              .batch = BATCH,
                              .classes = CLASSES,
                              .scale = scale};

    return fl__softmax_ce(fl_kernels_best(), &ce, dz, NULL);
}

TEST(the_gradient_towards_distributions_agrees_with_central_differences_in_double)
{
    struct rig rig;
    double want = 0;
    double loss;
    double e = 1e-5;
    size_t b, j;

    rig_up(&rig);
    loss = soft_loss(&rig, rig.t, 0.5f, rig.dz);
    for (b = 0; b < BATCH; b++) {
        const float *z = rig.z + b * LD;
        const float *t = rig.t + b * CLASSES;

        want += plain(z, t, CLASSES, 0);
        for (j = 0; j < CLASSES; j++) {
            double slope = (plain(z, t, j, e) - plain(z, t, j, -e)) / (2 * e);

            ck_assert_double_eq_tol((double)rig.dz[b * LD + j], 0.5 * slope, 2e-7);
        }
        for (j = CLASSES; j < LD; j++) {
            ck_assert(rig.dz[b * LD + j] == 0.0f);
        }
    }
    ck_assert_double_eq_tol(loss, want, 1e-5);
}

TEST(a_distribution_with_one_class_is_the_label_bit_for_bit)
{
    float hard[BATCH * LD];
    struct rig rig;
    double a, b;
    size_t correct, i;

    rig_up(&rig);
    (void)memset(rig.t, 0, sizeof(rig.t));
    (void)memset(hard, 0, sizeof(hard));
    for (i = 0; i < BATCH; i++) {
        rig.t[i * CLASSES + (size_t)rig.y[i]] = 1.0f;
    }
    a = fl__softmax_ce(
        fl_kernels_best(),
        &(struct fl__ce){
            .z = rig.z, .ld = LD, .y = rig.y, .batch = BATCH, .classes = CLASSES, .scale = 0.125f},
        hard, &correct);
    b = soft_loss(&rig, rig.t, 0.125f, rig.dz);
    ck_assert_double_eq(a, b);
    ck_assert_mem_eq(hard, rig.dz, sizeof(hard));
}

TEST(loss_and_gradient_are_linear_in_the_distribution)
{
    float mixed[BATCH * CLASSES], other[BATCH * CLASSES];
    float a[BATCH * LD], b[BATCH * LD];
    struct rig rig;
    double loss, la, lb;
    size_t i;

    rig_up(&rig);
    for (i = 0; i < BATCH * CLASSES; i++) {
        other[i] = rig.t[BATCH * CLASSES - 1 - i];
        mixed[i] = 0.25f * rig.t[i] + 0.75f * other[i];
    }
    la = soft_loss(&rig, rig.t, 1.0f, a);
    lb = soft_loss(&rig, other, 1.0f, b);
    loss = soft_loss(&rig, mixed, 1.0f, rig.dz);
    ck_assert_double_eq_tol(loss, 0.25 * la + 0.75 * lb, 1e-5);
    for (i = 0; i < BATCH * LD; i++) {
        ck_assert_double_eq_tol((double)rig.dz[i], 0.25 * (double)a[i] + 0.75 * (double)b[i], 1e-6);
    }
}

/* A diverged network must not look healthy. */
TEST(a_logit_that_is_not_finite_shows_in_the_loss)
{
    struct rig rig;

    rig_up(&rig);
    rig.z[2 * LD + 1] = NAN;
    ck_assert(isnan(soft_loss(&rig, rig.t, 1.0f, rig.dz)));
    rig.z[2 * LD + 1] = INFINITY;
    ck_assert(!isfinite(soft_loss(&rig, rig.t, 1.0f, rig.dz)));
}

/* --- values to be predicted --- */

static const enum fl__loss value_losses[] = {FL__LOSS_MSE, FL__LOSS_MAE, FL__LOSS_BCE};

/* The loss of one sample with a plain formula, in double, at z + e rz. */
static double plain_values(enum fl__loss loss, const float *z, const float *t, const float *rz,
                           double e)
{
    double sum = 0;
    size_t j;

    for (j = 0; j < CLASSES; j++) {
        double at = (double)z[j] + (rz != NULL ? e * (double)rz[j] : 0);
        double s = 1 / (1 + exp(-at));

        sum += loss == FL__LOSS_MSE   ? pow(at - (double)t[j], 2)
               : loss == FL__LOSS_MAE ? fabs(at - (double)t[j])
                                      : -(double)t[j] * log(s) - (1 - (double)t[j]) * log(1 - s);
    }
    return sum / CLASSES;
}

static struct fl__value_loss value_loss(const struct rig *rig, enum fl__loss loss)
{
    return (struct fl__value_loss){.loss = loss,
                                   .z = rig->z,
                                   .ld = LD,
                                   .table = rig->t,
                                   .y = rig->y,
                                   .batch = BATCH,
                                   .width = CLASSES,
                                   .scale = 0.5f};
}

TEST_EACH(losses_of_values_agree_with_plain_formulas_and_central_differences,
          ARRAY_LEN(value_losses))
{
    enum fl__loss loss = value_losses[_i];
    struct fl__value_loss in;
    struct rig rig;
    double want = 0;
    double e = 1e-5;
    size_t b, j;

    rig_up(&rig);
    in = value_loss(&rig, loss);
    for (b = 0; b < BATCH; b++) {
        rig.y[b] = (int32_t)((b + 2) % BATCH); /* rows of the table, not samples of the batch */
        want += plain_values(loss, rig.z + b * LD, rig.t + (size_t)rig.y[b] * CLASSES, NULL, 0);
    }
    ck_assert_double_eq_tol(fl__loss_of_values(&in, rig.dz, NULL, NULL, NULL), want, 1e-5);
    for (b = 0; b < BATCH; b++) {
        const float *z = rig.z + b * LD;
        const float *t = rig.t + (size_t)rig.y[b] * CLASSES;

        for (j = 0; j < LD; j++) {
            float one[CLASSES] = {0};
            double slope = 0;

            if (j < CLASSES) {
                one[j] = 1;
                slope = (plain_values(loss, z, t, one, e) - plain_values(loss, z, t, one, -e)) /
                        (2 * e);
            }
            ck_assert_double_eq_tol((double)rig.dz[b * LD + j], 0.5 * slope, 1e-6);
        }
    }
}

/* With scale 0 and slope 1, dz is the derivative of the directional derivative. */
TEST_EACH(derivatives_along_a_direction_agree_with_central_differences, ARRAY_LEN(value_losses))
{
    enum fl__loss loss = value_losses[_i];
    float rz[BATCH * LD], sz[BATCH * LD], up[BATCH * LD], down[BATCH * LD];
    struct fl__value_loss in;
    struct rig rig, moved;
    struct fl_rng rng;
    double slope, want = 0;
    float e = 1.0f / 1024;
    size_t b, j, i;

    rig_up(&rig);
    fl_rng_seed(&rng, 8);
    for (i = 0; i < BATCH * LD; i++) {
        rz[i] = (float)fl_rng_normal(&rng);
        rig.z[i] += rig.z[i] > 0 ? 1.0f : -1.0f; /* no step changes the side of a value */
    }
    for (b = 0; b < BATCH; b++) {
        rig.y[b] = (int32_t)b;
        want += (plain_values(loss, rig.z + b * LD, rig.t + b * CLASSES, rz + b * LD, 1e-5) -
                 plain_values(loss, rig.z + b * LD, rig.t + b * CLASSES, rz + b * LD, -1e-5)) /
                2e-5;
    }
    in = value_loss(&rig, loss);
    in.scale = 0;
    in.slope = 1;
    in.rz = rz;
    (void)fl__loss_of_values(&in, rig.dz, sz, &slope, NULL);
    ck_assert_double_eq_tol(slope, want, 1e-5);
    for (i = 0; i < 2; i++) {
        moved = rig;
        for (j = 0; j < BATCH * LD; j++) {
            moved.z[j] += (i == 0 ? e : -e) * rz[j];
        }
        in = value_loss(&moved, loss);
        in.scale = 1;
        (void)fl__loss_of_values(&in, i == 0 ? up : down, NULL, NULL, NULL);
    }
    in = value_loss(&rig, loss);
    in.scale = 1;
    (void)fl__loss_of_values(&in, moved.dz, NULL, NULL, NULL);
    for (b = 0; b < BATCH; b++) {
        for (j = 0; j < LD; j++) {
            i = b * LD + j;
            ck_assert_double_eq_tol((double)rig.dz[i], (double)(up[i] - down[i]) / (2 * (double)e),
                                    2e-4);
            ck_assert(sz[i] == moved.dz[i]);
        }
    }
}

TEST(a_prediction_of_several_labels_is_correct_when_all_of_them_are)
{
    const float z[3 * LD] = {[0] = 1, [1] = -1, [LD] = 1, [LD + 1] = 1, [2 * LD] = NAN};
    const float t[3 * 2] = {1, 0, 1, 0, 1, 0};
    const struct fl__value_loss in = {.loss = FL__LOSS_BCE,
                                      .z = z,
                                      .ld = LD,
                                      .table = t,
                                      .y = (const int32_t[]){0, 1, 2},
                                      .batch = 3,
                                      .width = 2};
    size_t correct = 9;

    ck_assert(isnan(fl__loss_of_values(&in, NULL, NULL, NULL, &correct)));
    ck_assert_uint_eq(correct, 1);
}

TEST(losses_of_values_stay_finite_for_large_outputs_and_show_nan)
{
    float z[LD] = {1e4f, -1e4f};
    const float t[2] = {0, 1};
    struct fl__value_loss in = {.loss = FL__LOSS_BCE,
                                .z = z,
                                .ld = LD,
                                .table = t,
                                .y = (const int32_t[]){0},
                                .batch = 1,
                                .width = 2,
                                .scale = 1};
    float dz[LD];
    size_t i;

    ck_assert_double_eq_tol(fl__loss_of_values(&in, dz, NULL, NULL, NULL), 1e4, 1e-6);
    ck_assert(dz[0] == 0.5f && dz[1] == -0.5f);
    z[0] = NAN;
    for (i = 0; i < ARRAY_LEN(value_losses); i++) {
        in.loss = value_losses[i];
        ck_assert(isnan(fl__loss_of_values(&in, dz, NULL, NULL, NULL)) && isnan(dz[0]));
    }
}
