#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/conv_impl.h"
#include "libfl/num/first_kern.h"
#include "libfl/num/gemm.h"
#include "tests/lib/suites.h"
#include "tests/libfl/num/reference.h"

#define GUARDS 32
#define GUARD  777.25f
#define ROWS   3 /* of kernels: avx512, avx2, portable */

#define CONV(c_, h_, w_, k_, kh_, kw_, p_)                                                 \
    {                                                                                      \
        .c = (c_), .h = (h_), .w = (w_), .k = (k_), .kh = (kh_), .kw = (kw_), .stride = 1, \
        .pad = (p_)                                                                        \
    }

/* Every number of channels, of vectors of outputs and of weights left over; maps of one pixel, of
 * less than a block, of several strips. */
static const struct fl_conv shapes[] = {
    CONV(1, 1, 1, 16, 1, 1, 0),   CONV(3, 5, 5, 16, 5, 5, 0),   CONV(3, 5, 5, 48, 3, 3, 1),
    CONV(1, 9, 7, 32, 5, 5, 2),   CONV(2, 4, 13, 64, 2, 3, 1),  CONV(4, 6, 5, 80, 3, 1, 0),
    CONV(3, 8, 9, 96, 3, 3, 1),   CONV(1, 20, 12, 32, 5, 5, 0), CONV(3, 17, 20, 64, 5, 5, 0),
    CONV(4, 3, 70, 112, 1, 4, 0), CONV(2, 9, 11, 128, 3, 3, 2), CONV(1, 2, 65, 16, 2, 2, 1),
    CONV(3, 64, 1, 16, 4, 1, 0),  CONV(4, 7, 7, 48, 5, 4, 3),
};

/* Numbers with guards on both sides; what lies between the samples is NaN. */
struct samples {
    float *all, *p;
    size_t batch, used, ld;
};

static struct samples samples(uint64_t seed, size_t batch, size_t used, size_t gap)
{
    struct samples s = {.batch = batch, .used = used, .ld = used + gap};
    size_t n = batch * s.ld;
    struct fl_rng rng;
    size_t i;

    s.all = malloc((n + 2 * GUARDS) * sizeof(*s.all));
    ck_assert_ptr_nonnull(s.all);
    s.p = s.all + GUARDS;
    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    for (i = 0; i < n + 2 * GUARDS; i++) {
        s.all[i] = GUARD;
    }
    for (i = 0; i < n; i++) {
        s.p[i] = i % s.ld < used ? (float)fl_rng_normal(&rng) : NAN;
    }
    return s;
}

static void drop(struct samples *s)
{
    size_t n = s->batch * s->ld;
    size_t i;

    for (i = 0; i < GUARDS; i++) {
        ck_assert_msg(s->all[i] == GUARD, "float %zu before the samples was written", i);
        ck_assert_msg(s->p[n + i] == GUARD, "float %zu behind the samples was written", i);
    }
    for (i = 0; i < n; i++) {
        ck_assert_msg(i % s->ld < s->used || isnan(s->p[i]), "float %zu is between samples", i);
    }
    free(s->all);
}

/* Largest difference to `want` in units of what rounding may do with sums of `terms` numbers. */
static void check_close(const struct samples *have, const struct samples *want, size_t terms,
                        const char *what, const struct fl_conv *conv)
{
    double root = sqrt((double)terms);
    double bound = 8.0 * (root + 4.0) * (double)FLT_EPSILON * (1.0 + root);
    size_t b, i;

    for (b = 0; b < want->batch; b++) {
        for (i = 0; i < want->used; i++) {
            double h = (double)have->p[b * have->ld + i];
            double w = (double)want->p[b * want->ld + i];

            ck_assert_msg(fabs(h - w) <= bound, "%s by %s, sample %zu, number %zu: %g, not %g",
                          what, conv->kernels->name, b, i, h, w);
        }
    }
}

struct rig {
    struct fl_conv conv;
    size_t batch;
    struct samples x, y, dy, dx, w, bias, dw, scratch, scratch_back;
    size_t updates;
};

/* For the gradient of the input, which patches make. */
static void load_blas(void)
{
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
}

