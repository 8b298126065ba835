#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net.h"
#include "libfl/num/kernels_impl.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/kernel_rows.h"
#include "tests/lib/refnets.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/suites.h"

/* Networks on images, against the plain ones in double of tests/lib/refnet.h. */

static struct fl_net *create(const struct fl_net_spec *spec, size_t max_batch)
{
    struct fl_net *net = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_net_create(spec, max_batch, &net, &err) == FL_OK, "%s", err.msg);
    return net;
}

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    return p;
}

/* A network, its parameters and a batch, in both precisions. */
struct rig {
    const struct ref_net *ref;
    struct fl_net *net;
    size_t count, batch;
    float *exported;
    double *p;
    float *x;
    int32_t y[16];
};

/* The kernels of the nets to come; NULL: the fastest. */
static const struct fl_kernels *chosen;

/* Case i is net i % ARRAY_LEN(nets) on row i / ARRAY_LEN(nets); false when this processor cannot
 * run that. */
static bool choose(int i)
{
    chosen = fl__kernels_row((size_t)i / ARRAY_LEN(nets));
    return chosen->supported();
}

static void rig_up(struct rig *rig, const struct ref_net *ref, size_t batch)
{
    const char *texts[REF_MAX_LAYERS];
    struct fl_net_spec spec = ref_spec(ref, texts);
    const struct fl_layout *layout;
    struct fl_rng rng;
    size_t i;
    size_t t;

    spec.kernels = chosen;
    *rig = (struct rig){.ref = ref, .net = create(&spec, batch), .batch = batch};
    layout = fl_net_layout(rig->net);
    rig->count = fl_layout_count(layout);
    rig->exported = floats(rig->count);
    rig->p = calloc(rig->count, sizeof(*rig->p));
    rig->x = floats(batch * fl_net_inputs(rig->net));
    ck_assert_ptr_nonnull(rig->p);
    fl_rng_key(&rng, 31, FL_RNG_TEST, 0, 0);
    fl_net_init(rig->net, &rng);
    fl_net_get(rig->net, rig->exported);
    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        /* What init leaves at 0 and 1 would hide faults: of bn, gn and ln. */
        for (i = 0; tensor->name[1] == 'n' && i < tensor->count; i++) {
            rig->exported[tensor->offset + i] = (float)(0.5 + fl_rng_unit(&rng));
        }
    }
    fl_net_set(rig->net, rig->exported);
    for (i = 0; i < rig->count; i++) {
        rig->p[i] = (double)rig->exported[i];
    }
    for (i = 0; i < batch * fl_net_inputs(rig->net); i++) {
        rig->x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < batch; i++) {
        rig->y[i] = (int32_t)fl_rng_below(&rng, fl_net_classes(rig->net));
    }
}

static void rig_down(struct rig *rig)
{
    fl_net_free(rig->net);
    free(rig->exported);
    free(rig->p);
    free(rig->x);
}

struct visits {
    unsigned char *seen;
    float *params;
    float rate;
};

static void visit(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    struct visits *v = ctx;
    size_t i;

    ck_assert_ptr_eq(params, v->params + offset);
    for (i = 0; i < n; i++) {
        v->seen[offset + i]++;
        params[i] -= v->rate * grad[i];
    }
}

#define SEED 77

static double mean_loss(const struct rig *rig)
{
    return ref_loss(rig->ref, rig->p, rig->x, rig->y, rig->batch, /* training= */ true, SEED,
                    NULL) /
           (double)rig->batch;
}

/* Numbers of `grad` (exported order) that differ from central differences. */
static size_t wrong_gradients(struct rig *rig, const float *grad, double *ret_worst)
{
    const struct fl_layout *layout = fl_net_layout(rig->net);
    const double h = 1e-6;
    size_t bad = 0;
    size_t t, i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i += everyday_stride(3, 7)) {
            double numeric = 0.0;
            double error;

            if (!tensor->buffer) {
                rig->p[i] = (double)rig->exported[i] + h;
                numeric = mean_loss(rig);
                rig->p[i] = (double)rig->exported[i] - h;
                numeric = (numeric - mean_loss(rig)) / (2.0 * h);
                rig->p[i] = (double)rig->exported[i];
            }
            error = fabs(numeric - (double)grad[i]);
            *ret_worst = error > *ret_worst ? error : *ret_worst;
            bad += error > 1e-5 * (1.0 + fabs(numeric));
        }
    }
    return bad;
}

