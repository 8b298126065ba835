/* igfl_s (docs/algorithms.md#attention-between-updates), pass of attention, equal weights. */
#include "libfl/strategy/share_cap.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

static const struct fl_aggregate_ops *const igfl = &fl_aggregate_igfl_s;

static const struct mode {
    const char *attention, *scale;
} modes[] = {
    {"self", "raw"},          {"self", "inv_sqrt_d"}, {"self", "cosine"}, {"global", "raw"},
    {"global", "inv_sqrt_d"}, {"global", "cosine"},   {"time", "raw"},    {"time", "inv_sqrt_d"},
};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static struct fl_options *with(const struct mode *m, const char *more)
{
    char attention[40];
    char scale[40];

    (void)snprintf(attention, sizeof(attention), "attention=%s", m->attention);
    (void)snprintf(scale, sizeof(scale), "scale=%s", m->scale);
    return options_of(&igfl->policy, attention, scale, more, NULL);
}

static struct fl_options *equal(const struct fl_aggregate_ops *ops)
{
    return options_of(&ops->policy, "weights=equal", NULL);
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The weights of a component as IGFL, Algorithm 3, has them, from scratch. */
static void reference(const struct mode *m, double kappa, const struct fl_attention *in, double *w)
{
    size_t n = in->n;
    double d = (double)(is(m->attention, "time") ? in->model_entries : in->entries);
    double scale = is(m->scale, "inv_sqrt_d") ? kappa / sqrt(d) : kappa;
    size_t queries = is(m->attention, "self") ? n : 1;
    double mean_sq = 0;
    size_t i, j, q;

    for (i = 0; i < n * n; i++) {
        mean_sq += in->gram[i] / (double)(n * n);
    }
    for (j = 0; j < n; j++) {
        w[j] = 0;
    }
    for (q = 0; q < queries; q++) {
        double e[FED_CLIENTS];
        double sum = 0;

        for (j = 0; j < n; j++) {
            double own = in->gram[j * n + j];
            double query = in->gram[q * n + q];
            double score = in->gram[q * n + j];

            if (is(m->attention, "time")) {
                score = in->previous_dot[j];
            } else if (is(m->attention, "global")) {
                query = mean_sq;
                score = 0;
                for (i = 0; i < n; i++) {
                    score += in->gram[i * n + j] / (double)n;
                }
            }
            if (is(m->scale, "cosine")) {
                bool itself = is(m->attention, "self") && q == j;

                score = itself ? 1 : own * query > 0 ? score / sqrt(own * query) : 0;
            }
            e[j] = exp(scale * score);
            sum += e[j];
        }
        for (j = 0; j < n; j++) {
            w[j] += e[j] / sum / (double)queries;
        }
    }
}

static void reference_unit(const struct fed *f, const struct mode *m, double kappa, int l,
                           const size_t *who, size_t n, double *w)
{
    double gram[FED_CLIENTS * FED_CLIENTS];
    double dots[FED_CLIENTS];
    struct fl_attention in = {.n = n, .gram = gram, .previous_dot = dots};
    size_t i;

    fed_gram(f, l, -1, who, n, gram);
    for (i = 0; i < f->count; i++) {
        in.entries += fed_in(f, l, -1, i);
        in.model_entries += fed_in(f, -1, -1, i);
    }
    for (i = 0; i < n; i++) {
        dots[i] = f->clients[who[i]].previous_dot;
    }
    reference(m, kappa, &in, w);
}

static void init(struct fed *f, size_t n)
{
    size_t k;

    fed_init(f, n);
    for (k = 0; k < n; k++) {
        f->clients[k].previous_dot = 0.7 * (double)k - 1;
    }
}

TEST_EACH(the_three_attentions_match_a_plain_reference, 2 * MODES)
{
    static const size_t all[] = {0, 1, 2, 3, 4};
    double w[FED_CLIENTS];
    struct fed f;
    size_t i, k;

    init(&f, 5);
    if (_i >= MODES) { /* One did not move: its cosines are 0. */
        (void)memset(f.sent[3][0], 0, f.count * sizeof(float));
    }
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i % MODES], "kappa=0.5")), FL_OK);
    reference_unit(&f, &modes[_i % MODES], 0.5, -1, all, f.n, w);
    for (i = 0; i < f.count; i++) {
        double theta = (double)f.theta[i];

        for (k = 0; k < f.n; k++) {
            theta += w[k] * (double)f.sent[k][0][i];
        }
        ck_assert_double_eq_tol((double)f.theta_new[i], theta, 1e-6);
    }
    fed_done(&f);
}

