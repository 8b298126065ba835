#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/conv_impl.h"
#include "libfl/num/dense.h"
#include "libfl/num/gemm.h"
#include "libfl/num/pool.h"
#include "tests/lib/kernel_rows.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/libfl/num/reference.h"

static void load_blas(void)
{
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
}

static float *normals(uint64_t seed, size_t n)
{
    float *p = malloc(n * sizeof(*p));
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(p);
    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    for (i = 0; i < n; i++) {
        p[i] = (float)fl_rng_normal(&rng);
    }
    return p;
}

#define GUARD 777.25f

/* With a guard behind it. */
static float *scratch_of(const struct fl_conv *conv, size_t batch)
{
    size_t n = fl_conv_scratch(conv, batch, FL_CONV_JVP);
    float *p = aligned_alloc(64, (n + 16) / 16 * 16 * sizeof(*p));

    ck_assert_ptr_nonnull(p);
    p[n] = GUARD;
    return p;
}

/* Relative to the largest number. */
static void check_close(const float *have, const float *want, size_t n)
{
    double largest = 0.0;
    double worst = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        worst = fmax(worst, fabs((double)have[i] - (double)want[i]));
        ck_assert(isfinite(have[i]));
    }
    ck_assert_double_le(worst, 8e-6 * (1.0 + largest));
}

#define CONV(c_, h_, w_, k_, kh_, kw_, s_, p_)                                                \
    {                                                                                         \
        .c = (c_), .h = (h_), .w = (w_), .k = (k_), .kh = (kh_), .kw = (kw_), .stride = (s_), \
        .pad = (p_)                                                                           \
    }

static const struct {
    struct fl_conv conv;
    size_t batch;
} shapes[] = {
    {CONV(1, 1, 1, 1, 1, 1, 1, 0), 1},
    {CONV(3, 8, 8, 16, 3, 3, 1, 1), 3},
    {CONV(16, 5, 7, 3, 3, 3, 1, 1), 2},
    {CONV(2, 9, 6, 5, 5, 5, 1, 2), 2},
    {CONV(4, 7, 9, 16, 3, 2, 2, 1), 3},
    {CONV(5, 11, 4, 7, 3, 4, 3, 0), 2},
    {CONV(2, 17, 17, 16, 3, 3, 1, 1), 2},
    {CONV(1, 3, 3, 2, 3, 3, 1, 2), 2},
    {CONV(17, 2, 2, 16, 3, 3, 1, 1), 5},
    {CONV(3, 4, 4, 6, 1, 1, 2, 0), 2},
    /* Winograd's: light and heavy weights, one block of tiles and many, cut tiles. */
    {CONV(16, 7, 5, 16, 3, 3, 1, 1), 3},
    {CONV(32, 9, 9, 48, 3, 3, 1, 0), 4},
    {CONV(48, 11, 8, 32, 5, 5, 1, 0), 2},
    {CONV(16, 6, 6, 64, 5, 5, 1, 2), 9},
    {CONV(32, 2, 2, 80, 3, 3, 1, 1), 7},
    {CONV(16, 3, 3, 16, 3, 3, 1, 2), 1},
    {CONV(16, 21, 22, 16, 3, 3, 1, 1), 2},
    {CONV(80, 4, 4, 96, 3, 3, 1, 1), 5},
    {CONV(16, 12, 11, 32, 3, 3, 1, 1), 30},
    /* The first layer's. */
    {CONV(1, 9, 11, 16, 5, 5, 1, 0), 3},
    {CONV(3, 10, 7, 48, 3, 3, 1, 1), 2},
    {CONV(4, 6, 6, 64, 4, 2, 1, 1), 2},
};

/*
 * A shape with its own strides: some samples lie apart. All numbers but the order of w are the same
 * for every row of kernels, so that what the oracle makes of them is, too.
 */
struct rig {
    struct fl_conv conv, plain;
    size_t batch, ldx, ldy, n_w;
    float *x, *y, *w, *w_plain, *bias, *scratch, *collected;
    size_t *visits;
};

/* From the order of a way to that of the oracle. */
static void to_plain(const struct rig *rig, float *to, const float *from)
{
    size_t i;

    for (i = 0; i < rig->n_w; i++) {
        to[fl_conv_place(&rig->plain, i)] = from[fl_conv_place(&rig->conv, i)];
    }
}

/*
 * Plain deploy/test.sh under ASan: those of more than 200 000 products take minutes there,
 * and all ways of computing one have smaller shapes.
 */
static bool is_left_out(size_t shape, const struct fl_conv *conv)
{
    return sanitized_short() &&
           fl_conv_weights(conv) * conv->oh * conv->ow * shapes[shape].batch > 200000;
}

