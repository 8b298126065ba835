/* Evaluation in the memory of a training batch: it costs no more, and disturbs nothing. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/nn/network_impl.h"
#include "libfl/num/dense.h"
#include "tests/lib/suites.h"

#define SAMPLES 150

static const struct {
    size_t input[3];
    size_t n_input;
    const char *layers[12];
} nets[] = {
    {{13}, 1, {"dense 37", "relu", "dense 5"}},
    {{300}, 1, {"dense 20", "dropout 0.3", "bn", "relu", "dense 20", "relu", "dense 3"}},
    {{3, 7, 5}, 3, {"conv 5 3x3 pad 1", "bn", "relu", "maxpool 2", "flatten", "dense 3"}},
    {{2, 6, 6},
     3,
     {"maxpool 3 stride 2 same", "conv 4 3x3 pad 1", "lrn", "relu", "dropout 0.2", "conv 16 2x2",
      "relu", "flatten", "dense 19", "relu", "dense 4"}},
    {{1, 5, 4}, 3, {"relu", "conv 3 2x2", "relu", "maxpool 2", "flatten", "dense 3"}},
    {{3, 2, 3}, 3, {"flatten", "dense 17", "relu", "dense 3"}},
};

static struct fl_net_spec spec_of(size_t i)
{
    struct fl_net_spec spec = {.n_input = nets[i].n_input, .layers = nets[i].layers};

    (void)memcpy(spec.input, nets[i].input, sizeof(spec.input));
    while (spec.n_layers < 12 && nets[i].layers[spec.n_layers] != NULL) {
        spec.n_layers++;
    }
    return spec;
}

static void *must(void *p)
{
    ck_assert_ptr_nonnull(p);
    return p;
}

/* max_batch 0: an evaluator. */
static struct fl_net *create(const struct fl_net_spec *spec, size_t max_batch)
{
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    int rv = max_batch > 0 ? fl_net_create(spec, max_batch, &net, &err)
                           : fl_net_create_evaluator(spec, &net, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    return net;
}

struct data {
    float *x;
    int32_t *y;
    float *model;
    size_t inputs;
};

static struct data make_data(const struct fl_net_spec *spec, size_t n)
{
    struct fl_net *net = create(spec, 1);
    struct data d = {.inputs = fl_net_inputs(net)};
    struct fl_rng rng;
    size_t i;

