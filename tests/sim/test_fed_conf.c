/*
 * Configurations drawn at random, as an operator might write them, in whole federations: the server
 * refuses the file with its line, or runs it with clients that come late, are forgotten or die, and
 * dies itself on the way. Then all rounds are committed, each once and by the rules of every
 * simulated federation; or the coordinator says that it waits for more clients than there are.
 *
 *     FL_CONF_SEED=<seed> tests/sim/test_fed_conf      one of them, and it is printed
 *     FL_CONF_SEEDS=10000 tests/sim/test_fed_conf      more of them
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/conf_drawn.h"
#include "tests/lib/suites.h"
#include "tests/sim/fed.h"

enum { CLIENTS_MAX = 7, CALM_MS = 6000 };

/* --- the file --- */

/* About as many as there are clients, and rarely far more. */
static void add_count(struct fl_buf *yaml, struct fl_rng *rng, const char *name, unsigned least)
{
    uint64_t n = fl_rng_below(rng, 12) == 0 ? 1000000 : least + fl_rng_below(rng, CLIENTS_MAX);

    if (fl_rng_below(rng, 3) == 0) {
        ck_assert_int_eq(fl_buf_printf(yaml, ", %s: %" PRIu64, name, n), FL_OK);
    }
}

/* A share: nothing, all, a few of very many, or any. */
static double any_share(struct fl_rng *rng)
{
    static const double ends[] = {0, 1, 1e-9};
    uint64_t i = fl_rng_below(rng, 6);

    return i < 3 ? ends[i] : fl_rng_unit(rng);
}

static void add_fraction(struct fl_buf *yaml, struct fl_rng *rng)
{
    if (fl_rng_below(rng, 2) == 0) {
        ck_assert_int_eq(
            fl_buf_printf(yaml, ", fraction: {policy: constant, fraction: %g}", any_share(rng)),
            FL_OK);
    } else if (fl_rng_below(rng, 2) == 0) {
        ck_assert_int_eq(fl_buf_printf(yaml,
                                       ", fraction: {policy: stepped, start: %g, end: %g, step: "
                                       "%g, every: %" PRIu64 "}",
                                       any_share(rng), any_share(rng), any_share(rng),
                                       1 + fl_rng_below(rng, 4)),
                         FL_OK);
    }
}

static void add_strategy(struct fl_buf *yaml, struct fl_rng *rng)
{
    static const char *const broadcasts[] = {
        "float32", "float16", "lattice", "{policy: lattice, step: 0.25, halve_at: 2, history: 1}",
        "{policy: lattice, step: 0.3}"};

    /* By what was drawn: another draw here would change all that follow. */
    uint64_t i = fl_hash64(yaml->data, yaml->len) % ARRAY_LEN(broadcasts);

    conf_drawn_add(yaml, "strategy: {broadcast: ");
    conf_drawn_add(yaml, broadcasts[i]);
    add_fraction(yaml, rng);
    conf_drawn_add(yaml, "}\n");
}

static void draw(struct fl_buf *yaml, struct fl_rng *rng)
{
    ck_assert_int_eq(fl_buf_printf(yaml,
                                   "federation: f\nstate_dir: /nowhere/state\ninsecure: yes\n"
                                   "model: {input: [1], layers: [dense 2]}\n"
                                   "seed: %" PRIu64 "\nrounds: %" PRIu64 "\nalgorithm: %s",
                                   1 + fl_rng_below(rng, 99), 1 + fl_rng_below(rng, 6),
                                   conf_drawn_preset(rng)),
                     FL_OK);
    if (fl_rng_below(rng, 4) == 0) {
        conf_drawn_add(yaml, "+");
        conf_drawn_add(yaml, conf_drawn_preset(rng));
    }
    conf_drawn_add(yaml, "\n");
    add_strategy(yaml, rng);
    conf_drawn_add(
        yaml, "round: {train_deadline: 1s, upload_deadline: 1s, lost_grace: 300ms, retry: 100ms");
    add_count(yaml, rng, "population", 0);
    add_count(yaml, rng, "start_clients", 1);
    add_count(yaml, rng, "min_clients", 1);
    add_count(yaml, rng, "min_responders", 0);
    ck_assert_int_eq(
        fl_buf_printf(yaml, ", over_selection: %g",
                      fl_rng_below(rng, 2) == 0 ? 1 : 1 + 9 * fl_rng_unit(rng) * fl_rng_unit(rng)),
        FL_OK);
    conf_drawn_add(yaml, fl_rng_below(rng, 2) == 0 ? ", over_selected: grace" : "");
    conf_drawn_add(yaml, fl_rng_below(rng, 3) == 0 ? ", backfill: yes" : "");
    conf_drawn_add(yaml, fl_rng_below(rng, 3) == 0 ? ", forget_after: 200ms" : "");
    conf_drawn_add(yaml,
                   fl_rng_below(rng, 3) == 0 ? ", straggler_factor: 1, straggler_min: 50ms" : "");
    ck_assert_int_eq(fl_buf_printf(yaml,
                                   "}\nevaluation: {every: %" PRIu64 ", clients: %s, deadline: "
                                   "500ms}\n",
                                   fl_rng_below(rng, 3), fl_rng_below(rng, 2) == 0 ? "yes" : "no"),
                     FL_OK);
}

