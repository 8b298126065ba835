#include <string.h>

#include "libfl/nn/net.h"

/* The networks of ALGORITHMS 10 that dense layers make. */

static const char *const linear_10[] = {"dense 10"};
static const char *const mlp_200[] = {"dense 200", "relu", "dense 200", "relu", "dense 10"};
static const char *const hidden_100[] = {"dense 100", "relu", "dense 10"};
static const char *const hidden_20[] = {"dense 20", "relu", "dense 10"};

#define LAYERS(list) .layers = (list), .n_layers = sizeof(list) / sizeof((list)[0])

static const struct {
    const char *name;
    struct fl_net_spec spec;
} presets[] = {
    {"mlr", {.input = {784}, .n_input = 1, LAYERS(linear_10)}},
    {"mlr60", {.input = {60}, .n_input = 1, LAYERS(linear_10)}},
    {"mlr3072", {.input = {3072}, .n_input = 1, LAYERS(linear_10)}},
    {"mlp200", {.input = {784}, .n_input = 1, LAYERS(mlp_200)}},
    {"dnn", {.input = {784}, .n_input = 1, LAYERS(hidden_100)}},
    {"dnn60", {.input = {60}, .n_input = 1, LAYERS(hidden_20)}},
    {"dnn3072", {.input = {3072}, .n_input = 1, LAYERS(hidden_100)}},
};
#define N_PRESETS (sizeof(presets) / sizeof(presets[0]))

static const char *const names[] = {"mlr", "mlr60", "mlr3072", "mlp200",
                                    "dnn", "dnn60", "dnn3072", NULL};
_Static_assert(sizeof(names) / sizeof(names[0]) == N_PRESETS + 1, "one name per preset");

const char *const *fl_net_presets(void)
{
    return names;
}

int fl_net_preset(const char *name, struct fl_net_spec *ret, struct fl_err *err)
{
    const char *nearest;
    size_t i;

    for (i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *ret = presets[i].spec;
            return FL_OK;
        }
    }
    nearest = fl_str_nearest(name, names, N_PRESETS);
    return fl_err_set(err, FL_ENOENT,
                      "no network is called '%.64s'%s%s%s; known are mlr, mlr60, mlr3072, mlp200, "
                      "dnn, dnn60, dnn3072",
                      name, nearest != NULL ? ", did you mean '" : "",
                      nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}
