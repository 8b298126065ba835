/* Aggregates that mix personal models: mcsa, heur_fedamp and fedamp. */
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

/* What is compared by itself. */
enum part { OF_MODEL, OF_UNIT, OF_TENSOR };

struct kind {
    const struct fl_aggregate_ops *ops;
    const char *options[3];
    enum part part;
    bool samples, column;
    double sigma, self, alpha; /* self < 0: one over the senders */
};

static const struct kind kinds[] = {
    {&fl_aggregate_mcsa, {"sigma=3"}, OF_TENSOR, true, false, 3, 0, 0},
    {&fl_aggregate_mcsa, {"sigma=3", "component=unit"}, OF_UNIT, true, false, 3, 0, 0},
    {&fl_aggregate_mcsa, {"sigma=9", "size_weight=no"}, OF_TENSOR, false, false, 9, 0, 0},
    {&fl_aggregate_mcsa, {"sigma=3", "softmax=column"}, OF_TENSOR, true, true, 3, 0, 0},
    {&fl_aggregate_mcsa,
     {"sigma=5", "softmax=column", "size_weight=no"},
     OF_TENSOR,
     false,
     true,
     5,
     0,
     0},
    {&fl_aggregate_heur_fedamp, {"sigma=4"}, OF_MODEL, false, false, 4, -1, 0},
    {&fl_aggregate_heur_fedamp, {"sigma=4", "self_weight=0.3"}, OF_MODEL, false, false, 4, .3, 0},
    {&fl_aggregate_fedamp, {"sigma=8"}, OF_MODEL, false, false, 8, 0, -1},
    {&fl_aggregate_fedamp, {"sigma=8", "alpha=2"}, OF_MODEL, false, false, 8, 0, 2},
    {&fl_aggregate_fedamp, {"sigma=8", "alpha=1000"}, OF_MODEL, false, false, 8, 0, 1000},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct fl_options *options_of_kind(const struct kind *kind)
{
    return options_of(&kind->ops->policy, kind->options[0], kind->options[1], kind->options[2],
                      NULL);
}

static double cosine(const double *gram, size_t n, size_t i, size_t j)
{
    double norms = sqrt(gram[i * n + i] * gram[j * n + j]);

    return i == j ? 1 : norms > 0 ? gram[i * n + j] / norms : 0;
}

/* q[i][k] as the sections have it, from scratch. */
static double reference_q(const struct kind *kind, const double *gram, const double *samples,
                          size_t n, size_t i, size_t k)
{
    double self = kind->self < 0 ? 1 / (double)n : kind->self;
    double alpha = kind->alpha < 0 ? kind->sigma / (double)n : kind->alpha;
    double sum = 0, all = 0, own = 0;
    size_t h;

    if (kind->ops == &fl_aggregate_mcsa) {
        for (h = 0; h < n; h++) {
            double below = 0, m = kind->samples ? samples[h] : 1;
            size_t x;

            for (x = 0; x < n; x++) {
                below += exp(kind->sigma * cosine(gram, n, kind->column ? h : i, x));
            }
            sum = m * exp(kind->sigma * cosine(gram, n, i, h)) / below;
            all += sum;
            own = h == k ? sum : own;
        }
        return own / all;
    }
    for (h = 0; h < n; h++) {
        double x =
            kind->alpha == 0
                ? exp(kind->sigma * cosine(gram, n, i, h))
                : alpha / kind->sigma *
                      exp(-(gram[i * n + i] + gram[h * n + h] - 2 * gram[i * n + h]) / kind->sigma);

        all += h == i ? 0 : x;
        own = h == k ? x : own;
    }
    if (kind->alpha == 0) {
        return n == 1 ? 1 : k == i ? self : (1 - self) * own / all;
    }
    all = k == i ? all : fmax(all, 1);
    return k == i ? fmax(1 - all, 0) : own / all;
}

/* All of q, with what client k has in the models of the others bounded to share_cap times its share
   of a mean; the rest of a row is its own. */
static void reference_rows(const struct fed *f, const struct kind *kind, const double *gram,
                           const double *samples, size_t n, double *q)
{
    double whole[FED_CLIENTS * FED_CLIENTS];
    double fairs = 0;
    size_t i, k;

    for (i = 0; i < n * n; i++) {
        whole[i] = reference_q(kind, gram, samples, n, i / n, i % n);
        q[i] = whole[i];
    }
    for (k = 0; k < n; k++) {
        fairs += kind->samples ? samples[k] : 1;
    }
    for (k = 0; f->share_cap > 0 && k < n; k++) {
        double share = (kind->samples ? samples[k] : 1) / fairs;
        double column = 0;

        for (i = 0; i < n; i++) {
            column += i != k ? whole[i * n + k] : 0;
        }
        for (i = 0; i < n; i++) {
            double left = fmin(1, f->share_cap * (double)(n - 1) * share / column);

            if (i != k) {
                q[i * n + i] += q[i * n + k] * (1 - left);
                q[i * n + k] *= left;
            }
        }
    }
}

/* Personalized models and theta of unit l, entry by entry. */
static void matches_reference(const struct fed *f, const struct kind *kind, bool partial, size_t x)
{
    double gram[FED_CLIENTS * FED_CLIENTS], samples[FED_CLIENTS];
    double q[FED_CLIENTS * FED_CLIENTS];
    size_t who[FED_CLIENTS];
    size_t l = fed_unit_of(f, x);
    size_t n = fed_senders(f, l, who);
    int tensor = 0;
    int unit = kind->part == OF_MODEL && !partial ? -1 : (int)l;
    size_t i, k;

    while (fl_layout_tensor(f->layout, (size_t)tensor) != fed_tensor_of(f, x)) {
        tensor++;
    }
    fed_gram(f, unit, kind->part == OF_TENSOR ? tensor : -1, who, n, gram);
    for (k = 0; k < n; k++) {
        samples[k] = f->clients[who[k]].weight;
    }
    reference_rows(f, kind, gram, samples, n, q);
    for (i = 0; i < n; i++) {
        double mixed = fed_is_buffer(f, x) ? (double)f->sent[who[i]][0][x] : 0;

        for (k = 0; k < n && !fed_is_buffer(f, x); k++) {
            mixed += q[i * n + k] * (double)f->sent[who[k]][0][x];
        }
        ck_assert_double_eq_tol((double)f->mixed[who[i]][x], mixed, 1e-6);
    }
    ck_assert_double_eq_tol((double)f->theta_new[x],
                            n > 0 ? fed_mean(f, 0, x, true) : (double)f->theta[x], 1e-6);
}

/* What was told is what was sent: whole units. */
static void told_what_was_sent(const struct fed *f)
{
    size_t k, l;

    for (k = 0; k < f->n; k++) {
        for (l = 0; l < FED_UNITS; l++) {
            ck_assert_uint_eq(f->told[k][l],
                              f->units[k][l] ? fl_layout_unit(f->layout, l)->count : 0);
        }
    }
}

static void info_matches_reference(const struct fed *f, const struct kind *kind)
{
    double gram[FED_CLIENTS * FED_CLIENTS];
    static const size_t who[] = {0, 1, 2, 3, 4};
    double self = 0, effective = 0;
    size_t i, k;

    fed_gram(f, -1, -1, who, 5, gram);
    for (i = 0; i < 5; i++) {
        double entropy = 0;

        for (k = 0; k < 5; k++) {
            double q = reference_q(kind, gram, NULL, 5, i, k);

            entropy -= q > 0 ? q * log(q) : 0;
            if (i < FED_MIXED && k < FED_MIXED) {
                ck_assert_double_eq_tol(f->mixing[i * FED_MIXED + k], q, 1e-9);
            }
        }
        effective += exp(entropy) / 5;
        self += reference_q(kind, gram, NULL, 5, i, i) / 5;
    }
    ck_assert_double_eq_tol(f->info.effective, effective, 1e-9);
    ck_assert_double_eq_tol(f->info.self_weight, self, 1e-9);
}

/* Means over the components: a row of all clients sums to 1, a cut one to less. */
TEST_EACH(mixing_weights_are_shares_of_the_own_model_and_of_others, KINDS)
{
    const struct kind *kind = &kinds[_i];
    struct fed f;
    size_t n;
    size_t i;
    size_t k;

    for (n = FED_MIXED; n <= 5; n++) {
        fed_init(&f, n);
        ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
        for (i = 0; i < FED_MIXED; i++) {
            double sum = 0;

            for (k = 0; k < FED_MIXED; k++) {
                ck_assert_double_ge(f.mixing[i * FED_MIXED + k], 0);
                sum += f.mixing[i * FED_MIXED + k];
            }
            if (n == FED_MIXED) {
                ck_assert_double_eq_tol(sum, 1, 1e-9);
            } else {
                ck_assert_double_le(sum, 1 + 1e-9);
            }
        }
        fed_done(&f);
    }
}

TEST_EACH(personal_models_match_a_plain_double_reference, 2 * KINDS)
{
    const struct kind *kind = &kinds[_i % KINDS];
    struct fed f;
    size_t x;

    fed_init(&f, 5);
    if (_i >= KINDS) { /* Biases that start at 0, and a whole model of zeros. */
        x = fl_layout_find(f.layout, "fc1.bias")->offset;
        (void)memset(f.sent[1][0] + x, 0, 5 * sizeof(float));
        (void)memset(f.sent[3][0], 0, f.count * sizeof(float));
        f.block = 4;
    }
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    told_what_was_sent(&f);
    for (x = 0; x < f.count; x++) {
        matches_reference(&f, kind, false, x);
    }
    if (kind->part == OF_MODEL) {
        info_matches_reference(&f, kind);
    }
    fed_done(&f);
}

/* Per unit over its senders; a client is told the units that it sent. */
TEST_EACH(under_partial_uploads_units_are_mixed_by_themselves, KINDS)
{
    const struct kind *kind = &kinds[_i];
    struct fed f;
    size_t x;

    fed_init(&f, 5);
    f.units[0][0] = f.units[3][0] = 0;
    (void)memset(f.units[2], 0, FED_UNITS);
    f.units[0][2] = f.units[1][2] = f.units[3][2] = f.units[4][2] = 0;
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    told_what_was_sent(&f);
    for (x = 0; x < f.count; x++) {
        matches_reference(&f, kind, true, x);
    }
    x = fl_layout_unit(f.layout, 2)->offset;
    ck_assert_mem_eq(f.theta_new + x, f.theta + x, (f.count - x) * sizeof(float));
    fed_done(&f);
}

/* Clients that sent nothing do not make the uploads partial (whole models of some). */
TEST_EACH(whole_models_of_some_clients_are_compared_as_models, KINDS)
{
    const struct kind *kind = &kinds[_i];
    struct fed f;
    size_t x;

    fed_init(&f, 5);
    (void)memset(f.units[0], 0, FED_UNITS);
    (void)memset(f.units[3], 0, FED_UNITS);
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    told_what_was_sent(&f);
    for (x = 0; x < f.count; x++) {
        matches_reference(&f, kind, false, x);
    }
    fed_done(&f);
}

static double trainable_gap(const struct fed *f, size_t k, const float *want)
{
    double gap = 0;
    size_t x;

    for (x = 0; x < f->count; x++) {
        if (!fed_is_buffer(f, x)) {
            gap = fmax(gap, fabs((double)f->mixed[k][x] - (double)want[x]));
        }
    }
    return gap;
}

/* Identities 10 and 13. */
TEST_EACH(sigma_zero_mixes_the_mean_for_everybody, 5)
{
    static const struct {
        const struct fl_aggregate_ops *ops;
        const char *option;
        bool samples;
    } means[] = {
        {&fl_aggregate_mcsa, "component=tensor", true},
        {&fl_aggregate_mcsa, "component=unit", true},
        {&fl_aggregate_mcsa, "size_weight=no", false},
        {&fl_aggregate_mcsa, "softmax=column", true},
        {&fl_aggregate_heur_fedamp, "self_weight=0", false},
    };
    float *mean;
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    (void)memset(f.theta, 0, f.count * sizeof(float));
    mean = fed_model(
        &f, &fl_aggregate_mean,
        options_of(&fl_aggregate_mean.policy, means[_i].samples ? NULL : "weights=equal", NULL));
    ck_assert_int_eq(fed_run(&f, means[_i].ops,
                             options_of(&means[_i].ops->policy, "sigma=0", means[_i].option, NULL)),
                     FL_OK);
    for (k = 0; k < f.n; k++) {
        ck_assert_double_le(trainable_gap(&f, k, mean), 1e-6);
    }
    ck_assert(means[_i].samples || fabs(f.info.effective - 5) < 1e-9);
    free(mean);
    fed_done(&f);
}

TEST_EACH(everybody_keeps_its_own_model_at_the_limit, 3)
{
    static const struct {
        const struct fl_aggregate_ops *ops;
        const char *option;
    } limits[] = {
        {&fl_aggregate_mcsa, "sigma=1000000"},
        {&fl_aggregate_heur_fedamp, "self_weight=1"},
        {&fl_aggregate_fedamp, "sigma=0.000001"},
    };
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    ck_assert_int_eq(
        fed_run(&f, limits[_i].ops, options_of(&limits[_i].ops->policy, limits[_i].option, NULL)),
        FL_OK);
    for (k = 0; k < f.n; k++) {
        ck_assert_mem_eq(f.mixed[k], f.sent[k][0], f.count * sizeof(float));
    }
    ck_assert_double_eq_tol(f.info.self_weight, 1, 1e-12);
    ck_assert_double_eq_tol(f.info.effective, 1, 1e-12);
    fed_done(&f);
}

TEST_EACH(a_single_sender_gets_its_own_model_back, KINDS)
{
    struct fed f;

    fed_init(&f, 1);
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    ck_assert_mem_eq(f.mixed[0], f.sent[0][0], f.count * sizeof(float));
    ck_assert_mem_eq(f.theta_new, f.sent[0][0], f.count * sizeof(float));
    fed_done(&f);
}

TEST_EACH(equal_models_are_a_fixed_point, KINDS)
{
    struct fed f;
    size_t k, x;

    fed_init(&f, 5);
    for (k = 1; k < f.n; k++) {
        (void)memcpy(f.sent[k][0], f.sent[0][0], f.count * sizeof(float));
    }
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    for (k = 0; k < f.n; k++) {
        ck_assert_double_le(trainable_gap(&f, k, f.sent[0][0]), 1e-6);
    }
    for (x = 0; x < f.count; x++) {
        ck_assert_double_eq_tol((double)f.theta_new[x], (double)f.sent[0][0][x], 1e-6);
    }
    fed_done(&f);
}

/* Identity 10: the personalized models of the others change by its weight times what was added. */
TEST_EACH(scaling_a_component_of_one_client_does_not_change_the_weights, 5)
{
    const struct fl_unit *unit;
    double gram[25], samples[5];
    static const size_t who[] = {0, 1, 2, 3, 4};
    struct fed f;
    size_t k, x;

    fed_init(&f, 5);
    unit = fl_layout_unit(f.layout, 2);
    fed_gram(&f, 2, -1, who, 5, gram);
    for (k = 0; k < 5; k++) {
        samples[k] = f.clients[k].weight;
    }
    for (x = unit->offset; x < f.count; x++) {
        f.sent[2][0][x] *= 8;
    }
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    for (x = unit->offset; x < f.count; x++) {
        for (k = 0; k < 5; k++) {
            double mixed = 0;
            size_t j;

            for (j = 0; j < 5; j++) {
                mixed += reference_q(&kinds[_i], gram, samples, 5, k, j) * (double)f.sent[j][0][x];
            }
            ck_assert_double_eq_tol((double)f.mixed[k][x], mixed, 1e-6);
        }
    }
    fed_done(&f);
}

/* 8.1: biases that start at 0. The released code gives NaN. */
TEST_EACH(a_component_of_zeros_is_like_itself_only, 2)
{
    const struct fl_tensor *bias;
    struct fed f;
    size_t k, x;

    fed_init(&f, 4);
    bias = fl_layout_find(f.layout, "fc1.bias");
    for (k = 0; k < f.n; k++) {
        for (x = bias->offset; x < bias->offset + bias->count; x++) {
            f.sent[k][0][x] = _i == 0 || k == 1 ? 0 : 1;
        }
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mcsa,
                             options_of(&fl_aggregate_mcsa.policy, "size_weight=no", NULL)),
                     FL_OK);
    for (x = bias->offset; x < bias->offset + bias->count; x++) {
        ck_assert_double_eq_tol((double)f.mixed[1][x], 0, 1e-12);
        ck_assert_double_eq_tol((double)f.mixed[0][x], _i == 0 ? 0 : 1, 1e-12);
    }
    fed_done(&f);
}

