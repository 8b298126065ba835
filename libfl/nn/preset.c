/* Named networks (docs/models.md#presets). */
#include <stdio.h>
#include <string.h>

#include "libfl/nn/net.h"

/* The networks of the papers (docs/models.md#presets). */

static const char *const linear_10[] = {"dense 10"};
static const char *const mlp_200[] = {"dense 200", "relu", "dense 200", "relu", "dense 10"};
static const char *const hidden_100[] = {"dense 100", "relu", "dense 10"};
static const char *const hidden_20[] = {"dense 20", "relu", "dense 10"};
/* AdaFL's CIFAR network: VGG-9 of FedMA, without batch-norm. */
static const char *const vgg9[] = {
    "conv 32 3x3 pad 1",
    "relu",
    "conv 64 3x3 pad 1",
    "relu",
    "maxpool 2",
    "conv 128 3x3 pad 1",
    "relu",
    "conv 128 3x3 pad 1",
    "relu",
    "maxpool 2",
    "dropout 0.1",
    "conv 256 3x3 pad 1",
    "relu",
    "conv 256 3x3 pad 1",
    "relu",
    "maxpool 2",
    "dropout 0.1",
    "flatten",
    "dense 512",
    "relu",
    "dense 512",
    "relu",
    "dropout 0.1",
    "dense 10",
};
/* FedLDF's network. */
static const char *const vgg9_with_bn[] = {
    "conv 64 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "conv 128 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "conv 256 3x3 pad 1",
    "bn",
    "relu",
    "conv 256 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "conv 512 3x3 pad 1",
    "bn",
    "relu",
    "conv 512 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "conv 512 3x3 pad 1",
    "bn",
    "relu",
    "conv 512 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "flatten",
    "dense 10",
};
/* IGFL's: the port to 32x32 without padding, and McMahan's own on crops of 24x24. */
static const char *const cnn24[] = {
    "conv 64 5x5 pad 2",
    "relu",
    "maxpool 3 stride 2 same",
    "lrn",
    "conv 64 5x5 pad 2",
    "relu",
    "lrn",
    "maxpool 3 stride 2 same",
    "flatten",
    "dense 384",
    "relu",
    "dense 192",
    "relu",
    "dense 10",
};
#define EMNIST_BODY                                                                       \
    "conv 32 3x3", "relu", "conv 64 3x3", "relu", "maxpool 2", "dropout 0.25", "flatten", \
        "dense 128", "relu", "dropout 0.5"
static const char *const emnist_62[] = {EMNIST_BODY, "dense 62"};
static const char *const emnist_10[] = {EMNIST_BODY, "dense 10"};
static const char *const cnn32[] = {
    "conv 64 5x5", "relu",      "maxpool 2", "conv 64 5x5", "relu", "maxpool 2",
    "flatten",     "dense 384", "relu",      "dense 192",   "relu", "dense 10",
};

/* LeCun et al. 1998, with a softmax on top and plain average pooling. */
static const char *const lenet[] = {
    "conv 6 5x5 pad 2", "tanh",      "avgpool 2", "conv 16 5x5", "tanh", "avgpool 2",
    "flatten",          "dense 120", "tanh",      "dense 84",    "tanh", "dense 10",
};
/*
 * ResNet-18 for small images (He et al. 2016), with group norm of two groups as in FedOpt (Reddi et
 * al. 2021). RESNET_FIRST changes the number of channels and halves the sides.
 */
#define RESNET_BRANCH(first, second) first, "gn 2", "relu", second, "gn 2"
#define RESNET_BLOCK(conv)           "block", RESNET_BRANCH(conv, conv), "add", "relu"
#define RESNET_FIRST(n)                                                                            \
    "block", RESNET_BRANCH("conv " n " 3x3 pad 1 stride 2 nobias", "conv " n " 3x3 pad 1 nobias"), \
        "shortcut", "conv " n " 1x1 stride 2 nobias", "gn 2", "add", "relu",                       \
        RESNET_BLOCK("conv " n " 3x3 pad 1 nobias")
