#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/share_cap.h"
#include "libfl/strategy/upload/upload.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

#define K 5
#define L 3

/* Column 0 has clear ranks, column 1 a tie, column 2 nobody moved. */
static const float divergence[K * L] = {
    1, 2, 0, /* */
    5, 2, 0, /* */
    3, 1, 0, /* */
    4, 2, 0, /* */
    2, 9, 0,
};

static void plan(const struct fl_upload_ops *ops, const struct fl_options *o, const float *d,
                 size_t k, size_t selected, uint64_t seed, uint8_t *grant)
{
    struct fl_upload_input in = {
        .n_clients = k, .n_selected = selected, .n_units = L, .divergence = d};
    struct fl_rng rng;

    (void)memset(grant, 0xee, k * L);
    fl_rng_key(&rng, seed, FL_RNG_PLAN, 1, 0);
    ck_assert_int_eq(ops->plan(o, &in, &rng, grant), FL_OK);
}

static size_t column(const uint8_t *grant, size_t k, size_t l)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < k; i++) {
        ck_assert_uint_le(grant[i * L + l], 1);
        n += grant[i * L + l];
    }
    return n;
}

TEST(full_grants_everything)
{
    struct fl_options *o = options_of(&fl_upload_full.policy, NULL);
    uint8_t grant[K * L];
    size_t i;

    plan(&fl_upload_full, o, NULL, K, K, 1, grant);
    for (i = 0; i < (size_t)K * L; i++) {
        ck_assert_uint_eq(grant[i], 1);
    }
    ck_assert(!fl_upload_full.partial);
    ck_assert(!fl_upload_full.needs_feedback);
    fl_options_free(o);
}

TEST(ldf_takes_the_largest_divergences_and_smaller_ids_on_ties)
{
    static const uint8_t expected[K * L] = {
        0, 1, 1, /* */
        1, 0, 1, /* */
        0, 0, 0, /* */
        1, 0, 0, /* */
        0, 1, 0,
    };
    struct fl_options *o = options_of(&fl_upload_ldf.policy, "n=2", NULL);
    uint8_t grant[K * L];

    plan(&fl_upload_ldf, o, divergence, K, K, 1, grant);
    ck_assert_mem_eq(grant, expected, sizeof(grant));
    fl_options_free(o);
}

TEST_EACH(ldf_with_n_of_all_responders_is_a_full_upload, 3)
{
    static const char *const rows[] = {"n=5", "n=6", "share=1"};
    struct fl_options *o = options_of(&fl_upload_ldf.policy, rows[_i], NULL);
    uint8_t grant[K * L];
    size_t i;

    plan(&fl_upload_ldf, o, divergence, K, K, 1, grant);
    for (i = 0; i < (size_t)K * L; i++) {
        ck_assert_uint_eq(grant[i], 1);
    }
    fl_options_free(o);
}

TEST(the_plan_of_a_unit_depends_on_its_column_only)
{
    struct fl_options *o = options_of(&fl_upload_ldf.policy, "n=2", NULL);
    float other[K * L];
    uint8_t before[K * L];
    uint8_t after[K * L];
    size_t k;

    plan(&fl_upload_ldf, o, divergence, K, K, 1, before);
    (void)memcpy(other, divergence, sizeof(other));
    for (k = 0; k < K; k++) {
        other[k * L] *= 37.5f;              /* positive factor: no change */
        other[k * L + 1] = (float)(K - k);  /* new order */
        other[k * L + 2] = (float)k * 0.5f; /* new order */
    }
    plan(&fl_upload_ldf, o, other, K, K, 1, after);
    for (k = 0; k < K; k++) {
        ck_assert_uint_eq(before[k * L], after[k * L]);
        ck_assert_uint_eq(after[k * L + 1], k < 2);
        ck_assert_uint_eq(after[k * L + 2], k >= 3);
    }
    fl_options_free(o);
}

/* docs/algorithms.md#partial-uploads, 5: n_t of the selected, at most R_t. */
TEST_EACH(the_share_is_taken_of_the_selected, 8)
{
    static const struct {
        const char *option;
        size_t responders, selected, n;
    } rows[] = {
        {"share=0.2", 5, 20, 4}, {"share=0.2", 5, 5, 1}, {"share=0.2", 5, 1, 1},
        {"share=0.2", 3, 50, 3}, {"share=0", 5, 50, 1},  {"n=3", 5, 50, 3},
        {"n=3", 2, 50, 2},       {"share=0.3", 5, 5, 2},
    };
    struct fl_options *o = options_of(&fl_upload_ldf.policy, rows[_i].option, NULL);
    uint8_t grant[K * L];
    size_t l;

    plan(&fl_upload_ldf, o, divergence, rows[_i].responders, rows[_i].selected, 1, grant);
    for (l = 0; l < L; l++) {
        ck_assert_uint_eq(column(grant, rows[_i].responders, l), rows[_i].n);
    }
    plan(&fl_upload_random_layer, o, NULL, rows[_i].responders, rows[_i].selected, 1, grant);
    for (l = 0; l < L; l++) {
        ck_assert_uint_eq(column(grant, rows[_i].responders, l), rows[_i].n);
    }
    fl_options_free(o);
}

