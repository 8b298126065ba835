#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/nn/net.h"
#include "tests/lib/suites.h"

static struct fl_net *create(const struct fl_net_spec *spec, size_t max_batch)
{
    struct fl_net *net = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_net_create(spec, max_batch, &net, &err) == FL_OK, "%s", err.msg);
    return net;
}

static struct fl_net *preset(const char *name, size_t max_batch)
{
    struct fl_net_spec spec;

    ck_assert_int_eq(fl_net_preset(name, &spec, NULL), FL_OK);
    return create(&spec, max_batch);
}

static void init(struct fl_net *net, uint64_t seed)
{
    struct fl_rng rng;

    fl_rng_key(&rng, seed, FL_RNG_INIT, 0, 0);
    fl_net_init(net, &rng);
}

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    return p;
}

/* A batch of normal inputs with random labels. */
static void random_batch(const struct fl_net *net, uint64_t seed, size_t batch, float *x,
                         int32_t *y)
{
    struct fl_rng rng;
    size_t i;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    for (i = 0; i < batch * fl_net_inputs(net); i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < batch; i++) {
        y[i] = (int32_t)fl_rng_below(&rng, fl_net_classes(net));
    }
}

static const struct {
    const char *name;
    size_t trainable;
    size_t units;
    size_t buffers;
    size_t classes;
} presets[] = {
    {"mlr", 7850, 1, 0, 10},
    {"mlr60", 610, 1, 0, 10},
    {"mlr3072", 30730, 1, 0, 10},
    {"mlp200", 199210, 3, 0, 10},
    {"dnn", 79510, 2, 0, 10},
    {"dnn60", 1430, 2, 0, 10},
    {"dnn3072", 308310, 2, 0, 10},
    {"fedmix_cnn", 3491530, 9, 0, 10},
    {"vgg9_bn", 9231114, 9, 5504, 10},
    {"cifar_cnn32", 797962, 5, 0, 10},
    {"cifar_cnn24", 1068298, 5, 0, 10},
    {"emnist_cnn", 1206590, 4, 0, 62},
    {"emnist_cnn10", 1199882, 4, 0, 10},
    {"lenet5", 61706, 5, 0, 10},
    {"resnet18_gn", 11173962, 21, 0, 10},
    {"shakespeare_lstm", 817872, 4, 0, 80},
};

TEST_EACH(a_preset_has_the_parameters_of_the_table, ARRAY_LEN(presets))
{
    struct fl_net *net = preset(presets[_i].name, 1);
    const struct fl_layout *layout = fl_net_layout(net);

    ck_assert_uint_eq(fl_layout_trainable(layout), presets[_i].trainable);
    ck_assert_uint_eq(fl_layout_count(layout), presets[_i].trainable + presets[_i].buffers);
    ck_assert_uint_eq(fl_layout_units(layout), presets[_i].units);
    ck_assert_uint_ge(fl_net_block(net), fl_layout_count(layout));
    ck_assert_uint_eq(fl_net_classes(net), presets[_i].classes);
    ck_assert_str_eq(fl_net_presets()[_i], presets[_i].name);
    ck_assert_ptr_null(fl_net_presets()[ARRAY_LEN(presets)]);
    fl_net_free(net);
}

TEST(vgg9_bn_has_the_unit_sizes_of_the_table)
{
    static const size_t trainable[] = {1920,    74112,   295680,  590592, 1181184,
                                       2360832, 2360832, 2360832, 5130};
    static const size_t channels[] = {64, 128, 256, 256, 512, 512, 512, 512, 0};
    static const char *const names[] = {"conv1.weight", "conv1.bias",       "bn1.weight",
                                        "bn1.bias",     "bn1.running_mean", "bn1.running_var"};
    struct fl_net *net = preset("vgg9_bn", 1);
    const struct fl_layout *layout = fl_net_layout(net);
    size_t i;

    for (i = 0; i < ARRAY_LEN(trainable); i++) {
        ck_assert_uint_eq(fl_layout_unit(layout, i)->n_trainable, trainable[i]);
        ck_assert_uint_eq(fl_layout_unit(layout, i)->n_buffers, 2 * channels[i]);
    }
    for (i = 0; i < ARRAY_LEN(names); i++) {
        ck_assert_str_eq(fl_layout_tensor(layout, i)->name, names[i]);
        ck_assert_int_eq(fl_layout_tensor(layout, i)->buffer, i >= 4);
        ck_assert_uint_eq(fl_layout_tensor(layout, i)->unit, 0);
    }
    ck_assert_str_eq(fl_layout_unit(layout, 0)->name, "conv1");
    ck_assert_str_eq(fl_layout_unit(layout, 8)->name, "fc1");
    fl_net_free(net);
}

