#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/upload/upload.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

#define UNITS   3
#define CLIENTS 5

/* A federation in memory: every client has a displacement and its coded units. Unit 1 has
   buffers between and after its trainable tensors. */
struct fed {
    struct fl_layout *layout;
    size_t count;
    size_t n; /* clients */
    float *theta, *theta_new, *state, *state_new;
    float *delta[CLIENTS];
    uint8_t units[CLIENTS][UNITS];
    struct fl_agg_client clients[CLIENTS];
    struct fl_buf coded[CLIENTS][UNITS];
    struct fl_codec_memory memory[CLIENTS][UNITS];
    size_t control; /* entries of payload 1 are those of client (k + control) % n */
    double distance[CLIENTS];
    size_t blamed;
    struct fl_err err;
};

static void add(struct fl_layout *layout, const char *unit, const char *name, size_t n, bool buffer)
{
    ck_assert_int_eq(fl_layout_add(layout, unit, name, &n, 1, buffer, NULL), FL_OK);
}

static float *floats(size_t n)
{
    float *x = calloc(n, sizeof(*x));

    ck_assert_ptr_nonnull(x);
    return x;
}

static void encode(struct fed *f)
{
    size_t k;
    size_t l;

    for (k = 0; k < f->n; k++) {
        for (l = 0; l < UNITS; l++) {
            fl_buf_clear(&f->coded[k][l]);
            ck_assert_int_eq(
                fl_codec_float32.encode(NULL, f->layout, l,
                                        f->delta[k] + fl_layout_unit(f->layout, l)->offset, 0,
                                        &f->coded[k][l]),
                FL_OK);
            f->memory[k][l].data = f->coded[k][l].data;
            f->memory[k][l].len = f->coded[k][l].len;
        }
    }
}

static void fed_init(struct fed *f, size_t n)
{
    struct fl_rng rng;
    size_t i;
    size_t k;

    (void)memset(f, 0, sizeof(*f));
    ck_assert_int_eq(fl_layout_create(&f->layout), FL_OK);
    add(f->layout, "fc1", "fc1.weight", 31, false);
    add(f->layout, "fc1", "fc1.bias", 5, false);
    add(f->layout, "conv", "conv.weight", 17, false);
    add(f->layout, "conv", "bn.running_mean", 3, true);
    add(f->layout, "conv", "bn.weight", 3, false);
    add(f->layout, "conv", "bn.running_var", 3, true);
    add(f->layout, "fc2", "fc2.weight", 11, false);
    ck_assert_int_eq(fl_layout_finish(f->layout, NULL), FL_OK);
    f->count = fl_layout_count(f->layout);
    f->n = n;
    f->theta = floats(f->count);
    f->theta_new = floats(f->count);
    f->state = floats(f->count);
    f->state_new = floats(f->count);
    fl_rng_seed(&rng, 12345);
    for (i = 0; i < f->count; i++) {
        f->theta[i] = (float)fl_rng_normal(&rng);
    }
    for (k = 0; k < n; k++) {
        f->delta[k] = floats(f->count);
        for (i = 0; i < f->count; i++) {
            f->delta[k][i] = (float)(0.1 * fl_rng_normal(&rng));
        }
        (void)memset(f->units[k], 1, UNITS);
        f->clients[k].weight = 100.0 + 37.0 * (double)k;
        f->clients[k].units = f->units[k];
        for (i = 0; i < UNITS; i++) {
            fl_buf_init(&f->coded[k][i], 1u << 20);
        }
    }
    encode(f);
}

static void fed_done(struct fed *f)
{
    size_t k;
    size_t l;

    for (k = 0; k < CLIENTS; k++) {
        free(f->delta[k]);
        for (l = 0; l < UNITS; l++) {
            fl_buf_done(&f->coded[k][l]);
        }
    }
    free(f->theta);
    free(f->theta_new);
    free(f->state);
    free(f->state_new);
    fl_layout_free(f->layout);
}

static int open_unit(void *ctx, size_t client, size_t payload, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct fed *f = ctx;
    struct fl_codec_reader reader;

    if (payload == 1) {
        client = (client + f->control) % f->n;
    }
    reader = fl_codec_memory_reader(&f->memory[client][unit]);
    return fl_codec_open(d, &fl_codec_float32, f->layout, unit, &reader);
}

