/*
 * Federations in one process: every preset runs through both cores and both work rooms, on files.
 */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/model/safetensors.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/each_preset.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/sim_federation.h"

#define N_CLIENTS 4
#define N_SAMPLES 40
#define N_FLOATS  ((INPUTS + 1) * 16 + 17 * CLASSES)

struct run {
    char dir[FOLDER_PATH];
    struct fl_strategy *strategy;
    struct server server; /* network and layout */
    struct fl_dataset *train[N_CLIENTS], *test;
    uint64_t committed;
    unsigned reported, evaluated; /* trainings; rounds that clients evaluated */
    char names[N_CLIENTS][16];
    struct fl_sim_clients sim_clients;
    char journal[FOLDER_PATH + 16]; /* "": none */
    unsigned threads;
    const struct fl_world *world;
    unsigned late;
    const struct fl_ranks *ranks; /* NULL: this process alone */
    struct fl_attack attack;      /* of the first `attackers` clients */
    size_t attackers;
    struct ends *ends;
    uint64_t figures; /* of all rounds, as they were told last */
};

static void on_part(void *ctx, const struct fl_fed_part *part)
{
    struct run *r = ctx;

    if (part->state == FL_PARTICIPANT_ACCEPTED || part->state == FL_PARTICIPANT_EMPTY) {
        ck_assert(part->samples == N_SAMPLES || r->attackers > 0);
        r->reported++;
    }
}

static bool on_commit(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim)
{
    struct run *r = ctx;

    r->committed += r->journal[0] == '\0' || record->round > r->committed;
    ck_assert_uint_eq(record->round, r->journal[0] == '\0' ? r->committed : record->round);
    ck_assert_uint_eq(fl_sim_round_parts(sim), sim->wall_us);
    r->evaluated += record->accuracy >= 0 && record->client_accuracy_mean >= 0;
    if (record->round == 1) {
        r->figures = 0;
    }
    r->figures = r->figures * 31 + fl_checksum(record, sizeof(*record));
    r->figures = r->figures * 31 + fl_checksum(sim, offsetof(struct fl_sim_round, waiting_for));
    return true;
}

/* --- who they are --- */

static void sim_client(void *ctx, size_t client, struct fl_sim_client *ret)
{
    const struct run *r = ctx;

    *ret = (struct fl_sim_client){.name = r->names[client],
                                  .samples = N_SAMPLES,
                                  .evaluation_samples = N_SAMPLES,
                                  .seed = 7 + client,
                                  .attack = client < r->attackers ? &r->attack : NULL};
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

static void run_init(struct run *r, const char *algorithm)
{
    struct fl_err err = {0};
    size_t k;

    *r = (struct run){.committed = 0};
    ck_assert(folder_make("fl-federation", r->dir));
    server_init(&r->server);
    ck_assert_uint_eq(r->server.count, N_FLOATS);
    ck_assert_msg(fl_strategy_create(algorithm, &r->strategy, &err) == FL_OK, "%s", err.msg);
    for (k = 0; k < N_CLIENTS; k++) {
        r->train[k] = make_data(N_SAMPLES, INPUTS, CLASSES, 1 + k);
        (void)snprintf(r->names[k], sizeof(r->names[k]), "c%zu", k);
    }
    r->sim_clients = (struct fl_sim_clients){
        .n = N_CLIENTS, .sim_client = sim_client, .data = data, .release = release, .ctx = r};
    r->test = make_data(N_SAMPLES, INPUTS, CLASSES, 99);
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

static struct fl_fed_conf conf_of(struct run *r, uint64_t rounds)
{
    return (struct fl_fed_conf){
        .dir = r->dir,
        .name = "f",
        .coord = {.seed = 3,
                  .rounds = rounds,
                  .start_clients = N_CLIENTS,
                  .min_clients = N_CLIENTS,
                  .min_responders = 1,
                  .over_selection = 1,
                  .train_ms = 100000,
                  .upload_ms = 100000,
                  .evaluate_ms = 100000,
                  .evaluate_every = 1,
                  .evaluate_clients = true,
                  .learning_rate = 0.05,
                  .learning_rate_decay = 1,
                  .strategy = r->strategy,
                  .layout = r->server.model.layout},
        .net = r->server.model.net,
        .training = {.steps = 3, .batch_size = 10},
        .inputs = INPUTS,
        .classes = CLASSES,
        .summary_max = 1u << 20,
        .sim_clients = &r->sim_clients,
        .journal = r->journal[0] != '\0' ? r->journal : NULL,
        .threads = r->threads,
        .ranks = r->ranks,
        .watch = {.part = on_part, .committed = on_commit, .ctx = r},
    };
}

/* A process of everybody, until so many rounds are committed. */
static void go(struct run *r, uint64_t rounds)
{
    const struct fl_fed_conf conf = conf_of(r, rounds);
    struct fl_fed *fed = NULL;
    enum fl_fed_end end;
    struct fl_err err = {0};

    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_fed_run(fed, &end, &err) == FL_OK, "%s: %s", r->strategy->algorithm, err.msg);
    ck_assert_msg(end == FL_FED_DONE, "%s: %s", r->strategy->algorithm, fl_fed_why(fed));
    fl_fed_free(fed);
}

static void model_of(const struct run *r, uint64_t round, float theta[N_FLOATS])
{
    struct fl_err err = {0};
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/server/models/round-%06llu.safetensors", r->dir,
                   (unsigned long long)round);
    ck_assert_msg(fl_st_load(path, r->server.model.layout, theta, &err) == FL_OK, "%s", err.msg);
}

