#include <math.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fed.h"
#include "tests/libfl/strategy/solver_fixture.h"

/* FedDyn: on networks, with drop-outs and upload plans, and on quadratics. */

#define ROUNDS 12

/* Nothing is known yet, h_k = 0. */
TEST_EACH(the_first_round_of_a_client_is_fedprox_bit_for_bit, 4)
{
    struct fixture f;
    float *feddyn;
    float *prox;

    fixture_init(&f);
    feddyn = run(&f, &fl_solver_feddyn, "alpha=0.3", NULL, &setups[_i]);
    prox = run(&f, &fl_solver_prox, "mu=0.3", NULL, &setups[_i]);
    ck_assert_mem_eq(feddyn, prox, f.count * sizeof(float));
    free(feddyn);
    free(prox);
    fixture_done(&f);
}

/* A step uses g + alpha d_k + alpha (x - theta): with theta moved by -d_k it is FedProx's. */
TEST(the_state_of_a_client_moves_the_anchor_of_its_proximal_term)
{
    struct fl_solver_bytes kept;
    struct fl_solver_setup how = {.learning_rate = 0.1};
    struct fl_solver_setup moved = {.learning_rate = 0.1};
    struct fixture f;
    float *feddyn;
    float *prox;
    float *state;
    float *anchor;
    size_t i;

    fixture_init(&f);
    state = calloc(f.count, sizeof(float));
    anchor = calloc(f.count, sizeof(float));
    for (i = 0; i < f.count; i++) {
        state[i] = (float)(0.01 * sin((double)i));
        anchor[i] = f.start[i] - state[i];
    }
    kept = (struct fl_solver_bytes){state, f.count * sizeof(float)};
    how.kept = &kept;
    moved.anchor = anchor;
    feddyn = run(&f, &fl_solver_feddyn, "alpha=0.3", NULL, &how);
    prox = run(&f, &fl_solver_prox, "mu=0.3", NULL, &moved);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)feddyn[i], (double)prox[i], 1e-4);
    }
    free(feddyn);
    free(prox);
    free(state);
    free(anchor);
    fixture_done(&f);
}

static struct fed_plan random_plan(struct fl_rng *rng)
{
    struct fed_plan plan;
    size_t k;
    size_t l;

    for (k = 0; k < FED_CLIENTS; k++) {
        bool arrives = fl_rng_below(rng, 4) > 0;

        plan.trains[k] = fl_rng_below(rng, 3) > 0;
        for (l = 0; l < FED_UNITS; l++) {
            plan.counted[k][l] = arrives && fl_rng_below(rng, 3) > 0;
        }
    }
    return plan;
}

/* Algorithm 1 with the numbers of the round: mean of the senders, and D / N, unit by unit. */
static void check_model(const struct fed *f, const struct fed_plan *plan)
{
    size_t l;

    for (l = 0; l < FED_UNITS; l++) {
        const struct fl_unit *unit = fl_layout_unit(f->layout, l);
        size_t i;

        for (i = unit->offset; i < unit->offset + unit->n_trainable && l > 0; i++) {
            double mean = 0;
            double n = 0;
            size_t k;

            for (k = 0; k < FED_CLIENTS; k++) {
                if (plan->trains[k] && plan->counted[k][l]) {
                    mean += (double)f->delta[k][i];
                    n++;
                }
            }
            mean = n > 0 ? mean / n + (double)f->state[i] / (double)f->members : 0;
            ck_assert_double_eq_tol((double)f->theta[i], (double)f->before[i] + mean, 1e-5);
        }
    }
}

TEST_EACH(the_servers_sum_is_that_of_the_clients_with_drop_outs_plans_and_joins, 8)
{
    double largest = 0;
    struct fl_rng rng;
    struct fed f;
    size_t i;
    size_t k;
    int t;

    fl_rng_seed(&rng, 3);
    fed_init(&f, &fl_solver_feddyn, "alpha=0.2", &setups[_i % 4]);
    for (t = 0; t < ROUNDS; t++) {
        struct fed_plan plan = random_plan(&rng);

        f.members = _i < 4 ? FED_CLIENTS : 1 + (size_t)t / 3;
        for (k = f.members; k < FED_CLIENTS; k++) {
            plan.trains[k] = false;
        }
        fed_round(&f, &plan);
        check_model(&f, &plan);
        for (i = 0; i < f.count; i++) {
            double sum = 0;

            for (k = 0; k < FED_CLIENTS; k++) {
                sum += (double)f.own[k][i];
            }
            ck_assert_double_eq_tol((double)f.state[i], sum, 1e-5);
            largest = fmax(largest, fabs(sum));
        }
    }
    ck_assert_double_gt(largest, 0.01);
    fed_done(&f);
}

