/* FedMix and NaiveMix: steps against plain networks in double, summaries, bad summaries. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/num/vec.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/fedmix_fixture.h"

#define HIDDEN 11
#define BATCH  5
#define STEPS  12

static const char *const plain_layers[] = {"dense 11", "relu", "dense 4"};
static const char *const rich_layers[] = {"dense 20", "bn", "relu", "dropout 0.4",
                                          "dense 11", "bn", "relu", "dense 4"};

struct fixture {
    struct fl_net *net;
    float *start; /* exported */
    size_t count, block;
    float x[STEPS][BATCH * INPUTS];
    int32_t y[STEPS][BATCH];
    struct fl_buf means; /* a union */
    struct fl_solver_bytes input;
};

static void fixture_init(struct fixture *f, bool rich)
{
    struct fl_net_spec spec = {.input = {INPUTS},
                               .n_input = 1,
                               .layers = rich ? rich_layers : plain_layers,
                               .n_layers = rich ? ARRAY_LEN(rich_layers) : ARRAY_LEN(plain_layers)};
    struct fl_rng rng;
    size_t s, i;

    (void)memset(f, 0, sizeof(*f));
    ck_assert_int_eq(fl_net_create(&spec, BATCH, &f->net, NULL), FL_OK);
    fl_rng_seed(&rng, 4);
    fl_net_init(f->net, &rng);
    f->count = fl_layout_count(fl_net_layout(f->net));
    f->block = fl_net_block(f->net);
    f->start = calloc(f->count, sizeof(float));
    fl_net_get(f->net, f->start);
    for (s = 0; s < STEPS; s++) {
        for (i = 0; i < (size_t)BATCH * INPUTS; i++) {
            f->x[s][i] = (float)fl_rng_normal(&rng);
        }
        for (i = 0; i < BATCH; i++) {
            f->y[s][i] = (int32_t)fl_rng_below(&rng, CLASSES);
        }
    }
    fl_buf_init(&f->means, SIZE_MAX);
}

static void fixture_done(struct fixture *f)
{
    fl_net_free(f->net);
    free(f->start);
    fl_buf_done(&f->means);
}

static void add_summary(struct fixture *f, uint32_t n, double size, uint64_t seed)
{
    f->input = put_summary(&f->means, n, size, seed);
}

/* `n_steps` steps; the model, exported, and the loss of the last step. */
static float *run(struct fixture *f, const struct fl_solver_ops *ops, const char *option1,
                  const char *option2, const struct fl_solver_setup *how, size_t n_steps,
                  double *ret_loss)
{
    struct fl_options *o = options_of(&ops->policy, option1, option2, NULL);
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    float *model = calloc(f->count, sizeof(float));
    struct fl_err err = {0};
    double loss = 0;
    size_t s;

    fl_net_set(f->net, f->start);
    fl_net_seed(f->net, 77);
    setup.net = f->net;
    setup.n_steps = n_steps;
    setup.round = how->round > 0 ? how->round : 1;
    setup.inputs = &f->input;
    ck_assert_msg(ops->create(o, &setup, &solver, &err) == FL_OK, "%s", err.msg);
    for (s = 0; s < n_steps; s++) {
        loss = ops->step(solver, f->x[s], f->y[s], BATCH - s % 2);
        ck_assert(isfinite(loss));
    }
    ops->destroy(solver);
    fl_net_get(f->net, model);
    fl_options_free(o);
    if (ret_loss != NULL) {
        *ret_loss = loss;
    }
    return model;
}

static void assert_bits(const struct fixture *f, float *have, float *want)
{
    ck_assert_mem_eq(have, want, f->count * sizeof(float));
    ck_assert_mem_ne(have, f->start, f->count * sizeof(float));
    free(have);
    free(want);
}

static const struct fl_solver_setup setups[] = {
    {.learning_rate = 0.1},
    {.learning_rate = 0.1, .momentum = 0.9},
    {.learning_rate = 0.03, .momentum = 0.5, .weight_decay = 0.001},
};