/* --- the federation --- */

static struct fed_plan plan_of(uint64_t seed, const struct fl_coord_conf *conf, struct fl_rng *rng)
{
    struct fed_plan plan =
        fed_plan_of(seed, "drawn", 1 + (unsigned)fl_rng_below(rng, CLIENTS_MAX - 1));

    plan.conf = conf;
    plan.rounds = conf->rounds;
    plan.population = conf->population;
    plan.own = conf->strategy->personal->own;
    plan.join_every_ms = fl_rng_below(rng, 400);
    plan.train_ms_max = fl_rng_below(rng, 2) == 0 ? 300 : 1500;
    plan.calm_ms = CALM_MS;
    plan.forget_every = fl_rng_below(rng, 2) == 0 ? 400 : 0;
    plan.client_crash_every = fl_rng_below(rng, 2) == 0 ? 700 : 0;
    plan.restart_ms = 50;
    if (conf->strategy->broadcast != &fl_broadcast_float32) {
        plan.broadcast = conf->strategy->broadcast->policy.name;
        plan.halves = fl_rng_below(rng, 2) == 0;
        plan.draws = fl_rng_below(rng, 2) == 0;
        plan.loses_models = fl_rng_below(rng, 2) == 0;
    }
    return plan;
}

/* As docs/configuration.md has it: before any round, and before the first. */
static uint32_t clients_needed(const struct fl_coord_conf *conf)
{
    uint32_t need =
        conf->min_clients > conf->start_clients ? conf->min_clients : conf->start_clients;

    return conf->min_responders != FL_RESPONDERS_HALF && conf->min_responders > need
               ? conf->min_responders
               : need;
}

/* Of the federations of a hundred seeds; deaths: of the server. */
static struct {
    unsigned refused, ran, waited, deaths, forgotten;
} totals;

static void wait_in_vain(struct fed *fed, uint64_t seed, uint32_t need)
{
    char text[64];

    fed_run(fed, 2 * (uint64_t)CALM_MS);
    (void)snprintf(text, sizeof(text), "%u of %" PRIu32 " clients are connected",
                   fed->plan.n_clients, need);
    ck_assert_msg(fed_broken(fed) == NULL, "seed %" PRIu64 ": %s", seed, fed_broken(fed));
    ck_assert_msg(!fed->finished && fed->check.n_committed == 0,
                  "seed %" PRIu64 ": %u of %" PRIu32 " clients were enough", seed,
                  fed->plan.n_clients, need);
    ck_assert_msg(strstr(fed_why(fed), text) != NULL, "seed %" PRIu64 ": expected '%s': %s", seed,
                  text, fed_why(fed));
    totals.waited++;
}

static void run_conf(const struct fl_coord_conf *conf, uint64_t seed, bool real_sessions)
{
    uint32_t need = clients_needed(conf);
    struct fed_plan plan;
    struct fl_rng rng;
    struct fed *fed;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 3, 3);
    plan = plan_of(seed, conf, &rng);
    plan.real_sessions = real_sessions;
    /* In the middle, by the writes of a round: selection, plan, updates, commit. */
    plan.dies = FED_SERVER;
    plan.dies_at = 1 + fl_rng_below(&rng, 8 * plan.rounds);
    plan.dies_after = fl_rng_below(&rng, 2) == 0;
    fed = fed_new(&plan);
    if (need > plan.n_clients) {
        wait_in_vain(fed, seed, need);
    } else {
        fed_finish(fed);
        totals.ran++;
    }
    totals.deaths += fed->n_server_deaths;
    totals.forgotten += fed->n_forgotten;
    fed_free(fed);
}

static void run_seed(uint64_t seed, bool show)
{
    struct fl_server_conf *conf = conf_drawn_make(draw, seed, show);
    struct fl_coord_conf c;

    if (conf == NULL) {
        totals.refused++;
        return;
    }
    fl_server_conf_coord(conf, &c);
    run_conf(&c, seed, false);
    run_conf(&c, seed, true);
    fl_server_conf_free(conf);
}

TEST_EACH(an_accepted_configuration_commits_its_rounds_or_says_what_it_waits_for,
          conf_drawn_loops())
{
    if (!conf_drawn_seeds(_i, run_seed)) {
        return;
    }
    /* None of it is the exception. */
    ck_assert_uint_gt(totals.refused, 0);
    ck_assert_uint_gt(totals.ran, CONF_DRAWN_PER_TEST / 4);
    ck_assert_uint_gt(totals.waited, CONF_DRAWN_PER_TEST / 10);
    ck_assert_uint_gt(totals.deaths, CONF_DRAWN_PER_TEST / 4);
    ck_assert_uint_gt(totals.forgotten, CONF_DRAWN_PER_TEST / 4);
}
