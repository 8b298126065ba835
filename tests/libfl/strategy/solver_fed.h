#ifndef FL_TESTS_SOLVER_FED_H
#define FL_TESTS_SOLVER_FED_H

/*
 * A federation around a solver with a server's part, where the test says who trains and what of it
 * is counted: clients are members (tools/fl_sim/engine/member.h), the server's pass is that of
 * server/work. Two units, the first with batch-norm buffers.
 */

#include <math.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/strategy/solver/solver.h"
#include "server/work/aggregation.h"
#include "tests/lib/folder.h"
#include "tests/lib/member_open.h"
#include "tests/libfl/strategy/strategy_fixture.h"

#define FED_CLIENTS 5
#define FED_UNITS   2
#define FED_INPUTS  6
#define FED_BATCH   8
#define FED_SAMPLES 24 /* of each client */

struct fed {
    const struct fl_solver_ops *ops;
    struct fl_strategy *strategy;
    struct fl_options *o; /* the strategy's, of the solver */
    struct fl_solver_setup how;
    struct fl_net_spec spec;
    struct fl_net *net;
    const struct fl_layout *layout;
    size_t count;
    char dir[FOLDER_PATH];
    struct fl_federation federation;
    struct fl_model_state model;
    struct fl_member client[FED_CLIENTS];
    struct fl_dataset *data[FED_CLIENTS];
    struct fl_round_key counted[FED_CLIENTS];
    float *theta, *state, *before; /* exported; `before`: theta of the last round */
    float *described;              /* the payload for clients, computed from the state */
    size_t members;                /* of the round */
    float *own[FED_CLIENTS];       /* what each keeps */
    float *delta[FED_CLIENTS], *sent[FED_CLIENTS]; /* of the last round */
    size_t n_steps[FED_CLIENTS];
    size_t n_selected; /* sent to the clients */
    size_t batch;
    uint64_t round;
    bool sums;                  /* fill `moved` */
    double *moved[FED_CLIENTS]; /* sum of -eta g along the path, internal order */
};

/* Who trains, and of them whose unit arrives and is counted. */
struct fed_plan {
    bool trains[FED_CLIENTS];
    bool counted[FED_CLIENTS][FED_UNITS];
};

static inline struct fed_plan fed_everybody(void)
{
    struct fed_plan plan;

    (void)memset(&plan, 1, sizeof(plan));
    return plan;
}

/* --- a solver whose gradients are added up beside it --- */

static struct {
    struct fed *fed;
    size_t client;
    struct fl_net *net;
    float *grad;
} fed_watched;

static inline int fed_watch_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                                   struct fl_solver **ret, struct fl_err *err)
{
    fed_watched.net = setup->net;
    return fed_watched.fed->ops->create(o, setup, ret, err);
}

static inline double fed_watch_step(struct fl_solver *solver, const float *x, const int32_t *y,
                                    size_t batch)
{
    struct fed *f = fed_watched.fed;
    double *moved = f->moved[fed_watched.client];
    size_t i;

    if (f->sums) {
        (void)fl_net_gradient(fed_watched.net, x, y, batch, fed_watched.grad);
        for (i = 0; i < fl_net_block(f->net); i++) {
            moved[i] -= f->how.learning_rate * (double)fed_watched.grad[i];
        }
    }
    return f->ops->step(solver, x, y, batch);
}

/* --- life --- */

static inline struct fl_dataset *fed_data(struct fl_rng *rng, size_t k)
{
    const size_t dims[3] = {FED_INPUTS, 1, 1};
    struct fl_dataset *ds = NULL;
    float *x;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, FED_SAMPLES, dims, 1, &ds, NULL), FL_OK);
    x = ds->x;
    for (i = 0; i < (size_t)FED_SAMPLES * FED_INPUTS; i++) {
        x[i] = (float)(fl_rng_normal(rng) + 0.3 * (double)k);
    }
    for (i = 0; i < FED_SAMPLES; i++) { /* each client has two of the four classes */
        ds->y[i] = (int32_t)((k + fl_rng_below(rng, 2)) % 4);
    }
    ds->classes = 4;
    return ds;
}

