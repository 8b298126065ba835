#ifndef FL_TESTS_SOLVER_FED_H
#define FL_TESTS_SOLVER_FED_H

/*
 * A federation in one process around a solver with a server's part: the aggregation pass with
 * that part behind plain means, and clients that take over what they keep only for what was
 * counted. Two units, the first with batch-norm buffers.
 */

#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/solver.h"
#include "tests/unit/strategy_fixture.h"

#define FED_CLIENTS 5
#define FED_UNITS   2
#define FED_INPUTS  6
#define FED_BATCH   8
#define FED_BATCHES 3 /* of each client's data */

struct fed {
    const struct fl_solver_ops *ops;
    struct fl_options *o;
    struct fl_solver_setup how;
    struct fl_net *net;
    const struct fl_layout *layout;
    size_t count;
    float *theta, *state, *before; /* exported; `before`: theta of the last round */
    float *told;                   /* what the clients get of the state in the round */
    size_t members;                /* of the round */
    float *own[FED_CLIENTS];       /* what each keeps */
    float *delta[FED_CLIENTS], *sent[FED_CLIENTS], *pending[FED_CLIENTS]; /* of the last round */
    size_t n_steps[FED_CLIENTS];
    size_t n_selected; /* told to the clients */
    uint64_t round;
    bool sums;                  /* fill `moved` */
    double *moved[FED_CLIENTS]; /* sum of -eta g along the path, internal order */
    float *grad;
    float x[FED_CLIENTS][FED_BATCHES][FED_BATCH * FED_INPUTS];
    int32_t y[FED_CLIENTS][FED_BATCHES][FED_BATCH];
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

static inline void fed_init(struct fed *f, const struct fl_solver_ops *ops, const char *option,
                            const struct fl_solver_setup *how)
{
    static const char *const layers[] = {"dense 9", "bn", "relu", "dense 4"};
    struct fl_net_spec spec = {
        .input = {FED_INPUTS}, .n_input = 1, .layers = layers, .n_layers = 4};
    struct fl_err err = {0};
    struct fl_rng rng;
    size_t i;
    size_t k;
    size_t b;

    *f = (struct fed){.ops = ops, .how = *how, .n_selected = FED_CLIENTS, .members = FED_CLIENTS};
    f->o = options_of(&ops->policy, option, NULL);
    ck_assert_msg(fl_net_create(&spec, FED_BATCH, &f->net, &err) == FL_OK, "%s", err.msg);
    f->layout = fl_net_layout(f->net);
    ck_assert_uint_eq(fl_layout_units(f->layout), FED_UNITS);
    ck_assert_uint_gt(fl_layout_unit(f->layout, 0)->n_buffers, 0);
    f->count = fl_layout_count(f->layout);
    fl_rng_seed(&rng, 11);
    fl_net_init(f->net, &rng);
    f->theta = calloc(f->count, sizeof(float));
    f->before = calloc(f->count, sizeof(float));
    f->state = calloc(f->count, sizeof(float));
    f->told = calloc(f->count, sizeof(float));
    f->grad = calloc(fl_net_block(f->net), sizeof(float));
    fl_net_get(f->net, f->theta);
    for (k = 0; k < FED_CLIENTS; k++) {
        f->own[k] = calloc(f->count, sizeof(float));
        f->delta[k] = calloc(f->count, sizeof(float));
        f->sent[k] = calloc(f->count, sizeof(float));
        f->pending[k] = calloc(f->count, sizeof(float));
        f->moved[k] = calloc(fl_net_block(f->net), sizeof(double));
        f->n_steps[k] = 2 + k;
        for (b = 0; b < FED_BATCHES; b++) {
            for (i = 0; i < (size_t)FED_BATCH * FED_INPUTS; i++) {
                f->x[k][b][i] = (float)(fl_rng_normal(&rng) + 0.3 * (double)k);
            }
            for (i = 0; i < FED_BATCH; i++) { /* each client has two of the four classes */
                f->y[k][b][i] = (int32_t)((k + fl_rng_below(&rng, 2)) % 4);
            }
        }
    }
}

static inline void fed_done(struct fed *f)
{
    size_t k;

    for (k = 0; k < FED_CLIENTS; k++) {
        free(f->own[k]);
        free(f->delta[k]);
        free(f->sent[k]);
        free(f->pending[k]);
        free(f->moved[k]);
    }
    free(f->theta);
    free(f->before);
    free(f->state);
    free(f->told);
    free(f->grad);
    fl_options_free(f->o);
    fl_net_free(f->net);
}

static inline void fed_step(struct fed *f, struct fl_solver *solver, size_t k, size_t s)
{
    size_t b = (f->round * f->n_steps[k] + s) % FED_BATCHES;
    size_t i;

    if (f->sums) {
        (void)fl_net_gradient(f->net, f->x[k][b], f->y[k][b], FED_BATCH, f->grad);
        for (i = 0; i < fl_net_block(f->net); i++) {
            f->moved[k][i] -= f->how.learning_rate * (double)f->grad[i];
        }
    }
    ck_assert(isfinite(f->ops->step(solver, f->x[k][b], f->y[k][b], FED_BATCH)));
}

static inline void fed_take(const struct fed *f, struct fl_buf *buf, float *to)
{
    ck_assert_uint_eq(buf->len, f->count * sizeof(float));
    (void)memcpy(to, buf->data, buf->len);
    fl_buf_done(buf);
}

static inline void fed_train(struct fed *f, size_t k)
{
    size_t bytes = f->count * sizeof(float);
    struct fl_solver_bytes input = {f->told, bytes};
    struct fl_solver_bytes kept = {f->own[k], bytes};
    struct fl_solver_setup setup = f->how;
    struct fl_solver *solver = NULL;
    struct fl_buf keep;
    struct fl_buf send;
    size_t i;

    fl_buf_init(&keep, SIZE_MAX);
    fl_buf_init(&send, SIZE_MAX);
    fl_net_set(f->net, f->theta);
    (void)memset(f->moved[k], 0, fl_net_block(f->net) * sizeof(double));
    setup.net = f->net;
    setup.n_steps = f->n_steps[k];
    setup.round = f->round;
    setup.n_selected = (uint32_t)f->n_selected;
    setup.population = FED_CLIENTS;
    setup.inputs = &input;
    setup.kept = &kept;
    ck_assert_int_eq(f->ops->create(f->o, &setup, &solver, NULL), FL_OK);
    for (i = 0; i < f->n_steps[k]; i++) {
        fed_step(f, solver, k, i);
    }
    ck_assert_int_eq(f->ops->finish(solver, &keep, &send, NULL), FL_OK);
    f->ops->destroy(solver);
    fl_net_get(f->net, f->delta[k]);
    for (i = 0; i < f->count; i++) {
        f->delta[k][i] -= f->theta[i];
    }
    fed_take(f, &keep, f->pending[k]);
    if (fl_solver_sends(f->ops, f->o) != NULL) {
        fed_take(f, &send, f->sent[k]);
    } else {
        ck_assert_uint_eq(send.len, 0);
    }
}

/* Coded bytes of the responders' units: what the pass reads. */
struct fed_uploads {
    const struct fed *f;
    size_t who[FED_CLIENTS];
    uint8_t units[FED_CLIENTS][FED_UNITS];
    struct fl_agg_client clients[FED_CLIENTS];
    size_t n;
    struct fl_codec_memory memory[FED_CLIENTS][2];
};

static inline int fed_open(void *ctx, size_t client, size_t bundle, size_t unit,
                           struct fl_codec_decoder *d)
{
    struct fed_uploads *up = ctx;
    const struct fl_unit *u = fl_layout_unit(up->f->layout, unit);
    const float *block = bundle == 0 ? up->f->delta[up->who[client]] : up->f->sent[up->who[client]];
    struct fl_codec_memory *memory = &up->memory[client][bundle];
    struct fl_codec_reader reader;