/* Row i is the softmax of the similarities to update i; the weights are the mean of the rows. */
TEST_EACH(self_attention_gives_the_scores_of_each_pair_and_no_other_has_any, MODES)
{
    const struct mode *m = &modes[_i];
    struct fed f;
    size_t i, j;

    init(&f, 4);
    ck_assert_int_eq(fed_run(&f, igfl, with(m, "kappa=0.5")), FL_OK);
    for (j = 0; j < f.n; j++) {
        double column = 0;
        double row = 0;

        for (i = 0; i < f.n; i++) {
            column += f.mixing[i * f.n + j] / (double)f.n;
            row += f.mixing[j * f.n + i];
        }
        if (is(m->attention, "self")) {
            ck_assert_double_eq_tol(row, 1, 1e-12);
            ck_assert_double_eq_tol(column, f.attention[j], 1e-12);
        } else {
            ck_assert_double_eq(row, 0);
        }
    }
    fed_done(&f);
}

/* docs/algorithms.md#partial-uploads, 6; who sent nothing does not make others' uploads partial. */
TEST_EACH(under_partial_uploads_attention_is_over_the_units_senders, 2 * MODES)
{
    const struct mode *m = &modes[_i % MODES];
    struct fed f;
    size_t i, k;

    init(&f, 5);
    (void)memset(f.units[1], 0, FED_UNITS);
    if (_i < MODES) {
        f.units[0][0] = f.units[4][0] = f.units[3][2] = 0;
    }
    ck_assert_int_eq(fed_run(&f, igfl, with(m, "kappa=0.5")), FL_OK);
    for (i = 0; i < f.count; i++) {
        double theta = (double)f.theta[i];
        size_t l = fed_unit_of(&f, i);
        double w[FED_CLIENTS];
        size_t who[FED_CLIENTS];
        size_t n = fed_senders(&f, l, who);

        reference_unit(&f, m, 0.5, _i < MODES ? (int)l : -1, who, n, w);
        for (k = 0; k < n; k++) {
            theta += w[k] * (double)f.sent[who[k]][0][i];
        }
        ck_assert_double_eq_tol((double)f.theta_new[i], theta, 1e-6);
    }
    fed_done(&f);
}

/* Three ways to be the plain mean. */
static void is_plain_mean(struct fed *f, struct fl_options *o)
{
    float *mean = fed_model(f, &fl_aggregate_mean, equal(&fl_aggregate_mean));
    size_t i;

    ck_assert_int_eq(fed_run(f, igfl, o), FL_OK);
    for (i = 0; i < f->count; i++) {
        ck_assert_double_eq_tol((double)f->theta_new[i], (double)mean[i], 1e-6);
    }
    ck_assert_double_eq_tol(f->info.effective, (double)f->n, 1e-9);
    for (i = 0; i < f->n; i++) {
        ck_assert_double_eq_tol(f->attention[i], 1 / (double)f->n, 1e-9);
    }
    ck_assert_double_eq(f->info.self_weight, 0);
    free(mean);
}

TEST_EACH(kappa_zero_is_unweighted_fedavg, MODES)
{
    struct fed f;

    init(&f, 5);
    is_plain_mean(&f, with(&modes[_i], "kappa=0"));
    fed_done(&f);
}

TEST_EACH(equal_updates_are_unweighted_fedavg, MODES)
{
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    for (k = 1; k < f.n; k++) {
        (void)memcpy(f.sent[k][0], f.sent[0][0], f.count * sizeof(float));
    }
    is_plain_mean(&f, with(&modes[_i], "kappa=3"));
    fed_done(&f);
}

TEST(the_first_round_of_time_attention_is_unweighted_fedavg)
{
    struct fed f;

    fed_init(&f, 5);
    is_plain_mean(&f, options_of(&igfl->policy, "attention=time", NULL));
    fed_done(&f);
}

TEST_EACH(orthogonal_updates_of_equal_norm_weigh_the_same, 6)
{
    struct fed f;
    size_t i, k;

    fed_init(&f, 5);
    for (k = 0; k < f.n; k++) {
        for (i = 0; i < f.count; i++) {
            f.sent[k][0][i] = i < 30 && i % f.n == k ? 0.5f : 0;
        }
    }
    is_plain_mean(&f, with(&modes[_i], NULL)); /* self and global */
    fed_done(&f);
}