TEST(an_unknown_preset_names_the_nearest)
{
    struct fl_net_spec spec;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_net_preset("mpl200", &spec, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "did you mean 'mlp200'?"));
    ck_assert_ptr_nonnull(strstr(err.msg, "mlr, "));
    ck_assert_ptr_nonnull(strstr(err.msg, "emnist_cnn10"));
}

TEST(the_layout_is_named_as_in_pytorch)
{
    static const char text[] = "unit fc1\nfc1.weight 200x784\nfc1.bias 200\n"
                               "unit fc2\nfc2.weight 200x200\nfc2.bias 200\n"
                               "unit fc3\nfc3.weight 10x200\nfc3.bias 10\n";
    struct fl_net *net = preset("mlp200", 1);
    uint8_t digest[FL_DIGEST_SIZE];
    char hex[2 * FL_DIGEST_SIZE + 1];

    ck_assert_int_eq(fl_sha256(text, strlen(text), digest), FL_OK);
    ck_assert_mem_eq(fl_layout_digest(fl_net_layout(net)), digest, sizeof(digest));
    /* Recorded: a change here makes old checkpoints and clients strangers. */
    ck_assert_str_eq(fl_hex(hex, digest, sizeof(digest)),
                     "1fb0f4e8420d5f9d9852bf6e90a0ec6721840e440e850149de528ddaaee76547");
    fl_net_free(net);
}

static const struct {
    const char *layers[4];
    size_t input[4];
    size_t n_input;
    const char *words;
} bad_specs[] = {
    {{NULL}, {4}, 1, "1 to 256 layers, not 0"},
    {{"dense 10"}, {4, 4}, 2, "the input has 2 dimensions"},
    {{"dense 10"}, {0}, 1, "input dimension 1 is 0"},
    {{"dense 10"},
     {1, 28, 28},
     3,
     "layer 1 'dense 10': needs a flat input, but its input is 1x28x28"},
    {{"dense 10"}, {16777216, 16777216, 16777216}, 3, "more than 2^24"},
    {{"dense 20", "rleu", "dense 10"},
     {4},
     1,
     "layer 2 'rleu': unknown layer, did you mean 'relu'?"},
    {{"dense 20", "gru"}, {4}, 1, "'dense WIDTH', 'dropout RATE', 'embedding WORDS DIM', "},
    {{"", "dense 10"}, {4}, 1, "layer 1 '': unknown layer"},
    {{"dense 20", "relu", "dense x"},
     {4},
     1,
     "layer 3 'dense x': expected 'dense WIDTH': WIDTH must be"},
    {{"dense"}, {4}, 1, "layer 1 'dense': expected 'dense WIDTH'"},
    {{"dense 0"}, {4}, 1, "integer from 1 to 1048576"},
    {{"dense -1"}, {4}, 1, "integer from"},
    {{"dense 10 20"}, {4}, 1, "integer from"},
    {{"dense 1048577"}, {4}, 1, "integer from"},
    {{"dense 1048576", "dense 1048576"}, {4}, 1, "layer 2 'dense 1048576'"},
    {{"dense 1048576", "dense 1024"}, {4}, 1, "more than 2^28"},
    {{"relu 3", "dense 10"}, {4}, 1, "layer 1 'relu 3': expected 'relu': takes no argument"},
    {{"flatten x", "dense 10"}, {4}, 1, "'flatten': takes no argument"},
    {{"dense 10", "relu"}, {4}, 1, "layer 2 'relu': the last layer must be 'dense'"},
    {{"dense 10", "relu", "mse"}, {4}, 1, "layer 2 'relu': the last layer must be 'dense'"},
    {{"mse", "dense 2"}, {4}, 1, "layer 1 'mse': a loss must be the last of at least two"},
    {{"mse"}, {4}, 1, "layer 1 'mse': a loss must be the last of at least two"},
    {{"dense 2", "mse", "mae"}, {4}, 1, "layer 2 'mse': a loss must be the last"},
    {{"dense 1"}, {4}, 1, "at least two classes"},
    {{"dense\x1b[31m"}, {4}, 1, "layer 1 'dense\\x1b"},
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

TEST(a_batch_size_out_of_range_is_refused)
{
    struct fl_net_spec spec;
    struct fl_net *net = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_net_preset("mlp200", &spec, NULL), FL_OK);
    ck_assert_int_eq(fl_net_create(&spec, 0, &net, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "batch size is 0"));
    ck_assert_int_eq(fl_net_create(&spec, SIZE_MAX, &net, &err), FL_ECONF);
    ck_assert_int_eq(fl_net_create(&spec, (size_t)1 << 20, &net, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "more than 2 GiB"));
    fl_net_free(NULL);
}

