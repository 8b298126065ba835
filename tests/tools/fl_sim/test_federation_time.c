/* When things happen in a simulated federation: links that are shared, who is late, who goes away.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/yaml.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/sim_federation.h"

enum { N_CLIENTS = 100, ROUNDS_MAX = 16, N_SAMPLES = 40 };

struct run {
    char dir[FOLDER_PATH];
    struct fl_strategy *strategy;
    struct server server;
    char names[N_CLIENTS][32];
    struct fl_sim_clients sim_clients;
    struct fl_conf_doc *doc;
    struct fl_world *world;
    struct fl_fed_conf conf;
    struct fl_sim_round rounds[ROUNDS_MAX];
    size_t n;
    size_t states[ROUNDS_MAX][FL_PARTICIPANT_LOST + 1];
    size_t dropped, stopped;
    uint64_t bytes_up;
};

static void sim_client(void *ctx, size_t client, struct fl_sim_client *ret)
{
    const struct run *r = ctx;

    *ret =
        (struct fl_sim_client){.name = r->names[client], .samples = N_SAMPLES, .seed = 7 + client};
}

/* Nothing is computed. */
static int data(void *ctx, size_t client, struct fl_sim_client_data *ret, struct fl_err *err)
{
    (void)ctx;
    (void)client;
    (void)ret;
    (void)err;
    return FL_ESTATE;
}

static void release(void *ctx, struct fl_sim_client_data *of)
{
    (void)ctx;
    (void)of;
}

static void on_part(void *ctx, const struct fl_fed_part *p)
{
    struct run *r = ctx;

    r->states[r->n][p->state]++;
    r->dropped += p->dropped;
    r->stopped += p->stopped;
    r->bytes_up += p->bytes_up;
}

static bool on_commit(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim)
{
    struct run *r = ctx;

    ck_assert_uint_eq(record->round, r->n + 1);
    ck_assert_uint_eq(fl_sim_round_parts(sim), sim->wall_us);
    r->rounds[r->n++] = *sim;
    return true;
}

static struct run *begin(const char *algorithm, size_t clients, const char *world)
{
    struct run *r = calloc(1, sizeof(*r));
    struct fl_world_ask ask = {.seed = 5, .n = clients};
    struct fl_err err = {0};
    size_t k;

    ck_assert_ptr_nonnull(r);
    ck_assert(folder_make("fl-time", r->dir));
    server_init(&r->server);
    ck_assert_msg(fl_strategy_create(algorithm, &r->strategy, &err) == FL_OK, "%s", err.msg);
    for (k = 0; k < clients; k++) {
        (void)snprintf(r->names[k], sizeof(r->names[k]), "c%02zu", k);
    }
    r->sim_clients = (struct fl_sim_clients){
        .n = clients, .sim_client = sim_client, .data = data, .release = release, .ctx = r};
    ck_assert_msg(fl_conf_parse("world", world, strlen(world), &r->doc, &err) == FL_OK, "%s",
                  err.msg);
    ask.node = fl_conf_root(r->doc);
    ck_assert_msg(fl_world_load(&ask, &r->world, &err) == FL_OK, "%s", err.msg);
    r->conf = (struct fl_fed_conf){
        .dir = r->dir,
        .name = "f",
        .coord = {.seed = 3,
                  .rounds = 2,
                  .start_clients = (uint32_t)clients,
                  .min_clients = 1,
                  .min_responders = 1,
                  .over_selection = 1,
                  .train_ms = 600000,
                  .upload_ms = 600000,
                  .evaluate_ms = 1000,
                  .lost_grace_ms = 10000,
                  .retry_ms = 1000,
                  .learning_rate = 0.05,
                  .learning_rate_decay = 1,
                  .strategy = r->strategy,
                  .layout = r->server.model.layout},
        .net = r->server.model.net,
        .training = {.epochs = 1, .batch_size = 10},
        .inputs = INPUTS,
        .classes = CLASSES,
        .sim_clients = &r->sim_clients,
        .world = r->world,
        .dry = true,
        .watch = {.part = on_part, .committed = on_commit, .ctx = r},
    };
    return r;
}

static enum fl_fed_end go(struct run *r)
{
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end = FL_FED_DONE;