TEST_EACH(every_preset_commits_its_rounds_and_goes_on_as_if_it_had_not_stopped, each_preset_count())
{
    float whole[N_FLOATS];
    float twice[N_FLOATS];
    struct run r;

    run_init(&r, each_preset(_i));
    go(&r, 4);
    ck_assert_uint_eq(r.committed, 4);
    ck_assert_uint_gt(r.reported, 0);
    ck_assert_uint_eq(r.evaluated, 4);
    model_of(&r, 4, whole);
    run_done(&r);
    run_init(&r, each_preset(_i));
    go(&r, 2);
    go(&r, 4);
    ck_assert_uint_eq(r.committed, 4);
    model_of(&r, 4, twice);
    run_done(&r);
    ck_assert_mem_eq(whole, twice, sizeof(whole));
}

TEST_EACH(with_a_journal_a_run_goes_on_where_it_was_with_the_same_figures_for_any_number_of_threads,
          each_preset_count())
{
    float whole[N_FLOATS];
    float twice[N_FLOATS];
    uint64_t figures;
    struct run r;

    run_init(&r, each_preset(_i));
    (void)snprintf(r.journal, sizeof(r.journal), "%s/journal", r.dir);
    go(&r, 4);
    figures = r.figures;
    model_of(&r, 4, whole);
    run_done(&r);
    run_init(&r, each_preset(_i));
    (void)snprintf(r.journal, sizeof(r.journal), "%s/journal", r.dir);
    r.threads = 3;
    go(&r, 1);
    go(&r, 3); /* What was taken in round 1 is not computed again. */
    go(&r, 4);
    model_of(&r, 4, twice);
    ck_assert_uint_eq(r.committed, 4);
    ck_assert_uint_eq(r.figures, figures);
    run_done(&r);
    ck_assert_mem_eq(whole, twice, sizeof(whole));
}

/* --- a team of threads that share nothing but messages --- */

#define TEAM_MAX 3

struct letter {
    struct letter *next;
    struct fl_blob *blob;
};

struct process {
    struct post *post;
    struct fl_ranks ranks;
    const struct fl_sim_clients *sim_clients;
    struct letter *first, **end;
    pthread_t thread;
    unsigned heard;
    int code;
    struct fl_err err;
};

struct post {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct process processes[TEAM_MAX];
};

