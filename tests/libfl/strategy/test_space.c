/* Hashed spaces: which entries share a number, folding, training, and the steps of a round. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/broadcast/hashed_moves.h"
#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/broadcast/versions.h"
#include "libfl/strategy/space/bucket.h"
#include "libfl/strategy/strategy.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/suites.h"

enum { SIZE = 60, REDRAW = 4, GRID = 40000 };

static struct fl_layout *layout;
static struct fl_space *space;
static struct fl_space_map map;
static size_t count, numbers;

/* fc1: 900 + 30 entries and 40 buffers; fc2: 120 + 4; last: 2, which are not hashed. */
static void add(const char *unit, const char *tensor, size_t n, bool buffer)
{
    ck_assert_int_eq(fl_layout_add(layout, unit, tensor, &n, 1, buffer, NULL), FL_OK);
}

static struct fl_space *make_growing(const char *size, const char *start, const char *redraw,
                                     const char *seed, struct fl_err *err)
{
    const struct fl_component_option o[] = {
        {"size", size}, {"start", start}, {"growth", "1.5"}, {"redraw", redraw}, {"seed", seed}};
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_space *ret = NULL;

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", o, 5, &policy, &options, err), FL_OK);
    ck_assert_int_eq(fl_space_create((const void *)policy, options, layout, &ret, err),
                     err->msg[0] == '\0' ? FL_OK : FL_ECONF);
    fl_options_free(options);
    return ret;
}

static struct fl_space *make_space(const char *size, const char *redraw, const char *seed,
                                   struct fl_err *err)
{
    return make_growing(size, "0", redraw, seed, err);
}

static void setup(void)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    add("fc1", "fc1.weight", 900, false);
    add("fc1", "fc1.bias", 30, false);
    add("fc1", "norm.running_mean", 40, true);
    add("fc2", "fc2.weight", 120, false);
    add("fc2", "fc2.bias", 4, false);
    add("last", "last.bias", 2, false);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    space = make_space("60", "4", "1", &err);
    ck_assert_msg(space != NULL, "%s", err.msg);
    ck_assert_int_eq(fl_space_map_make(space, 0, &map), FL_OK);
    count = fl_layout_count(layout);
    numbers = fl_layout_count(space->updates);
}

static void teardown(void)
{
    fl_space_map_done(&map);
    fl_space_free(space);
    fl_layout_free(layout);
}

static float *floats(size_t n)
{
    float *x = calloc(n, sizeof(*x));

    ck_assert_ptr_nonnull(x);
    return x;
}

static float *drawn(size_t n, uint64_t seed, double size)
{
    float *x = floats(n);
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (i = 0; i < n; i++) {
        x[i] = (float)(size * fl_rng_normal(&rng));
    }
    return x;
}

TEST_CASE("space", setup, teardown);

/* sqrt: 30.496, 11.136, 1.414 of 43.046: 42.5, 15.5, 1.97 of 60; the last unit has 2 entries. */
TEST(numbers_are_divided_by_the_square_roots_of_the_units_entries)
{
    static const size_t n[] = {42, 15, 2};
    static const size_t buffers[] = {40, 0, 0};
    size_t l;

    ck_assert_uint_eq(fl_layout_units(space->updates), 3);
    for (l = 0; l < 3; l++) {
        const struct fl_unit *unit = fl_layout_unit(space->updates, l);

        ck_assert_str_eq(unit->name, fl_layout_unit(layout, l)->name);
        ck_assert_uint_eq(unit->n_trainable, n[l]);
        ck_assert_uint_eq(unit->n_buffers, buffers[l]);
    }
    ck_assert_str_eq(fl_layout_tensor(space->updates, 0)->name, "fc1.hashed");
    ck_assert_str_eq(fl_layout_tensor(space->updates, 1)->name, "norm.running_mean");
}