TEST_EACH(the_gradient_agrees_with_central_differences_in_double, kernel_rows() * ARRAY_LEN(nets))
{
    static const size_t batches[] = {1, 3, 7};
    struct rig rig;
    float *internal;
    float *grad;
    double worst = 0.0;
    double loss;
    size_t b;

    for (b = 0; choose(_i) && b < ARRAY_LEN(batches); b++) {
        size_t bad;

        rig_up(&rig, &nets[(size_t)_i % ARRAY_LEN(nets)], batches[b]);
        internal = floats(fl_net_block(rig.net));
        grad = floats(rig.count);
        fl_net_seed(rig.net, SEED);
        loss = fl_net_gradient(rig.net, rig.x, rig.y, rig.batch, internal);
        ck_assert_double_eq_tol(loss, mean_loss(&rig), 1e-5);
        fl_net_export(rig.net, grad, internal);
        bad = wrong_gradients(&rig, grad, &worst);
        ck_assert_msg(bad == 0, "batch %zu: %zu of %zu gradients are off, by at most %g", rig.batch,
                      bad, rig.count, worst);
        /* The parameters were left alone. */
        fl_net_get(rig.net, grad);
        ck_assert_mem_eq(grad, rig.exported, rig.count * sizeof(float));
        free(internal);
        free(grad);
        rig_down(&rig);
    }
}

TEST_EACH(a_step_moves_the_running_statistics_and_nothing_else_at_rate_zero, ARRAY_LEN(nets))
{
    static const size_t batches[] = {2, 5};
    struct rig rig;
    double *after;
    float *now;
    size_t b, i;

    for (b = 0; b < ARRAY_LEN(batches); b++) {
        struct visits v = {.rate = 0.0f};

        rig_up(&rig, &nets[_i], batches[b]);
        after = calloc(rig.count, sizeof(*after));
        now = floats(rig.count);
        v.seen = calloc(fl_net_block(rig.net), 1);
        v.params = fl_net_params(rig.net);
        ck_assert(after != NULL && v.seen != NULL);
        fl_net_seed(rig.net, SEED);
        (void)fl_net_step(rig.net, rig.x, rig.y, rig.batch, visit, &v);
        (void)ref_loss(rig.ref, rig.p, rig.x, rig.y, rig.batch, /* training= */ true, SEED, after);
        fl_net_get(rig.net, now);
        for (i = 0; i < rig.count; i++) {
            ck_assert_double_eq_tol((double)now[i], after[i], 2e-6);
        }
        free(after);
        free(now);
        free(v.seen);
        rig_down(&rig);
    }
}

TEST_EACH(evaluation_agrees_with_the_plain_network_for_any_split_of_the_batch, ARRAY_LEN(nets))
{
    static const size_t splits[] = {1, 2, 3, 7};
    struct rig rig;
    double want;
    size_t all = 0;
    size_t s, at;

    rig_up(&rig, &nets[_i], 7);
    want = ref_loss(&nets[_i], rig.p, rig.x, rig.y, 7, /* training= */ false, SEED, NULL);
    for (s = 0; s < ARRAY_LEN(splits); s++) {
        double loss = 0.0;
        size_t correct = 0;

        for (at = 0; at < 7; at += splits[s]) {
            size_t n = 7 - at < splits[s] ? 7 - at : splits[s];
            double loss_sum = 0.0;
            size_t right = 0;

            fl_net_evaluate(rig.net, rig.x + at * fl_net_inputs(rig.net), rig.y + at, n, &loss_sum,
                            &right);
            loss += loss_sum;
            correct += right;
        }
        ck_assert_double_eq_tol(loss, want, 1e-5);
        all = s == 0 ? correct : all;
        ck_assert_uint_eq(correct, all);
    }
    rig_down(&rig);
}

