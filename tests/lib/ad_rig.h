#ifndef FL_TESTS_AD_RIG_H
#define FL_TESTS_AD_RIG_H

/*
 * A network of refnet.h with parameters, a batch and a direction, whose passes along that direction
 * are compared with automatic differentiation in double (adnet.h).
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/kernels_impl.h"
#include "tests/lib/adnet.h"
#include "tests/lib/suites.h"

#define SEED 77
#define N_ROWS \
    4 /* instruction sets of the kernels; the last one, reference, exists on every machine */

/* A network, its parameters, a batch and a direction, in both precisions and orders. */
struct rig {
    const struct fl_kernels *kernels;
    const struct ref_net *ref;
    struct fl_net *net;
    size_t count, block, batch, inputs, classes;
    float *x, *target, *jvp_x;
    int32_t *y;
    float *exported, *along;    /* [count] */
    double *params, *direction; /* the same */
    float *internal;            /* `along` in internal order */
};

static inline void *must(size_t n, size_t size)
{
    void *p = calloc(n, size);

    ck_assert_ptr_nonnull(p);
    return p;
}

static inline void normals(struct fl_rng *rng, float *to, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        to[i] = (float)fl_rng_normal(rng);
    }
}

/* Update the network from the current `exported` and `along`. */
static inline void rig_set(struct rig *rig)
{
    const struct fl_layout *layout = fl_net_layout(rig->net);
    size_t t, i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            rig->along[i] = tensor->buffer ? 0 : rig->along[i];
            rig->params[i] = (double)rig->exported[i];
            rig->direction[i] = (double)rig->along[i];
        }
    }
    fl_net_set(rig->net, rig->exported);
    fl_net_import(rig->net, rig->internal, rig->along);
}