TEST_EACH(one_responder_is_taken_over_exactly, MODES)
{
    struct fed f;
    size_t i;

    init(&f, 1);
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], "weight_samples=yes")), FL_OK);
    for (i = 0; i < f.count; i++) {
        float expected = f.theta[i] + f.sent[0][0][i];

        ck_assert_mem_eq(&f.theta_new[i], &expected, sizeof(expected));
    }
    fed_done(&f);
}

/* Identity 14. Cosines of zeros, too. */
TEST_EACH(zero_updates_leave_theta_bit_for_bit, MODES)
{
    struct fed f;
    size_t k;

    fed_init(&f, 4);
    for (k = 0; k < f.n; k++) {
        (void)memset(f.sent[k][0], 0, f.count * sizeof(float));
    }
    f.theta[0] = -0.0f;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], NULL)), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    ck_assert_double_eq_tol(f.info.effective, 4, 1e-9);
    fed_done(&f);
}

/* Identity 15. */
TEST_EACH(permuting_clients_permutes_their_weights, 2 * MODES)
{
    static const size_t to[] = {3, 0, 4, 1, 2};
    float *before;
    struct fed f;
    size_t i;

    init(&f, 5);
    f.units[2][1] = (uint8_t)(_i < MODES);
    before = fed_model(&f, igfl, with(&modes[_i % MODES], NULL));
    fed_permute(&f, to);
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i % MODES], NULL)), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)before[i], 1e-6);
    }
    free(before);
    fed_done(&f);
}

/* What attend() itself gives. */
static void attend(const struct mode *m, const char *more, const struct fl_attention *in, double *w)
{
    struct fl_options *o = with(m, more);

    igfl->attend(o, in, w);
    fl_options_free(o);
}

TEST_EACH(self_and_global_agree_when_all_rows_of_the_gram_matrix_are_equal, 2)
{
    double gram[16], self[4], global[4];
    double none[4] = {0};
    struct fl_attention in = {.n = 4,
                              .entries = 9,
                              .model_entries = 9,
                              .gram = gram,
                              .samples = none,
                              .previous_dot = none};
    size_t i;

    for (i = 0; i < 16; i++) {
        gram[i] = 0.3 + 0.4 * (double)(i % 4);
    }
    attend(&modes[_i], NULL, &in, self);
    attend(&modes[_i + 3], NULL, &in, global);
    for (i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(self[i], global[i], 1e-12);
    }
    ck_assert_double_gt(self[3], self[0]);
}

/* A spread that overflows exp() by far; what clients report may be anything finite. */
TEST_EACH(weights_are_never_negative_and_sum_to_one, MODES)
{
    double dots[FED_CLIENTS], samples[FED_CLIENTS], w[FED_CLIENTS];
    double gram[FED_CLIENTS * FED_CLIENTS];
    struct fl_attention in = {.n = FED_CLIENTS,
                              .entries = 100,
                              .model_entries = 100,
                              .gram = gram,
                              .samples = samples,
                              .previous_dot = dots};
    struct fl_rng rng;
    int t;

    fl_rng_seed(&rng, 77);
    for (t = 0; t < 200; t++) {
        double x[FED_CLIENTS];
        double sum = 0;
        size_t i, j;

        for (i = 0; i < in.n; i++) {
            double size = pow(10, 80 * fl_rng_unit(&rng) - 40);

            x[i] = t % 5 == 0 ? 0 : size * fl_rng_normal(&rng);
            samples[i] = 1 + (double)fl_rng_below(&rng, 1000000);
            dots[i] = (i % 2 == 0 ? -1.7e308 : 1.7e308) * fl_rng_unit(&rng);
        }
        for (i = 0; i < in.n; i++) {
            for (j = 0; j < in.n; j++) {
                gram[i * in.n + j] = x[i] * x[j];
            }
        }
        attend(&modes[_i], t % 2 == 0 ? "weight_samples=yes" : "kappa=1000000", &in, w);
        for (i = 0; i < in.n; i++) {
            ck_assert(w[i] >= 0 && w[i] <= 1 + 1e-12);
            sum += w[i];
        }
        ck_assert_double_eq_tol(sum, 1, 1e-12);
    }
}

