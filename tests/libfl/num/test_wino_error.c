#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/conv.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "tests/lib/suites.h"
#include "tests/lib/wino_ref.h"

/*
 * The figures of docs/kernels.md#convolutions with a margin of a third to a half: less than what
 * the usual points 0, +-1, +-2 and infinity cost.
 */
struct layer {
    struct fl_conv conv;
    size_t batch;
    double rms; /* of the error, relative to that of y */
    double max; /* relative to the largest |y| */
};

static const struct layer layers[] = {
    {{.c = 64, .h = 14, .w = 14, .k = 64, .kh = 5, .kw = 5, .stride = 1}, 1, 1.0e-6, 1.5e-6},
    {{.c = 256, .h = 8, .w = 8, .k = 64, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
     2,
     1.3e-6,
     1.8e-6},
    {{.c = 512, .h = 4, .w = 4, .k = 64, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
     4,
     1.4e-6,
     1.9e-6},
    {{.c = 512, .h = 2, .w = 2, .k = 64, .kh = 3, .kw = 3, .stride = 1, .pad = 1}, 4, 5e-7, 5e-7},
};
#define N_LAYERS (sizeof(layers) / sizeof(layers[0]))

static float *numbers(struct fl_rng *rng, size_t n, float scale)
{
    float *p = aligned_alloc(64, (n + 31) / 16 * 16 * sizeof(*p));
    size_t i;

    ck_assert_ptr_nonnull(p);
    for (i = 0; i < n; i++) {
        p[i] = scale * (float)fl_rng_normal(rng);
    }
    return p;
}

static double inner(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

static void check_error(const struct layer *l, const char *name, const float *y, const double *want,
                        size_t n)
{
    double error = 0.0;
    double size = 0.0;
    double largest = 0.0;
    double worst = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        double e = (double)y[i] - want[i];

        error += e * e;
        size += want[i] * want[i];
        largest = fmax(largest, fabs(want[i]));
        worst = fmax(worst, fabs(e));
    }
    ck_assert_msg(sqrt(error / size) <= l->rms, "%s, %zu channels: error %g of y (rms)", name,
                  l->conv.c, sqrt(error / size));
    ck_assert_msg(worst / largest <= l->max, "%s, %zu channels: error %g of the largest y", name,
                  l->conv.c, worst / largest);
}

static void keep(void *ctx, size_t offset, size_t n, const float *grad)
{
    float *dw = ctx;

    (void)memcpy(dw + offset, grad, n * sizeof(*dw));
}

/* <y, dy> = <x, dx> = <w, dw>. */
static void check_gradients(const struct fl_conv *conv, const char *name, struct fl_rng *rng,
                            size_t batch, const float *x, const float *w, const float *y)
{
    size_t nx = conv->h * conv->w * conv->c;
    size_t ny = conv->oh * conv->ow * conv->k;
    size_t nw = fl_conv_weights(conv);
    float *dy = numbers(rng, batch * ny, 1.0f);
    float *dx = numbers(rng, batch * nx, 1.0f);
    float *dw = numbers(rng, nw, 1.0f);
    float *scratch = numbers(rng, fl_conv_scratch(conv, batch, FL_CONV_JVP), 1.0f);
    struct fl_conv_backward io = {.batch = batch,
                                  .dy = dy,
                                  .lddy = ny,
                                  .w = w,
                                  .dx = dx,
                                  .lddx = nx,
                                  .x = x,
                                  .ldx = nx,
                                  .update = keep,
                                  .ctx = dw};
    double product = inner(y, dy, batch * ny);
    double size = sqrt(inner(y, y, batch * ny) * inner(dy, dy, batch * ny));

    fl_conv_backward(conv, &io, scratch);
    ck_assert_msg(fabs(inner(x, dx, batch * nx) - product) <= 1e-6 * size,
                  "%s, %zu channels: <x, dx> %.9g, <y, dy> %.9g of %g", name, conv->c,
                  inner(x, dx, batch * nx), product, size);
    ck_assert_msg(fabs(inner(w, dw, nw) - product) <= 1e-6 * size,
                  "%s, %zu channels: <w, dw> %.9g, <y, dy> %.9g of %g", name, conv->c,
                  inner(w, dw, nw), product, size);
    free(dy);
    free(dx);
    free(dw);
    free(scratch);
}

TEST_EACH(errors_stay_within_the_documented_bounds_and_gradients_are_adjoint, N_LAYERS)
{
    const struct layer *l = &layers[_i];
    struct fl_conv conv = l->conv;
    struct fl_rng rng;
    double *want;
    float *x, *w, *bias, *y;
    size_t row, ny;

    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_conv_plan(&conv, fl_kernels_best());
    ny = l->batch * conv.oh * conv.ow * conv.k;
    fl_rng_key(&rng, 16, FL_RNG_TEST, 0, (uint64_t)_i);
    x = numbers(&rng, l->batch * conv.h * conv.w * conv.c, 1.0f);
    w = numbers(&rng, fl_conv_weights(&conv), 0.05f);
    bias = numbers(&rng, conv.k, 0.0f);
    y = numbers(&rng, ny, 0.0f);
    want = malloc(ny * sizeof(*want));
    ck_assert_ptr_nonnull(want);
    wino_ref_direct(&conv, want, x, conv.h * conv.w * conv.c, w, l->batch);
    for (row = 0; fl__kernels_row(row) != NULL; row++) {
        const struct fl_kernels *kernels = fl__kernels_row(row);
        float *scratch;

        if (kernels->wino == NULL || !kernels->supported()) {
            (void)printf("skipped: %s has no such kernels here\n", kernels->name);
            continue;
        }
        conv = l->conv;
        fl_conv_plan(&conv, kernels);
        ck_assert_str_eq(fl_conv_algorithm(&conv), "winograd");
        scratch = numbers(&rng, fl_conv_scratch(&conv, l->batch, false), 1.0f);
        fl_conv_forward(&conv, y, ny / l->batch, x, conv.h * conv.w * conv.c, w, bias, l->batch,
                        false, scratch);
        free(scratch);
        check_error(l, kernels->name, y, want, ny);
        check_gradients(&conv, kernels->name, &rng, l->batch, x, w, y);
    }
    free(x);
    free(w);
    free(bias);
    free(y);
    free(want);
}
