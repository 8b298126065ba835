/* The norms that an update can have had before it was coded: the true one is always among them. */
#include <float.h>
#include <math.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

#define ROWS  64
#define WIDTH 16
#define N     (ROWS * WIDTH)
#define COUNT (N + ROWS) /* and buffers */

static const struct fl_codec_ops *const codecs[] = {
    &fl_codec_float32, &fl_codec_float16, &fl_codec_bfloat16, &fl_codec_int8,
    &fl_codec_ternary, &fl_codec_steps,   &fl_codec_topk,     &fl_codec_qsgd};

/* Larger entries are too many steps. */
#define STEPS_LARGEST 1e5f

enum shape { NORMAL, HEAVY, SPIKE, EQUAL, ZERO, TINY, LARGE, LARGEST, HALVES, SHAPES };

static struct fl_layout *two_units(void)
{
    struct fl_layout *layout = NULL;
    size_t dims[2] = {ROWS, WIDTH};
    size_t rows = ROWS;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "u", "u.weight", dims, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "u", "u.mean", &rows, 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "out", "out.weight", &rows, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

static float entry(enum shape shape, size_t i, struct fl_rng *rng)
{
    double x = fl_rng_normal(rng);

    switch (shape) {
    case HEAVY:
        return (float)(x * exp(4 * fl_rng_normal(rng)));
    case SPIKE:
        return (float)(i == 77 ? 1000 : 1e-6 * x);
    case EQUAL:
        return x > 0 ? .25f : -.25f;
    case ZERO:
        return 0;
    case TINY:
        return (float)(1e-30 * x);
    case LARGE: /* some are beyond float16 */
        return (float)(1e5 * x);
    case LARGEST:
        return x > 0 ? FLT_MAX / 64 : -FLT_MAX / 64;
    case HALVES: /* what int8 and float16 round the most */
        return (float)(i == 0 ? 1 : x > 0 ? 0.5 / 127.01 : 0x1.fffp-25);
    default:
        return (float)x;
    }
}

/* The neurons of the largest norm; `n` of them. */
static void keep_most(const float *x, size_t n, uint8_t keep[ROWS])
{
    size_t i;

    (void)memset(keep, 0, ROWS);
    for (; n > 0; n--) {
        size_t best = ROWS;
        double most = -1;

        for (i = 0; i < ROWS; i++) {
            double square = fl_vec_dot(x + i * WIDTH, x + i * WIDTH, WIDTH);

            if (keep[i] == 0 && square > most) {
                most = square;
                best = i;
            }
        }
        keep[best] = 1;
    }
}

/* Of what was coded; `kept` neurons, ROWS: all and no mask. */
static struct fl_codec_size measured(const struct fl_codec_ops *ops, const float *x, size_t kept)
{
    struct fl_layout *layout = two_units();
    struct fl_options *o = options_of(&ops->policy, NULL);
    uint8_t keep[ROWS];
    struct fl_unit_update in = {.delta = x, .keep = kept < ROWS ? keep : NULL};
    struct fl_codec_size size;
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
    struct fl_codec_decoder d;
    struct fl_buf out;

    fl_buf_init(&out, 1u << 20);
    keep_most(x, kept, keep);
    ck_assert_int_eq(fl_unit_encode(ops, o, layout, 0, &in, &out), FL_OK);
    memory = (struct fl_codec_memory){.data = out.data, .len = out.len};
    reader = fl_codec_memory_reader(&memory);
    ck_assert_int_eq(kept < ROWS ? fl_masked_open(&d, ops, layout, 0, &reader)
                                 : fl_codec_open(&d, ops, layout, 0, &reader),
                     FL_OK);
    ck_assert_int_eq(fl_codec_measure(&d, &size), FL_OK);
    fl_buf_done(&out);
    fl_options_free(o);
    fl_layout_free(layout);
    return size;
}

static void draw(const struct fl_codec_ops *ops, enum shape shape, uint64_t seed, float x[COUNT])
{
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (i = 0; i < COUNT; i++) {
        x[i] = i < N ? entry(shape, i, &rng) : 1e6f; /* Buffers are in no norm. */
        if (ops == &fl_codec_steps && i < N) {
            x[i] = fminf(fmaxf(x[i], -STEPS_LARGEST), STEPS_LARGEST);
        }
    }
}

TEST_EACH(the_norm_before_coding_is_within_the_bounds, (int)ARRAY_LEN(codecs))
{
    const struct fl_codec_ops *ops = codecs[_i];
    float x[COUNT];
    int shape;
    uint64_t seed;

    for (shape = 0; shape < SHAPES; shape++) {
        for (seed = 1; seed <= 20; seed++) {
            size_t kept = seed % 4 == 0 ? 1 + seed : ROWS;
            struct fl_codec_size size;
            double norm;

            draw(ops, (enum shape)shape, seed, x);
            size = measured(ops, x, kept);
            norm = sqrt(fl_vec_dot(x, x, N));
            ck_assert_msg(size.low <= norm && norm <= size.high,
                          "%s, shape %d, %zu neurons: %g is not in %g to %g", ops->policy.name,
                          shape, kept, norm, size.low, size.high);
        }
    }
}

TEST_EACH(the_bounds_are_no_wider_than_documented, (int)ARRAY_LEN(codecs))
{
    static const double widest[] = {1.01, 1.02, 1.02, 1.2, 10, 1.2, 2.2, 1.01};
    struct fl_codec_size size;
    float x[COUNT];
    double norm;

    draw(codecs[_i], NORMAL, 1, x);
    norm = sqrt(fl_vec_dot(x, x, N));
    size = measured(codecs[_i], x, ROWS);
    ck_assert_double_lt(size.high / norm, widest[_i]);
    ck_assert_double_gt(size.low / norm, _i == 4 ? .1 : 1 / widest[_i]);
    /* 32 of 64 neurons are there: sqrt(2) more. */
    ck_assert_double_lt(measured(codecs[_i], x, 32).high / norm, widest[_i] * 1.5);
    draw(codecs[_i], ZERO, 1, x);
    /* A step for each entry may have been rounded to 0. */
    ck_assert_double_lt(measured(codecs[_i], x, ROWS).high,
                        codecs[_i] == &fl_codec_steps ? 1.01 * 0.125 * sqrt(N) : 1e-6);
}