/* False: this processor lacks the row, or the shape is left out. */
static bool rig_up(struct rig *rig, size_t shape, size_t row, size_t gap)
{
    const struct fl_kernels *kernels = fl__kernels_row(row);
    struct fl_conv *conv = &rig->conv;
    size_t i;

    if (!kernels->supported()) {
        return false;
    }
    *conv = shapes[shape].conv;
    fl_conv_plan(conv, kernels);
    if (is_left_out(shape, conv)) {
        return false;
    }
    rig->plain = *conv;
    rig->plain.algorithm = &fl__conv_patches;
    rig->batch = shapes[shape].batch;
    rig->ldx = conv->h * conv->w * conv->c + gap;
    rig->ldy = conv->oh * conv->ow * conv->k + gap;
    rig->n_w = fl_conv_weights(conv);
    rig->x = normals(1, rig->batch * rig->ldx);
    rig->y = normals(2, rig->batch * rig->ldy);
    rig->w = normals(3, rig->n_w);
    rig->bias = normals(4, conv->k);
    rig->scratch = scratch_of(conv, rig->batch);
    rig->w_plain = normals(6, rig->n_w);
    rig->collected = normals(7, rig->n_w);
    rig->visits = calloc(rig->n_w, sizeof(*rig->visits));
    ck_assert_ptr_nonnull(rig->visits);
    for (i = 0; i < rig->n_w; i++) {
        rig->w[fl_conv_place(conv, i)] = rig->w_plain[fl_conv_place(&rig->plain, i)];
    }
    return true;
}

/* An update that also spoils the weights: what comes after it must not need them. */
static void collect(void *ctx, size_t offset, size_t n, const float *grad)
{
    struct rig *rig = ctx;
    size_t i;

    ck_assert_uint_le(offset + n, rig->n_w);
    for (i = 0; i < n; i++) {
        rig->collected[offset + i] = grad[i];
        rig->visits[offset + i]++;
        rig->w[offset + i] = NAN;
    }
}

static void rig_down(struct rig *rig)
{
    ck_assert(rig->scratch[fl_conv_scratch(&rig->conv, rig->batch, FL_CONV_JVP)] == GUARD);
    free(rig->x);
    free(rig->y);
    free(rig->w);
    free(rig->bias);
    free(rig->scratch);
    free(rig->w_plain);
    free(rig->collected);
    free(rig->visits);
}

/* By the oracle; owned by the caller. */
static float *forward_by_definition(const struct rig *rig, bool relu)
{
    float *want = normals(5, rig->batch * rig->ldy);

    conv_forward_ref(&rig->plain, want, rig->ldy, rig->x, rig->ldx, rig->w_plain, rig->bias,
                     rig->batch, relu);
    return want;
}

static float *data_by_definition(const struct rig *rig)
{
    float *want = normals(5, rig->batch * rig->ldx);

    conv_backward_data_ref(&rig->plain, want, rig->ldx, rig->y, rig->ldy, rig->w_plain, rig->batch);
    return want;
}

static float *weights_by_definition(const struct rig *rig, const float *x, const float *dy)
{
    float *want = normals(5, rig->n_w);

    conv_backward_weights_ref(&rig->plain, want, x, rig->ldx, dy, rig->ldy, rig->batch);
    return want;
}

TEST_CASE("conv", load_blas, NULL);

TEST_EACH(a_convolution_agrees_with_its_definition, ARRAY_LEN(shapes))
{
    struct rig rig;
    size_t gap, row, b;

    for (gap = 0; gap <= 5; gap += 5) {
        float *want = NULL;

        for (row = 0; row < kernel_rows(); row++) {
            if (!rig_up(&rig, (size_t)_i, row, gap)) {
                continue;
            }
            want = want != NULL ? want : forward_by_definition(&rig, gap == 0);
            fl_conv_forward(&rig.conv, rig.y, rig.ldy, rig.x, rig.ldx, rig.w, rig.bias, rig.batch,
                            gap == 0, rig.scratch);
            for (b = 0; b < rig.batch; b++) {
                check_close(rig.y + b * rig.ldy, want + b * rig.ldy,
                            rig.conv.oh * rig.conv.ow * rig.conv.k);
            }
            rig_down(&rig);
        }
        free(want);
    }
}

