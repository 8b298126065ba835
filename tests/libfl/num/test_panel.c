#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "tests/lib/suites.h"
#include "tests/lib/wino_ref.h"

#define GUARD_FLOATS 64
#define GUARD        777.25f

/* The numbers of tiles are those of blocks of every height, whole and with a rest. */
static const size_t tiles_of[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                  12, 13, 17, 23, 31, 37, 48, 64, 67, 97, 128};
#define N_TILES (sizeof(tiles_of) / sizeof(tiles_of[0]))

/* Numbers with a guard behind them. */
static float *numbers(struct fl_rng *rng, size_t n)
{
    float *p = malloc((n + GUARD_FLOATS) * sizeof(*p));
    size_t i;

    ck_assert_ptr_nonnull(p);
    for (i = 0; i < n + GUARD_FLOATS; i++) {
        p[i] = i < n ? (float)fl_rng_normal(rng) : GUARD;
    }
    return p;
}

static void drop(float *p, size_t n)
{
    size_t i;

    for (i = 0; i < GUARD_FLOATS; i++) {
        ck_assert_msg(p[n + i] == GUARD, "float %zu behind the end was written", i);
    }
    free(p);
}

/* Rounding of sums of k products of standard normal numbers. */
static double bound_of(size_t k)
{
    return 8.0 * (sqrt((double)k) + 4.0) * (double)FLT_EPSILON * (1.0 + sqrt((double)k));
}

struct product {
    size_t tiles, rows, width, ldv, ldm;
    bool add;
};

static struct product product(int i, size_t rows, size_t width)
{
    size_t tiles = tiles_of[(size_t)i % N_TILES];

    return (struct product){.tiles = tiles,
                            .rows = rows,
                            .width = width,
                            .ldv = rows + (tiles % 2) * 16,
                            .ldm = width + (tiles % 3) * 16,
                            .add = tiles % 2 == 0};
}

static void check_nn(const struct fl__wino_kern *kern, const char *name, const struct product *p,
                     struct fl_rng *rng)
{
    size_t nm = p->tiles * p->ldm;
    float *v = numbers(rng, p->tiles * p->ldv);
    float *u = numbers(rng, p->rows * p->width);
    float *m = numbers(rng, nm);
    float *had = numbers(rng, nm);
    float *one = numbers(rng, p->width);
    size_t t, j, c;

    (void)memcpy(had, m, nm * sizeof(*m));
    kern->nn(m, p->ldm, v, p->ldv, u, p->tiles, p->rows, p->width, p->add);
    for (t = 0; t < p->tiles; t++) {
        for (j = 0; j < p->ldm; j++) {
            double want = p->add || j >= p->width ? (double)had[t * p->ldm + j] : 0.0;

            for (c = 0; c < p->rows && j < p->width; c++) {
                want += (double)v[t * p->ldv + c] * (double)u[c * p->width + j];
            }
            ck_assert_msg(fabs((double)m[t * p->ldm + j] - want) <=
                              (j < p->width ? bound_of(p->rows) : 0.0),
                          "nn of %s, %zu tiles, %zu rows, width %zu, at %zu, %zu: %g instead of %g",
                          name, p->tiles, p->rows, p->width, t, j, (double)m[t * p->ldm + j], want);
        }
    }
    /* The last row alone. */
    t = p->tiles - 1;
    (void)memcpy(one, had + t * p->ldm, p->width * sizeof(*one));
    kern->nn(one, p->width, v + t * p->ldv, p->ldv, u, 1, p->rows, p->width, p->add);
    ck_assert_msg(memcmp(one, m + t * p->ldm, p->width * sizeof(*one)) == 0,
                  "nn of %s: a row depends on the number of tiles, %zu", name, p->tiles);
    drop(v, p->tiles * p->ldv);
    drop(u, p->rows * p->width);
    drop(m, nm);
    drop(had, nm);
    drop(one, p->width);
}

static void check_tn(const struct fl__wino_kern *kern, const char *name, const struct product *p,
                     struct fl_rng *rng)
{
    size_t nu = p->rows * p->width;
    float *v = numbers(rng, p->tiles * p->ldv);
    float *m = numbers(rng, p->tiles * p->ldm);
    float *u = numbers(rng, nu);
    float *had = numbers(rng, nu);
    size_t t, j, c;