    ck_assert_uint_lt(bundle, 1 + fl_solver_names(fl_solver_sends(up->f->ops, up->f->o)));
    *memory = (struct fl_codec_memory){(const void *)(block + u->offset), u->count * sizeof(float)};
    reader = fl_codec_memory_reader(memory);
    return fl_codec_open(d, &fl_codec_float32, up->f->layout, unit, &reader);
}

static inline void fed_collect(struct fed *f, const struct fed_plan *plan, struct fed_uploads *up)
{
    size_t k;
    size_t l;

    *up = (struct fed_uploads){.f = f};
    for (k = 0; k < FED_CLIENTS; k++) {
        bool any = false;

        for (l = 0; l < FED_UNITS; l++) {
            up->units[up->n][l] = plan->trains[k] && plan->counted[k][l];
            any = any || up->units[up->n][l];
        }
        if (any) {
            up->who[up->n] = k;
            up->clients[up->n] = (struct fl_agg_client){.weight = 1, .units = up->units[up->n]};
            if (f->ops->factor != NULL) {
                up->clients[up->n].factor =
                    f->ops->factor(f->o, f->how.learning_rate, f->how.momentum, f->n_steps[k]);
            }
            up->n++;
        }
    }
}

/* The server: the pass over what was sent, then the clients learn what was counted. */
static inline void fed_commit(struct fed *f, const struct fed_plan *plan)
{
    struct fl_options *o = options_of(&fl_aggregate_mean.policy, NULL);
    const float *state[1] = {f->state};
    float *fresh[2] = {calloc(f->count, sizeof(float)), calloc(f->count, sizeof(float))};
    struct fed_uploads up;
    struct fl_agg_job job = {.layout = f->layout,
                             .ops = &fl_aggregate_mean,
                             .options = o,
                             .round = f->round,
                             .members = f->members,
                             .open = fed_open,
                             .ctx = &up,
                             .theta = f->theta,
                             .theta_new = fresh[0],
                             .extra = f->ops->server,
                             .extra_options = f->o,
                             .state = state,
                             .state_new = &fresh[1]};
    struct fl_err err = {0};
    size_t who = 0;
    size_t i;
    size_t l;

    fed_collect(f, plan, &up);
    job.n_clients = up.n;
    job.clients = up.clients;
    ck_assert_msg(fl_aggregate_run(&job, &who, &err) == FL_OK, "%s", err.msg);
    (void)memcpy(f->theta, fresh[0], f->count * sizeof(float));
    (void)memcpy(f->state, fresh[1], f->count * sizeof(float));
    for (i = 0; i < up.n; i++) {
        for (l = 0; l < FED_UNITS; l++) {
            const struct fl_unit *u = fl_layout_unit(f->layout, l);

            if (up.units[i][l] != 0 || !f->ops->keeps[0].per_unit) {
                (void)memcpy(f->own[up.who[i]] + u->offset, f->pending[up.who[i]] + u->offset,
                             u->count * sizeof(float));
            }
        }
    }
    free(fresh[0]);
    free(fresh[1]);
    fl_options_free(o);
}

/* What clients are told now. */
static inline void fed_tell(struct fed *f)
{
    const struct fl_agg_part *part = f->ops->server;

    if (part->tell != NULL) {
        part->tell(f->state, f->members, f->told, f->count);
    } else {
        (void)memcpy(f->told, f->state, f->count * sizeof(float));
    }
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
    fed_commit(f, plan);
}

#endif