static inline void fed_open_client(struct fed *f, size_t k, const struct fl_solver_ops *watch)
{
    const struct fl_generation generation = {.made = 0};
    const struct fl_described of = {.federation = "fed",
                                    .strategy = f->strategy,
                                    .layout = f->layout,
                                    .net = &f->spec,
                                    .generation = &generation,
                                    .training = {.steps = (uint32_t)f->n_steps[k],
                                                 .batch_size = (uint32_t)f->batch,
                                                 .momentum = f->how.momentum,
                                                 .weight_decay = f->how.weight_decay}};
    struct fl_trainer *trainer = NULL;
    struct fl_setup *setup = NULL;
    struct fl_err err = {0};
    char dir[96];

    (void)snprintf(dir, sizeof(dir), "%s/%zu", f->dir, k);
    ck_assert_int_eq(fl_fs_mkdirs(dir, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_builtin(f->data[k], NULL, NULL, &trainer, NULL), FL_OK);
    ck_assert_int_eq(member_open(&f->client[k], dir, trainer, NULL, k, NULL), FL_OK);
    ck_assert_msg(fl_member_setup(&of, &setup, &err) == FL_OK, "%s", err.msg);
    setup->solver = watch;
    ck_assert_msg(fl_worker_prepare(&f->client[k].worker, setup, &err) == FL_OK, "%s", err.msg);
    fl_setup_unref(setup);
}

static inline void fed_open_server(struct fed *f, const char *option)
{
    struct fl_err err = {0};
    char name[64];
    const char *eq = option != NULL ? strchr(option, '=') : NULL;

    ck_assert_int_eq(fl_strategy_create("fedavg", &f->strategy, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(f->strategy, FL_COMPONENT_SOLVER, f->ops->policy.name, &err),
                     FL_OK);
    f->o = f->strategy->options[FL_COMPONENT_SOLVER];
    if (eq != NULL) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)(eq - option), option);
        ck_assert_int_eq(fl_options_set(f->o, name, eq + 1, &err), FL_OK);
    }
    f->federation = (struct fl_federation){.layout = f->layout,
                                           .strategy = f->strategy,
                                           .state_dir = f->dir,
                                           .momentum = f->how.momentum};
    fl_federation_name_states(&f->federation);
    ck_assert_uint_eq(f->federation.n_state, 1);
    ck_assert_int_eq(fl_model_state_new(&f->federation, &f->model), FL_OK);
    (void)memcpy(fl_blob_fill_floats(f->model.theta), f->theta, f->count * sizeof(float));
    (void)memset(fl_blob_fill_floats(f->model.state[0]), 0, f->count * sizeof(float));
}

/* `full_batch` 0: clients make 2 and more steps on batches of FED_BATCH; else one on all samples.
 */
