/* Losses and gradients against PyTorch's, in double, where Python has it (FL_PYTHON). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/nn/net.h"
#include "tests/lib/suites.h"

#define BATCH      5
#define MAX_LAYERS 24
#define NO_TORCH   77

static const struct {
    const char *input; /* as the script reads it */
    size_t dims[3], n_dims;
    const char *layers[MAX_LAYERS];
} nets[] = {
    {"3,8,8",
     {3, 8, 8},
     3,
     {"conv 16 3x3 pad 1", "bn", "relu", "maxpool 2", "flatten", "dense 20", "relu", "dense 4"}},
    {"3,9,8",
     {3, 9, 8},
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
    {"4,7,6",
     {4, 7, 6},
     3,
     {"conv 8 3x3 pad 1 groups 2", "gelu", "conv 8 3x3 pad 1 groups 8", "ln", "tanh",
      "avgpool 2 stride 1", "sigmoid", "conv 24 3x2 groups 8 nobias", "relu", "avgpool 2",
      "flatten", "dense 9", "ln", "relu", "dense 5"}},
    {"1,28,28",
     {1, 28, 28},
     3,
     {"conv 6 5x5 pad 2", "tanh", "avgpool 2", "conv 16 5x5", "tanh", "avgpool 2", "flatten",
      "dense 120", "tanh", "dense 84", "tanh", "dense 10"}},
    {"12", {12}, 1, {"embedding 4 6", "lstm 9", "lstm 7", "last", "dense 5"}},
    {"5,3,4",
     {5, 3, 4},
     3,
     {"block", "lstm 5", "ln", "flatten", "shortcut", "flatten", "add", "dense 3"}},
    {"9",
     {9},
     1,
     {"embedding 5 8", "block", "ln", "attention 2 causal", "add", "block", "ln", "conv 32 1x1",
      "gelu", "conv 8 1x1", "add", "ln", "attention 4", "globalpool", "dense 5"}},
    {"30",
     {30},
     1,
     {"dense 24", "gn 3", "gelu", "block", "dense 24", "bn", "relu", "add", "sigmoid", "dense 3"}},
    {"7", {7}, 1, {"dense 12", "tanh", "dense 1", "mse"}},
    {"7", {7}, 1, {"dense 12", "tanh", "dense 3", "mse"}},
    {"7", {7}, 1, {"dense 12", "relu", "dense 4", "mae"}},
    {"2,5,5", {2, 5, 5}, 3, {"conv 4 3x3", "relu", "flatten", "dense 6", "bce"}},
};

/* Runs the comparison; its exit status. */
static int compare(size_t i, const char *path, size_t n_layers)
{
    char script[512], bench[512], batch[24];
    const char *args[MAX_LAYERS + 8];
    const char *root = getenv("FL_SRCDIR");
    const char *python = getenv("FL_PYTHON");
    int status = 0;
    size_t n = 0;
    pid_t pid;

    ck_assert_ptr_nonnull(root);
    (void)snprintf(script, sizeof(script), "%s/tests/libfl/nn/torch_values.py", root);
    (void)snprintf(bench, sizeof(bench), "%s/bench", root);
    (void)snprintf(batch, sizeof(batch), "%d", BATCH);
    args[n++] = python != NULL ? python : "/usr/bin/python3";
    args[n++] = "-B";
    args[n++] = script;
    args[n++] = bench;
    args[n++] = path;
    args[n++] = nets[i].input;
    args[n++] = batch;
    (void)memcpy(args + n, nets[i].layers, n_layers * sizeof(*args));
    args[n + n_layers] = NULL;
    pid = fork();
    if (pid == 0) {
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(NO_TORCH);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put(FILE *file, const float *numbers, size_t n)
{
    ck_assert_uint_eq(fwrite(numbers, sizeof(*numbers), n, file), n);
}

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    return p;
}

/* Parameters, batch, labels, loss and gradient of a network with drawn weights. */
static void write_values(FILE *file, struct fl_net *net)
{
    size_t count = fl_layout_count(fl_net_layout(net));
    size_t inputs = BATCH * fl_net_inputs(net);
    float *internal = floats(fl_net_block(net));
    float *exported = floats(count);
    float *x = floats(inputs);
    size_t values = fl_net_values(net);
    size_t n_labels = values > 0 ? BATCH * values : BATCH;
    float *labels = floats(n_labels);
    int32_t y[BATCH];
    struct fl_rng rng;
    float loss;
    size_t i;

    fl_rng_key(&rng, 17, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    fl_net_get(net, exported);
    for (i = 0; i < count; i++) {
        /* What begins at 0 and 1 would hide faults. */
        exported[i] += (float)(0.1 * fl_rng_unit(&rng));
    }
    fl_net_set(net, exported);
    for (i = 0; i < inputs; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < BATCH; i++) {
        y[i] = (int32_t)(values > 0 ? i : fl_rng_below(&rng, fl_net_classes(net)));
        labels[i] = (float)y[i];
    }
    for (i = 0; values > 0 && i < n_labels; i++) { /* shares too: BCE takes any of 0 to 1 */
        labels[i] = i % 3 == 0 ? 1.0f : (float)fl_rng_unit(&rng);
    }
    fl_net_set_targets(net, labels);
    put(file, exported, count);
    put(file, x, inputs);
    put(file, labels, n_labels);
    loss = (float)fl_net_gradient(net, x, y, BATCH, internal);
    put(file, &loss, 1);
    fl_net_export(net, exported, internal);
    put(file, exported, count);
    free(internal);
    free(exported);
    free(x);
    free(labels);
}

TEST_EACH(losses_and_gradients_are_those_of_pytorch, ARRAY_LEN(nets))
{
    struct fl_net_spec spec = {.n_input = nets[_i].n_dims, .layers = nets[_i].layers};
    char path[] = "/tmp/fl_nn_torch.XXXXXX";
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "wb");
    int status;

    ck_assert_ptr_nonnull(file);
    (void)memcpy(spec.input, nets[_i].dims, sizeof(spec.input));
    while (spec.n_layers < MAX_LAYERS && nets[_i].layers[spec.n_layers] != NULL) {
        spec.n_layers++;
    }
    ck_assert_msg(fl_net_create(&spec, BATCH, &net, &err) == FL_OK, "%s", err.msg);
    write_values(file, net);
    ck_assert_int_eq(fclose(file), 0);
    status = compare((size_t)_i, path, spec.n_layers);
    (void)unlink(path);
    fl_net_free(net);
    if (status == NO_TORCH) {
        (void)printf("skipped: no PyTorch (python3-torch; FL_PYTHON)\n");
        return;
    }
    ck_assert_int_eq(status, 0);
}
