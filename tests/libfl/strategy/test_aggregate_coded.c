#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/upload/upload.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

/* Aggregation of units in any codec, and plans that leave whole clients out. */

enum { UNITS = 3, CLIENTS = 6 };

struct fed {
    struct fl_layout *layout;
    size_t count;
    float *theta, *theta_new;
    float *delta[CLIENTS];
    uint8_t units[CLIENTS][UNITS];
    struct fl_agg_client clients[CLIENTS];
    const struct fl_codec_ops *codec[CLIENTS];
    struct fl_buf coded[CLIENTS][UNITS];
    struct fl_codec_memory memory[CLIENTS][UNITS];
    double distance[CLIENTS];
};

static float *floats(size_t n)
{
    float *x = calloc(n, sizeof(*x));

    ck_assert_ptr_nonnull(x);
    return x;
}

static void add(struct fl_layout *layout, const char *unit, const char *name, size_t n, bool buffer)
{
    ck_assert_int_eq(fl_layout_add(layout, unit, name, &n, 1, buffer, NULL), FL_OK);
}

static void fed_init(struct fed *f)
{
    struct fl_rng rng;
    size_t i;
    size_t k;

    *f = (struct fed){.layout = NULL};
    ck_assert_int_eq(fl_layout_create(&f->layout), FL_OK);
    add(f->layout, "fc1", "fc1.weight", 3100, false);
    add(f->layout, "fc1", "fc1.bias", 50, false);
    add(f->layout, "conv", "conv.weight", 170, false);
    add(f->layout, "conv", "bn.running_mean", 30, true);
    add(f->layout, "conv", "bn.weight", 30, false);
    add(f->layout, "conv", "bn.running_var", 30, true);
    add(f->layout, "fc2", "fc2.weight", 7, false);
    ck_assert_int_eq(fl_layout_finish(f->layout, NULL), FL_OK);
    f->count = fl_layout_count(f->layout);
    f->theta = floats(f->count);
    f->theta_new = floats(f->count);
    fl_rng_seed(&rng, 31);
    for (i = 0; i < f->count; i++) {
        f->theta[i] = (float)fl_rng_normal(&rng);
    }
    for (k = 0; k < CLIENTS; k++) {
        f->delta[k] = floats(f->count);
        for (i = 0; i < f->count; i++) {
            f->delta[k][i] = (float)(0.1 * fl_rng_normal(&rng));
        }
        (void)memset(f->units[k], 1, UNITS);
        f->clients[k].weight = 10.0 + 3.0 * (double)k;
        f->clients[k].units = f->units[k];
        f->codec[k] = &fl_codec_float32;
        for (i = 0; i < UNITS; i++) {
            fl_buf_init(&f->coded[k][i], 1u << 20);
        }
    }
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
    fl_layout_free(f->layout);
}

static int open_unit(void *ctx, size_t client, size_t payload, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct fed *f = ctx;
    struct fl_codec_reader reader = fl_codec_memory_reader(&f->memory[client][unit]);

    ck_assert_uint_eq(payload, 0);
    return fl_codec_open(d, f->codec[client], f->layout, unit, &reader);
}

static void encode(struct fed *f)
{
    size_t k;
    size_t l;

    for (k = 0; k < CLIENTS; k++) {
        struct fl_options *o = options_of(&f->codec[k]->policy, NULL);

        for (l = 0; l < UNITS; l++) {
            struct fl_buf *out = &f->coded[k][l];

            fl_buf_clear(out);
            ck_assert_int_eq(f->codec[k]->encode(o, f->layout, l,
                                                 f->delta[k] + fl_layout_unit(f->layout, l)->offset,
                                                 k, out),
                             FL_OK);
            f->memory[k][l] = (struct fl_codec_memory){.data = out->data, .len = out->len};
        }
        fl_options_free(o);
    }
}

static int run(struct fed *f, const struct fl_aggregate_ops *ops, struct fl_options *o,
               bool distance, size_t block)
{
    struct fl_agg_job job = {
        .layout = f->layout,
        .ops = ops,
        .options = o,
        .round = 1,
        .members = CLIENTS,
        .n_clients = CLIENTS,
        .clients = f->clients,
        .open = open_unit,
        .ctx = f,
        .theta = f->theta,
        .theta_new = f->theta_new,
        .want_distance = distance,
        .distance = f->distance,
        .block = block,
    };
    size_t blamed;
    int rv = fl_aggregate_run(&job, &blamed, NULL);

    fl_options_free(o);
    return rv;
}