static int run(struct fed *f, const struct fl_aggregate_ops *ops, const char *option, bool distance,
               size_t block)
{
    struct fl_options *o = options_of(&ops->policy, option, NULL);
    const float *state[1] = {f->state};
    float *state_new[1] = {f->state_new};
    struct fl_agg_job job = {
        .layout = f->layout,
        .ops = ops,
        .options = o,
        .round = 1,
        .members = f->n,
        .n_clients = f->n,
        .clients = f->clients,
        .open = open_unit,
        .ctx = f,
        .theta = f->theta,
        .theta_new = f->theta_new,
        .state = state,
        .state_new = state_new,
        .want_distance = distance,
        .distance = f->distance,
        .block = block,
    };
    int rv = fl_aggregate_run(&job, &f->blamed, &f->err);

    fl_options_free(o);
    return rv;
}

static double mean_at(const struct fed *f, size_t l, size_t i)
{
    double sum = 0;
    double weight = 0;
    size_t k;

    for (k = 0; k < f->n; k++) {
        if (f->units[k][l]) {
            sum += f->clients[k].weight * (double)f->delta[k][i];
            weight += f->clients[k].weight;
        }
    }
    return sum / weight;
}

static size_t unit_of(const struct fed *f, size_t i)
{
    size_t l = 0;

    while (i >= fl_layout_unit(f->layout, l)->offset + fl_layout_unit(f->layout, l)->count) {
        l++;
    }
    return l;
}

static bool is_buffer(const struct fed *f, size_t i)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(f->layout); t++) {
        const struct fl_tensor *x = fl_layout_tensor(f->layout, t);

        if (i >= x->offset && i < x->offset + x->count) {
            return x->buffer;
        }
    }
    ck_abort();
}

TEST(one_client_is_taken_over_exactly)
{
    struct fed f;
    size_t i;

    fed_init(&f, 1);
    f.clients[0].weight = 3;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, true, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        float expected = f.theta[i] + f.delta[0][i];

        ck_assert_mem_eq(&f.theta_new[i], &expected, sizeof(expected));
    }
    ck_assert_double_eq(f.distance[0], 0);
    fed_done(&f);
}

TEST(the_mean_is_weighted_by_samples)
{
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)f.theta[i] + mean_at(&f, 0, i),
                                1e-6);
    }
    fed_done(&f);
}

/* By hand: weights 1 and 3, displacements 4 and 8: mean 7. */
TEST(the_mean_of_two_clients_by_hand)
{
    struct fed f;
    size_t i;

    fed_init(&f, 2);
    f.clients[0].weight = 1;
    f.clients[1].weight = 3;
    for (i = 0; i < f.count; i++) {
        f.theta[i] = 1;
        f.delta[0][i] = 4;
        f.delta[1][i] = 8;
    }
    encode(&f);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, true, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq((double)f.theta_new[i], 8);
    }
    /* 67 trainable entries, 3 and 1 away. */
    ck_assert_double_eq_tol(f.distance[0], 3 * sqrt(67), 1e-12);
    ck_assert_double_eq_tol(f.distance[1], sqrt(67), 1e-12);
    fed_done(&f);
}

/* docs/algorithms.md#partial-uploads, 1 and 2. */
TEST(denominators_are_per_unit_and_missing_is_not_zero)
{
    struct fed f;
    size_t i;

    fed_init(&f, 4);
    f.units[0][0] = f.units[2][0] = 0;
    f.units[1][1] = f.units[2][1] = f.units[3][1] = 0;
    f.units[0][2] = 0;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i],
                                (double)f.theta[i] + mean_at(&f, unit_of(&f, i), i), 1e-6);
    }
    fed_done(&f);
}

TEST(a_unit_that_nobody_sent_is_frozen_with_its_state)
{
    const struct fl_unit *unit;
    struct fed f;
    size_t i;

    fed_init(&f, 2);
    for (i = 0; i < f.count; i++) {
        f.state[i] = 0.25f + (float)i;
    }
    f.units[0][1] = f.units[1][1] = 0;
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, NULL, false, 0), FL_OK);
    unit = fl_layout_unit(f.layout, 1);
    ck_assert_mem_eq(f.theta_new + unit->offset, f.theta + unit->offset,
                     unit->count * sizeof(float));
    ck_assert_mem_eq(f.state_new + unit->offset, f.state + unit->offset,
                     unit->count * sizeof(float));
    ck_assert_mem_ne(f.state_new, f.state, unit->offset * sizeof(float));
    fed_done(&f);
}