/* With dropout and batch-norm in the network. */
TEST_EACH(lambda_zero_is_sgd_bit_for_bit, ARRAY_LEN(setups))
{
    struct fixture f;

    fixture_init(&f, true);
    add_summary(&f, 3, 1, 2);
    assert_bits(&f, run(&f, &fl_solver_fedmix, "lambda=0", NULL, &setups[_i], STEPS, NULL),
                run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i], STEPS, NULL));
    assert_bits(&f, run(&f, &fl_solver_naivemix, "lambda=0", NULL, &setups[_i], STEPS, NULL),
                run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i], STEPS, NULL));
    assert_bits(&f, run(&f, &fl_solver_fedmix, "lambda=0", "mu=0.3", &setups[_i], STEPS, NULL),
                run(&f, &fl_solver_prox, "mu=0.3", NULL, &setups[_i], STEPS, NULL));
    fixture_done(&f);
}

TEST(without_means_or_to_adapt_it_is_sgd_bit_for_bit)
{
    struct fl_solver_setup adapting = setups[1];
    struct fixture f;

    fixture_init(&f, true);
    assert_bits(&f, run(&f, &fl_solver_fedmix, NULL, NULL, &setups[1], STEPS, NULL),
                run(&f, &fl_solver_sgd, NULL, NULL, &setups[1], STEPS, NULL));
    assert_bits(&f, run(&f, &fl_solver_naivemix, NULL, NULL, &setups[1], STEPS, NULL),
                run(&f, &fl_solver_sgd, NULL, NULL, &setups[1], STEPS, NULL));
    add_summary(&f, 3, 1, 2);
    adapting.adapting = true;
    assert_bits(&f, run(&f, &fl_solver_fedmix, NULL, NULL, &adapting, STEPS, NULL),
                run(&f, &fl_solver_sgd, NULL, NULL, &setups[1], STEPS, NULL));
    fixture_done(&f);
}

/* --- the plain network in double, its gradient, and the derivative of that (R-operator) --- */

struct plain {
    double w1[HIDDEN][INPUTS], b1[HIDDEN], w2[CLASSES][HIDDEN], b2[CLASSES];
};
#define PLAIN_COUNT (sizeof(struct plain) / sizeof(double))

/* The exported order of the fixture's plain network is that of the members. */
static void plain_from(struct plain *p, const float *exported)
{
    double *to = &p->w1[0][0];
    size_t i;

    for (i = 0; i < PLAIN_COUNT; i++) {
        to[i] = (double)exported[i];
    }
}

/*
 * Adds `share` times the gradient of the cross-entropy towards `t` at z to `g`, and with v not
 * NULL `share_r` times the derivative of that gradient along v to `r`, for ReLU's frozen pattern.
 * Returns the loss; *ret_slope is its derivative along v, *ret_margin how far along v the
 * nearest bend is.
 */
static double plain_sample(const struct plain *p, const double *z, const double *t, double share,
                           struct plain *g, const double *v, double share_r, struct plain *r,
                           double *ret_slope, double *ret_margin)
{
    double h[HIDDEN], rh[HIDDEN], a[CLASSES], ra[CLASSES], d[CLASSES], rd[CLASSES];
    double sum = 0, mean = 0, loss = 0;
    size_t i, j;

    for (i = 0; i < HIDDEN; i++) {
        double s = p->b1[i];
        double rs = 0;

        for (j = 0; j < INPUTS; j++) {
            s += p->w1[i][j] * z[j];
            rs += p->w1[i][j] * v[j];
        }
        *ret_margin = fmin(*ret_margin, fabs(s) / fabs(rs));
        h[i] = s > 0 ? s : 0;
        rh[i] = s > 0 ? rs : 0;
    }
    for (i = 0; i < CLASSES; i++) {
        a[i] = p->b2[i];
        ra[i] = 0;
        for (j = 0; j < HIDDEN; j++) {
            a[i] += p->w2[i][j] * h[j];
            ra[i] += p->w2[i][j] * rh[j];
        }
        sum += exp(a[i]);
    }
    for (i = 0; i < CLASSES; i++) {
        mean += exp(a[i]) / sum * ra[i];
    }
    for (i = 0; i < CLASSES; i++) {
        double q = exp(a[i]) / sum;

        d[i] = q - t[i];
        rd[i] = q * (ra[i] - mean);
        loss -= t[i] * log(q);
        *ret_slope += share_r * d[i] * ra[i];
    }
    for (i = 0; i < CLASSES; i++) {
        g->b2[i] += share * d[i];
        r->b2[i] += share_r * rd[i];
        for (j = 0; j < HIDDEN; j++) {
            g->w2[i][j] += share * d[i] * h[j];
            r->w2[i][j] += share_r * (rd[i] * h[j] + d[i] * rh[j]);
        }
    }
    for (j = 0; j < HIDDEN; j++) {
        double back = 0;
        double rback = 0;

        for (i = 0; i < CLASSES && h[j] > 0; i++) {
            back += p->w2[i][j] * d[i];
            rback += p->w2[i][j] * rd[i];
        }
        g->b1[j] += share * back;
        r->b1[j] += share_r * rback;
        for (i = 0; i < INPUTS; i++) {
            g->w1[j][i] += share * back * z[i];
            r->w1[j][i] += share_r * (rback * z[i] + back * v[i]);
        }
    }
    return loss;
}