static const char *const resnet18[] = {
    "conv 64 3x3 pad 1 nobias",
    "gn 2",
    "relu",
    RESNET_BLOCK("conv 64 3x3 pad 1 nobias"),
    RESNET_BLOCK("conv 64 3x3 pad 1 nobias"),
    RESNET_FIRST("128"),
    RESNET_FIRST("256"),
    RESNET_FIRST("512"),
    "globalpool",
    "dense 10",
};

/* FedProx's network for the next character of Shakespeare: 80 characters in, 80 classes. */
static const char *const shakespeare[] = {"embedding 80 8", "lstm 256", "lstm 256", "last",
                                          "dense 80"};

#define LAYERS(list)   .layers = (list), .n_layers = sizeof(list) / sizeof((list)[0])
#define FLAT(n)        .input = {(n)}, .n_input = 1
#define IMAGE(c, side) .input = {(c), (side), (side)}, .n_input = 3

static const struct {
    const char *name;
    struct fl_net_spec spec;
} presets[] = {
    {"mlr", {FLAT(784), LAYERS(linear_10)}},
    {"mlr60", {FLAT(60), LAYERS(linear_10)}},
    {"mlr3072", {FLAT(3072), LAYERS(linear_10)}},
    {"mlp200", {FLAT(784), LAYERS(mlp_200)}},
    {"dnn", {FLAT(784), LAYERS(hidden_100)}},
    {"dnn60", {FLAT(60), LAYERS(hidden_20)}},
    {"dnn3072", {FLAT(3072), LAYERS(hidden_100)}},
    {"fedmix_cnn", {IMAGE(3, 32), LAYERS(vgg9)}},
    {"vgg9_bn", {IMAGE(3, 32), LAYERS(vgg9_with_bn)}},
    {"cifar_cnn32", {IMAGE(3, 32), LAYERS(cnn32)}},
    {"cifar_cnn24", {IMAGE(3, 24), LAYERS(cnn24)}},
    {"emnist_cnn", {IMAGE(1, 28), LAYERS(emnist_62)}},
    {"emnist_cnn10", {IMAGE(1, 28), LAYERS(emnist_10)}},
    {"lenet5", {IMAGE(1, 28), LAYERS(lenet)}},
    {"resnet18_gn", {IMAGE(3, 32), LAYERS(resnet18)}},
    {"shakespeare_lstm", {FLAT(80), LAYERS(shakespeare)}},
};
#define N_PRESETS (sizeof(presets) / sizeof(presets[0]))

static const char *const names[] = {
    "mlr",          "mlr60",      "mlr3072",     "mlp200",           "dnn",         "dnn60",
    "dnn3072",      "fedmix_cnn", "vgg9_bn",     "cifar_cnn32",      "cifar_cnn24", "emnist_cnn",
    "emnist_cnn10", "lenet5",     "resnet18_gn", "shakespeare_lstm", NULL};
_Static_assert(sizeof(names) / sizeof(names[0]) == N_PRESETS + 1, "one name per preset");

const char *const *fl_net_presets(void)
{
    return names;
}

int fl_net_preset(const char *name, struct fl_net_spec *ret, struct fl_err *err)
{
    char known[512] = "";
    const char *nearest;
    size_t used = 0;
    size_t i;

    for (i = 0; i < N_PRESETS; i++) {
        int n;

        if (strcmp(presets[i].name, name) == 0) {
            *ret = presets[i].spec;
            return FL_OK;
        }
        n = snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ",
                     presets[i].name);
        used += n > 0 && (size_t)n < sizeof(known) - used ? (size_t)n : 0;
    }
    nearest = fl_str_nearest(name, names, N_PRESETS);
    return fl_err_set(err, FL_ENOENT, "no network preset '%.64s'%s%s%s; known: %s", name,
                      nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'?" : "", known);
}