/* The update of (x, dy) and, with rx, of (rx, sy) too. */
static struct fl_conv_backward backward_of(struct rig *rig, float *dx, const float *rx,
                                           const float *sy)
{
    return (struct fl_conv_backward){.batch = rig->batch,
                                     .dy = rig->y,
                                     .lddy = rig->ldy,
                                     .w = rig->w,
                                     .dx = dx,
                                     .lddx = rig->ldx,
                                     .x = rig->x,
                                     .ldx = rig->ldx,
                                     .rx = rx,
                                     .sy = sy,
                                     .update = collect,
                                     .ctx = rig};
}

static void check_gradients(struct rig *rig, const float *want_dx, const float *want_dw)
{
    float *dx = normals(8, rig->batch * rig->ldx);
    float *dw = normals(9, rig->n_w);
    const struct fl_conv_backward io = backward_of(rig, dx, NULL, NULL);
    size_t i;

    fl_conv_backward(&rig->conv, &io, rig->scratch);
    /* All of it, so that the columns behind a sample are zero. */
    check_close(dx, want_dx, rig->batch * rig->ldx);
    for (i = 0; i < rig->n_w; i++) {
        ck_assert_uint_eq(rig->visits[i], 1);
    }
    to_plain(rig, dw, rig->collected);
    check_close(dw, want_dw, rig->n_w);
    free(dx);
    free(dw);
}

TEST_EACH(the_gradients_of_a_convolution_agree_with_their_definition, ARRAY_LEN(shapes))
{
    struct rig rig;
    size_t gap, row;

    for (gap = 0; gap <= 5; gap += 5) {
        float *want_dx = NULL;
        float *want_dw = NULL;

        for (row = 0; row < kernel_rows(); row++) {
            if (!rig_up(&rig, (size_t)_i, row, gap)) {
                continue;
            }
            want_dx = want_dx != NULL ? want_dx : data_by_definition(&rig);
            want_dw = want_dw != NULL ? want_dw : weights_by_definition(&rig, rig.x, rig.y);
            check_gradients(&rig, want_dx, want_dw);
            rig_down(&rig);
        }
        free(want_dx);
        free(want_dw);
    }
}

/* What the oracle makes of (x, y), and of (rx, sy). */
static float *both_by_definition(const struct rig *rig, const float *rx, const float *sy)
{
    float *sum = weights_by_definition(rig, rig->x, rig->y);
    float *second = weights_by_definition(rig, rx, sy);
    size_t i;

    for (i = 0; i < rig->n_w; i++) {
        sum[i] += second[i];
    }
    free(second);
    return sum;
}

/* dw of (x, dy) and (rx, sy) is the sum of both; and without an update nothing but dx is made. */
TEST_EACH(a_second_product_adds_to_the_gradient_of_the_weights, ARRAY_LEN(shapes))
{
    struct rig rig;
    float *want = NULL;
    size_t row;

    for (row = 0; row < kernel_rows(); row++) {
        struct fl_conv_backward io;
        float *rx, *sy, *dw;

        if (!rig_up(&rig, (size_t)_i, row, 0)) {
            continue;
        }
        rx = normals(10, rig.batch * rig.ldx);
        sy = normals(11, rig.batch * rig.ldy);
        dw = normals(12, rig.n_w);
        want = want != NULL ? want : both_by_definition(&rig, rx, sy);
        io = backward_of(&rig, NULL, rx, sy);
        fl_conv_backward(&rig.conv, &io, rig.scratch);
        to_plain(&rig, dw, rig.collected);
        check_close(dw, want, rig.n_w);
        free(rx);
        free(sy);
        free(dw);
        rig_down(&rig);
    }
    free(want);
}

TEST_EACH(bias_gradients_are_sums_over_pixels, kernel_rows() * ARRAY_LEN(shapes))
{
    struct rig rig;
    float db[256];
    size_t k, q;

    if (!rig_up(&rig, (size_t)_i % ARRAY_LEN(shapes), (size_t)_i / ARRAY_LEN(shapes), 5)) {
        return;
    }
    fl_conv_backward_bias(&rig.conv, db, rig.y, rig.ldy, NULL, 0, rig.batch);
    for (k = 0; k < rig.conv.k; k++) {
        size_t area = rig.conv.oh * rig.conv.ow;
        double sum = 0.0;

        for (q = 0; q < rig.batch * area; q++) {
            sum += (double)rig.y[q / area * rig.ldy + q % area * rig.conv.k + k];
        }
        ck_assert_double_eq_tol((double)db[k], sum, 2e-4);
    }
    rig_down(&rig);
}

