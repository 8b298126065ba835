#ifndef FL_TESTS_AGGREGATE_FIXTURE_H
#define FL_TESTS_AGGREGATE_FIXTURE_H

/*
 * A federation in memory for the aggregation pass: every client has a few model-sized
 * vectors (payloads), sent as float32, and which units it sends.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/aggregator/aggregate.h"
#include "tests/libfl/strategy/strategy_fixture.h"

enum { FED_UNITS = 3, FED_CLIENTS = 6, FED_MIXED = 4, FED_PAYLOADS = 3, FED_STATES = 4 };

struct fed {
    struct fl_layout *layout;
    size_t count;
    size_t n; /* clients */
    size_t members;
    uint64_t round;
    size_t block;
    bool distances;
    float *theta, *theta_new;
    float *state[FED_STATES], *state_new[FED_STATES];
    float *sent[FED_CLIENTS][FED_PAYLOADS]; /* payload 0 is the update */
    float *mixed[FED_CLIENTS];
    size_t told[FED_CLIENTS]
               [FED_UNITS]; /* personalized models: entries of each unit that were told */
    int refuse;             /* the personalized model callback returns it */
    const struct fl_codec_ops *codec;
    uint8_t units[FED_CLIENTS][FED_UNITS];
    struct fl_agg_client clients[FED_CLIENTS];
    struct fl_codec_memory memory[FED_CLIENTS][FED_PAYLOADS];
    const struct fl_agg_part *extra;
    struct fl_options *extra_options;
    const struct fl_broadcast_ops *broadcast;
    struct fl_options *broadcast_options; /* NULL: those of a broadcast without any */
    const struct fl_robust_ops *robust;
    struct fl_options *robust_options;
    const float *reference;           /* of a rule that `trusts` */
    const struct fl_agg_whole *whole; /* of a policy with a program */
    uint64_t seed;
    double used[FED_CLIENTS], score[FED_CLIENTS];
    double share_cap;
    double influence[FED_CLIENTS];
    double distance[FED_CLIENTS];
    struct fl_agg_info info;
    double mixing[FED_MIXED * FED_MIXED]; /* of the first clients */
    double attention[FED_CLIENTS];
    size_t opened;
    size_t blamed;
    struct fl_err err;
};

static inline float *fed_floats(size_t n)
{
    float *x = calloc(n, sizeof(*x));

    ck_assert_ptr_nonnull(x);
    return x;
}

static inline void fed_tensor(struct fl_layout *layout, const char *unit, const char *name,
                              size_t n, bool buffer)
{
    ck_assert_int_eq(fl_layout_add(layout, unit, name, &n, 1, buffer, NULL), FL_OK);
}

static inline void fed_init(struct fed *f, size_t n)
{
    struct fl_rng rng;
    size_t b, i, k;

    *f = (struct fed){.n = n, .members = n + 2, .round = 1, .codec = &fl_codec_float32};
    ck_assert_int_eq(fl_layout_create(&f->layout), FL_OK);
    fed_tensor(f->layout, "fc1", "fc1.weight", 31, false);
    fed_tensor(f->layout, "fc1", "fc1.bias", 5, false);
    fed_tensor(f->layout, "conv", "conv.weight", 17, false);
    fed_tensor(f->layout, "conv", "bn.running_mean", 3, true);
    fed_tensor(f->layout, "conv", "bn.weight", 3, false);
    fed_tensor(f->layout, "conv", "bn.running_var", 3, true);
    fed_tensor(f->layout, "fc2", "fc2.weight", 11, false);
    ck_assert_int_eq(fl_layout_finish(f->layout, NULL), FL_OK);
    f->count = fl_layout_count(f->layout);
    f->theta = fed_floats(f->count);
    f->theta_new = fed_floats(f->count);
    fl_rng_seed(&rng, 4242);
    for (i = 0; i < f->count; i++) {
        f->theta[i] = (float)fl_rng_normal(&rng);
    }
    for (b = 0; b < FED_STATES; b++) {
        f->state[b] = fed_floats(f->count);
        f->state_new[b] = fed_floats(f->count);
        for (i = 0; i < f->count; i++) {
            f->state[b][i] = (float)fl_rng_normal(&rng);
        }
    }
    for (k = 0; k < n; k++) {
        f->mixed[k] = fed_floats(f->count);
        for (b = 0; b < FED_PAYLOADS; b++) {
            f->sent[k][b] = fed_floats(f->count);
            for (i = 0; i < f->count; i++) {
                f->sent[k][b][i] = (float)(0.3 * fl_rng_normal(&rng));
            }
        }
        (void)memset(f->units[k], 1, FED_UNITS);
        f->clients[k].weight = 100.0 + 37.0 * (double)k;
        f->clients[k].units = f->units[k];
        f->clients[k].factor = 1.0 + 0.5 * (double)k;
    }
}