/* Everything but buffers zero: every norm is 0. */
TEST_EACH(models_of_zeros_stay_zeros, KINDS)
{
    struct fed f;
    size_t k, x;

    fed_init(&f, 4);
    for (k = 0; k < f.n; k++) {
        for (x = 0; x < f.count; x++) {
            f.sent[k][0][x] = fed_is_buffer(&f, x) ? (float)(k + 1) : 0;
        }
    }
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    for (k = 0; k < f.n; k++) {
        ck_assert_mem_eq(f.mixed[k], f.sent[k][0], f.count * sizeof(float));
    }
    fed_done(&f);
}

/* Identity 15. */
TEST_EACH(permuting_clients_permutes_their_personal_models, KINDS)
{
    static const size_t to[] = {3, 0, 4, 1, 2};
    struct fed f, g;
    size_t k, x;

    fed_init(&f, 5);
    fed_init(&g, 5);
    fed_permute(&g, to);
    f.units[3][1] = g.units[to[3]][1] = 0;
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    ck_assert_int_eq(fed_run(&g, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    for (x = 0; x < f.count; x++) {
        ck_assert_double_eq_tol((double)g.theta_new[x], (double)f.theta_new[x], 1e-6);
        for (k = 0; k < f.n; k++) {
            ck_assert_double_eq_tol((double)g.mixed[to[k]][x], (double)f.mixed[k][x], 1e-6);
        }
    }
    fed_done(&f);
    fed_done(&g);
}

/* Any Gram matrix of finite models, squared norms from 1e-80 to 1e80, some zero. */
TEST_EACH(rows_are_never_negative_and_sum_to_one, KINDS)
{
    static const char *const sigma[] = {"sigma=50", "sigma=1000000", "sigma=1e-9"};
    enum { N = 7 };
    double gram[N * N], samples[N], q[N * N];
    struct fl_attention in = {
        .n = N, .entries = 5, .model_entries = 5, .gram = gram, .samples = samples};
    struct fl_rng rng;
    int t;

    fl_rng_seed(&rng, 5);
    for (t = 0; t < 100; t++) {
        struct fl_options *o = options_of(&kinds[_i].ops->policy, kinds[_i].options[0],
                                          kinds[_i].options[1], kinds[_i].options[2], NULL);
        double v[N][3];
        size_t i, j;

        ck_assert_int_eq(fl_options_set(o, "sigma", sigma[t % 3] + 6, NULL), FL_OK);
        for (i = 0; i < N; i++) {
            double size = t % 4 == 0 ? 1 : pow(10, 80 * fl_rng_unit(&rng) - 40);

            for (j = 0; j < 3; j++) {
                v[i][j] = i % 3 == 2 && t % 2 == 0 ? 0 : size * fl_rng_normal(&rng);
            }
            samples[i] = 1 + (double)fl_rng_below(&rng, 1000000);
        }
        for (i = 0; i < N; i++) {
            for (j = 0; j < N; j++) {
                gram[i * N + j] = v[i][0] * v[j][0] + v[i][1] * v[j][1] + v[i][2] * v[j][2];
            }
        }
        kinds[_i].ops->attend(o, &in, q);
        for (i = 0; i < N; i++) {
            double sum = 0;

            for (j = 0; j < N; j++) {
                ck_assert(q[i * N + j] >= 0 && q[i * N + j] <= 1 + 1e-12);
                sum += q[i * N + j];
            }
            ck_assert_double_eq_tol(sum, 1, 1e-12);
        }
        fl_options_free(o);
    }
}

TEST(fedamp_never_takes_more_of_the_others_than_there_is)
{
    struct fed f;
    size_t k, x;

    fed_init(&f, 3);
    for (k = 0; k < f.n; k++) {
        for (x = 0; x < f.count; x++) {
            f.sent[k][0][x] = (float)k; /* 0, 1, 2 */
        }
    }
    ck_assert_int_eq(
        fed_run(&f, &fl_aggregate_fedamp,
                options_of(&fl_aggregate_fedamp.policy, "alpha=1000000000", "sigma=1000000", NULL)),
        FL_OK);
    /* All pulls are alike and too strong: the mean of the others. */
    ck_assert_double_eq_tol((double)f.mixed[0][0], 1.5, 1e-3);
    ck_assert_double_eq_tol((double)f.mixed[1][0], 1, 1e-3);
    ck_assert_double_eq_tol((double)f.mixed[2][0], 0.5, 1e-3);
    ck_assert_double_eq(f.info.self_weight, 0);
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_fedamp,
                             options_of(&fl_aggregate_fedamp.policy, "sigma=1000000", NULL)),
                     FL_OK);
    ck_assert_double_eq_tol((double)f.mixed[0][0], 1, 1e-3); /* alpha 0: at most the mean */
    ck_assert_double_ge(f.info.self_weight, 1.0 / 3);
    fed_done(&f);
}