/* As clients in other languages compute them (docs/algorithms.md#hashed-spaces). */
TEST(the_hash_is_the_documented_one)
{
    static const struct {
        uint32_t bucket;
        bool negative;
    } want[] = {{69, false}, {63, false}, {75, true}, {60, true}};
    const struct fl_buckets b = fl_buckets_of(12345, 2, 1000, 77);
    size_t i;

    for (i = 0; i < 4; i++) {
        bool negative = false;
        uint32_t bucket = fl_bucket(&b, i * 333, &negative);

        ck_assert_msg(bucket == want[i].bucket && negative == want[i].negative,
                      "entry %zu: bucket %u, %s", i * 333, bucket, negative ? "true" : "false");
    }
}

TEST(entries_are_spread_over_numbers_and_signs_evenly)
{
    const struct fl_buckets b = fl_buckets_of(7, 0, 100000, 100);
    size_t of[100] = {0};
    size_t minus = 0;
    size_t i;

    for (i = 0; i < 100000; i++) {
        bool negative = false;

        of[fl_bucket(&b, i, &negative)]++;
        minus += negative;
    }
    for (i = 0; i < 100; i++) { /* 1000, deviation 31.5 */
        ck_assert_uint_gt(of[i], 840);
        ck_assert_uint_lt(of[i], 1160);
    }
    ck_assert_uint_gt(minus, 49200);
    ck_assert_uint_lt(minus, 50800);
}

TEST(folding_is_the_inverse_of_unfolding)
{
    float *z = drawn(numbers, 1, 1);
    float *x = floats(count);
    float *again = floats(numbers);
    size_t i;

    fl_space_unfold(&map, z, x);
    fl_space_fold(&map, x, again);
    for (i = 0; i < numbers; i++) {
        ck_assert(map.share[i] > 0);
        ck_assert_double_eq_tol(again[i], z[i], 1e-6);
    }
    for (i = 0; i < 40; i++) { /* Entries that are not trained keep their values. */
        ck_assert(memcmp(&x[930 + i], &z[42 + i], sizeof(float)) == 0);
    }
    free(z);
    free(x);
    free(again);
}

/* Orthogonal projection: what is left over is orthogonal to every P z. */
TEST(a_fold_is_the_nearest_point_of_the_space)
{
    float *x = drawn(count, 2, 1);
    float *z = floats(numbers);
    float *near = floats(count);
    float *other = drawn(numbers, 3, 1);
    float *direction = floats(count);
    double product = 0;
    size_t i;

    fl_space_fold(&map, x, z);
    fl_space_unfold(&map, z, near);
    fl_space_unfold(&map, other, direction);
    for (i = 0; i < count; i++) {
        product += ((double)x[i] - (double)near[i]) * (double)direction[i];
    }
    ck_assert_double_eq_tol(product, 0, 1e-4);
    free(x);
    free(z);
    free(near);
    free(other);
    free(direction);
}

TEST(numbers_have_about_the_norm_of_their_entries)
{
    float *z = drawn(numbers, 4, 1);
    float *x = floats(count);
    double of_z = 0;
    double of_x = 0;
    size_t i;

    fl_space_unfold(&map, z, x);
    for (i = 0; i < numbers; i++) {
        of_z += (double)z[i] * (double)z[i];
    }
    for (i = 0; i < count; i++) {
        of_x += (double)x[i] * (double)x[i];
    }
    ck_assert_double_eq_tol(sqrt(of_x) / sqrt(of_z), 1, 0.15);
    free(z);
    free(x);
}

TEST(a_projected_step_stays_in_the_space_and_leaves_the_other_entries)
{
    float *start = drawn(count, 5, 1);
    float *x = drawn(count, 6, 1);
    float *before = floats(count);
    float *want = floats(count);
    float *z = floats(numbers);
    struct fl_space_steps steps = {.map = &map, .n = count};
    size_t i;

    steps.place = malloc(count * sizeof(*steps.place));
    steps.start = start;
    steps.means = floats(numbers + 1);
    for (i = 0; i < count; i++) {
        before[i] = x[i];
        want[i] = x[i] - start[i];
        steps.place[i] = i >= 930 && i < 970 ? 0 : map.place[i];
    }
    fl_space_fold(&map, want, z);
    fl_space_unfold(&map, z, want);
    fl_space_project(&steps, x);
    for (i = 0; i < count; i++) {
        if (steps.place[i] == 0) {
            ck_assert(memcmp(&x[i], &before[i], sizeof(float)) == 0);
        } else {
            ck_assert_double_eq_tol(x[i] - start[i], want[i], 1e-5);
        }
    }
    for (i = 0; i < count; i++) {
        before[i] = x[i];
    }
    fl_space_project(&steps, x);
    for (i = 0; i < count; i++) {
        ck_assert_double_eq_tol(x[i], before[i], 1e-5);
    }
    free(start);
    free(x);
    free(before);
    free(want);
    free(z);
    free(steps.place);
    free(steps.means);
}