static inline void rig_up_with(struct rig *rig, const struct fl_kernels *kernels,
                               const struct ref_net *ref, size_t batch, uint64_t seed)
{
    const char *texts[REF_MAX_LAYERS];
    struct fl_net_spec spec = ref_spec(ref, texts);
    struct fl_err err = {0};
    struct fl_rng rng;
    size_t b, j;

    spec.kernels = kernels;
    *rig = (struct rig){.kernels = kernels, .ref = ref, .batch = batch};
    ck_assert_msg(fl_net_create(&spec, batch, &rig->net, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_net_memory(rig->net).tangents, 0);
    ck_assert_int_eq(fl_net_take_tangents(rig->net, &err), FL_OK);
    rig->count = fl_layout_count(fl_net_layout(rig->net));
    rig->block = fl_net_block(rig->net);
    rig->inputs = fl_net_inputs(rig->net);
    rig->classes = fl_net_classes(rig->net);
    rig->x = must(batch * rig->inputs, sizeof(float));
    rig->jvp_x = must(batch * rig->inputs, sizeof(float));
    rig->target = must(batch * rig->classes, sizeof(float));
    rig->y = must(batch, sizeof(*rig->y));
    rig->exported = must(rig->count, sizeof(float));
    rig->along = must(rig->count, sizeof(float));
    rig->params = must(rig->count, sizeof(double));
    rig->direction = must(rig->count, sizeof(double));
    rig->internal = must(rig->block, sizeof(float));
    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    fl_net_init(rig->net, &rng);
    fl_net_get(rig->net, rig->exported);
    normals(&rng, rig->x, batch * rig->inputs);
    normals(&rng, rig->jvp_x, batch * rig->inputs);
    normals(&rng, rig->along, rig->count);
    for (b = 0; b < batch; b++) {
        rig->y[b] = (int32_t)fl_rng_below(&rng, rig->classes);
        for (j = 0; j < rig->classes; j++) {
            rig->target[b * rig->classes + j] = (float)fl_rng_unit(&rng);
        }
    }
    rig_set(rig);
}

static inline void rig_up(struct rig *rig, const struct ref_net *ref, size_t batch, uint64_t seed)
{
    rig_up_with(rig, fl_kernels_best(), ref, batch, seed);
}

static inline void rig_down(struct rig *rig)
{
    fl_net_free(rig->net);
    free(rig->x);
    free(rig->jvp_x);
    free(rig->target);
    free(rig->y);
    free(rig->exported);
    free(rig->along);
    free(rig->params);
    free(rig->direction);
    free(rig->internal);
}

/* An update callback that only records the gradient. */
static inline void keep(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    float *all = ctx;

    (void)params;
    (void)memcpy(all + offset, grad, n * sizeof(*grad));
}

/* The objective: direction, targets and weights. */
static const struct {
    bool x, params, soft;
    double loss, slope;
} modes[] = {
    {true, false, true, 1, 0.3}, /* FedMix */
    {false, true, false, 0, 1},  /* a Hessian and a vector: Per-FedAvg */
    {true, true, true, 0.5, -2},
    {true, true, false, 0, 1},
};

static inline struct fl_net_pass pass_of(const struct rig *rig, bool soft)
{
    return (struct fl_net_pass){
        .x = rig->x, .y = rig->y, .target = soft ? rig->target : NULL, .batch = rig->batch};
}

/* Compute the gradient of one mode in exported order with both implementations; returns the
 * oracle's result. */
static inline struct ad_result both_ways(struct rig *rig, size_t mode, float *have, double *want)
{
    struct fl_rng rng;
    const struct fl_net_pass pass = pass_of(rig, modes[mode].soft);
    const struct fl_net_direction direction = {.x = modes[mode].x ? rig->jvp_x : NULL,
                                               .params = modes[mode].params ? rig->internal : NULL,
                                               .loss = modes[mode].loss,
                                               .slope = modes[mode].slope};
    const struct ad_job job = {.net = rig->ref,
                               .params = rig->params,
                               .x = rig->x,
                               .y = rig->y,
                               .target = pass.target,
                               .batch = rig->batch,
                               .rng = &rng,
                               .jvp_x = direction.x,
                               .along = modes[mode].params ? rig->direction : NULL,
                               .loss = modes[mode].loss,
                               .slope = modes[mode].slope};
    float *grad = must(rig->block, sizeof(float));
    struct ad_result seen;
    double loss, slope;

    fl_rng_seed(&rng, SEED);
    fl_net_seed(rig->net, SEED);
    loss = fl_net_pass_jvp(rig->net, &pass, &direction, keep, grad, &slope);
    fl_net_export(rig->net, have, grad);
    seen = ad_gradient(&job, rig->count, want);
    ck_assert_double_eq_tol(loss, seen.loss, 1e-5 * (1 + fabs(seen.loss)));
    ck_assert_double_eq_tol(slope, seen.slope, 2e-5 * (1 + fabs(seen.slope)));
    free(grad);
    return seen;
}

static inline double size_of(const double *a, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += a[i] * a[i];
    }
    return sqrt(sum);
}

/*
 * Compare tensor by tensor, so that a larger layer does not mask the error of a smaller one.
 * Batch-norm over two numbers cancels nearly the whole gradient, for every instruction set.
 */
static inline void assert_close(const struct rig *rig, size_t mode, const float *have,
                                const double *want)
{
    const struct fl_layout *layout = fl_net_layout(rig->net);
    double bound = rig->batch == 2 ? 1e-4 : 2e-5;
    double all = size_of(want, rig->count) / sqrt((double)rig->count);
    size_t t, i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
        double size = size_of(want + tensor->offset, tensor->count);
        double error = 0;

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            error += pow((double)have[i] - want[i], 2);
        }
        error = sqrt(error);
        ck_assert_msg(error <= bound * (size + all * sqrt((double)tensor->count)),
                      "%s, mode %zu, batch %zu, %s: off by %g, size %g",
                      fl_kernels_name(rig->kernels), mode, rig->batch, tensor->name, error, size);
    }
}

#endif
