/*
 * Shared by the solvers beside the SGD update (solver_sgd.c): the proximal term, model-shaped
 * vectors between exported bytes and the network's internal order, and the positions of buffers.
 * Pure computation on the caller's thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

/* Up to this number of steps a_k is summed term by term; above, the closed form is as accurate. */
#define SUMMED_STEPS 4096

size_t fl_solver_names(const char *const *names)
{
    size_t n = 0;

    while (names != NULL && names[n] != NULL) {
        n++;
    }
    return n;
}

size_t fl_solver_keeps(const struct fl_keep *keeps)
{
    size_t n = 0;

    while (keeps != NULL && keeps[n].name != NULL) {
        n++;
    }
    return n;
}

const char *const *fl_solver_sends(const struct fl_solver_ops *ops, const struct fl_options *o)
{
    bool rebuilt =
        ops->server != NULL && ops->server->wants_scaled != NULL && ops->server->wants_scaled(o);

    return rebuilt ? NULL : ops->sends;
}

double fl_solver_momentum_steps(double momentum, uint64_t n_steps)
{
    double rest = 1 - momentum;
    double n = (double)n_steps;
    double velocity = 0;
    double sum = 0;
    uint64_t q;

    if (!(momentum > 0)) {
        return n;
    }
    if (n_steps > SUMMED_STEPS) {
        return (n + momentum * expm1(n * log(momentum)) / rest) / rest;
    }
    for (q = 0; q < n_steps; q++) {
        velocity = momentum * velocity + 1;
        sum += velocity;
    }
    return sum;
}

static int block_new(const struct fl_net *net, const char *name, float **ret, struct fl_err *err)
{
    *ret = calloc(fl_net_block(net), sizeof(**ret));
    return *ret != NULL ? FL_OK
                        : fl_err_set(err, FL_ENOMEM, "%s of %zu parameters: out of memory", name,
                                     fl_net_block(net));
}

int fl__prox_init(struct fl__prox *prox, double mu, const struct fl_solver_setup *setup,
                  struct fl_err *err)
{
    int rv;

    prox->mu = (float)mu;
    prox->anchor = NULL;
    if (!(prox->mu > 0)) {
        return FL_OK;
    }
    rv = block_new(setup->net, "anchor", &prox->anchor, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (setup->anchor != NULL) {
        fl_net_import(setup->net, prox->anchor, setup->anchor);
    } else {
        (void)memcpy(prox->anchor, fl_net_params(setup->net),
                     fl_net_block(setup->net) * sizeof(float));
    }
    return FL_OK;
}

void fl__prox_done(struct fl__prox *prox)
{
    free(prox->anchor);
    prox->anchor = NULL;
}

void fl__prox_pull(const struct fl__prox *prox, size_t offset, size_t n, const float *params,
                   float *grad)
{
    float distance[FL__SOLVER_CHUNK];

    FL_REQUIRE(n <= FL__SOLVER_CHUNK);
    if (prox->mu > 0) {
        fl_vec_sub(distance, params, prox->anchor + offset, n);
        fl_vec_axpy(grad, prox->mu, distance, n);
    }
}

void fl__prox_update(const struct fl__prox *prox, const struct fl__sgd *sgd, size_t offset,
                     size_t n, float *params, const float *grad)
{
    float pulled[FL__SOLVER_CHUNK];
    size_t at;

    if (!(prox->mu > 0)) {
        fl__sgd_update(sgd, offset, n, params, grad);
        return;
    }
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(pulled, grad + at, m * sizeof(float));
        fl__prox_pull(prox, offset + at, m, params + at, pulled);
        fl__sgd_update(sgd, offset + at, m, params + at, pulled);
    }
}

int fl__solver_check(const struct fl_layout *layout, const struct fl_solver_bytes *bytes,
                     const char *name, struct fl_err *err)
{
    size_t count = fl_layout_count(layout);

    if (bytes->len != count * sizeof(float)) {
        return fl_err_set(
            err, FL_EFORMAT,
            "'%s' has %zu bytes, expected %zu (float32 of the model's %zu parameters)", name,
            bytes->len, count * sizeof(float), count);
    }
    return fl_vec_finite(bytes->data, count)
               ? FL_OK
               : fl_err_set(err, FL_ENUMERIC, "'%s' contains values that are not finite", name);
}

void fl__solver_clear_buffers(const struct fl_layout *layout, float *exported)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (tensor->buffer) {
            (void)memset(exported + tensor->offset, 0, tensor->count * sizeof(float));
        }
    }
}

