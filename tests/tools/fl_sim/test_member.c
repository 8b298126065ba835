/*
 * A client that is there for its part in a round and gone again is the client that stays: the same
 * results, bytes and kept state, and with uploads in memory the same next model, for every preset.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/work/data_summary.h"
#include "libfl/base/fs.h"
#include "server/work/aggregation.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/each_preset.h"
#include "tests/lib/folder.h"
#include "tests/lib/member_open.h"
#include "tests/lib/suites.h"

#define CLIENTS 2
#define ROUNDS  4

/* A server that has the uploads of its clients in files, or in memory. */
struct side {
    char dir[128];
    struct fl_federation fed;
    struct fl_model_state model;
};

struct world {
    struct server server; /* network and layout */
    struct fl_strategy *strategy;
    struct fl_setup *setup;
    struct fl_dataset *data[CLIENTS];
    struct fl_trainer *lent;
    struct fl_buf collection; /* of all clients */
    struct side files, memory;
    char dir[FOLDER_PATH];
    struct fl_err err;
};

static uint64_t seed_of(size_t k)
{
    return 7 + k;
}

/* Clients may hold the first model. */
static void side_begin_versions(struct side *s)
{
    struct fl_versions *versions = NULL;
    uint8_t digest[FL_DIGEST_SIZE];

    ck_assert_int_eq(fl_versions_digest(s->fed.layout, fl_blob_floats(s->model.theta), digest),
                     FL_OK);
    ck_assert_int_eq(fl_versions_create(digest, &versions), FL_OK);
    ck_assert_int_eq(
        fl_differences_create(s->fed.layout, versions, s->model.theta, &s->model.differences),
        FL_OK);
}

static void side_init(struct world *w, const char *name, struct side *s)
{
    char personal_models[160];
    size_t i;

    (void)snprintf(s->dir, sizeof(s->dir), "%s/%s", w->dir, name);
    (void)snprintf(personal_models, sizeof(personal_models), "%s/personal_models", s->dir);
    ck_assert_int_eq(fl_fs_mkdirs(personal_models, NULL), FL_OK);
    s->fed = (struct fl_federation){
        .layout = w->server.model.layout, .strategy = w->strategy, .state_dir = s->dir};
    fl_federation_name_states(&s->fed);
    ck_assert_int_eq(fl_model_state_new(&s->fed, &s->model), FL_OK);
    (void)memcpy(fl_blob_fill(s->model.theta), w->server.theta, w->server.count * sizeof(float));
    for (i = 0; i < s->fed.n_state; i++) {
        (void)memset(fl_blob_fill(s->model.state[i]), 0, w->server.count * sizeof(float));
    }
    ck_assert_int_eq(fl_broadcast_place(w->strategy->broadcast,
                                        w->strategy->options[FL_COMPONENT_BROADCAST], s->fed.layout,
                                        (float *)(void *)fl_blob_fill(s->model.theta), NULL),
                     FL_OK);
    if (fl_broadcast_sends_moves(w->strategy->broadcast)) {
        side_begin_versions(s);
    }
}

static void side_done(struct side *s)
{
    fl_uploads_free(s->fed.uploads);
    fl_model_state_done(&s->model);
}

static void world_init(struct world *w, const char *preset)
{
    const struct fl_generation generation = {.made = {0}};

    *w = (struct world){.setup = NULL};
    server_init(&w->server);
    ck_assert(folder_make("fl-member", w->dir));
    ck_assert_msg(fl_strategy_create(preset, &w->strategy, &w->err) == FL_OK, "%s", w->err.msg);
    if (w->strategy->personal->own) { /* so that what is received is blended */
        ck_assert_int_eq(
            fl_options_set(w->strategy->options[FL_COMPONENT_PERSONAL], "beta", "0.5", NULL),
            FL_OK);
    }
    ck_assert_msg(
        fl_member_setup(&(struct fl_described){.federation = "f",
                                               .strategy = w->strategy,
                                               .layout = w->server.model.layout,
                                               .net = &w->server.model.net,
                                               .generation = &generation,
                                               .training = {.steps = 4, .batch_size = 10}},
                        &w->setup, &w->err) == FL_OK,
        "%s", w->err.msg);
    w->data[0] = make_data(23, INPUTS, CLASSES, 1);
    w->data[1] = make_data(6, INPUTS, CLASSES, 2);
    ck_assert_int_eq(fl_trainer_builtin(w->data[0], NULL, NULL, &w->lent, &w->err), FL_OK);
    ck_assert_int_eq(fl_worker_prepare_trainer(w->lent, w->setup, &w->err), FL_OK);
    fl_buf_init(&w->collection, SIZE_MAX);
    side_init(w, "files", &w->files);
    side_init(w, "memory", &w->memory);
    ck_assert_int_eq(fl_uploads_create(&w->memory.fed.uploads), FL_OK);
}