/* False: this processor lacks the row. */
static bool rig_up(struct rig *rig, const struct fl_conv *shape, size_t row, size_t batch,
                   size_t gap)
{
    const struct fl_kernels *kernels = fl__kernels_row(row);
    struct fl_conv *conv = &rig->conv;
    size_t in = shape->c * shape->h * shape->w;
    size_t out;

    if (!kernels->supported()) {
        (void)printf("skipped: %s needs another processor\n", kernels->name);
        return false;
    }
    *conv = *shape;
    fl_conv_plan(conv, kernels);
    ck_assert_str_eq(fl_conv_algorithm(conv), "first");
    out = conv->k * conv->oh * conv->ow;
    rig->batch = batch;
    rig->x = samples(1, batch, in, gap);
    rig->y = samples(2, batch, out, gap);
    rig->dy = samples(3, batch, out, gap);
    rig->dx = samples(4, batch, in, 0);
    rig->w = samples(5, 1, fl_conv_weights(conv), 0);
    rig->bias = samples(6, 1, conv->k, 0);
    rig->dw = samples(7, 1, fl_conv_weights(conv), 0);
    rig->scratch = samples(8, 1, fl_conv_scratch(conv, batch, false), 0);
    rig->scratch_back = samples(8, 1, fl_conv_scratch(conv, batch, FL_CONV_JVP), 0);
    rig->updates = 0;
    return true;
}

static void rig_down(struct rig *rig)
{
    drop(&rig->x);
    drop(&rig->y);
    drop(&rig->dy);
    drop(&rig->dx);
    drop(&rig->w);
    drop(&rig->bias);
    drop(&rig->dw);
    drop(&rig->scratch);
    drop(&rig->scratch_back);
}

/* Spoils the weights, as an update may: dx must be there already. */
static void collect(void *ctx, size_t offset, size_t n, const float *grad)
{
    struct rig *rig = ctx;
    size_t i;

    ck_assert_uint_le(offset + n, rig->dw.used);
    for (i = 0; i < n; i++) {
        rig->dw.p[offset + i] = grad[i];
        rig->w.p[offset + i] = NAN;
    }
    rig->updates += n;
}

static struct fl_conv_backward backward_of(struct rig *rig)
{
    return (struct fl_conv_backward){
        .batch = rig->batch,
        .dy = rig->dy.p,
        .lddy = rig->dy.ld,
        .w = rig->w.p,
        .x = rig->x.p,
        .ldx = rig->x.ld,
        .update = collect,
        .ctx = rig,
    };
}

static void forward(struct rig *rig, bool relu)
{
    fl_conv_forward(&rig->conv, rig->y.p, rig->y.ld, rig->x.p, rig->x.ld, rig->w.p, rig->bias.p,
                    rig->batch, relu, rig->scratch.p);
}

/* The numbers of a rig are the same for every row of kernels: what the oracle makes of them, too.
 */
static void check_forward(const struct fl_conv *shape, size_t batch, size_t gap)
{
    struct samples want = {NULL};
    size_t row;

    for (row = 0; row < ROWS; row++) {
        struct rig rig;

        if (!rig_up(&rig, shape, row, batch, gap)) {
            continue;
        }
        forward(&rig, batch % 2 == 0);
        if (want.all == NULL) {
            want = samples(9, batch, rig.y.used, gap);
            conv_forward_ref(&rig.conv, want.p, want.ld, rig.x.p, rig.x.ld, rig.w.p, rig.bias.p,
                             batch, batch % 2 == 0);
        }
        check_close(&rig.y, &want, shape->kh * shape->kw * shape->c + 1, "y", &rig.conv);
        rig_down(&rig);
    }
    drop(&want);
}

TEST_CASE_ONCE("all", load_blas, NULL);

TEST_EACH(every_row_of_kernels_computes_y_by_its_definition, ARRAY_LEN(shapes))
{
    size_t batch;

    for (batch = 0; batch <= 3; batch++) {
        check_forward(&shapes[_i], batch, batch == 2 ? 5 : 0);
    }
}

