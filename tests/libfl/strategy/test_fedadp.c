#include "tests/lib/suites.h"
#include "tests/libfl/strategy/masked_fixture.h"

/* Which neurons a client sends (docs/algorithms.md#uploads-by-divergence). */

enum { A_ROWS = 100, B_ROWS = 40, C_ROWS = 4, ROWS = A_ROWS + B_ROWS + C_ROWS };
/* Floats of a neuron: 3 of a; 4 of b, one of them a buffer; 3 of the output layer. */
enum { A = 3 * A_ROWS, B = 4 * B_ROWS, C = 3 * C_ROWS, COUNT = A + B + C };

struct model {
    struct fl_layout *layout;
    float theta[COUNT], delta[COUNT];
    uint8_t keep[ROWS];
};

static void model_init(struct model *m)
{
    size_t i;

    *m = (struct model){.layout = NULL};
    ck_assert_int_eq(fl_layout_create(&m->layout), FL_OK);
    masked_add(m->layout, "a", "a.weight", A_ROWS, 2, false);
    masked_add(m->layout, "a", "a.bias", A_ROWS, 0, false);
    masked_add(m->layout, "b", "b.weight", B_ROWS, 2, false);
    masked_add(m->layout, "b", "b.mean", B_ROWS, 0, true);
    masked_add(m->layout, "b", "b.bias", B_ROWS, 0, false);
    masked_add(m->layout, "c", "c.weight", C_ROWS, 2, false);
    masked_add(m->layout, "c", "c.bias", C_ROWS, 0, false);
    ck_assert_int_eq(fl_layout_finish(m->layout, NULL), FL_OK);
    for (i = 0; i < COUNT; i++) {
        m->theta[i] = 1;
    }
}

/* Every trainable entry of a unit moves as much. */
static void move(struct model *m, size_t l, float by)
{
    const struct fl_unit *unit = fl_layout_unit(m->layout, l);
    size_t i;

    for (i = 0; i < unit->count; i++) {
        m->delta[unit->offset + i] = by;
    }
}

static int choose(struct model *m, const char *rho, const char *r_min)
{
    struct fl_options *o = options_of(&fl_upload_fedadp.policy, rho, r_min, NULL);
    int rv;

    (void)memset(m->keep, 0xee, ROWS);
    rv = fl_upload_fedadp.mask(o, m->layout, m->theta, m->delta, m->keep);
    fl_options_free(o);
    return rv;
}

static size_t kept(const struct model *m, size_t l)
{
    static const size_t first[] = {0, A_ROWS, A_ROWS + B_ROWS, ROWS};
    size_t n = 0;
    size_t j;

    for (j = first[l]; j < first[l + 1]; j++) {
        ck_assert_uint_le(m->keep[j], 1);
        n += m->keep[j];
    }
    return n;
}

static void expect(struct model *m, const char *rho, const char *r_min, size_t a, size_t b)
{
    ck_assert_int_eq(choose(m, rho, r_min), FL_OK);
    ck_assert_uint_eq(kept(m, 0), a);
    ck_assert_uint_eq(kept(m, 1), b);
    ck_assert_uint_eq(kept(m, 2), C_ROWS);
}

/* a moves three times as far as b, measured by their lengths: r is .6 and .2 when the
   budget is .6 * 300 + .2 * 160 + 12 = 224 of 472 floats. */
TEST(units_share_the_budget_by_how_far_they_moved)
{
    struct model m;
    char rho[32];

    model_init(&m);
    move(&m, 0, 0.375f);
    move(&m, 1, 0.125f);
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", 224.0 / 472);
    expect(&m, rho, "r_min=0.05", 60, 8);
    /* Relative to the unit's own length: now b moved as far as a. */
    move(&m, 1, 0.375f);
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", (0.5 * 460 + 12) / 472);
    expect(&m, rho, "r_min=0.05", 50, 20);
    /* Of what is not a whole neuron, the next one is sent too. */
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", (0.501 * 460 + 12) / 472);
    expect(&m, rho, "r_min=0.05", 51, 21);
    fl_layout_free(m.layout);
}