static void world_done(struct world *w)
{
    size_t k;

    fl_trainer_free(w->lent);
    for (k = 0; k < CLIENTS; k++) {
        fl_dataset_free(w->data[k]);
    }
    fl_buf_done(&w->collection);
    side_done(&w->files);
    side_done(&w->memory);
    fl_setup_unref(w->setup);
    fl_strategy_free(w->strategy);
    server_done(&w->server);
    folder_remove(w->dir);
}

/* --- the two ways --- */

static void path_of(const struct world *w, const char *way, size_t k, char out[128])
{
    (void)snprintf(out, 128, "%s/%s-%zu", w->dir, way, k);
}

static void begin(struct world *w, size_t k, struct fl_member *ret)
{
    char dir[128];
    const struct fl_member_place place = {.dir = dir, .seed = seed_of(k)};

    path_of(w, "begun", k, dir);
    ck_assert_msg(fl_member_begin(ret, &place, w->setup, &w->err) == FL_OK, "%s", w->err.msg);
    ck_assert_int_eq(fl_trainer_set_data(w->lent, w->data[k], NULL, &w->err), FL_OK);
    fl_member_lend(ret, w->lent);
}

static void open_one(struct world *w, size_t k, struct fl_member *ret)
{
    struct fl_trainer *trainer = NULL;
    char dir[128];

    path_of(w, "opened", k, dir);
    ck_assert_int_eq(fl_fs_mkdirs(dir, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_builtin(w->data[k], NULL, NULL, &trainer, &w->err), FL_OK);
    ck_assert_msg(member_open(ret, dir, trainer, NULL, seed_of(k), &w->err) == FL_OK, "%s",
                  w->err.msg);
    ck_assert_msg(fl_worker_prepare(&ret->worker, w->setup, &w->err) == FL_OK, "%s", w->err.msg);
}

/* Both make the same summary; the round has those of all. */
static void summary(struct world *w, const struct fl_member *a, const struct fl_member *b)
{
    struct fl_data_summary x;
    struct fl_data_summary y;

    if (w->setup->solver->summary == NULL) {
        return;
    }
    ck_assert_int_eq(fl_data_summary_make(&a->worker, &x, NULL), FL_OK);
    ck_assert_int_eq(fl_data_summary_make(&b->worker, &y, NULL), FL_OK);
    ck_assert_uint_gt(x.data.len, 0);
    ck_assert_uint_eq(x.data.len, y.data.len);
    ck_assert_mem_eq(x.data.data, y.data.data, x.data.len);
    ck_assert_int_eq(fl_buf_add(&w->collection, x.data.data, x.data.len), FL_OK);
    fl_data_summary_done(&x);
    fl_data_summary_done(&y);
}

/* --- a round --- */

struct payloads {
    struct member_payload list[FL_WIRE_MAX_PAYLOADS];
    float *blocks[FL_WIRE_MAX_PAYLOADS];
    size_t n;
};

/* A block that is another in each round, of its name. */
static void add_block(const struct world *w, struct payloads *b, const char *name, uint64_t round)
{
    float *data = calloc(w->server.count, sizeof(*data));
    struct fl_rng rng;
    size_t i;

    fl_rng_key(&rng, 1, FL_RNG_BATCH, round, strlen(name));
    for (i = 0; i < w->server.count; i++) {
        data[i] = w->server.theta[i] + 0.01f * (float)fl_rng_normal(&rng);
    }
    b->blocks[b->n] = data;
    b->list[b->n++] = (struct member_payload){name, data, w->server.count * sizeof(*data), false};
}

static void list_payloads(const struct world *w, uint64_t round, struct payloads *b)
{
    const char *const *name = w->setup->solver->inputs;
    const char *collection = w->setup->solver->collection;

    *b = (struct payloads){.n = 0};
    add_block(w, b, "model", round);
    if (w->setup->personal->own && round % 2 == 0) {
        add_block(w, b, "personal_model", round);
    }
    for (; name != NULL && *name != NULL; name++) {
        if (collection != NULL && strcmp(*name, collection) == 0) {
            b->list[b->n++] =
                (struct member_payload){*name, w->collection.data, w->collection.len, true};
        } else {
            add_block(w, b, *name, round);
        }
    }
}

static void payloads_done(struct payloads *b)
{
    size_t i;

    for (i = 0; i < b->n; i++) {
        free(b->blocks[i]);
    }
}

/* What is lent is only read. */
static void expect_unchanged(const struct world *w, uint64_t round, const struct payloads *b)
{
    struct payloads fresh;
    size_t i;

    list_payloads(w, round, &fresh);
    for (i = 0; i < b->n; i++) {
        if (b->blocks[i] != NULL) {
            ck_assert_mem_eq(b->blocks[i], fresh.blocks[i], w->server.count * sizeof(float));
        }
    }
    payloads_done(&fresh);
}

/* Lent, as in fl-sim, or received, as by a daemon. */
static int fetch(struct fl_member *m, const struct fl_task *task, const struct payloads *b,
                 struct fl_err *err)
{
    struct fl_member_payload lent[FL_WIRE_MAX_PAYLOADS];
    size_t i;

    if (!m->begun) {
        return member_fetch(m, task, &(struct member_server){.payloads = b->list, .n = b->n}, err);
    }
    for (i = 0; i < b->n; i++) {
        lent[i] = (struct fl_member_payload){b->list[i].name, b->list[i].data, b->list[i].len};
    }
    return fl_member_fetch(m, task, lent, b->n, err);
}

static void take_part(struct world *w, struct fl_member *m, size_t k, uint64_t round,
                      struct fl_code *code)
{
    uint8_t units[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    /* The third round is not counted. */
    const struct fl_task task = {.key = {round, 1},
                                 .counted = {round == 4 ? 2 : round - 1, round > 1},
                                 .learning_rate = 0.05,
                                 .seed = 100 * round + k,
                                 .order_seed = 3,
                                 .n_selected = CLIENTS,
                                 .population = CLIENTS};
    struct payloads b;

    list_payloads(w, round, &b);
    ck_assert_msg(fetch(m, &task, &b, &w->err) == FL_OK, "%s", w->err.msg);
    ck_assert_msg(fl_member_train(m, &w->err) == FL_OK, "%s", w->err.msg);
    expect_unchanged(w, round, &b);
    units[k % 2] = round % 2 == 0; /* every other time a part of the units */
    ck_assert_msg(fl_member_code(m, units, code, &w->err) == FL_OK, "%s", w->err.msg);
    payloads_done(&b);
}

static void same_result(const struct fl_result *a, const struct fl_result *b)
{
    ck_assert_uint_eq(a->n_floats, b->n_floats);
    ck_assert_mem_eq(a->delta, b->delta, a->n_floats * sizeof(float));
    ck_assert_mem_eq(a->divergence, b->divergence, a->n_units * sizeof(float));
    ck_assert_mem_eq(&a->train_loss, &b->train_loss, sizeof(double));
    ck_assert_mem_eq(&a->previous_dot, &b->previous_dot, sizeof(double));
}

static void same_push(const struct fl_code *a, const struct fl_code *b)
{
    size_t n = fl_blob_len(a->bytes);
    size_t i;

    ck_assert_uint_eq(n, fl_blob_len(b->bytes));
    ck_assert_mem_eq(fl_blob_data(a->bytes), fl_blob_data(b->bytes), n);
    ck_assert_uint_eq(a->n_parts, b->n_parts);
    for (i = 0; i < a->n_parts; i++) {
        ck_assert_str_eq(a->parts[i].payload, b->parts[i].payload);
        ck_assert_uint_eq(a->parts[i].unit, b->parts[i].unit);
        ck_assert_uint_eq(a->parts[i].bytes, b->parts[i].bytes);
    }
}

/* The next model of a server, and how far each update is from it. */
static void aggregate(struct side *s, uint64_t round, double distance[CLIENTS])
{
    struct fl_participant_rec parts[CLIENTS] = {{0}};
    struct fl_client_rec clients[CLIENTS] = {{0}};
    struct fl_aggregation a = {.round = round,
                               .attempt = 1,
                               .members = CLIENTS,
                               .learning_rate = 0.05,
                               .parts = parts,
                               .clients = clients,
                               .n_parts = CLIENTS,
                               .model = &s->model,
                               .want_distance =
                                   round % 2 == 0 &&
                                   fl_strategy_distance(s->fed.strategy) == FL_DISTANCE_NEW};
    struct fl_err err = {0};
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        (void)snprintf(clients[k].name, sizeof(clients[k].name), "c%zu", k);
        parts[k] =
            (struct fl_participant_rec){.client = (uint32_t)k, .samples = 10 + k, .steps = 4};
    }
    ck_assert_msg(fl_aggregation_run(&s->fed, &a, &err) == FL_OK, "%s", err.msg);
    (void)memcpy(distance, a.distance, CLIENTS * sizeof(*distance)); /* zeros, or measured */
    fl_model_state_done(&s->model);
    s->model = a.next.model;
    a.next.model = (struct fl_model_state){.theta = NULL};
    fl_aggregation_done(&a);
}

static void same_model(struct world *w, uint64_t round)
{
    size_t bytes = w->server.count * sizeof(float);
    double x[CLIENTS];
    double y[CLIENTS];
    size_t i;

    aggregate(&w->files, round, x);
    aggregate(&w->memory, round, y);
    ck_assert_mem_eq(x, y, sizeof(x));
    ck_assert_mem_eq(fl_blob_data(w->files.model.theta), fl_blob_data(w->memory.model.theta),
                     bytes);
    for (i = 0; i < w->files.fed.n_state; i++) {
        ck_assert_mem_eq(fl_blob_data(w->files.model.state[i]),
                         fl_blob_data(w->memory.model.state[i]), bytes);
    }
    fl_uploads_clean(w->memory.fed.uploads, 0, 0);
}

TEST_EACH(who_comes_for_a_round_and_goes_is_who_stays_for_every_preset, each_preset_count())
{
    struct fl_member stays[CLIENTS];
    struct fl_member comes;
    struct world w;
    uint64_t round;
    char name[16];
    size_t k;

    world_init(&w, each_preset(_i));
    for (k = 0; k < CLIENTS; k++) {
        open_one(&w, k, &stays[k]);
        begin(&w, k, &comes);
        summary(&w, &stays[k], &comes);
        fl_member_close(&comes);
    }
    for (round = 1; round <= ROUNDS; round++) {
        for (k = 0; k < CLIENTS; k++) {
            struct fl_norms norms[2];
            struct fl_code a;
            struct fl_code b;

            begin(&w, k, &comes);
            take_part(&w, &stays[k], k, round, &a);
            take_part(&w, &comes, k, round, &b);
            same_result(stays[k].held.result, comes.held.result);
            same_push(&a, &b);
            (void)snprintf(name, sizeof(name), "c%zu", k);
            ck_assert_msg(fl_member_upload(&w.files.fed, name, &a, &norms[0], &w.err) == FL_OK,
                          "%s", w.err.msg);
            ck_assert_msg(fl_member_upload(&w.memory.fed, name, &b, &norms[1], &w.err) == FL_OK,
                          "%s", w.err.msg);
            ck_assert_mem_eq(norms[0].rms, norms[1].rms, sizeof(norms[0].rms));
            free(norms[0].unit);
            free(norms[1].unit);
            fl_code_done(&a);
            fl_code_done(&b);
            fl_member_close(&comes);
        }
        ck_assert_uint_gt(fl_uploads_bytes(w.memory.fed.uploads), 0);
        same_model(&w, round);
    }
    for (k = 0; k < CLIENTS; k++) {
        fl_member_close(&stays[k]);
    }
    world_done(&w);
}

TEST_EACH(a_folder_is_made_only_where_something_is_kept, each_preset_count())
{
    struct fl_member m;
    struct fl_code code;
    struct world w;
    struct stat st;
    char dir[128];

    world_init(&w, each_preset(_i));
    begin(&w, 0, &m);
    if (w.setup->solver->summary == NULL) {
        take_part(&w, &m, 0, 1, &code);
        fl_code_done(&code);
        path_of(&w, "begun", 0, dir);
        ck_assert_int_eq(stat(dir, &st) == 0, fl_client_state_wanted(m.worker.keeps));
    }
    fl_member_close(&m);
    world_done(&w);
}

TEST(where_something_is_kept_there_has_to_be_a_folder)
{
    const struct fl_member_place nowhere = {.seed = 1};
    struct fl_member m;
    struct world w;

    world_init(&w, "scaffold");
    ck_assert_int_eq(fl_member_begin(&m, &nowhere, w.setup, &w.err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(w.err.msg, "no folder"));
    world_done(&w);
    world_init(&w, "fedavg");
    ck_assert_int_eq(fl_member_begin(&m, &nowhere, w.setup, &w.err), FL_OK);
    ck_assert(!fl_client_state_wanted(m.worker.keeps));
    fl_member_close(&m);
    world_done(&w);
}
