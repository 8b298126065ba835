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
