#include <check.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/dense.h"
#include "libfl/num/dense_kern.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "tests/lib/kernel_rows.h"
#include "tests/lib/suites.h"
#include "tests/libfl/num/reference.h"

#define GUARD_FLOATS 64
#define GUARD        777.25f

struct shape {
    size_t batch, in, out;
};

static const struct shape shapes[] = {
    {1, 1, 17},
    {5, 1, 17},
    {5, 7, 32},
    {6, 8, 33},
    {7, 13, 48},
    {10, 784, 200},
    {10, 200, 200},
    {11, 200, 10},
    {13, 24, 47},
    {20, 61, 64},
    {31, 100, 65},
    {47, 31, 200},
    {50, 17, 129},
    {63, 9, 4100},
    {64, 40, 80},
    {4, 30, 100},
    {3, 50, 20},
    {1, 9, 1},
    {2, 5, 10},
    {7, 33, 16},
    {600, 3, 11},
    {9, 784, 100},
    {10, 783, 199},
    {100, 20, 30},
    /* Narrow ones, and the next that are not. */
    {20, 784, 10},
    {1, 16, 1},
    {3, 32, 2},
    {7, 48, 3},
    {4, 64, 4},
    {6, 80, 5},
    {13, 96, 6},
    {9, 112, 7},
    {5, 128, 8},
    {11, 144, 9},
    {49, 192, 10},
    {21, 176, 11},
    {2, 208, 12},
    {2, 208, 13},
    {0, 32, 10},
    {3, 4096, 12},
    {3, 4112, 12},
    {20, 792, 10},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* A matrix as dense.h wants it: aligned, finite slack, and a guard behind that. */
struct matrix {
    float *p;
    size_t rows, cols, ld, used;
};

static struct matrix matrix(struct fl_rng *rng, size_t rows, size_t cols, size_t ld)
{
    struct matrix m = {.rows = rows, .cols = cols, .ld = ld};
    size_t total;
    size_t i;

    m.used = rows * ld + FL_DENSE_SLACK;
    total = (m.used + GUARD_FLOATS + 15) / 16 * 16;
    m.p = aligned_alloc(64, total * sizeof(float));
    ck_assert_ptr_nonnull(m.p);
    for (i = 0; i < total; i++) {
        /* What lies between the rows and behind them must not matter: large and finite. */
        bool inside = i < rows * ld && i % ld < cols;

        m.p[i] = i >= m.used ? GUARD : inside ? (float)fl_rng_normal(rng) : 1e4f;
    }
    return m;
}

static void zero_padding(struct matrix *m)
{
    size_t r;

    for (r = 0; r < m->rows; r++) {
        (void)memset(m->p + r * m->ld + m->cols, 0, (m->ld - m->cols) * sizeof(float));
    }
}

static void drop(struct matrix *m)
{
    size_t i;

    for (i = 0; i < GUARD_FLOATS; i++) {
        ck_assert_msg(m->p[m->used + i] == GUARD, "float %zu behind the slack was written", i);
    }
    free(m->p);
}

/* Largest difference to `want` in units of what rounding may do with sums of k terms. */
static void check_close(const struct matrix *have, const struct matrix *want, size_t k,
                        const char *what, const char *kernel)
{
    double bound = 8.0 * (sqrt((double)k) + 4.0) * (double)FLT_EPSILON * (1.0 + sqrt((double)k));
    size_t r;
    size_t c;

    for (r = 0; r < want->rows; r++) {
        for (c = 0; c < want->cols; c++) {
            double h = (double)have->p[r * have->ld + c];
            double w = (double)want->p[r * want->ld + c];

            ck_assert_msg(fabs(h - w) <= bound, "%s of %s at %zu, %zu: %g instead of %g", what,
                          kernel, r, c, h, w);
        }
    }
}

struct operands {
    struct matrix x, w, bias, y, dy, dx, dw;
};

/* Weights and their gradient as the layer has them. */
static struct matrix weights(struct fl_rng *rng, const struct shape *s)
{
    return fl_dense_small_n(s->in, s->out) ? matrix(rng, s->out, s->in, s->in)
                                           : matrix(rng, s->in, s->out, s->out);
}

static struct operands operands(struct fl_rng *rng, const struct shape *s)
{
    struct operands o = {
        .x = matrix(rng, s->batch, s->in, s->in),
        .w = weights(rng, s),
        .bias = matrix(rng, 1, s->out, fl_dense_stride(s->out)),
        .y = matrix(rng, s->batch, s->out, fl_dense_stride(s->out)),
        .dy = matrix(rng, s->batch, s->out, fl_dense_stride(s->out)),
        .dx = matrix(rng, s->batch, s->in, fl_dense_stride(s->in)),
        .dw = weights(rng, s),
    };

    zero_padding(&o.dy);
    return o;
}

static void drop_operands(struct operands *o)
{
    drop(&o->x);
    drop(&o->w);
    drop(&o->bias);
    drop(&o->y);
    drop(&o->dy);
    drop(&o->dx);
    drop(&o->dw);
}

/* The plain references, on memory of their own. */
static struct operands reference(struct fl_rng *rng, const struct shape *s,
                                 const struct operands *o, bool relu)
{
    struct operands ref = operands(rng, s);
    bool narrow = fl_dense_small_n(s->in, s->out);
    size_t b;
    size_t j;

    gemm_ref(false, narrow, s->batch, s->out, s->in, 1.0f, o->x.p, o->x.ld, o->w.p, o->w.ld, 0.0f,
             ref.y.p, ref.y.ld);
    for (b = 0; b < s->batch; b++) {
        for (j = 0; j < s->out; j++) {
            float z = ref.y.p[b * ref.y.ld + j] + o->bias.p[j];

            ref.y.p[b * ref.y.ld + j] = relu && z < 0.0f ? 0.0f : z;
        }
    }
    gemm_ref(false, !narrow, s->batch, s->in, s->out, 1.0f, o->dy.p, o->dy.ld, o->w.p, o->w.ld,
             0.0f, ref.dx.p, ref.dx.ld);
    if (narrow) {
        gemm_ref(true, false, s->out, s->in, s->batch, 1.0f, o->dy.p, o->dy.ld, o->x.p, o->x.ld,
                 0.0f, ref.dw.p, ref.dw.ld);
    } else {
        gemm_ref(true, false, s->in, s->out, s->batch, 1.0f, o->x.p, o->x.ld, o->dy.p, o->dy.ld,
                 0.0f, ref.dw.p, ref.dw.ld);
    }
    return ref;
}

/* One row's kernels as the layer calls them. */
static void check_kernels(const struct fl__dense_kern *kern, const struct shape *s,
                          const struct operands *o, const struct operands *ref, bool relu)
{
    bool narrow = fl_dense_small_n(s->in, s->out);

    if (narrow) {
        kern->forward_small_n(o->y.p, o->y.ld, o->x.p, o->x.ld, o->w.p, o->bias.p, s->batch, s->in,
                              s->out, relu);
        kern->forward(o->dx.p, o->dx.ld, o->dy.p, o->dy.ld, o->w.p, NULL, s->batch, s->out, s->in,
                      false);
        kern->weights(o->dw.p, o->dy.p, o->dy.ld, o->x.p, o->x.ld, s->batch, s->out, s->in);
    } else {
        kern->forward(o->y.p, o->y.ld, o->x.p, o->x.ld, o->w.p, o->bias.p, s->batch, s->in, s->out,
                      relu);
        kern->weights(o->dw.p, o->x.p, o->x.ld, o->dy.p, o->dy.ld, s->batch, s->in, s->out);
    }
    check_close(&o->y, &ref->y, s->in, "forward", kern->name);
    check_close(&o->dw, &ref->dw, s->batch, "weight gradient", kern->name);
    if (!narrow && kern->backward_data != NULL) {
        kern->backward_data(o->dx.p, o->dx.ld, o->dy.p, o->dy.ld, o->w.p, s->batch, s->in, s->out);
    }
    if (narrow || kern->backward_data != NULL) {
        check_close(&o->dx, &ref->dx, s->out, "backward data", kern->name);
    }
}

TEST_EACH(every_kernel_row_agrees_with_the_reference, N_SHAPES)
{
    const struct shape *s = &shapes[_i];
    struct fl_rng rng;
    size_t row;

    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    for (row = 0; fl__kernels_row(row) != NULL; row++) {
        const struct fl__dense_kern *kern = fl__kernels_row(row)->dense;
        struct operands o;
        struct operands ref;
        bool relu = s->batch % 2 == 1;

        if (kern != NULL && !fl__kernels_row(row)->supported()) {
            (void)printf("skipped: %s needs another processor\n", kern->name);
            continue;
        }
        if (kern == NULL) {
            continue;
        }
        fl_rng_key(&rng, 7, FL_RNG_TEST, row, (uint64_t)_i);
        o = operands(&rng, s);
        ref = reference(&rng, s, &o, relu);
        check_kernels(kern, s, &o, &ref, relu);
        drop_operands(&o);
        drop_operands(&ref);
    }
}

struct collected {
    struct matrix *dw;
    size_t next;
    size_t largest;
};

static void collect(void *ctx, size_t offset, size_t n, const float *grad)
{
    struct collected *c = ctx;

    ck_assert_uint_eq(offset, c->next);
    ck_assert_uint_ge(n, 1);
    (void)memcpy(c->dw->p + offset, grad, n * sizeof(*grad));
    c->next = offset + n;
    c->largest = n > c->largest ? n : c->largest;
}

TEST_EACH(the_layer_agrees_with_the_reference_and_its_blocks_cover_the_weights,
          kernel_rows() * N_SHAPES)
{
    const struct shape *s = &shapes[(size_t)_i % N_SHAPES];
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i / N_SHAPES);
    struct fl_rng rng;
    struct operands o;
    struct operands ref;
    struct collected c = {0};
    struct matrix scratch;
    struct matrix db;
    size_t b;
    size_t j;

    if (!kernels->supported()) {
        return;
    }
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_rng_key(&rng, 8, FL_RNG_TEST, 0, (uint64_t)_i);
    o = operands(&rng, s);
    ref = reference(&rng, s, &o, true);
    scratch = matrix(&rng, 1, fl_dense_scratch(s->in, s->out), fl_dense_scratch(s->in, s->out));
    db = matrix(&rng, 1, s->out, s->out);
    fl_dense_forward(kernels, o.y.p, o.y.ld, o.x.p, o.x.ld, o.w.p, o.bias.p, s->batch, s->in,
                     s->out, true);
    check_close(&o.y, &ref.y, s->in, "forward", fl_kernels_name(kernels));
    fl_dense_backward_data(kernels, o.dx.p, o.dx.ld, o.dy.p, o.dy.ld, o.w.p, s->batch, s->in,
                           s->out);
    check_close(&o.dx, &ref.dx, s->out, "backward data", fl_kernels_name(kernels));
    for (b = 0; b < s->batch; b++) {
        for (j = s->in; j < o.dx.ld; j++) {
            ck_assert(o.dx.p[b * o.dx.ld + j] == 0.0f);
        }
    }
    c.dw = &o.dw;
    fl_dense_backward_weights(kernels, o.x.p, o.x.ld, o.dy.p, o.dy.ld, s->batch, s->in, s->out,
                              scratch.p, collect, &c);
    ck_assert_uint_eq(c.next, s->in * s->out);
    if (!fl_dense_small_n(s->in, s->out)) {
        ck_assert_uint_le(c.largest, s->out * 8 > 6144 ? s->out * 8 : 6144);
    }
    check_close(&o.dw, &ref.dw, s->batch, "weight gradient", fl_kernels_name(kernels));
    fl_dense_backward_bias(kernels, db.p, o.dy.p, o.dy.ld, NULL, 0, s->batch, s->out);
    for (j = 0; j < s->out; j++) {
        double sum = 0.0;

        for (b = 0; b < s->batch; b++) {
            sum += (double)o.dy.p[b * o.dy.ld + j];
        }
        ck_assert_double_eq_tol((double)db.p[j], sum, 1e-4);
    }
    drop(&scratch);
    drop(&db);
    drop_operands(&o);
    drop_operands(&ref);
}

