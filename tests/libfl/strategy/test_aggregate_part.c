/* The server's part in a solver, run by the pass behind the aggregate's step. */
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

/* SCAFFOLD's control (Karimireddy et al. 2020, Algorithm 1): c += (senders / N) mean(dc). */
static void control_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    double share = (double)b->n_senders / (double)b->members;
    size_t i;

    (void)o;
    for (i = 0; i < b->n; i++) {
        b->state_new[0][i] = (float)((double)b->state[0][i] + share * b->means[0][i]);
    }
}

static const char *const control_names[] = {"control", NULL};
static const char *const control_takes[] = {"control_change", NULL};
static const struct fl_agg_part control = {
    .n_state = 1, .state_names = control_names, .takes = control_takes, .step = control_step};

/* The same without the payload: dc_k = -c - factor_k Delta_k. */
static void rebuild_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    double share = (double)b->n_senders / (double)b->members;
    size_t i;

    (void)o;
    ck_assert_ptr_nonnull(b->scaled);
    for (i = 0; i < b->n; i++) {
        double c = (double)b->state[0][i];

        b->state_new[0][i] = (float)(c + share * (-c - b->scaled[i]));
    }
}

static bool yes(const struct fl_options *o)
{
    (void)o;
    return true;
}

static const struct fl_agg_part rebuild = {
    .n_state = 1, .state_names = control_names, .step = rebuild_step, .wants_scaled = yes};

/* IGFL-C's displacement: what the model really moved by. */
static void displacement_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    size_t i;

    (void)o;
    ck_assert_ptr_null(b->scaled);
    for (i = 0; i < b->n; i++) {
        b->state_new[0][i] = (float)b->step[i];
    }
}

static const char *const displacement_names[] = {"displacement", NULL};
static const struct fl_agg_part displacement = {
    .n_state = 1, .state_names = displacement_names, .step = displacement_step};

static struct fl_options *plain(const struct fl_aggregate_ops *ops)
{
    return options_of(&ops->policy, NULL);
}

static const struct fl_aggregate_ops *const all[] = {&fl_aggregate_mean, &fl_aggregate_momentum,
                                                     &fl_aggregate_adam};

TEST_EACH(a_part_changes_nothing_of_the_aggregate_bit_for_bit, 6)
{
    const struct fl_aggregate_ops *ops = all[_i % 3];
    float *state[2];
    float *alone;
    struct fed f;
    size_t s;

    fed_init(&f, 4);
    f.distances = _i >= 3;
    f.units[1][0] = f.units[2][0] = f.distances;
    alone = fed_model(&f, ops, plain(ops));
    for (s = 0; s < ops->n_state; s++) {
        state[s] = f.state_new[s];
        f.state_new[s] = fed_floats(f.count);
    }
    f.extra = &control;
    ck_assert_int_eq(fed_run(&f, ops, plain(ops)), FL_OK);
    ck_assert_mem_eq(f.theta_new, alone, f.count * sizeof(float));
    for (s = 0; s < ops->n_state; s++) {
        ck_assert_mem_eq(f.state_new[s], state[s], f.count * sizeof(float));
        free(state[s]);
    }
    free(alone);
    fed_done(&f);
}

/* Per unit, the plain mean times senders over population. */
TEST_EACH(a_parts_payload_comes_as_the_plain_mean_over_the_units_senders, 3)
{
    const struct fl_aggregate_ops *ops = all[_i];
    size_t own = ops->n_state;
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    f.extra = &control;
    f.block = 7;
    f.units[0][0] = f.units[3][0] = f.units[4][0] = 0;
    f.units[2][2] = 0;
    ck_assert_int_eq(fed_run(&f, ops, plain(ops)), FL_OK);
    for (i = 0; i < f.count; i++) {
        static const double senders[] = {2, 5, 4};
        double c = (double)f.state[own][i];

        if (!fed_is_buffer(&f, i)) {
            c += senders[fed_unit_of(&f, i)] / 7 * fed_mean(&f, 1, i, false);
        }
        ck_assert_double_eq_tol((double)f.state_new[own][i], c, 1e-6);
    }
    fed_done(&f);
}

TEST(a_part_keeps_its_state_of_buffers_and_of_units_that_nobody_sent)
{
    const struct fl_unit *fc1;
    struct fed f;
    size_t i;

    fed_init(&f, 3);
    f.extra = &control;
    f.units[0][0] = f.units[1][0] = f.units[2][0] = 0;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_momentum, plain(&fl_aggregate_momentum)), FL_OK);
    fc1 = fl_layout_unit(f.layout, 0);
    ck_assert_mem_eq(f.state_new[1], f.state[1], fc1->count * sizeof(float));
    ck_assert_mem_eq(f.theta_new, f.theta, fc1->count * sizeof(float));
    for (i = fc1->count; i < f.count; i++) {
        bool same = memcmp(&f.state_new[1][i], &f.state[1][i], sizeof(float)) == 0;

        ck_assert_int_eq(same, fed_is_buffer(&f, i));
    }
    fed_done(&f);
}

TEST(nobody_responding_leaves_the_state_of_a_part)
{
    struct fed f;

    fed_init(&f, 2);
    f.extra = &control;
    f.n = 0;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_momentum, plain(&fl_aggregate_momentum)), FL_OK);
    ck_assert_mem_eq(f.state_new[0], f.state[0], f.count * sizeof(float));
    ck_assert_mem_eq(f.state_new[1], f.state[1], f.count * sizeof(float));
    fed_done(&f);
}