static void check_backward(const struct fl_conv *shape, size_t batch, size_t gap)
{
    struct samples dx = {NULL};
    struct samples dw = {NULL};
    size_t row;

    for (row = 0; row < ROWS; row++) {
        struct fl_conv_backward io;
        struct rig rig;

        if (!rig_up(&rig, shape, row, batch, gap)) {
            continue;
        }
        if (dx.all == NULL) {
            dx = samples(9, batch, rig.dx.used, 0);
            dw = samples(10, 1, rig.dw.used, 0);
            conv_backward_data_ref(&rig.conv, dx.p, dx.ld, rig.dy.p, rig.dy.ld, rig.w.p, batch);
            conv_backward_weights_ref(&rig.conv, dw.p, rig.x.p, rig.x.ld, rig.dy.p, rig.dy.ld,
                                      batch);
        }
        io = backward_of(&rig);
        io.dx = batch == 3 ? NULL : rig.dx.p;
        io.lddx = rig.dx.ld;
        fl_conv_backward(&rig.conv, &io, rig.scratch_back.p);
        ck_assert_uint_eq(rig.updates, rig.dw.used);
        check_close(&rig.dw, &dw, batch * rig.conv.oh * rig.conv.ow, "dw", &rig.conv);
        if (batch < 3) {
            check_close(&rig.dx, &dx, rig.conv.kh * rig.conv.kw * rig.conv.k, "dx", &rig.conv);
        }
        rig_down(&rig);
    }
    drop(&dx);
    drop(&dw);
}

TEST_EACH(every_row_of_kernels_computes_the_gradients_by_their_definition, ARRAY_LEN(shapes))
{
    size_t batch;

    for (batch = 0; batch <= 3; batch++) {
        check_backward(&shapes[_i], batch, batch == 2 ? 5 : 0);
    }
}

TEST_EACH(a_kernel_writes_its_result_only_and_adds_to_the_gradient, ARRAY_LEN(shapes) * ROWS)
{
    struct fl_conv conv = shapes[(size_t)_i % ARRAY_LEN(shapes)];
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i / ARRAY_LEN(shapes));
    struct samples image, y, dy, w, bias, g, want;
    size_t i;

    if (!kernels->supported()) {
        return;
    }
    /* Padding is the caller's: to a kernel the image is larger. */
    conv.h += 2 * conv.pad;
    conv.w += 2 * conv.pad;
    conv.pad = 0;
    fl_conv_plan(&conv, kernels);
    image = samples(1, 1, conv.c * conv.h * conv.w, 0);
    y = samples(2, 1, conv.k * conv.oh * conv.ow, 0);
    dy = samples(3, 1, y.used, 0);
    w = samples(4, 1, fl_conv_weights(&conv), 0);
    bias = samples(5, 1, conv.k, 0);
    g = samples(6, 1, w.used, 0);
    want = samples(6, 1, w.used, 0);
    for (i = 0; i < w.used; i++) {
        g.p[i] = 3.0f;
    }
    conv_backward_weights_ref(&conv, want.p, image.p, image.ld, dy.p, dy.ld, 1);
    for (i = 0; i < w.used; i++) {
        want.p[i] += 3.0f;
    }
    kernels->first->forward(&conv, y.p, image.p, w.p, bias.p, false);
    kernels->first->weights(&conv, g.p, image.p, dy.p);
    check_close(&g, &want, conv.oh * conv.ow + 9, "g", &conv);
    drop(&image);
    drop(&y);
    drop(&dy);
    drop(&w);
    drop(&bias);
    drop(&g);
    drop(&want);
}

