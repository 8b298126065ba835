#include "libfl/strategy/codec/codec_residual.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/masked_fixture.h"

/* What lossy codecs lose comes later. */

static const struct fl_codec_ops *const lossy[] = {
    &fl_codec_float16, &fl_codec_bfloat16, &fl_codec_int8, &fl_codec_ternary,
    &fl_codec_topk,    &fl_codec_qsgd,     &fl_codec_steps};
#define N_LOSSY 7

/* One unit with buffers between its trainable entries, longer than any block inside. */
enum { WEIGHT = 2900, MEAN = 40, GAIN = 60, VAR = 40, COUNT = WEIGHT + MEAN + GAIN + VAR };

static bool is_buffer(size_t i)
{
    return (i >= WEIGHT && i < WEIGHT + MEAN) || i >= WEIGHT + MEAN + GAIN;
}

struct fed {
    const struct fl_codec_ops *ops;
    struct fl_layout *layout;
    struct fl_options *o;
    struct fl_rng rng;
    struct fl_buf coded;
    float delta[COUNT], residual[COUNT], decoded[COUNT];
};

static void fed_init(struct fed *f, const struct fl_codec_ops *ops, const char *decay)
{
    *f = (struct fed){.ops = ops, .layout = unit_layout(WEIGHT, MEAN, GAIN, VAR)};
    f->o = options_of(&ops->policy, "residual=yes", decay, NULL);
    fl_rng_seed(&f->rng, 5);
    fl_buf_init(&f->coded, 1u << 20);
}

static void fed_done(struct fed *f)
{
    fl_options_free(f->o);
    fl_buf_done(&f->coded);
    fl_layout_free(f->layout);
}

static void draw(struct fed *f)
{
    size_t i;

    for (i = 0; i < COUNT; i++) {
        f->delta[i] = (float)(0.1 * fl_rng_normal(&f->rng));
    }
}

static int encode(struct fed *f, const float *residual)
{
    const struct fl_unit_update in = {
        .delta = f->delta, .residual = residual, .residual_new = f->residual};

    fl_buf_clear(&f->coded);
    return fl_residual_encode(f->ops, f->o, f->layout, 0, &in, &f->coded);
}

static void turn(struct fed *f, const float *residual)
{
    ck_assert_int_eq(encode(f, residual), FL_OK);
    ck_assert_int_eq(decode(f->ops, f->layout, f->coded.data, f->coded.len, 333, f->decoded),
                     FL_OK);
}

/* Telescoping: decoded_1 + … + decoded_T + residual_T = Delta_1 + … + Delta_T. */
TEST_EACH(without_decay_nothing_is_lost_over_rounds, N_LOSSY)
{
    double told[COUNT] = {0};
    double wanted[COUNT] = {0};
    struct fed f;
    size_t i;
    int t;

    fed_init(&f, lossy[_i], "decay=1");
    for (t = 0; t < 20; t++) {
        draw(&f);
        turn(&f, t > 0 ? f.residual : NULL);
        for (i = 0; i < COUNT; i++) {
            told[i] += (double)f.decoded[i];
            wanted[i] += (double)f.delta[i];
        }
    }
    for (i = 0; i < COUNT; i++) {
        ck_assert_double_eq_tol(told[i] + (double)f.residual[i], wanted[i], 1e-5);
        ck_assert(!is_buffer(i) || bits_of(f.residual[i]) == 0);
    }
    fed_done(&f);
}

/* Without a residual, 95 % of the entries would never be heard of. */
TEST(ternary_with_a_residual_tells_every_entry_in_time)
{
    double told[COUNT] = {0};
    double off = 0;
    double all = 0;
    struct fed f;
    size_t i;
    int t;

    fed_init(&f, &fl_codec_ternary, "decay=1");
    draw(&f);
    for (t = 0; t < 400; t++) {
        turn(&f, t > 0 ? f.residual : NULL);
        for (i = 0; i < COUNT; i++) {
            told[i] += (double)f.decoded[i];
        }
    }
    for (i = 0; i < COUNT; i++) {
        if (!is_buffer(i)) {
            off += fabs(told[i] / 400 - (double)f.delta[i]);
            all += fabs((double)f.delta[i]);
        }
    }
    ck_assert_double_lt(off, 0.1 * all);
    fed_done(&f);
}

