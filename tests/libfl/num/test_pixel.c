#include <check.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"
#include "tests/lib/suites.h"

/* Floats before and behind each map; none of them may change. */
#define GUARD_FLOATS 32
#define GUARD        777.25f

static const size_t channels[] = {0, 1, 3, 4, 5, 8, 13, 16, 17, 31, 61, 64, 67, 128};
#define N_CHANNELS (sizeof(channels) / sizeof(channels[0]))
static const size_t pixels[] = {0, 1, 2, 9, 256, 259};
#define N_PIXELS     (sizeof(pixels) / sizeof(pixels[0]))
#define MAX_CHANNELS 128

/* The i-th row of kernels; NULL when this processor lacks its instructions, or behind the last. */
static const struct fl__pixel_kern *row_here(size_t i)
{
    const struct fl_kernels *row = fl__kernels_row(i);

    return row != NULL && row->supported() ? row->pixel : NULL;
}
#define MAX_ROWS 8

/* Numbers between guards, of which `p` points at the first; not aligned to anything. */
struct map {
    float *all, *p;
    size_t n;
};

static struct map map_of(size_t n)
{
    struct map m = {.n = n};
    size_t i;

    m.all = malloc((n + 2 * GUARD_FLOATS) * sizeof(float));
    ck_assert_ptr_nonnull(m.all);
    for (i = 0; i < n + 2 * GUARD_FLOATS; i++) {
        m.all[i] = GUARD;
    }
    m.p = m.all + GUARD_FLOATS - 3;
    return m;
}

static struct map drawn(struct fl_rng *rng, size_t n, float mean)
{
    struct map m = map_of(n);
    size_t i;

    for (i = 0; i < n; i++) {
        m.p[i] = (float)(4.0 * fl_rng_unit(rng) - 2.0) + mean;
    }
    return m;
}

static struct map copy_of(const struct map *from)
{
    struct map m = map_of(from->n);

    (void)memcpy(m.p, from->p, from->n * sizeof(float));
    return m;
}

static void drop(struct map *m)
{
    size_t i;

    for (i = 0; i < m->n + 2 * GUARD_FLOATS; i++) {
        bool outside = m->all + i < m->p || m->all + i >= m->p + m->n;

        /* An assertion tells the parent process each time that it is passed. */
        if (outside && m->all[i] != GUARD) {
            ck_abort_msg("float %zu of %zu was written", i, m->n);
        }
    }
    free(m->all);
}

/* Of `k` additions to something of the size `scale`, by whatever instructions. */
static double bound(size_t k, double scale)
{
    return (double)FLT_EPSILON * (4.0 + 2.0 * sqrt((double)k)) * scale;
}

struct shape {
    size_t rows, n, ld; /* n of ld channels, the first of them 0 or 1 */
    size_t from;
    bool relu;
};

struct rig {
    const struct fl__pixel_kern *kern;
    struct shape s;
    struct map x, dy, y;
    struct fl__pixel_bn bn;
    float constants[6][MAX_CHANNELS];
    double total[2][MAX_CHANNELS], want[2][MAX_CHANNELS];
};

static void set_up(struct rig *rig, struct fl_rng *rng)
{
    size_t all = rig->s.rows * rig->s.ld;
    size_t i, j;

    rig->x = drawn(rng, all, 0.5f);
    rig->y = drawn(rng, all, 0.0f);
    rig->dy = drawn(rng, all, 0.25f);
    for (i = 0; i < 6; i++) {
        for (j = 0; j < MAX_CHANNELS; j++) {
            rig->constants[i][j] = (float)fl_rng_normal(rng);
        }
    }
    rig->bn = (struct fl__pixel_bn){.mean = rig->constants[0],
                                    .scale = rig->constants[1],
                                    .shift = rig->constants[2],
                                    .by_dy = rig->constants[3],
                                    .by_x = rig->constants[4],
                                    .mean_dy = rig->constants[5]};
    for (i = 0; i < 2; i++) {
        for (j = 0; j < MAX_CHANNELS; j++) {
            rig->total[i][j] = rig->want[i][j] = 1.5;
        }
    }
}

static void tear_down(struct rig *rig)
{
    drop(&rig->x);
    drop(&rig->y);
    drop(&rig->dy);
}