static bool is_norm(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)layout;
    return strncmp(tensor->name, "bn.", 3) == 0;
}

/* Even where a client sends what it should not. */
TEST(what_is_local_stays_bit_for_bit_and_the_rest_is_as_without_it)
{
    struct fl_layout *marked = NULL;
    struct fed f;
    struct fed g;
    size_t t;

    fed_init(&f, 3);
    fed_init(&g, 3);
    ck_assert_int_eq(fl_layout_copy(g.layout, is_norm, NULL, &marked, NULL), FL_OK);
    fl_layout_free(g.layout);
    g.layout = marked;
    g.theta[fl_layout_find(marked, "bn.weight")->offset] = -0.0f;
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, NULL, false, 0), FL_OK);
    ck_assert_int_eq(run(&g, &fl_aggregate_momentum, NULL, false, 0), FL_OK);
    for (t = 0; t < fl_layout_tensors(marked); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(marked, t);
        const float *want = tensor->local ? g.theta : f.theta_new;

        ck_assert_mem_eq(g.theta_new + tensor->offset, want + tensor->offset,
                         tensor->count * sizeof(float));
    }
    fed_done(&f);
    fed_done(&g);
}

TEST(nobody_responding_leaves_everything)
{
    struct fed f;
    size_t i;

    fed_init(&f, 2);
    for (i = 0; i < f.count; i++) {
        f.state[i] = (float)i;
    }
    f.n = 0;
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, NULL, false, 0), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    ck_assert_mem_eq(f.state_new, f.state, f.count * sizeof(float));
    f.n = 2;
    fed_done(&f);
}

TEST(momentum_as_computed_by_hand)
{
    struct fed f;
    size_t i;

    fed_init(&f, 1);
    for (i = 0; i < f.count; i++) {
        f.theta[i] = 1;
        f.delta[0][i] = 2;
    }
    encode(&f);
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, "beta=0.5", false, 0), FL_OK);
    (void)memcpy(f.theta, f.theta_new, f.count * sizeof(float));
    (void)memcpy(f.state, f.state_new, f.count * sizeof(float));
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, "beta=0.5", false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        /* v: 2, then .5 * 2 + 2 = 3; theta: 1 + 2 + 3. Buffers: 1 + 2 + 2 and no v. */
        ck_assert_double_eq((double)f.theta_new[i], is_buffer(&f, i) ? 5 : 6);
        ck_assert_double_eq((double)f.state_new[i], is_buffer(&f, i) ? 0 : 3);
    }
    fed_done(&f);
}

TEST(momentum_with_beta_zero_is_the_mean_bit_for_bit)
{
    float *mean;
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    for (i = 0; i < f.count; i++) {
        f.state[i] = 0.3f * (float)i;
    }
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    mean = f.theta_new;
    f.theta_new = floats(f.count);
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, "beta=0", false, 0), FL_OK);
    ck_assert_mem_eq(f.theta_new, mean, f.count * sizeof(float));
    free(mean);
    fed_done(&f);
}

TEST(the_server_rate_does_not_touch_buffers)
{
    struct fed f;
    size_t i;

    fed_init(&f, 3);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, "server_lr=0", false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        if (is_buffer(&f, i)) {
            ck_assert_double_eq_tol((double)f.theta_new[i], (double)f.theta[i] + mean_at(&f, 1, i),
                                    1e-6);
        } else {
            ck_assert_mem_eq(&f.theta_new[i], &f.theta[i], sizeof(float));
        }
    }
    fed_done(&f);
}