TEST_EACH(weights_can_be_multiplied_by_samples, MODES)
{
    double gram[9] = {1, 0.5, 0, 0.5, 2, 0.25, 0, 0.25, 1};
    double samples[3] = {1, 10, 100};
    double none[3] = {0};
    struct fl_attention in = {.n = 3,
                              .entries = 4,
                              .model_entries = 4,
                              .gram = gram,
                              .samples = samples,
                              .previous_dot = none};
    double plain[3], weighted[3];
    double sum = 0;
    size_t i;

    attend(&modes[_i], NULL, &in, plain);
    attend(&modes[_i], "weight_samples=yes", &in, weighted);
    for (i = 0; i < 3; i++) {
        sum += plain[i] * samples[i];
    }
    for (i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(weighted[i], plain[i] * samples[i] / sum, 1e-12);
    }
}

TEST(info_tells_how_many_clients_count)
{
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    for (i = 0; i < f.count; i++) {
        f.sent[3][0][i] = 9; /* wins it all, raw */
    }
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[0], NULL)), FL_OK);
    ck_assert_double_gt(f.info.effective, 1.5); /* every other query still has its own key */
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[3], NULL)), FL_OK);
    ck_assert_double_eq_tol(f.info.effective, 1, 1e-6);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)f.theta[i] + 9, 1e-5);
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean, equal(&fl_aggregate_mean)), FL_OK);
    ck_assert_double_eq(f.info.effective, 0);
    fed_done(&f);
}

TEST_EACH(block_and_distances_do_not_change_the_weights, 3)
{
    static const size_t blocks[] = {1, 7, 1000};
    float *before;
    struct fed f;
    size_t i, k;

    init(&f, 5);
    before = fed_model(&f, igfl, with(&modes[3], NULL));
    f.block = blocks[_i];
    f.distances = true;
    f.opened = 0;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[3], NULL)), FL_OK);
    ck_assert_uint_eq(f.opened, (size_t)2 * 5 * FED_UNITS);
    ck_assert_mem_eq(f.theta_new, before, f.count * sizeof(float));
    for (k = 0; k < f.n; k++) {
        double sum = 0;

        for (i = 0; i < f.count; i++) {
            double d = (double)f.theta_new[i] - ((double)f.theta[i] + (double)f.sent[k][0][i]);

            sum += fed_is_buffer(&f, i) ? 0 : d * d;
        }
        ck_assert_double_eq_tol(f.distance[k], sqrt(sum), 1e-5);
    }
    free(before);
    fed_done(&f);
}

/* IGFL is both: the displacement that IGFL-C is told is the attention-weighted one. */
static void keep_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    size_t i;

    (void)o;
    for (i = 0; i < b->n; i++) {
        b->state_new[0][i] = (float)b->step[i];
    }
}

TEST_EACH(a_part_reads_the_step_of_the_attention, MODES)
{
    static const char *const names[] = {"displacement", NULL};
    static const struct fl_agg_part part = {.n_state = 1, .state_names = names, .step = keep_step};
    struct fed f;
    size_t i;

    init(&f, 4);
    f.extra = &part;
    f.units[1][1] = 0;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], "server_lr=0.5")), FL_OK);
    for (i = 0; i < f.count; i++) {
        if (!fed_is_buffer(&f, i)) {
            ck_assert_double_eq_tol((double)f.state_new[0][i],
                                    (double)f.theta_new[i] - (double)f.theta[i], 1e-6);
        }
    }
    fed_done(&f);
}

/*
 * Identity 17: the caller leaves a client out that was blamed; one that sends nothing is as if
 * it were not there.
 */
TEST_EACH(one_nan_upload_is_that_client_absent_bit_for_bit, 2 * MODES)
{
    struct fed f, g;

    init(&f, 4);
    f.sent[3][0][50] = _i % 2 == 0 ? NAN : -INFINITY;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i % MODES], NULL)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 3);
    (void)memset(f.units[3], 0, FED_UNITS);
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i % MODES], NULL)), FL_OK);
    init(&g, 3);
    (void)memcpy(g.theta, f.theta, f.count * sizeof(float));
    for (size_t k = 0; k < 3; k++) {
        (void)memcpy(g.sent[k][0], f.sent[k][0], f.count * sizeof(float));
    }
    ck_assert_int_eq(fed_run(&g, igfl, with(&modes[_i % MODES], NULL)), FL_OK);
    ck_assert_mem_eq(f.theta_new, g.theta_new, f.count * sizeof(float));
    fed_done(&f);
    fed_done(&g);
}

TEST_EACH(an_inner_product_that_is_no_number_is_blamed_on_its_client, 2)
{
    struct fed f;

    init(&f, 4);
    f.clients[2].previous_dot = _i == 0 ? (double)NAN : (double)-INFINITY;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[6], NULL)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 2);
    fed_done(&f);
}