TEST_EACH(relu_hides_no_nan_and_masks_its_gradient, kernel_rows())
{
    static const struct shape s = {6, 3, 20};
    const struct fl_kernels *kernels = fl__kernels_row((size_t)_i);
    struct fl_rng rng;
    struct operands o;
    size_t b;
    size_t j;

    if (!kernels->supported()) {
        return;
    }
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_rng_key(&rng, 9, FL_RNG_TEST, 0, 0);
    o = operands(&rng, &s);
    o.x.p[1] = NAN;
    fl_dense_forward(kernels, o.y.p, o.y.ld, o.x.p, o.x.ld, o.w.p, o.bias.p, s.batch, s.in, s.out,
                     true);
    for (j = 0; j < s.out; j++) {
        ck_assert(isnan(o.y.p[j]));
        ck_assert(o.y.p[o.y.ld + j] >= 0.0f);
    }
    (void)memcpy(o.dx.p, o.dy.p, s.in * sizeof(float));
    fl_relu_backward(kernels, o.dy.p, o.dy.ld, o.y.p, o.y.ld, s.batch, s.out);
    for (b = 1; b < s.batch; b++) {
        for (j = 0; j < s.out; j++) {
            ck_assert(o.y.p[b * o.y.ld + j] > 0.0f || o.dy.p[b * o.dy.ld + j] == 0.0f);
        }
    }
    drop_operands(&o);
}