/* What rounding leaves of equal models far from 0 may be below 0. */
TEST(fedamp_takes_models_closer_than_rounding_for_equal)
{
    struct fl_options *o = options_of(&fl_aggregate_fedamp.policy, "sigma=1e-9", NULL);
    double gram[4] = {1e16, 1e16 + 4, 1e16 + 4, 1e16};
    double q[4];
    struct fl_attention in = {.n = 2, .entries = 5, .model_entries = 5, .gram = gram};
    size_t i;

    fl_aggregate_fedamp.attend(o, &in, q);
    for (i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(q[i], 0.5, 1e-12);
    }
    fl_options_free(o);
}

static int read_anything(struct fl_codec_decoder *d, float *out, size_t n)
{
    int rv = d->reader.read(d->reader.ctx, d->offset, out, n * sizeof(*out));

    d->offset += n * sizeof(*out);
    d->next += n;
    return rv;
}

/* Codecs refuse such values; whatever they let through ends here. */
TEST_EACH(what_is_not_finite_never_gets_through, KINDS)
{
    struct fl_codec_ops codec = fl_codec_float32;
    struct fed f;

    fed_init(&f, 4);
    codec.read = read_anything;
    f.codec = &codec;
    f.sent[2][0][10] = _i % 2 == 0 ? NAN : INFINITY;
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 4);
    ck_assert_str_eq(f.err.msg, "the new model is not finite in unit 'fc1'");
    fed_done(&f);
}

