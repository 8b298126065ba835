#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/norm.h"
#include "tests/lib/kernel_rows.h"
#include "tests/lib/suites.h"

static const struct {
    size_t batch, pixels, c;
} shapes[] = {{1, 1, 3}, {7, 1, 16}, {3, 6, 5}, {4, 9, 64}, {2, 300, 67}, {5, 4, 130}};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define C_MAX    130

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    return p;
}

/* Numbers about `mean` in the samples, and large ones between these, which must not matter. */
static float *drawn(struct fl_rng *rng, size_t batch, size_t n, size_t ld, float mean)
{
    float *p = floats(batch * ld);
    size_t i;

    for (i = 0; i < batch * ld; i++) {
        p[i] = i % ld < n ? mean + (float)fl_rng_normal(rng) : 1e6f;
    }
    return p;
}

struct plain {
    double mean[C_MAX], var[C_MAX], dgamma[C_MAX], dbeta[C_MAX];
};

/* The definitions, on all numbers at once and in double. */
static void moments_of(struct plain *want, const struct fl_bn *bn, const float *x, size_t ld,
                       size_t batch)
{
    double count = (double)(batch * bn->pixels);
    size_t j, q;

    for (j = 0; j < bn->c; j++) {
        double sum = 0.0;
        double square = 0.0;

        for (q = 0; q < batch * bn->pixels; q++) {
            sum += (double)x[q / bn->pixels * ld + q % bn->pixels * bn->c + j];
        }
        want->mean[j] = sum / count;
        for (q = 0; q < batch * bn->pixels; q++) {
            double d = (double)x[q / bn->pixels * ld + q % bn->pixels * bn->c + j] - want->mean[j];

            square += d * d;
        }
        want->var[j] = square / count;
    }
}

struct rig {
    const struct fl_kernels *kernels;
    struct fl_bn bn;
    size_t batch, n;
    size_t ldx, ldy, lddx;
    float *x, *y, *dy, *dx;
    float mean[C_MAX], var[C_MAX], gamma[C_MAX], beta[C_MAX], dgamma[C_MAX], dbeta[C_MAX];
};

/* Samples one behind the other, all with numbers between them, or those of dx alone. */
enum { JOINED, APART, DX_APART };

static bool rig_up(struct rig *rig, size_t i, int how, float mean)
{
    struct fl_rng rng;
    size_t j;

    *rig = (struct rig){.kernels = fl__kernels_row(i / N_SHAPES)};
    if (!rig->kernels->supported()) {
        return false;
    }
    fl_rng_key(&rng, 13, FL_RNG_TEST, i, 0);
    rig->bn = (struct fl_bn){.c = shapes[i % N_SHAPES].c, .pixels = shapes[i % N_SHAPES].pixels};
    rig->batch = shapes[i % N_SHAPES].batch;
    rig->n = rig->bn.c * rig->bn.pixels;
    rig->ldx = rig->n + (how == APART ? 1 : 0);
    rig->ldy = rig->n + (how == APART ? 2 : 0);
    rig->lddx = rig->n + (how != JOINED ? 5 : 0);
    rig->x = drawn(&rng, rig->batch, rig->n, rig->ldx, mean);
    rig->dy = drawn(&rng, rig->batch, rig->n, rig->ldy, 0.1f);
    rig->y = floats(rig->batch * rig->ldy);
    rig->dx = drawn(&rng, rig->batch, rig->n, rig->lddx, 0.0f);
    for (j = 0; j < rig->bn.c; j++) {
        rig->gamma[j] = (float)(0.5 + fl_rng_unit(&rng));
        rig->beta[j] = (float)fl_rng_normal(&rng);
    }
    return true;
}

static void rig_down(struct rig *rig)
{
    free(rig->x);
    free(rig->y);
    free(rig->dy);
    free(rig->dx);
}

/* With 0: the plain case. The others lose four to seven digits where squares are subtracted. */
static const float means[] = {0.0f, 100.0f, -3000.0f};