TEST(draws_and_seeds_differ_from_one_another)
{
    struct fl_err err = {0};
    struct fl_space *other = make_space("60", "0", "2", &err);

    ck_assert_uint_eq(fl_space_seed(space, 1), fl_space_seed(space, 1));
    ck_assert_uint_ne(fl_space_seed(space, 1), fl_space_seed(space, 0));
    ck_assert_uint_ne(fl_space_seed(other, 1), fl_space_seed(space, 1));
    fl_space_free(other);
}

/* The draw of a round with this `redraw`, after plateaus in rounds 30 and 77. */
static struct fl_draw draw_of(const char *redraw, uint64_t round)
{
    static const struct fl_plateau before = {.round = 30, .newest = 30, .count = 1};
    static const struct fl_plateau after = {.round = 30, .newest = 77, .count = 2};
    static const struct fl_plateau none;
    const struct fl_component_option o = {"redraw", redraw};
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_draw ret;

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", &o, 1, &policy, &options, NULL), FL_OK);
    ret = fl_space_draw((const void *)policy, options,
                        round > 77   ? &after
                        : round > 30 ? &before
                                     : &none,
                        round);
    fl_options_free(options);
    return ret;
}

TEST(a_draw_lasts_for_its_rounds_or_until_the_loss_has_stopped_to_fall)
{
    uint64_t round;

    for (round = 1; round <= 100; round++) {
        struct fl_draw all = draw_of("0", round);
        struct fl_draw four = draw_of("4", round);
        struct fl_draw plateau = draw_of("plateau", round);

        ck_assert(all.number == 0 && all.first == 1);
        ck_assert(four.number == (round - 1) / 4 && four.first == round - (round - 1) % 4);
        ck_assert_uint_eq(plateau.number, (unsigned)(round > 30) + (round > 77));
        ck_assert_uint_eq(plateau.first, round > 77 ? 78 : round > 30 ? 31 : 1);
    }
}

TEST(a_full_space_has_one_draw)
{
    static const struct fl_plateau plateau = {.newest = 30, .count = 1};
    struct fl_draw draw = fl_space_draw(&fl_space_full, NULL, &plateau, 31);

    ck_assert(draw.number == 0 && draw.first == 1);
}

/* 20, 30, 45 and then 60 numbers: those of spaces of that size, on the scale of the first draw. */
TEST(each_draw_has_growth_times_the_numbers_of_the_one_before_up_to_size)
{
    static const char *const sizes[] = {"20", "30", "45", "60", "60"};
    struct fl_err err = {0};
    struct fl_space *growing = make_growing("60", "20", "4", "1", &err);
    size_t k;
    size_t l;

    ck_assert(fl_layout_equal(growing->updates, space->updates));
    for (k = 0; k < ARRAY_LEN(sizes); k++) {
        struct fl_space *fixed = make_space(sizes[k], "4", "1", &err);

        for (l = 0; l < fl_layout_units(layout); l++) {
            size_t n = fl_layout_unit(fixed->updates, l)->n_trainable;

            ck_assert_uint_eq(fl_space_numbers(growing, l, k), n);
            ck_assert_uint_eq(fl_space_numbers(space, l, k),
                              fl_layout_unit(space->updates, l)->n_trainable);
            if (k == 0) {
                ck_assert(fl_space_scale(growing, l) == fl_space_scale(fixed, l));
            }
        }
        fl_space_free(fixed);
    }
    fl_space_free(growing);
}