TEST(a_unit_that_no_client_sent_keeps_model_and_sum)
{
    struct fed_plan plan = fed_everybody();
    const struct fl_unit *unit;
    float *theta;
    float *sum;
    struct fed f;
    size_t k;

    fed_init(&f, &fl_solver_feddyn, NULL, &setups[0]);
    unit = fl_layout_unit(f.layout, 1);
    theta = calloc(f.count, sizeof(float));
    sum = calloc(f.count, sizeof(float));
    fed_round(&f, &plan);
    (void)memcpy(theta, f.theta, f.count * sizeof(float));
    (void)memcpy(sum, f.state, f.count * sizeof(float));
    for (k = 0; k < FED_CLIENTS; k++) {
        plan.counted[k][1] = false;
    }
    fed_round(&f, &plan);
    ck_assert_mem_eq(f.theta + unit->offset, theta + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_eq(f.state + unit->offset, sum + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_ne(f.theta, theta, unit->offset * sizeof(float));
    free(theta);
    free(sum);
    fed_done(&f);
}

/* The correction D / N follows the step of any aggregator. */
TEST(in_the_first_round_of_all_clients_the_mean_moves_the_model_twice)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;
    size_t i;
    size_t k;

    fed_init(&f, &fl_solver_feddyn, NULL, &setups[0]);
    fed_round(&f, &plan);
    for (i = fl_layout_unit(f.layout, 1)->offset; i < f.count; i++) {
        double mean = 0;

        for (k = 0; k < FED_CLIENTS; k++) {
            mean += (double)f.delta[k][i] / FED_CLIENTS;
        }
        ck_assert_double_eq_tol((double)f.theta[i], (double)f.before[i] + 2 * mean, 1e-6);
    }
    fed_done(&f);
}

/* --- quadratics, f_k(x) = a_k (x - b_k)^2 / 2, which clients minimise exactly --- */

enum { CLIENTS = 20 };

struct quadratic {
    double a[CLIENTS], b[CLIENTS], d[CLIENTS];
    double theta;
    float sum;
    struct fl_rng rng;
};

static double quadratic_optimum(const struct quadratic *q)
{
    double above = 0;
    double below = 0;
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        above += q->a[k] * q->b[k];
        below += q->a[k];
    }
    return above / below;
}

static void quadratic_init(struct quadratic *q)
{
    size_t k;

    *q = (struct quadratic){.theta = 5};
    fl_rng_seed(&q->rng, 23);
    for (k = 0; k < CLIENTS; k++) {
        q->a[k] = 0.2 + 2 * fl_rng_unit(&q->rng);
        q->b[k] = 3 * fl_rng_normal(&q->rng) + 2 * q->a[k];
    }
}

/* One round of `n` clients with the server's own step; `dynamic` false: FedProx. */
static void quadratic_round(struct quadratic *q, size_t n, double alpha, bool dynamic)
{
    double mean = 0;
    float next = 0;
    const float *state = &q->sum;
    float *state_new = &next;
    double step;
    bool chosen[CLIENTS] = {false};
    size_t k;
    size_t got;

    for (got = 0; got < n; got++) {
        do {
            k = fl_rng_below(&q->rng, CLIENTS);
        } while (chosen[k]);
        chosen[k] = true;
    }
    for (k = 0; k < CLIENTS; k++) {
        double h = dynamic ? -alpha * q->d[k] : 0;
        /* a (x - b) - h + alpha (x - theta) = 0 */
        double x = (q->a[k] * q->b[k] + h + alpha * q->theta) / (q->a[k] + alpha);

        if (chosen[k]) {
            mean += (x - q->theta) / (double)n;
            q->d[k] += x - q->theta;
        }
    }
    step = mean;
    if (dynamic) {
        fl_solver_feddyn.server->step(NULL, &(struct fl_agg_block){.n = 1,
                                                                   .n_senders = n,
                                                                   .members = CLIENTS,
                                                                   .scaled = &mean,
                                                                   .state = &state,
                                                                   .state_new = &state_new,
                                                                   .step = &step});
        q->sum = next;
    }
    q->theta += step;
}

/* Theorem 1 of the paper: the optimum of the mean, which FedProx does not have as its fixed point.
 */
TEST_EACH(it_ends_at_the_optimum_of_the_mean_where_fedprox_does_not, 4)
{
    static const struct {
        size_t n;
        double alpha;
    } rows[] = {{CLIENTS, 1}, {CLIENTS, 0.1}, {5, 1}, {2, 0.5}};
    struct quadratic dynamic;
    struct quadratic prox;
    size_t k;
    int t;

    quadratic_init(&dynamic);
    quadratic_init(&prox);
    for (t = 0; t < 3000; t++) {
        quadratic_round(&dynamic, rows[_i].n, rows[_i].alpha, true);
        quadratic_round(&prox, rows[_i].n, rows[_i].alpha, false);
    }
    ck_assert_double_eq_tol(dynamic.theta, quadratic_optimum(&dynamic), 1e-3);
    ck_assert_double_gt(fabs(prox.theta - quadratic_optimum(&prox)), 0.05);
    for (k = 0; k < CLIENTS; k++) { /* h_k is the gradient of f_k there. */
        ck_assert_double_eq_tol(-rows[_i].alpha * dynamic.d[k],
                                dynamic.a[k] * (dynamic.theta - dynamic.b[k]), 1e-2);
    }
}
