#include "libfl/strategy/aggregator/aggregate.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/masked_fixture.h"

/* Aggregation of updates from which neurons are left out (docs/algorithms.md#partial-uploads). */

enum { CLIENTS = 5, STATES = 2 };

struct fed {
    struct fl_layout *layout;
    size_t count, neurons;
    const struct fl_codec_ops *codec;
    const struct fl_agg_part *extra;
    bool plain; /* coded without masks */
    float *theta, *theta_new, *state[STATES], *state_new[STATES];
    float *delta[CLIENTS];
    uint8_t *keep[CLIENTS];
    uint8_t units[CLIENTS][MASKED_UNITS];
    struct fl_agg_client clients[CLIENTS];
    struct fl_buf coded[CLIENTS][MASKED_UNITS];
    struct fl_codec_memory memory[CLIENTS][MASKED_UNITS];
    double distance[CLIENTS];
    size_t blamed;
};

static float *draw(size_t n, uint64_t seed, double scale)
{
    float *x = calloc(n, sizeof(*x));
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(x);
    fl_rng_seed(&rng, seed);
    for (i = 0; i < n; i++) {
        x[i] = (float)(scale * fabs(fl_rng_normal(&rng)));
    }
    return x;
}

static void fed_init(struct fed *f, const struct fl_codec_ops *codec)
{
    size_t k;
    size_t l;

    *f = (struct fed){.layout = masked_layout(), .codec = codec};
    f->count = fl_layout_count(f->layout);
    f->neurons = fl_neurons_total(f->layout);
    f->theta = draw(f->count, 1, 1);
    f->theta_new = draw(f->count, 2, 1);
    for (k = 0; k < STATES; k++) {
        f->state[k] = draw(f->count, 3 + k, 0.01);
        f->state_new[k] = draw(f->count, 5 + k, 1);
    }
    for (k = 0; k < CLIENTS; k++) {
        f->delta[k] = draw(f->count, 10 + k, 0.1);
        f->keep[k] = calloc(f->neurons, 1);
        (void)memset(f->units[k], 1, MASKED_UNITS);
        f->clients[k].weight = 10.0 + 3.0 * (double)k;
        f->clients[k].units = f->units[k];
        for (l = 0; l < MASKED_UNITS; l++) {
            fl_buf_init(&f->coded[k][l], 1u << 20);
        }
    }
}

static void fed_done(struct fed *f)
{
    size_t k;
    size_t l;

    for (k = 0; k < CLIENTS; k++) {
        free(f->delta[k]);
        free(f->keep[k]);
        for (l = 0; l < MASKED_UNITS; l++) {
            fl_buf_done(&f->coded[k][l]);
        }
    }
    for (k = 0; k < STATES; k++) {
        free(f->state[k]);
        free(f->state_new[k]);
    }
    free(f->theta);
    free(f->theta_new);
    fl_layout_free(f->layout);
}

static void choose(struct fed *f, const char *rho)
{
    struct fl_options *o = options_of(&fl_upload_fedadp.policy, rho, NULL);
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        ck_assert_int_eq(fl_upload_fedadp.mask(o, f->layout, f->theta, f->delta[k], f->keep[k]),
                         FL_OK);
    }
    fl_options_free(o);
}

static void encode(struct fed *f)
{
    struct fl_options *o = options_of(&f->codec->policy, NULL);
    size_t k;
    size_t l;

    for (k = 0; k < CLIENTS; k++) {
        const uint8_t *keep = f->keep[k];

        for (l = 0; l < MASKED_UNITS; l++) {
            struct fl_unit_update in = {.delta = f->delta[k] + fl_layout_unit(f->layout, l)->offset,
                                        .keep = f->plain ? NULL : keep};
            struct fl_buf *out = &f->coded[k][l];

            fl_buf_clear(out);
            ck_assert_int_eq(fl_unit_encode(f->codec, o, f->layout, l, &in, out), FL_OK);
            f->memory[k][l] = (struct fl_codec_memory){.data = out->data, .len = out->len};
            keep += fl_neurons(f->layout, l);
        }
    }
    fl_options_free(o);
}

static int open_unit(void *ctx, size_t client, size_t payload, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct fed *f = ctx;
    struct fl_codec_reader reader = fl_codec_memory_reader(&f->memory[client][unit]);

    ck_assert_uint_eq(payload, 0);
    return f->plain ? fl_codec_open(d, f->codec, f->layout, unit, &reader)
                    : fl_masked_open(d, f->codec, f->layout, unit, &reader);
}