/* Every instruction set and shape, with ReLU and without, all channels of a map or some. */
static void for_each(void (*check)(struct rig *rig, const struct fl__pixel_kern *ref))
{
    struct fl_rng rng;
    struct rig rig;
    size_t row, i, j, variant;

    fl_rng_key(&rng, 11, FL_RNG_TEST, 0, 0);
    for (row = 0; row < MAX_ROWS; row++) {
        for (i = 0; row_here(row) != NULL && i < N_CHANNELS * N_PIXELS; i++) {
            for (variant = 0; variant < 4; variant++) {
                j = variant / 2;
                rig = (struct rig){.kern = row_here(row)};
                rig.s = (struct shape){.rows = pixels[i / N_CHANNELS],
                                       .n = channels[i % N_CHANNELS],
                                       .ld = channels[i % N_CHANNELS] + 3 * j,
                                       .from = j,
                                       .relu = variant % 2 == 1};
                set_up(&rig, &rng);
                check(&rig, &fl__pixel_ref);
                tear_down(&rig);
            }
        }
    }
}

static void check_close(const struct rig *rig, const char *what, double have, double want,
                        double allowed, size_t i)
{
    if (!(fabs(have - want) <= allowed)) {
        ck_abort_msg(
            "%s of %s, %zu pixels of %zu channels: %zu is %.9g instead of %.9g, allowed %g", what,
            rig->kern->name, rig->s.rows, rig->s.n, i, have, want, allowed);
    }
}

/* Channels outside are guards of their own: both maps began alike. */
static void check_map(const struct rig *rig, const char *what, const struct map *have,
                      const struct map *want, double allowed)
{
    size_t i;

    for (i = 0; i < have->n; i++) {
        size_t c = i % rig->s.ld;
        bool inside = c >= rig->s.from && c < rig->s.from + rig->s.n;

        check_close(rig, what, (double)have->p[i], (double)want->p[i], inside ? allowed : 0.0, i);
    }
}

static void check_totals(const struct rig *rig, const char *what, double scale)
{
    size_t i, j;

    for (i = 0; i < 2; i++) {
        for (j = 0; j < MAX_CHANNELS; j++) {
            check_close(rig, what, rig->total[i][j], rig->want[i][j],
                        j < rig->s.n ? bound(rig->s.rows, scale) * (double)rig->s.rows : 0.0, j);
        }
    }
}

static void check_bias(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;
    struct map want = copy_of(&rig->y);

    ref->bias(want.p + s->from, s->ld, rig->bn.shift, s->rows, s->n, s->relu);
    rig->kern->bias(rig->y.p + s->from, s->ld, rig->bn.shift, s->rows, s->n, s->relu);
    check_map(rig, "bias", &rig->y, &want, 0.0);
    drop(&want);
}

static void check_mask(struct rig *rig, const struct fl__pixel_kern *ref)
{
    struct map want = copy_of(&rig->dy);

    ref->mask(want.p, rig->y.p, want.n);
    rig->kern->mask(rig->dy.p, rig->y.p, want.n);
    check_map(rig, "mask", &rig->dy, &want, 0.0);
    drop(&want);
}

static void check_affine(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;
    struct map want = copy_of(&rig->y);

    ref->affine(want.p + s->from, rig->x.p + s->from, &rig->bn, s->ld, s->rows, s->n, s->relu);
    rig->kern->affine(rig->y.p + s->from, rig->x.p + s->from, &rig->bn, s->ld, s->rows, s->n,
                      s->relu);
    check_map(rig, "affine", &rig->y, &want, bound(1, 8.0));
    drop(&want);
}

TEST(bias_mask_and_affine_agree_with_their_definition)
{
    for_each(check_bias);
    for_each(check_mask);
    for_each(check_affine);
}

static void check_sums(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;
    struct map want = copy_of(&rig->dy);

    if (s->relu) {
        ref->mask_sums(rig->want[0], want.p + s->from, rig->y.p + s->from, s->ld, s->rows, s->n);
        rig->kern->mask_sums(rig->total[0], rig->dy.p + s->from, rig->y.p + s->from, s->ld, s->rows,
                             s->n);
    } else {
        ref->sums(rig->want[0], want.p + s->from, s->ld, s->rows, s->n);
        rig->kern->sums(rig->total[0], rig->dy.p + s->from, s->ld, s->rows, s->n);
    }
    check_map(rig, "masked", &rig->dy, &want, 0.0);
    check_totals(rig, "sums", 1.0);
    drop(&want);
}

static void check_spread(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;

    ref->spread(rig->want[0], rig->want[1], rig->x.p + s->from, rig->bn.mean, s->ld, s->rows, s->n);
    rig->kern->spread(rig->total[0], rig->total[1], rig->x.p + s->from, rig->bn.mean, s->ld,
                      s->rows, s->n);
    check_totals(rig, "spread", 8.0);
}