    fl_rng_key(&rng, 3, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    d.model = must(calloc(fl_layout_count(fl_net_layout(net)), sizeof(float)));
    fl_net_get(net, d.model);
    d.x = must(calloc(n * d.inputs, sizeof(float)));
    d.y = must(calloc(n, sizeof(*d.y)));
    for (i = 0; i < n * d.inputs; i++) {
        d.x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < n; i++) {
        d.y[i] = (int32_t)fl_rng_below(&rng, fl_net_classes(net));
    }
    fl_net_free(net);
    return d;
}

static void data_done(struct data *d)
{
    free(d->x);
    free(d->y);
    free(d->model);
}

static void descend(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    size_t i;

    (void)ctx;
    (void)offset;
    for (i = 0; i < n; i++) {
        params[i] -= 0.05f * grad[i];
    }
}

/* Bits of the loss depend neither on the training batch nor on how samples are handed in. */
TEST_EACH(an_evaluation_has_the_same_bits_for_any_batch_of_training, ARRAY_LEN(nets))
{
    static const size_t batches[] = {0, 1, 3, 10, 64, 150};
    struct fl_net_spec spec = spec_of((size_t)_i);
    struct data d = make_data(&spec, SAMPLES);
    double want = 0.0;
    size_t right = 0;
    size_t i;

    for (i = 0; i < ARRAY_LEN(batches); i++) {
        struct fl_net *net = create(&spec, batches[i]);
        size_t piece = fl_net_piece(net);
        double sum = 0.0;
        double loss = 0.0;
        size_t total = 0;
        size_t correct = 0;
        float *grad;
        size_t at;

        ck_assert_uint_eq(piece, 64);
        fl_net_set(net, d.model);
        grad = must(calloc(fl_net_block(net), sizeof(*grad)));
        if (batches[i] > 0) {
            /* What a step leaves behind does not shine through. */
            (void)fl_net_gradient(net, d.x, d.y, batches[i], grad);
        }
        fl_net_evaluate(net, d.x, d.y, SAMPLES, &loss, &correct);
        for (at = 0; at < SAMPLES; at += piece) {
            size_t n = SAMPLES - at < piece ? SAMPLES - at : piece;
            double part;
            size_t good;

            fl_net_evaluate(net, d.x + at * d.inputs, d.y + at, n, &part, &good);
            sum += part;
            total += good;
        }
        want = i == 0 ? loss : want;
        right = i == 0 ? correct : right;
        ck_assert(isfinite(loss) && loss > 0.0);
        ck_assert_double_eq(loss, want);
        ck_assert_double_eq(sum, want);
        ck_assert_uint_eq(correct, right);
        ck_assert_uint_eq(total, right);
        free(grad);
        fl_net_free(net);
    }
    data_done(&d);
}

static void assert_finite(const float *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        ck_assert(isfinite(p[i]));
    }
}

/* A model that went to NaN is evaluated in between: nothing of it stays. */
TEST_EACH(training_does_not_notice_an_evaluation, ARRAY_LEN(nets))
{
    struct fl_net_spec spec = spec_of((size_t)_i);
    struct data d = make_data(&spec, SAMPLES);
    struct fl_net *with = create(&spec, 9);
    struct fl_net *without = create(&spec, 9);
    size_t count = fl_layout_count(fl_net_layout(with));
    float *bad = must(calloc(count, sizeof(float)));
    float *a = must(calloc(count, sizeof(float)));
    float *b = must(calloc(count, sizeof(float)));
    double loss;
    size_t correct, s, i;

    for (i = 0; i < count; i++) {
        bad[i] = NAN;
    }
    fl_net_set(without, d.model);
    fl_net_set(with, bad);
    fl_net_evaluate(with, d.x, d.y, SAMPLES, &loss, &correct);
    ck_assert(isnan(loss));
    fl_net_set(with, d.model);
    for (s = 0; s < 12; s++) {
        /* Short batches leave rows of other evaluations behind. */
        size_t n = 9 - s % 4;
        double p = fl_net_step(with, d.x + s * 9 * d.inputs, d.y + s * 9, n, descend, NULL);
        double q = fl_net_step(without, d.x + s * 9 * d.inputs, d.y + s * 9, n, descend, NULL);

        ck_assert_double_eq(p, q);
        if (s % 3 == 0) {
            fl_net_get(with, a);
            fl_net_set(with, bad);
            fl_net_evaluate(with, d.x, d.y, 64 + s, &loss, &correct);
            fl_net_set(with, a);
        }
    }
    fl_net_get(with, a);
    fl_net_get(without, b);
    ck_assert_mem_eq(a, b, count * sizeof(float));
    fl_net_free(with);
    fl_net_free(without);
    free(bad);
    free(a);
    free(b);
    data_done(&d);
}

/*
 * What dense.h asks for, of the last layer's input in an evaluation's last piece, `n` rows: kernels
 * may read behind rows and behind the last one, so that must be finite. No kernel of today shows it
 * when it is not.
 */
static void assert_padding(const struct fl_net *net, size_t n)
{
    size_t which = net->image_first ? 0 : 1; /* of the layer below i */
    size_t ld = 0;
    size_t width = 0;
    const float *y;
    size_t i;

    for (i = 0; i + 1 < net->n_layers; i++) {
        const struct fl__layer *layer = &net->layers[i];

        if (!layer->skip && !layer->ops->training_only) {
            which ^= 1;
            ld = layer->ldy;
            width = fl__shape_count(&layer->out);
        }
    }
    y = net->turn[which];
    assert_finite(y, n * ld + FL_DENSE_SLACK);
    ck_assert(width < ld && y[width] == 0.0f && y[n * ld] == 0.0f);
}

/* Nor does an evaluation notice one of a model that went to NaN. */
TEST_EACH(an_evaluation_does_not_notice_what_was_there_before, ARRAY_LEN(nets))
{
    struct fl_net_spec spec = spec_of((size_t)_i);
    struct data d = make_data(&spec, SAMPLES);
    struct fl_net *net = create(&spec, 0);
    size_t count = fl_layout_count(fl_net_layout(net));
    float *bad = must(calloc(count, sizeof(float)));
    double first, loss;
    size_t correct, i;

    for (i = 0; i < count; i++) {
        bad[i] = NAN;
    }
    fl_net_set(net, d.model);
    fl_net_evaluate(net, d.x, d.y, SAMPLES, &first, &correct);
    fl_net_set(net, bad);
    fl_net_evaluate(net, d.x, d.y, SAMPLES, &loss, &correct);
    ck_assert(isnan(loss));
    ck_assert_uint_eq(correct, 0);
    fl_net_set(net, d.model);
    fl_net_evaluate(net, d.x, d.y, SAMPLES, &loss, &correct);
    ck_assert_double_eq(loss, first);
    assert_padding(net, SAMPLES % 64);
    fl_net_free(net);
    free(bad);
    data_done(&d);
}

/* Resident bytes of whole pages in it. */
static size_t persistent(const float *p, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)p + page - 1) / page * page;
    size_t pages = ((uintptr_t)(p + n) - from) / page;
    unsigned char *there = must(calloc(pages, 1));
    size_t sum = 0;
    size_t i;

    ck_assert_int_eq(mincore((void *)from, pages * page, there), 0);
    for (i = 0; i < pages; i++) {
        sum += (there[i] & 1) != 0 ? page : 0;
    }
    free(there);
    return sum;
}