TEST_EACH(moments_keep_their_precision_far_from_zero, kernel_rows() * N_SHAPES)
{
    struct rig rig;
    size_t i, j;

    for (i = 0; i < 2 * sizeof(means) / sizeof(means[0]); i++) {
        struct plain want;
        double far = (double)fabsf(means[i / 2]);

        if (!rig_up(&rig, (size_t)_i, i % 2 == 1 ? APART : JOINED, means[i / 2])) {
            return;
        }
        moments_of(&want, &rig.bn, rig.x, rig.ldx, rig.batch);
        fl_bn_moments(rig.kernels, &rig.bn, rig.mean, rig.var, rig.x, rig.ldx, rig.batch);
        for (j = 0; j < rig.bn.c; j++) {
            ck_assert_double_eq_tol((double)rig.mean[j], want.mean[j],
                                    8.0 * (double)FLT_EPSILON * (1.0 + far));
            ck_assert_double_eq_tol((double)rig.var[j], want.var[j], 2e-6 * (1.0 + want.var[j]));
        }
        rig_down(&rig);
    }
}

/*
 * The moments are taken about the first sample; here it is as far from all others as one of 64 can
 * be, and six bits are lost. About zero it would be thirteen.
 */
TEST_EACH(a_first_sample_unlike_the_rest_spoils_no_variance, kernel_rows())
{
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i);
    const struct fl_bn bn = {.c = 17, .pixels = 16};
    size_t batch = 64;
    size_t n = bn.c * bn.pixels;
    struct plain want;
    struct fl_rng rng;
    float mean[17], var[17];
    float *x;
    size_t i;

    if (!kernels->supported()) {
        return;
    }
    fl_rng_key(&rng, 14, FL_RNG_TEST, 0, 0);
    x = drawn(&rng, batch, n, n, 10000.0f);
    for (i = 0; i < n; i++) {
        x[i] += 1000.0f;
    }
    moments_of(&want, &bn, x, n, batch);
    fl_bn_moments(kernels, &bn, mean, var, x, n, batch);
    for (i = 0; i < bn.c; i++) {
        ck_assert_double_eq_tol((double)mean[i], want.mean[i], 1e-6 * want.mean[i]);
        ck_assert_double_eq_tol((double)var[i], want.var[i], 1e-4 * want.var[i]);
    }
    free(x);
}

TEST_EACH(equal_numbers_have_no_variance_and_one_that_is_not_finite_shows, kernel_rows())
{
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i);
    const struct fl_bn bn = {.c = 3, .pixels = 5};
    float x[30], mean[3], var[3];
    size_t i;

    if (!kernels->supported()) {
        return;
    }
    for (i = 0; i < 30; i++) {
        x[i] = 12345.678f;
    }
    x[16] = NAN; /* channel 1 of the second sample */
    x[2] = INFINITY;
    fl_bn_moments(kernels, &bn, mean, var, x, 15, 2);
    ck_assert(mean[0] == 12345.678f && var[0] == 0.0f);
    ck_assert(isnan(mean[1]) && isnan(var[1]));
    ck_assert(!isfinite(mean[2]) && !isfinite(var[2]));
}

/* Of number i of sample b: what ReLU let through of dy, and xhat. */
static double passed(const struct rig *rig, bool relu, size_t b, size_t i)
{
    bool stopped = relu && !(rig->y[b * rig->ldy + i] > 0.0f);

    return stopped ? 0.0 : (double)rig->dy[b * rig->ldy + i];
}

static double xhat(const struct rig *rig, size_t b, size_t i)
{
    size_t j = i % rig->bn.c;

    return ((double)rig->x[b * rig->ldx + i] - (double)rig->mean[j]) /
           sqrt((double)rig->var[j] + FL_BN_EPS);
}

