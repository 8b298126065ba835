/*
 * Whole federations in a virtual world. Rules are checked after every step by
 * tests/lib/coord_check and by the world itself; a broken one prints the plan that shows
 * it, to be run again as
 *
 *     FL_SIM_SEED=<seed> tests/sim/test_fed
 *
 * More seeds: FL_SIM_SEEDS=1000 tests/sim/test_fed
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"
#include "tests/sim/fed.h"

static const char *const presets[] = {"fedavg", "fedldf", "adafl", "adafl+fedldf"};

TEST_EACH(a_federation_without_trouble_ends, 8)
{
    struct fed_plan plan = fed_plan_of(1, presets[_i % 4], 4);
    struct fed *fed;
    unsigned i;

    plan.evaluate = true;
    plan.real_sessions = _i >= 4;
    fed = fed_new(&plan);
    fed_finish(fed);
    while (fl_sim_now(fed->sim) < 60000 && fl_sim_step(fed->sim)) { /* The drain gets through. */
    }
    for (i = 0; i < 4; i++) {
        ck_assert_uint_eq(fed->clients[i].drained, true);
    }
    fed_free(fed);
}

TEST_EACH(no_round_waits_for_an_evaluation_that_failed, 2)
{
    struct fed_plan plan = fed_plan_of(1, "fedavg", 4);
    struct fed *fed;

    plan.evaluate = true;
    plan.real_sessions = _i == 1;
    plan.failed_evaluation_rate = 0.5;
    fed = fed_new(&plan);
    fed_finish(fed);
    ck_assert_ptr_nonnull(strstr((const char *)fed->log.data, "could not evaluate the new model"));
    ck_assert_ptr_null(strstr((const char *)fed->log.data, "evaluations timed out"));
    fed_free(fed);
}

/* Until everything under way has arrived. */
static void settle(struct fed *fed)
{
    uint64_t until = fl_sim_now(fed->sim) + 2000;

    while (fl_sim_now(fed->sim) < until && fed_broken(fed) == NULL && fl_sim_step(fed->sim)) {
    }
    ck_assert_msg(fed_broken(fed) == NULL, "%s", fed_broken(fed));
}

/* Every client is connected, under its first number, and was counted in `round`. */
static void check_counted(const struct fed *fed, uint64_t round, const uint32_t *numbers)
{
    unsigned i;

    for (i = 0; i < fed->plan.n_clients; i++) {
        uint32_t number = fl_coord_find(fed->server.coord, fed->clients[i].name);

        ck_assert_uint_eq(number, numbers[i]);
        ck_assert(fl_coord_connected(fed->server.coord, number));
        ck_assert_uint_eq(fl_coord_client(fed->server.coord, number)->counted_round, round);
        ck_assert(!fed->plan.real_sessions || fl_session_state(fl_session_shell_session(
                                                  fed->clients[i].shell)) == FL_SESSION_DONE);
    }
}

/* docs/operating.md, `rounds`: more of them. */
TEST_EACH(a_finished_federation_that_gets_more_rounds_goes_on_with_the_same_clients, 8)
{
    struct fed_plan plan = fed_plan_of(1, presets[_i % 4], 4);
    uint32_t numbers[4];
    struct fed *fed;
    unsigned i;

    plan.min_responders = 4;
    plan.real_sessions = _i >= 4;
    plan.stay = true;
    fed = fed_new(&plan);
    fed_finish(fed);
    settle(fed);
    for (i = 0; i < 4; i++) {
        numbers[i] = fl_coord_find(fed->server.coord, fed->clients[i].name);
    }
    check_counted(fed, 5, numbers);
    fed_restart(fed, 5); /* There is nothing to do, and nothing is done. */
    fed_finish(fed);
    settle(fed);
    check_counted(fed, 5, numbers);
    fed_restart(fed, 9);
    fed_finish(fed);
    settle(fed);
    check_counted(fed, 9, numbers);
    fed_restart(fed, 3); /* Fewer than are done. */
    fed_run(fed, fl_sim_now(fed->sim) + 10000);
    ck_assert(fed->finished);
    settle(fed);
    check_counted(fed, 9, numbers);
    ck_assert_uint_eq(fed->check.n_committed, 9);
    ck_assert_uint_eq(fed->n_deaths, 3); /* The server's. */
    fed_free(fed);
}

