/*
 * Networks on each row of kernels that this machine has, against the same in double
 * (tests/lib/adnet.h, tests/lib/refnet.h): every layer, and every way of a convolution.
 */
#include "libfl/num/conv.h"
#include "tests/lib/ad_rig.h"
#include "tests/lib/refnets.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"

static const struct ref_net wide[] = {
    /* 5x5 from the image, Winograd 3x3 on even maps, and maps of 2x2. */
    IMAGE(3, 8, 8, CONV("conv 16 5x5 pad 2", 16, 5, 5, 1, 2), RELU,
          CONV("conv 32 3x3 pad 1", 32, 3, 3, 1, 1), RELU, POOL("maxpool 2", 2, 2, 0, 4, 4),
          CONV("conv 48 3x3 pad 1", 48, 3, 3, 1, 1), RELU, POOL("maxpool 2", 2, 2, 0, 2, 2),
          CONV("conv 32 3x3 pad 1", 32, 3, 3, 1, 1), RELU, FLATTEN, DENSE3),
    /* Winograd 5x5 below batch-norm, then an odd number of channels with a stride. */
    IMAGE(3, 6, 6, CONV("conv 16 3x3 pad 1", 16, 3, 3, 1, 1), BN, RELU,
          CONV("conv 48 5x5 pad 2", 48, 5, 5, 1, 2), BN, RELU,
          CONV("conv 7 3x3 stride 2", 7, 3, 3, 2, 0), FLATTEN, DENSE("dense 40", 40), RELU, DENSE3),
    /* Winograd as the lowest layer, on maps whose tiles hang over the edge. */
    IMAGE(16, 7, 11, CONV("conv 48 3x3 pad 1", 48, 3, 3, 1, 1), RELU,
          POOL("maxpool 2", 2, 2, 0, 3, 5), FLATTEN, DENSE3),
    IMAGE(32, 5, 7, CONV("conv 16 5x5 pad 2", 16, 5, 5, 1, 2), BN, RELU, FLATTEN, DENSE3),
    /* One channel without padding, then channels in sixteens with a stride. */
    IMAGE(1, 9, 8, CONV("conv 32 3x3", 32, 3, 3, 1, 0), RELU,
          CONV("conv 16 3x3 pad 1 stride 2", 16, 3, 3, 2, 1), RELU, FLATTEN, DENSE3),
    /* Dense layers that fill vectors, and ones that do not. */
    {.input = {100, 1, 1},
     .flat = true,
     .layers = {DENSE("dense 64", 64), RELU, DENSE("dense 33", 33), RELU, DENSE3}},
};

static const size_t batches[] = {1, 3};

static void leave(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    (void)ctx;
    (void)offset;
    (void)n;
    (void)params;
    (void)grad;
}

/* 0, or the only one of `n` cases in plain deploy/test.sh: others for other rows and nets. */
static size_t first_case(int test, size_t n)
{
    return everyday_short() ? ((size_t)test / N_ROWS + (size_t)test) % n : 0;
}

/* A gradient as a step has it, and the running statistics that the step leaves. */
static void check_step(const struct fl_kernels *row, const struct ref_net *ref, size_t batch)
{
    struct fl_rng rng;
    struct rig rig;
    struct ad_job job;
    float *internal, *have;
    double *want;
    double loss;
    size_t i;

    rig_up_with(&rig, row, ref, batch, 51);
    have = must(rig.count, sizeof(float));
    want = must(rig.count, sizeof(double));
    internal = must(rig.block, sizeof(float));
    fl_rng_seed(&rng, SEED);
    job = (struct ad_job){.net = ref,
                          .params = rig.params,
                          .x = rig.x,
                          .y = rig.y,
                          .batch = batch,
                          .rng = &rng,
                          .loss = 1};
    fl_net_seed(rig.net, SEED);
    loss = fl_net_gradient(rig.net, rig.x, rig.y, batch, internal);
    fl_net_export(rig.net, have, internal);
    ck_assert_double_eq_tol(loss, ad_gradient(&job, rig.count, want).loss, 1e-5 * (1 + loss));
    assert_close(&rig, ARRAY_LEN(modes), have, want);
    fl_net_seed(rig.net, SEED);
    (void)fl_net_step(rig.net, rig.x, rig.y, batch, leave, NULL);
    (void)ref_loss(ref, rig.params, rig.x, rig.y, batch, /* training= */ true, SEED, want);
    fl_net_get(rig.net, have);
    for (i = 0; i < rig.count; i++) {
        ck_assert_double_eq_tol((double)have[i], want[i], 2e-6 * (1 + fabs(want[i])));
    }
    free(have);
    free(want);
    free(internal);
    rig_down(&rig);
}