static int post_send(void *ctx, unsigned to, struct fl_blob *message, struct fl_err *err)
{
    struct process *from = ctx;
    struct process *p = &from->post->processes[to];
    struct letter *letter = calloc(1, sizeof(*letter));

    (void)err;
    ck_assert_ptr_nonnull(letter);
    letter->blob = fl_blob_ref(message);
    (void)pthread_mutex_lock(&from->post->lock);
    *p->end = letter;
    p->end = &letter->next;
    (void)pthread_cond_broadcast(&from->post->more);
    (void)pthread_mutex_unlock(&from->post->lock);
    return FL_OK;
}

static int post_receive(void *ctx, bool wait, struct fl_buf *ret, struct fl_err *err)
{
    struct process *p = ctx;
    struct letter *letter;

    (void)err;
    (void)pthread_mutex_lock(&p->post->lock);
    while (wait && p->first == NULL) {
        (void)pthread_cond_wait(&p->post->more, &p->post->lock);
    }
    letter = p->first;
    if (letter != NULL) {
        p->first = letter->next;
        p->end = p->first == NULL ? &p->first : p->end;
    }
    (void)pthread_mutex_unlock(&p->post->lock);
    if (letter == NULL) {
        return FL_ENOENT;
    }
    fl_buf_init(ret, SIZE_MAX / 2);
    ck_assert_int_eq(fl_buf_add(ret, fl_blob_data(letter->blob), fl_blob_len(letter->blob)), FL_OK);
    fl_blob_unref(letter->blob);
    free(letter);
    p->heard++;
    return FL_OK;
}

static void *serve(void *ctx)
{
    struct process *p = ctx;

    p->code = fl_ranks_serve(&p->ranks, p->sim_clients, NULL, 1, NULL, &p->err);
    return NULL;
}