/* A mix of trouble that depends on the seed alone. */
static struct fed_plan trouble(uint64_t seed, bool real_sessions)
{
    struct fl_rng rng;
    struct fed_plan plan;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 7, 7);
    plan = fed_plan_of(seed, presets[fl_rng_below(&rng, 4)], 1 + (unsigned)fl_rng_below(&rng, 9));
    plan.real_sessions = real_sessions;
    plan.upload = fl_rng_below(&rng, 6) == 0 ? "random_layer" : NULL;
    plan.min_responders = (uint32_t)fl_rng_below(&rng, plan.n_clients < 3 ? plan.n_clients + 1 : 3);
    plan.over_selection = fl_rng_below(&rng, 3) == 0 ? 1.5 : 1.0;
    plan.over_grace = (seed & 1) != 0;
    plan.backfill = fl_rng_below(&rng, 3) == 0;
    plan.evaluate = fl_rng_below(&rng, 2) == 0;
    plan.train_ms_max = fl_rng_below(&rng, 2) == 0 ? 300 : 1500;
    plan.disk_ms = fl_rng_below(&rng, 30);
    plan.link.latency_ms = fl_rng_below(&rng, 60);
    plan.link.jitter_ms = fl_rng_below(&rng, 60);
    plan.link.break_rate = fl_rng_below(&rng, 2) == 0 ? 0.02 : 0.0;
    plan.calm_ms = 15000;
    plan.server_crash_every = fl_rng_below(&rng, 2) == 0 ? 1200 : 0;
    plan.client_crash_every = fl_rng_below(&rng, 2) == 0 ? 700 : 0;
    plan.cut_every = fl_rng_below(&rng, 2) == 0 ? 700 : 0;
    plan.bad_report_rate = fl_rng_below(&rng, 3) == 0 ? 0.1 : 0;
    plan.bad_upload_rate = fl_rng_below(&rng, 3) == 0 ? 0.1 : 0;
    plan.failed_training_rate = fl_rng_below(&rng, 3) == 0 ? 0.1 : 0;
    plan.failed_disk_rate = fl_rng_below(&rng, 3) == 0 ? 0.1 : 0;
    plan.failed_aggregate_rate = fl_rng_below(&rng, 3) == 0 ? 0.3 : 0;
    plan.rounds = 4 + fl_rng_below(&rng, 20);
    plan.forget_every = fl_rng_below(&rng, 3) == 0 ? 500 : 0;
    plan.forget_after_ms = fl_rng_below(&rng, 4) == 0 ? 200 : 0;
    if (fl_rng_below(&rng, 3) == 0) {
        plan.norm_cap = 1.2;            /* Honest updates differ by that much: some are left out. */
        plan.failed_aggregate_rate = 0; /* Too few beside those would pause it. */
    }
    plan.broadcast = (const char *[]){NULL, "float16", "lattice", "lattice"}[fl_rng_below(&rng, 4)];
    plan.halves = fl_rng_below(&rng, 2) == 0;
    plan.draws = fl_rng_below(&rng, 2) == 0;
    plan.loses_models = fl_rng_below(&rng, 2) == 0;
    if (fl_rng_below(&rng, 5) == 0) {
        plan.broadcast = "ternary";
    }
    plan.quarantine_after = 1 + (uint32_t)fl_rng_below(&rng, 2);
    plan.quarantine_ms = 500;
    plan.share_cap = fl_rng_below(&rng, 2) == 0 ? 1.5 : 0;
    return plan;
}

/* The same trouble with a model on each client, that the server mixes or not. */
static struct fed_plan personal_trouble(uint64_t seed, bool real_sessions)
{
    static const char *const uploads[] = {"hdfl", "none", "full"};
    struct fed_plan plan = trouble(seed, real_sessions);