TEST(numbers_that_a_draw_does_not_have_yet_stay_0)
{
    struct fl_err err = {0};
    struct fl_space *growing = make_growing("60", "20", "4", "1", &err);
    float *x = floats(count);
    float *z = floats(numbers);
    size_t l;
    size_t i;

    fl_space_map_done(&map);
    ck_assert_int_eq(fl_space_map_make(growing, 1, &map), FL_OK);
    for (i = 0; i < count; i++) {
        x[i] = 1 + (float)(i % 7);
    }
    fl_space_fold(&map, x, z);
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(growing->updates, l);
        size_t n = fl_space_numbers(growing, l, 1);

        ck_assert(n < unit->n_trainable || l == 2);
        for (i = n; i < unit->n_trainable; i++) {
            ck_assert_uint_eq(z[unit->offset + i] == 0.0f, 1);
        }
        ck_assert(z[unit->offset] != 0.0f || z[unit->offset + 1] != 0.0f);
    }
    free(x);
    free(z);
    fl_space_free(growing);
}

/* Four deviations of first weights with 900 inputs are 0.077, and 3/8 of that in a hashed space.
 * Tensors of one dimension have one input, for which a step would be above the longest, 1. */
TEST(the_step_of_the_lattice_moves_entries_by_the_same_in_all_spaces)
{
    const size_t dims[2] = {30, 900};
    const struct fl_component_option o = {"size", "1000"};
    const struct fl_policy *policy = NULL;
    struct fl_options *options[2] = {NULL, NULL};
    struct fl_layout *wide = NULL;
    struct fl_space *of = NULL;
    double full;
    double hashed;

    ck_assert_int_eq(fl_layout_create(&wide), FL_OK);
    ck_assert_int_eq(fl_layout_add(wide, "fc", "fc.weight", dims, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(wide, NULL), FL_OK);
    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", &o, 1, &policy, &options[0], NULL),
        FL_OK);
    ck_assert_int_eq(fl_space_create((const void *)policy, options[0], wide, &of, NULL), FL_OK);
    ck_assert_int_eq(fl_component_by_name(FL_COMPONENT_BROADCAST, "lattice", NULL, 0, &policy,
                                          &options[1], NULL),
                     FL_OK);
    full = fl_broadcast_grid(&fl_broadcast_lattice, options[1],
                             &(struct fl_broadcast_round){wide, NULL, 1, 0});
    hashed = fl_broadcast_grid(&fl_broadcast_lattice, options[1],
                               &(struct fl_broadcast_round){wide, of, 1, 0});
    ck_assert_double_eq_tol(full * 0x1p-20, 0.077, 0.004);
    ck_assert_double_eq_tol(hashed * fl_space_scale(of, 0) / full, 0.375, 0.05);
    ck_assert_uint_eq(fl_broadcast_grid(&fl_broadcast_lattice, options[1],
                                        &(struct fl_broadcast_round){layout, space, 1, 0}),
                      1 << 20);
    fl_options_free(options[0]);
    fl_options_free(options[1]);
    fl_space_free(of);
    fl_layout_free(wide);
}

static const struct {
    const char *name, *value, *message;
} bad_draws[] = {
    {"start", "61", "'start' 61 is above 'size' 60"},
    {"growth", "1.0000000001", "'growth': expected 1, or 1.01 to 16, found 1.0000000001"},
    {"growth", "0.5", "0.5"},
    {"redraw", "-1", "'redraw': expected 'plateau' or rounds from 0 to 1000000000, found '-1'"},
    {"redraw", "Plateau", "found 'Plateau'"},
    {"redraw", "1000000001", "found '1000000001'"},
};

TEST(a_space_that_would_never_grow_is_refused)
{
    static const struct fl_component_option o[] = {
        {"size", "60"}, {"start", "20"}, {"redraw", "0"}};
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", o, 3, &policy, &options, &err),
        FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "with 'redraw' 0 there is no next draw"));
}