static inline void fed_init_steps(struct fed *f, const struct fl_solver_ops *ops,
                                  const char *option, const struct fl_solver_setup *how,
                                  size_t full_batch)
{
    static const char *const layers[] = {"dense 9", "bn", "relu", "dense 4"};
    static struct fl_solver_ops watch;
    struct fl_err err = {0};
    struct fl_rng rng;
    size_t k;

    *f = (struct fed){.ops = ops,
                      .how = *how,
                      .n_selected = FED_CLIENTS,
                      .members = FED_CLIENTS,
                      .batch = full_batch > 0 ? full_batch : FED_BATCH};
    f->spec =
        (struct fl_net_spec){.input = {FED_INPUTS}, .n_input = 1, .layers = layers, .n_layers = 4};
    ck_assert_msg(fl_net_create(&f->spec, FED_BATCH, &f->net, &err) == FL_OK, "%s", err.msg);
    f->layout = fl_net_layout(f->net);
    ck_assert_uint_eq(fl_layout_units(f->layout), FED_UNITS);
    ck_assert_uint_gt(fl_layout_unit(f->layout, 0)->n_buffers, 0);
    f->count = fl_layout_count(f->layout);
    ck_assert(folder_make("fl-solver", f->dir));
    fl_rng_seed(&rng, 11);
    fl_net_init(f->net, &rng);
    f->theta = calloc(f->count, sizeof(float));
    f->before = calloc(f->count, sizeof(float));
    f->state = calloc(f->count, sizeof(float));
    f->described = calloc(f->count, sizeof(float));
    fl_net_get(f->net, f->theta);
    fed_open_server(f, option);
    watch = *ops;
    watch.create = fed_watch_create;
    watch.step = fed_watch_step;
    for (k = 0; k < FED_CLIENTS; k++) {
        f->own[k] = calloc(f->count, sizeof(float));
        f->delta[k] = calloc(f->count, sizeof(float));
        f->sent[k] = calloc(f->count, sizeof(float));
        f->moved[k] = calloc(fl_net_block(f->net), sizeof(double));
        f->n_steps[k] = full_batch > 0 ? 1 : 2 + k;
        f->data[k] = fed_data(&rng, k);
        fed_open_client(f, k, &watch);
    }
}

static inline void fed_init(struct fed *f, const struct fl_solver_ops *ops, const char *option,
                            const struct fl_solver_setup *how)
{
    fed_init_steps(f, ops, option, how, 0);
}

static inline void fed_done(struct fed *f)
{
    size_t k;

    for (k = 0; k < FED_CLIENTS; k++) {
        fl_member_close(&f->client[k]);
        fl_dataset_free(f->data[k]);
        free(f->own[k]);
        free(f->delta[k]);
        free(f->sent[k]);
        free(f->moved[k]);
    }
    free(f->theta);
    free(f->before);
    free(f->state);
    free(f->described);
    fl_model_state_done(&f->model);
    fl_strategy_free(f->strategy);
    fl_net_free(f->net);
    folder_remove(f->dir);
}

/* --- a round --- */

static inline uint64_t fed_seed(const struct fed *f, size_t k)
{
    return f->round * FED_CLIENTS + k;
}

static inline void fed_train(struct fed *f, size_t k)
{
    const size_t bytes = f->count * sizeof(float);
    const bool described = fl_solver_names(f->ops->inputs) > 0;
    const struct member_payload payloads[] = {
        {"model", f->theta, bytes, false},
        {described ? f->ops->inputs[0] : NULL, f->described, bytes, false}};
    const struct fl_task task = {.key = {f->round, 1},
                                 .counted = f->counted[k],
                                 .learning_rate = f->how.learning_rate,
                                 .seed = fed_seed(f, k),
                                 .n_selected = (uint32_t)f->n_selected,
                                 .population = FED_CLIENTS};
    const struct fl_result *made;
    struct fl_err err = {0};

    fed_watched.fed = f;
    fed_watched.client = k;
    fed_watched.grad = calloc(fl_net_block(f->net), sizeof(float));
    (void)memset(f->moved[k], 0, fl_net_block(f->net) * sizeof(double));
    ck_assert_msg(member_fetch(&f->client[k], &task,
                               &(struct member_server){.payloads = payloads, .n = 1 + described},
                               &err) == FL_OK,
                  "%s", err.msg);
    ck_assert_msg(fl_member_train(&f->client[k], &err) == FL_OK, "%s", err.msg);
    free(fed_watched.grad);
    made = f->client[k].held.result;
    (void)memcpy(f->delta[k], made->delta, bytes);
    if (made->n_sent > 0) {
        (void)memcpy(f->sent[k], made->sent[0], bytes);
    }
}