    ck_assert_msg(fl_fed_create(&r->conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_fed_run(fed, &end, &err) == FL_OK, "%s", err.msg);
    fl_fed_free(fed);
    return end;
}

static void finish(struct run *r)
{
    fl_world_free(r->world);
    fl_conf_free(r->doc);
    fl_strategy_free(r->strategy);
    server_done(&r->server);
    folder_remove(r->dir);
    free(r);
}

static uint64_t model_bytes(const struct run *r)
{
    return 4 * r->server.count;
}

/* Time of `bytes` at `rate` bytes a second, in microseconds, rounded up. */
static uint64_t span(uint64_t bytes, uint64_t rate)
{
    return (bytes * 1000000 + rate - 1) / rate;
}

TEST(transfers_of_one_moment_share_the_servers_link)
{
    struct run *r = begin("fedavg", N_CLIENTS, "server: {uplink: 4Mbit/s, downlink: 1Mbit/s}\n");

    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_eq(r->rounds[0].download_us, span(N_CLIENTS * model_bytes(r), 500000));
    ck_assert_uint_eq(r->rounds[0].upload_us, span(N_CLIENTS * model_bytes(r), 125000));
    ck_assert_uint_eq(r->rounds[0].wall_us, r->rounds[0].download_us + r->rounds[0].upload_us);
    ck_assert_uint_eq(r->rounds[1].wall_us, r->rounds[0].wall_us);
    finish(r);
}

TEST(a_round_takes_what_its_slowest_client_takes_with_the_way_of_each_message)
{
    struct run *r = begin("fedavg", 4,
                          "uplink: 80kbit/s\ndownlink: 800kbit/s\nlatency: 50ms\n"
                          "train: {fixed: 2s, samples_per_s: 20}\n");
    const struct fl_sim_round *one = &r->rounds[1];

    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_eq(one->download_us, span(model_bytes(r), 100000));
    ck_assert_uint_eq(one->training_us, 2000000 + N_SAMPLES * 1000000 / 20);
    ck_assert_uint_eq(one->upload_us, span(model_bytes(r), 10000));
    /* Task; request and payload; PushStatus and its answer; the last byte. */
    ck_assert_uint_eq(one->message_us, 6 * 50000);
    ck_assert_uint_eq(one->late_us, 0);
    finish(r);
}

TEST(a_client_sends_and_fetches_at_the_slower_one_of_its_link_and_its_own_limit)
{
    static const struct {
        const char *world;          /* NULL: none */
        double limit, up_s, down_s; /* limit: seconds for an upload; half of it for a download */
    } cases[] = {{NULL, 10, 10, 5},
                 {"{}", 10, 10, 5},
                 {"{uplink: 1Gbit/s, downlink: 1Gbit/s}", 10, 10, 5},
                 {"{uplink: 4kbit/s, downlink: 4kbit/s}", 1, 2.072, 2.072},
                 {"{uplink: 4kbit/s, downlink: 4kbit/s}", 0, 2.072, 2.072}};
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run *r = begin("fedavg", 1, cases[i].world != NULL ? cases[i].world : "{}");
        double bytes = (double)(fl_layout_count(r->server.model.layout) * sizeof(float));

        r->conf.world = cases[i].world != NULL ? r->world : NULL;
        r->conf.upload_rate = cases[i].limit > 0 ? bytes / cases[i].limit : 0;
        r->conf.download_rate = 2 * r->conf.upload_rate;
        ck_assert_int_eq(go(r), FL_FED_DONE);
        ck_assert_double_eq_tol((double)r->rounds[0].upload_us / 1e6, cases[i].up_s, 1e-3);
        ck_assert_double_eq_tol((double)r->rounds[0].download_us / 1e6, cases[i].down_s, 1e-3);
        finish(r);
    }
}

TEST(with_feedback_the_plan_goes_to_all_when_the_last_report_is_in)
{
    struct run *r = begin("fedldf", 8, "latency: 50ms\ntrain: {fixed: 2s}\n");
    const struct fl_sim_round *one = &r->rounds[1];

    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_eq(one->training_us, 2000000);
    /* Task, request, payload, report; plan, PushStatus, its answer, the last byte. */
    ck_assert_uint_eq(one->message_us, 8 * 50000);
    ck_assert_uint_eq(one->wall_us, 2000000 + 8 * 50000);
    finish(r);
}

