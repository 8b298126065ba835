#ifndef FL_TESTS_SOLVER_FED_H
#define FL_TESTS_SOLVER_FED_H

/*
 * A federation in one process around a solver with a server's part: plain means of
 * displacements per unit, that part behind them, and clients that take over what they keep
 * only for what was counted. Two units, the first with batch-norm buffers.
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

    *f = (struct fed){.ops = ops, .how = *how, .n_selected = FED_CLIENTS};
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
    struct fl_solver_bytes input = {f->state, bytes};
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

/* One entry of theta and of the server's state, sent by `n` clients. */
static inline void fed_entry(struct fed *f, const struct fed_plan *plan, size_t l, size_t i,
                             bool buffer, size_t n)
{
    double step = 0;
    double mean = 0;
    double scaled = 0;
    const double *means[1] = {&mean};
    const float *state[1] = {f->state + i};
    float fresh = 0;
    float *state_new[1] = {&fresh};
    struct fl_agg_block block = {.n = 1,
                                 .round = f->round,
                                 .n_senders = n,
                                 .population = FED_CLIENTS,
                                 .dbar = &step,
                                 .means = means,
                                 .scaled = &scaled,
                                 .state = state,
                                 .state_new = state_new,
                                 .step = &step};
    size_t k;

    for (k = 0; k < FED_CLIENTS; k++) {
        if (plan->trains[k] && plan->counted[k][l]) {
            double factor = f->ops->factor != NULL ? f->ops->factor(f->o, f->how.learning_rate,
                                                                    f->how.momentum, f->n_steps[k])
                                                   : 0;

            step += (double)f->delta[k][i] / (double)n;
            mean += (double)f->sent[k][i] / (double)n;
            scaled += factor * (double)f->delta[k][i] / (double)n;
        }
    }
    f->theta[i] = (float)((double)f->theta[i] + step);
    if (!buffer) {
        f->ops->server->step(f->o, &block);
        f->state[i] = fresh;
    }
}

static inline void fed_unit(struct fed *f, const struct fed_plan *plan, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(f->layout, l);
    size_t n = 0;
    size_t k;
    size_t t;
    size_t i;

    for (k = 0; k < FED_CLIENTS; k++) {
        if (plan->trains[k] && plan->counted[k][l]) {
            n++;
            if (f->ops->keeps[0].per_unit) {
                (void)memcpy(f->own[k] + unit->offset, f->pending[k] + unit->offset,
                             unit->count * sizeof(float));
            }
        }
    }
    for (t = unit->first_tensor; n > 0 && t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f->layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            fed_entry(f, plan, l, i, tensor->buffer, n);
        }
    }
}

static inline void fed_round(struct fed *f, const struct fed_plan *plan)
{
    size_t k;
    size_t l;

    f->round++;
    (void)memcpy(f->before, f->theta, f->count * sizeof(float));
    for (k = 0; k < FED_CLIENTS; k++) {
        if (plan->trains[k]) {
            fed_train(f, k);
        }
    }
    for (l = 0; l < FED_UNITS; l++) {
        fed_unit(f, plan, l);
    }
    for (k = 0; k < FED_CLIENTS; k++) {
        bool counted = plan->trains[k] && (plan->counted[k][0] || plan->counted[k][1]);

        if (counted && !f->ops->keeps[0].per_unit) {
            (void)memcpy(f->own[k], f->pending[k], f->count * sizeof(float));
        }
    }
}

#endif
