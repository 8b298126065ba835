/* The attacker that knows the rule of the server: what it sends is taken by the rule, and moves the
   result farther than the attack that does not know it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/vec.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"
#include "tools/fl_sim/attack/attack.h"

#define HONEST    12
#define ATTACKERS 3
#define ALL       (HONEST + ATTACKERS)
#define SEED      1
#define N         5000 /* More than a rule by entries gets at once. */

static const struct {
    const struct fl_robust_ops *ops;
    const char *mix;
} rules[] = {{&fl_robust_krum, NULL},
             {&fl_robust_multi_krum, NULL},
             {&fl_robust_mda, NULL},
             {&fl_robust_geometric_median, NULL},
             {&fl_robust_centered_clipping, NULL},
             {&fl_robust_clipping, NULL},
             {&fl_robust_dnc, NULL},
             {&fl_robust_signguard, NULL},
             {&fl_robust_fltrust, NULL},
             {&fl_robust_median, NULL},
             {&fl_robust_trimmed_mean, NULL},
             {&fl_robust_meamed, NULL},
             {&fl_robust_trimmed_mean, "mix=nnm"},
             {&fl_robust_krum, "mix=nnm"},
             {&fl_robust_geometric_median, "mix=bucketing"}};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static float updates[HONEST][N];
static const float *rows[HONEST];
static float centre[N];
static const float *server_centre; /* NULL: the rule has none */
static struct fl_attack_view view;

static void setup(void)
{
    struct fl_rng rng;
    size_t k;
    size_t i;

    fl_rng_seed(&rng, 3);
    for (k = 0; k < HONEST; k++) {
        for (i = 0; i < N; i++) {
            updates[k][i] = (float)(0.5 + fl_rng_normal(&rng));
            centre[i] = 0.5f;
        }
        rows[k] = updates[k];
    }
    server_centre = NULL;
    view = (struct fl_attack_view){
        .honest = rows, .n_honest = HONEST, .n_attackers = ATTACKERS, .n = N};
}

static struct fl_options *choose(size_t r)
{
    const struct fl_robust_ops *ops = rules[r].ops;
    struct fl_options *o = fl_robust_trusts(ops)
                               ? options_of(&ops->policy, NULL)
                               : options_of(&ops->policy, "f=3", rules[r].mix, NULL);

    view.rule = (struct fl_attack_rule){.ops = ops, .options = o};
    view.rule.centre = fl_robust_centred(ops, o) ? centre : NULL;
    /* What the server trained itself, it alone knows. */
    server_centre = fl_robust_trusts(ops) ? centre : view.rule.centre;
    return o;
}

/* --- the server's side, from its own code --- */

static const float *row_of(const float *malicious, size_t i)
{
    return i < HONEST ? rows[i] : malicious;
}

/* Of an update or the centre, which is zero with rules that have none. */
static const float *at_of(const float *malicious, size_t i)
{
    static const float nothing[N];

    return i < ALL ? row_of(malicious, i) : server_centre != NULL ? server_centre : nothing;
}

static double honest_mean(size_t i)
{
    double sum = 0;
    size_t k;

    for (k = 0; k < HONEST; k++) {
        sum += (double)updates[k][i];
    }
    return sum / HONEST;
}

/* The result of a rule by weights, and the weights. */
static void apply_weights(const struct fl_robust_updates *in, const float *malicious,
                          const struct fl_robust_mixtures *mixtures, double w[ALL + 1],
                          double result[N])
{
    double scores[ALL];
    size_t i;
    size_t k;

    ck_assert_int_eq(fl_robust_weigh(view.rule.ops, view.rule.options, in, mixtures, w, scores),
                     FL_OK);
    for (i = 0; i < N; i++) {
        result[i] = server_centre != NULL ? w[ALL] * (double)centre[i] : 0;
        for (k = 0; k < ALL; k++) {
            result[i] += w[k] * (double)row_of(malicious, k)[i];
        }
    }
}

static void apply_entries(const float *malicious, const struct fl_robust_mixtures *mixtures,
                          double result[N])
{
    static float all[ALL][N];
    double used[2 * ALL] = {0};
    double *scratch = calloc(fl_robust_scratch(ALL), sizeof(*scratch));
    size_t k;

    ck_assert_ptr_nonnull(scratch);
    for (k = 0; k < ALL; k++) {
        (void)memcpy(all[k], row_of(malicious, k), sizeof(all[k]));
    }
    fl_robust_combine(view.rule.ops, view.rule.options, mixtures,
                      &(struct fl_robust_values){.rows = all[0],
                                                 .n_rows = ALL,
                                                 .stride = N,
                                                 .n = N,
                                                 .scratch = scratch,
                                                 .out = result,
                                                 .used = used,
                                                 .apart = used + ALL});
    free(scratch);
}

/* The result of the rule, and of one by weights the weights. The buckets are those of the
   attackers. */