TEST_EACH(export_undoes_import_and_padding_stays_zero, ARRAY_LEN(nets))
{
    struct rig rig;
    float *internal;
    float *again;
    double sum = 0.0;
    double inner = 0.0;
    size_t i;

    rig_up(&rig, &nets[_i], 1);
    internal = floats(fl_net_block(rig.net));
    again = floats(rig.count);
    for (i = 0; i < rig.count; i++) {
        rig.exported[i] = (float)(i + 1);
        sum += (double)(i + 1);
    }
    for (i = 0; i < fl_net_block(rig.net); i++) {
        internal[i] = 7.0f;
    }
    fl_net_import(rig.net, internal, rig.exported);
    fl_net_export(rig.net, again, internal);
    ck_assert_mem_eq(again, rig.exported, rig.count * sizeof(float));
    for (i = 0; i < fl_net_block(rig.net); i++) {
        inner += (double)internal[i];
    }
    ck_assert(inner == sum);
    free(internal);
    free(again);
    rig_down(&rig);
}

TEST_EACH(a_step_visits_each_trainable_entry_once_and_no_buffer, ARRAY_LEN(nets))
{
    struct rig rig;
    const struct fl_layout *layout;
    struct visits v = {.rate = 0.0f};
    float *want;
    float *ones;
    size_t t, i;

    rig_up(&rig, &nets[_i], 4);
    layout = fl_net_layout(rig.net);
    ones = floats(rig.count);
    want = floats(fl_net_block(rig.net));
    v.seen = calloc(fl_net_block(rig.net), 1);
    v.params = fl_net_params(rig.net);
    ck_assert_ptr_nonnull(v.seen);
    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = 0; i < tensor->count; i++) {
            ones[tensor->offset + i] = tensor->buffer ? 0.0f : 1.0f;
        }
    }
    fl_net_import(rig.net, want, ones);
    (void)fl_net_step(rig.net, rig.x, rig.y, 4, visit, &v);
    for (i = 0; i < fl_net_block(rig.net); i++) {
        ck_assert_uint_eq(v.seen[i], want[i] > 0.0f);
    }
    free(ones);
    free(want);
    free(v.seen);
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

TEST_EACH(a_step_allocates_nothing_and_a_failed_creation_leaves_nothing, ARRAY_LEN(nets))
{
    const char *texts[REF_MAX_LAYERS];
    const struct fl_net_spec spec = ref_spec(&nets[_i], texts);
    struct fl_net *net = NULL;
    struct rig rig;
    double loss;
    size_t correct, n, i;

    rig_up(&rig, &nets[_i], 4);
    failmalloc_start(SIZE_MAX, false);
    (void)fl_net_step(rig.net, rig.x, rig.y, 4, descend, NULL);
    fl_net_evaluate(rig.net, rig.x, rig.y, 4, &loss, &correct);
    n = failmalloc_stop();
    ck_assert_uint_eq(n, 0);
    failmalloc_start(SIZE_MAX, false);
    i = fl_net_create(&spec, 4, &net, NULL) == FL_OK;
    n = failmalloc_stop();
    ck_assert(i == 1 && n > 0);
    fl_net_free(net);
    net = NULL;
    for (i = 0; i < n; i++) {
        struct fl_err err = {0};
        int rv;

        failmalloc_start(i, false);
        rv = fl_net_create(&spec, 4, &net, &err);
        (void)failmalloc_stop();
        ck_assert_int_eq(rv, FL_ENOMEM);
        ck_assert_ptr_null(net);
    }
    rig_down(&rig);
}