/* The R-operator itself against the quotient of gradients in double, or nobody could trust it. */
TEST(the_oracle_agrees_with_differences_in_double)
{
    struct plain p, g, r, up, down, none;
    double z[INPUTS], shifted[INPUTS], v[INPUTS], t[CLASSES] = {0, 0.3, 0.7, 0};
    double margin = (double)INFINITY, slope = 0, unused = 0;
    const double *rr = &r.w1[0][0];
    const double *a = &up.w1[0][0];
    const double *b = &down.w1[0][0];
    double e = 1e-6;
    struct fixture f;
    double above, below;
    size_t i;

    fixture_init(&f, false);
    plain_from(&p, f.start);
    (void)memset(&g, 0, sizeof(g));
    r = up = down = none = g;
    for (i = 0; i < INPUTS; i++) {
        z[i] = (double)f.x[0][i];
        v[i] = (double)f.x[1][i];
    }
    (void)plain_sample(&p, z, t, 1, &g, v, 1, &r, &slope, &margin);
    ck_assert_double_gt(margin, 10 * e);
    for (i = 0; i < INPUTS; i++) {
        shifted[i] = z[i] + e * v[i];
    }
    above = plain_sample(&p, shifted, t, 1, &up, v, 0, &none, &unused, &margin);
    for (i = 0; i < INPUTS; i++) {
        shifted[i] = z[i] - e * v[i];
    }
    below = plain_sample(&p, shifted, t, 1, &down, v, 0, &none, &unused, &margin);
    ck_assert_double_eq_tol(slope, (above - below) / (2 * e), 1e-8);
    for (i = 0; i < PLAIN_COUNT; i++) {
        ck_assert_double_eq_tol(rr[i], (a[i] - b[i]) / (2 * e), 1e-8);
    }
    fixture_done(&f);
}

/*
 * Identity 18: what one step moves the model by, less what the oracle has for the soft targets, is
 * the third term, up to the rounding of the model. With more than one sample it also shows that the
 * term is averaged once. Bends of ReLU lie as near as they happen to, with some of the means nearer
 * than the thousandth of ||z|| / ||xbar|| at which a difference quotient would look.
 */
TEST_EACH(the_third_term_agrees_with_the_r_operator, 3)
{
    static const struct {
        const char *lambda, *q;
        double l, factor;
    } rows[] = {
        {"lambda=0.05", "q=one_minus_lambda", 0.05, 0.95},
        {"lambda=0.2", "q=one", 0.2, 1},
        {"lambda=0.2", "q=one_minus_lambda", 0.2, 0.8},
    };
    struct fl_solver_setup how = {.learning_rate = 1};
    double l = rows[_i].l;
    size_t near_bends = 0;
    uint64_t seed;

    for (seed = 1; seed <= 100; seed++) {
        struct plain p, g, r, none;
        const double *gg = &g.w1[0][0];
        const double *rr = &r.w1[0][0];
        double margin = (double)INFINITY, unused = (double)INFINITY, slope = 0, loss = 0, have_loss;
        double error = 0, size = 0, z_size = 0, v_size = 0;
        const float *pair;
        float *moved;
        struct fixture f;
        size_t b, i;

        fixture_init(&f, false);
        add_summary(&f, 1, 0.7, seed);
        for (i = 0; i < (size_t)BATCH * INPUTS; i++) {
            f.x[0][i] *= 1 + 0.01f * (float)seed; /* moves past bends */
        }
        pair = (const float *)(const void *)(f.means.data + FL__MIX_HEADER);
        moved = run(&f, &fl_solver_fedmix, rows[_i].lambda, rows[_i].q, &how, 1, &have_loss);
        plain_from(&p, f.start);
        (void)memset(&g, 0, sizeof(g));
        r = none = g;
        for (b = 0; b < BATCH; b++) {
            double z[INPUTS], v[INPUTS], t[CLASSES], hard[CLASSES] = {0};

            for (i = 0; i < INPUTS; i++) {
                z[i] = (1 - l) * (double)f.x[0][b * INPUTS + i];
                v[i] = (double)pair[i];
                z_size += z[i] * z[i] / BATCH;
                v_size += b == 0 ? v[i] * v[i] : 0;
            }
            hard[f.y[0][b]] = 1;
            for (i = 0; i < CLASSES; i++) {
                t[i] = (1 - l) * hard[i] + l * (double)pair[INPUTS + i];
            }
            loss += plain_sample(&p, z, t, 1.0 / BATCH, &g, v, 0, &none, &unused, &unused) / BATCH;
            (void)plain_sample(&p, z, hard, 0, &none, v, l * rows[_i].factor / BATCH, &r, &slope,
                               &margin);
        }
        near_bends += margin < 1e-3 * sqrt(z_size / v_size);
        for (i = 0; i < PLAIN_COUNT; i++) {
            double third = (double)f.start[i] - (double)moved[i] - gg[i];

            error += (third - rr[i]) * (third - rr[i]);
            size += rr[i] * rr[i];
        }
        ck_assert_double_gt(sqrt(size), 1e-3);
        ck_assert_double_lt(sqrt(error), 1e-5 * sqrt(size) + 1e-6);
        ck_assert_double_eq_tol(have_loss, loss + slope, 1e-6);
        free(moved);
        fixture_done(&f);
    }
    ck_assert_uint_gt(near_bends, 0);
}

