/*
 * SCAFFOLD on quadratics, with clients that come while it runs: f_k(x) = a_k |x - b_k|^2 / 2, whose
 * mean has its minimum where it can be written down. The server's part is the solver's own; the
 * clients make their steps here, in floats as theirs are.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/solver/solver.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

enum { DIM = 4, CLIENTS = 400, CHOSEN = 5, STEPS = 10 };

#define RATE 0.1

struct client {
    double a, b[DIM];
    float c[DIM];
    float change[DIM]; /* of the round */
    float delta[DIM];
};

struct world {
    struct client clients[CLIENTS];
    size_t n; /* that have come */
    size_t members;
    double x[DIM];
    float sum[DIM], told[DIM];
    struct fl_options *o;
    bool rebuild;
    struct fl_rng rng;
    size_t rounds;
};

static void world_init(struct world *w, bool rebuild)
{
    size_t k;
    size_t i;

    *w = (struct world){.rebuild = rebuild};
    fl_rng_seed(&w->rng, 17);
    w->o = options_of(&fl_solver_scaffold.policy, rebuild ? "rebuild_dc=yes" : NULL, NULL);
    for (k = 0; k < CLIENTS; k++) {
        w->clients[k].a = 0.5 + fl_rng_unit(&w->rng);
        for (i = 0; i < DIM; i++) {
            w->clients[k].b[i] = 3 * fl_rng_normal(&w->rng);
        }
    }
}

static void world_done(struct world *w)
{
    fl_options_free(w->o);
}

/* As solver_scaffold.c: steps along g - c_k + c, then dc_k = -c - factor (y - x). */
static void train(struct world *w, struct client *client)
{
    double factor = 1 / (RATE * STEPS);
    size_t i;
    size_t s;

    for (i = 0; i < DIM; i++) {
        double y = w->x[i];

        for (s = 0; s < STEPS; s++) {
            y -=
                RATE * (client->a * (y - client->b[i]) - (double)client->c[i] + (double)w->told[i]);
        }
        client->delta[i] = (float)(y - w->x[i]);
        client->change[i] = (float)(-(double)w->told[i] - factor * (double)client->delta[i]);
        client->c[i] = (float)((double)client->c[i] + (double)client->change[i]);
    }
}

/* Different clients among those that have come. */
static size_t choose(struct world *w, struct client **chosen)
{
    size_t want = w->n < CHOSEN ? w->n : CHOSEN;
    size_t n = 0;

    while (n < want) {
        struct client *c = &w->clients[fl_rng_below(&w->rng, w->n)];
        size_t i = 0;

        while (i < n && chosen[i] != c) {
            i++;
        }
        chosen[i] = c;
        n += i == n;
    }
    return n;
}

static void round_of(struct world *w)
{
    struct client *chosen[CHOSEN];
    size_t n = choose(w, chosen);
    double mean[DIM] = {0};
    double scaled[DIM] = {0};
    double moved[DIM] = {0};
    const double *means = mean;
    const float *state = w->sum;
    float next[DIM];
    float *state_new = next;
    struct fl_agg_block block = {.n = DIM,
                                 .n_senders = n,
                                 .members = w->members,
                                 .means = &means,
                                 .scaled = scaled,
                                 .state = &state,
                                 .state_new = &state_new};
    size_t i;
    size_t k;

    w->rounds++;
    fl_solver_scaffold.server->tell(w->sum, w->members, w->told, DIM);
    for (k = 0; k < n; k++) {
        train(w, chosen[k]);
        for (i = 0; i < DIM; i++) {
            mean[i] += (double)chosen[k]->change[i] / (double)n;
            scaled[i] += (double)chosen[k]->delta[i] / (RATE * STEPS) / (double)n;
            moved[i] += (double)chosen[k]->delta[i] / (double)n;
        }
    }
    fl_solver_scaffold.server->step(w->o, &block);
    (void)memcpy(w->sum, next, sizeof(next));
    for (i = 0; i < DIM; i++) {
        w->x[i] += moved[i];
    }
}

/*
 * One rounding of the sum a round and one of c_k each time it is taken over: half of 2^-23 of the
 * largest of what is rounded, if all of them fell on one side.
 */
static void check_mean(struct world *w)
{
    double largest = 0;
    size_t i;
    size_t k;

    fl_solver_scaffold.server->tell(w->sum, w->members, w->told, DIM);
    for (i = 0; i < DIM; i++) {
        double mean = 0;

        for (k = 0; k < CLIENTS; k++) {
            mean += (double)w->clients[k].c[i] / (double)w->members;
            largest = fmax(largest, fabs((double)w->clients[k].c[i]));
        }
        ck_assert_double_le(fabs((double)w->told[i] - mean),
                            ldexp((double)(w->rounds + 1) * largest, -23));
    }
}

/* |grad| of the mean over all that have come, at x. */
static double gradient(const struct world *w)
{
    double square = 0;
    size_t i;
    size_t k;

    for (i = 0; i < DIM; i++) {
        double g = 0;

        for (k = 0; k < w->n; k++) {
            g += w->clients[k].a * (w->x[i] - w->clients[k].b[i]) / (double)w->n;
        }
        square += g * g;
    }
    return sqrt(square);
}

TEST_EACH(hundreds_that_join_leave_the_control_their_mean, 2)
{
    struct world *w = malloc(sizeof(*w));
    int t;

    world_init(w, _i % 2 == 1);
    for (t = 0; t < 3 * CLIENTS; t++) {
        w->n = t < CLIENTS ? (size_t)t + 1 : CLIENTS;
        w->members = w->n;
        check_mean(w); /* with the newcomer, before it did anything */
        round_of(w);
        check_mean(w);
    }
    world_done(w);
    free(w);
}

TEST_EACH(a_fixed_number_of_members_is_the_mean_over_so_many, 4)
{
    struct world *w = malloc(sizeof(*w));
    int t;

    world_init(w, _i % 2 == 1);
    w->members = _i < 2 ? CLIENTS : 30;
    for (t = 0; t < 60; t++) {
        w->n = t < 30 ? (size_t)t + 1 : 30;
        round_of(w);
        check_mean(w);
    }
    world_done(w);
    free(w);
}

/* With c = mean c_k the corrections of a round cancel, and the minimum of the mean is reached. */
TEST_EACH(clients_that_join_later_do_not_keep_it_from_the_minimum, 2)
{
    struct world *w = malloc(sizeof(*w));
    int t;

    world_init(w, _i == 1);
    for (t = 0; t < 1500; t++) {
        w->n = t < 100 ? 1 + (size_t)t / 5 : 20;
        w->members = w->n;
        round_of(w);
    }
    ck_assert_double_lt(gradient(w), 1e-4);
    world_done(w);
    free(w);
}