    (void)memcpy(had, u, nu * sizeof(*u));
    kern->tn(u, v, p->ldv, m, p->ldm, p->tiles, p->rows, p->width, p->add);
    for (c = 0; c < p->rows; c++) {
        for (j = 0; j < p->width; j++) {
            double want = p->add ? (double)had[c * p->width + j] : 0.0;

            for (t = 0; t < p->tiles; t++) {
                want += (double)v[t * p->ldv + c] * (double)m[t * p->ldm + j];
            }
            ck_assert_msg(fabs((double)u[c * p->width + j] - want) <= bound_of(p->tiles),
                          "tn of %s, %zu tiles, %zu rows, width %zu, at %zu, %zu: %g instead of %g",
                          name, p->tiles, p->rows, p->width, c, j, (double)u[c * p->width + j],
                          want);
        }
    }
    drop(v, p->tiles * p->ldv);
    drop(m, p->tiles * p->ldm);
    drop(u, nu);
    drop(had, nu);
}

TEST_EACH(products_agree_with_double_precision_and_stay_inside, N_TILES)
{
    size_t kern, rows, width;

    for (kern = 0; kern < WINO_REF_KERNS; kern++) {
        const struct fl__wino_kern *of = wino_ref_kern(kern);

        if (of == NULL) {
            (void)printf("skipped: %s needs another processor\n", wino_ref_kern_name(kern));
            continue;
        }
        for (rows = 16; rows <= FL__DEPTH; rows += 16) {
            for (width = 16; width <= FL__PANEL; width += 16) {
                struct product p = product(_i, rows, width);
                struct fl_rng rng;

                fl_rng_key(&rng, 14, FL_RNG_TEST, kern, (uint64_t)_i * 8 + rows / 16 + width / 32);
                check_nn(of, wino_ref_kern_name(kern), &p, &rng);
                check_tn(of, wino_ref_kern_name(kern), &p, &rng);
            }
        }
    }
}

struct turn {
    size_t c, k, taps; /* kernel taps x taps */
};

TEST(turned_weights_are_the_same_numbers)
{
    static const struct turn turns[] = {{16, 16, 3},  {48, 80, 3},  {64, 48, 5},
                                        {80, 112, 3}, {32, 128, 1}, {16, 96, 5}};
    size_t kern, i, k, c, row, tap, col;

    for (kern = 0; kern < WINO_REF_KERNS; kern++) {
        const struct fl__wino_kern *of = wino_ref_kern(kern);

        for (i = 0; i < sizeof(turns) / sizeof(turns[0]) && of != NULL; i++) {
            size_t taps = turns[i].taps * turns[i].taps;
            struct fl_conv conv = {
                .c = turns[i].c, .k = turns[i].k, .kh = turns[i].taps, .kw = turns[i].taps};
            struct fl_rng rng;
            float *w;

            fl_rng_key(&rng, 15, FL_RNG_TEST, kern, i);
            w = numbers(&rng, conv.c * conv.k * taps);
            for (k = 0; k < conv.k; k += FL__DEPTH) {
                for (c = 0; c < conv.c; c += FL__PANEL) {
                    size_t rows = conv.k - k < FL__DEPTH ? conv.k - k : FL__DEPTH;
                    size_t width = conv.c - c < FL__PANEL ? conv.c - c : FL__PANEL;
                    float *wt = numbers(&rng, rows * taps * width);

                    of->turn(&conv, wt, w, k, rows, c, width);
                    for (row = 0; row < rows; row++) {
                        for (tap = 0; tap < taps; tap++) {
                            for (col = 0; col < width; col++) {
                                ck_assert_msg(wt[(row * taps + tap) * width + col] ==
                                                  w[wino_ref_weight(&conv, k + row, c + col, tap)],
                                              "%s, output %zu, tap %zu, channel %zu",
                                              wino_ref_kern_name(kern), k + row, tap, c + col);
                            }
                        }
                    }
                    drop(wt, rows * taps * width);
                }
            }
            drop(w, conv.c * conv.k * taps);
        }
    }
}
