/*
 * Networks exported as ONNX, run by an interpreter in numpy (onnx_values.py), against the engine's
 * own evaluation.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/nn/net.h"
#include "libfl/onnx/onnx_model.h"
#include "tests/lib/suites.h"

#define BATCH      4
#define MAX_LAYERS 24
#define NO_NUMPY   77

static const struct {
    size_t dims[3], n_dims;
    const char *layers[MAX_LAYERS];
} nets[] = {
    {{9}, 1, {"dense 12", "relu", "dropout 0.5", "dense 5"}},
    {{3, 8, 8},
     3,
     {"conv 16 3x3 pad 1", "bn", "relu", "maxpool 2", "flatten", "dense 20", "relu", "dense 4"}},
    {{3, 9, 8},
     3,
     {"conv 16 3x3 pad 1 nobias",
      "gn 2",
      "relu",
      "block",
      "conv 16 3x3 pad 1 nobias",
      "gn 4",
      "relu",
      "conv 16 3x3 pad 1 nobias",
      "gn 16",
      "add",
      "relu",
      "block",
      "conv 32 3x3 pad 1 stride 2",
      "gn 1",
      "shortcut",
      "conv 32 1x1 stride 2 nobias",
      "gn 8",
      "add",
      "relu",
      "globalpool",
      "dense 4"}},
    {{4, 7, 6},
     3,
     {"conv 8 3x3 pad 1 groups 2", "gelu", "conv 8 3x3 pad 1 groups 8", "ln", "tanh",
      "avgpool 2 stride 1", "sigmoid", "conv 24 3x2 groups 8 nobias", "relu", "avgpool 2",
      "flatten", "dense 9", "ln", "relu", "dense 5"}},
    {{3, 11, 10},
     3,
     {"conv 12 5x5 pad 2", "relu", "maxpool 3 stride 2 same", "lrn", "conv 6 3x3",
      "maxpool 2 stride 1", "flatten", "dense 7"}},
    {{30},
     1,
     {"dense 24", "gn 3", "gelu", "block", "dense 24", "bn", "relu", "add", "sigmoid", "dense 3"}},
    {{9}, 1, {"embedding 3 6", "lstm 5", "lstm 7", "last", "dense 4"}},
    {{5, 3, 4}, 3, {"block", "lstm 5", "ln", "flatten", "shortcut", "flatten", "add", "dense 3"}},
    {{4, 5, 1}, 3, {"attention 2", "last", "dense 3"}},
    {{9},
     1,
     {"embedding 3 8", "block", "ln", "attention 2 causal", "add", "block", "ln", "conv 32 1x1",
      "gelu", "conv 8 1x1", "add", "ln", "attention 4", "lstm 8", "globalpool", "dense 5"}},
    {{6}, 1, {"dense 8", "tanh", "dense 1", "mse"}},
    {{2, 5, 5}, 3, {"flatten", "dense 6", "relu", "dense 1", "mae"}},
};

static size_t layers_of(const char *const *layers)
{
    size_t n = 0;

    while (n < MAX_LAYERS && layers[n] != NULL) {
        n++;
    }
    return n;
}

static void *memory(size_t n)
{
    void *p = calloc(1, n);

    ck_assert_ptr_nonnull(p);
    return p;
}

/*
 * What the engine computes for a sample, from its losses: log softmax of each class, which is the
 * negative cross-entropy of that class; of one value z, with targets 0 and 1.
 */
static void engine_outputs(struct fl_net *net, const float *x, double *out)
{
    static const float targets[2] = {0, 1};
    size_t outputs = fl_net_classes(net);
    double loss[2];
    size_t correct;
    size_t j;

    fl_net_set_targets(net, targets);
    if (fl_net_values(net) > 0) {
        ck_assert_uint_eq(outputs, 1);
        fl_net_evaluate(net, x, (const int32_t[]){0}, 1, &loss[0], &correct);
        fl_net_evaluate(net, x, (const int32_t[]){1}, 1, &loss[1], &correct);
        /* z^2 - (z - 1)^2 = 2 z - 1; |z| and |z - 1| give the sign of z where z < 0.5. */
        out[0] = loss[0];
        out[1] = loss[1];
        return;
    }
    for (j = 0; j < outputs; j++) {
        fl_net_evaluate(net, x, (const int32_t[]){(int32_t)j}, 1, &loss[0], &correct);
        out[j] = -loss[0];
    }
}

static struct fl_net_spec spec_of(int i)
{
    struct fl_net_spec spec = {
        .n_input = nets[i].n_dims, .layers = nets[i].layers, .n_layers = layers_of(nets[i].layers)};

    (void)memcpy(spec.input, nets[i].dims, sizeof(spec.input));
    return spec;
}