TEST(a_ratio_is_at_least_r_min_and_at_most_one)
{
    struct model m;
    char rho[32];

    model_init(&m);
    move(&m, 0, 1.0f);
    move(&m, 1, 1e-6f);
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", (0.3 * 300 + 0.25 * 160 + 12) / 472);
    expect(&m, rho, "r_min=0.25", 30, 10);
    /* a is whole, what is left goes to b. */
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", (300 + 0.5 * 160 + 12) / 472);
    expect(&m, rho, "r_min=0.05", A_ROWS, 20);
    fl_layout_free(m.layout);
}

TEST(rho_one_keeps_everything)
{
    struct model m;

    model_init(&m);
    expect(&m, "rho=1", "r_min=0", A_ROWS, B_ROWS);
    move(&m, 0, 1.0f); /* b did not move */
    expect(&m, "rho=1", "r_min=0.05", A_ROWS, B_ROWS);
    fl_layout_free(m.layout);
}

TEST(a_unit_that_did_not_move_gets_r_min)
{
    struct model m;

    model_init(&m);
    move(&m, 0, 0.5f);
    expect(&m, "rho=0.9", "r_min=0.1", A_ROWS, 4);
    expect(&m, "rho=0.9", "r_min=0", A_ROWS, 1); /* one neuron at least */
    fl_layout_free(m.layout);
}

TEST(when_nothing_moved_all_units_get_the_same)
{
    struct model m;
    char rho[32];

    model_init(&m);
    (void)snprintf(rho, sizeof(rho), "rho=%.17g", (0.25 * 460 + 12) / 472);
    expect(&m, rho, "r_min=0.05", 25, 10);
    fl_layout_free(m.layout);
}

TEST(a_budget_below_the_output_layer_and_r_min_gives_r_min)
{
    struct model m;

    model_init(&m);
    move(&m, 0, 0.5f);
    move(&m, 1, 0.1f);
    expect(&m, "rho=0", "r_min=0.05", 5, 2);
    expect(&m, "rho=0.05", "r_min=0.07", 7, 3); /* .07 of 100 are 7 */
    expect(&m, "rho=0.05", "r_min=1", A_ROWS, B_ROWS);
    fl_layout_free(m.layout);
}

TEST(the_neurons_that_moved_most_are_kept_and_smaller_ones_on_ties)
{
    struct model m;
    size_t j;

    model_init(&m);
    move(&m, 0, 0.1f);
    move(&m, 1, 0.1f);
    expect(&m, "rho=0", "r_min=0.05", 5, 2);
    for (j = 0; j < A_ROWS; j++) {
        ck_assert_uint_eq(m.keep[j], j < 5);
    }
    /* Weights and bias count together, whatever the sign. */
    m.delta[2 * 70] = -5;          /* a.weight of 70 */
    m.delta[2 * A_ROWS + 33] = -4; /* a.bias of 33 */
    m.delta[2 * 12] = m.delta[2 * 12 + 1] = 3.5f;
    expect(&m, "rho=0", "r_min=0.05", 5, 2);
    for (j = 0; j < A_ROWS; j++) {
        ck_assert_uint_eq(m.keep[j], j < 2 || j == 12 || j == 33 || j == 70);
    }
    expect(&m, "rho=0", "r_min=0.01", 1, 1);
    ck_assert_uint_eq(m.keep[70], 1);
    fl_layout_free(m.layout);
}

TEST(buffers_travel_and_do_not_count_as_movement)
{
    struct model m;
    struct model other;
    size_t j;

    model_init(&m);
    move(&m, 0, 0.2f);
    move(&m, 1, 0.1f);
    ck_assert_int_eq(choose(&m, "rho=0.4", "r_min=0.05"), FL_OK);
    other = m;
    for (j = 0; j < B_ROWS; j++) {
        other.delta[A + 2 * B_ROWS + j] = 100.0f + (float)j;
        other.theta[A + 2 * B_ROWS + j] = 1e6f;
    }
    ck_assert_int_eq(choose(&other, "rho=0.4", "r_min=0.05"), FL_OK);
    ck_assert_mem_eq(other.keep, m.keep, ROWS);
    fl_layout_free(m.layout);
}

/* Bytes of a client: sum_l [4 ceil(r_l O_l) f_l + ceil(O_l / 8)], where the budget
   4 rho (d + s) is met up to one neuron a unit. */
