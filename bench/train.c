/*
 * Training speed of the built-in engine: forward, backward and SGD on synthetic inputs, one
 * thread, beside the GEMM peak of the same core in the same run. Measures, asserts nothing.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/rng.h"
#include "libfl/nn/net.h"
#include "libfl/num/gemm.h"

static const char usage[] =
    "usage: bench/train [options]\n"
    "  --model NAME      network to train (default mlp200); --model help lists them\n"
    "  --batch N         samples per step (default 10)\n"
    "  --threads N       only 1 is offered: one training thread per client\n"
    "  --momentum M      heavy-ball momentum (default 0)\n"
    "  --seconds S       measuring time (default 2)\n"
    "  --help            this text\n"
    "Prints one line:\n"
    "  train: model=… batch=… samples_per_s=… gflops=… gemm_peak_gflops=… share_of_peak=… "
    "kernel=…\n"
    "gflops counts 2 operations per weight and sample for forward, weight gradient and (above the\n"
    "first layer) input gradient; the peak is the best of several square products.\n";

struct args {
    const char *model;
    uint64_t batch;
    double momentum;
    double seconds;
};

struct sgd {
    float rate;
    float momentum;
    float *velocity; /* NULL without momentum */
};

/* Heavy ball: v <- m v + g; x <- x - eta v (ALGORITHMS 2.2). */
static void update(void *ctx, size_t offset, size_t n, float *restrict params,
                   const float *restrict grad)
{
    const struct sgd *sgd = ctx;
    float rate = sgd->rate;
    float momentum = sgd->momentum;
    size_t i;

    if (sgd->velocity == NULL) {
        for (i = 0; i < n; i++) {
            params[i] -= rate * grad[i];
        }
    } else {
        float *restrict v = sgd->velocity + offset;

        for (i = 0; i < n; i++) {
            v[i] = momentum * v[i] + grad[i];
            params[i] -= rate * v[i];
        }
    }
}

