/* Passes along a direction, against automatic differentiation in double (tests/lib/adnet.h). */
#include "tests/lib/ad_rig.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/refnets.h"
#include "tests/lib/suites.h"

static bool normalises_responses(const struct ref_net *net)
{
    size_t i;

    for (i = 0; net->layers[i].kind != 0 && net->layers[i].kind != REF_LRN; i++) {
    }
    return net->layers[i].kind == REF_LRN;
}

TEST_EACH(gradients_jvp_a_direction_agree_with_automatic_differentiation, ARRAY_LEN(nets) * N_ROWS)
{
    static const size_t batches[] = {2, 3, 7};
    const struct ref_net *ref = &nets[(size_t)_i / N_ROWS];
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);
    size_t b, i, mode;

    for (b = 0; row->supported() && b < ARRAY_LEN(batches); b++) {
        for (mode = 0; mode < ARRAY_LEN(modes); mode++) {
            struct rig rig;
            float *have;
            double *want;

            rig_up_with(&rig, row, ref, batches[b], 31 + b);
            for (i = 0; normalises_responses(ref) && i < rig.batch * rig.inputs; i++) {
                rig.x[i] *= 50; /* below, it is nearly the identity */
            }
            have = must(rig.count, sizeof(float));
            want = must(rig.count, sizeof(double));
            (void)both_ways(&rig, mode, have, want);
            assert_close(&rig, mode, have, want);
            free(have);
            free(want);
            rig_down(&rig);
        }
    }
}

static const struct ref_net bent[] = {
    {.input = {784, 1, 1},
     .flat = true,
     .layers = {DENSE("dense 200", 200), RELU, DENSE("dense 200", 200), RELU,
                DENSE("dense 10", 10)}},
    IMAGE(3, 8, 8, CONV("conv 8 3x3 pad 1", 8, 3, 3, 1, 1), RELU,
          CONV("conv 16 3x3 pad 1", 16, 3, 3, 1, 1), RELU, POOL("maxpool 2", 2, 2, 0, 4, 4),
          CONV("conv 16 3x3 pad 1", 16, 3, 3, 1, 1), RELU, POOL("maxpool 2", 2, 2, 0, 2, 2),
          DROPOUT("dropout 0.1", 0.1), FLATTEN, DENSE("dense 64", 64), RELU, DENSE("dense 10", 10)),
    IMAGE(3, 6, 6, CONV("conv 8 3x3 pad 1", 8, 3, 3, 1, 1), BN, RELU,
          POOL("maxpool 2", 2, 2, 0, 3, 3), FLATTEN, DENSE("dense 30", 30), BN, RELU,
          DENSE("dense 10", 10)),
};

/*
 * The networks of the papers in small. A difference quotient with steps of a thousandth of the
 * samples, or of the model, would cross bends of ReLU here; the exact product does not care.
 */
TEST_EACH(bends_nearby_do_not_matter, ARRAY_LEN(bent))
{
    double nearest = (double)INFINITY;
    uint64_t seed;
    size_t mode;

    for (seed = 1; seed <= 3; seed++) {
        for (mode = 0; mode < 2; mode++) {
            struct rig rig;
            struct ad_result seen;
            float *have;
            double *want;

            rig_up(&rig, &bent[_i], 3, seed);
            have = must(rig.count, sizeof(float));
            want = must(rig.count, sizeof(double));
            seen = both_ways(&rig, mode, have, want);
            assert_close(&rig, mode, have, want);
            nearest = seen.nearest_bend < nearest ? seen.nearest_bend : nearest;
            free(have);
            free(want);
            rig_down(&rig);
        }
    }
    ck_assert_double_lt(nearest, 1e-3);
}

/* Units whose weights and bias are 0, and pixels that are: ReLU's number is 0 exactly. */
TEST_EACH(a_number_of_exactly_zero_is_on_the_flat_side, ARRAY_LEN(bent))
{
    const struct fl_layout *layout;
    size_t mode, t, i, pixels;

    for (mode = 0; mode < ARRAY_LEN(modes); mode++) {
        struct rig rig;
        float *have;
        double *want;

        rig_up(&rig, &bent[_i], 3, 9);
        have = must(rig.count, sizeof(float));
        want = must(rig.count, sizeof(double));
        layout = fl_net_layout(rig.net);
        for (t = 0; t < fl_layout_tensors(layout); t++) {
            const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
            bool first = t < 2;
            size_t third = tensor->count / 3;

            /* The lower units of the first layer, and with batch-norm its gamma and beta. */
            for (i = 0; (first || strncmp(tensor->name, "bn1", 3) == 0) && i < third; i++) {
                rig.exported[tensor->offset + i] = tensor->buffer ? 1 : 0;
            }
        }
        pixels = rig.inputs / 2;
        for (i = 0; i < pixels; i++) {
            rig.x[i] = 0;
        }
        rig_set(&rig);
        ck_assert_uint_gt(both_ways(&rig, mode, have, want).n_zeros, 50);
        assert_close(&rig, mode, have, want);
        free(have);
        free(want);
        rig_down(&rig);
    }
}