/* A server whose numbers grow by next to nothing would keep its clients computing. */
TEST_EACH(draws_that_begin_with_too_many_numbers_or_grow_too_slowly_or_have_no_end_are_refused,
          ARRAY_LEN(bad_draws))
{
    const struct fl_component_option o[] = {{"size", "60"},
                                            {bad_draws[_i].name, bad_draws[_i].value}};
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_SPACE, "hashed", o, 2, &policy, &options, &err),
        FL_ECONF);
    ck_assert_msg(strstr(err.msg, bad_draws[_i].message) != NULL, "%s", err.msg);
}

TEST(the_numbers_of_the_last_draw_there_is_are_those_of_size)
{
    struct fl_err err = {0};
    struct fl_space *growing = make_growing("60", "20", "1", "1", &err);

    ck_assert_uint_eq(fl_space_numbers(growing, 0, UINT64_MAX),
                      fl_layout_unit(growing->updates, 0)->n_trainable);
    fl_space_free(growing);
}

/* 1056 trained entries: 264 numbers. */
TEST(a_space_has_at_most_a_quarter_of_the_trained_entries)
{
    struct fl_err err = {0};
    struct fl_space *most = make_space("264", "4", "1", &err);
    struct fl_space *more = make_space("8000", "4", "1", &err);

    ck_assert_uint_le(fl_layout_trainable(most->updates), 264 + 124 / 2);
    ck_assert(fl_layout_equal(most->updates, more->updates));
    fl_space_free(most);
    fl_space_free(more);
}

/* Places of numbers fit into a float of the network. */
TEST(more_numbers_than_a_space_can_have_are_refused_with_those_that_are_not_trained)
{
    struct fl_layout *own = layout;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    add("fc1", "fc1.weight", 1000, false);
    add("fc1", "norm.running_mean", FL_SPACE_MAX, true);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_ptr_null(make_space("10", "4", "1", &err));
    ck_assert_str_eq(err.msg,
                     "space 'hashed' has 4194314 numbers, with entries that are not trained, "
                     "at most 4194304 are possible: choose a smaller 'size', or space "
                     "'full'");
    fl_layout_free(layout);
    layout = own;
}

TEST(a_full_space_is_none)
{
    struct fl_space *none = space;

    ck_assert_int_eq(fl_space_create(&fl_space_full, NULL, layout, &none, NULL), FL_OK);
    ck_assert_ptr_null(none);
    ck_assert_ptr_eq(fl_space_updates(NULL, layout), layout);
    ck_assert_ptr_eq(fl_space_updates(space, layout), space->updates);
}

/* --- which components go together --- */

static const struct {
    enum fl_component component;
    const char *name, *why;
} unfit[] = {
    {FL_COMPONENT_BROADCAST, "float32", "space 'hashed' needs broadcast 'lattice', not 'float32'"},
    {FL_COMPONENT_BROADCAST, "ternary", "space 'hashed' needs broadcast 'lattice', not 'ternary'"},
    {FL_COMPONENT_UPLOAD, "fedadp", "upload 'fedadp' sends parts of units"},
    {FL_COMPONENT_SOLVER, "scaffold", "solver 'scaffold' exchanges or keeps vectors of the whole"},
    {FL_COMPONENT_SOLVER, "igfl_c", "solver 'igfl_c' exchanges or keeps vectors of the whole"},
};

TEST_EACH(components_that_need_all_entries_are_refused_with_the_reason, 5)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("lean", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_SPACE, "hashed", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, unfit[_i].component, unfit[_i].name, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, unfit[_i].why) != NULL, "%s", err.msg);
    fl_strategy_free(s);
}

/* --- steps --- */

enum { ROUNDS = 14, MANY = 120 };

struct walk {
    float *models[MANY + 1];
    uint8_t digests[MANY + 1][FL_DIGEST_SIZE];
    struct fl_versions *versions;
    size_t rounds;
};

/* A displacement of whole steps, half of them 0. */
static float *displacement(uint64_t round)
{
    float *z = floats(numbers);
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 1000 + round);
    for (i = 0; i < numbers; i++) {
        double n = rint(fl_rng_normal(&rng));

        z[i] = (float)(n * GRID * FL_GRID);
    }
    return z;
}