TEST_EACH(off_is_what_it_was_bit_for_bit, N_LOSSY)
{
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_unit_update in = {.delta = NULL};
    struct fl_options *o = options_of(&ops->policy, NULL);
    struct fl_buf plain;
    struct fed f;

    fed_init(&f, ops, "decay=0.5");
    draw(&f);
    fl_buf_init(&plain, 1u << 20);
    ck_assert(!fl_codec_keeps_residual(ops, o));
    ck_assert(fl_codec_keeps_residual(ops, f.o));
    ck_assert_int_eq(ops->encode(o, f.layout, 0, f.delta, 0, &plain), FL_OK);
    in.delta = f.delta;
    ck_assert_int_eq(fl_unit_encode(ops, o, f.layout, 0, &in, &f.coded), FL_OK);
    ck_assert_uint_eq(f.coded.len, plain.len);
    ck_assert_mem_eq(f.coded.data, plain.data, plain.len);
    /* And so is the first time with one. */
    turn(&f, NULL);
    ck_assert_mem_eq(f.coded.data, plain.data, plain.len);
    fl_buf_done(&plain);
    fl_options_free(o);
    fed_done(&f);
}

TEST(an_exact_codec_keeps_none)
{
    struct fl_options *o = options_of(&fl_codec_float32.policy, NULL);

    ck_assert(!fl_codec_keeps_residual(&fl_codec_float32, o));
    fl_options_free(o);
}

/* input = Delta + decay * residual; new residual = input - decoded. */
TEST_EACH(decay_is_applied_to_what_is_added, 3)
{
    static const char *const decays[] = {"decay=0", "decay=0.7", "decay=1"};
    static const double value[] = {0, 0.7, 1};
    struct fed f;
    float before[COUNT];
    float input[COUNT];
    size_t i;

    fed_init(&f, &fl_codec_int8, decays[_i]);
    draw(&f);
    turn(&f, NULL);
    (void)memcpy(before, f.residual, sizeof(before));
    draw(&f);
    turn(&f, f.residual);
    for (i = 0; i < COUNT; i++) {
        input[i] = (float)((double)f.delta[i] + value[_i] * (double)before[i]);
        if (is_buffer(i)) {
            ck_assert_uint_eq(bits_of(f.decoded[i]), bits_of(f.delta[i]));
        } else {
            ck_assert_uint_eq(bits_of(f.residual[i]), bits_of(input[i] - f.decoded[i]));
        }
    }
    fl_buf_clear(&f.coded);
    ck_assert_int_eq(fl_codec_int8.encode(f.o, f.layout, 0, input, 0, &f.coded), FL_OK);
    ck_assert_int_eq(decode(&fl_codec_int8, f.layout, f.coded.data, f.coded.len, COUNT, input),
                     FL_OK);
    ck_assert_mem_eq(input, f.decoded, WEIGHT * sizeof(float));
    fed_done(&f);
}

TEST_EACH(the_old_residual_stays_as_it_was_when_the_new_one_goes_elsewhere, N_LOSSY)
{
    float old[COUNT];
    float copy[COUNT];
    float elsewhere[COUNT];
    struct fed f;
    size_t i;

    fed_init(&f, lossy[_i], "decay=1");
    for (i = 0; i < COUNT; i++) {
        old[i] = is_buffer(i) ? 0 : (float)i * 1e-4f;
    }
    (void)memcpy(copy, old, sizeof(old));
    draw(&f);
    ck_assert_int_eq(encode(&f, old), FL_OK);
    ck_assert_mem_eq(old, copy, sizeof(old));
    (void)memcpy(elsewhere, f.residual, sizeof(elsewhere));
    (void)memcpy(f.residual, old, sizeof(old));
    ck_assert_int_eq(encode(&f, f.residual), FL_OK);
    ck_assert_mem_eq(f.residual, elsewhere, sizeof(elsewhere));
    fed_done(&f);
}