/* What of it is counted goes to the server; returns whether there is any. */
static inline bool fed_push(struct fed *f, const struct fed_plan *plan, size_t k, const char *name)
{
    uint8_t units[FED_UNITS];
    struct fl_err err = {0};
    struct fl_norms norms;
    struct fl_code code;
    size_t l;

    for (l = 0; l < FED_UNITS; l++) {
        units[l] = plan->counted[k][l];
    }
    if (memchr(units, 1, FED_UNITS) == NULL) {
        return false;
    }
    ck_assert_msg(fl_member_code(&f->client[k], units, &code, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_member_upload(&f->federation, name, &code, &norms, &err) == FL_OK, "%s",
                  err.msg);
    free(norms.unit);
    fl_code_done(&code);
    f->counted[k] = (struct fl_round_key){f->round, 1};
    return true;
}

/* The server: the pass over what was sent. */
static inline void fed_aggregate(struct fed *f, const struct fed_plan *plan)
{
    struct fl_participant_rec parts[FED_CLIENTS] = {{0}};
    struct fl_client_rec clients[FED_CLIENTS] = {{0}};
    struct fl_aggregation a = {.round = f->round,
                               .attempt = 1,
                               .members = f->members,
                               .learning_rate = f->how.learning_rate,
                               .parts = parts,
                               .clients = clients,
                               .model = &f->model};
    struct fl_err err = {0};
    size_t k;

    for (k = 0; k < FED_CLIENTS; k++) {
        struct fl_client_rec *rec = &clients[a.n_parts];

        (void)snprintf(rec->name, sizeof(rec->name), "c%zu", k);
        parts[a.n_parts] = (struct fl_participant_rec){
            .client = (uint32_t)k, .samples = 1, .steps = f->n_steps[k]};
        a.n_parts += plan->trains[k] && fed_push(f, plan, k, rec->name);
    }
    ck_assert_msg(fl_aggregation_run(&f->federation, &a, &err) == FL_OK, "%s", err.msg);
    fl_model_state_done(&f->model);
    f->model = a.next.model;
    a.next.model = (struct fl_model_state){.theta = NULL};
    fl_aggregation_done(&a);
    (void)memcpy(f->theta, fl_blob_floats(f->model.theta), f->count * sizeof(float));
    (void)memcpy(f->state, fl_blob_floats(f->model.state[0]), f->count * sizeof(float));
}

/* The clients learn what was counted. */
static inline void fed_settle(struct fed *f, size_t k)
{
    struct fl_client_state *keeps = f->client[k].worker.keeps;
    char name[FL_NAME_MAX];
    float *kept = NULL;
    int rv;

    ck_assert_int_eq(fl_kept_name(f->ops, f->ops->keeps[0].name, name), FL_OK);
    ck_assert_int_eq(fl_client_state_settle(keeps, (struct fl_round_key){f->round + 1, 1},
                                            f->counted[k], 0, NULL),
                     FL_OK);
    rv = fl_client_state_load(keeps, name, &kept, NULL);
    ck_assert(rv == FL_OK || rv == FL_ENOENT);
    if (rv == FL_OK) {
        (void)memcpy(f->own[k], kept, f->count * sizeof(float));
    }
    free(kept);
}

/* The payload for clients of the next round. */
static inline void fed_tell(struct fed *f)
{
    fl_strategy_describe(f->strategy, 0, f->state, f->members, f->described, f->count);
}

static inline void fed_round(struct fed *f, const struct fed_plan *plan)
{
    size_t k;

    f->round++;
    fed_tell(f);
    (void)memcpy(f->before, f->theta, f->count * sizeof(float));
    for (k = 0; k < FED_CLIENTS; k++) {
        if (plan->trains[k]) {
            fed_train(f, k);
        }
    }
    fed_aggregate(f, plan);
    for (k = 0; k < FED_CLIENTS; k++) {
        fed_settle(f, k);
    }
}

#endif
