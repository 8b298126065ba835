#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/conv.h"
#include "libfl/num/dense.h"
#include "libfl/num/gemm.h"
#include "libfl/num/pool.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

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

static float *scratch_of(const struct fl_conv *conv)
{
    size_t n = (fl_conv_scratch(conv) + 15) / 16 * 16;
    float *p = aligned_alloc(64, n * sizeof(*p));

    ck_assert_ptr_nonnull(p);
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
    ck_assert_double_le(worst, 3e-6 * (1.0 + largest));
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
    {CONV(1, 1, 1, 1, 1, 1, 1, 0), 1},    {CONV(3, 8, 8, 16, 3, 3, 1, 1), 3},
    {CONV(16, 5, 7, 3, 3, 3, 1, 1), 2},   {CONV(2, 9, 6, 5, 5, 5, 1, 2), 2},
    {CONV(4, 7, 9, 16, 3, 2, 2, 1), 3},   {CONV(5, 11, 4, 7, 3, 4, 3, 0), 2},
    {CONV(2, 17, 17, 16, 3, 3, 1, 1), 2}, {CONV(1, 3, 3, 2, 3, 3, 1, 2), 2},
    {CONV(17, 2, 2, 16, 3, 3, 1, 1), 5},  {CONV(3, 4, 4, 6, 1, 1, 2, 0), 2},
};

/* A shape with its own strides: some samples lie apart. */
struct rig {
    struct fl_conv conv;
    size_t batch, ldx, ldy, n_w;
    float *x, *y, *w, *bias, *scratch, *want;
};

static void rig_up(struct rig *rig, size_t i, size_t gap)
{
    struct fl_conv *conv = &rig->conv;

    *conv = shapes[i].conv;
    conv->oh = (conv->h + 2 * conv->pad - conv->kh) / conv->stride + 1;
    conv->ow = (conv->w + 2 * conv->pad - conv->kw) / conv->stride + 1;
    rig->batch = shapes[i].batch;
    rig->ldx = conv->h * conv->w * conv->c + gap;
    rig->ldy = conv->oh * conv->ow * conv->k + gap;
    rig->n_w = fl_conv_weights(conv);
    rig->x = normals(1, rig->batch * rig->ldx);
    rig->y = normals(2, rig->batch * rig->ldy);
    rig->w = normals(3, rig->n_w);
    rig->bias = normals(4, conv->k);
    rig->scratch = scratch_of(conv);
    rig->want = normals(5, rig->batch * (rig->ldx + rig->ldy) + rig->n_w);
}

static void rig_down(struct rig *rig)
{
    free(rig->x);
    free(rig->y);
    free(rig->w);
    free(rig->bias);
    free(rig->scratch);
    free(rig->want);
}

START_TEST(a_convolution_agrees_with_its_definition)
{
    struct rig rig;
    size_t gap, b;

    for (gap = 0; gap <= 5; gap += 5) {
        size_t n;

        rig_up(&rig, (size_t)_i, gap);
        n = rig.conv.oh * rig.conv.ow * rig.conv.k;
        fl_conv_forward(&rig.conv, rig.y, rig.ldy, rig.x, rig.ldx, rig.w, rig.bias, rig.batch,
                        gap == 0, rig.scratch);
        fl_conv_forward_ref(&rig.conv, rig.want, rig.ldy, rig.x, rig.ldx, rig.w, rig.bias,
                            rig.batch, gap == 0);
        for (b = 0; b < rig.batch; b++) {
            check_close(rig.y + b * rig.ldy, rig.want + b * rig.ldy, n);
        }
        rig_down(&rig);
    }
}
END_TEST