static int run(struct fed *f, const struct fl_aggregate_ops *ops, bool distance, size_t block)
{
    struct fl_options *o = options_of(&ops->policy, NULL);
    struct fl_agg_job job = {
        .layout = f->layout,
        .ops = ops,
        .options = o,
        .round = 3,
        .members = CLIENTS,
        .n_clients = CLIENTS,
        .clients = f->clients,
        .open = open_unit,
        .ctx = f,
        .theta = f->theta,
        .theta_new = f->theta_new,
        .extra = f->extra,
        .state = (const float *const *)f->state,
        .state_new = f->state_new,
        .want_distance = distance,
        .distance = f->distance,
        .block = block,
    };
    int rv;

    encode(f);
    rv = fl_aggregate_run(&job, &f->blamed, NULL);
    fl_options_free(o);
    return rv;
}

static const struct fl_aggregate_ops *const aggregates[] = {
    &fl_aggregate_mean, &fl_aggregate_momentum, &fl_aggregate_adam};

/* Buffers and the server's state included. */
TEST_EACH(fedadp_with_rho_one_is_fedavg_bit_for_bit, 6)
{
    static const struct fl_codec_ops *const codecs[] = {&fl_codec_float32, &fl_codec_ternary};
    const struct fl_aggregate_ops *ops = aggregates[_i % 3];
    float *masked;
    float *state[STATES];
    struct fed f;
    size_t s;

    fed_init(&f, codecs[_i / 3]);
    choose(&f, "rho=1");
    ck_assert_int_eq(run(&f, ops, false, 0), FL_OK);
    masked = f.theta_new;
    f.theta_new = draw(f.count, 2, 1);
    for (s = 0; s < STATES; s++) {
        state[s] = f.state_new[s];
        f.state_new[s] = draw(f.count, 5 + s, 1);
    }
    f.plain = true;
    ck_assert_int_eq(run(&f, ops, false, 0), FL_OK);
    ck_assert_mem_eq(f.theta_new, masked, f.count * sizeof(float));
    for (s = 0; s < STATES; s++) {
        ck_assert_mem_eq(f.state_new[s], state[s], f.count * sizeof(float));
        free(state[s]);
    }
    free(masked);
    fed_done(&f);
}

/* Did client k send entry i of the model? */
static bool sent(const struct fed *f, size_t k, size_t i)
{
    const uint8_t *keep = f->keep[k];
    size_t l = 0;

    while (i >= fl_layout_unit(f->layout, l)->count) {
        i -= fl_layout_unit(f->layout, l)->count;
        keep += fl_neurons(f->layout, l++);
    }
    return f->units[k][l] != 0 && keep[neuron_of(f->layout, l, i)] != 0;
}

TEST_EACH(each_neuron_is_the_weighted_mean_over_those_that_sent_it, 4)
{
    static const size_t blocks[] = {0, 1, 13, 4096};
    size_t senders[CLIENTS + 1] = {0};
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=0.3");
    f.units[1][SMALL] = 0; /* units left out by a plan go along */
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, blocks[_i]), FL_OK);
    for (i = 0; i < f.count; i++) {
        double sum = 0;
        double weight = 0;
        size_t n = 0;

        for (k = 0; k < CLIENTS; k++) {
            if (sent(&f, k, i)) {
                sum += f.clients[k].weight * (double)f.delta[k][i];
                weight += f.clients[k].weight;
                n++;
            }
        }
        senders[n]++;
        if (n == 0) {
            ck_assert_uint_eq(bits_of(f.theta_new[i]), bits_of(f.theta[i]));
        } else {
            ck_assert_double_eq_tol((double)f.theta_new[i], (double)f.theta[i] + sum / weight,
                                    1e-6);
        }
    }
    for (k = 0; k <= CLIENTS; k++) {
        ck_assert_uint_gt(senders[k], 0); /* the case was there */
    }
    fed_done(&f);
}