static enum fl_agg_scope of_unit(const struct fl_options *o)
{
    (void)o;
    return FL_SCOPE_UNIT;
}

static void threes(const struct fl_options *o, const struct fl_attention *in, double *out)
{
    size_t i;

    (void)o;
    for (i = 0; i < in->n * in->n; i++) {
        out[i] = 3;
    }
}

TEST(a_personal_model_that_overflows_is_refused)
{
    static const struct fl_aggregate_ops ops = {.policy = {.name = "test", .options = fl_opt_none},
                                                .scope = of_unit,
                                                .attend = threes,
                                                .mixes = true};
    struct fed f;

    fed_init(&f, 2);
    f.sent[0][0][60] = f.sent[1][0][60] = 3e38f;
    ck_assert_int_eq(fed_run(&f, &ops, options_of(&ops.policy, NULL)), FL_OK); /* a buffer */
    f.sent[0][0][65] = f.sent[1][0][65] = 3e38f;
    ck_assert_int_eq(fed_run(&f, &ops, options_of(&ops.policy, NULL)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 2);
    ck_assert_str_eq(f.err.msg, "a personalized model is not finite in unit 'fc2'");
    fed_done(&f);
}

TEST_EACH(one_nan_upload_is_blamed_and_then_is_that_client_absent_bit_for_bit, KINDS)
{
    struct fed f, g;
    size_t k;

    fed_init(&f, 4);
    fed_init(&g, 4);
    f.sent[3][0][57] = NAN; /* a buffer, which no inner product reads */
    f.sent[3][0][20] = _i % 2 == 0 ? INFINITY : f.sent[3][0][20];
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 3);
    (void)memset(f.units[3], 0, FED_UNITS);
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    g.n = 3;
    ck_assert_int_eq(fed_run(&g, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    ck_assert_mem_eq(f.theta_new, g.theta_new, f.count * sizeof(float));
    for (k = 0; k < 3; k++) {
        ck_assert_mem_eq(f.mixed[k], g.mixed[k], f.count * sizeof(float));
    }
    fed_done(&f);
    fed_done(&g);
}

TEST(an_error_of_whoever_takes_the_personal_models_ends_the_pass)
{
    struct fed f;

    fed_init(&f, 3);
    f.refuse = FL_EIO;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_mcsa, options_of(&fl_aggregate_mcsa.policy, NULL)),
                     FL_EIO);
    ck_assert_uint_eq(f.blamed, 3);
    ck_assert_str_eq(f.err.msg, "personalized model of update 0: no room");
    ck_assert_uint_eq(f.told[0][0], 31);
    ck_assert_uint_eq(f.told[1][0], 0);
    fed_done(&f);
}