static void check_sums(const struct rig *rig, struct plain *want, bool relu)
{
    size_t b, i, j;

    (void)memset(want, 0, sizeof(*want));
    for (b = 0; b < rig->batch; b++) {
        for (i = 0; i < rig->n; i++) {
            want->dbeta[i % rig->bn.c] += passed(rig, relu, b, i);
            want->dgamma[i % rig->bn.c] += passed(rig, relu, b, i) * xhat(rig, b, i);
        }
    }
    for (j = 0; j < rig->bn.c; j++) {
        double allowed = 2e-6 * (double)(rig->batch * rig->bn.pixels);

        ck_assert_double_eq_tol((double)rig->dbeta[j], want->dbeta[j], allowed);
        ck_assert_double_eq_tol((double)rig->dgamma[j], want->dgamma[j], allowed);
    }
}

static void check_data(const struct rig *rig, const struct plain *want, bool relu)
{
    double m = (double)(rig->batch * rig->bn.pixels);
    size_t b, i;

    for (b = 0; b < rig->batch; b++) {
        for (i = 0; i < rig->lddx; i++) {
            size_t j = i % rig->bn.c;
            double scale = (double)rig->gamma[j] / sqrt((double)rig->var[j] + FL_BN_EPS);
            double dx = 0.0;

            if (i < rig->n) {
                dx = scale * (passed(rig, relu, b, i) - want->dbeta[j] / m -
                              xhat(rig, b, i) * want->dgamma[j] / m);
            }
            if (!(fabs((double)rig->dx[b * rig->lddx + i] - dx) <= 4e-6 * scale)) {
                ck_abort_msg("sample %zu, number %zu: %g instead of %g", b, i,
                             (double)rig->dx[b * rig->lddx + i], dx);
            }
        }
    }
}

static void check_forward(const struct rig *rig, bool relu)
{
    size_t b, i;

    for (b = 0; b < rig->batch; b++) {
        for (i = 0; i < rig->n; i++) {
            size_t j = i % rig->bn.c;
            double y = (double)rig->gamma[j] * xhat(rig, b, i) + (double)rig->beta[j];

            y = relu && y < 0.0 ? 0.0 : y;
            ck_assert(fabs((double)rig->y[b * rig->ldy + i] - y) <= 4e-6 * (1.0 + fabs(y)));
        }
        /* Between the samples nothing is written. */
        for (; i < rig->ldy; i++) {
            ck_assert(rig->y[b * rig->ldy + i] == 0.0f);
        }
    }
}

TEST_EACH(forward_and_backward_agree_with_their_definition, kernel_rows() * N_SHAPES)
{
    struct plain want;
    struct rig rig;
    size_t variant;

    for (variant = 0; variant < 6; variant++) {
        bool relu = variant % 2 == 1;
        struct fl_bn_backward io;

        if (!rig_up(&rig, (size_t)_i, (int)variant / 2, 0.3f)) {
            return;
        }
        fl_bn_moments(rig.kernels, &rig.bn, rig.mean, rig.var, rig.x, rig.ldx, rig.batch);
        fl_bn_forward(rig.kernels, &rig.bn, rig.y, rig.ldy, rig.x, rig.ldx, rig.mean, rig.var,
                      rig.gamma, rig.beta, rig.batch, relu);
        check_forward(&rig, relu);
        io = (struct fl_bn_backward){.dy = rig.dy,
                                     .lddy = rig.ldy,
                                     .x = rig.x,
                                     .ldx = rig.ldx,
                                     .mean = rig.mean,
                                     .var = rig.var,
                                     .gamma = rig.gamma,
                                     .beta = rig.beta,
                                     .relu = relu};
        fl_bn_backward_sums(rig.kernels, &rig.bn, rig.dgamma, rig.dbeta, &io, rig.batch);
        check_sums(&rig, &want, relu);
        fl_bn_backward_data(rig.kernels, &rig.bn, rig.dx, rig.lddx, &io, rig.dgamma, rig.dbeta,
                            rig.batch);
        check_data(&rig, &want, relu);
        rig_down(&rig);
    }
}