static void post_begin(struct post *post, unsigned n, const struct fl_sim_clients *sim_clients)
{
    unsigned k;

    *post = (struct post){.more = PTHREAD_COND_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (k = 0; k < n; k++) {
        struct process *p = &post->processes[k];

        p->post = post;
        p->sim_clients = sim_clients;
        p->end = &p->first;
        p->ranks = (struct fl_ranks){n, k, post_send, post_receive, p};
    }
    for (k = 1; k < n; k++) {
        ck_assert_int_eq(
            pthread_create(&post->processes[k].thread, NULL, serve, &post->processes[k]), 0);
    }
}

/* All have ended well, and did some of it. */
static void post_end(struct post *post)
{
    struct process *leader = &post->processes[0];
    unsigned k;

    ck_assert_int_eq(fl_ranks_end(&leader->ranks, NULL), FL_OK);
    for (k = 1; k < leader->ranks.n; k++) {
        (void)pthread_join(post->processes[k].thread, NULL);
        ck_assert_msg(post->processes[k].code == FL_OK, "%s", post->processes[k].err.msg);
        ck_assert_uint_gt(post->processes[k].heard, 2);
    }
    while (leader->first != NULL) { /* Answers that nobody waited for. */
        struct fl_buf message;

        ck_assert_int_eq(post_receive(leader, false, &message, NULL), FL_OK);
        fl_buf_done(&message);
    }
}

TEST_EACH(processes_that_share_the_clients_work_come_to_the_same_bits, each_preset_count())
{
    float whole[N_FLOATS];
    float spread[N_FLOATS];
    uint64_t figures;
    struct post post;
    struct run r;
    unsigned n;

    run_init(&r, each_preset(_i));
    go(&r, 4);
    figures = r.figures;
    model_of(&r, 4, whole);
    run_done(&r);
    for (n = 2; n <= TEAM_MAX; n++) {
        run_init(&r, each_preset(_i));
        (void)snprintf(r.journal, sizeof(r.journal), "%s/journal", r.dir);
        post_begin(&post, n, &r.sim_clients);
        r.ranks = &post.processes[0].ranks;
        go(&r, 2); /* The clients' folders are all that is left of it. */
        go(&r, 4);
        post_end(&post);
        model_of(&r, 4, spread);
        ck_assert_uint_eq(r.figures, figures);
        run_done(&r);
        ck_assert_mem_eq(whole, spread, sizeof(whole));
    }
}

/* --- attackers --- */

static int count_attacks(void)
{
    int n = 0;

    while (fl_attack_names[n] != NULL) {
        n++;
    }
    return n;
}

/* An algorithm that the attack can change: of two uploads of a layer samples are the weights. */
static const char *attacked_algorithm(int kind)
{
    return kind == FL_ATTACK_KIND_INFLATED_DIVERGENCE ? "fedldf" : "fedavg";
}

/* A federation with two attackers, which other processes than the leader have, too. */
static void attacked(struct run *r, int kind, bool journal)
{
    run_init(r, attacked_algorithm(kind));
    r->attackers = 2;
    r->attack = (struct fl_attack){
        .kind = (enum fl_attack_kind)kind, .scale = 2, .z = 1.5, .epsilon = 0.5, .seed = 5};
    if (journal) {
        (void)snprintf(r->journal, sizeof(r->journal), "%s/journal", r->dir);
    }
}

TEST_EACH(an_attack_changes_the_model_alike_for_any_threads_processes_and_restarts, count_attacks())
{
    float honest[N_FLOATS];
    float whole[N_FLOATS];
    float again[N_FLOATS];
    uint64_t figures;
    struct post post;
    struct run r;
    unsigned n;

    run_init(&r, attacked_algorithm(_i));
    go(&r, 4);
    model_of(&r, 4, honest);
    run_done(&r);
    attacked(&r, _i, /* journal= */ false);
    go(&r, 4);
    figures = r.figures;
    model_of(&r, 4, whole);
    run_done(&r);
    ck_assert_mem_ne(honest, whole, sizeof(whole));
    attacked(&r, _i, /* journal= */ true);
    r.threads = 3;
    go(&r, 1);
    go(&r, 4);
    model_of(&r, 4, again);
    ck_assert_uint_eq(r.figures, figures);
    run_done(&r);
    ck_assert_mem_eq(whole, again, sizeof(whole));
    for (n = 2; n <= TEAM_MAX; n++) {
        attacked(&r, _i, /* journal= */ true);
        post_begin(&post, n, &r.sim_clients);
        r.ranks = &post.processes[0].ranks;
        go(&r, 2);
        go(&r, 4);
        post_end(&post);
        model_of(&r, 4, again);
        ck_assert_uint_eq(r.figures, figures);
        run_done(&r);
        ck_assert_mem_eq(whole, again, sizeof(whole));
    }
}

/* The claim in Hello: that of a report counts from the next round on. */
TEST(false_samples_weigh_more_from_the_first_round_on)
{
    float model[2][N_FLOATS];
    size_t attackers;

    for (attackers = 0; attackers < 2; attackers++) {
        struct run r;

        attacked(&r, FL_ATTACK_KIND_FALSE_SAMPLES, /* journal= */ false);
        r.attackers = attackers;
        go(&r, 1);
        model_of(&r, 1, model[attackers]);
        run_done(&r);
    }
    ck_assert_mem_ne(model[0], model[1], sizeof(model[0]));
}

/* (3 mean - 3 mean) / 4 = 0: only the updates of all honest clients of the round do that. */
TEST(inner_product_manipulation_of_one_in_four_by_epsilon_3_cancels_the_honest_updates)
{
    float first[N_FLOATS];
    float second[N_FLOATS];
    double moved[2] = {0, 0};
    int ipm;
    size_t i;

    for (ipm = 0; ipm < 2; ipm++) {
        struct run r;

        attacked(&r, FL_ATTACK_KIND_IPM, /* journal= */ false);
        r.attackers = (size_t)ipm;
        r.attack.epsilon = 3;
        go(&r, 1);
        model_of(&r, 1, first);
        go(&r, 2);
        model_of(&r, 2, second);
        run_done(&r);
        for (i = 0; i < N_FLOATS; i++) {
            moved[ipm] = fmax(moved[ipm], fabs((double)second[i] - (double)first[i]));
        }
    }
    ck_assert_double_gt(moved[0], 1e-3);
    ck_assert_double_lt(moved[1], 1e-6);
}

/* Ends of the trainings of a round; the attacker comes first. */
struct ends {
    uint64_t round, attacker, honest;
    unsigned checked;
};

static void note_end(void *ctx, const struct fl_fed_part *part)
{
    struct ends *e = ((struct run *)ctx)->ends;

    if (e->round != part->round) {
        *e = (struct ends){.round = part->round, .checked = e->checked};
    }
    ck_assert_uint_ne(part->trained_us, 0);
    if (part->client == 0) {
        e->attacker = part->trained_us;
    } else {
        e->honest = part->trained_us > e->honest ? part->trained_us : e->honest;
    }
    if (part->client == N_CLIENTS - 1) {
        ck_assert_uint_ge(e->attacker, e->honest);
        e->checked++;
    }
}

static struct fl_world *make_world(const char *text)
{
    struct fl_conf_doc *doc = NULL;
    struct fl_world *world = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_conf_parse("world", text, strlen(text), &doc, &err), FL_OK);
    ck_assert_msg(
        fl_world_load(&(struct fl_world_ask){.node = fl_conf_root(doc), .seed = 1, .n = N_CLIENTS},
                      &world, &err) == FL_OK,
        "%s", err.msg);
    fl_conf_free(doc);
    return world;
}