/* Codec steps, the last one, refuses entries as large as these. */
TEST_EACH(what_is_not_finite_never_enters, N_LOSSY - 1)
{
    float old[COUNT] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    struct fed f;
    size_t i;

    fed_init(&f, lossy[_i], "decay=1");
    draw(&f);
    f.delta[3] = 3e38f; /* overflows with its residual, which is given up */
    f.delta[4] = -3e38f;
    old[WEIGHT] = NAN; /* buffers have none */
    old[WEIGHT + 1] = 5;
    turn(&f, old);
    for (i = 0; i < COUNT; i++) {
        ck_assert(isfinite(f.residual[i]));
        ck_assert(isfinite(f.decoded[i]));
        ck_assert(!is_buffer(i) || bits_of(f.decoded[i]) == bits_of(f.delta[i]));
    }
    f.delta[7] = NAN;
    ck_assert_int_eq(encode(&f, NULL), FL_ENUMERIC);
    ck_assert_uint_eq(f.coded.len, 0);
    fed_done(&f);
}

TEST_EACH(no_room_is_an_error_and_leaves_the_buffer, N_LOSSY)
{
    struct fed f;

    fed_init(&f, lossy[_i], "decay=1");
    draw(&f);
    f.coded.max = 100;
    ck_assert_int_eq(fl_buf_add(&f.coded, "x", 1), FL_OK);
    ck_assert_int_eq(
        fl_residual_encode(f.ops, f.o, f.layout, 0,
                           &(struct fl_unit_update){.delta = f.delta, .residual_new = f.residual},
                           &f.coded),
        FL_ELIMIT);
    ck_assert_uint_eq(f.coded.len, 1);
    fed_done(&f);
}

/* --- under a mask --- */

TEST_EACH(neurons_that_a_mask_leaves_out_keep_their_residual, 2 * N_LOSSY)
{
    const struct fl_codec_ops *ops = lossy[_i % N_LOSSY];
    struct fl_options *o = options_of(&ops->policy, "residual=yes", "decay=0.5", NULL);
    struct fl_layout *layout = masked_layout();
    size_t count = fl_layout_unit(layout, SMALL)->count;
    uint8_t keep[SMALL_ROWS] = {0, 1, 1, 0, 0, 1, 0, 0, 0, 1};
    float *x = calloc(count, 4 * sizeof(float));
    float *old = x + count;
    float *next = old + count;
    float *decoded = next + count;
    struct fl_unit_update in = {.delta = x, .keep = keep, .residual_new = next};
    struct fl_buf out;
    size_t i;

    for (i = 0; i < count; i++) {
        bool buffer = (i >= 40 && i < 50) || i >= 60;

        x[i] = 1.0f / (float)(i + 3);
        old[i] = buffer ? 0 : 1.0f / (float)(2 * i + 7);
        next[i] = 99;
    }
    in.residual = _i < N_LOSSY ? old : NULL;
    fl_buf_init(&out, 1u << 20);
    ck_assert_int_eq(fl_unit_encode(ops, o, layout, SMALL, &in, &out), FL_OK);
    ck_assert_int_eq(masked_decode(ops, layout, SMALL, out.data, out.len, 9, decoded), FL_OK);
    for (i = 0; i < count; i++) {
        bool buffer = (i >= 40 && i < 50) || i >= 60;
        float before = in.residual != NULL ? old[i] : 0;

        if (keep[neuron_of(layout, SMALL, i)] == 0) {
            ck_assert_uint_eq(bits_of(next[i]), bits_of(before));
        } else if (buffer) {
            ck_assert_uint_eq(bits_of(next[i]), 0);
            ck_assert_uint_eq(bits_of(decoded[i]), bits_of(x[i]));
        } else {
            ck_assert_double_eq_tol((double)next[i] + (double)decoded[i],
                                    (double)x[i] + 0.5 * (double)before, 1e-6);
        }
    }
    fl_buf_clear(&out);
    if (in.residual != NULL) { /* in place */
        in.residual_new = old;
        ck_assert_int_eq(fl_unit_encode(ops, o, layout, SMALL, &in, &out), FL_OK);
        ck_assert_mem_eq(old, next, count * sizeof(float));
    }
    free(x);
    fl_buf_done(&out);
    fl_options_free(o);
    fl_layout_free(layout);
}