TEST_EACH(a_second_product_is_added_to_the_gradient_of_the_weights, ROWS)
{
    const struct fl_conv shape = CONV(3, 9, 8, 48, 3, 3, 1);
    struct fl_conv_backward io;
    struct samples rx, sy, first, second;
    struct rig rig;
    size_t i;

    if (!rig_up(&rig, &shape, (size_t)_i, 2, 3)) {
        return;
    }
    rx = samples(11, 2, rig.x.used, 3);
    sy = samples(12, 2, rig.dy.used, 3);
    first = samples(13, 1, rig.dw.used, 0);
    second = samples(14, 1, rig.dw.used, 0);
    conv_backward_weights_ref(&rig.conv, first.p, rig.x.p, rig.x.ld, rig.dy.p, rig.dy.ld, 2);
    conv_backward_weights_ref(&rig.conv, second.p, rx.p, rx.ld, sy.p, sy.ld, 2);
    for (i = 0; i < first.used; i++) {
        first.p[i] += second.p[i];
    }
    io = backward_of(&rig);
    io.rx = rx.p;
    io.sy = sy.p;
    fl_conv_backward(&rig.conv, &io, rig.scratch_back.p);
    ck_assert_uint_eq(rig.updates, rig.dw.used);
    check_close(&rig.dw, &first, 4 * rig.conv.oh * rig.conv.ow, "dw", &rig.conv);
    drop(&rx);
    drop(&sy);
    drop(&first);
    drop(&second);
    rig_down(&rig);
}

TEST_EACH(nan_passes_relu_and_what_is_negative_becomes_zero, ROWS)
{
    const struct fl_conv shape = CONV(1, 4, 4, 16, 2, 2, 0);
    struct rig rig;
    size_t i;

    if (!rig_up(&rig, &shape, (size_t)_i, 1, 0)) {
        return;
    }
    for (i = 0; i < 16; i++) {
        rig.x.p[i] = -1.0f;
        rig.bias.p[i] = 0.0f;
    }
    for (i = 0; i < rig.w.used; i++) {
        rig.w.p[i] = 1.0f;
    }
    rig.x.p[0] = NAN; /* under the first pixel of y alone */
    forward(&rig, true);
    for (i = 0; i < rig.y.used; i++) {
        ck_assert(i < 16 ? isnan(rig.y.p[i]) : rig.y.p[i] == 0.0f);
    }
    rig_down(&rig);
}

TEST_EACH(the_same_shapes_give_the_same_bits_and_a_sample_its_own_whatever_lies_around_it, ROWS)
{
    const struct fl_conv shape = CONV(3, 12, 11, 80, 5, 3, 1);
    struct fl_conv_backward io;
    struct samples y, dw;
    struct rig rig;

    if (!rig_up(&rig, &shape, (size_t)_i, 3, 7)) {
        return;
    }
    y = samples(15, 3, rig.y.used, 7);
    dw = samples(16, 1, rig.dw.used, 0);
    forward(&rig, true);
    fl_conv_forward(&rig.conv, y.p, y.ld, rig.x.p + 2 * rig.x.ld, rig.x.ld, rig.w.p, rig.bias.p, 1,
                    true, rig.scratch.p);
    ck_assert_mem_eq(y.p, rig.y.p + 2 * y.ld, y.used * sizeof(*y.p));
    io = backward_of(&rig);
    fl_conv_backward(&rig.conv, &io, rig.scratch_back.p);
    (void)memcpy(dw.p, rig.dw.p, dw.used * sizeof(*dw.p));
    fl_conv_backward(&rig.conv, &io, rig.scratch_back.p);
    ck_assert_mem_eq(dw.p, rig.dw.p, dw.used * sizeof(*dw.p));
    drop(&y);
    drop(&dw);
    rig_down(&rig);
}

TEST(more_channels_strides_and_odd_numbers_of_outputs_go_another_way)
{
    struct fl_conv others[] = {
        CONV(5, 8, 8, 16, 3, 3, 1),
        CONV(3, 8, 8, 16, 3, 3, 1),
        CONV(3, 8, 8, 24, 3, 3, 1),
    };
    const struct fl_kernels *reference;
    struct fl_conv conv = shapes[0];
    size_t i;

    others[1].stride = 2;
    for (i = 0; i < ARRAY_LEN(others); i++) {
        fl_conv_plan(&others[i], fl__kernels_row(ROWS - 1));
        ck_assert_str_ne(fl_conv_algorithm(&others[i]), "first");
    }
    ck_assert_int_eq(fl_kernels_named("reference", &reference, NULL), FL_OK);
    fl_conv_plan(&conv, reference);
    ck_assert_str_eq(fl_conv_algorithm(&conv), "patches");
}