TEST(an_attacker_that_knows_the_honest_updates_reports_after_the_last_honest_training)
{
    struct ends ends = {.round = 0};
    struct fl_world *world = make_world("{train: {fixed: 800ms, jitter: 0.7}}");
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end;
    struct run r;

    attacked(&r, FL_ATTACK_KIND_ALIE, /* journal= */ false);
    r.attackers = 1;
    r.ends = &ends;
    conf = conf_of(&r, 10);
    conf.world = world;
    conf.watch.part = note_end;
    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_fed_run(fed, &end, &err) == FL_OK, "%s", err.msg);
    fl_fed_free(fed);
    ck_assert_uint_eq(ends.checked, 10);
    fl_world_free(world);
    run_done(&r);
}

/* Counts attackers that waited until the round had ended, and honest clients that attackers did not
   wait for. The attackers of an attempt come first. */
static void note_waiting(void *ctx, const struct fl_fed_part *part)
{
    struct run *r = ctx;
    bool trained = part->trained_us != 0;

    if (part->client < r->attackers) {
        r->late += !trained && !part->dropped && part->state == FL_PARTICIPANT_LOST;
        if (part->state == FL_PARTICIPANT_ACCEPTED) {
            *r->ends = (struct ends){
                .round = part->round, .attacker = part->attempt, .checked = r->ends->checked};
        }
    } else if (r->ends->round == part->round && r->ends->attacker == part->attempt) {
        r->ends->checked += !trained && part->dropped;
    }
}

