#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net.h"
#include "tests/lib/suites.h"

#define BATCH 3

static const char *const layers[] = {"conv 4 3x3", "bn",       "relu", "maxpool 2",
                                     "flatten",    "dense 20", "relu", "dense 3"};
#define N_LAYERS (sizeof(layers) / sizeof(layers[0]))

static struct fl_net *make(void)
{
    const struct fl_net_spec spec = {
        .input = {2, 8, 8}, .n_input = 3, .layers = layers, .n_layers = N_LAYERS};
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    struct fl_rng rng;

    ck_assert_msg(fl_net_create(&spec, BATCH, &net, &err) == FL_OK, "%s", err.msg);
    fl_rng_key(&rng, 7, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    return net;
}

struct heard {
    size_t n;
    size_t updates; /* of the hook itself */
    enum fl_net_part part[256];
    size_t layer[256];
};

static void hear(void *ctx, enum fl_net_part part, size_t layer)
{
    struct heard *h = ctx;

    ck_assert_uint_lt(h->n, 256);
    h->part[h->n] = part;
    h->layer[h->n++] = layer;
}

static void descend(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    struct heard *h = ctx;
    size_t i;

    (void)offset;
    h->updates++;
    for (i = 0; i < n; i++) {
        params[i] -= 0.1f * grad[i];
    }
}

static double step(struct fl_net *net, struct heard *h)
{
    float x[BATCH * 2 * 8 * 8];
    const int32_t y[BATCH] = {0, 2, 1};
    size_t i;

    for (i = 0; i < sizeof(x) / sizeof(x[0]); i++) {
        x[i] = (float)(i % 11) * 0.1f - 0.4f;
    }
    return fl_net_step(net, x, y, BATCH, descend, h);
}

static size_t count(const struct heard *h, enum fl_net_part part)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < h->n; i++) {
        n += h->part[i] == part;
    }
    return n;
}

TEST(a_watched_step_computes_the_same_bits_and_one_that_is_not_calls_nobody)
{
    struct fl_net *net = make();
    struct fl_net *watched = make();
    size_t size = fl_net_block(net) * sizeof(float);
    struct heard h = {0};
    struct heard plain = {0};
    size_t i;

    fl_net_watch(watched, hear, &h);
    for (i = 0; i < 3; i++) {
        ck_assert(step(net, &plain) == step(watched, &h));
    }
    ck_assert_mem_eq(fl_net_params(net), fl_net_params(watched), size);
    ck_assert_uint_eq(h.updates, plain.updates);
    ck_assert_uint_gt(h.n, 0);
    h.n = 0;
    fl_net_watch(watched, NULL, NULL);
    (void)step(watched, &h);
    ck_assert_uint_eq(h.n, 0);
    fl_net_free(net);
    fl_net_free(watched);
}

TEST(parts_come_forward_up_then_loss_then_backward_down_with_each_update_at_its_layer)
{
    static const size_t up[] = {0, 1, 3, 5, 7}; /* The others are done by those below them. */
    struct fl_net *net = make();
    struct heard h = {0};
    size_t i;
    size_t loss = sizeof(up) / sizeof(up[0]) + 1;

    fl_net_watch(net, hear, &h);
    (void)step(net, &h);
    ck_assert_int_eq(h.part[0], FL_NET_EXTERNAL);
    for (i = 1; i < loss; i++) {
        ck_assert_int_eq(h.part[i], FL_NET_FORWARD);
        ck_assert_uint_eq(h.layer[i], up[i - 1]);
    }
    ck_assert_int_eq(h.part[loss], FL_NET_LOSS);
    for (i = loss + 1; i < h.n; i++) {
        ck_assert(h.part[i] == FL_NET_BACKWARD || h.part[i] == FL_NET_UPDATE);
        ck_assert(i == loss + 1 || h.layer[i] <= h.layer[i - 1]);
        /* What was computed before a range of it belongs to the layer and not to the hook. */
        ck_assert(h.part[i] == FL_NET_BACKWARD || h.part[i - 1] == FL_NET_BACKWARD);
        ck_assert(h.part[i] == FL_NET_BACKWARD || h.layer[i] != 3);
    }
    ck_assert_int_eq(h.part[h.n - 1], FL_NET_BACKWARD);
    ck_assert_uint_eq(h.layer[h.n - 1], 0);
    ck_assert_uint_eq(count(&h, FL_NET_UPDATE), h.updates);
    fl_net_free(net);
}

TEST(a_pass_jvp_a_direction_is_watched_too)
{
    struct fl_net *net = make();
    struct heard h = {0};
    struct fl_err err = {0};
    float *direction = calloc(fl_net_block(net), sizeof(*direction));
    float x[BATCH * 2 * 8 * 8] = {0};
    const int32_t y[BATCH] = {0, 2, 1};
    const struct fl_net_pass how = {.x = x, .y = y, .batch = BATCH};
    const struct fl_net_direction along = {.params = direction, .loss = 1.0, .slope = 1.0};
    double slope;

    ck_assert_ptr_nonnull(direction);
    ck_assert_msg(fl_net_take_tangents(net, &err) == FL_OK, "%s", err.msg);
    fl_net_watch(net, hear, &h);
    (void)fl_net_pass_jvp(net, &how, &along, descend, &h, &slope);
    ck_assert_uint_eq(count(&h, FL_NET_EXTERNAL), 1);
    ck_assert_uint_eq(count(&h, FL_NET_FORWARD), 10);
    ck_assert_uint_eq(count(&h, FL_NET_LOSS), 1);
    ck_assert_uint_eq(count(&h, FL_NET_UPDATE), h.updates);
    ck_assert_uint_gt(h.updates, 0);
    free(direction);
    fl_net_free(net);
}
