/* Models on a lattice: steps, moves as bytes, and what changed between any two models. */
#include <math.h>

#include "libfl/strategy/broadcast/moves.h"
#include "libfl/strategy/broadcast/versions.h"
#include "libfl/strategy/codec/bits.h"
#include "libfl/strategy/grid.h"
#include "libfl/strategy/strategy.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

/* --- moves as bytes --- */

enum { MOVES = 3000 };

static void draw_moves(struct fl_rng *rng, double density, double size, int32_t *moves)
{
    size_t i;

    for (i = 0; i < MOVES; i++) {
        double x = fl_rng_normal(rng);

        moves[i] = fl_rng_unit(rng) < density ? (int32_t)(size * x + copysign(1, x)) : 0;
    }
}

static const struct {
    double density, size;
    int32_t step;
} densities[] = {{0.0005, 0, 1},  {0.01, 0.4, 90112}, {0.2, 1, 3},
                 {0.7, 3, 81920}, {1, 1000, 1},       {0.3, 1e6, 1}};

TEST_EACH(moves_come_back_from_their_bytes, 6)
{
    int32_t moves[MOVES];
    int32_t sum[MOVES] = {0};
    struct fl_buf coded;
    struct fl_rng rng;
    struct fl_err err = {0};
    size_t used = 0;
    size_t i;

    fl_rng_seed(&rng, 7 + (uint64_t)_i);
    fl_buf_init(&coded, 1u << 20);
    draw_moves(&rng, densities[_i].density, densities[_i].size, moves);
    moves[1234] = 1;
    for (i = 0; i < MOVES; i++) {
        moves[i] *= densities[_i].step;
    }
    ck_assert_int_eq(moves_encode(moves, MOVES, &coded), FL_OK);
    ck_assert_uint_eq(fl_moves_step(coded.data, coded.len), (uint32_t)densities[_i].step);
    ck_assert_int_eq(fl_buf_add(&coded, "next", 4), FL_OK);
    ck_assert_int_eq(moves_decode(coded.data, coded.len, MOVES, sum, &used, &err), FL_OK);
    ck_assert_uint_eq(used, coded.len - 4);
    ck_assert_mem_eq(sum, moves, sizeof(moves));
    ck_assert_int_eq(moves_decode(coded.data, coded.len, MOVES, sum, &used, &err), FL_OK);
    for (i = 0; i < MOVES; i++) {
        ck_assert_int_eq(sum[i], 2 * moves[i]);
    }
    /* No shorter bytes are taken. */
    for (i = 0; i < used; i += 1 + used / 300) {
        ck_assert_int_eq(moves_decode(coded.data, i, MOVES, sum, &used, &err), FL_EFORMAT);
    }
    fl_buf_done(&coded);
}

/* 63 one-bits and the zero-bit fill a word of the reader. */
TEST(a_quotient_that_fills_a_word_is_read)
{
    uint8_t bytes[16] = {0};
    struct fl_bit_writer w = {.at = bytes};
    struct fl_bit_reader r = {.at = bytes, .end = bytes + sizeof(bytes)};
    uint64_t value = 0;

    fl_bits_put_rice(&w, 63, 0);
    fl_bits_put_rice(&w, 5, 2);
    fl_bits_put_end(&w);
    ck_assert_int_eq(fl_bits_rice(&r, 0, 100, &value), FL_OK);
    ck_assert_uint_eq(value, 63);
    ck_assert_int_eq(fl_bits_rice(&r, 2, 100, &value), FL_OK);
    ck_assert_uint_eq(value, 5);
}

TEST(moves_take_no_more_bits_than_their_entropy_and_a_twentieth)
{
    int32_t moves[MOVES];
    struct fl_buf coded;
    struct fl_rng rng;
    double p = 0;
    double entropy;
    size_t i;

    fl_rng_seed(&rng, 5);
    fl_buf_init(&coded, 1u << 20);
    draw_moves(&rng, 0.03, 0, moves);
    for (i = 0; i < MOVES; i++) {
        p += (moves[i] != 0) / (double)MOVES;
    }
    entropy = -p * log2(p) - (1 - p) * log2(1 - p) + p; /* and a sign */
    ck_assert_int_eq(moves_encode(moves, MOVES, &coded), FL_OK);
    ck_assert_double_le(8.0 * (double)coded.len, 1.05 * entropy * MOVES + 80);
    fl_buf_done(&coded);
}