static inline void fed_done(struct fed *f)
{
    size_t b, k;

    for (k = 0; k < FED_CLIENTS; k++) {
        free(f->mixed[k]);
        for (b = 0; b < FED_PAYLOADS; b++) {
            free(f->sent[k][b]);
        }
    }
    for (b = 0; b < FED_STATES; b++) {
        free(f->state[b]);
        free(f->state_new[b]);
    }
    free(f->theta);
    free(f->theta_new);
    fl_options_free(f->extra_options);
    fl_options_free(f->broadcast_options);
    fl_options_free(f->robust_options);
    fl_layout_free(f->layout);
}

static inline int fed_open(void *ctx, size_t client, size_t payload, size_t unit,
                           struct fl_codec_decoder *d)
{
    struct fed *f = ctx;
    const struct fl_unit *u = fl_layout_unit(f->layout, unit);
    struct fl_codec_reader reader;

    ck_assert_uint_lt(client, f->n);
    ck_assert_uint_lt(payload, FED_PAYLOADS);
    ck_assert_uint_eq(f->units[client][unit], 1);
    f->memory[client][payload] = (struct fl_codec_memory){
        .data = (const uint8_t *)(const void *)(f->sent[client][payload] + u->offset),
        .len = u->count * sizeof(float),
    };
    f->opened++;
    reader = fl_codec_memory_reader(&f->memory[client][payload]);
    return fl_codec_open(d, f->codec, f->layout, unit, &reader);
}

static inline size_t fed_unit_of(const struct fed *f, size_t i)
{
    size_t l = 0;

    while (i >= fl_layout_unit(f->layout, l)->offset + fl_layout_unit(f->layout, l)->count) {
        l++;
    }
    return l;
}

static inline const struct fl_tensor *fed_tensor_of(const struct fed *f, size_t i)
{
    size_t t = 0;

    while (i >= fl_layout_tensor(f->layout, t)->offset + fl_layout_tensor(f->layout, t)->count) {
        t++;
    }
    return fl_layout_tensor(f->layout, t);
}

static inline bool fed_is_buffer(const struct fed *f, size_t i)
{
    return fed_tensor_of(f, i)->buffer;
}

static inline int fed_personal_model(void *ctx, size_t client, size_t offset, const float *values,
                                     size_t n)
{
    struct fed *f = ctx;
    size_t i;

    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(offset + n, f->count);
    /* Each unit without a gap. */
    for (i = offset; i < offset + n; i++) {
        size_t l = fed_unit_of(f, i);

        ck_assert_uint_eq(i, fl_layout_unit(f->layout, l)->offset + f->told[client][l]++);
    }
    (void)memcpy(f->mixed[client] + offset, values, n * sizeof(*values));
    return f->refuse == FL_OK ? FL_OK : fl_err_set(&f->err, f->refuse, "no room");
}

/* Takes the options. */
static inline int fed_run(struct fed *f, const struct fl_aggregate_ops *ops, struct fl_options *o)
{
    struct fl_agg_job job = {
        .layout = f->layout,
        .ops = ops,
        .options = o,
        .round = f->round,
        .members = f->members,
        .n_clients = f->n,
        .clients = f->clients,
        .open = fed_open,
        .ctx = f,
        .theta = f->theta,
        .theta_new = f->theta_new,
        .extra = f->extra,
        .extra_options = f->extra_options,
        .broadcast = f->broadcast,
        .broadcast_options = f->broadcast_options,
        .grid = f->broadcast != NULL
                    ? fl_broadcast_grid(f->broadcast, f->broadcast_options,
                                        &(struct fl_broadcast_round){f->layout, NULL, f->round, 0})
                    : 0,
        .robust = f->robust,
        .robust_options = f->robust_options,
        .reference = f->reference,
        .whole = f->whole,
        .seed = f->seed,
        .used = f->used,
        .share_cap = f->share_cap,
        .influence = f->influence,
        .score = f->score,
        .state = (const float *const *)f->state,
        .state_new = f->state_new,
        .personal_model = ops->mixes ? fed_personal_model : NULL,
        .mixing = fl_aggregate_has_mixing(ops, o) ? f->mixing : NULL,
        .n_mixing = f->n < FED_MIXED ? f->n : FED_MIXED,
        .attention = f->attention,
        .info = &f->info,
        .want_distance = f->distances,
        .distance = f->distance,
        .block = f->block,
    };
    int rv;

    (void)memset(f->told, 0, sizeof(f->told));
    (void)memset(f->mixing, 0, sizeof(f->mixing));
    (void)memset(f->attention, 0, sizeof(f->attention));
    rv = fl_aggregate_run(&job, &f->blamed, &f->err);
    fl_options_free(o);
    return rv;
}