/* --- steps by hand --- */

struct hand {
    struct fl_net *net;
    float rate;
};

static void descend(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct hand *hand = ctx;

    (void)offset;
    fl_vec_axpy(params, -hand->rate, grad, n);
}

/* Steps of rate 0.1 on (1 - lambda) x + share v towards (1 - lambda) y + lambda label. */
static float *by_hand(struct fixture *f, float lambda, float share)
{
    const float *v = (const float *)(const void *)(f->means.data + FL__MIX_HEADER);
    struct hand hand = {.net = f->net, .rate = 0.1f};
    float *model = calloc(f->count, sizeof(float));
    float z[BATCH * INPUTS], t[BATCH * CLASSES];
    size_t s, b, i;

    fl_net_set(f->net, f->start);
    fl_net_seed(f->net, 77);
    for (s = 0; s < STEPS; s++) {
        struct fl_net_pass pass = {.x = z, .target = t, .batch = BATCH - s % 2, .track = true};

        for (b = 0; b < BATCH; b++) {
            for (i = 0; i < INPUTS; i++) {
                float kept = f->x[s][b * INPUTS + i] * (1 - lambda);

                z[b * INPUTS + i] = kept + share * v[i];
            }
            for (i = 0; i < CLASSES; i++) {
                float part = lambda * v[INPUTS + i];

                t[b * CLASSES + i] = part + ((size_t)f->y[s][b] == i ? 1 - lambda : 0);
            }
        }
        (void)fl_net_pass(f->net, &pass, descend, &hand);
    }
    fl_net_get(f->net, model);
    return model;
}

TEST_EACH(a_mean_of_zero_is_label_smoothing_of_smaller_inputs, 2)
{
    struct fl_solver_setup how = {.learning_rate = 0.1};
    struct fixture f;

    fixture_init(&f, _i != 0);
    add_summary(&f, 1, 0, 2);
    assert_bits(&f, run(&f, &fl_solver_fedmix, "lambda=0.25", NULL, &how, STEPS, NULL),
                by_hand(&f, 0.25f, 0));
    fixture_done(&f);
}

TEST_EACH(naivemix_trains_on_the_personal_model, 2)
{
    struct fl_solver_setup how = {.learning_rate = 0.1};
    struct fixture f;
    float *have, *want;
    size_t i;

    fixture_init(&f, _i != 0);
    add_summary(&f, 1, 0.5, 2);
    have = run(&f, &fl_solver_naivemix, "lambda=0.25", NULL, &how, STEPS, NULL);
    want = by_hand(&f, 0.25f, 0.25f);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)have[i], (double)want[i], 2e-6);
    }
    free(have);
    free(want);
    fixture_done(&f);
}

