#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "tests/lib/suites.h"
#include "tests/lib/wino_ref.h"

#define GUARD_FLOATS 64
#define GUARD        777.25f

/* Square and oblong maps; what follows from the rest is filled in by conv_of(). */
struct shape {
    enum fl__wino_forms form;
    size_t c, h, w, k, pad, batch;
};

static const struct shape shapes[] = {
    {FL__WINO_3X3, 16, 1, 1, 48, 1, 1}, {FL__WINO_3X3, 16, 2, 3, 16, 1, 3},
    {FL__WINO_3X3, 32, 3, 3, 32, 1, 2}, {FL__WINO_3X3, 48, 4, 4, 80, 1, 3},
    {FL__WINO_3X3, 16, 5, 7, 16, 1, 1}, {FL__WINO_3X3, 64, 7, 6, 48, 1, 2},
    {FL__WINO_3X3, 16, 6, 6, 32, 0, 5}, {FL__WINO_3X3, 16, 12, 11, 16, 2, 1},
    {FL__WINO_3X3, 80, 9, 8, 16, 1, 2}, {FL__WINO_5X5, 16, 1, 1, 16, 2, 2},
    {FL__WINO_5X5, 16, 5, 5, 48, 0, 1}, {FL__WINO_5X5, 32, 6, 7, 32, 0, 3},
    {FL__WINO_5X5, 16, 7, 7, 16, 2, 2}, {FL__WINO_5X5, 48, 14, 9, 16, 0, 1},
    {FL__WINO_5X5, 16, 4, 3, 16, 4, 2}, {FL__WINO_2X2, 16, 2, 2, 48, 1, 1},
    {FL__WINO_2X2, 80, 2, 2, 32, 1, 7},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct fl_conv conv_of(const struct shape *s)
{
    size_t r = s->form == FL__WINO_5X5 ? 5 : 3;

    return (struct fl_conv){.c = s->c,
                            .h = s->h,
                            .w = s->w,
                            .k = s->k,
                            .kh = r,
                            .kw = r,
                            .stride = 1,
                            .pad = s->pad,
                            .oh = s->h + 2 * s->pad - r + 1,
                            .ow = s->w + 2 * s->pad - r + 1};
}

/* Numbers between guards, and what they ought to become: GUARD stands where nothing is written. */
struct block {
    float *memory, *p;
    double *want;
    size_t n;
};

static struct block block(struct fl_rng *rng, size_t n)
{
    struct block b = {.n = n};
    size_t i;

    b.memory = malloc((n + 2 * GUARD_FLOATS) * sizeof(float));
    b.want = malloc(n * sizeof(double));
    ck_assert_ptr_nonnull(b.memory);
    ck_assert_ptr_nonnull(b.want);
    b.p = b.memory + GUARD_FLOATS;
    for (i = 0; i < n + 2 * GUARD_FLOATS; i++) {
        b.memory[i] = GUARD;
    }
    for (i = 0; i < n; i++) {
        if (rng != NULL) {
            b.p[i] = (float)fl_rng_normal(rng);
        }
        b.want[i] = (double)GUARD;
    }
    return b;
}

static void check_block(const struct block *b, double bound, const char *what, const char *kern)
{
    size_t i;

    for (i = 0; i < GUARD_FLOATS; i++) {
        ck_assert_msg(b->memory[i] == GUARD && b->p[b->n + i] == GUARD,
                      "%s of %s wrote outside, guard %zu", what, kern, i);
    }
    for (i = 0; i < b->n; i++) {
        double have = (double)b->p[i];

        ck_assert_msg(b->want[i] == (double)GUARD ? b->p[i] == GUARD
                                                  : fabs(have - b->want[i]) <= bound,
                      "%s of %s at %zu: %.9g instead of %.9g", what, kern, i, have, b->want[i]);
    }
}

static void drop(struct block *b)
{
    free(b->memory);
    free(b->want);
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

/* <a, b> = <c, d>, as far as rounding lets them: its size follows from that of the vectors. */
static void check_adjoint(const struct block *a, const struct block *b, const struct block *c,
                          const struct block *d, const char *what, const char *kern)
{
    double left = inner(a->p, b->p, a->n);
    double right = inner(c->p, d->p, c->n);
    double size = sqrt(inner(a->p, a->p, a->n) * inner(b->p, b->p, b->n)) +
                  sqrt(inner(c->p, c->p, c->n) * inner(d->p, d->p, d->n));

    ck_assert_msg(fabs(left - right) <= 4.0 * (double)FLT_EPSILON * size, "%s of %s: %g and %g",
                  what, kern, left, right);
}

/* Nothing that a kernel leaves out counts in a product. */
static struct block zero_block(size_t n)
{
    struct block b = block(NULL, n);

    (void)memset(b.p, 0, n * sizeof(float));
    return b;
}

/* Everything that one form on one shape works on. */
struct rig {
    const struct fl__wino_kern *kern;
    const struct fl__wino_form *form;
    const char *name;
    struct wino_ref ref;
    struct fl_conv conv;
    struct fl_rng rng;
    size_t batch, ldx, ldy, tiles;
};

static bool rig(struct rig *g, size_t kern, const struct shape *s)
{
    g->kern = wino_ref_kern(kern);
    g->name = wino_ref_kern_name(kern);
    if (g->kern == NULL) {
        (void)printf("skipped: %s needs another processor\n", g->name);
        return false;
    }
    g->form = g->kern->form[s->form];
    g->ref = wino_ref(s->form);
    g->conv = conv_of(s);
    g->batch = s->batch;
    g->ldx = g->conv.c * g->conv.h * g->conv.w + 16;
    g->ldy = g->conv.k * g->conv.oh * g->conv.ow + 32;
    g->tiles = g->batch * wino_ref_tiles(&g->ref, &g->conv);
    fl_rng_key(&g->rng, 11, FL_RNG_TEST, kern, (uint64_t)(s - shapes));
    return true;
}

/* Rows 0, 1, 2, ... of a batch of tiles, so that a block begins and ends in the middle. */
static size_t first_of(const struct rig *g)
{
    return g->tiles > 2 ? 1 : 0;
}

static size_t count_of(const struct rig *g)
{
    return g->tiles > 3 ? g->tiles - 2 : g->tiles - first_of(g);
}

TEST_EACH(the_reference_is_a_convolution, FL__WINO_FORMS)
{
    struct wino_ref ref = wino_ref((enum fl__wino_forms)_i);
    double d[64] = {0}, g[25], v[36], u[36], y[16];
    size_t wide = ref.m + ref.r - 1;
    double inner[36];
    struct fl_rng rng;
    size_t i, j, p, q;

    fl_rng_key(&rng, 12, FL_RNG_TEST, 0, (uint64_t)_i);
    for (i = 0; i < ref.inputs; i++) {
        for (j = 0; j < ref.inputs; j++) {
            inner[i * ref.inputs + j] = fl_rng_normal(&rng);
            d[(i + ref.inset) * wide + j + ref.inset] = inner[i * ref.inputs + j];
        }
    }
    for (i = 0; i < ref.r * ref.r; i++) {
        g[i] = fl_rng_normal(&rng);
    }
    wino_ref_both(v, ref.bt, ref.points, ref.inputs, false, inner);
    wino_ref_both(u, ref.g, ref.points, ref.r, false, g);
    for (i = 0; i < ref.points * ref.points; i++) {
        v[i] *= u[i];
    }
    wino_ref_both(y, ref.at, ref.m, ref.points, false, v);
    for (i = 0; i < ref.m; i++) {
        for (j = 0; j < ref.m; j++) {
            double sum = 0.0;

            for (p = 0; p < ref.r; p++) {
                for (q = 0; q < ref.r; q++) {
                    sum += g[p * ref.r + q] * d[(i + p) * wide + j + q];
                }
            }
            ck_assert_msg(fabs(sum - y[i * ref.m + j]) < 1e-12, "output %zu, %zu", i, j);
        }
    }
}

TEST_EACH(images_are_taken_to_points_and_back, (N_SHAPES * WINO_REF_KERNS))
{
    struct rig g;
    struct block x, v, narrow;
    size_t plane, np, i, j, t, c, place, from, width;
    double d[36], e[36];

    if (!rig(&g, (size_t)_i / N_SHAPES, &shapes[(size_t)_i % N_SHAPES])) {
        return;
    }
    np = g.form->points;
    plane = count_of(&g) * g.conv.c + 16;
    x = block(&g.rng, g.batch * g.ldx);
    v = block(NULL, np * plane);
    for (t = 0; t < count_of(&g); t++) {
        for (c = 0; c < g.conv.c; c++) {
            for (i = 0; i < g.ref.inputs; i++) {
                for (j = 0; j < g.ref.inputs; j++) {
                    bool on =
                        wino_ref_input_at(&g.ref, &g.conv, g.ldx, first_of(&g) + t, i, j, &place);

                    d[i * g.ref.inputs + j] = on ? (double)x.p[place + c] : 0.0;
                }
            }
            wino_ref_both(e, g.ref.bt, g.ref.points, g.ref.inputs, false, d);
            for (i = 0; i < np; i++) {
                v.want[i * plane + t * g.conv.c + c] = e[i];
            }
        }
    }
    g.form->input(&g.conv, v.p, plane, x.p, g.ldx, first_of(&g), count_of(&g));
    check_block(&v, 64.0 * (double)FLT_EPSILON * 4.0, "input", g.name);

    /* Back: the last 32 or 16 channels, added to what is there. */
    width = g.conv.c % 32 == 0 ? 32 : 16;
    from = g.conv.c - width;
    plane = count_of(&g) * width + 16;
    narrow = block(&g.rng, np * plane);
    for (i = 0; i < x.n; i++) {
        x.want[i] = (double)x.p[i];
    }
    for (t = 0; t < count_of(&g); t++) {
        for (c = 0; c < width; c++) {
            for (i = 0; i < np; i++) {
                d[i] = (double)narrow.p[i * plane + t * width + c];
            }
            wino_ref_both(e, g.ref.bt, g.ref.points, g.ref.inputs, true, d);
            for (i = 0; i < g.ref.inputs * g.ref.inputs; i++) {
                if (wino_ref_input_at(&g.ref, &g.conv, g.ldx, first_of(&g) + t, i / g.ref.inputs,
                                      i % g.ref.inputs, &place))
                {
                    x.want[place + from + c] += e[i];
                }
            }
        }
    }
    g.form->scatter(&g.conv, x.p, g.ldx, narrow.p, plane, first_of(&g), count_of(&g), from, width);
    check_block(&x, 512.0 * (double)FLT_EPSILON * 4.0, "scatter", g.name);
    drop(&x);
    drop(&v);
    drop(&narrow);
}

/* y of tile t and output k of this panel, from its points, before bias and ReLU. */
static void want_outputs(const struct rig *g, const struct block *m, size_t plane, size_t at,
                         double *y)
{
    double points[36];
    size_t i;

    for (i = 0; i < g->form->points; i++) {
        points[i] = (double)m->p[i * plane + at];
    }
    wino_ref_both(y, g->ref.at, g->ref.m, g->ref.points, false, points);
}

TEST_EACH(points_are_taken_to_outputs, (N_SHAPES * WINO_REF_KERNS))
{
    struct rig g;
    struct block y, m, bias;
    size_t plane, i, t, k, place, from, width;
    double e[36];
    bool relu = _i % 2 == 0;

    if (!rig(&g, (size_t)_i / N_SHAPES, &shapes[(size_t)_i % N_SHAPES])) {
        return;
    }
    /* The last panel, 32 or 16 wide. */
    width = g.conv.k % FL__PANEL == 0 ? FL__PANEL : 16;
    from = g.conv.k - width;
    plane = count_of(&g) * width + 16;
    y = block(NULL, g.batch * g.ldy);
    m = block(&g.rng, g.form->points * plane);
    bias = block(&g.rng, width);
    for (t = 0; t < count_of(&g); t++) {
        for (k = 0; k < width; k++) {
            want_outputs(&g, &m, plane, t * width + k, e);
            for (i = 0; i < g.ref.m * g.ref.m; i++) {
                if (wino_ref_output_at(&g.ref, &g.conv, g.ldy, first_of(&g) + t, i / g.ref.m,
                                       i % g.ref.m, &place)) {
                    double sum = e[i] + (double)bias.p[k];

                    y.want[place + from + k] = relu && sum < 0.0 ? 0.0 : sum;
                }
            }
        }
    }
    g.form->output(&g.conv, y.p, g.ldy, m.p, plane, first_of(&g), count_of(&g), from, width, bias.p,
                   relu);
    check_block(&y, 512.0 * (double)FLT_EPSILON * 4.0, "output", g.name);
    drop(&y);
    drop(&m);
    drop(&bias);
}

TEST_EACH(gradients_of_outputs_are_taken_to_points, (N_SHAPES * WINO_REF_KERNS))
{
    struct rig g;
    struct block dy, m;
    size_t plane, np, i, t, k, place;
    double d[36], e[36];

    if (!rig(&g, (size_t)_i / N_SHAPES, &shapes[(size_t)_i % N_SHAPES])) {
        return;
    }
    np = g.form->points;
    plane = count_of(&g) * g.conv.k + 16;
    dy = block(&g.rng, g.batch * g.ldy);
    m = block(NULL, np * plane);
    for (t = 0; t < count_of(&g); t++) {
        for (k = 0; k < g.conv.k; k++) {
            for (i = 0; i < g.ref.m * g.ref.m; i++) {
                bool on = wino_ref_output_at(&g.ref, &g.conv, g.ldy, first_of(&g) + t, i / g.ref.m,
                                             i % g.ref.m, &place);

                d[i] = on ? (double)dy.p[place + k] : 0.0;
            }
            wino_ref_both(e, g.ref.at, g.ref.m, g.ref.points, true, d);
            for (i = 0; i < np; i++) {
                m.want[i * plane + t * g.conv.k + k] = e[i];
            }
        }
    }
    g.form->gradient(&g.conv, m.p, plane, dy.p, g.ldy, first_of(&g), count_of(&g));
    check_block(&m, 512.0 * (double)FLT_EPSILON * 4.0, "gradient", g.name);
    drop(&dy);
    drop(&m);
}

/* Rows of weights: every multiple of 16 up to FL__DEPTH, and both widths. */
#define N_WEIGHTS ((FL__DEPTH / 16) * 2 * FL__WINO_FORMS)

TEST_EACH(weights_are_taken_to_points_and_back, N_WEIGHTS)
{
    size_t rows = ((size_t)_i % 4 + 1) * 16;
    size_t width = (size_t)_i / 4 % 2 == 0 ? FL__PANEL : 16;
    enum fl__wino_forms form = (enum fl__wino_forms)(_i / 8);
    struct wino_ref ref = wino_ref(form);
    size_t plane = rows * width + 16;
    size_t np = ref.points * ref.points;
    size_t taps = ref.r * ref.r;
    size_t kern, row, col, i;

    for (kern = 0; kern < WINO_REF_KERNS; kern++) {
        const struct fl__wino_kern *of = wino_ref_kern(kern);
        struct fl_rng rng;
        struct block u, w, g;
        double in[36], out[36];

        if (of == NULL) {
            continue;
        }
        fl_rng_key(&rng, 13, FL_RNG_TEST, kern, (uint64_t)_i);
        w = block(&rng, rows * taps * width);
        g = block(NULL, rows * taps * width);
        u = block(NULL, np * plane);
        for (row = 0; row < rows; row++) {
            for (col = 0; col < width; col++) {
                for (i = 0; i < taps; i++) {
                    in[i] = (double)w.p[(row * taps + i) * width + col];
                }
                wino_ref_both(out, ref.g, ref.points, ref.r, false, in);
                for (i = 0; i < np; i++) {
                    u.want[i * plane + row * width + col] = out[i];
                }
            }
        }
        of->form[form]->weights(u.p, w.p, rows, width);
        check_block(&u, 64.0 * (double)FLT_EPSILON * 4.0, "weights", wino_ref_kern_name(kern));
        for (i = 0; i < np; i++) {
            (void)memset(u.p + i * plane + rows * width, 0, 16 * sizeof(float));
        }
        for (row = 0; row < rows; row++) {
            for (col = 0; col < width; col++) {
                for (i = 0; i < np; i++) {
                    in[i] = (double)u.p[i * plane + row * width + col];
                }
                wino_ref_both(out, ref.g, ref.points, ref.r, true, in);
                for (i = 0; i < taps; i++) {
                    g.want[(row * taps + i) * width + col] = out[i];
                }
            }
        }
        of->form[form]->weights_adjoint(g.p, u.p, rows, width);
        check_adjoint(&u, &u, &w, &g, "weights and their adjoint", wino_ref_kern_name(kern));
        check_block(&g, 64.0 * (double)FLT_EPSILON * 4.0, "adjoint", wino_ref_kern_name(kern));
        drop(&u);
        drop(&w);
        drop(&g);
    }
}

TEST_EACH(what_goes_backward_is_the_adjoint_of_what_goes_forward, (N_SHAPES * WINO_REF_KERNS))
{
    struct rig g;
    struct block x, v, dv, dx, m, y, dy, dm, bias;
    size_t plane, np;

    /* All channels at once: the first panel, of 32 or 16. */
    if (!rig(&g, (size_t)_i / N_SHAPES, &shapes[(size_t)_i % N_SHAPES])) {
        return;
    }
    g.conv.c = g.conv.c % 32 == 0 ? 32 : 16;
    g.conv.k = g.conv.k % 32 == 0 ? 32 : 16;
    np = g.form->points;

    plane = g.tiles * g.conv.c;
    x = block(&g.rng, g.batch * g.ldx);
    dx = zero_block(g.batch * g.ldx);
    dv = block(&g.rng, np * plane);
    v = zero_block(np * plane);
    g.form->input(&g.conv, v.p, plane, x.p, g.ldx, 0, g.tiles);
    g.form->scatter(&g.conv, dx.p, g.ldx, dv.p, plane, 0, g.tiles, 0, g.conv.c);
    check_adjoint(&v, &dv, &x, &dx, "input and scatter", g.name);

    plane = g.tiles * g.conv.k;
    m = block(&g.rng, np * plane);
    dm = zero_block(np * plane);
    dy = block(&g.rng, g.batch * g.ldy);
    y = zero_block(g.batch * g.ldy);
    bias = zero_block(g.conv.k);
    g.form->output(&g.conv, y.p, g.ldy, m.p, plane, 0, g.tiles, 0, g.conv.k, bias.p, false);
    g.form->gradient(&g.conv, dm.p, plane, dy.p, g.ldy, 0, g.tiles);
    check_adjoint(&y, &dy, &m, &dm, "output and gradient", g.name);
    drop(&x);
    drop(&dx);
    drop(&dv);
    drop(&v);
    drop(&m);
    drop(&dm);
    drop(&dy);
    drop(&y);
    drop(&bias);
}

TEST(relu_hides_no_nan)
{
    size_t kern, form, k;

    for (kern = 0; kern < WINO_REF_KERNS; kern++) {
        for (form = 0; form < FL__WINO_FORMS; form++) {
            struct shape s = {(enum fl__wino_forms)form, 16, 2, 2, 32, form == 1 ? 2 : 1, 1};
            const struct fl__wino_kern *of = wino_ref_kern(kern);
            struct fl_conv conv = conv_of(&s);
            float m[36 * 48] = {0};
            float y[4 * 32];
            float bias[32];

            if (of == NULL) {
                continue;
            }
            for (k = 0; k < 32; k++) {
                bias[k] = k % 2 == 0 ? -1.0f : 1.0f;
            }
            m[5] = NAN; /* point 0, output 5 */
            of->form[form]->output(&conv, y, 128, m, 48, 0, 1, 0, 32, bias, true);
            ck_assert(isnan(y[5]));
            ck_assert(y[4] == 0.0f && y[6] == 0.0f && y[7] == 1.0f);
            of->form[form]->output(&conv, y, 128, m, 48, 0, 1, 0, 32, bias, false);
            ck_assert(isnan(y[5]) && y[4] == -1.0f);
        }
    }
}