TEST(export_undoes_import_and_padding_stays_zero)
{
    static const char *const layers[] = {"dense 37", "relu", "dense 3"};
    const struct fl_net_spec spec = {.input = {19}, .n_input = 1, .layers = layers, .n_layers = 3};
    struct fl_net *net = create(&spec, 1);
    size_t count = fl_layout_count(fl_net_layout(net));
    float *exported = floats(count);
    float *again = floats(count);
    float *internal = floats(fl_net_block(net));
    double sum = 0.0;
    double inner = 0.0;
    size_t i;

    for (i = 0; i < count; i++) {
        exported[i] = (float)(i + 1);
        sum += (double)(i + 1);
    }
    for (i = 0; i < fl_net_block(net); i++) {
        internal[i] = 7.0f;
    }
    fl_net_import(net, internal, exported);
    fl_net_export(net, again, internal);
    ck_assert_mem_eq(exported, again, count * sizeof(float));
    for (i = 0; i < fl_net_block(net); i++) {
        inner += (double)internal[i];
    }
    ck_assert(inner == sum);
    (void)memset(again, 0, count * sizeof(float));
    fl_net_set(net, exported);
    ck_assert_mem_eq(fl_net_params(net), internal, fl_net_block(net) * sizeof(float));
    fl_net_get(net, again);
    ck_assert_mem_eq(exported, again, count * sizeof(float));
    free(exported);
    free(again);
    free(internal);
    fl_net_free(net);
}

/*
 * The network once more, plainly, in double, from exported parameters: dense layers of the
 * given widths with ReLU between them. Returns the mean loss.
 */
static double reference_loss(const double *p, const size_t *widths, size_t n_dense, const float *x,
                             const int32_t *y, size_t batch)
{
    double total = 0.0;
    size_t b, l, i, j;

    for (b = 0; b < batch; b++) {
        double a[128];
        double z[128];
        double sum = 0.0;
        const double *at = p;

        for (i = 0; i < widths[0]; i++) {
            a[i] = (double)x[b * widths[0] + i];
        }
        for (l = 0; l < n_dense; l++) {
            size_t in = widths[l];
            size_t out = widths[l + 1];

            for (j = 0; j < out; j++) {
                z[j] = at[in * out + j];
                for (i = 0; i < in; i++) {
                    z[j] += at[j * in + i] * a[i];
                }
            }
            for (j = 0; j < out; j++) {
                a[j] = l + 1 < n_dense && z[j] < 0.0 ? 0.0 : z[j];
            }
            at += in * out + out;
        }
        for (j = 0; j < widths[n_dense]; j++) {
            sum += exp(a[j]);
        }
        total += log(sum) - a[y[b]];
    }
    return total / (double)batch;
}

static const struct {
    const char *layers[6];
    size_t n_layers;
    size_t widths[4];
    size_t n_dense;
    size_t batch;
} gradient_nets[] = {
    {{"dense 10"}, 1, {60, 10}, 1, 7},
    {{"dense 20", "relu", "dense 10"}, 3, {60, 20, 10}, 2, 5},
    {{"dense 31", "relu", "dense 17", "relu", "dense 3"}, 5, {13, 31, 17, 3}, 3, 1},
    {{"dense 33", "relu", "dense 48", "relu", "dense 5"}, 5, {7, 33, 48, 5}, 3, 10},
    {{"dense 64", "relu", "dense 64", "relu", "dense 11"}, 5, {16, 64, 64, 11}, 3, 20},
    /* A flatten does nothing here, and a second ReLU neither. */
    {{"flatten", "dense 20", "relu", "relu", "flatten", "dense 4"}, 6, {9, 20, 4}, 2, 3},
};