/* Identity 14: eta = 0 gives zero displacements. */
TEST_EACH(zero_updates_leave_theta_bit_for_bit, 2)
{
    const struct fl_aggregate_ops *ops = _i == 0 ? &fl_aggregate_mean : &fl_aggregate_momentum;
    struct fed f;
    size_t k;

    fed_init(&f, 3);
    for (k = 0; k < f.n; k++) {
        (void)memset(f.delta[k], 0, f.count * sizeof(float));
    }
    f.theta[0] = -0.0f;
    f.theta[1] = 1e-45f;
    encode(&f);
    ck_assert_int_eq(run(&f, ops, NULL, true, 0), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    ck_assert_double_eq(f.distance[0], 0);
    fed_done(&f);
}

/* Identity 1: FedLDF and random layers with n = K, buffers included. */
TEST_EACH(plans_of_all_units_are_fedavg_bit_for_bit, 2)
{
    const struct fl_upload_ops *ops = _i == 0 ? &fl_upload_ldf : &fl_upload_random_layer;
    struct fl_options *o = options_of(&ops->policy, "n=5", NULL);
    float d[CLIENTS * UNITS];
    struct fl_upload_input in = {
        .n_clients = CLIENTS, .n_selected = CLIENTS, .n_units = UNITS, .divergence = d};
    struct fl_rng rng;
    float *full;
    struct fed f;
    size_t k;
    size_t l;

    fed_init(&f, CLIENTS);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    full = f.theta_new;
    f.theta_new = floats(f.count);
    for (k = 0; k < CLIENTS; k++) {
        for (l = 0; l < UNITS; l++) {
            d[k * UNITS + l] = (float)(k * l);
        }
    }
    fl_rng_seed(&rng, 1);
    (void)memset(f.units, 0, sizeof(f.units));
    ck_assert_int_eq(ops->plan(o, &in, &rng, &f.units[0][0]), FL_OK);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    ck_assert_mem_eq(f.theta_new, full, f.count * sizeof(float));
    fl_options_free(o);
    free(full);
    fed_done(&f);
}

TEST(with_one_upload_per_unit_each_unit_is_one_clients)
{
    struct fed f;
    size_t i;
    size_t l;

    fed_init(&f, 3);
    (void)memset(f.units, 0, sizeof(f.units));
    for (l = 0; l < UNITS; l++) {
        f.units[2 - l][l] = 1;
    }
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        float expected = f.theta[i] + f.delta[2 - unit_of(&f, i)][i];

        ck_assert_mem_eq(&f.theta_new[i], &expected, sizeof(expected));
    }
    fed_done(&f);
}

TEST_EACH(the_block_size_does_not_change_the_model, 5)
{
    static const size_t blocks[] = {1, 2, 7, 16, 1000};
    double distance[CLIENTS];
    float *reference;
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, NULL, true, 0), FL_OK);
    (void)memcpy(distance, f.distance, sizeof(distance));
    reference = f.theta_new;
    f.theta_new = floats(f.count);
    ck_assert_int_eq(run(&f, &fl_aggregate_momentum, NULL, true, blocks[_i]), FL_OK);
    ck_assert_mem_eq(f.theta_new, reference, f.count * sizeof(float));
    for (k = 0; k < f.n; k++) {
        ck_assert_double_eq_tol(f.distance[k], distance[k], 1e-12);
    }
    free(reference);
    fed_done(&f);
}

/* AdaFL, eq. 1: ||theta_new - theta_k|| over trainable entries, whatever the server step. */
TEST_EACH(distances_are_to_the_actual_new_model, 2)
{
    const struct fl_aggregate_ops *ops = _i == 0 ? &fl_aggregate_mean : &fl_aggregate_momentum;
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f, 4);
    for (i = 0; i < f.count; i++) {
        f.state[i] = 0.01f * (float)(i % 5);
    }
    ck_assert_int_eq(run(&f, ops, "server_lr=1.5", true, 8), FL_OK);
    for (k = 0; k < f.n; k++) {
        double sum = 0;

        for (i = 0; i < f.count; i++) {
            double d = (double)f.theta_new[i] - ((double)f.theta[i] + (double)f.delta[k][i]);

            sum += is_buffer(&f, i) ? 0 : d * d;
        }
        ck_assert_double_eq_tol(f.distance[k], sqrt(sum), 1e-5);
    }
    fed_done(&f);
}

/* Identity 15. */
TEST(permuting_clients_changes_rounding_only)
{
    float *reference;
    struct fed f;
    size_t i;

    fed_init(&f, 4);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    reference = f.theta_new;
    f.theta_new = floats(f.count);
    for (i = 0; i < 2; i++) {
        float *d = f.delta[i];
        struct fl_agg_client c = f.clients[i];

        f.delta[i] = f.delta[3 - i];
        f.delta[3 - i] = d;
        f.clients[i] = f.clients[3 - i];
        f.clients[3 - i] = c;
    }
    encode(&f);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)reference[i], 1e-6);
    }
    free(reference);
    fed_done(&f);
}

