#include "bench/train_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libfl/base/clock.h"
#include "libfl/base/rng.h"

/* Two blocks of a transformer without an encoding of positions. */
#define TRANSFORMER_BLOCK                                                              \
    "block", "ln", "attention 4 causal", "add", "block", "ln", "conv 256 1x1", "gelu", \
        "conv 64 1x1", "add"
static const char *const attention_layers[] = {
    "embedding 80 64", TRANSFORMER_BLOCK, TRANSFORMER_BLOCK, "ln", "globalpool", "dense 80"};
/* MobileNet's separable convolutions (Howard et al. 2017), with group norm. */
#define SEPARABLE(depthwise, pointwise) \
    depthwise, "gn 2", "relu", "conv " pointwise " 1x1 nobias", "gn 2", "relu"
static const char *const depthwise_layers[] = {
    "conv 32 3x3 pad 1 nobias",
    "gn 2",
    "relu",
    SEPARABLE("conv 32 3x3 pad 1 groups 32 nobias", "64"),
    SEPARABLE("conv 64 3x3 pad 1 stride 2 groups 64 nobias", "128"),
    SEPARABLE("conv 128 3x3 pad 1 groups 128 nobias", "128"),
    SEPARABLE("conv 128 3x3 pad 1 stride 2 groups 128 nobias", "256"),
    "globalpool",
    "dense 10",
};
/* The depthwise convolution alone carries this one's time. */
static const char *const depthwise_only_layers[] = {
    "conv 64 1x1 nobias",
    "conv 64 3x3 pad 1 groups 64 nobias",
    "conv 64 3x3 pad 1 groups 64 nobias",
    "conv 64 3x3 pad 1 groups 64 nobias",
    "globalpool",
    "dense 10",
};

#define LAYER_NET(list) .layers = (list), .n_layers = sizeof(list) / sizeof((list)[0])
const struct train_layer_net train_layer_nets[] = {
    {"attention", {.input = {80}, .n_input = 1, LAYER_NET(attention_layers)}},
    {"depthwise", {.input = {3, 32, 32}, .n_input = 3, LAYER_NET(depthwise_layers)}},
    {"depthwise_only", {.input = {3, 32, 32}, .n_input = 3, LAYER_NET(depthwise_only_layers)}},
    {.name = NULL},
};

static int find_spec(const char *name, struct fl_net_spec *ret, struct fl_err *err)
{
    const struct train_layer_net *net;

    for (net = train_layer_nets; net->name != NULL; net++) {
        if (strcmp(net->name, name) == 0) {
            *ret = net->spec;
            return FL_OK;
        }
    }
    return fl_net_preset(name, ret, err);
}