TEST(who_is_late_is_waited_for_to_the_deadline_and_named_and_its_bytes_are_wasted)
{
    struct run *r = begin("fedavg", 20, "uplink: {choice: [8Mbit/s, 80bit/s], weights: [1, 1]}\n");
    size_t k;

    r->conf.coord.upload_ms = 5000;
    r->conf.coord.train_ms = 5000;
    ck_assert_int_eq(go(r), FL_FED_DONE);
    for (k = 0; k < 2; k++) {
        size_t late = r->states[k][FL_PARTICIPANT_LOST];

        ck_assert_uint_gt(late, 0);
        ck_assert_uint_eq(late + r->states[k][FL_PARTICIPANT_ACCEPTED], 20);
        ck_assert_uint_eq(r->rounds[k].n_late, late);
        ck_assert_uint_gt(r->rounds[k].late_us, 4000000);
        ck_assert_uint_eq(r->rounds[k].up_update_bytes, (20 - late) * model_bytes(r));
        ck_assert_uint_gt(r->rounds[k].up_wasted_bytes, 0);
        ck_assert_uint_lt(r->rounds[k].up_wasted_bytes, late * 100);
        ck_assert_str_ne(r->rounds[k].waiting_for, "");
    }
    finish(r);
}

TEST(an_over_selected_round_ends_with_the_update_that_is_enough)
{
    struct run *r = begin("fedavg-0.5", 10, "{uplink: {uniform: [8kbit/s, 80kbit/s]}}");

    r->conf.coord.over_selection = 1.5;
    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_eq(r->states[0][FL_PARTICIPANT_ACCEPTED], 5);
    ck_assert_uint_eq(r->states[0][FL_PARTICIPANT_LOST], 3);
    ck_assert_uint_eq(r->stopped, 6); /* in two rounds */
    ck_assert_uint_eq(r->rounds[0].n_late, 0);
    ck_assert_uint_eq(r->rounds[0].late_us, 0);
    ck_assert_uint_gt(r->rounds[0].up_wasted_bytes, 0);
    finish(r);
}

TEST(who_drops_in_the_middle_goes_on_where_it_was_when_it_is_back_in_time)
{
    struct run *r = begin("fedavg", 4, "uplink: 80kbit/s\ndrop: {chance: 1, at: 0.5, away: 3s}\n");
    const struct fl_sim_round *one = &r->rounds[0];

    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_eq(r->dropped, 8);
    ck_assert_uint_eq(one->n_dropped, 4);
    ck_assert_uint_eq(r->states[0][FL_PARTICIPANT_ACCEPTED], 4);
    ck_assert_uint_eq(one->up_update_bytes, 4 * model_bytes(r)); /* Nothing is sent twice. */
    ck_assert_uint_eq(one->wall_us, span(model_bytes(r), 10000) + 3000000);
    finish(r);
}

TEST(who_does_not_come_back_within_the_grace_is_lost_and_what_it_sent_is_wasted)
{
    struct run *r =
        begin("fedavg", 20, "uplink: 80kbit/s\ndrop: {chance: 0.5, at: 0.5, away: 1h}\n");
    const struct fl_sim_round *one = &r->rounds[0];

    r->conf.coord.rounds = 1;
    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_gt(one->n_dropped, 0);
    ck_assert_uint_eq(r->states[0][FL_PARTICIPANT_LOST], one->n_dropped);
    ck_assert_uint_eq(one->up_wasted_bytes, one->n_dropped * (model_bytes(r) / 2));
    /* The coordinator counts in milliseconds. */
    ck_assert_uint_eq(one->late_us, span(model_bytes(r) / 2, 10000) / 1000 * 1000 + 10000000 -
                                        span(model_bytes(r), 10000));
    finish(r);
}

TEST(a_training_that_does_not_fit_into_a_machine_fails_there)
{
    struct run *r = begin("fedavg", 20, "memory: {choice: [1kB, 1GB], weights: [1, 1]}\n");

    ck_assert_int_eq(go(r), FL_FED_DONE);
    ck_assert_uint_gt(r->rounds[0].n_failed, 0);
    ck_assert_uint_eq(r->rounds[0].n_failed + r->states[0][FL_PARTICIPANT_ACCEPTED], 20);
    finish(r);
}

TEST(a_round_that_can_never_be_done_ends_the_run_with_its_reason)
{
    struct run *r = begin("fedavg", 4, "uplink: 80bit/s\n");

    r->conf.coord.upload_ms = 5000;
    ck_assert_int_eq(go(r), FL_FED_STUCK);
    ck_assert_uint_eq(r->n, 0);
    finish(r);
}

TEST(a_year_without_a_round_ends_the_run_with_its_reason)
{
    struct run *r =
        begin("fedavg", 20, "availability: {every: 24h, from: {uniform: [0h, 24h]}, up_for: 1h}\n");

    ck_assert_int_eq(go(r), FL_FED_STUCK);
    ck_assert_uint_eq(r->n, 0);
    finish(r);
}