static void apply(const float *malicious, double w[ALL + 1], double result[N])
{
    static double gram[(ALL + 1) * (ALL + 1)];
    double means[ALL];
    double positive[ALL] = {0};
    double zero[ALL] = {0};
    const struct fl_robust_updates in = {
        .n = ALL, .gram = gram, .weights = means, .positive = positive, .zero = zero, .entries = N};
    struct fl_robust_mixtures mixtures;
    struct fl_rng rng;
    size_t i;
    size_t k;

    for (i = 0; i <= ALL; i++) {
        for (k = 0; k <= ALL; k++) {
            gram[i * (ALL + 1) + k] = fl_vec_dot(at_of(malicious, i), at_of(malicious, k), N);
        }
    }
    for (i = 0; i < ALL; i++) {
        means[i] = 1.0 / ALL;
        for (k = 0; k < N; k++) {
            positive[i] += row_of(malicious, i)[k] > 0;
        }
    }
    fl_rng_key(&rng, SEED, FL_RNG_ATTACK, 0, 1);
    ck_assert_int_eq(fl_robust_mix_updates(view.rule.options, &in, &rng, &mixtures), FL_OK);
    if (view.rule.ops->weigh != NULL) {
        apply_weights(&in, malicious, &mixtures, w, result);
    } else {
        apply_entries(malicious, &mixtures, result);
    }
    fl_robust_mixtures_done(&mixtures);
}

/* The update of the attack, and how far it moves the result of the rule from the honest mean, along
   the direction from that mean to the update, or that of `along`. */
static double made(enum fl_attack_kind kind, int perturbation, const float *along, float ret[N])
{
    const struct fl_attack attack = {
        .kind = kind, .perturbation = (enum fl_attack_perturbation)perturbation, .seed = SEED};
    static double result[N];
    double w[ALL + 1];
    double shift = 0;
    double length = 0;
    size_t i;

    ck_assert_int_eq(fl_attack_collude(&attack, &view, ret), FL_OK);
    apply(ret, w, result);
    for (i = 0; i < N; i++) {
        double p = (double)(along != NULL ? along : ret)[i] - honest_mean(i);

        shift += p * (result[i] - honest_mean(i));
        length += p * p;
    }
    return shift / sqrt(length);
}

TEST_CASE("tailored", setup, NULL);

TEST_EACH(a_tailored_update_moves_the_result_farther_than_min_max, RULES * 3)
{
    static float known[N];
    static float blind[N];
    struct fl_options *o = choose((size_t)_i / 3);
    double shift = made(FL_ATTACK_KIND_TAILORED, _i % 3, NULL, known);

    ck_assert_double_gt(shift, 0);
    ck_assert_double_ge(shift, made(FL_ATTACK_KIND_MIN_MAX, _i % 3, known, blind) - 1e-4);
    fl_options_free(o);
}

/* Where the rule leaves Min-Max out, or takes more than it asks for. */
TEST_EACH(a_tailored_update_is_strictly_worse_where_min_max_misses_the_limit_of_the_rule, 3)
{
    static const struct fl_robust_ops *const ops[] = {&fl_robust_krum, &fl_robust_multi_krum,
                                                      &fl_robust_trimmed_mean};
    static float known[N];
    static float blind[N];
    struct fl_options *o = options_of(&ops[_i]->policy, "f=3", NULL);

    view.rule = (struct fl_attack_rule){.ops = ops[_i], .options = o};
    ck_assert_double_gt(made(FL_ATTACK_KIND_TAILORED, FL_ATTACK_INVERSE_SIGN, NULL, known),
                        1.1 * made(FL_ATTACK_KIND_MIN_MAX, FL_ATTACK_INVERSE_SIGN, known, blind));
    fl_options_free(o);
}

TEST_EACH(the_rule_takes_the_update_of_the_attackers_and_leaves_a_longer_one_out, 2)
{
    static float known[N];
    static float longer[N];
    static double result[N];
    struct fl_options *o = choose((size_t)_i); /* krum, multi_krum */
    double w[ALL + 1];
    double taken = 0;
    size_t i;

    (void)made(FL_ATTACK_KIND_TAILORED, FL_ATTACK_INVERSE_SIGN, NULL, known);
    apply(known, w, result);
    for (i = HONEST; i < ALL; i++) {
        taken += w[i];
    }
    ck_assert_double_gt(taken, _i == 0 ? 0.99 : (double)ATTACKERS / ALL);
    for (i = 0; i < N; i++) {
        longer[i] = (float)(honest_mean(i) + 1.1 * ((double)known[i] - honest_mean(i)));
    }
    apply(longer, w, result);
    for (i = HONEST; i < ALL; i++) {
        ck_assert_double_eq_tol(w[i], 0, 1e-30);
    }
    fl_options_free(o);
}

TEST(under_the_mean_the_attackers_go_as_far_as_is_searched)
{
    const struct fl_attack min_max = {.kind = FL_ATTACK_KIND_MIN_MAX};
    const struct fl_attack tailored = {.kind = FL_ATTACK_KIND_TAILORED};
    static float known[N];
    static float blind[N];
    size_t i;

    ck_assert_int_eq(fl_attack_collude(&min_max, &view, blind), FL_OK);
    ck_assert_int_eq(fl_attack_collude(&tailored, &view, known), FL_OK);
    for (i = 0; i < N; i++) {
        double ratio = ((double)known[i] - honest_mean(i)) / ((double)blind[i] - honest_mean(i));

        ck_assert_double_gt(ratio, 31);
        ck_assert_double_lt(ratio, 32);
    }
}

TEST(with_too_few_updates_for_the_rule_the_attackers_send_the_mean)
{
    const struct fl_attack attack = {.kind = FL_ATTACK_KIND_TAILORED};
    static float known[N];
    struct fl_options *o = options_of(&fl_robust_krum.policy, "f=7", NULL);
    size_t i;

    view.rule = (struct fl_attack_rule){.ops = &fl_robust_krum, .options = o};
    ck_assert_int_eq(fl_attack_collude(&attack, &view, known), FL_OK);
    for (i = 0; i < N; i++) {
        ck_assert_double_eq_tol((double)known[i], honest_mean(i), 1e-6);
    }
    fl_options_free(o);
}
