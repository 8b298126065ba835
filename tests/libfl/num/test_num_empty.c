/* A batch of no samples: nothing is read or written, and sums over it are zero, under every row of
 * kernels. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/conv.h"
#include "libfl/num/dense.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/norm.h"
#include "libfl/num/pool.h"
#include "tests/lib/suites.h"

/* What nobody may touch, and what is longer than any weights here. */
#define GUARD  777.25f
#define FLOATS ((size_t)1 << 19)

static float *memory(float value)
{
    float *p = aligned_alloc(64, FLOATS * sizeof(*p));
    size_t i;

    ck_assert_ptr_nonnull(p);
    for (i = 0; i < FLOATS; i++) {
        p[i] = value;
    }
    return p;
}

static float *x, *y, *w, *dw, *scratch;

static void setup(void)
{
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    x = memory(GUARD);
    y = memory(GUARD);
    w = memory(0.5f);
    dw = memory(GUARD);
    scratch = memory(0.25f);
}

static void teardown(void)
{
    free(x);
    free(y);
    free(w);
    free(dw);
    free(scratch);
}

static void untouched(const float *p)
{
    const float auth = GUARD;

    /* The first one, and each of the others as the one before it. */
    ck_assert(memcmp(p, &auth, sizeof(auth)) == 0);
    ck_assert(memcmp(p, p + 1, (FLOATS - 1) * sizeof(*p)) == 0);
}

static size_t collected;

static void collect(void *ctx, size_t offset, size_t n, const float *grad)
{
    (void)ctx;
    ck_assert_uint_eq(offset, collected);
    (void)memcpy(dw + offset, grad, n * sizeof(*grad));
    collected += n;
}

/* All `n` of them came, once and in order. */
static void all_zero(const float *p, size_t n)
{
    size_t i = 0;

    while (i < n && p[i] >= 0.0f && p[i] <= 0.0f) {
        i++;
    }
    ck_assert_uint_eq(i, n);
}

/* --- convolutions, of each way --- */

static const struct fl_conv convs[] = {
    {.c = 3, .h = 8, .w = 8, .k = 16, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
    {.c = 1, .h = 9, .w = 11, .k = 16, .kh = 5, .kw = 5, .stride = 1, .pad = 0},
    {.c = 5, .h = 11, .w = 4, .k = 7, .kh = 3, .kw = 4, .stride = 3, .pad = 0},
    {.c = 32, .h = 9, .w = 9, .k = 48, .kh = 3, .kw = 3, .stride = 1, .pad = 0},
    {.c = 48, .h = 11, .w = 8, .k = 32, .kh = 5, .kw = 5, .stride = 1, .pad = 0},
    {.c = 32, .h = 2, .w = 2, .k = 80, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
};

TEST_CASE("num_empty", setup, teardown);

TEST_EACH(a_convolution_of_nothing_is_nothing_and_its_weights_have_no_gradient,
          4 * ARRAY_LEN(convs))
{
    struct fl_conv conv = convs[(size_t)_i % ARRAY_LEN(convs)];
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i / ARRAY_LEN(convs));
    struct fl_conv_backward back = {.dy = y, .w = w, .dx = x, .x = x, .update = collect};
    size_t ld;

    if (kernels == NULL || !kernels->supported()) {
        return; /* This processor lacks its instructions. */
    }
    fl_conv_plan(&conv, kernels);
    ck_assert_uint_le(fl_conv_scratch(&conv, 0, FL_CONV_JVP), FLOATS);
    ck_assert_uint_le(fl_conv_weights(&conv), FLOATS);
    ld = fl_dense_stride(conv.oh * conv.ow * conv.k);
    back.lddx = back.ldx = fl_dense_stride(conv.c * conv.h * conv.w);
    back.lddy = ld;
    fl_conv_forward(&conv, y, ld, x, back.ldx, w, w, 0, true, scratch);
    untouched(y);
    collected = 0;
    fl_conv_backward(&conv, &back, scratch);
    untouched(x);
    untouched(y);
    ck_assert_uint_eq(collected, fl_conv_weights(&conv));
    all_zero(dw, collected);
    fl_conv_backward_bias(&conv, dw, y, ld, y, ld, 0);
    all_zero(dw, conv.k);
    untouched(y);
}

/* --- dense layers, wide and narrow --- */

static const struct {
    size_t in, out;
} layers[] = {{784, 10}, {784, 200}, {1, 1}, {17, 31}, {200, 64}, {3, 100}};

TEST_EACH(a_dense_layer_of_nothing_is_nothing_and_its_weights_have_no_gradient,
          4 * ARRAY_LEN(layers))
{
    size_t in = layers[(size_t)_i % ARRAY_LEN(layers)].in;
    size_t out = layers[(size_t)_i % ARRAY_LEN(layers)].out;
    size_t ldx = fl_dense_stride(in);
    size_t ldy = fl_dense_stride(out);
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i / ARRAY_LEN(layers));

    if (kernels == NULL || !kernels->supported()) {
        return;
    }
    fl_dense_forward(kernels, y, ldy, x, ldx, w, w, 0, in, out, true);
    fl_dense_add_bias(kernels, y, ldy, w, 0, out, true);
    untouched(y);
    fl_dense_backward_data(kernels, x, ldx, y, ldy, w, 0, in, out);
    fl_relu_backward(kernels, y, ldy, y, ldy, 0, out);
    untouched(x);
    untouched(y);
    collected = 0;
    fl_dense_backward_weights(kernels, x, ldx, y, ldy, 0, in, out, scratch, collect, NULL);
    ck_assert_uint_eq(collected, in * out);
    all_zero(dw, in * out);
    fl_dense_backward_bias(kernels, dw, y, ldy, y, ldy, 0, out);
    all_zero(dw, ldy);
}

/* --- what moves bytes --- */

TEST_EACH(a_pool_and_a_norm_of_nothing_are_nothing, 4)
{
    static const struct fl_pool pools[] = {
        {.c = 16, .h = 8, .w = 8, .size = 2, .stride = 2, .oh = 4, .ow = 4},
        {.c = 5, .h = 7, .w = 7, .size = 3, .stride = 2, .oh = 3, .ow = 3}};
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i);
    const struct fl_bn bn = {.c = 20, .pixels = 9};
    const struct fl_bn_backward back = {.dy = y,
                                        .x = x,
                                        .lddy = 192,
                                        .ldx = 192,
                                        .mean = w,
                                        .var = w,
                                        .gamma = w,
                                        .beta = w,
                                        .relu = true};
    uint8_t index[4] = {9, 9, 9, 9};
    size_t i;

    if (kernels == NULL || !kernels->supported()) {
        return;
    }
    for (i = 0; i < ARRAY_LEN(pools); i++) {
        fl_pool_forward(kernels, &pools[i], y, 256, index, x, 1024, 0);
        fl_pool_backward(kernels, &pools[i], x, 1024, y, 256, index, y, 256, 0);
    }
    fl_bn_forward(kernels, &bn, y, 192, x, 192, w, w, w, w, 0, true);
    fl_bn_backward_data(kernels, &bn, x, 192, &back, w, w, 0);
    untouched(x);
    untouched(y);
    ck_assert_int_eq(index[0], 9);
    fl_bn_backward_sums(kernels, &bn, dw, dw + 32, &back, 0);
    all_zero(dw, 20);
    all_zero(dw + 32, 20);
}