    plan.own = true;
    plan.broadcast = NULL; /* One model for all. */
    plan.draws = plan.loses_models = false;
    plan.preset = "fedavg";
    plan.upload = uploads[seed % 3];
    return plan;
}

/* Clients that come while it runs, the first of them alone, and an N that is wrong. */
static struct fed_plan joining_trouble(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = trouble(seed, real_sessions);
    struct fl_rng rng;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 8, 8);
    plan.start_clients = 1;
    plan.join_every_ms = 1 + fl_rng_below(&rng, 2000);
    plan.population = (uint32_t)(fl_rng_below(&rng, 2) * (1 + fl_rng_below(&rng, 12)));
    plan.rebuild = fl_rng_below(&rng, 2) == 0;
    return plan;
}

/* Downloads of what changed since a held model, of all federations of a test. */
static unsigned n_changed;
/* And quarantines. */
static unsigned n_quarantined;

/* Neither crashes nor a slow disk nor failed training make an offence of an honest client. */
static void check_honest(struct fed *fed)
{
    const struct fed_plan *plan = &fed->plan;
    struct fl_coord_resume resume;
    size_t i;

    if (plan->bad_upload_rate > 0 || plan->norm_cap > 0 || plan->failed_aggregate_rate > 0) {
        return;
    }
    resume = fed_disk_read(fed);
    for (i = 0; i < resume.n_clients; i++) {
        ck_assert_uint_eq(resume.clients[i].offences[0].kind, 0);
        ck_assert_str_eq(resume.clients[i].quarantine, "");
    }
    fl_store_resume_done(&resume);
}

static void run_plan(const struct fed_plan *plan)
{
    struct fed *fed = fed_new(plan);

    fed_finish(fed);
    check_honest(fed);
    n_changed += fed->n_changed;
    n_quarantined += fed->n_quarantined;
    fed_free(fed);
}

static void run_trouble(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = trouble(seed, real_sessions);

    run_plan(&plan);
}

static void run_personal_trouble(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = personal_trouble(seed, real_sessions);

    run_plan(&plan);
}

static void run_joining_trouble(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = joining_trouble(seed, real_sessions);

    run_plan(&plan);
}

/* The end comes in the middle of the trouble, and is not for good. */
static void run_extended_trouble(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = trouble(seed, real_sessions);
    struct fed *fed;

    plan.stay = true;
    fed = fed_new(&plan);
    fed_finish(fed);
    settle(fed); /* Clients hear of it, or lose the connection before. */
    fed_restart(fed, plan.rounds + 1 + seed % 5);
    fed_finish(fed);
    fed_free(fed);
}

/* An operator who pauses and ends attempts at any time; the checker knows what that means. */
static void run_wishes(uint64_t seed, bool real_sessions)
{
    struct fed_plan plan = trouble(seed, real_sessions);

    plan.wish_every = 100 + 50 * (seed % 8);
    run_plan(&plan);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    if (text != NULL && fl_str_to_u64(text, &value) != FL_OK) {
        value = otherwise;
    }
    return value;
}

#define SEEDS_PER_TEST 10

/* Tests of SEEDS_PER_TEST seeds each. */
static int count_seeds(void)
{
    int n = (int)(env_number("FL_SIM_SEEDS", 60 / everyday_stride(3, 3)) / SEEDS_PER_TEST);

    return n > 0 ? n : 1;
}

TEST_EACH(whatever_breaks_the_rules_hold_and_it_ends, count_seeds())
{
    uint64_t first = env_number("FL_SIM_SEED", 0);
    uint64_t seed;

    if (first != 0) {
        run_trouble(first, false);
        run_trouble(first, true);
        return;
    }
    for (seed = 1 + (uint64_t)_i * SEEDS_PER_TEST; seed <= (uint64_t)(_i + 1) * SEEDS_PER_TEST;
         seed++) {
        run_trouble(seed, false);
        run_trouble(seed, true);
    }
    ck_assert_uint_gt(n_changed, 0);
    ck_assert_uint_gt(n_quarantined, 0);
}