void *train_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL) {
        (void)fprintf(stderr, "bench/train: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

static void make_samples(struct train_work *work)
{
    size_t inputs = fl_net_inputs(work->net);
    struct fl_rng rng;
    size_t i;

    work->n_samples = work->batch * (1 + 1000 / work->batch);
    work->x = train_alloc(work->n_samples * inputs, sizeof(*work->x));
    work->y = train_alloc(work->n_samples, sizeof(*work->y));
    fl_rng_key(&rng, 1, FL_RNG_TEST, 0, 0);
    fl_net_init(work->net, &rng);
    for (i = 0; i < work->n_samples * inputs; i++) {
        work->x[i] = (float)fl_rng_unit(&rng);
    }
    for (i = 0; i < work->n_samples; i++) {
        work->y[i] = (int32_t)fl_rng_below(&rng, fl_net_classes(work->net));
    }
}

static int32_t take_sample(void *ctx, size_t i, float *x)
{
    const struct train_work *work = ctx;
    size_t inputs = fl_net_inputs(work->net);

    (void)memcpy(x, work->x + i * inputs, inputs * sizeof(*x));
    return work->y[i];
}

static int set_option(struct fl_options *options, const char *text, struct fl_err *err)
{
    const char *equals = strchr(text, '=');
    char name[64];

    if (equals == NULL || (size_t)(equals - text) >= sizeof(name)) {
        return fl_err_set(err, FL_ECONF, "--option '%s': expected NAME=VALUE", text);
    }
    (void)memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return fl_options_set(options, name, equals + 1, err);
}

/* The solver of the algorithm, for steps without end; what other clients summary is our own data.
 */
static int open_solver(struct train_work *work, const struct train_how *how, struct fl_err *err)
{
    struct fl_solver_bytes inputs[FL_AGG_MAX_STATE] = {{0}};
    struct fl_solver_bytes kept[FL_AGG_MAX_STATE] = {{0}};
    struct fl_solver_setup setup = {.net = work->net,
                                    .learning_rate = 0.001,
                                    .momentum = how->momentum,
                                    .n_steps = SIZE_MAX,
                                    .round = 1,
                                    .n_selected = 10,
                                    .population = 100,
                                    .inputs = inputs,
                                    .kept = kept};
    const struct fl_solver_data data = {.n = work->n_samples,
                                        .dim = fl_net_inputs(work->net),
                                        .classes = fl_net_classes(work->net),
                                        .sample = take_sample,
                                        .ctx = work};
    int rv = fl_strategy_create(how->algorithm, &work->strategy, err);
    const struct fl_solver_ops *ops = rv == FL_OK ? work->strategy->solver : NULL;
    struct fl_options *options = rv == FL_OK ? work->strategy->options[FL_COMPONENT_SOLVER] : NULL;
    size_t i;

    for (i = 0; rv == FL_OK && i < how->n_options; i++) {
        rv = set_option(options, how->options[i], err);
    }
    if (rv == FL_OK && ops->summary != NULL) {
        rv = ops->summary(options, &data, /* seed= */ 1, &work->summaries, err);
        inputs[0] = (struct fl_solver_bytes){work->summaries.data, work->summaries.len};
    }
    return rv == FL_OK ? ops->create(options, &setup, &work->solver, err) : rv;
}

int train_work_open(struct train_work *work, const struct train_how *how, struct fl_err *err)
{
    int rv;

    *work = (struct train_work){.batch = (size_t)how->batch};
    fl_buf_init(&work->summaries, SIZE_MAX);
    rv = find_spec(how->model, &work->spec, err);
    work->spec.kernels = how->kernels;
    rv = rv == FL_OK ? fl_net_create(&work->spec, work->batch, &work->net, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    make_samples(work);
    return open_solver(work, how, err);
}

void train_work_close(struct train_work *work)
{
    if (work->solver != NULL) {
        work->strategy->solver->destroy(work->solver);
    }
    fl_strategy_free(work->strategy);
    fl_buf_done(&work->summaries);
    free(work->x);
    free(work->y);
    fl_net_free(work->net);
}

double train_work_rate(struct train_work *work, double seconds)
{
    const struct fl_solver_ops *ops = work->strategy->solver;
    size_t inputs = fl_net_inputs(work->net);
    uint64_t start = fl_clock_ns();
    uint64_t samples = 0;
    uint64_t now;

    do {
        (void)ops->step(work->solver, work->x + work->at * inputs, work->y + work->at, work->batch);
        work->at = work->at + 2 * work->batch <= work->n_samples ? work->at + work->batch : 0;
        samples += work->batch;
        now = fl_clock_ns();
    } while ((double)(now - start) < seconds * 1e9);
    return (double)samples / ((double)(now - start) * 1e-9);
}

unsigned long long train_work_peak_rss(struct train_work *work)
{
    struct rusage used;
    double loss;
    size_t correct;

    fl_net_evaluate(work->net, work->x, work->y, work->n_samples, &loss, &correct);
    return getrusage(RUSAGE_SELF, &used) == 0 ? (unsigned long long)used.ru_maxrss << 10 : 0;
}