TEST_EACH(a_neuron_that_nobody_sent_keeps_model_and_state_bit_for_bit, 3)
{
    struct fed f;
    size_t frozen = 0;
    size_t i;
    size_t k;
    size_t s;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=0.1");
    f.theta[5] = -0.0f;
    ck_assert_int_eq(run(&f, aggregates[_i], false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        bool there = false;

        for (k = 0; k < CLIENTS; k++) {
            there |= sent(&f, k, i);
        }
        if (there) {
            ck_assert_uint_ne(bits_of(f.theta_new[i]), bits_of(f.theta[i]));
            continue;
        }
        frozen++;
        ck_assert_uint_eq(bits_of(f.theta_new[i]), bits_of(f.theta[i]));
        for (s = 0; s < aggregates[_i]->n_state; s++) {
            ck_assert_uint_eq(bits_of(f.state_new[s][i]), bits_of(f.state[s][i]));
        }
    }
    ck_assert_uint_gt(frozen, 100);
    fed_done(&f);
}

TEST(a_neuron_that_all_sent_is_averaged_as_without_masks_bit_for_bit)
{
    float *masked;
    struct fed f;
    size_t same = 0;
    size_t i;
    size_t k;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=0.5");
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_OK);
    masked = f.theta_new;
    f.theta_new = draw(f.count, 2, 1);
    f.plain = true;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        bool all = true;

        for (k = 0; k < CLIENTS; k++) {
            all = all && sent(&f, k, i);
        }
        if (all) {
            ck_assert_uint_eq(bits_of(f.theta_new[i]), bits_of(masked[i]));
            same++;
        }
    }
    ck_assert_uint_gt(same, 100);
    free(masked);
    fed_done(&f);
}

/* What a sparse codec leaves out of a kept neuron is 0, a neuron left out is not. */
TEST(zeros_of_a_codec_count_and_absent_neurons_do_not)
{
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f, &fl_codec_ternary);
    for (k = 0; k < CLIENTS; k++) {
        (void)memset(f.delta[k], 0, f.count * sizeof(float));
        (void)memset(f.keep[k], 1, f.neurons);
        f.clients[k].weight = 1;
        f.keep[k][3] = k < 2;
    }
    for (i = 0; i < f.count; i++) {
        f.theta[i] = 1;
    }
    f.delta[0][3 * 3] = 4;  /* small.weight of neuron 3, by one of its two senders */
    f.delta[0][3 * 4] = 10; /* of neuron 4, which all five send */
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_OK);
    ck_assert_double_eq_tol((double)f.theta_new[9], 1 + 3.5, 1e-6); /* mu is 7 */
    ck_assert_double_eq_tol((double)f.theta_new[12], 1 + 1.4, 1e-6);
    fed_done(&f);
}

TEST(distances_need_whole_updates)
{
    struct fed f;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=1");
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, true, 0), FL_OK);
    f.keep[3][2] = 0;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, true, 0), FL_EFORMAT);
    ck_assert_uint_eq(f.blamed, 3);
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_OK);
    fed_done(&f);
}

static bool is_buffer(const struct fed *f, size_t i)
{
    size_t t = 0;

    while (i >= fl_layout_tensor(f->layout, t)->offset + fl_layout_tensor(f->layout, t)->count) {
        t++;
    }
    return fl_layout_tensor(f->layout, t)->buffer;
}

/* As IGFL-C's: what the model moved by. */
static void take_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    size_t i;

    (void)o;
    for (i = 0; i < b->n; i++) {
        b->state_new[0][i] = (float)b->step[i];
    }
}

/* _i: a part whose state is the step itself, or any other. */
TEST_EACH(where_nobody_sent_a_neuron_a_state_that_is_the_step_is_0_and_others_freeze, 2)
{
    static const char *const names[] = {"displacement", NULL};
    const struct fl_agg_part part = {.n_state = 1,
                                     .state_names = names,
                                     .takes_masks = true,
                                     .is_step = _i == 0,
                                     .step = take_step};
    struct fed f;
    size_t frozen = 0;
    size_t i;
    size_t k;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=0.1");
    f.extra = &part;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_OK);
    for (i = 0; i < f.count; i++) {
        bool there = false;

        for (k = 0; k < CLIENTS; k++) {
            there |= sent(&f, k, i);
        }
        if (!there) {
            frozen++;
            ck_assert_uint_eq(bits_of(f.state_new[0][i]),
                              _i == 0 ? bits_of(0.0f) : bits_of(f.state[0][i]));
        } else if (!is_buffer(&f, i)) {
            ck_assert_double_eq_tol((double)f.state_new[0][i],
                                    (double)f.theta_new[i] - (double)f.theta[i], 1e-6);
        }
    }
    ck_assert_uint_gt(frozen, 100);
    fed_done(&f);
}

TEST(a_part_of_whole_units_does_not_go_with_masks)
{
    static const char *const names[] = {"control", NULL};
    static const struct fl_agg_part part = {.n_state = 1, .state_names = names, .step = take_step};
    struct fed f;

    fed_init(&f, &fl_codec_float32);
    choose(&f, "rho=0.5");
    f.extra = &part;
    ck_assert_int_eq(run(&f, &fl_aggregate_mean, false, 0), FL_EFORMAT);
    fed_done(&f);
}