/* clang-format off */
static const struct {
    const char *text;
    size_t len;
    uint8_t bytes[16];
} bad_moves[] = {
    {"step is out of range", 11, {0, 0, 0, 0, 1, 0, 0, 0, 0, 255, 0}},
    {"step is out of range", 11, {1, 0, 0, 2, 1, 0, 0, 0, 0, 255, 0}},
    {"count or a Rice", 11, {1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0}},
    {"count or a Rice", 11, {1, 0, 0, 0, 4, 0, 0, 0, 0, 255, 0}},     /* more than there are */
    {"count or a Rice", 11, {1, 0, 0, 0, 1, 0, 0, 0, 31, 255, 0}},
    {"count or a Rice", 11, {1, 0, 0, 0, 1, 0, 0, 0, 0, 31, 0}},
    {"bytes are missing", 9, {1, 0, 0, 0, 1, 0, 0, 0, 0}},
    {"position is past", 10, {1, 0, 0, 0, 1, 0, 0, 0, 0, 255}},
    {"position is past", 11, {1, 0, 0, 0, 1, 0, 0, 0, 0, 255, 0xe0}}, /* gap 3 of 3 entries */
    {"position is past", 11, {1, 0, 0, 0, 1, 0, 0, 0, 0, 255, 0xff}},
    {"position is past", 11, {1, 0, 0, 0, 2, 0, 0, 0, 0, 255, 0xd8}}, /* the second one */
    {"bit after the last", 11, {1, 0, 0, 0, 1, 0, 0, 0, 0, 255, 0x01}},
    {"move is too long", 14, {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x3f, 255, 255, 255}},
    {"move is too long", 15, {1, 0, 0, 0, 1, 0, 0, 0, 0, 30, 0x30, 255, 255, 255, 0xf0}},
    {"move is too long", 11, {0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0x20}}};
/* clang-format on */

TEST_EACH(bytes_that_no_encoder_writes_are_refused, 15)
{
    int32_t sum[3] = {0};
    struct fl_err err = {0};
    size_t used = 0;

    ck_assert_int_eq(moves_decode(bad_moves[_i].bytes, bad_moves[_i].len, 3, sum, &used, &err),
                     FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, bad_moves[_i].text) != NULL, "%s", err.msg);
}

TEST(a_move_or_a_sum_above_the_range_is_refused)
{
    int32_t moves[2] = {FL_MOVE_MAX, -FL_MOVE_MAX};
    int32_t sum[2] = {0};
    struct fl_buf coded;
    struct fl_err err = {0};
    size_t used;

    fl_buf_init(&coded, 1u << 20);
    ck_assert_int_eq(moves_encode(moves, 2, &coded), FL_OK);
    ck_assert_int_eq(moves_decode(coded.data, coded.len, 2, sum, &used, &err), FL_OK);
    ck_assert_int_eq(moves_decode(coded.data, coded.len, 2, sum, &used, &err), FL_EFORMAT);
    moves[0]++;
    ck_assert_int_eq(moves_encode(moves, 2, &coded), FL_ELIMIT);
    fl_buf_done(&coded);
}

/* --- the step --- */