TEST_EACH(whatever_breaks_a_pause_lasts_until_it_is_resumed, count_seeds())
{
    uint64_t first = env_number("FL_SIM_SEED", 0);
    uint64_t from = first != 0 ? first : 1 + (uint64_t)_i * SEEDS_PER_TEST;
    uint64_t to = first != 0 ? first : (uint64_t)(_i + 1) * SEEDS_PER_TEST;
    uint64_t seed;

    for (seed = from; seed <= to; seed++) {
        run_wishes(seed, false);
        run_wishes(seed, true);
    }
}

/* What clients keep is checked in every federation; here the model itself is theirs. */
TEST_EACH(whatever_breaks_every_client_goes_on_from_its_own_model, count_seeds())
{
    uint64_t first = env_number("FL_SIM_SEED", 0);
    uint64_t from = first != 0 ? first : 1 + (uint64_t)_i * SEEDS_PER_TEST;
    uint64_t to = first != 0 ? first : (uint64_t)(_i + 1) * SEEDS_PER_TEST;
    uint64_t seed;

    for (seed = from; seed <= to; seed++) {
        run_personal_trouble(seed, false);
        run_personal_trouble(seed, true);
    }
}

/* c = mean of the c_k at any time: checked in every federation, here N changes while it runs. */
TEST_EACH(whoever_joins_the_control_is_the_mean_of_the_controls, count_seeds())
{
    uint64_t first = env_number("FL_SIM_SEED", 0);
    uint64_t from = first != 0 ? first : 1 + (uint64_t)_i * SEEDS_PER_TEST;
    uint64_t to = first != 0 ? first : (uint64_t)(_i + 1) * SEEDS_PER_TEST;
    uint64_t seed;

    for (seed = from; seed <= to; seed++) {
        run_joining_trouble(seed, false);
        run_joining_trouble(seed, true);
    }
}

TEST_EACH(whatever_breaks_a_finished_federation_goes_on_when_it_gets_more_rounds, count_seeds())
{
    uint64_t first = env_number("FL_SIM_SEED", 0);
    uint64_t from = first != 0 ? first : 1 + (uint64_t)_i * SEEDS_PER_TEST;
    uint64_t to = first != 0 ? first : (uint64_t)(_i + 1) * SEEDS_PER_TEST;
    uint64_t seed;

    for (seed = from; seed <= to; seed++) {
        run_extended_trouble(seed, false);
        run_extended_trouble(seed, true);
    }
}

/* Seeds that once broke a rule; what it was stands beside them. They mean what trouble()
   makes of them: it may grow at its end, not change. */
static const struct {
    uint64_t seed;
    bool real_sessions;
} regressions[] = {
    {7, false},   /* fewer were asked than had to respond: it never ended */
    {18, true},   /* the same */
    {77, false},  /* a client was selected whose record was not on disk */
    {88, false},  /* a failed record left a hole in the numbers of clients */
    {116, true},  /* as 77 */
    {138, false}, /* accepted, left out by the aggregation, then dismissed */
};

TEST_EACH(what_broke_once_holds, ARRAY_LEN(regressions))
{
    run_trouble(regressions[_i].seed, regressions[_i].real_sessions);
}

TEST_EACH(the_same_seed_gives_the_same_trace_byte_for_byte, 6)
{
    struct fed_plan plan = trouble(100 + (uint64_t)_i, _i % 2 == 1);
    struct fed *a = fed_new(&plan);
    struct fed *b = fed_new(&plan);

    fed_finish(a);
    fed_finish(b);
    ck_assert_uint_eq(a->log.len, b->log.len);
    ck_assert_mem_eq(a->log.data, b->log.data, a->log.len);
    ck_assert_uint_gt(a->log.len, 1000);
    fed_free(a);
    fed_free(b);
}