TEST_EACH(the_gradient_agrees_with_central_differences_in_double, ARRAY_LEN(gradient_nets))
{
    size_t batch = gradient_nets[_i].batch;
    size_t n_dense = gradient_nets[_i].n_dense;
    const size_t *widths = gradient_nets[_i].widths;
    const struct fl_net_spec spec = {.input = {widths[0]},
                                     .n_input = 1,
                                     .layers = gradient_nets[_i].layers,
                                     .n_layers = gradient_nets[_i].n_layers};
    struct fl_net *net = create(&spec, batch);
    size_t count = fl_layout_count(fl_net_layout(net));
    float *x = floats(batch * widths[0]);
    int32_t y[32];
    float *exported = floats(count);
    float *internal = floats(fl_net_block(net));
    float *grad = floats(count);
    double *p = calloc(count, sizeof(*p));
    double worst = 0.0;
    double largest = 0.0;
    double loss;
    size_t bad = 0;
    size_t i;

    ck_assert_ptr_nonnull(p);
    init(net, 11);
    random_batch(net, 12, batch, x, y);
    fl_net_get(net, exported);
    loss = fl_net_gradient(net, x, y, batch, internal);
    fl_net_export(net, grad, internal);
    for (i = 0; i < count; i++) {
        p[i] = (double)exported[i];
    }
    ck_assert_double_eq_tol(loss, reference_loss(p, widths, n_dense, x, y, batch), 1e-5);
    for (i = 0; i < count; i++) {
        const double h = 1e-6;
        double up, down, numeric, error;

        p[i] = (double)exported[i] + h;
        up = reference_loss(p, widths, n_dense, x, y, batch);
        p[i] = (double)exported[i] - h;
        down = reference_loss(p, widths, n_dense, x, y, batch);
        p[i] = (double)exported[i];
        numeric = (up - down) / (2.0 * h);
        error = fabs(numeric - (double)grad[i]);
        worst = error > worst ? error : worst;
        largest = fabs(numeric) > largest ? fabs(numeric) : largest;
        bad += error > 1e-5 * (1.0 + fabs(numeric));
    }
    ck_assert_msg(bad == 0, "%zu of %zu gradients are off, by at most %g; the largest is %g", bad,
                  count, worst, largest);
    /* The parameters were left alone. */
    fl_net_get(net, grad);
    ck_assert_mem_eq(grad, exported, count * sizeof(float));
    free(p);
    free(x);
    free(exported);
    free(internal);
    free(grad);
    fl_net_free(net);
}

struct visits {
    unsigned char *seen;
    float *params;
    float rate;
    size_t calls;
};

static void visit(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    struct visits *v = ctx;
    size_t i;

    ck_assert_ptr_eq(params, v->params + offset);
    v->calls++;
    for (i = 0; i < n; i++) {
        ck_assert_uint_eq(v->seen[offset + i], 0);
        v->seen[offset + i] = 1;
        params[i] -= v->rate * grad[i];
    }
}