/* (1 - lambda) times the index of a word is the index of another one. */
TEST_EACH(indices_of_words_are_not_mixed, 2)
{
    static const char *const layers[] = {"embedding 9 4", "lstm 3", "last", "dense 4"};
    const struct fl_net_spec spec = {
        .input = {INPUTS}, .n_input = 1, .layers = layers, .n_layers = ARRAY_LEN(layers)};
    const struct fl_solver_ops *ops = _i == 0 ? &fl_solver_fedmix : &fl_solver_naivemix;
    struct fl_options *o = options_of(&ops->policy, "lambda=0.25", NULL, NULL);
    struct fl_solver_setup setup = {.learning_rate = 0.1};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_net_create(&spec, BATCH, &setup.net, NULL), FL_OK);
    ck_assert_int_eq(ops->create(o, &setup, &solver, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "begins with 'embedding', whose inputs are indices"));
    fl_net_free(setup.net);
    fl_options_free(o);
}

/* Running statistics and the masks are those of one pass at z. */
TEST(the_third_term_moves_no_statistics_and_draws_no_mask)
{
    struct fl_solver_setup how = {.learning_rate = 0};
    const struct fl_layout *layout;
    struct fixture f;
    float *with, *without;
    size_t buffers = 0;
    size_t i, t;

    fixture_init(&f, true);
    add_summary(&f, 1, 0.5, 2);
    with = run(&f, &fl_solver_fedmix, "lambda=0.25", NULL, &how, STEPS, NULL);
    (void)memset(f.means.data + FL__MIX_HEADER, 0, INPUTS * sizeof(float));
    without = run(&f, &fl_solver_fedmix, "lambda=0.25", NULL, &how, STEPS, NULL);
    layout = fl_net_layout(f.net);
    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        buffers += tensor->buffer;
        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            ck_assert(with[i] == without[i]);
            ck_assert(tensor->buffer || with[i] == f.start[i]);
            ck_assert(!tensor->buffer || with[i] != f.start[i]);
        }
    }
    ck_assert_uint_eq(buffers, 4);
    free(with);
    free(without);
    fixture_done(&f);
}

TEST(seed_and_round_decide_which_means_are_drawn)
{
    struct fl_solver_setup how = {.learning_rate = 0.1, .seed = 5, .round = 3};
    struct fixture f;
    float *a, *b, *c, *d;
    size_t size;

    fixture_init(&f, false);
    add_summary(&f, 3, 1, 2);
    add_summary(&f, 2, 1, 3);
    size = f.count * sizeof(float);
    a = run(&f, &fl_solver_fedmix, NULL, NULL, &how, STEPS, NULL);
    b = run(&f, &fl_solver_fedmix, NULL, NULL, &how, STEPS, NULL);
    how.seed = 6;
    c = run(&f, &fl_solver_fedmix, NULL, NULL, &how, STEPS, NULL);
    how.seed = 5;
    how.round = 4;
    d = run(&f, &fl_solver_fedmix, NULL, NULL, &how, STEPS, NULL);
    ck_assert_mem_eq(a, b, size);
    ck_assert_mem_ne(a, c, size);
    ck_assert_mem_ne(a, d, size);
    ck_assert_mem_ne(c, d, size);
    free(a);
    free(b);
    free(c);
    free(d);
    fixture_done(&f);
}

/* What the server hands out is not believed either. */
TEST(a_malformed_union_is_refused_before_training)
{
    struct fl_options *o = options_of(&fl_solver_fedmix.policy, NULL);
    struct fl_solver_setup setup = {.learning_rate = 0.1, .n_steps = 1, .round = 1};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};
    struct fixture f;

    fixture_init(&f, false);
    add_summary(&f, 2, 1, 1);
    add_summary(&f, 3, 1, 1);
    setup.net = f.net;
    setup.inputs = &f.input;
    f.input.len -= 4;
    ck_assert_int_eq(fl_solver_fedmix.create(o, &setup, &solver, &err), FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, "byte 104") != NULL, "%s", err.msg);
    f.input.len += 4;
    f.means.data[104] = 'X';
    ck_assert_int_eq(fl_solver_fedmix.create(o, &setup, &solver, &err), FL_EFORMAT);
    f.means.data[104] = 'F';
    f.means.data[4] = INPUTS + 1;
    ck_assert_int_eq(fl_solver_fedmix.create(o, &setup, &solver, &err), FL_EFORMAT);
    f.means.data[4] = INPUTS;
    ck_assert_int_eq(fl_solver_fedmix.create(o, &setup, &solver, &err), FL_OK);
    fl_solver_fedmix.destroy(solver);
    fl_options_free(o);
    fixture_done(&f);
}