static uint32_t step_after(const char *step, const char *halve_at, const size_t *dims,
                           size_t n_dims, uint64_t round, uint64_t plateau)
{
    struct fl_options *o = options_of(&fl_broadcast_lattice.policy, step, halve_at, NULL);
    struct fl_layout *layout = NULL;
    uint32_t grid;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    fed_tensor(layout, "first", "first.bias", 7, false);
    ck_assert_int_eq(fl_layout_add(layout, "u", "u.w", dims, n_dims, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    grid = fl_broadcast_grid(&fl_broadcast_lattice, o,
                             &(struct fl_broadcast_round){layout, NULL, round, plateau});
    fl_layout_free(layout);
    fl_options_free(o);
    return grid;
}

static uint32_t step_of(const char *step, const char *halve_at, const size_t *dims, size_t n_dims,
                        uint64_t round)
{
    return step_after(step, halve_at, dims, n_dims, round, 3);
}

TEST(the_step_follows_the_first_weights_of_the_largest_tensor)
{
    const size_t dense[] = {200, 784};
    const size_t conv[] = {64, 32, 5, 5};

    /* 4 / sqrt(3 784) is 0.0825, with 4 bits 11/128. */
    ck_assert_uint_eq(step_of("step=auto", "halve_at=0", dense, 2, 1), 11 << 13);
    /* 4 / sqrt(3 800) is 0.0816, with 4 bits 10/128. */
    ck_assert_uint_eq(step_of("step=auto", "halve_at=0", conv, 4, 1), 5 << 14);
    ck_assert_uint_eq(step_of("step=0.25", "halve_at=0", dense, 2, 1), 1 << 18);
}

TEST(the_step_is_halved_from_its_round_on)
{
    const size_t dense[] = {200, 784};

    ck_assert_uint_eq(step_of("step=0.25", "halve_at=9", dense, 2, 8), 1 << 18);
    ck_assert_uint_eq(step_of("step=0.25", "halve_at=9", dense, 2, 9), 1 << 17);
    ck_assert_uint_eq(step_of("step=0.25", "halve_at=9", dense, 2, 1000), 1 << 17);
}

TEST(the_step_is_halved_from_the_round_after_a_plateau_on)
{
    const size_t dense[] = {200, 784};

    ck_assert_uint_eq(step_after("step=0.25", "halve_at=plateau", dense, 2, 90, 0), 1 << 18);
    ck_assert_uint_eq(step_after("step=0.25", "halve_at=plateau", dense, 2, 90, 90), 1 << 18);
    ck_assert_uint_eq(step_after("step=0.25", "halve_at=plateau", dense, 2, 91, 90), 1 << 17);
    ck_assert_uint_eq(step_after("step=0.25", "halve_at=0", dense, 2, 91, 90), 1 << 18);
}

static const struct {
    const char *step, *halve_at, *text;
} bad_steps[] = {
    {"0.08", "0", "0.08 is not a multiple of 2^-20; the nearest one is 0.0799999237060546875"},
    {"0.08", "0", "a short one near it is 0.078125"},
    {"0", "0", "expected 'auto' or a number from 2^-20 to 1, found '0'"},
    {"-0.5", "0", "found '-0.5'"},
    {"1.5", "0", "found '1.5'"},
    {"large", "0", "found 'large'"},
    {"nan", "0", "found 'nan'"},
    {"9.5367431640625e-7", "3", "from 2^-19 to 1"},
    {"0.00000286102294921875", "3", "which 'halve_at' needs"},
    {"0.00000286102294921875", "plateau", "which 'halve_at' needs"},
    {"0.25", "Plateau", "'halve_at': expected 'plateau' or a round from 0 to 1000000000, found"},
    {"0.25", "-1", "or a round from 0 to 1000000000, found '-1'"}};

TEST_EACH(a_step_off_the_grid_is_refused_with_one_that_is_on_it, 12)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("lean", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_BROADCAST, "lattice", &err), FL_OK);
    ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_BROADCAST], "halve_at",
                                    bad_steps[_i].halve_at, &err),
                     FL_OK);
    ck_assert_int_eq(
        fl_options_set(s->options[FL_COMPONENT_BROADCAST], "step", bad_steps[_i].step, &err),
        FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, bad_steps[_i].text) != NULL, "%s", err.msg);
    fl_strategy_free(s);
}

/* --- rounds --- */

/* A federation of 3 clients whose model is on the lattice, without a rest. */
static void broadcast_init(struct fed *f, const struct fl_broadcast_ops *ops, const char *option)
{
    fed_init(f, 3);
    f->broadcast = ops;
    f->broadcast_options = options_of(&ops->policy, option, NULL);
    ck_assert_int_eq(fl_broadcast_place(ops, f->broadcast_options, f->layout, f->theta, NULL),
                     FL_OK);
    (void)memset(f->state[0], 0, f->count * sizeof(float));
}