TEST_EACH(a_step_visits_each_trainable_entry_once_and_is_plain_sgd, 5)
{
    static const size_t batches[] = {1, 4, 10, 20, 64};
    size_t batch = batches[_i];
    struct fl_net *net = preset("mlp200", batch);
    size_t block = fl_net_block(net);
    size_t count = fl_layout_count(fl_net_layout(net));
    float *x = floats(batch * 784);
    int32_t y[64];
    float *grad = floats(block);
    float *want = floats(block);
    float *ones = floats(count);
    float *trainable = floats(block);
    struct visits v = {.seen = calloc(block, 1), .rate = 0.05f};
    double loss;
    size_t i;

    ck_assert_ptr_nonnull(v.seen);
    init(net, 3);
    random_batch(net, 4, batch, x, y);
    for (i = 0; i < count; i++) {
        ones[i] = 1.0f;
    }
    fl_net_import(net, trainable, ones);
    loss = fl_net_gradient(net, x, y, batch, grad);
    v.params = fl_net_params(net);
    for (i = 0; i < block; i++) {
        volatile float step = 0.05f * grad[i];

        want[i] = v.params[i] - step;
    }
    ck_assert(fl_net_step(net, x, y, batch, visit, &v) == loss);
    for (i = 0; i < block; i++) {
        ck_assert_uint_eq(v.seen[i], trainable[i] > 0.0f);
        ck_assert_double_eq_tol((double)v.params[i], (double)want[i], 1e-7);
    }
    free(x);
    free(grad);
    free(want);
    free(ones);
    free(trainable);
    free(v.seen);
    fl_net_free(net);
}

TEST(the_same_seed_gives_the_same_weights_bit_for_bit)
{
    struct fl_net *a = preset("dnn60", 10);
    struct fl_net *b = preset("dnn60", 10);
    size_t count = fl_layout_count(fl_net_layout(a));
    float *pa = floats(count);
    float *pb = floats(count);
    float *x = floats(10 * 60);
    int32_t y[10];
    struct visits va = {.rate = 0.1f, .params = fl_net_params(a)};
    struct visits vb = {.rate = 0.1f, .params = fl_net_params(b)};
    double bound1 = 1.0 / sqrt(60.0);
    size_t i;

    va.seen = calloc(fl_net_block(a), 1);
    vb.seen = calloc(fl_net_block(b), 1);
    ck_assert(va.seen != NULL && vb.seen != NULL);
    init(a, 5);
    init(b, 5);
    random_batch(a, 6, 10, x, y);
    fl_net_get(a, pa);
    for (i = 0; i < 60 * 20 + 20; i++) {
        ck_assert_double_le(fabs((double)pa[i]), bound1);
    }
    for (i = 0; i < 20; i++) {
        (void)fl_net_step(a, x, y, 10, visit, &va);
        (void)fl_net_step(b, x, y, 10, visit, &vb);
        (void)memset(va.seen, 0, fl_net_block(a));
        (void)memset(vb.seen, 0, fl_net_block(b));
    }
    fl_net_get(a, pa);
    fl_net_get(b, pb);
    ck_assert_mem_eq(pa, pb, count * sizeof(float));
    init(b, 6);
    fl_net_get(b, pb);
    ck_assert_mem_ne(pa, pb, count * sizeof(float));
    free(va.seen);
    free(vb.seen);
    free(pa);
    free(pb);
    free(x);
    fl_net_free(a);
    fl_net_free(b);
}

