/* The form in which clients receive the model, and what stays on the server. */
#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void place(struct fed *f)
{
    ck_assert_int_eq(fl_broadcast_place(&fl_broadcast_float16, NULL, f->layout, f->theta, NULL),
                     FL_OK);
}

/* A float16 federation whose model is one that clients can have, without a rest. */
static void float16_init(struct fed *f, size_t n)
{
    fed_init(f, n);
    f->broadcast = &fl_broadcast_float16;
    place(f);
    (void)memset(f->state[0], 0, f->count * sizeof(float));
}

TEST(float16_halves_the_bytes_of_all_but_buffers)
{
    struct fed f;

    fed_init(&f, 1);
    ck_assert_uint_eq(fl_broadcast_bytes(&fl_broadcast_float32, f.layout), 4 * 73);
    ck_assert_uint_eq(fl_broadcast_bytes(&fl_broadcast_float16, f.layout), 2 * 67 + 4 * 6);
    fed_done(&f);
}

TEST_EACH(a_placed_model_comes_back_from_its_code_bit_for_bit, 2)
{
    const struct fl_broadcast_ops *ops = _i == 0 ? &fl_broadcast_float32 : &fl_broadcast_float16;
    struct fed f;
    uint8_t *coded;

    fed_init(&f, 1);
    f.theta[0] = -0.0f;
    f.theta[1] = 65504;
    f.theta[2] = 0x1p-24f;
    ck_assert_int_eq(fl_broadcast_place(ops, NULL, f.layout, f.theta, NULL), FL_OK);
    coded = calloc(1, fl_broadcast_bytes(ops, f.layout));
    ck_assert_int_eq(fl_broadcast_encode(ops, f.layout, f.theta, coded), FL_OK);
    ck_assert_int_eq(fl_broadcast_decode(ops, f.layout, coded, f.theta_new, &f.err), FL_OK);
    ck_assert_mem_eq(f.theta, f.theta_new, f.count * sizeof(float));
    free(coded);
    fed_done(&f);
}

TEST(placing_takes_the_nearest_number_and_leaves_buffers_and_placed_models)
{
    struct fed f;
    float *once;
    size_t i;

    fed_init(&f, 1);
    f.theta[3] = 1e6f; /* further than float16 reaches */
    (void)memcpy(f.theta_new, f.theta, f.count * sizeof(float));
    place(&f);
    for (i = 0; i < f.count; i++) {
        double error = fabs((double)f.theta[i] - (double)f.theta_new[i]);

        if (fed_is_buffer(&f, i)) {
            ck_assert(same(f.theta[i], f.theta_new[i]));
        } else if (i != 3) {
            ck_assert_double_le(error, 0x1p-11 * fabs((double)f.theta_new[i]));
        }
    }
    ck_assert(same(f.theta[3], 65504.0f));
    once = fed_floats(f.count);
    (void)memcpy(once, f.theta, f.count * sizeof(float));
    place(&f);
    ck_assert_mem_eq(f.theta, once, f.count * sizeof(float));
    free(once);
    fed_done(&f);
}

TEST(model_and_rest_together_are_the_model_of_float32)
{
    struct fed f;
    struct fed plain;
    float *model;
    size_t i;

    float16_init(&f, 4);
    fed_init(&plain, 4);
    (void)memcpy(plain.theta, f.theta, f.count * sizeof(float));
    model = fed_model(&plain, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL)),
                     FL_OK);
    for (i = 0; i < f.count; i++) {
        double all =
            (double)f.theta_new[i] + (fed_is_buffer(&f, i) ? 0 : (double)f.state_new[0][i]);

        ck_assert_double_eq_tol(all, (double)model[i], 1e-6);
    }
    (void)memcpy(model, f.theta_new, f.count * sizeof(float));
    ck_assert_int_eq(fl_broadcast_place(&fl_broadcast_float16, NULL, f.layout, model, NULL), FL_OK);
    ck_assert_mem_eq(model, f.theta_new, f.count * sizeof(float));
    free(model);
    fed_done(&plain);
    fed_done(&f);
}

TEST(steps_below_the_resolution_add_up)
{
    struct fed f;
    size_t round;

    float16_init(&f, 1);
    f.theta[0] = 1; /* its neighbour is 2^-10 away */
    for (round = 0; round < 64; round++) {
        float *x;

        f.sent[0][0][0] = 0x1p-15f;
        ck_assert_int_eq(
            fed_run(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL)), FL_OK);
        ck_assert_double_le(fabs((double)f.theta_new[0] + (double)f.state_new[0][0] -
                                 (1 + (double)(round + 1) * 0x1p-15)),
                            0);
        x = f.theta;
        f.theta = f.theta_new;
        f.theta_new = x;
        x = f.state[0];
        f.state[0] = f.state_new[0];
        f.state_new[0] = x;
    }
    ck_assert(same(f.theta[0], 1 + 0x1p-9f));
    ck_assert(same(f.state[0][0], 0));
    fed_done(&f);
}

TEST(a_unit_that_no_client_sent_keeps_model_and_rest)
{
    struct fed f;
    const struct fl_unit *unit;
    size_t k;

    float16_init(&f, 3);
    unit = fl_layout_unit(f.layout, 2);
    f.state[0][unit->offset] = 0.25f;
    for (k = 0; k < f.n; k++) {
        f.units[k][2] = 0;
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL)),
                     FL_OK);
    ck_assert_mem_eq(f.theta_new + unit->offset, f.theta + unit->offset,
                     unit->count * sizeof(float));
    ck_assert_mem_eq(f.state_new[0] + unit->offset, f.state[0] + unit->offset,
                     unit->count * sizeof(float));
    fed_done(&f);
}

TEST(the_rest_stands_between_the_states_of_aggregator_and_solver)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg+scaffold", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_AGGREGATE, "momentum", &err), FL_OK);
    ck_assert_uint_eq(fl_strategy_own_states(s), 1);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_BROADCAST, "float16", &err), FL_OK);
    ck_assert_uint_eq(fl_strategy_own_states(s), 2);
    ck_assert_uint_eq(fl_strategy_states(s), 3);
    ck_assert_str_eq(fl_strategy_state_name(s, 0), "velocity");
    ck_assert_str_eq(fl_strategy_state_name(s, 1), "rest");
    ck_assert_str_eq(fl_strategy_state_name(s, 2), "control_sum");
    ck_assert_uint_eq(fl_strategy_described_from(s, "control"), 2);
    fl_strategy_free(s);
}

TEST(a_model_for_each_client_is_not_broadcast)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedmcsa", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_BROADCAST, "float16", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "broadcast 'float16' cannot be combined with personal"));
    fl_strategy_free(s);
}

TEST(a_code_that_is_no_number_is_refused_with_its_unit)
{
    struct fed f;
    uint8_t *coded;

    fed_init(&f, 1);
    coded = calloc(1, fl_broadcast_bytes(&fl_broadcast_float16, f.layout));
    coded[2 * 40 + 1] = 0x7c; /* infinity, in unit "conv" */
    ck_assert_int_eq(
        fl_broadcast_decode(&fl_broadcast_float16, f.layout, coded, f.theta_new, &f.err),
        FL_ENUMERIC);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "unit 'conv' of the model, coded as float16"));
    free(coded);
    fed_done(&f);
}