/* Where x * scale + shift is within rounding of zero, either side of ReLU is right. */
static void keep_off_the_edge(struct rig *rig)
{
    const struct shape *s = &rig->s;
    size_t r, j;

    for (r = 0; r < s->rows; r++) {
        for (j = 0; j < s->n; j++) {
            float *x = rig->x.p + r * s->ld + s->from + j;

            if (fabsf((*x - rig->bn.mean[j]) * rig->bn.scale[j] + rig->bn.shift[j]) < 1e-5f) {
                *x += 1.0f;
            }
        }
    }
}

static void check_products(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;

    keep_off_the_edge(rig);
    ref->products(rig->want[0], rig->want[1], rig->dy.p + s->from, rig->x.p + s->from, &rig->bn,
                  s->ld, s->rows, s->n, s->relu);
    rig->kern->products(rig->total[0], rig->total[1], rig->dy.p + s->from, rig->x.p + s->from,
                        &rig->bn, s->ld, s->rows, s->n, s->relu);
    check_totals(rig, "products", 8.0);
}

TEST(sums_agree_with_their_definition_and_are_added)
{
    for_each(check_sums);
    for_each(check_spread);
    for_each(check_products);
}

static void check_combine(struct rig *rig, const struct fl__pixel_kern *ref)
{
    const struct shape *s = &rig->s;
    struct map want = copy_of(&rig->y);

    keep_off_the_edge(rig);
    ref->combine(want.p + s->from, rig->dy.p + s->from, rig->x.p + s->from, &rig->bn, s->ld,
                 s->rows, s->n, s->relu);
    rig->kern->combine(rig->y.p + s->from, rig->dy.p + s->from, rig->x.p + s->from, &rig->bn, s->ld,
                       s->rows, s->n, s->relu);
    check_map(rig, "combine", &rig->y, &want, bound(2, 8.0));
    rig->bn.less = rig->bn.mean_dy;
    ref->combine_less(want.p + s->from, rig->dy.p + s->from, rig->x.p + s->from, &rig->bn, s->ld,
                      s->rows, s->n, s->relu);
    rig->kern->combine_less(rig->y.p + s->from, rig->dy.p + s->from, rig->x.p + s->from, &rig->bn,
                            s->ld, s->rows, s->n, s->relu);
    check_map(rig, "combine_less", &rig->y, &want, bound(2, 8.0));
    drop(&want);
}

TEST(the_gradient_of_batch_norm_agrees_with_its_definition)
{
    for_each(check_combine);
}

static const struct fl_pool pools[] = {
    {.h = 2, .w = 2, .size = 2, .stride = 2, .oh = 1, .ow = 1},
    {.h = 8, .w = 6, .size = 2, .stride = 2, .oh = 4, .ow = 3},
    {.h = 7, .w = 5, .size = 2, .stride = 2, .oh = 3, .ow = 2},
    {.h = 4, .w = 5, .size = 2, .stride = 2, .oh = 2, .ow = 2},
    {.h = 6, .w = 6, .size = 3, .stride = 3, .oh = 2, .ow = 2},
    {.h = 7, .w = 7, .size = 3, .stride = 2, .oh = 3, .ow = 3},
    {.h = 6, .w = 5, .size = 3, .stride = 2, .top = 0, .left = 1, .oh = 3, .ow = 3},
    {.h = 3, .w = 4, .size = 4, .stride = 1, .top = 1, .left = 2, .oh = 3, .ow = 4},
    {.h = 9, .w = 9, .size = 2, .stride = 4, .oh = 2, .ow = 2},
    {.h = 15, .w = 15, .size = 15, .stride = 1, .oh = 1, .ow = 1},
    {.h = 1, .w = 1, .size = 1, .stride = 1, .oh = 1, .ow = 1},
};
#define N_POOLS (sizeof(pools) / sizeof(pools[0]))

/* Few values, so that many are equal, and a NaN here and there. */
static struct map drawn_with_ties(struct fl_rng *rng, size_t n)
{
    struct map m = map_of(n);
    size_t i;

    for (i = 0; i < n; i++) {
        uint64_t v = fl_rng_below(rng, 20);

        m.p[i] = v == 19 ? NAN : (float)(v % 5) - 2.0f;
    }
    return m;
}