TEST_EACH(nobody_sending_anything_leaves_theta_and_tells_nobody, KINDS)
{
    struct fed f;

    fed_init(&f, 3);
    (void)memset(f.units, 0, sizeof(f.units));
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    told_what_was_sent(&f);
    f.n = 0;
    ck_assert_int_eq(fed_run(&f, kinds[_i].ops, options_of_kind(&kinds[_i])), FL_OK);
    ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
    f.n = 3;
    fed_done(&f);
}

/* --- share_cap --- */

/* Client 2 sends the mean of the others: all of them are like it, and unlike each other. */
static void imitate(struct fed *f)
{
    size_t x;

    for (x = 0; x < f->count; x++) {
        f->sent[2][0][x] =
            (f->sent[0][0][x] + f->sent[1][0][x] + f->sent[3][0][x] + f->sent[4][0][x]) / 4;
    }
}

TEST_EACH(what_one_client_has_in_the_models_of_the_others_is_bounded, KINDS)
{
    const struct kind *kind = &kinds[_i];
    struct fed f;
    size_t x;

    fed_init(&f, 5);
    imitate(&f);
    f.share_cap = 1.1;
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    for (x = 0; x < f.count; x++) {
        matches_reference(&f, kind, false, x);
    }
    ck_assert_double_le(f.info.influence, 1.1 + 1e-9);
    ck_assert_uint_eq(f.info.n_capped > 0, f.influence[0] < 1 || f.influence[1] < 1 ||
                                               f.influence[2] < 1 || f.influence[3] < 1 ||
                                               f.influence[4] < 1);
    fed_done(&f);
}