static void lattice_init(struct fed *f, const char *halve_at)
{
    broadcast_init(f, &fl_broadcast_lattice, "step=0.125");
    ck_assert_int_eq(fl_options_set(f->broadcast_options, "halve_at", halve_at, NULL), FL_OK);
}

/* One round with other updates; theta and the rest are those of the next round then. */
static void lattice_round(struct fed *f, struct fl_rng *rng)
{
    float *x;
    size_t i;
    size_t k;

    for (k = 0; k < f->n; k++) {
        for (i = 0; i < f->count; i++) {
            f->sent[k][0][i] = (float)(0.1 * fl_rng_normal(rng));
        }
    }
    ck_assert_int_eq(fed_run(f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL)),
                     FL_OK);
    x = f->theta;
    f->theta = f->theta_new;
    f->theta_new = x;
    x = f->state[0];
    f->state[0] = f->state_new[0];
    f->state_new[0] = x;
    f->round++;
}

TEST(entries_move_by_whole_steps_and_nothing_is_lost)
{
    struct fed f;
    struct fl_rng rng;
    size_t moved = 0;
    size_t i;

    lattice_init(&f, "0");
    fl_rng_seed(&rng, 11);
    for (i = 0; i < f.count; i++) {
        f.state[0][i] = fed_is_buffer(&f, i) ? 0 : (float)(0.1 * fl_rng_normal(&rng));
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL)),
                     FL_OK);
    for (i = 0; i < f.count; i++) {
        double steps = ((double)f.theta_new[i] - (double)f.theta[i]) / 0.125;
        double away;

        if (fed_is_buffer(&f, i)) {
            continue;
        }
        moved += steps != 0;
        ck_assert(steps - rint(steps) == 0);
        away = (double)f.state_new[0][i] / 0.125;
        ck_assert_double_lt(fabs(away), 0.6);
        /* 0.6 of a step away it moves, and then it is at most 0.6 away on either side. */
        ck_assert(steps == 0 || fabs(away + steps) >= 0.6);
    }
    ck_assert_uint_gt(moved, 10);
    fed_done(&f);
}

struct walk {
    struct fl_versions *versions;
    float *models[160];
    uint8_t digests[160][FL_DIGEST_SIZE];
    size_t n;
};

static void walk_note(struct walk *w, const struct fed *f)
{
    w->models[w->n] = fed_floats(f->count);
    (void)memcpy(w->models[w->n], f->theta, f->count * sizeof(float));
    ck_assert_int_eq(fl_versions_digest(f->layout, f->theta, w->digests[w->n]), FL_OK);
    w->n++;
}

static void walk_more(struct walk *w, struct fed *f, size_t rounds)
{
    struct fl_rng rng;

    fl_rng_seed(&rng, 99 + w->n);
    for (; rounds > 0; rounds--) {
        struct fl_versions *longer = NULL;
        struct fl_step step;

        lattice_round(f, &rng);
        ck_assert_int_eq(fl_step_make(f->layout, w->models[w->n - 1], f->theta, &step, &f->err),
                         FL_OK);
        step.round = f->round - 1;
        ck_assert_int_eq(fl_step_check(f->layout, &step, &f->err), FL_OK);
        ck_assert_int_eq(fl_versions_add(w->versions, &step, &longer), FL_OK);
        fl_versions_unref(w->versions);
        w->versions = longer;
        walk_note(w, f);
    }
}

static void walk_rounds(struct walk *w, struct fed *f, size_t rounds)
{
    *w = (struct walk){.n = 0};
    walk_note(w, f);
    ck_assert_int_eq(fl_versions_create(w->digests[0], &w->versions), FL_OK);
    walk_more(w, f, rounds);
}

static void walk_done(struct walk *w)
{
    fl_versions_unref(w->versions);
    while (w->n > 0) {
        free(w->models[--w->n]);
    }
}