static void check_same(const char *what, const char *name, const struct map *have,
                       const struct map *want)
{
    ck_assert_msg(memcmp(have->p, want->p, want->n * sizeof(float)) == 0, "%s of %s", what, name);
}

static void check_pool(const struct fl__pixel_kern *kern, const struct fl_pool *pool,
                       struct fl_rng *rng)
{
    size_t n = pool->oh * pool->ow * pool->c;
    size_t all = pool->h * pool->w * pool->c;
    struct map x = drawn_with_ties(rng, all);
    struct map y = map_of(n);
    struct map want_y = map_of(n);
    struct map dy = drawn(rng, n, 0.0f);
    uint8_t *index = malloc(n + 1);
    uint8_t *want_index = malloc(n + 1);
    size_t masked;

    ck_assert(index != NULL && want_index != NULL);
    index[n] = want_index[n] = 99;
    fl__pixel_ref.pool(pool, want_y.p, want_index, x.p);
    kern->pool(pool, y.p, index, x.p);
    check_same("pool", kern->name, &y, &want_y);
    ck_assert_mem_eq(index, want_index, n + 1);
    for (masked = 0; masked < 2; masked++) {
        struct map dx = map_of(all);
        struct map want = map_of(all);

        fl__pixel_ref.unpool(pool, want.p, dy.p, index, masked == 1 ? y.p : NULL);
        kern->unpool(pool, dx.p, dy.p, index, masked == 1 ? y.p : NULL);
        check_same("unpool", kern->name, &dx, &want);
        drop(&dx);
        drop(&want);
    }
    drop(&x);
    drop(&y);
    drop(&want_y);
    drop(&dy);
    free(index);
    free(want_index);
}

TEST(pooling_is_the_same_to_the_bit)
{
    struct fl_rng rng;
    size_t row, i, j;

    fl_rng_key(&rng, 12, FL_RNG_TEST, 0, 0);
    for (row = 0; row < MAX_ROWS; row++) {
        for (i = 0; row_here(row) != NULL && i < N_POOLS; i++) {
            for (j = 0; j < N_CHANNELS; j++) {
                struct fl_pool pool = pools[i];

                pool.c = channels[j];
                check_pool(row_here(row), &pool, &rng);
            }
        }
    }
}

/* 19 channels: a vector and a rest of each instruction set. */
static void check_nan(const struct fl__pixel_kern *kern)
{
    float zeros[19] = {0}, ones[19], nans[19], y[19], dy[19];
    double total[19] = {0}, product[19] = {0};
    size_t j;

    for (j = 0; j < 19; j++) {
        ones[j] = 1.0f;
        dy[j] = 1.0f;
        y[j] = nans[j] = NAN;
    }
    kern->bias(y, 19, zeros, 1, 19, true);
    ck_assert(isnan(y[0]) && isnan(y[18]));
    kern->affine(y, nans, &(struct fl__pixel_bn){.mean = zeros, .scale = ones, .shift = zeros}, 19,
                 1, 19, true);
    ck_assert(isnan(y[0]) && isnan(y[18]));
    kern->mask(dy, nans, 19);
    ck_assert(dy[0] == 0.0f && dy[18] == 0.0f);
    kern->spread(total, product, nans, zeros, 19, 1, 19);
    ck_assert(isnan(total[0]) && isnan(total[18]) && isnan(product[0]) && isnan(product[18]));
}

TEST(nan_passes_relu_upward_and_stops_there_downward)
{
    size_t row;

    for (row = 0; row < MAX_ROWS; row++) {
        if (row_here(row) != NULL) {
            check_nan(row_here(row));
        }
    }
}

/* What FL__PIXEL_RUN promises: 2^20 equal numbers, of which a float would lose the last ones. */
TEST(long_sums_are_exact_beyond_single_precision)
{
    size_t n = (size_t)1 << 20;
    float *x = malloc(n * sizeof(*x));
    float zero = 0.0f;
    size_t row, i;

    ck_assert_ptr_nonnull(x);
    for (i = 0; i < n; i++) {
        x[i] = 1.0f + 1.0f / 1024.0f;
    }
    for (row = 0; row < MAX_ROWS; row++) {
        double total[2] = {0};

        if (row_here(row) != NULL) {
            row_here(row)->spread(total, total + 1, x, &zero, 1, n, 1);
            ck_assert_double_eq(total[0], (double)n * (double)x[0]);
            ck_assert_double_eq_tol(total[1], (double)n * (double)x[0] * (double)x[0],
                                    (double)n * 1e-6);
        }
    }
    free(x);
}