int fl__solver_take(const struct fl_net *net, const struct fl_solver_bytes *bytes, const char *name,
                    float **ret, struct fl_err *err)
{
    bool none = bytes == NULL || bytes->data == NULL;
    int rv = none ? FL_OK : fl__solver_check(fl_net_layout(net), bytes, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = block_new(net, name, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!none) {
        fl_net_import(net, *ret, bytes->data);
    }
    return FL_OK;
}

int fl__solver_put(const struct fl_net *net, const float *block, struct fl_buf *out,
                   struct fl_err *err)
{
    const struct fl_layout *layout = fl_net_layout(net);
    size_t size = fl_layout_count(layout) * sizeof(float);
    float *exported;
    int rv = fl_buf_reserve(out, size);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "solver state of %zu bytes: %s", size, fl_strerror(rv));
    }
    FL_REQUIRE(out->len % sizeof(float) == 0);
    exported = (void *)(out->data + out->len);
    fl_net_export(net, exported, block);
    fl__solver_clear_buffers(layout, exported);
    out->len += size;
    return FL_OK;
}

int fl__solver_copy(struct fl_net *net, float **ret, struct fl_err *err)
{
    int rv = block_new(net, "a copy", ret, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(*ret, fl_net_params(net), fl_net_block(net) * sizeof(float));
    return FL_OK;
}

/* Find the runs of entries above 0 in a block; returns their number; `run` may be NULL. */
static size_t find_runs(const float *mark, size_t n, struct fl_entry_run *run)
{
    size_t n_runs = 0;
    size_t i = 0;

    while (i < n) {
        size_t from = i;

        for (; i < n && mark[i] > 0; i++) {
        }
        if (i > from) {
            if (run != NULL) {
                run[n_runs] = (struct fl_entry_run){from, i - from};
            }
            n_runs++;
        }
        for (; i < n && !(mark[i] > 0); i++) {
        }
    }
    return n_runs;
}

/* 1 at the entries of the tensors that `choose` names; returns their number. */
static size_t mark_entries(const struct fl_layout *layout, fl_fixed_choice *choose, void *ctx,
                           float *exported)
{
    size_t n = 0;
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
        bool chosen = choose(ctx, layout, tensor);

        for (i = 0; chosen && i < tensor->count; i++, n++) {
            exported[tensor->offset + i] = 1;
        }
    }
    return n;
}

int fl__runs_of(const struct fl_net *net, fl_fixed_choice *choose, void *ctx,
                struct fl_entry_run **ret_run, size_t *ret_n, struct fl_err *err)
{
    const struct fl_layout *layout = fl_net_layout(net);
    size_t block = fl_net_block(net);
    float *exported = calloc(fl_layout_count(layout) + 1, sizeof(*exported));
    float *mark = calloc(block + 1, sizeof(*mark));
    struct fl_entry_run *run;
    int rv = FL_ENOMEM;

    *ret_run = NULL;
    *ret_n = 0;
    if (exported == NULL || mark == NULL) {
        goto done;
    }
    rv = FL_OK;
    if (mark_entries(layout, choose, ctx, exported) == 0) {
        goto done;
    }
    fl_net_import(net, mark, exported);
    run = calloc(find_runs(mark, block, NULL) + 1, sizeof(*run));
    if (run == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    *ret_n = find_runs(mark, block, run);
    *ret_run = run;
done:
    free(exported);
    free(mark);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "positions of tensors in a network: out of memory");
    }
    return FL_OK;
}

static bool runs_are_buffers(void *ctx, const struct fl_layout *layout,
                             const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)layout;
    return tensor->buffer;
}

int fl__runs_of_buffers(const struct fl_net *net, struct fl__runs *ret, struct fl_err *err)
{
    const struct fl_layout *layout = fl_net_layout(net);

    *ret = (struct fl__runs){0};
    return fl_layout_trainable(layout) == fl_layout_count(layout)
               ? FL_OK
               : fl__runs_of(net, runs_are_buffers, NULL, &ret->run, &ret->n, err);
}

void fl__runs_done(struct fl__runs *runs)
{
    free(runs->run);
    *runs = (struct fl__runs){0};
}

void fl__runs_copy(const struct fl__runs *runs, float *to, const float *from)
{
    size_t i;

    for (i = 0; i < runs->n; i++) {
        const struct fl_entry_run *run = &runs->run[i];

        (void)memcpy(to + run->offset, from + run->offset, run->n * sizeof(float));
    }
}