static const struct {
    const char *layers[4];
    size_t input[4];
    size_t n_input;
    const char *words;
} bad_specs[] = {
    {{"conv 8 3x3", "flatten", "dense 3"}, {12}, 1, "layer 1 'conv 8 3x3': needs an image"},
    {{"flatten", "conv 8 3x3", "dense 3"}, {1, 4, 4}, 3, "layer 2 'conv 8 3x3': needs an image"},
    {{"maxpool 2", "dense 3"}, {12}, 1, "layer 1 'maxpool 2': needs an image"},
    {{"conv", "dense 3"},
     {1, 4, 4},
     3,
     "expected 'conv CHANNELS HxW [pad N] [stride N] [groups N] [nobias]': CHANN"},
    {{"conv 0 3x3", "dense 3"}, {1, 4, 4}, 3, "integer from 1 to 65536"},
    {{"conv 8", "dense 3"}, {1, 4, 4}, 3, "height and width of the kernel"},
    {{"conv 8 3", "dense 3"}, {1, 4, 4}, 3, "as in '3x3'"},
    {{"conv 8 3x", "dense 3"}, {1, 4, 4}, 3, "as in '3x3'"},
    {{"conv 8 x3", "dense 3"}, {1, 4, 4}, 3, "as in '3x3'"},
    {{"conv 8 32x3", "dense 3"}, {1, 4, 4}, 3, "from 1 to 31"},
    {{"conv 8 3x3 pod 1", "dense 3"}, {1, 4, 4}, 3, "'pod' is neither 'pad' nor 'stride', 'gr"},
    {{"conv 8 3x3 pad", "dense 3"}, {1, 4, 4}, 3, "pad must be an integer from 0 to 31"},
    {{"conv 8 3x3 stride 0", "dense 3"}, {1, 4, 4}, 3, "stride must be an integer from 1 to 31"},
    {{"conv 8 3x3 pad 3", "dense 3"}, {1, 4, 4}, 3, "pad is 3, expected less than the kernel's"},
    {{"conv 8 3x5 pad 1", "dense 3"},
     {1, 2, 2},
     3,
     "kernel of 3x5 is larger than the image of 2x2"},
    {{"conv 8 3x3 aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {1, 4, 4}, 3, "'aaaaaaaaaaaaaaa' is neither"},
    {{"conv 8 3x3", "dense 3"}, {1, 4, 4}, 3, "layer 2 'dense 3': needs a flat input"},
    {{"conv 65536 1x1", "flatten", "dense 3"}, {1, 32, 32}, 3, "65536x32x32, has more than 2^24"},
    {{"conv 65536 31x31", "conv 65536 1x1", "flatten", "dense 2"},
     {1, 31, 31},
     3,
     "more than 2^28 parameters"},
    {{"maxpool", "dense 3"}, {1, 4, 4}, 3, "SIZE must be an integer from 1 to 15"},
    {{"maxpool 16", "dense 3"}, {1, 4, 4}, 3, "SIZE must be an integer from 1 to 15"},
    {{"maxpool 2 2", "dense 3"}, {1, 4, 4}, 3, "'2' is neither 'stride' nor 'same'"},
    {{"maxpool 2 stride 0", "dense 3"}, {1, 4, 4}, 3, "stride must be an integer from 1 to 15"},
    {{"maxpool 5", "dense 3"}, {1, 4, 4}, 3, "window of 5x5 is larger than the image of 4x4"},
    {{"conv 2 3x3", "flatten"}, {1, 4, 4}, 3, "the last layer must be 'dense'"},
    {{"bn", "flatten", "dense 3"},
     {1, 4, 4},
     3,
     "layer 1 'bn': needs a preceding layer with weights"},
    {{"conv 2 3x3", "flatten", "bn", "dense 3"}, {1, 4, 4}, 3, "put 'bn' before 'flatten'"},
    {{"conv 2 3x3", "bn 2"}, {1, 4, 4}, 3, "layer 2 'bn 2': expected 'bn': takes no argument"},
    {{"lrn", "dense 3"}, {12}, 1, "layer 1 'lrn': needs an image"},
    {{"lrn 5", "dense 3"}, {1, 4, 4}, 3, "'lrn': takes no argument"},
    {{"dropout", "dense 3"},
     {12},
     1,
     "expected 'dropout RATE': RATE must be a number of at least 0 and below"},
    {{"dropout 1", "dense 3"}, {12}, 1, "RATE must be a number of at least 0 and below 1"},
    {{"dropout -0.1", "dense 3"}, {12}, 1, "RATE must be a number of at least 0 and below 1"},
    {{"dropout nan", "dense 3"}, {12}, 1, "RATE must be a number of at least 0 and below 1"},
    {{"con 2 3x3", "flatten"}, {1, 4, 4}, 3, "did you mean 'conv'?"},
    {{"conv 8 3x3 groups", "dense 3"}, {4, 4, 4}, 3, "groups must be a divisor of the 8 channels"},
    {{"conv 8 3x3 groups 3", "dense 3"}, {3, 4, 4}, 3, "groups must be a divisor of the 8 chan"},
    {{"conv 8 3x3 groups 4", "dense 3"},
     {6, 4, 4},
     3,
     "groups is 4, expected a divisor of the inp"},
    {{"avgpool 0", "dense 3"}, {1, 4, 4}, 3, "SIZE must be an integer from 1 to 15"},
    {{"avgpool 2 same", "dense 3"}, {1, 4, 4}, 3, "'same' is not 'stride'"},
    {{"avgpool 5", "dense 3"}, {1, 4, 4}, 3, "window of 5x5 is larger than the image of 4x4"},
    {{"globalpool", "dense 3"}, {12}, 1, "layer 1 'globalpool': needs an image"},
    {{"gn 0", "dense 3"}, {12}, 1, "GROUPS must be an integer from 1 to 1024"},
    {{"gn 5", "dense 3"}, {12}, 1, "GROUPS is 5, expected a divisor of the 12 channels"},
    {{"conv 2 3x3", "flatten", "gn 2", "dense 3"}, {1, 4, 4}, 3, "put 'gn' before 'flatten'"},
    {{"conv 2 3x3", "flatten", "ln", "dense 3"}, {1, 4, 4}, 3, "put 'ln' before 'flatten'"},
    {{"lstm 0", "dense 3"}, {1, 4, 4}, 3, "UNITS must be an integer from 1 to 8192"},
    {{"lstm 4", "dense 3"}, {12}, 1, "layer 1 'lstm 4': needs a sequence, as of 'embedding'"},
    {{"attention 0", "dense 3"}, {4, 4, 4}, 3, "HEADS must be an integer from 1 to 1024"},
    {{"attention 3", "dense 3"}, {4, 4, 4}, 3, "HEADS is 3, expected a divisor of the 4 channels"},
    {{"attention 2 masked", "dense 3"}, {4, 4, 4}, 3, "'masked' is not 'causal', the last word"},
    {{"attention 2", "dense 3"}, {4}, 1, "layer 1 'attention 2': needs a sequence"},
    {{"attention 2", "dense 3"},
     {4, 100, 100},
     3,
     "10000 positions of 4 channels, expected at most"},
    {{"last", "dense 3"}, {12}, 1, "layer 1 'last': needs a sequence"},
    {{"embedding 0 3", "dense 3"}, {12}, 1, "WORDS must be an integer from 1 to 1048576"},
    {{"embedding 3", "dense 3"}, {12}, 1, "DIM must be an integer from 1 to 65536"},
    {{"embedding 3 3 3", "dense 3"}, {12}, 1, "DIM must be an integer from 1 to 65536, the last"},
    {{"relu", "embedding 3 3", "dense 3"}, {12}, 1, "must be the first layer, with a flat input"},
    {{"embedding 3 3", "dense 3"}, {3, 2, 2}, 3, "must be the first layer, with a flat input"},
    {{"tanh 3", "dense 3"}, {12}, 1, "'tanh': takes no argument"},
    {{"add", "dense 3"}, {12}, 1, "layer 1 'add': needs a preceding 'block' without an 'add'"},
    {{"shortcut", "dense 3"}, {12}, 1, "layer 1 'shortcut': needs a preceding 'block'"},
    {{"block", "relu", "dense 3"}, {12}, 1, "layer 1 'block': no 'add' follows"},
    {{"block", "shortcut", "shortcut", "dense 3"}, {12}, 1, "has a 'shortcut' already"},
    {{"block", "dense 5", "add", "dense 3"}, {12}, 1, "shapes 12x1x1 and 5x1x1, expected the same"},
    {{"block", "flatten", "add", "dense 3"},
     {2, 2, 2},
     3,
     "layer 3 'add': its inputs have the sha"},
};

TEST_EACH(a_bad_network_names_its_layer, ARRAY_LEN(bad_specs))
{
    struct fl_net_spec spec = {.layers = bad_specs[_i].layers, .n_input = bad_specs[_i].n_input};
    struct fl_net *net = NULL;
    struct fl_err err = {0};

    (void)memcpy(spec.input, bad_specs[_i].input, sizeof(spec.input));
    while (spec.n_layers < 4 && bad_specs[_i].layers[spec.n_layers] != NULL) {
        spec.n_layers++;
    }
    ck_assert_int_eq(fl_net_create(&spec, 4, &net, &err), FL_ECONF);
    ck_assert_ptr_null(net);
    ck_assert_msg(strstr(err.msg, bad_specs[_i].words) != NULL, "'%s' does not say '%s'", err.msg,
                  bad_specs[_i].words);
    ck_assert_int_eq(fl_net_create(&spec, 4, &net, NULL), FL_ECONF);
}

/* Images of noise with a bright bar whose direction is the class. */
static void bars(struct fl_rng *rng, float *x, int32_t *y, size_t n)
{
    size_t b, i;

    for (b = 0; b < n; b++) {
        size_t at = (size_t)fl_rng_below(rng, 8);
        size_t channel = (size_t)fl_rng_below(rng, 2);

        y[b] = (int32_t)fl_rng_below(rng, 2);
        for (i = 0; i < 2 * 64; i++) {
            x[b * 128 + i] = (float)(0.3 * fl_rng_normal(rng));
        }
        for (i = 0; i < 8; i++) {
            x[b * 128 + channel * 64 + (y[b] == 0 ? at * 8 + i : i * 8 + at)] += 1.0f;
        }
    }
}

/* Trains on fresh bars; the share of 64 others that is right. */
static double learn_bars(const char *const *layers, size_t n_layers, size_t steps)
{
    const struct fl_net_spec spec = {
        .input = {2, 8, 8}, .n_input = 3, .layers = layers, .n_layers = n_layers};
    struct fl_net *net = create(&spec, 64);
    struct visits v = {.rate = 0.1f, .params = fl_net_params(net)};
    struct fl_rng rng;
    float *x = floats(64 * 128);
    int32_t y[64];
    double loss = 0.0;
    size_t correct = 0;
    size_t step;

    v.seen = calloc(fl_net_block(net), 1);
    ck_assert_ptr_nonnull(v.seen);
    fl_rng_key(&rng, 8, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    for (step = 0; step < steps; step++) {
        bars(&rng, x, y, 16);
        (void)fl_net_step(net, x, y, 16, visit, &v);
    }
    bars(&rng, x, y, 64);
    fl_net_evaluate(net, x, y, 64, &loss, &correct);
    free(v.seen);
    free(x);
    fl_net_free(net);
    return (double)correct / 64.0;
}

TEST(a_small_network_learns_the_direction_of_bars)
{
    static const char *const plain[] = {"conv 8 3x3 pad 1", "relu",   "maxpool 2",
                                        "conv 8 3x3",       "relu",   "maxpool 2",
                                        "flatten",          "dense 2"};

    static const char *const normed[] = {
        "conv 8 3x3 pad 1", "bn", "relu", "maxpool 2", "dropout 0.1", "lrn",
        "conv 8 3x3 pad 1", "bn", "relu", "flatten",   "dense 2"};

    ck_assert_double_gt(learn_bars(plain, ARRAY_LEN(plain), 300), 0.95);
    ck_assert_double_gt(learn_bars(normed, ARRAY_LEN(normed), 150), 0.95);
}

/*
 * A convolution that picks single pixels, so that places in the exported block are seen one
 * by one: weight[k][c][i][j] and, behind the flatten, weight[j][c][y][x].
 */
TEST(the_exported_order_is_that_of_pytorch)
{
    static const char *const layers[] = {"conv 2 1x2", "flatten", "dense 2"};
    const struct fl_net_spec spec = {
        .input = {3, 2, 3}, .n_input = 3, .layers = layers, .n_layers = 3};
    struct fl_net *net = create(&spec, 1);
    float p[2 * 3 * 2 + 2 + 2 * 8 + 2] = {0};
    float x[18];
    const int32_t y = 0;
    double loss;
    size_t correct, i;

    for (i = 0; i < 18; i++) {
        /* channel * 100 + row * 10 + column, scaled down */
        x[i] = (float)(i / 6 * 100 + i / 3 % 2 * 10 + i % 3) / 100.0f;
    }
    ck_assert_uint_eq(fl_layout_count(fl_net_layout(net)), ARRAY_LEN(p));
    p[1 * 6 + 2 * 2 + 1] = 1.0f;          /* channel 1 = the right neighbour in plane 2 */
    p[14 + 0 * 8 + 1 * 4 + 1 * 2] = 1.0f; /* class 0 looks at channel 1, row 1, column 0 */
    fl_net_set(net, p);
    fl_net_evaluate(net, x, &y, 1, &loss, &correct);
    ck_assert_double_eq_tol(loss, log(exp(2.11) + 1.0) - 2.11, 1e-6);
    fl_net_free(net);
}

/* What "dropout" leaves of ones: dense layers that pass on number after number. */
static size_t dropped(struct fl_net *net, size_t n, size_t batch, unsigned char *ret)
{
    float *x = floats(batch * n);
    int32_t *y = calloc(batch, sizeof(*y));
    float *grad = floats(fl_net_block(net));
    size_t zeros = 0;
    size_t i;

    ck_assert_ptr_nonnull(y);
    for (i = 0; i < batch * n; i++) {
        x[i] = 1.0f;
    }
    (void)fl_net_gradient(net, x, y, batch, grad);
    /* All weights are 0: the gradient of W[i][0] is -1/2 times the mean of what came through. */
    for (i = 0; i < n; i++) {
        ret[i] = fabsf(grad[2 * i]) > 0.0f;
        zeros += ret[i] == 0;
        ck_assert(ret[i] == 0 || fabsf(grad[2 * i] + 0.5f / 0.7f) < 1e-6f);
    }
    free(x);
    free(y);
    free(grad);
    return zeros;
}

TEST(dropout_keeps_its_rate_and_follows_its_seed)
{
    static const char *const layers[] = {"dropout 0.3", "dense 2"};
    enum { WIDE = 20001 };
    const struct fl_net_spec spec = {
        .input = {WIDE}, .n_input = 1, .layers = layers, .n_layers = 2};
    struct fl_net *a = create(&spec, 1);
    struct fl_net *b = create(&spec, 64);
    unsigned char *first = malloc(WIDE);
    unsigned char *second = malloc(WIDE);
    size_t zeros;

    ck_assert(first != NULL && second != NULL);
    fl_net_seed(a, 5);
    fl_net_seed(b, 5);
    zeros = dropped(a, WIDE, 1, first);
    /* Five standard deviations of a binomial draw. */
    ck_assert_double_eq_tol((double)zeros / WIDE, 0.3, 5.0 * sqrt(0.3 * 0.7 / WIDE));
    ck_assert_uint_eq(dropped(b, WIDE, 1, second), zeros);
    ck_assert_mem_eq(first, second, WIDE);
    /* The next mask is another one, and a seed brings back the first. */
    (void)dropped(a, WIDE, 1, second);
    ck_assert_mem_ne(first, second, WIDE);
    fl_net_seed(a, 5);
    (void)dropped(a, WIDE, 1, second);
    ck_assert_mem_eq(first, second, WIDE);
    fl_net_seed(a, 6);
    (void)dropped(a, WIDE, 1, second);
    ck_assert_mem_ne(first, second, WIDE);
    free(first);
    free(second);
    fl_net_free(a);
    fl_net_free(b);
}

TEST(one_number_a_channel_leaves_the_running_variance_alone)
{
    static const char *const layers[] = {"dense 3", "bn", "dense 2"};
    const struct fl_net_spec spec = {.input = {2}, .n_input = 1, .layers = layers, .n_layers = 3};
    struct fl_net *net = create(&spec, 1);
    const float x[2] = {1.0f, 2.0f};
    const int32_t y = 1;
    struct visits v = {.seen = calloc(fl_net_block(net), 1), .params = fl_net_params(net)};
    const struct fl_tensor *mean = fl_layout_find(fl_net_layout(net), "bn1.running_mean");
    const struct fl_tensor *var = fl_layout_find(fl_net_layout(net), "bn1.running_var");
    float p[64];
    struct fl_rng rng;
    size_t i;

    ck_assert(v.seen != NULL && mean != NULL && var != NULL);
    fl_rng_seed(&rng, 1);
    fl_net_init(net, &rng);
    ck_assert(isfinite(fl_net_step(net, x, &y, 1, visit, &v)));
    fl_net_get(net, p);
    for (i = 0; i < 3; i++) {
        ck_assert(fabsf(p[mean->offset + i]) > 0.0f);
        ck_assert(p[var->offset + i] == 1.0f);
    }
    free(v.seen);
    fl_net_free(net);
}