TEST(evaluation_counts_and_sums_what_the_logits_say)
{
    /* Identity weights: the logits are the inputs. */
    static const char *const layers[] = {"dense 3"};
    const struct fl_net_spec spec = {.input = {3}, .n_input = 1, .layers = layers, .n_layers = 1};
    struct fl_net *net = create(&spec, 4);
    const float identity[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    const float x[12] = {2, 0, 0, 0, 1, 1, 500, -500, 0, NAN, 0, 0};
    const int32_t y[4] = {0, 2, 1, 0};
    double loss = 0.0;
    size_t correct = 9;

    fl_net_set(net, identity);
    fl_net_evaluate(net, x, y, 3, &loss, &correct);
    /* Sample 2: a tie goes to the lower class. Sample 3: a loss of 1000 does not overflow. */
    ck_assert_uint_eq(correct, 1);
    ck_assert_double_eq_tol(
        loss, log(exp(2.0) + 2.0) - 2.0 + log(1.0 + 2.0 * exp(1.0)) - 1.0 + 1000.0, 1e-5);
    fl_net_evaluate(net, x + 9, y + 3, 1, &loss, &correct);
    ck_assert(isnan(loss));
    ck_assert_uint_eq(correct, 0);
    fl_net_evaluate(net, x, y, 0, &loss, &correct);
    ck_assert(loss == 0.0 && correct == 0);
    fl_net_free(net);
}

TEST(a_diverged_network_reports_nan_and_does_not_hide_it_behind_relu)
{
    struct fl_net *net = preset("dnn60", 2);
    float *x = floats(2 * 60);
    int32_t y[2];
    double loss;
    size_t correct;

    init(net, 1);
    random_batch(net, 2, 2, x, y);
    fl_net_params(net)[3] = NAN;
    fl_net_evaluate(net, x, y, 2, &loss, &correct);
    ck_assert(isnan(loss));
    ck_assert_uint_eq(correct, 0);
    free(x);
    fl_net_free(net);
}

TEST(training_on_separable_data_reaches_a_low_loss)
{
    static const char *const layers[] = {"flatten", "dense 16", "relu", "dense 3"};
    const struct fl_net_spec spec = {
        .input = {1, 4, 2}, .n_input = 3, .layers = layers, .n_layers = 4};
    struct fl_net *net = create(&spec, 12);
    struct visits v = {.rate = 0.2f, .params = fl_net_params(net)};
    struct fl_rng rng;
    float x[12 * 8];
    int32_t y[12];
    double first = 0.0;
    double loss = 0.0;
    size_t correct = 0;
    size_t step, i, j;

    v.seen = calloc(fl_net_block(net), 1);
    ck_assert_ptr_nonnull(v.seen);
    init(net, 1);
    fl_rng_key(&rng, 9, FL_RNG_TEST, 0, 0);
    for (step = 0; step < 200; step++) {
        for (i = 0; i < 12; i++) {
            y[i] = (int32_t)(i % 3);
            for (j = 0; j < 8; j++) {
                x[i * 8 + j] = (float)fl_rng_normal(&rng) + (j % 3 == i % 3 ? 3.0f : 0.0f);
            }
        }
        loss = fl_net_step(net, x, y, 12, visit, &v);
        first = step == 0 ? loss : first;
        (void)memset(v.seen, 0, fl_net_block(net));
    }
    ck_assert_double_gt(first, 0.5);
    fl_net_evaluate(net, x, y, 12, &loss, &correct);
    ck_assert_double_lt(loss / 12.0, 0.1);
    ck_assert_uint_eq(correct, 12);
    free(v.seen);
    fl_net_free(net);
}

/*
 * Blocks inside of each other to the limit, each in the shortcut of the last: an evaluation needs
 * all of its buffers. Without dropout and batch-norm it computes what a step does.
 */
TEST(blocks_lie_inside_of_each_other_to_the_limit_and_no_deeper)
{
    enum { DEPTH = 6 };
    const char *layers[1 + 4 * (DEPTH + 1) + DEPTH + 2] = {"dense 8"};
    struct fl_net_spec spec = {.input = {5}, .n_input = 1, .layers = layers, .n_layers = 1};
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    struct fl_rng rng;
    float x[4 * 5];
    int32_t y[4];
    float *grad;
    double want, loss;
    size_t correct, depth;

    for (depth = 0; depth < DEPTH; depth++) {
        layers[spec.n_layers++] = "block";
        layers[spec.n_layers++] = "dense 8";
        layers[spec.n_layers++] = "shortcut";
    }
    for (depth = 0; depth < DEPTH; depth++) {
        layers[spec.n_layers++] = "tanh";
        layers[spec.n_layers++] = "add";
    }
    layers[spec.n_layers++] = "dense 3";
    ck_assert_msg(fl_net_create(&spec, 4, &net, &err) == FL_OK, "%s", err.msg);
    fl_rng_seed(&rng, 1);
    fl_net_init(net, &rng);
    random_batch(net, 2, 4, x, y);
    grad = calloc(fl_net_block(net), sizeof(*grad));
    ck_assert_ptr_nonnull(grad);
    want = fl_net_gradient(net, x, y, 4, grad);
    fl_net_evaluate(net, x, y, 4, &loss, &correct);
    ck_assert_double_eq_tol(loss / 4.0, want, 1e-6);
    free(grad);
    fl_net_free(net);
    for (depth = 0; depth <= DEPTH; depth++) {
        layers[depth] = "block";
    }
    layers[DEPTH + 1] = "dense 3";
    spec.n_layers = DEPTH + 2;
    net = NULL;
    ck_assert_int_eq(fl_net_create(&spec, 4, &net, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "layer 7 'block': more than 6 blocks inside of each other");
}