TEST_EACH(nobody_sending_anything_leaves_theta, MODES)
{
    struct fed f;

    init(&f, 3);
    (void)memset(f.units, 0, sizeof(f.units));
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], NULL)), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    ck_assert_double_eq(f.info.effective, 0);
    fed_done(&f);
}

TEST(time_attention_has_no_cosine)
{
    struct fl_options *o = options_of(&igfl->policy, "attention=time", "scale=cosine", NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(igfl->policy.check(o, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "inner product"));
    ck_assert(igfl->wants_previous_dot(o));
    ck_assert_int_eq(fl_options_set(o, "attention", "self", &err), FL_OK);
    ck_assert_int_eq(igfl->policy.check(o, &err), FL_OK);
    ck_assert(!igfl->wants_previous_dot(o));
    fl_options_free(o);
}

/* --- weights: equal --- */

static const struct fl_aggregate_ops *const weighing[] = {&fl_aggregate_mean,
                                                          &fl_aggregate_momentum};

TEST_EACH(equal_weights_are_the_plain_mean_of_the_units_senders, 2)
{
    const struct fl_aggregate_ops *ops = weighing[_i];
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    (void)memset(f.state[0], 0, f.count * sizeof(float));
    f.units[2][0] = f.units[4][1] = 0;
    ck_assert_int_eq(fed_run(&f, ops, equal(ops)), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i],
                                (double)f.theta[i] + fed_mean(&f, 0, i, false), 1e-6);
    }
    fed_done(&f);
}

static void no_step(const struct fl_options *o, const struct fl_agg_block *b)
{
    (void)o;
    (void)b;
}

/* SCAFFOLD: the corrections of a round cancel for equal weights only. */
TEST_EACH(beside_a_plain_mean_updates_weigh_the_same_unless_told_otherwise, 6)
{
    static const struct fl_agg_part plain = {.weighs_equally = true, .step = no_step};
    static const struct fl_agg_part other = {.step = no_step};
    static const struct {
        const struct fl_agg_part *part;
        const char *weights;
        bool samples;
    } cases[] = {{&plain, "weights=auto", false},  {&plain, "weights=samples", true},
                 {&plain, "weights=equal", false}, {&other, "weights=auto", true},
                 {&other, "weights=equal", false}, {NULL, "weights=auto", true}};
    struct fed f;
    size_t i;

    fed_init(&f, 5);
    f.extra = cases[_i].part;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mean,
                             options_of(&fl_aggregate_mean.policy, cases[_i].weights, NULL)),
                     FL_OK);
    for (i = 0; i < f.count; i++) {
        double mean = fed_mean(&f, 0, i, cases[_i].samples);

        ck_assert_double_eq_tol((double)f.theta_new[i], (double)f.theta[i] + mean, 1e-6);
    }
    fed_done(&f);
}

TEST_EACH(equal_weights_are_those_of_clients_with_as_many_samples_bit_for_bit, 3)
{
    static const struct fl_aggregate_ops *const all[] = {&fl_aggregate_mean, &fl_aggregate_momentum,
                                                         &fl_aggregate_adam};
    const struct fl_aggregate_ops *ops = all[_i];
    float *plain, *weighted;
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    weighted = fed_model(&f, ops, options_of(&ops->policy, NULL));
    plain = fed_model(&f, ops, equal(ops));
    ck_assert_mem_ne(plain, weighted, f.count * sizeof(float));
    for (k = 0; k < f.n; k++) {
        f.clients[k].weight = 600;
    }
    ck_assert_int_eq(fed_run(&f, ops, options_of(&ops->policy, NULL)), FL_OK);
    ck_assert_mem_eq(f.theta_new, plain, f.count * sizeof(float));
    free(plain);
    free(weighted);
    fed_done(&f);
}

/* --- share_cap --- */