/* A client with model `i` gets the newest one, bit for bit; returns the bytes of the download. */
static size_t walk_catch_up(const struct walk *w, struct fed *f, size_t i)
{
    struct fl_blob *bytes = NULL;
    float *model = fed_floats(f->count);
    size_t len;

    (void)memcpy(model, w->models[i], f->count * sizeof(float));
    ck_assert_int_eq(moves_difference(w->versions, f->layout, f->theta, w->digests[i], &bytes),
                     FL_OK);
    len = fl_blob_len(bytes);
    ck_assert_int_eq(fl_difference_apply(f->layout, fl_blob_data(bytes), len, model, &f->err),
                     FL_OK);
    ck_assert_mem_eq(model, f->theta, f->count * sizeof(float));
    fl_blob_unref(bytes);
    free(model);
    return len;
}

TEST_EACH(a_client_with_any_earlier_model_gets_the_newest_one_bit_for_bit, 2)
{
    struct fed f;
    struct walk w;
    size_t i;

    lattice_init(&f, _i == 0 ? "0" : "12");
    walk_rounds(&w, &f, 30);
    ck_assert_mem_eq(fl_versions_newest(w.versions), w.digests[30], FL_DIGEST_SIZE);
    for (i = 0; i <= 30; i++) {
        size_t len = walk_catch_up(&w, &f, i);

        ck_assert_uint_lt(len, f.count * sizeof(float));
    }
    walk_done(&w);
    fed_done(&f);
}

/*
 * 148 rounds: the difference of a model of 48 rounds ago or longer is divided at a round that is a
 * multiple of 2, of 96 at one of 4. Of each side of them, and of model 0 none.
 */
TEST(a_difference_over_many_rounds_is_divided_at_the_nearest_round_that_many_share)
{
    static const struct {
        size_t held, at; /* 0: nowhere */
    } cases[] = {{0, 0},   {1, 4},  {2, 4},   {3, 4},  {4, 0},    {5, 4},   {6, 8},
                 {51, 52}, {52, 0}, {53, 54}, {98, 0}, {99, 100}, {100, 0}, {147, 0}};
    struct fed f;
    struct walk w;
    size_t i;

    lattice_init(&f, "0");
    walk_rounds(&w, &f, 148);
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint8_t *at = fl_versions_divide(w.versions, w.digests[cases[i].held]);

        ck_assert_msg((at != NULL) == (cases[i].at > 0) &&
                          (at == NULL || memcmp(at, w.digests[cases[i].at], FL_DIGEST_SIZE) == 0),
                      "%zu", cases[i].held);
    }
    for (i = 0; i <= 148; i++) {
        (void)walk_catch_up(&w, &f, i);
    }
    walk_done(&w);
    fed_done(&f);
}

TEST(merged_steps_lead_to_the_same_model_from_the_first_one)
{
    struct fed f;
    struct walk w;
    struct fl_versions *fewer = NULL;
    const struct fl_step *first = NULL;
    struct fl_blob *bytes = NULL;
    size_t i;

    lattice_init(&f, "12");
    walk_rounds(&w, &f, 30);
    ck_assert_int_eq(fl_versions_merge(w.versions, f.layout, 20, &fewer), FL_OK);
    first = fl_versions_step(fewer, 0);
    fl_versions_unref(w.versions);
    w.versions = fewer;
    ck_assert_uint_eq(fl_versions_steps(fewer), 11);
    ck_assert_uint_eq(first->round, 20);
    ck_assert_mem_eq(first->to, w.digests[20], FL_DIGEST_SIZE);
    for (i = 0; i <= 30; i++) {
        if (i == 0 || i >= 20) {
            (void)walk_catch_up(&w, &f, i);
        } else {
            ck_assert_int_eq(moves_difference(w.versions, f.layout, f.theta, w.digests[i], &bytes),
                             FL_ENOENT);
        }
    }
    walk_done(&w);
    fed_done(&f);
}