static void *must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL) {
        (void)fprintf(stderr, "bench/train: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

/* Best rate of square products, in GFLOP/s. */
static double gemm_peak(double seconds)
{
    static const size_t sides[] = {192, 384, 768, 1024};
    size_t largest = 1024 * 1024;
    float *a = must_alloc(largest, sizeof(*a));
    float *b = must_alloc(largest, sizeof(*b));
    float *c = must_alloc(largest, sizeof(*c));
    double best = 0.0;
    size_t i;

    for (i = 0; i < largest; i++) {
        a[i] = (float)(i % 7) - 3.0f;
        b[i] = (float)(i % 5) - 2.0f;
    }
    for (i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        size_t n = sides[i];
        uint64_t end = fl_clock_ns() + (uint64_t)(seconds / 4.0 * 1e9);
        uint64_t before;

        do {
            double rate;

            before = fl_clock_ns();
            fl_gemm(false, false, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
            rate = 2.0 * (double)n * (double)n * (double)n / (double)(fl_clock_ns() - before + 1);
            best = rate > best ? rate : best;
        } while (before < end);
    }
    free(a);
    free(b);
    free(c);
    return best;
}

/* Operations of a step for one sample; a network of dense layers has its weights in 2 dimensions.
 */
static double flops_per_sample(const struct fl_layout *layout)
{
    double flops = 0.0;
    size_t i;

    for (i = 0; i < fl_layout_tensors(layout); i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, i);

        if (t->n_dims == 2) {
            flops += 2.0 * (double)t->count * (t->unit == 0 ? 2.0 : 3.0);
        }
    }
    return flops;
}

static int run(const struct args *args)
{
    struct fl_net_spec spec;
    struct fl_err err = {0};
    struct fl_net *net = NULL;
    struct fl_rng rng;
    struct sgd sgd = {.rate = 0.001f, .momentum = (float)args->momentum};
    size_t batch = (size_t)args->batch;
    size_t n_samples, inputs, i;
    size_t at = 0;
    uint64_t steps = 0;
    uint64_t start, now, end;
    double peak, rate, gflops;
    double loss = 0.0;
    float *x;
    int32_t *y;

    if (fl_net_preset(args->model, &spec, &err) != FL_OK ||
        fl_net_create(&spec, batch, &net, &err) != FL_OK)
    {
        (void)fprintf(stderr, "bench/train: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    inputs = fl_net_inputs(net);
    n_samples = batch * (1 + 1000 / batch);
    x = must_alloc(n_samples * inputs, sizeof(*x));
    y = must_alloc(n_samples, sizeof(*y));
    sgd.velocity =
        args->momentum > 0.0 ? must_alloc(fl_net_block(net), sizeof(*sgd.velocity)) : NULL;
    fl_rng_key(&rng, 1, FL_RNG_TEST, 0, 0);
    fl_net_init(net, &rng);
    for (i = 0; i < n_samples * inputs; i++) {
        x[i] = (float)fl_rng_unit(&rng);
    }
    for (i = 0; i < n_samples; i++) {
        y[i] = (int32_t)fl_rng_below(&rng, fl_net_classes(net));
    }
    peak = gemm_peak(args->seconds / 2.0);
    start = fl_clock_ns();
    end = start + (uint64_t)(args->seconds * 1e9);
    do {
        for (i = 0; i < 20; i++) {
            loss = fl_net_step(net, x + at * inputs, y + at, batch, update, &sgd);
            at = at + 2 * batch <= n_samples ? at + batch : 0;
        }
        steps += 20;
        now = fl_clock_ns();
    } while (now < end);
    rate = (double)(steps * batch) / ((double)(now - start) * 1e-9);
    gflops = rate * flops_per_sample(fl_net_layout(net)) * 1e-9;
    (void)printf("train: model=%s batch=%zu samples_per_s=%.0f gflops=%.1f gemm_peak_gflops=%.1f "
                 "share_of_peak=%.3f kernel=%s momentum=%g loss=%.4f\n",
                 args->model, batch, rate, gflops, peak, gflops / peak, fl_gemm_kernel(),
                 args->momentum, loss);
    free(x);
    free(y);
    free(sgd.velocity);
    fl_net_free(net);
    return EXIT_SUCCESS;
}

static int bad(const char *option, const char *value, const char *expected)
{
    (void)fprintf(stderr, "bench/train: --%s '%s': expected %s\n", option, value, expected);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},
        {"batch", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},
        {"momentum", required_argument, NULL, 'o'},
        {"seconds", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct args args = {.model = "mlp200", .batch = 10, .seconds = 2.0};
    uint64_t threads;
    const char *const *name;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'm':
            args.model = optarg;
            break;
        case 'b':
            if (fl_str_to_u64(optarg, &args.batch) != FL_OK || args.batch == 0) {
                return bad("batch", optarg, "a whole number above 0");
            }
            break;
        case 't':
            if (fl_str_to_u64(optarg, &threads) != FL_OK || threads != 1) {
                return bad("threads", optarg, "1");
            }
            break;
        case 'o':
            if (fl_str_to_double(optarg, &args.momentum) != FL_OK || args.momentum < 0.0 ||
                args.momentum >= 1.0)
            {
                return bad("momentum", optarg, "a number from 0 to below 1");
            }
            break;
        case 's':
            if (fl_str_to_double(optarg, &args.seconds) != FL_OK || args.seconds <= 0.0 ||
                args.seconds > 3600.0)
            {
                return bad("seconds", optarg, "a number above 0, at most 3600");
            }
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return EXIT_SUCCESS;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (optind != argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (strcmp(args.model, "help") == 0) {
        for (name = fl_net_presets(); *name != NULL; name++) {
            (void)puts(*name);
        }
        return EXIT_SUCCESS;
    }
    return run(&args);
}