/* The weights are those of the plain reference, bounded to 1.5 / n each, at every entry. */
TEST_EACH(no_weight_is_above_its_share_and_the_others_keep_their_proportions, MODES)
{
    static const size_t all[] = {0, 1, 2, 3, 4};
    struct fl_share scratch[FED_CLIENTS];
    double w[FED_CLIENTS], before[FED_CLIENTS];
    size_t i, k, n_capped = 0;
    double largest = 0;
    struct fed f;

    init(&f, 5);
    f.share_cap = 1.5;
    for (i = 0; i < f.count; i++) { /* One is like all others together, only longer. */
        f.sent[2][0][i] = 2 * (f.sent[0][0][i] + f.sent[1][0][i] + f.sent[3][0][i]);
    }
    f.clients[2].previous_dot = 9;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], "kappa=9")), FL_OK);
    reference_unit(&f, &modes[_i], 9, -1, all, f.n, w);
    (void)memcpy(before, w, sizeof(w));
    (void)fl_share_cap(w, NULL, f.n, 1.5, scratch, NULL);
    for (i = 0; i < f.count; i++) {
        double theta = (double)f.theta[i];

        for (k = 0; k < f.n; k++) {
            theta += w[k] * (double)f.sent[k][0][i];
        }
        ck_assert_double_eq_tol((double)f.theta_new[i], theta, 1e-5);
    }
    for (k = 0; k < f.n; k++) {
        bool lowered = before[k] > .3 * (1 + 1e-9);

        ck_assert_double_eq_tol(f.influence[k], lowered ? w[k] / before[k] : 1, 1e-6);
        n_capped += lowered;
        largest = fmax(largest, 5 * w[k]);
    }
    ck_assert_uint_eq(f.info.n_capped, n_capped);
    ck_assert_double_eq_tol(f.info.influence, largest, 1e-6);
    ck_assert_double_le(f.info.influence, 1.5 + 1e-9);
    fed_done(&f);
}

TEST(some_mode_lowers_a_weight)
{
    size_t lowered = 0;
    struct fed f;
    size_t m, i;

    for (m = 0; m < MODES; m++) {
        init(&f, 5);
        f.share_cap = 1.5;
        for (i = 0; i < f.count; i++) {
            f.sent[2][0][i] = 2 * (f.sent[0][0][i] + f.sent[1][0][i] + f.sent[3][0][i]);
        }
        f.clients[2].previous_dot = 9;
        ck_assert_int_eq(fed_run(&f, igfl, with(&modes[m], "kappa=9")), FL_OK);
        lowered += f.info.n_capped > 0;
        fed_done(&f);
    }
    ck_assert_uint_ge(lowered, 4);
}

TEST_EACH(weights_within_share_cap_give_the_same_model_bit_for_bit, MODES)
{
    struct fed f;
    float *plain;

    init(&f, 5);
    plain = fed_model(&f, igfl, with(&modes[_i], "kappa=0.001"));
    ck_assert_double_gt(f.info.influence, 0.9);
    f.share_cap = 1.5;
    ck_assert_int_eq(fed_run(&f, igfl, with(&modes[_i], "kappa=0.001")), FL_OK);
    ck_assert_mem_eq(plain, f.theta_new, f.count * sizeof(float));
    ck_assert_uint_eq(f.info.n_capped, 0);
    free(plain);
    fed_done(&f);
}

/* With weight_samples the fair share of a client is that of its samples. */
TEST(with_weights_by_samples_the_share_is_that_of_the_samples)
{
    struct fed f;

    init(&f, 5);
    f.clients[4].weight = 1e6;
    f.share_cap = 1.5;
    ck_assert_int_eq(
        fed_run(&f, igfl, options_of(&igfl->policy, "kappa=0", "weight_samples=yes", NULL)), FL_OK);
    ck_assert_uint_eq(f.info.n_capped, 0);
    ck_assert_double_eq_tol(f.info.influence, 1, 1e-9);
    fed_done(&f);
}

TEST(under_partial_uploads_the_share_is_that_of_the_layers_senders)
{
    struct fed f;
    size_t k, i;

    init(&f, 5);
    f.share_cap = 1.5;
    for (k = 2; k < 5; k++) {
        f.units[k][0] = 0;
    }
    for (i = 0; i < f.count; i++) {
        f.sent[0][0][i] *= 20;
    }
    ck_assert_int_eq(fed_run(&f, igfl, options_of(&igfl->policy, "kappa=9", NULL)), FL_OK);
    for (i = 0; i < f.count; i++) { /* Of two senders of layer 0 the long one has 3/4. */
        if (fed_unit_of(&f, i) == 0) {
            ck_assert_double_eq_tol((double)f.theta_new[i],
                                    (double)f.theta[i] + .75 * (double)f.sent[0][0][i] +
                                        .25 * (double)f.sent[1][0][i],
                                    1e-5);
        }
    }
    ck_assert_double_lt(f.influence[0], 1);
    fed_done(&f);
}