START_TEST(the_gradients_of_a_convolution_agree_with_their_definition)
{
    struct rig rig;
    size_t gap, k, q;

    for (gap = 0; gap <= 5; gap += 5) {
        float *dx;
        float *dw;
        float db[64];

        rig_up(&rig, (size_t)_i, gap);
        dx = normals(6, rig.batch * rig.ldx);
        dw = normals(7, rig.n_w);
        fl_conv_backward_data(&rig.conv, dx, rig.ldx, rig.y, rig.ldy, rig.w, rig.batch,
                              rig.scratch);
        fl_conv_backward_data_ref(&rig.conv, rig.want, rig.ldx, rig.y, rig.ldy, rig.w, rig.batch);
        /* All of it, so that the columns behind a sample are zero. */
        check_close(dx, rig.want, rig.batch * rig.ldx);
        fl_conv_backward_weights(&rig.conv, dw, rig.x, rig.ldx, rig.y, rig.ldy, rig.batch,
                                 /* add= */ false, rig.scratch);
        fl_conv_backward_weights_ref(&rig.conv, rig.want, rig.x, rig.ldx, rig.y, rig.ldy,
                                     rig.batch);
        check_close(dw, rig.want, rig.n_w);
        fl_conv_backward_bias(&rig.conv, db, rig.y, rig.ldy, rig.batch);
        for (k = 0; k < rig.conv.k; k++) {
            double sum = 0.0;

            for (q = 0; q < rig.batch * rig.conv.oh * rig.conv.ow; q++) {
                size_t area = rig.conv.oh * rig.conv.ow;

                sum += (double)rig.y[q / area * rig.ldy + q % area * rig.conv.k + k];
            }
            ck_assert_double_eq_tol((double)db[k], sum, 1e-4);
        }
        free(dx);
        free(dw);
        rig_down(&rig);
    }
}
END_TEST

START_TEST(bias_sums_of_more_channels_than_a_chunk_are_whole)
{
    const struct fl_conv conv = {.k = 130, .oh = 2, .ow = 1};
    float dy[3 * 264];
    float db[130];
    size_t i;

    for (i = 0; i < N(dy); i++) {
        dy[i] = (float)(i % 264 % 130);
    }
    fl_conv_backward_bias(&conv, db, dy, 264, 3);
    for (i = 0; i < 130; i++) {
        ck_assert(db[i] == 6.0f * (float)i);
    }
}
END_TEST

START_TEST(planes_become_pixels)
{
    const float x[12] = {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60};
    const float want[16] = {1, 10, 2, 20, 3, 30, -1, -1, 4, 40, 5, 50, 6, 60, -1, -1};
    float y[16];
    size_t i;

    for (i = 0; i < N(y); i++) {
        y[i] = -1.0f;
    }
    fl_planes_to_pixels(y, 8, x, 6, 2, 2, 3);
    ck_assert_mem_eq(y, want, sizeof(want));
}
END_TEST

START_TEST(a_tie_goes_to_the_first_and_nan_is_the_largest)
{
    const struct fl_pool pool = {.c = 2, .h = 2, .w = 2, .size = 2, .stride = 2, .oh = 1, .ow = 1};
    const float tie[8] = {1, 0, 5, 7, 5, -1, 2, 7};
    const float nan[8] = {1, NAN, NAN, 3, 5, -1, 2, 4};
    const float dy[2] = {3, 4};
    const float want[9] = {0, 0, 3, 4, 0, 0, 0, 0, 0};
    float y[2];
    float dx[9];
    uint8_t index[2];

    fl_pool_forward(&pool, y, 2, index, tie, 8, 1);
    ck_assert(y[0] == 5.0f && y[1] == 7.0f && index[0] == 1 && index[1] == 1);
    dx[8] = 9.0f;
    fl_pool_backward(&pool, dx, 9, dy, 2, index, 1);
    ck_assert_mem_eq(dx, want, sizeof(want));
    fl_pool_forward(&pool, y, 2, index, nan, 8, 1);
    ck_assert(isnan(y[0]) && isnan(y[1]) && index[0] == 1 && index[1] == 0);
}
END_TEST

START_TEST(windows_that_overlap_and_reach_over_the_edge_share_their_gradient)
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

    fl_pool_forward(&pool, y, 4, index, x, 9, 1);
    for (i = 0; i < 4; i++) {
        /* Padding is no zero: the largest of negative numbers is negative. */
        ck_assert(y[i] == -1.0f);
        ck_assert_uint_eq(index[i], places[i]);
    }
    fl_pool_backward(&pool, dx, 9, dy, 4, index, 1);
    ck_assert_mem_eq(dx, want, sizeof(want));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv");
    TCase *tc = tcase_create("conv");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, load_blas, NULL);
    tcase_add_loop_test(tc, a_convolution_agrees_with_its_definition, 0, N(shapes));
    tcase_add_loop_test(tc, the_gradients_of_a_convolution_agree_with_their_definition, 0,
                        N(shapes));
    tcase_add_test(tc, bias_sums_of_more_channels_than_a_chunk_are_whole);
    tcase_add_test(tc, planes_become_pixels);
    tcase_add_test(tc, a_tie_goes_to_the_first_and_nan_is_the_largest);
    tcase_add_test(tc, windows_that_overlap_and_reach_over_the_edge_share_their_gradient);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