/* Until `rounds`; a round waits `train_ms` for reports. */
static void go_in_world(struct run *r, uint64_t rounds, uint64_t train_ms)
{
    struct fl_fed_conf conf = conf_of(r, rounds);
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end;

    conf.world = r->world;
    conf.coord.start_clients = 1;
    conf.coord.min_clients = 1;
    conf.coord.train_ms = train_ms;
    conf.watch.part = note_waiting;
    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_fed_run(fed, &end, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(end == FL_FED_DONE, "%s", fl_fed_why(fed));
    fl_fed_free(fed);
}

TEST_EACH(attackers_wait_for_late_clients_not_for_lost_ones_with_the_same_bits_after_a_restart, 2)
{
    static const char *const texts[] = {
        "{latency: 900ms, train: {fixed: 800ms, jitter: 0.7}}",
        "{latency: 10ms, train: {fixed: 2s, jitter: 0.1}, availability: {every: 9s, "
        "from: {uniform: [0s, 9s]}, up_for: 6s}}"};
    static const uint64_t train_ms[] = {6200, 20000};
    struct fl_world *world = make_world(texts[_i]);
    float whole[N_FLOATS];
    float again[N_FLOATS];
    uint64_t figures = 0;
    struct ends ends = {.round = 0};
    int restarted;

    for (restarted = 0; restarted < 2; restarted++) {
        struct run r;

        attacked(&r, FL_ATTACK_KIND_ALIE, /* journal= */ true);
        r.world = world;
        r.ends = &ends;
        if (restarted != 0) {
            r.threads = 3;
            go_in_world(&r, 3, train_ms[_i]);
            go_in_world(&r, 19, train_ms[_i]);
        }
        go_in_world(&r, 20, train_ms[_i]);
        model_of(&r, 20, restarted != 0 ? again : whole);
        ck_assert(restarted == 0 || r.figures == figures);
        figures = r.figures;
        ck_assert_uint_gt(_i == 0 ? r.late : ends.checked, 0);
        run_done(&r);
    }
    ck_assert_mem_eq(whole, again, sizeof(whole));
    fl_world_free(world);
}

TEST(an_attack_without_attackers_is_the_honest_federation)
{
    float honest[N_FLOATS];
    float none[N_FLOATS];
    struct run r;

    run_init(&r, "fedavg");
    go(&r, 4);
    model_of(&r, 4, honest);
    run_done(&r);
    attacked(&r, FL_ATTACK_KIND_SIGN_FLIP, /* journal= */ false);
    r.attackers = 0;
    go(&r, 4);
    model_of(&r, 4, none);
    run_done(&r);
    ck_assert_mem_eq(honest, none, sizeof(none));
}

static void trained_as_the_world_says(void *ctx, const struct fl_fed_part *part)
{
    const struct fl_world *world = ((struct run *)ctx)->world;
    uint64_t span = fl_world_train_us(world, part->client, part->round, 30);

    if (part->trained_us != 0) {
        ck_assert_uint_eq(part->trained_us - part->fetched_us, span);
    } else {
        ck_assert_uint_ge(part->fetched_us - part->selected_us + span, 1000000);
        ((struct run *)ctx)->late++;
    }
}

TEST(a_training_that_was_cancelled_does_not_end_the_next_one)
{
    static const char text[] = "{train: {fixed: 800ms, jitter: 0.7}}";
    struct fl_conf_doc *doc = NULL;
    struct fl_world *world = NULL;
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end;
    struct run r;

    run_init(&r, "fedavg");
    ck_assert_int_eq(fl_conf_parse("world", text, strlen(text), &doc, &err), FL_OK);
    ck_assert_msg(
        fl_world_load(&(struct fl_world_ask){.node = fl_conf_root(doc), .seed = 1, .n = 4}, &world,
                      &err) == FL_OK,
        "%s", err.msg);
    r.world = world;
    conf = conf_of(&r, 20);
    conf.world = world;
    conf.dry = true;
    conf.coord.train_ms = 1000;
    conf.coord.evaluate_every = 0;
    conf.watch.part = trained_as_the_world_says;
    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_fed_run(fed, &end, &err), FL_OK);
    ck_assert_int_eq(end, FL_FED_DONE);
    ck_assert_uint_gt(r.late, 10);
    fl_fed_free(fed);
    fl_world_free(world);
    fl_conf_free(doc);
    run_done(&r);
}

TEST(a_federation_that_waits_for_more_clients_than_come_says_so)
{
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end;
    struct run r;

    run_init(&r, "fedavg");
    r.sim_clients.n = 3;
    conf = conf_of(&r, 1);
    ck_assert_msg(fl_fed_create(&conf, &fed, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_fed_run(fed, &end, &err), FL_OK);
    ck_assert_int_eq(end, FL_FED_STUCK);
    ck_assert_ptr_nonnull(strstr(fl_fed_why(fed), "3 of 4 clients are connected"));
    fl_fed_free(fed);
    run_done(&r);
}

TEST(a_name_that_nobody_can_have_ends_the_run)
{
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    struct fl_err err = {0};
    enum fl_fed_end end;
    struct run r;

    run_init(&r, "fedavg");
    (void)snprintf(r.names[0], sizeof(r.names[0]), "../up");
    conf = conf_of(&r, 1);
    ck_assert_int_eq(fl_fed_create(&conf, &fed, &err), FL_OK);
    ck_assert_int_eq(fl_fed_run(fed, &end, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "../up"));
    fl_fed_free(fed);
    run_done(&r);
}