/* 4.3, "saving": what the clients would have sent, rebuilt from their updates. */
TEST(scaled_updates_rebuild_the_payload_that_is_not_sent)
{
    float *sent;
    struct fed f;
    size_t i, k;

    fed_init(&f, 5);
    f.units[1][1] = f.units[2][2] = 0;
    for (k = 0; k < f.n; k++) {
        for (i = 0; i < f.count; i++) {
            f.sent[k][1][i] =
                (float)(-(double)f.state[0][i] - f.clients[k].factor * (double)f.sent[k][0][i]);
        }
    }
    f.extra = &control;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_OK);
    sent = f.state_new[0];
    f.state_new[0] = fed_floats(f.count);
    f.extra = &rebuild;
    f.opened = 0;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_OK);
    ck_assert_uint_eq(f.opened, 13); /* updates only */
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.state_new[0][i], (double)sent[i], 1e-6);
    }
    free(sent);
    fed_done(&f);
}

/* Every c_k commits its dc_k for the units it sent. */
TEST(the_control_stays_the_mean_of_the_clients_controls)
{
    float *own[FED_CLIENTS];
    struct fl_rng rng;
    struct fed f;
    size_t i, k;
    int t;

    fed_init(&f, FED_CLIENTS);
    f.members = FED_CLIENTS;
    f.extra = &control;
    (void)memset(f.state[0], 0, f.count * sizeof(float));
    fl_rng_seed(&rng, 9);
    for (k = 0; k < f.n; k++) {
        own[k] = fed_floats(f.count);
    }
    for (t = 0; t < 6; t++) {
        for (k = 0; k < f.n; k++) {
            for (i = 0; i < FED_UNITS; i++) {
                f.units[k][i] = fl_rng_below(&rng, 2) == 0;
            }
            for (i = 0; i < f.count; i++) {
                f.sent[k][1][i] = fed_is_buffer(&f, i) ? 0 : (float)fl_rng_normal(&rng);
                own[k][i] += f.units[k][fed_unit_of(&f, i)] ? f.sent[k][1][i] : 0;
            }
        }
        ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_OK);
        (void)memcpy(f.state[0], f.state_new[0], f.count * sizeof(float));
        for (i = 0; i < f.count; i++) {
            double mean = 0;

            for (k = 0; k < f.n; k++) {
                mean += (double)own[k][i] / FED_CLIENTS;
            }
            ck_assert_double_eq_tol((double)f.state[0][i], mean, 2e-6);
        }
    }
    for (k = 0; k < f.n; k++) {
        free(own[k]);
    }
    fed_done(&f);
}

TEST_EACH(a_part_reads_the_step_that_the_model_makes, 3)
{
    const struct fl_aggregate_ops *ops = all[_i];
    size_t own = ops->n_state;
    struct fed f;
    size_t i;

    fed_init(&f, 4);
    for (i = 0; i < f.count; i++) {
        f.state[1][i] = fabsf(f.state[1][i]); /* FedAdam's second moment */
    }
    f.extra = &displacement;
    ck_assert_int_eq(fed_run(&f, ops, plain(ops)), FL_OK);
    for (i = 0; i < f.count; i++) {
        double moved = (double)f.theta_new[i] - (double)f.theta[i];

        if (!fed_is_buffer(&f, i)) {
            ck_assert_double_eq_tol((double)f.state_new[own][i], moved, 1e-6);
        }
    }
    fed_done(&f);
}

/* A part beside an aggregate that takes a payload itself: weighted means first. */
static void shift(const struct fl_options *o, const struct fl_agg_block *b)
{
    size_t i;

    (void)o;
    for (i = 0; i < b->n; i++) {
        b->step[i] = b->dbar[i] + b->means[0][i];
    }
}

TEST(the_payloads_of_a_part_come_behind_those_of_the_aggregate)
{
    static const char *const takes[] = {"shift", NULL};
    static const struct fl_aggregate_ops ops = {
        .policy = {.name = "test", .options = fl_opt_none}, .takes = takes, .step = shift};
    struct fed f;
    size_t i;

    fed_init(&f, 3);
    f.distances = true;
    f.extra = &control;
    ck_assert_int_eq(fed_run(&f, &ops, plain(&ops)), FL_OK);
    for (i = 0; i < f.count; i++) {
        double theta = (double)f.theta[i] + fed_mean(&f, 0, i, true);
        double c = (double)f.state[0][i];

        theta += fed_is_buffer(&f, i) ? 0 : fed_mean(&f, 1, i, true);
        c += fed_is_buffer(&f, i) ? 0 : 3.0 / 5 * fed_mean(&f, 2, i, false);
        ck_assert_double_eq_tol((double)f.theta_new[i], theta, 1e-6);
        ck_assert_double_eq_tol((double)f.state_new[0][i], c, 1e-6);
    }
    fed_done(&f);
}

TEST(a_bad_payload_of_a_part_is_blamed_on_its_client)
{
    struct fed f;

    fed_init(&f, 3);
    f.extra = &control;
    f.sent[1][1][20] = NAN;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 1);
    fed_done(&f);
}

TEST_EACH(a_factor_that_is_no_number_is_blamed_on_its_client, 2)
{
    struct fed f;

    fed_init(&f, 3);
    f.extra = &rebuild;
    f.clients[2].factor = _i == 0 ? (double)NAN : (double)INFINITY;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 2);
    fed_done(&f);
}

TEST(a_part_whose_state_overflows_is_refused)
{
    struct fed f;
    size_t k;

    fed_init(&f, 3);
    f.extra = &control;
    f.members = 3;
    f.state[0][40] = 3e38f;
    for (k = 0; k < f.n; k++) {
        f.sent[k][1][40] = 3e38f;
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, plain(&fl_aggregate_mean)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 3);
    fed_done(&f);
}