TEST_EACH(steps_of_wide_networks_agree_with_automatic_differentiation, ARRAY_LEN(wide) * N_ROWS)
{
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);
    size_t b;

    for (b = first_case(_i, ARRAY_LEN(batches)); row->supported() && b < ARRAY_LEN(batches);
         b += everyday_stride(ARRAY_LEN(batches), ARRAY_LEN(batches)))
    {
        check_step(row, &wide[(size_t)_i / N_ROWS], batches[b]);
    }
}

TEST_EACH(steps_of_every_layer_agree_with_automatic_differentiation, ARRAY_LEN(nets) * N_ROWS)
{
    static const size_t odd[] = {2, 3, 7};
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);
    size_t b;

    for (b = first_case(_i, ARRAY_LEN(odd)); row->supported() && b < ARRAY_LEN(odd);
         b += everyday_stride(ARRAY_LEN(odd), ARRAY_LEN(odd)))
    {
        check_step(row, &nets[(size_t)_i / N_ROWS], odd[b]);
    }
}

TEST_EACH(gradients_jvp_a_direction_agree_with_automatic_differentiation, ARRAY_LEN(wide) * N_ROWS)
{
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);
    struct rig rig;
    float *have;
    double *want;
    size_t mode;

    if (!row->supported()) {
        return;
    }
    rig_up_with(&rig, row, &wide[(size_t)_i / N_ROWS], 3, 31);
    have = must(rig.count, sizeof(float));
    want = must(rig.count, sizeof(double));
    for (mode = first_case(_i, ARRAY_LEN(modes)); mode < ARRAY_LEN(modes);
         mode += everyday_stride(ARRAY_LEN(modes), ARRAY_LEN(modes)))
    {
        (void)both_ways(&rig, mode, have, want);
        assert_close(&rig, mode, have, want);
    }
    free(have);
    free(want);
    rig_down(&rig);
}

/* The sums of fl_net_evaluate() and of the plain network. */
TEST_EACH(evaluations_agree_with_the_plain_network, ARRAY_LEN(wide) * N_ROWS)
{
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);
    struct rig rig;
    double loss, want;
    size_t correct, b;

    for (b = first_case(_i, ARRAY_LEN(batches)); row->supported() && b < ARRAY_LEN(batches);
         b += everyday_stride(ARRAY_LEN(batches), ARRAY_LEN(batches)))
    {
        rig_up_with(&rig, row, &wide[(size_t)_i / N_ROWS], batches[b], 7 + b);
        want = ref_loss(rig.ref, rig.params, rig.x, rig.y, rig.batch, /* training= */ false, SEED,
                        NULL);
        fl_net_evaluate(rig.net, rig.x, rig.y, rig.batch, &loss, &correct);
        ck_assert_double_eq_tol(loss, want, 1e-5 * (1 + want));
        rig_down(&rig);
    }
}

/* Which ways the convolutions of a network take, as one bit each. */
static unsigned ways_of(const struct ref_net *net, const struct fl_kernels *row)
{
    static const char *const names[] = {"first", "winograd", "patches"};
    const struct ref_layer *l;
    size_t c = net->input[0], h = net->input[1], w = net->input[2];
    unsigned ways = 0;
    size_t i;

    for (l = net->layers; l->kind != 0; l++) {
        if (l->kind == REF_CONV) {
            struct fl_conv conv = {.c = c,
                                   .h = h,
                                   .w = w,
                                   .k = l->out,
                                   .kh = l->kh,
                                   .kw = l->kw,
                                   .stride = l->stride,
                                   .pad = l->pad};

            fl_conv_plan(&conv, row);
            for (i = 0; i < ARRAY_LEN(names); i++) {
                ways |= strcmp(fl_conv_algorithm(&conv), names[i]) == 0 ? 1u << i : 0;
            }
            c = l->out;
            h = conv.oh;
            w = conv.ow;
        } else if (l->kind == REF_MAXPOOL) {
            h = l->oh;
            w = l->ow;
        }
    }
    return ways;
}

TEST_EACH(these_networks_take_every_way_there_is, N_ROWS)
{
    static const unsigned want[ARRAY_LEN(wide)] = {1 | 2, 1 | 2 | 4, 2, 2, 1 | 4, 0};
    const struct fl_kernels *row = fl__kernels_row((size_t)_i);
    bool plain = strcmp(fl_kernels_name(row), "reference") == 0;
    size_t i;

    ck_assert_int_eq(plain, (size_t)_i + 1 == N_ROWS);
    for (i = 0; row->supported() && i < ARRAY_LEN(wide); i++) {
        ck_assert_uint_eq(ways_of(&wide[i], row), plain && want[i] != 0 ? 4 : want[i]);
    }
}
