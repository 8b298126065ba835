/*
 * What clients report of their layers against what they upload, in whole federations. Honest ones
 * are never off, whatever the preset and the codec; one that claims the largest divergences is in
 * no layer, and quarantined.
 *
 * FL_CLAIM_ROUNDS=30 tests/sim/test_claims prints how large the ratio of both became.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/train/train_fixture.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/sim_federation.h"

#define N_CLIENTS 6
#define N_SAMPLES 40
#define UNITS     8 /* at most */

static const char *const algorithms[] = {"lean",          "fedldf",       "fedldf+scaffold",
                                         "fedldf+igfl_c", "adafl+fedldf", "attn+random_layer",
                                         "attn+fedadp"};
#define N_ALGORITHMS 7
static const char *const codecs[] = {"float32", "float16", "bfloat16", "int8",
                                     "ternary", "steps",   "topk",     "qsgd"};
#define N_CODECS 8

static struct {
    bool hostile; /* the first client claims all it can */
    size_t n_units;
    float claim[N_CLIENTS][UNITS];
    bool reported[N_CLIENTS];
    unsigned compared;
    double least, most; /* of claim / norm */
    double room;        /* of claim / high: 1 is the bound */
} seen;

struct run {
    char dir[FOLDER_PATH];
    struct fl_strategy *strategy;
    struct server server; /* network and layout */
    struct fl_dataset *train[N_CLIENTS], *test;
    char names[N_CLIENTS][16];
    unsigned rejected, accepted_of_first, rounds;
    unsigned of_first;      /* rounds that the first client was selected for */
    uint32_t n_quarantined; /* at the end of the last round */
    uint64_t committed;
};

int __real_fl_coord_step(struct fl_coord *coord, const struct fl_event *event,
                         struct fl_effects *ret);
int __wrap_fl_coord_step(struct fl_coord *coord, const struct fl_event *event,
                         struct fl_effects *ret);

static void compare(uint32_t client, const struct fl_norms *norms)
{
    size_t l;

    for (l = 0; l < seen.n_units; l++) {
        const struct fl_unit_norm *unit = &norms->unit[l];
        double claim = (double)seen.claim[client][l];

        if (unit->norm > 0) {
            seen.least = fmin(seen.least, claim / (double)unit->norm);
            seen.most = fmax(seen.most, claim / (double)unit->norm);
            seen.room = fmax(seen.room, claim / (double)unit->high);
            seen.compared++;
        }
    }
}

int __wrap_fl_coord_step(struct fl_coord *coord, const struct fl_event *event,
                         struct fl_effects *ret)
{
    static const float most[UNITS] = {3e38f, 3e38f, 3e38f, 3e38f, 3e38f, 3e38f, 3e38f, 3e38f};
    struct fl_event ev = *event;

    if (ev.type == FL_EV_REPORT && ev.u.report.n_divergence == seen.n_units) {
        if (seen.hostile && ev.u.report.client == fl_coord_find(coord, "c0")) {
            ev.u.report.divergence = most;
        }
        ck_assert_uint_lt(ev.u.report.client, N_CLIENTS);
        (void)memcpy(seen.claim[ev.u.report.client], ev.u.report.divergence,
                     seen.n_units * sizeof(float));
        seen.reported[ev.u.report.client] = true;
    }
    if (ev.type == FL_EV_UPLOAD_STORED && seen.reported[ev.u.upload.client]) {
        ck_assert_ptr_nonnull(ev.u.upload.norms);
        compare(ev.u.upload.client, ev.u.upload.norms);
    }
    return __real_fl_coord_step(coord, &ev, ret);
}

static void on_part(void *ctx, const struct fl_fed_part *part)
{
    struct run *r = ctx;

    r->rejected += part->state == FL_PARTICIPANT_REJECTED;
    r->of_first += strcmp(part->name, "c0") == 0;
    r->accepted_of_first += part->state == FL_PARTICIPANT_ACCEPTED && strcmp(part->name, "c0") == 0;
}

static bool on_commit(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim)
{
    struct run *r = ctx;

    (void)sim;
    r->committed = record->round;
    r->n_quarantined = record->n_quarantined;
    return true;
}

static void sim_client(void *ctx, size_t client, struct fl_sim_client *ret)
{
    const struct run *r = ctx;

    *ret = (struct fl_sim_client){.name = r->names[client],
                                  .samples = N_SAMPLES,
                                  .evaluation_samples = N_SAMPLES,
                                  .seed = 7 + client};
}

static int data(void *ctx, size_t client, struct fl_sim_client_data *ret, struct fl_err *err)
{
    const struct run *r = ctx;

    (void)err;
    *ret = (struct fl_sim_client_data){.train = r->train[client], .test = r->test};
    return FL_OK;
}

static void release(void *ctx, struct fl_sim_client_data *of)
{
    (void)ctx;
    (void)of;
}