static void mean(struct fed *f, bool distance, size_t block)
{
    encode(f);
    ck_assert_int_eq(
        run(f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL), distance, block),
        FL_OK);
}

/* Put what each client's coded units decode to in the place of its update. */
static void replace_by_decoded(struct fed *f)
{
    size_t k;
    size_t l;

    for (k = 0; k < CLIENTS; k++) {
        for (l = 0; l < UNITS; l++) {
            const struct fl_unit *unit = fl_layout_unit(f->layout, l);
            struct fl_codec_decoder d;

            ck_assert_int_eq(open_unit(f, k, 0, l, &d), FL_OK);
            ck_assert_int_eq(f->codec[k]->read(&d, f->delta[k] + unit->offset, unit->count), FL_OK);
            ck_assert_int_eq(f->codec[k]->close(&d), FL_OK);
        }
        f->codec[k] = &fl_codec_float32;
    }
}

TEST_EACH(coded_units_are_averaged_as_what_they_decode_to_bit_for_bit, 6)
{
    static const size_t blocks[] = {0, 1, 97};
    static const struct fl_codec_ops *const mix[2][CLIENTS] = {
        {&fl_codec_ternary, &fl_codec_int8, &fl_codec_float32, &fl_codec_steps, &fl_codec_float16,
         &fl_codec_bfloat16},
        {&fl_codec_topk, &fl_codec_qsgd, &fl_codec_float32, &fl_codec_topk, &fl_codec_qsgd,
         &fl_codec_ternary}};
    const int whole = _i % 3 == 0;
    double distance[CLIENTS];
    float *coded;
    struct fed f;
    size_t k;

    fed_init(&f);
    for (k = 0; k < CLIENTS; k++) {
        f.codec[k] = mix[_i / 3][k];
    }
    f.units[0][2] = f.units[3][0] = (uint8_t)whole; /* Distances want everything. */
    mean(&f, whole, blocks[_i % 3]);
    coded = f.theta_new;
    f.theta_new = floats(f.count);
    (void)memcpy(distance, f.distance, sizeof(distance));
    replace_by_decoded(&f);
    mean(&f, whole, 0);
    ck_assert_mem_eq(f.theta_new, coded, f.count * sizeof(float));
    ck_assert_mem_eq(f.distance, distance, sizeof(distance));
    free(coded);
    fed_done(&f);
}

/* Unlike a missing unit, which is never 0: the denominator has all senders. */
TEST(a_missing_entry_inside_a_sent_unit_is_zero)
{
    const struct fl_unit *fc1;
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f);
    fc1 = fl_layout_unit(f.layout, 0);
    for (k = 0; k < CLIENTS; k++) {
        f.codec[k] = &fl_codec_ternary;
        f.clients[k].weight = 1;
        f.units[k][0] = k < 2;
        (void)memset(f.delta[k], 0, f.count * sizeof(float));
    }
    f.delta[0][5] = 4;  /* by client 0 alone */
    f.delta[2][6] = 40; /* not granted */
    for (i = 0; i < f.count; i++) {
        f.theta[i] = 1;
    }
    mean(&f, false, 0);
    for (i = 0; i < fc1->count; i++) {
        ck_assert_uint_eq(bits_of(f.theta_new[i]), bits_of(i == 5 ? 3.0f : 1.0f));
    }
    fed_done(&f);
}

/* hdfl with n = K, buffers included. */
TEST(hdfl_of_all_is_fedavg_bit_for_bit)
{
    struct fl_options *o = options_of(&fl_upload_hdfl.policy, "n=6", NULL);
    struct fl_upload_input in = {.n_clients = CLIENTS, .n_selected = CLIENTS, .n_units = UNITS};
    struct fl_rng rng;
    float *full;
    struct fed f;

    fed_init(&f);
    mean(&f, false, 0);
    full = f.theta_new;
    f.theta_new = floats(f.count);
    (void)memset(f.units, 0, sizeof(f.units));
    fl_rng_seed(&rng, 1);
    ck_assert_int_eq(fl_upload_hdfl.plan(o, &in, &rng, &f.units[0][0]), FL_OK);
    mean(&f, false, 0);
    ck_assert_mem_eq(f.theta_new, full, f.count * sizeof(float));
    free(full);
    fl_options_free(o);
    fed_done(&f);
}