TEST(who_imitates_all_others_is_the_one_that_is_bounded)
{
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    imitate(&f);
    f.share_cap = 1.5;
    ck_assert_int_eq(
        fed_run(&f, &fl_aggregate_heur_fedamp, options_of(&fl_aggregate_heur_fedamp.policy, NULL)),
        FL_OK);
    for (k = 0; k < f.n; k++) {
        ck_assert_uint_eq(f.influence[k] < 1, k == 2);
    }
    ck_assert_uint_eq(f.info.n_capped, 1);
    ck_assert_double_eq_tol(f.info.influence, 1.5, 1e-9);
    fed_done(&f);
}

TEST_EACH(rows_within_share_cap_give_the_same_models_bit_for_bit, KINDS)
{
    const struct kind *kind = &kinds[_i];
    float *plain[FED_CLIENTS];
    struct fed f;
    size_t k;

    fed_init(&f, 5);
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    for (k = 0; k < f.n; k++) {
        plain[k] = fed_floats(f.count);
        (void)memcpy(plain[k], f.mixed[k], f.count * sizeof(float));
    }
    f.share_cap = 5;
    ck_assert_int_eq(fed_run(&f, kind->ops, options_of_kind(kind)), FL_OK);
    ck_assert_uint_eq(f.info.n_capped, 0);
    for (k = 0; k < f.n; k++) {
        ck_assert_mem_eq(plain[k], f.mixed[k], f.count * sizeof(float));
        free(plain[k]);
    }
    fed_done(&f);
}