TEST(nobody_responding_is_an_empty_plan)
{
    struct fl_options *o = options_of(&fl_upload_ldf.policy, NULL);
    uint8_t grant[1];

    plan(&fl_upload_ldf, o, divergence, 0, 5, 1, grant);
    plan(&fl_upload_random_layer, o, NULL, 0, 5, 1, grant);
    fl_options_free(o);
}

TEST(a_nan_divergence_ranks_last)
{
    struct fl_options *o = options_of(&fl_upload_ldf.policy, "n=4", NULL);
    float d[K * L];
    uint8_t grant[K * L];

    (void)memcpy(d, divergence, sizeof(d));
    d[1 * L] = NAN;
    plan(&fl_upload_ldf, o, d, K, K, 1, grant);
    ck_assert_uint_eq(grant[1 * L], 0);
    ck_assert_uint_eq(column(grant, K, 0), 4);
    fl_options_free(o);
}

TEST(random_layers_are_uniform_and_independent)
{
    struct fl_options *o = options_of(&fl_upload_random_layer.policy, "n=2", NULL);
    unsigned seen[K][L] = {{0}};
    unsigned both = 0;
    uint8_t grant[K * L];
    uint8_t again[K * L];
    uint64_t seed;
    size_t k;
    size_t l;

    for (seed = 0; seed < 10000; seed++) {
        plan(&fl_upload_random_layer, o, NULL, K, K, seed, grant);
        for (k = 0; k < K; k++) {
            for (l = 0; l < L; l++) {
                seen[k][l] += grant[k * L + l];
            }
        }
        both += grant[0] != 0 && grant[1] != 0;
    }
    for (k = 0; k < K; k++) {
        for (l = 0; l < L; l++) {
            /* 10000 * 2/5 with a deviation of 49. */
            ck_assert_uint_ge(seen[k][l], 3800);
            ck_assert_uint_le(seen[k][l], 4200);
        }
    }
    ck_assert_uint_ge(both, 1450); /* 10000 * .16 */
    ck_assert_uint_le(both, 1750);
    plan(&fl_upload_random_layer, o, NULL, K, K, 4, grant);
    plan(&fl_upload_random_layer, o, NULL, K, K, 4, again);
    ck_assert_mem_eq(grant, again, sizeof(grant));
    ck_assert(!fl_upload_random_layer.needs_feedback);
    fl_options_free(o);
}

TEST(hdfl_takes_whole_clients_each_as_often)
{
    struct fl_options *o = options_of(&fl_upload_hdfl.policy, "n=2", NULL);
    unsigned seen[K] = {0};
    uint8_t grant[K * L];
    uint64_t seed;
    size_t k;
    size_t l;

    for (seed = 0; seed < 10000; seed++) {
        plan(&fl_upload_hdfl, o, NULL, K, K, seed, grant);
        ck_assert_uint_eq(column(grant, K, 0), 2);
        for (k = 0; k < K; k++) {
            for (l = 1; l < L; l++) {
                ck_assert_uint_eq(grant[k * L + l], grant[k * L]);
            }
            seen[k] += grant[k * L];
        }
    }
    for (k = 0; k < K; k++) {
        /* 10000 * 2/5 with a deviation of 49. */
        ck_assert_uint_ge(seen[k], 3800);
        ck_assert_uint_le(seen[k], 4200);
    }
    ck_assert(!fl_upload_hdfl.needs_feedback && fl_upload_hdfl.partial);
    plan(&fl_upload_hdfl, o, NULL, 0, K, 1, grant);
    plan(&fl_upload_hdfl, o, NULL, 1, K, 1, grant);
    ck_assert_uint_eq(column(grant, 1, 0), 1);
    fl_options_free(o);
}

/* --- share_cap --- */

/* Rounds of plans as the coordinator makes them: the credits of K clients. */
struct rounds {
    struct fl_options *o;
    double cap;
    double credit[K], fair;
    unsigned granted[K];
    uint8_t grant[K * L], capped[K];
    uint64_t round;
};