TEST(the_oldest_steps_are_surplus_beyond_a_number_or_beyond_bytes)
{
    struct fed f;
    struct walk w;
    size_t all = 0;
    size_t half = 0;
    size_t i;

    lattice_init(&f, "0");
    walk_rounds(&w, &f, 20);
    for (i = 1; i < 20; i++) {
        all += fl_blob_len(fl_versions_step(w.versions, i)->moves);
    }
    ck_assert_uint_eq(fl_versions_surplus(w.versions, 1000, all), 0);
    ck_assert_uint_eq(fl_versions_surplus(w.versions, 10, all), 0);
    ck_assert_uint_eq(fl_versions_surplus(w.versions, 9, all), 11);
    /* Half of the bytes remain. */
    for (i = fl_versions_surplus(w.versions, 1000, all - 1); i < 20; i++) {
        half += fl_blob_len(fl_versions_step(w.versions, i)->moves);
    }
    ck_assert_uint_le(half, all / 2);
    ck_assert_uint_ge(half, all / 3);
    /* One step is always kept. */
    ck_assert_uint_eq(fl_versions_surplus(w.versions, 1000, 0), 19);
    walk_done(&w);
    fed_done(&f);
}

TEST(steps_of_another_length_are_added_up_with_those_before)
{
    struct fed f;
    struct walk w;
    size_t i;

    lattice_init(&f, "0");
    walk_rounds(&w, &f, 5);
    fl_options_free(f.broadcast_options);
    f.broadcast_options = options_of(&fl_broadcast_lattice.policy, "step=0.1875", NULL);
    walk_more(&w, &f, 5);
    for (i = 0; i <= 10; i++) {
        (void)walk_catch_up(&w, &f, i);
    }
    walk_done(&w);
    fed_done(&f);
}

TEST(an_unknown_model_and_a_difference_as_long_as_the_model_are_not_served)
{
    struct fed f;
    struct walk w;
    struct fl_blob *bytes = NULL;
    struct fl_layout *tiny = NULL;
    struct fl_versions *one = NULL;
    struct fl_step step;
    const float values[] = {0, 1};
    uint8_t unknown[FL_DIGEST_SIZE] = {1};

    lattice_init(&f, "0");
    walk_rounds(&w, &f, 3);
    ck_assert_int_eq(moves_difference(w.versions, f.layout, f.theta, unknown, &bytes), FL_ENOENT);
    walk_done(&w);
    /* One entry has 4 bytes. */
    ck_assert_int_eq(fl_layout_create(&tiny), FL_OK);
    fed_tensor(tiny, "u", "u.bias", 1, false);
    ck_assert_int_eq(fl_layout_finish(tiny, NULL), FL_OK);
    ck_assert_int_eq(fl_versions_create(unknown, &w.versions), FL_OK);
    ck_assert_int_eq(fl_step_make(tiny, &values[0], &values[1], &step, &f.err), FL_OK);
    ck_assert_int_eq(fl_versions_add(w.versions, &step, &one), FL_OK);
    ck_assert_int_eq(moves_difference(one, tiny, &values[1], unknown, &bytes), FL_ELIMIT);
    fl_versions_unref(one);
    fl_layout_free(tiny);
    walk_done(&w);
    fed_done(&f);
}

TEST_EACH(a_model_that_leaves_the_lattice_is_named_with_its_tensor, 3)
{
    const float bad[] = {16, NAN, 0x1p-21f};
    struct fed f;
    struct fl_step step;

    lattice_init(&f, "0");
    (void)memcpy(f.theta_new, f.theta, f.count * sizeof(float));
    f.theta_new[40] = bad[_i];
    ck_assert_int_eq(fl_step_make(f.layout, f.theta, f.theta_new, &step, &f.err), FL_ENUMERIC);
    ck_assert_msg(strstr(f.err.msg, "an entry of 'conv.weight' is") != NULL, "%s", f.err.msg);
    fl_step_done(&step);
    fed_done(&f);
}