/* H v for a direction in exported order, exported. */
static float *hessian_times(struct rig *rig, const float *v)
{
    const struct fl_net_pass pass = pass_of(rig, false);
    float *internal = must(rig->block, sizeof(float));
    float *grad = must(rig->block, sizeof(float));
    float *ret = must(rig->count, sizeof(float));
    const struct fl_net_direction direction = {.params = internal, .slope = 1};
    double slope;

    fl_net_import(rig->net, internal, v);
    fl_net_seed(rig->net, SEED);
    (void)fl_net_pass_jvp(rig->net, &pass, &direction, keep, grad, &slope);
    fl_net_export(rig->net, ret, grad);
    free(internal);
    free(grad);
    return ret;
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

TEST_EACH(the_hessian_is_symmetric_and_linear, ARRAY_LEN(nets))
{
    struct rig rig;
    float *u, *v, *w, *hu, *hv, *hw;
    double error = 0, size = 0, scale;
    struct fl_rng rng;
    size_t i;

    rig_up(&rig, &nets[_i], 5, 12);
    v = rig.along;
    u = must(rig.count, sizeof(float));
    w = must(rig.count, sizeof(float));
    fl_rng_key(&rng, 4, FL_RNG_TEST, 0, 0);
    for (i = 0; i < rig.count; i++) {
        /* Buffers, where v is 0, are no parameters. */
        u[i] = v[i] < 0 || v[i] > 0 ? (float)fl_rng_normal(&rng) : 0;
        w[i] = 2 * u[i] - 0.5f * v[i];
    }
    hu = hessian_times(&rig, u);
    hv = hessian_times(&rig, v);
    hw = hessian_times(&rig, w);
    scale = sqrt(dot(u, u, rig.count) * dot(hv, hv, rig.count));
    ck_assert_double_eq_tol(dot(u, hv, rig.count), dot(v, hu, rig.count), 1e-5 * scale);
    for (i = 0; i < rig.count; i++) {
        double want = 2 * (double)hu[i] - 0.5 * (double)hv[i];

        error += pow((double)hw[i] - want, 2);
        size += want * want;
    }
    ck_assert_double_gt(size, 0);
    ck_assert_double_lt(sqrt(error), 1e-5 * sqrt(size));
    free(u);
    free(w);
    free(hu);
    free(hv);
    free(hw);
    rig_down(&rig);
}

/* With slope 0 the gradient is that of an ordinary pass, and so are the running statistics. */
TEST_EACH(without_a_slope_it_is_an_ordinary_pass, ARRAY_LEN(nets))
{
    struct rig rig;
    struct fl_net_pass pass;
    struct fl_net_direction direction;
    float *a, *b, *after_a, *after_b;
    double loss, slope;
    size_t i;

    rig_up(&rig, &nets[_i], 4, 5);
    pass = pass_of(&rig, _i % 2 == 0);
    pass.track = true;
    direction = (struct fl_net_direction){.x = rig.jvp_x, .params = rig.internal, .loss = 1};
    a = must(rig.block, sizeof(float));
    b = must(rig.block, sizeof(float));
    after_a = must(rig.count, sizeof(float));
    after_b = must(rig.count, sizeof(float));
    fl_net_seed(rig.net, SEED);
    loss = fl_net_pass(rig.net, &pass, keep, a);
    fl_net_get(rig.net, after_a);
    fl_net_set(rig.net, rig.exported);
    fl_net_seed(rig.net, SEED);
    ck_assert_double_eq(fl_net_pass_jvp(rig.net, &pass, &direction, keep, b, &slope), loss);
    fl_net_get(rig.net, after_b);
    for (i = 0; i < rig.block; i++) {
        ck_assert_double_eq_tol((double)a[i], (double)b[i], 1e-6);
    }
    ck_assert_mem_eq(after_a, after_b, rig.count * sizeof(float));
    free(a);
    free(b);
    free(after_a);
    free(after_b);
    rig_down(&rig);
}

/* The derivative of the loss along a move of the parameters is its gradient times that move. */
TEST_EACH(the_slope_is_the_gradient_times_the_direction, ARRAY_LEN(nets))
{
    struct rig rig;
    struct fl_net_pass pass;
    struct fl_net_direction direction;
    float *grad;
    double slope;

    rig_up(&rig, &nets[_i], 6, 8);
    pass = pass_of(&rig, false);
    direction = (struct fl_net_direction){.params = rig.internal, .loss = 1};
    grad = must(rig.block, sizeof(float));
    fl_net_seed(rig.net, SEED);
    (void)fl_net_pass_jvp(rig.net, &pass, &direction, keep, grad, &slope);
    ck_assert_double_eq_tol(slope, dot(grad, rig.internal, rig.block), 1e-5 * (1 + fabs(slope)));
    free(grad);
    rig_down(&rig);
}

/* Check's own macros allocate. */
static void descend(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    size_t i;

    (void)ctx;
    (void)offset;
    for (i = 0; i < n; i++) {
        params[i] -= 0.1f * grad[i];
    }
}

/* Short batches and evaluations in between leave nothing behind. */
TEST_EACH(passes_do_not_notice_what_was_there_before, ARRAY_LEN(nets))
{
    struct rig rig, other;
    struct fl_net_pass pass;
    struct fl_net_direction direction;
    float *a, *b;
    double loss, slope;
    size_t correct, s;

    rig_up(&rig, &nets[_i], 6, 3);
    rig_up(&other, &nets[_i], 6, 3);
    a = must(rig.count, sizeof(float));
    b = must(rig.count, sizeof(float));
    for (s = 0; s < 6; s++) {
        bool jvp_x = s % 3 != 1;

        direction = (struct fl_net_direction){.x = jvp_x ? rig.jvp_x : NULL,
                                              .params = s % 3 != 0 ? rig.internal : NULL,
                                              .loss = 1,
                                              .slope = 0.1};
        pass = pass_of(&rig, s % 2 == 0);
        pass.batch = 6 - s % 3;
        fl_net_evaluate(rig.net, rig.x, rig.y, 6, &loss, &correct);
        fl_net_seed(rig.net, s);
        fl_net_seed(other.net, s);
        (void)fl_net_pass_jvp(rig.net, &pass, &direction, descend, NULL, &slope);
        (void)fl_net_pass_jvp(other.net, &pass, &direction, descend, NULL, &loss);
        ck_assert_double_eq(slope, loss);
        ck_assert(isfinite(slope));
    }
    fl_net_get(rig.net, a);
    fl_net_get(other.net, b);
    ck_assert_mem_eq(a, b, rig.count * sizeof(float));
    free(a);
    free(b);
    rig_down(&rig);
    rig_down(&other);
}

TEST_EACH(a_pass_allocates_nothing_and_memory_is_taken_once, ARRAY_LEN(nets))
{
    struct fl_net_direction direction;
    struct fl_net_pass pass;
    struct fl_net_memory memory;
    struct rig rig;
    double slope;
    size_t n;

    rig_up(&rig, &nets[_i], 4, 2);
    memory = fl_net_memory(rig.net);
    direction =
        (struct fl_net_direction){.x = rig.jvp_x, .params = rig.internal, .loss = 1, .slope = 1};
    pass = pass_of(&rig, true);
    failmalloc_start(SIZE_MAX, false);
    (void)fl_net_pass_jvp(rig.net, &pass, &direction, descend, NULL, &slope);
    n = failmalloc_stop();
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(fl_net_take_tangents(rig.net, NULL), FL_OK);
    ck_assert_uint_eq(fl_net_memory(rig.net).tangents, memory.tangents);
    ck_assert_uint_gt(memory.tangents, 0);
    rig_down(&rig);
}

/* Of every preset: about another batch of activations and gradients, and scratch. */
TEST(tangents_take_the_memory_of_another_batch)
{
    const char *const *name;
    struct fl_err err = {0};

    for (name = fl_net_presets(); *name != NULL; name++) {
        struct fl_net_memory m;
        struct fl_net_spec spec;
        struct fl_net *net = NULL;

        ck_assert_int_eq(fl_net_preset(*name, &spec, &err), FL_OK);
        ck_assert_int_eq(fl_net_create(&spec, 10, &net, &err), FL_OK);
        ck_assert_int_eq(fl_net_take_tangents(net, &err), FL_OK);
        m = fl_net_memory(net);
        ck_assert_msg(m.tangents <= m.training + m.training / 2 + 2 * m.scratch + 65536,
                      "%s: %zu beside %zu", *name, m.tangents, m.training);
        fl_net_free(net);
    }
}