static void rounds_plan(struct rounds *r, const float *d)
{
    struct fl_upload_input in = {.n_clients = K,
                                 .n_selected = K,
                                 .n_units = L,
                                 .divergence = d,
                                 .share_cap = r->cap,
                                 .credit = r->credit,
                                 .capped = r->capped};
    unsigned all = 0;
    struct fl_rng rng;
    size_t k, l;

    fl_rng_key(&rng, 1, FL_RNG_PLAN, ++r->round, 1);
    ck_assert_int_eq(fl_upload_ldf.plan(r->o, &in, &rng, r->grant), FL_OK);
    for (k = 0; k < (size_t)K * L; k++) {
        all += r->grant[k];
    }
    r->fair += (double)all / K;
    for (k = 0; k < K; k++) {
        r->credit[k] = fl_share_layers(r->credit[k], (double)all / K, r->cap);
        for (l = 0; l < L; l++) {
            r->credit[k] -= r->grant[k * L + l];
            r->granted[k] += r->grant[k * L + l];
        }
    }
}

/* Client 3 claims more than all others, in all layers of all rounds. */
static void inflate(float *d, uint64_t round)
{
    size_t i;

    for (i = 0; i < (size_t)K * L; i++) {
        d[i] = i / L == 3 ? 1e6f : 1 + (float)((i * 7 + round * 5) % 11);
    }
}

TEST(ldf_asks_no_client_for_more_than_its_capped_share_of_layers)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "n=1", NULL), .cap = 1.5};
    float d[K * L];
    size_t k, l;

    for (k = 0; k < 200; k++) {
        inflate(d, k);
        rounds_plan(&r, d);
        for (l = 0; l < L; l++) { /* As many senders as without a bound. */
            ck_assert_uint_eq(column(r.grant, K, l), 1);
        }
        ck_assert_double_lt(r.granted[3], 1.5 * r.fair + 1);
        ck_assert_uint_eq(r.capped[3], 1);
    }
    ck_assert_double_eq_tol(r.granted[3], 1.5 * r.fair, 1);
    fl_options_free(r.o);
}

TEST(ldf_without_share_cap_asks_the_most_divergent_client_for_all)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "n=1", NULL)};
    float d[K * L];
    unsigned i;

    for (i = 0; i < 50; i++) {
        inflate(d, i);
        rounds_plan(&r, d);
    }
    ck_assert_uint_eq(r.granted[3], 50 * L);
    fl_options_free(r.o);
}

TEST(with_enough_credit_the_plan_of_ldf_is_that_without_share_cap)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "n=2", NULL), .cap = 1.5};
    uint8_t expected[K * L];
    size_t k;

    for (k = 0; k < K; k++) {
        r.credit[k] = L;
    }
    plan(&fl_upload_ldf, r.o, divergence, K, K, 1, expected);
    rounds_plan(&r, divergence);
    ck_assert_mem_eq(r.grant, expected, sizeof(expected));
    for (k = 0; k < K; k++) {
        ck_assert_uint_eq(r.capped[k], 0);
    }
    fl_options_free(r.o);
}

/* No credit anywhere: the clients that were asked least come first, then the most divergent. */
TEST(when_no_client_has_credit_those_with_the_most_of_it_are_asked)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "n=2", NULL), .cap = 1.5};
    float d[K * L];
    size_t k, l;

    for (k = 0; k < (size_t)K * L; k++) {
        d[k] = (float)(k / L);
    }
    for (k = 0; k < K; k++) {
        r.credit[k] = k < 2 ? -20 : -30;
    }
    rounds_plan(&r, d);
    for (l = 0; l < L; l++) {
        ck_assert_uint_eq(r.grant[0 * L + l], 1);
        ck_assert_uint_eq(r.grant[1 * L + l], 1);
    }
    ck_assert_uint_eq(r.capped[4], 1);
    ck_assert_uint_eq(r.capped[3], 1);
    ck_assert_uint_eq(r.capped[2], 0);
    fl_options_free(r.o);
}

TEST(share_cap_takes_nothing_when_all_responders_send_all)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "share=1", NULL), .cap = 1.5};
    unsigned i;
    size_t k;

    for (i = 0; i < 30; i++) {
        rounds_plan(&r, divergence);
        for (k = 0; k < K; k++) {
            ck_assert_uint_eq(r.capped[k], 0);
        }
    }
    for (k = 0; k < K; k++) {
        ck_assert_uint_eq(r.granted[k], 30 * L);
    }
    fl_options_free(r.o);
}

/* One layer in a round for a client that is first in all: not always the same one. */
TEST(what_a_capped_client_sends_is_no_layer_in_particular)
{
    struct rounds r = {.o = options_of(&fl_upload_ldf.policy, "n=1", NULL), .cap = 1.5};
    unsigned sent[L] = {0};
    float d[K * L];
    unsigned i;
    size_t l;

    for (i = 0; i < 300; i++) {
        inflate(d, i);
        rounds_plan(&r, d);
        for (l = 0; l < L; l++) {
            sent[l] += r.grant[3 * L + l];
        }
    }
    for (l = 0; l < L; l++) { /* A third of 270 each. */
        ck_assert_uint_ge(sent[l], 60);
    }
    fl_options_free(r.o);
}