TEST(a_changed_byte_never_gives_the_model_of_the_digest)
{
    struct fed f;
    struct walk w;
    struct fl_blob *bytes = NULL;
    float *model;
    uint8_t *data;
    size_t len;
    size_t i;

    lattice_init(&f, "0");
    walk_rounds(&w, &f, 8);
    ck_assert_int_eq(moves_difference(w.versions, f.layout, f.theta, w.digests[2], &bytes), FL_OK);
    len = fl_blob_len(bytes);
    data = calloc(1, len + 1);
    model = fed_floats(f.count);
    for (i = 0; i < 8 * (len + 1); i++) {
        uint8_t digest[FL_DIGEST_SIZE];

        (void)memcpy(data, fl_blob_data(bytes), len);
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        (void)memcpy(model, w.models[2], f.count * sizeof(float));
        /* Behind the end there is one byte more. */
        if (fl_difference_apply(f.layout, data, len + (i >= 8 * len), model, &f.err) == FL_OK) {
            ck_assert_int_eq(fl_versions_digest(f.layout, model, digest), FL_OK);
            ck_assert_mem_ne(digest, w.digests[8], FL_DIGEST_SIZE);
        }
    }
    free(data);
    free(model);
    fl_blob_unref(bytes);
    walk_done(&w);
    fed_done(&f);
}

TEST_EACH(a_difference_without_its_first_bytes_is_refused_with_the_unit, 2)
{
    const uint8_t lists[2] = {1, 0};
    struct fed f;

    lattice_init(&f, "0");
    ck_assert_int_eq(fl_difference_apply(f.layout, lists, (size_t)_i + 1, f.theta, &f.err),
                     FL_EFORMAT);
    ck_assert_str_eq(f.err.msg, "unit 'fc1': bytes are missing");
    fed_done(&f);
}

/* --- ternary --- */

TEST(the_entries_of_each_unit_that_are_farthest_away_move_by_one_magnitude)
{
    struct fed f;
    struct fl_rng rng;
    size_t l;

    broadcast_init(&f, &fl_broadcast_ternary, "share=0.1");
    fl_rng_seed(&rng, 3);
    lattice_round(&f, &rng);
    for (l = 0; l < fl_layout_units(f.layout); l++) {
        const struct fl_unit *u = fl_layout_unit(f.layout, l);
        double mu = 0;
        double least = INFINITY;
        double most = 0;
        size_t moved = 0;
        size_t i;

        for (i = u->offset; i < u->offset + u->count; i++) {
            double move = (double)f.theta[i] - (double)f.theta_new[i];
            double all = move + (double)f.state[0][i];

            if (fed_is_buffer(&f, i)) {
                continue;
            }
            if (move != 0) {
                ck_assert(mu == 0 || fabs(move) == mu);
                mu = fabs(move);
                least = fmin(least, fabs(all));
                moved++;
            } else {
                most = fmax(most, fabs(all));
            }
        }
        ck_assert_uint_eq(moved, (u->n_trainable + 9) / 10);
        ck_assert_double_ge(least, most);
        ck_assert(mu / FL_GRID == rint(mu / FL_GRID));
    }
    fed_done(&f);
}

TEST(a_merged_step_as_long_as_the_model_is_dropped)
{
    struct fed f;
    struct walk w;
    struct fl_versions *fewer = NULL;
    struct fl_blob *bytes = NULL;
    size_t i;

    broadcast_init(&f, &fl_broadcast_ternary, "share=0.1");
    walk_rounds(&w, &f, 40);
    ck_assert_int_eq(fl_versions_merge(w.versions, f.layout, 36, &fewer), FL_OK);
    fl_versions_unref(w.versions);
    w.versions = fewer;
    ck_assert_uint_eq(fl_versions_steps(fewer), 4);
    for (i = 36; i <= 40; i++) {
        (void)walk_catch_up(&w, &f, i);
    }
    ck_assert_int_eq(moves_difference(w.versions, f.layout, f.theta, w.digests[0], &bytes),
                     FL_ENOENT);
    walk_done(&w);
    fed_done(&f);
}

TEST(moves_of_rounds_with_other_magnitudes_follow_one_another)
{
    struct fed f;
    struct walk w;
    size_t one;
    size_t i;

    broadcast_init(&f, &fl_broadcast_ternary, "share=0.01");
    walk_rounds(&w, &f, 6);
    one = walk_catch_up(&w, &f, 5);
    for (i = 0; i <= 6; i++) {
        ck_assert_uint_le(walk_catch_up(&w, &f, i), one + 12 * 3 * (6 - i));
    }
    walk_done(&w);
    fed_done(&f);
}