static void walk_rounds(struct walk *w, size_t rounds)
{
    uint64_t round;

    w->rounds = rounds;

    w->models[0] = drawn(count, 77, 0.1);
    fl__lattice_place(NULL, w->models[0], count);
    ck_assert_int_eq(fl_versions_digest(layout, w->models[0], w->digests[0]), FL_OK);
    ck_assert_int_eq(fl_versions_create(w->digests[0], &w->versions), FL_OK);
    for (round = 1; round <= rounds; round++) {
        const struct fl_hashed_round of = {space, round, (round - 1) / 4, GRID};
        struct fl_versions *longer = NULL;
        struct fl_step step;
        struct fl_err err = {0};
        float *z = displacement(round);

        w->models[round] = floats(count);
        ck_assert_msg(fl_step_make_hashed(&of, z, w->models[round - 1], w->models[round], &step,
                                          &err) == FL_OK,
                      "%s", err.msg);
        ck_assert_int_eq(fl_step_check(layout, &step, &err), FL_OK);
        (void)memcpy(w->digests[round], step.to, FL_DIGEST_SIZE);
        ck_assert_int_eq(fl_versions_add(w->versions, &step, &longer), FL_OK);
        fl_versions_unref(w->versions);
        w->versions = longer;
        free(z);
    }
}

static void walk_init(struct walk *w)
{
    walk_rounds(w, ROUNDS);
}

static void walk_done(struct walk *w)
{
    size_t i;

    fl_versions_unref(w->versions);
    for (i = 0; i <= w->rounds; i++) {
        free(w->models[i]);
    }
}

