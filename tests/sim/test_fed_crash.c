/*
 * For every write k of a federation: the process dies right before the write becomes
 * durable, or right after without hearing of it. It comes back, and every round is
 * committed once, with the very model that it would have had.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/sim/fed.h"

/* Odd, so that each n-th place has both kinds of a death: before a write and after it. */
#define STRIDE everyday_stride(5, 15)

static const struct {
    const char *preset;
    bool real_sessions;
    bool backfill;
    const char *own; /* personal models with this upload policy */
    const char *broadcast;
} scenarios[] = {
    {"fedavg", false, false, NULL, NULL},      {"fedldf", false, false, NULL, "float16"},
    {"adafl+fedldf", false, true, NULL, NULL}, {"adafl+fedldf", true, false, NULL, "lattice"},
    {"adafl", true, false, NULL, NULL},        {"fedavg", false, false, "hdfl", NULL},
    {"fedavg", true, false, "full", NULL},     {"fedavg", true, false, "none", NULL},
    {"fedavg", false, false, NULL, "lattice"},
};

#define N_SCENARIOS ((int)(sizeof(scenarios) / sizeof(scenarios[0])))

static struct fed_plan plan_of(int i)
{
    struct fed_plan plan = fed_plan_of(3, scenarios[i].preset, 5);

    plan.rounds = 4;
    plan.real_sessions = scenarios[i].real_sessions;
    plan.backfill = scenarios[i].backfill;
    plan.own = scenarios[i].own != NULL;
    plan.upload = scenarios[i].own;
    plan.broadcast = scenarios[i].broadcast;
    plan.halves = plan.draws = plan.broadcast != NULL && plan.real_sessions;
    plan.evaluate = true;
    plan.min_responders = 2;
    plan.min_clients = plan.n_clients; /* Who dies between two rounds is in the next one too. */
    plan.restart_ms = 50;
    return plan;
}

static uint64_t writes_of(const struct fed *fed, uint32_t node)
{
    return node == FED_SERVER ? fed->server.writer.n_writes
                              : fed->clients[node - FED_CLIENT0].writer.n_writes;
}

/* The model at the end, and how often `node` wrote. */
static uint64_t undisturbed(int i, uint32_t node, float theta[FED_FLOATS])
{
    struct fed_plan plan = plan_of(i);
    struct fed *fed;
    uint64_t n;

    plan.tears = true;
    fed = fed_new(&plan);
    fed_finish(fed);
    (void)memcpy(theta, fed->server.model.theta, sizeof(fed->server.model.theta));
    n = writes_of(fed, node);
    fed_free(fed);
    return n;
}

static void crash_everywhere(int i, uint32_t node)
{
    float theta[FED_FLOATS];
    uint64_t writes = undisturbed(i, node, theta);
    uint64_t k;

    ck_assert_uint_gt(writes, 0);
    for (k = 0; k < 2 * writes; k += STRIDE) {
        struct fed_plan plan = plan_of(i);
        struct fed *fed;

        plan.dies = node;
        plan.tears = true;
        plan.dies_at = k / 2 + 1;
        plan.dies_after = k % 2 == 1;
        fed = fed_new(&plan);
        fed_finish(fed);
        ck_assert_uint_eq(fed->n_deaths, 1);
        if (memcmp(fed->server.model.theta, theta, sizeof(theta)) != 0) {
            (void)fprintf(stderr, "%.*s", (int)fed->log.len, (const char *)fed->log.data);
            ck_abort_msg("%s: another model after a crash %s write %" PRIu64 " of node %" PRIu32,
                         plan.preset, k % 2 == 1 ? "after" : "before", k / 2 + 1, node);
        }
        fed_free(fed);
    }
}

TEST_EACH(the_server_may_die_at_any_write, N_SCENARIOS)
{
    crash_everywhere(_i, FED_SERVER);
}

TEST_EACH(a_client_may_die_at_any_write, N_SCENARIOS)
{
    crash_everywhere(_i, FED_CLIENT0 + 1);
}

/* The server dies at write k of every life: it must still get further each time. */
TEST_EACH(a_server_that_dies_again_and_again_gets_on, N_SCENARIOS)
{
    struct fed_plan plan = plan_of(_i);
    struct fed *fed;

    plan.rounds = 2;
    plan.tears = true;
    fed = fed_new(&plan);
    fed_die_at(fed, FED_SERVER, writes_of(fed, FED_SERVER) + 8, true);
    while (!fed->finished && fed_broken(fed) == NULL && fl_sim_now(fed->sim) < 200000 &&
           fl_sim_step(fed->sim))
    {
        if (!fl_sim_alive(fed->sim, FED_SERVER)) { /* the curse of the next life */
            fed_die_at(fed, FED_SERVER, writes_of(fed, FED_SERVER) + 8, true);
        }
    }
    ck_assert_msg(fed_broken(fed) == NULL, "%s", fed_broken(fed));
    ck_assert(fed->finished);
    ck_assert_uint_gt(fed->n_deaths, 2);
    ck_assert_uint_eq(fed->check.n_committed, 2);
    fed_free(fed);
}

/* What the server forgets for an operator is forgotten, wherever it dies afterwards. */
TEST_EACH(a_server_that_forgets_may_die_at_any_write, N_SCENARIOS)
{
    unsigned promised = 0;
    bool more = true;
    size_t k;

    for (k = 0; more; k += STRIDE) {
        struct fed_plan plan = plan_of(_i);
        struct fed *fed;

        plan.forget_every = 100;
        plan.calm_ms = 3000;
        plan.min_responders = 1;
        plan.dies = FED_SERVER;
        plan.dies_at = k / 2 + 1;
        plan.dies_after = k % 2 == 1;
        fed = fed_new(&plan);
        fed_finish(fed);
        more = fed->n_deaths > 0;
        promised += fed->n_promised;
        fed_free(fed);
    }
    ck_assert_uint_gt(k, 40);
    ck_assert_uint_gt(promised, k / STRIDE);
}

/* As is what it was paused for, or what an operator was told of an attempt. */
TEST_EACH(a_server_that_is_paused_may_die_at_any_write, 4)
{
    unsigned answered = 0;
    bool more = true;
    size_t k;

    for (k = 0; more; k += STRIDE) {
        struct fed_plan plan = plan_of(_i);
        struct fed *fed;

        plan.wish_every = 150;
        plan.calm_ms = 3000;
        plan.min_responders = 1;
        plan.dies = FED_SERVER;
        plan.dies_at = k / 2 + 1;
        plan.dies_after = k % 2 == 1;
        fed = fed_new(&plan);
        fed_finish(fed);
        more = fed->n_deaths > 0;
        answered += fed->n_wishes;
        fed_free(fed);
    }
    ck_assert_uint_gt(k, 40);
    ck_assert_uint_gt(answered, k / STRIDE);
}