TEST_EACH(a_client_sends_the_bytes_of_the_formula, 4)
{
    static const char *const rhos[] = {"rho=0.1", "rho=0.2", "rho=0.35", "rho=0.8"};
    static const double value[] = {0.1, 0.2, 0.35, 0.8};
    static const size_t size[] = {3, 4, 3};
    struct fl_unit_update in = {.delta = NULL};
    struct model m;
    struct fl_buf out;
    struct fl_rng rng;
    size_t bytes = 0;
    size_t n_floats = 0;
    size_t first = 0;
    size_t i;
    size_t l;

    model_init(&m);
    fl_rng_seed(&rng, 17);
    for (i = 0; i < COUNT; i++) {
        m.delta[i] = (float)((i < A ? 0.02 : 0.05) * fl_rng_normal(&rng));
    }
    ck_assert_int_eq(choose(&m, rhos[_i], "r_min=0.05"), FL_OK);
    fl_buf_init(&out, 1u << 20);
    for (l = 0; l < 3; l++) {
        in.delta = m.delta + fl_layout_unit(m.layout, l)->offset;
        in.keep = m.keep + first;
        ck_assert_int_eq(fl_unit_encode(&fl_codec_float32, NULL, m.layout, l, &in, &out), FL_OK);
        bytes += 4 * kept(&m, l) * size[l] + (fl_neurons(m.layout, l) + 7) / 8;
        n_floats += kept(&m, l) * size[l];
        first += fl_neurons(m.layout, l);
    }
    ck_assert_uint_eq(out.len, bytes);
    ck_assert_double_ge((double)n_floats, value[_i] * COUNT - 1e-6);
    ck_assert_double_lt((double)n_floats, value[_i] * COUNT + 3 + 4);
    fl_buf_done(&out);
    fl_layout_free(m.layout);
}

TEST(a_unit_that_cannot_be_cut_is_whole)
{
    struct fl_layout *layout = masked_layout();
    struct fl_options *o = options_of(&fl_upload_fedadp.policy, NULL);
    size_t count = fl_layout_count(layout);
    float *x = calloc(count, sizeof(float));
    uint8_t *keep = calloc(fl_neurons_total(layout), 1);

    ck_assert_int_eq(fl_upload_fedadp.mask(o, layout, x, x, keep), FL_OK);
    ck_assert_uint_eq(keep[SMALL_ROWS + WIDE_ROWS], 1);
    free(x);
    free(keep);
    fl_options_free(o);
    fl_layout_free(layout);
}

TEST_EACH(a_diverged_update_or_model_has_no_mask, 3)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct model m;

    model_init(&m);
    m.delta[5] = bad[_i];
    ck_assert_int_eq(choose(&m, "rho=0.2", "r_min=0.05"), FL_ENUMERIC);
    m.delta[5] = 0;
    m.theta[A + 3] = bad[_i];
    ck_assert_int_eq(choose(&m, "rho=0.2", "r_min=0.05"), FL_ENUMERIC);
    fl_layout_free(m.layout);
}

TEST(extreme_numbers_are_finite_on_the_way)
{
    struct model m;
    size_t i;

    model_init(&m);
    for (i = 0; i < COUNT; i++) {
        m.theta[i] = i < A ? 3e38f : 0;
        m.delta[i] = i < A ? 1e-45f : 3e38f;
    }
    expect(&m, "rho=0.9", "r_min=0.05", 85, B_ROWS);
    fl_layout_free(m.layout);
}

TEST(every_client_is_granted_every_unit)
{
    struct fl_options *o = options_of(&fl_upload_fedadp.policy, NULL);
    struct fl_upload_input in = {.n_clients = 3, .n_selected = 4, .n_units = 5};
    uint8_t grant[15] = {0};
    size_t i;

    ck_assert_int_eq(fl_upload_fedadp.plan(o, &in, NULL, grant), FL_OK);
    for (i = 0; i < 15; i++) {
        ck_assert_uint_eq(grant[i], 1);
    }
    ck_assert(fl_upload_fedadp.partial && !fl_upload_fedadp.needs_feedback);
    fl_options_free(o);
}