/* Bytes of the difference from the model of round `held`, which is checked. */
static size_t walk_reach(const struct walk *w, size_t held)
{
    float *model = floats(count);
    struct fl_blob *d = NULL;
    struct fl_err err = {0};
    size_t len;

    (void)memcpy(model, w->models[held], count * sizeof(float));
    ck_assert_int_eq(
        moves_difference(w->versions, layout, w->models[w->rounds], w->digests[held], &d), FL_OK);
    len = fl_blob_len(d);
    ck_assert_msg(fl_difference_apply(layout, fl_blob_data(d), len, model, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert_mem_eq(model, w->models[w->rounds], count * sizeof(float));
    fl_blob_unref(d);
    free(model);
    return len;
}

/* Rounds 1-4, 5-8 and 9-12 have draws of their own, and 13 and 14 the fourth. */
TEST_EACH(a_client_with_any_earlier_model_gets_the_newest_bit_for_bit_across_draws, 2)
{
    struct walk w;
    size_t held;

    walk_init(&w);
    for (held = _i == 0 ? 0 : 6; held <= ROUNDS; held++) {
        if (_i == 1 && held == 6) {
            struct fl_versions *merged = NULL;

            ck_assert_int_eq(fl_versions_merge(w.versions, layout, 6, &merged), FL_OK);
            fl_versions_unref(w.versions);
            w.versions = merged;
        }
        (void)walk_reach(&w, held);
    }
    if (_i == 1) {
        (void)walk_reach(&w, 0);
    }
    walk_done(&w);
}

/* Four rounds have a draw: rounds 1 to 4, 5 to 8 and so on. No list is longer for it. */
TEST(a_difference_over_many_rounds_is_divided_between_draws_only)
{
    struct walk w;
    size_t held;

    walk_rounds(&w, MANY);
    for (held = 0; held <= MANY; held++) {
        const uint8_t *at = fl_versions_divide(w.versions, w.digests[held]);

        if (held == 0 || held % 4 == 0 || held + 48 > MANY - 1) {
            ck_assert_ptr_null(at);
        } else {
            ck_assert_mem_eq(at, w.digests[(held + 3) / 4 * 4], FL_DIGEST_SIZE);
        }
    }
    walk_done(&w);
}

/* Numbers of one draw are added up: four rounds are about as long as one, not as four. */
TEST(the_moves_of_one_draw_are_added_up_as_numbers)
{
    struct walk w;
    size_t one;
    size_t two;
    size_t four;

    walk_init(&w);
    two = walk_reach(&w, 12); /* rounds 13 and 14 */
    four = walk_reach(&w, 8); /* and the draw before, once more */
    one = fl_blob_len(fl_versions_step(w.versions, ROUNDS - 1)->moves);
    ck_assert_uint_lt(two, 160 + one * 3 / 2);
    ck_assert_uint_lt(four, 160 + one * 3);
    walk_done(&w);
}

TEST(the_model_moves_by_the_numbers_of_its_entries)
{
    struct walk w;
    float *z;
    float *x;
    size_t i;

    walk_init(&w);
    z = displacement(1);
    x = floats(count);
    fl_space_unfold(&map, z, x);
    for (i = 0; i < count; i++) {
        bool buffer = i >= 930 && i < 970;
        double moved = (double)w.models[1][i] - (buffer ? 0 : (double)w.models[0][i]);

        ck_assert_double_eq_tol(moved, x[i], 1e-4 * (fabs((double)x[i]) + 1e-3));
    }
    free(z);
    free(x);
    walk_done(&w);
}

TEST(a_step_out_of_the_range_of_the_lattice_is_refused)
{
    float *z = floats(numbers);
    float *old = floats(count);
    float *new = floats(count);
    struct fl_step step;
    struct fl_err err = {0};

    z[3] = 1e6f;
    ck_assert_int_eq(
        fl_step_make_hashed(&(struct fl_hashed_round){space, 1, 0, GRID}, z, old, new, &step, &err),
        FL_ENUMERIC);
    z[3] = NAN;
    ck_assert_int_eq(
        fl_step_make_hashed(&(struct fl_hashed_round){space, 1, 0, GRID}, z, old, new, &step, &err),
        FL_ENUMERIC);
    free(z);
    free(old);
    free(new);
}

/* --- bytes of a peer --- */

static const struct {
    size_t at; /* behind the two bytes of the first unit's number of lists */
    uint8_t byte;
    const char *why;
} malformed[] = {
    {3, 0x84, "the step or the count of hashed numbers is out of range"},
    {11, 0xff, "the step or the count of hashed numbers is out of range"},
};

TEST_EACH(hashed_moves_out_of_range_are_refused, 2)
{
    struct walk w;
    struct fl_blob *d = NULL;
    struct fl_err err = {0};
    uint8_t *bytes;
    float *model = floats(count);

    walk_init(&w);
    ck_assert_int_eq(moves_difference(w.versions, layout, w.models[ROUNDS], w.digests[13], &d),
                     FL_OK);
    bytes = malloc(fl_blob_len(d));
    (void)memcpy(bytes, fl_blob_data(d), fl_blob_len(d));
    bytes[2 + malformed[_i].at] = malformed[_i].byte;
    ck_assert_int_eq(fl_difference_apply(layout, bytes, fl_blob_len(d), model, &err), FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, malformed[_i].why) != NULL, "%s", err.msg);
    free(bytes);
    free(model);
    fl_blob_unref(d);
    walk_done(&w);
}

/* Each of them takes a pass over the unit: their number is limited, not by the bytes alone. */
TEST(more_lists_of_hashed_numbers_than_a_server_sends_are_refused)
{
    static const int32_t zeros[42];
    const struct fl_hashed_head head = {1, 1, 42};
    struct fl_buf bytes;
    struct fl_err err = {0};
    float *model = floats(count);
    size_t i;

    fl_buf_init(&bytes, 1u << 20);
    ck_assert_int_eq(fl_buf_add(&bytes, (const uint8_t[]){0x01, 0x04}, 2), FL_OK);
    for (i = 0; i < 1025; i++) {
        ck_assert_int_eq(fl_hashed_encode(&head, zeros, &bytes), FL_OK);
    }
    ck_assert_int_eq(fl_difference_apply(layout, bytes.data, bytes.len, model, &err), FL_EFORMAT);
    ck_assert_str_eq(err.msg, "unit 'fc1': more than 1024 lists of hashed numbers");
    fl_buf_done(&bytes);
    free(model);
}