static void set_codec(struct run *r, const char *algorithm, const char *codec)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_strategy_create(algorithm, &r->strategy, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_strategy_set(r->strategy, FL_COMPONENT_CODEC, codec, &err) == FL_OK, "%s",
                  err.msg);
}

static void run_init(struct run *r, const char *algorithm, const char *codec)
{
    size_t k;

    *r = (struct run){.rounds = 10};
    ck_assert(folder_make("fl-claims", r->dir));
    server_init(&r->server);
    set_codec(r, algorithm, codec);
    for (k = 0; k < N_CLIENTS; k++) {
        r->train[k] = make_data(N_SAMPLES, INPUTS, CLASSES, 1 + k);
        (void)snprintf(r->names[k], sizeof(r->names[k]), "c%zu", k);
    }
    r->test = make_data(N_SAMPLES, INPUTS, CLASSES, 99);
    if (getenv("FL_CLAIM_ROUNDS") != NULL) {
        r->rounds = (unsigned)strtoul(getenv("FL_CLAIM_ROUNDS"), NULL, 10);
    }
}

static void run_done(struct run *r)
{
    size_t k;

    for (k = 0; k < N_CLIENTS; k++) {
        fl_dataset_free(r->train[k]);
    }
    fl_dataset_free(r->test);
    fl_strategy_free(r->strategy);
    server_done(&r->server);
    folder_remove(r->dir);
}

static void go(struct run *r)
{
    const struct fl_sim_clients sim_clients = {
        .n = N_CLIENTS, .sim_client = sim_client, .data = data, .release = release, .ctx = r};
    const struct fl_fed_conf conf = {
        .dir = r->dir,
        .name = "f",
        .coord = {.seed = 3,
                  .rounds = r->rounds,
                  .start_clients = N_CLIENTS,
                  .min_clients = N_CLIENTS - 1,
                  .quarantine_after = seen.hostile ? 3 : 1,
                  .quarantine_window = 20,
                  .min_responders = 1,
                  .over_selection = 1,
                  .train_ms = 100000,
                  .upload_ms = 100000,
                  .evaluate_ms = 100000,
                  .backfill = true,
                  .learning_rate = 0.05,
                  .learning_rate_decay = 1,
                  .strategy = r->strategy,
                  .layout = r->server.model.layout},
        .net = r->server.model.net,
        .training = {.steps = 3, .batch_size = 10},
        .inputs = INPUTS,
        .classes = CLASSES,
        .summary_max = 1u << 20,
        .sim_clients = &sim_clients,
        .threads = 1,
        .watch = {.part = on_part, .committed = on_commit, .ctx = r},
    };
    struct fl_fed *fed = NULL;
    enum fl_fed_end end;
    struct fl_err err = {0};

    seen.n_units = fl_layout_units(r->server.model.layout);
    ck_assert_uint_le(seen.n_units, UNITS);
    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_fed_run(fed, &end, &err) == FL_OK, "%s: %s", r->strategy->algorithm, err.msg);
    ck_assert_msg(end == FL_FED_DONE, "%s: %s", r->strategy->algorithm, fl_fed_why(fed));
    fl_fed_free(fed);
    ck_assert_uint_eq(r->committed, r->rounds);
}

TEST_CASE("honest", NULL, NULL);

TEST_EACH(honest_clients_are_never_off, (N_ALGORITHMS * N_CODECS))
{
    const char *algorithm = algorithms[_i / N_CODECS];
    const char *codec = codecs[_i % N_CODECS];
    struct run r;

    (void)memset(&seen, 0, sizeof(seen));
    seen.least = (double)INFINITY;
    run_init(&r, algorithm, codec);
    go(&r);
    ck_assert_uint_gt(seen.compared, 0);
    ck_assert_uint_eq(r.rejected, 0);
    ck_assert_uint_eq(r.n_quarantined, 0);
    ck_assert_double_le(seen.room, 1);
    if (getenv("FL_CLAIM_ROUNDS") != NULL) {
        (void)printf("%-20s %-9s %6u layers: reported / uploaded %.4f to %.4f, of the bound %.4f\n",
                     algorithm, codec, seen.compared, seen.least, seen.most, seen.room);
    }
    run_done(&r);
}

TEST_CASE("hostile", NULL, NULL);

/* The others finish all rounds, and the layers that it takes are asked of them. After three rounds
   in which it was selected it is not selected again. */
TEST_EACH(a_client_that_claims_the_largest_divergences_is_in_no_layer_and_quarantined, N_CODECS)
{
    struct run r;

    (void)memset(&seen, 0, sizeof(seen));
    seen.hostile = true;
    run_init(&r, "fedldf", codecs[_i]);
    go(&r);
    ck_assert_double_gt(seen.most, 1e30);
    ck_assert_uint_eq(r.rejected, 3);
    ck_assert_uint_eq(r.of_first, 3);
    ck_assert_uint_eq(r.n_quarantined, 1);
    ck_assert_uint_eq(r.accepted_of_first, 0);
    run_done(&r);
}