/* Run it, and give back a new copy of the new model. */
static inline float *fed_model(struct fed *f, const struct fl_aggregate_ops *ops,
                               struct fl_options *o)
{
    float *model = fed_floats(f->count);

    ck_assert_msg(fed_run(f, ops, o) == FL_OK, "%s", f->err.msg);
    (void)memcpy(model, f->theta_new, f->count * sizeof(float));
    return model;
}

/*
 * A rule that only reports gives the model of the mean without it, bit for bit, and the figures
 * that it has when it acts, which are in `f` afterwards; when it acts the model is another one.
 */
static inline void fed_check_report(struct fed *f)
{
    const struct fl_policy *mean = &fl_aggregate_mean.policy;
    float *acted = fed_model(f, &fl_aggregate_mean, options_of(mean, NULL));
    float *reported;
    float *without;
    double used[FED_CLIENTS], score[FED_CLIENTS];

    (void)memcpy(used, f->used, sizeof(used));
    (void)memcpy(score, f->score, sizeof(score));
    ck_assert_int_eq(fl_options_set(f->robust_options, "report", "yes", NULL), FL_OK);
    reported = fed_model(f, &fl_aggregate_mean, options_of(mean, NULL));
    ck_assert_mem_eq(used, f->used, f->n * sizeof(used[0]));
    ck_assert_mem_eq(score, f->score, f->n * sizeof(score[0]));
    f->robust = NULL;
    without = fed_model(f, &fl_aggregate_mean, options_of(mean, NULL));
    (void)memcpy(f->used, used, sizeof(used));
    ck_assert_mem_eq(reported, without, f->count * sizeof(float));
    ck_assert_mem_ne(acted, without, f->count * sizeof(float));
    free(acted);
    free(reported);
    free(without);
}

/* Plain mean over the senders of the entry's unit, and the one weighted by samples. */
static inline double fed_mean(const struct fed *f, size_t payload, size_t i, bool weighted)
{
    size_t l = fed_unit_of(f, i);
    double sum = 0, total = 0;
    size_t k;

    for (k = 0; k < f->n; k++) {
        if (f->units[k][l]) {
            double w = weighted ? f->clients[k].weight : 1;

            sum += w * (double)f->sent[k][payload][i];
            total += w;
        }
    }
    return sum / total;
}

/* Is the entry in the component: unit l, tensor t, or all when they are negative? */
static inline bool fed_in(const struct fed *f, int l, int t, size_t i)
{
    return !fed_is_buffer(f, i) && (l < 0 || fed_unit_of(f, i) == (size_t)l) &&
           (t < 0 || fed_tensor_of(f, i) == fl_layout_tensor(f->layout, (size_t)t));
}

/* Plainly, in double: inner products over a component of the updates of the listed clients. */
static inline void fed_gram(const struct fed *f, int l, int t, const size_t *who, size_t n,
                            double *gram)
{
    size_t i, j, x;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            gram[i * n + j] = 0;
            for (x = 0; x < f->count; x++) {
                if (fed_in(f, l, t, x)) {
                    gram[i * n + j] +=
                        (double)f->sent[who[i]][0][x] * (double)f->sent[who[j]][0][x];
                }
            }
        }
    }
}

/* Clients that send unit l. */
static inline size_t fed_senders(const struct fed *f, size_t l, size_t *who)
{
    size_t n = 0;
    size_t k;

    for (k = 0; k < f->n; k++) {
        if (f->units[k][l]) {
            who[n++] = k;
        }
    }
    return n;
}

/* Another order of the clients: client k becomes client to[k]. */
static inline void fed_permute(struct fed *f, const size_t *to)
{
    struct fed old = *f;
    size_t k;

    for (k = 0; k < f->n; k++) {
        (void)memcpy(f->sent[to[k]], old.sent[k], sizeof(old.sent[k]));
        (void)memcpy(f->units[to[k]], old.units[k], sizeof(old.units[k]));
        f->clients[to[k]] = old.clients[k];
        f->clients[to[k]].units = f->units[to[k]];
    }
}

#endif