/* Identity 17: found, blamed, and without that client the result is as if it had not been. */
TEST_EACH(a_nan_upload_is_blamed_on_its_client, 2)
{
    float bad = _i == 0 ? NAN : INFINITY;
    struct fed f;

    fed_init(&f, 4);
    (void)memcpy(f.coded[2][1].data + 18 * sizeof(float), &bad, sizeof(bad));
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 2);
    ck_assert_str_eq(f.err.msg, "update 2, unit 'conv': not a finite number");
    fed_done(&f);
}

TEST_EACH(a_coded_unit_of_another_length_is_blamed_on_its_client, 3)
{
    struct fed f;

    fed_init(&f, 3);
    f.memory[1][2].len = _i == 0 ? 4 : _i == 1 ? 0 : 11 * sizeof(float) + 1;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_EFORMAT);
    ck_assert_uint_eq(f.blamed, 1);
    fed_done(&f);
}

TEST_EACH(a_weight_that_is_no_weight_is_blamed_on_its_client, 4)
{
    static const double weights[] = {0, -1, (double)NAN, (double)INFINITY};
    struct fed f;

    fed_init(&f, 3);
    f.clients[1].weight = weights[_i];
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, true, 0), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 1);
    fed_done(&f);
}

TEST(distances_of_incomplete_updates_are_refused)
{
    struct fed f;

    fed_init(&f, 3);
    f.units[2][1] = 0;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, true, 0), FL_EFORMAT);
    ck_assert_uint_eq(f.blamed, 2);
    ck_assert_str_eq(f.err.msg,
                     "update 2 lacks unit 'conv', which its distance to the new model needs");
    fed_done(&f);
}

TEST(a_model_that_overflows_is_refused)
{
    struct fed f;

    fed_init(&f, 2);
    f.theta[40] = 3e38f;
    f.delta[0][40] = f.delta[1][40] = 3e38f;
    encode(&f);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, NULL, false, 0), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 2);
    ck_assert_str_eq(f.err.msg, "the new model is not finite in unit 'conv'");
    fed_done(&f);
}

/* A server step that reads a second payload, as control variates do. */
static void add_means(const struct fl_options *o, const struct fl_agg_block *block)
{
    size_t i;

    (void)o;
    ck_assert_uint_eq(block->round, 1);
    ck_assert_uint_eq(block->n_senders, 3);
    ck_assert_uint_eq(block->members, 3);
    for (i = 0; i < block->n; i++) {
        block->step[i] = block->dbar[i] + block->means[0][i];
    }
}

TEST(a_step_can_read_the_mean_of_another_payload)
{
    static const char *const takes[] = {"control", NULL};
    static const struct fl_aggregate_ops ops = {
        .policy = {.name = "test", .options = fl_opt_none}, .takes = takes, .step = add_means};
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f, 3);
    f.control = 1;
    ck_assert_int_eq(run(&f, &ops, NULL, true, 4), FL_OK);
    for (i = 0; i < f.count; i++) {
        double expected = (double)f.theta[i] + mean_at(&f, 0, i);
        double weight = 0;
        double other = 0;

        for (k = 0; k < 3; k++) {
            weight += f.clients[k].weight;
            other += f.clients[k].weight * (double)f.delta[(k + 1) % 3][i];
        }
        expected += is_buffer(&f, i) ? 0 : other / weight;
        ck_assert_double_eq_tol((double)f.theta_new[i], expected, 1e-6);
    }
    for (k = 0; k < 3; k++) {
        double sum = 0;

        for (i = 0; i < f.count; i++) {
            double d = (double)f.theta_new[i] - ((double)f.theta[i] + (double)f.delta[k][i]);

            sum += is_buffer(&f, i) ? 0 : d * d;
        }
        ck_assert_double_eq_tol(f.distance[k], sqrt(sum), 1e-5);
    }
    fed_done(&f);
}

/* Identity 16: full uploads are 4 (d + s) bytes a client. */
TEST(coded_bytes_are_four_per_float)
{
    size_t bytes = 0;
    struct fed f;
    size_t l;

    fed_init(&f, 1);
    for (l = 0; l < UNITS; l++) {
        bytes += f.coded[0][l].len;
    }
    ck_assert_uint_eq(bytes, 4 * fl_layout_count(f.layout));
    fed_done(&f);
}