/* Which pixels a sample's neighbours in the batch bring along must not matter. */
TEST_EACH(a_sample_has_the_same_bits_in_any_batch, kernel_rows() * ARRAY_LEN(shapes))
{
    struct rig rig;
    float *alone;
    size_t b;

    if (!rig_up(&rig, (size_t)_i % ARRAY_LEN(shapes), (size_t)_i / ARRAY_LEN(shapes), 0)) {
        return;
    }
    alone = normals(14, rig.ldy);
    fl_conv_forward(&rig.conv, rig.y, rig.ldy, rig.x, rig.ldx, rig.w, rig.bias, rig.batch, true,
                    rig.scratch);
    for (b = 0; b < rig.batch; b += 1 + rig.batch / 3) {
        if (rig.conv.algorithm == &fl__conv_patches) {
            break; /* OpenBLAS promises nothing of the kind */
        }
        fl_conv_forward(&rig.conv, alone, rig.ldy, rig.x + b * rig.ldx, rig.ldx, rig.w, rig.bias, 1,
                        true, rig.scratch);
        ck_assert_mem_eq(alone, rig.y + b * rig.ldy, rig.ldy * sizeof(*alone));
    }
    free(alone);
    rig_down(&rig);
}

TEST(bias_sums_of_more_channels_than_a_chunk_are_whole)
{
    const struct fl_conv conv = {.k = 130, .oh = 2, .ow = 1, .kernels = fl_kernels_best()};
    float dy[3 * 264];
    float db[130];
    size_t i;

    for (i = 0; i < ARRAY_LEN(dy); i++) {
        dy[i] = (float)(i % 264 % 130);
    }
    fl_conv_backward_bias(&conv, db, dy, 264, NULL, 0, 3);
    for (i = 0; i < 130; i++) {
        ck_assert(db[i] == 6.0f * (float)i);
    }
}

TEST(planes_become_pixels)
{
    const float x[12] = {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60};
    const float want[16] = {1, 10, 2, 20, 3, 30, -1, -1, 4, 40, 5, 50, 6, 60, -1, -1};
    float y[16];
    size_t i;

    for (i = 0; i < ARRAY_LEN(y); i++) {
        y[i] = -1.0f;
    }
    fl_planes_to_pixels(y, 8, x, 6, 2, 2, 3);
    ck_assert_mem_eq(y, want, sizeof(want));
}

TEST(a_tie_goes_to_the_first_and_nan_is_the_largest)
{
    const struct fl_pool pool = {.c = 2, .h = 2, .w = 2, .size = 2, .stride = 2, .oh = 1, .ow = 1};
    const float tie[8] = {1, 0, 5, 7, 5, -1, 2, 7};
    const float nan[8] = {1, NAN, NAN, 3, 5, -1, 2, 4};
    const float dy[2] = {3, 4};
    const float want[9] = {0, 0, 3, 4, 0, 0, 0, 0, 0};
    float y[2];
    float dx[9];
    uint8_t index[2];

    fl_pool_forward(fl_kernels_best(), &pool, y, 2, index, tie, 8, 1);
    ck_assert(y[0] == 5.0f && y[1] == 7.0f && index[0] == 1 && index[1] == 1);
    dx[8] = 9.0f;
    fl_pool_backward(fl_kernels_best(), &pool, dx, 9, dy, 2, index, NULL, 0, 1);
    ck_assert_mem_eq(dx, want, sizeof(want));
    fl_pool_forward(fl_kernels_best(), &pool, y, 2, index, nan, 8, 1);
    ck_assert(isnan(y[0]) && isnan(y[1]) && index[0] == 1 && index[1] == 0);
}

TEST(windows_that_overlap_and_reach_over_the_edge_share_their_gradient)
{
    /* 3x3 windows, stride 2, one row and column of padding before a 3x3 image. */
    const struct fl_pool pool = {
        .c = 1, .h = 3, .w = 3, .size = 3, .stride = 2, .top = 1, .left = 1, .oh = 2, .ow = 2};
    const float x[9] = {-9, -8, -7, -6, -1, -5, -4, -3, -2};
    const float dy[4] = {1, 2, 4, 8};
    const float want[9] = {0, 0, 0, 0, 15, 0, 0, 0, 0};
    const uint8_t places[4] = {8, 6, 2, 0};
    float y[4];
    float dx[9];
    uint8_t index[4];
    size_t i;

    fl_pool_forward(fl_kernels_best(), &pool, y, 4, index, x, 9, 1);
    for (i = 0; i < 4; i++) {
        /* Padding is no zero: the largest of negative numbers is negative. */
        ck_assert(y[i] == -1.0f);
        ck_assert_uint_eq(index[i], places[i]);
    }
    fl_pool_backward(fl_kernels_best(), &pool, dx, 9, dy, 4, index, NULL, 0, 1);
    ck_assert_mem_eq(dx, want, sizeof(want));
}