/* Also what passes along a direction work in. */
TEST(memory_that_goes_back_is_taken_again_and_no_bit_changes)
{
    static const char *const layers[] = {"conv 64 3x3 pad 1", "bn",      "relu",
                                         "maxpool 2",         "flatten", "dense 3"};
    const struct fl_net_spec spec = {
        .input = {3, 32, 32}, .n_input = 3, .layers = layers, .n_layers = ARRAY_LEN(layers)};
    struct data d = make_data(&spec, 24);
    const struct fl_net_pass how = {.x = d.x, .y = d.y, .batch = 24, .track = true};
    const struct fl_net_direction direction = {.x = d.x, .slope = 1.0};
    struct fl_net *nets_of[2];
    double slope[2];
    size_t s, i;

    for (i = 0; i < 2; i++) {
        nets_of[i] = create(&spec, 24);
        fl_net_set(nets_of[i], d.model);
        ck_assert_int_eq(fl_net_take_tangents(nets_of[i], NULL), FL_OK);
    }
    for (s = 0; s < 3; s++) {
        double loss[2], sum[2];
        size_t right[2];

        for (i = 0; i < 2; i++) {
            struct fl_net *net = nets_of[i];
            size_t n = net->n_activations;

            loss[i] = fl_net_pass_jvp(net, &how, &direction, descend, NULL, &slope[i]);
            fl_net_evaluate(net, d.x, d.y, 24, &sum[i], &right[i]);
            ck_assert_uint_gt(persistent(net->activations, n), n);
            if (i == 1) {
                fl_net_release(net);
                ck_assert_uint_le(persistent(net->activations, n), 1 << 17); /* at both ends */
                ck_assert_uint_le(persistent(net->along.memory, net->along.n), 1 << 17);
            }
        }
        ck_assert_double_eq(loss[0], loss[1]);
        ck_assert_double_eq(slope[0], slope[1]);
        ck_assert_double_eq(sum[0], sum[1]);
        ck_assert_uint_eq(right[0], right[1]);
    }
    ck_assert_mem_eq(nets_of[0]->params, nets_of[1]->params, nets_of[0]->n_block * sizeof(float));
    fl_net_free(nets_of[0]);
    fl_net_free(nets_of[1]);
    data_done(&d);
}

TEST(memory_is_one_batch_or_sixteen_megabytes)
{
    const char *const *name;
    struct fl_err err = {0};

    for (name = fl_net_presets(); *name != NULL; name++) {
        struct fl_net_memory m, twice, judge;
        struct fl_net_spec spec;
        struct fl_net *net;
        size_t piece;

        ck_assert_int_eq(fl_net_preset(*name, &spec, &err), FL_OK);
        net = create(&spec, 10);
        m = fl_net_memory(net);
        piece = fl_net_piece(net);
        fl_net_free(net);
        net = create(&spec, 20);
        twice = fl_net_memory(net);
        ck_assert_uint_eq(fl_net_piece(net), piece);
        fl_net_free(net);
        net = create(&spec, 0);
        judge = fl_net_memory(net);
        fl_net_free(net);
        ck_assert_uint_eq(m.parameters, judge.parameters);
        ck_assert_uint_eq(judge.training, 0);
        ck_assert_uint_eq(judge.all, judge.parameters + judge.scratch + judge.evaluation);
        ck_assert_uint_eq(m.all - m.parameters - m.scratch,
                          m.training > m.evaluation ? m.training : m.evaluation);
        ck_assert_uint_eq(judge.evaluation, m.evaluation);
        ck_assert_uint_le(m.evaluation, ((size_t)16 << 20) + 4096);
        ck_assert_uint_eq(m.evaluation, twice.evaluation);
        ck_assert_uint_gt(twice.training, m.training);
        ck_assert_uint_le(twice.training, 2 * m.training);
        ck_assert(piece >= 1 && piece <= 64);
    }
}

/* A layer so wide that a single sample is a piece. */
TEST(a_network_too_wide_for_a_piece_takes_samples_one_by_one)
{
    static const char *const layers[] = {"conv 1000 1x1", "relu", "maxpool 15", "flatten",
                                         "dense 2"};
    const struct fl_net_spec spec = {
        .input = {1, 64, 64}, .n_input = 3, .layers = layers, .n_layers = 5};
    struct data d = make_data(&spec, 3);
    struct fl_net *net = create(&spec, 0);
    double loss = 0.0;
    size_t correct;

    ck_assert_uint_eq(fl_net_piece(net), 1);
    fl_net_set(net, d.model);
    fl_net_evaluate(net, d.x, d.y, 3, &loss, &correct);
    ck_assert(loss > 0.0 && isfinite(loss));
    fl_net_evaluate(net, d.x, d.y, 0, &loss, &correct);
    ck_assert_double_eq(loss, 0.0);
    fl_net_free(net);
    data_done(&d);
}