/* Numbers of the model, moved from 0 and 1, which would hide faults. */
static float *some_params(struct fl_net *net)
{
    size_t n = fl_layout_count(fl_net_layout(net));
    float *params = memory(n * sizeof(*params));
    struct fl_rng rng;
    size_t i;

    fl_rng_key(&rng, 23, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    fl_net_get(net, params);
    for (i = 0; i < n; i++) {
        params[i] += (float)(0.2 * fl_rng_unit(&rng));
    }
    fl_net_set(net, params);
    return params;
}

static int run_script(const char *model, const char *values, const char *kind)
{
    char script[512];
    const char *root = getenv("FL_SRCDIR");
    const char *python = getenv("FL_PYTHON");
    int status = 0;
    pid_t pid;

    ck_assert_ptr_nonnull(root);
    (void)snprintf(script, sizeof(script), "%s/tests/libfl/onnx/onnx_values.py", root);
    python = python != NULL ? python : "/usr/bin/python3";
    pid = fork();
    if (pid == 0) {
        (void)execl(python, python, "-B", script, model, values, kind, (char *)NULL);
        _exit(NO_NUMPY);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_file(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

TEST_EACH(an_interpreter_of_onnx_computes_what_the_engine_does, ARRAY_LEN(nets))
{
    const struct fl_net_spec spec = spec_of(_i);
    char model[] = "/tmp/fl_onnx_model.XXXXXX";
    char values[] = "/tmp/fl_onnx_values.XXXXXX";
    struct fl_net_outline *outline = NULL;
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    struct fl_buf out;
    struct fl_rng rng;
    size_t inputs, outputs, i;
    double *numbers;
    float *params;
    int status;

    ck_assert_msg(fl_net_create_evaluator(&spec, &net, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_net_outline_create(&spec, &outline, &err) == FL_OK, "%s", err.msg);
    ck_assert(fl_layout_equal(outline->layout, fl_net_layout(net)));
    params = some_params(net);
    fl_buf_init(&out, 1 << 24);
    ck_assert_msg(fl_onnx_model(outline, params, "test", &out, &err) == FL_OK, "%s", err.msg);
    inputs = fl_net_inputs(net);
    outputs = fl_net_values(net) > 0 ? 2 : fl_net_classes(net);
    numbers = memory(BATCH * (inputs + outputs) * sizeof(*numbers));
    fl_rng_seed(&rng, 5);
    for (i = 0; i < BATCH; i++) {
        float *x = memory(inputs * sizeof(*x));
        size_t j;

        for (j = 0; j < inputs; j++) {
            x[j] = (float)fl_rng_normal(&rng);
            numbers[i * inputs + j] = (double)x[j];
        }
        engine_outputs(net, x, numbers + BATCH * inputs + i * outputs);
        free(x);
    }
    ck_assert(close(mkstemp(model)) == 0 && close(mkstemp(values)) == 0);
    write_file(model, out.data, out.len);
    write_file(values, numbers, BATCH * (inputs + outputs) * sizeof(*numbers));
    status = run_script(model, values,
                        fl_net_values(net) == 0                              ? "classes"
                        : strcmp(spec.layers[spec.n_layers - 1], "mse") == 0 ? "mse"
                                                                             : "mae");
    (void)unlink(model);
    (void)unlink(values);
    free(numbers);
    free(params);
    fl_buf_done(&out);
    fl_net_outline_free(outline);
    fl_net_free(net);
    if (status == NO_NUMPY) {
        (void)printf("skipped: no numpy (FL_PYTHON)\n");
        return;
    }
    ck_assert_int_eq(status, 0);
}

TEST(an_outline_refuses_what_a_network_refuses)
{
    static const char *const layers[] = {"dense 3", "frobnicate"};
    const struct fl_net_spec spec = {.input = {4}, .n_input = 1, .layers = layers, .n_layers = 2};
    struct fl_net_outline *outline = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_net_outline_create(&spec, &outline, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "layer 2 'frobnicate': unknown layer"));
    ck_assert_ptr_null(outline);
}

TEST(every_preset_is_exported)
{
    const char *const *name;

    for (name = fl_net_presets(); *name != NULL; name++) {
        struct fl_net_outline *outline = NULL;
        struct fl_err err = {0};
        struct fl_net_spec spec;
        struct fl_buf out;
        float *params;
        size_t n;
        int rv;

        ck_assert_int_eq(fl_net_preset(*name, &spec, &err), FL_OK);
        ck_assert_msg(fl_net_outline_create(&spec, &outline, &err) == FL_OK, "%s", err.msg);
        n = fl_layout_count(outline->layout);
        params = memory(n * sizeof(*params));
        fl_buf_init(&out, n * sizeof(*params) + (1 << 20));
        rv = fl_onnx_model(outline, params, *name, &out, &err);
        ck_assert_msg(rv == FL_OK, "%s: %s", *name, err.msg);
        ck_assert_uint_ge(out.len, n * sizeof(*params));
        fl_buf_done(&out);
        free(params);
        fl_net_outline_free(outline);
    }
}
