/*
 * Training speed of the built-in engine: steps of an algorithm's solver on synthetic inputs, one
 * thread, beside the GEMM peak of the same core in the same run. Measures, asserts nothing.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libfl/base/clock.h"
#include "libfl/base/rng.h"
#include "libfl/nn/net.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels.h"
#include "libfl/strategy/strategy.h"

static const char usage[] =
    "usage: bench/train [options]\n"
    "  --model NAME      network to train (default mlp200); --model help lists them\n"
    "  --batch N         samples per step (default 10)\n"
    "  --threads N       only 1 is offered: one training thread per client\n"
    "  --algorithm NAME  preset whose solver makes the steps (default fedavg)\n"
    "  --option K=V      an option of that solver, any number of times\n"
    "  --momentum M      heavy-ball momentum (default 0)\n"
    "  --seconds S       measuring time (default 2)\n"
    "  --help            this text\n"
    "Prints one line:\n"
    "  train: model=… algorithm=… batch=… samples_per_s=… best_samples_per_s=… gflops=… "
    "gemm_peak_gflops=…\n"
    "         share_of_peak=… kernel=… parameter_bytes=… activation_bytes=… evaluation_bytes=…\n"
    "         peak_rss_bytes=…\n"
    "samples_per_s is the median of 51 slices of the time, best_samples_per_s the best of them\n"
    "(far apart: other programs were running). gflops counts, at the median, 2 operations per\n"
    "weight, place and sample for forward, weight gradient and (above the first layer) input\n"
    "gradient, as a plain step has them, whatever more the solver computes; the peak is the best\n"
    "of several square products in the same run.\n"
    "activation_bytes are those of one batch with their gradients; evaluation_bytes lie in the "
    "same\n"
    "place. The peak of the whole process is taken after steps and an evaluation; about 1000\n"
    "samples and what OpenBLAS reserves are in it.\n";

#define MAX_OPTIONS 8

struct args {
    const char *model;
    const char *algorithm;
    const char *options[MAX_OPTIONS];
    size_t n_options;
    uint64_t batch;
    double momentum;
    double seconds;
};

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

struct work {
    struct fl_net *net;
    float *x;
    int32_t *y;
    size_t n_samples;
    struct fl_strategy *strategy;
    struct fl_solver *solver;
    struct fl_buf offers;
};

static void make_samples(struct work *work, size_t batch)
{
    size_t inputs = fl_net_inputs(work->net);
    struct fl_rng rng;
    size_t i;

    work->n_samples = batch * (1 + 1000 / batch);
    work->x = must_alloc(work->n_samples * inputs, sizeof(*work->x));
    work->y = must_alloc(work->n_samples, sizeof(*work->y));
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
    const struct work *work = ctx;
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

/* The solver of the algorithm, for steps without end; what other clients offer is our own data. */
static int open_solver(struct work *work, const struct args *args, struct fl_err *err)
{
    struct fl_solver_bytes inputs[FL_AGG_MAX_STATE] = {{0}};
    struct fl_solver_bytes kept[FL_AGG_MAX_STATE] = {{0}};
    struct fl_solver_setup setup = {.net = work->net,
                                    .learning_rate = 0.001,
                                    .momentum = args->momentum,
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
    int rv = fl_strategy_create(args->algorithm, &work->strategy, err);
    const struct fl_solver_ops *ops = rv == FL_OK ? work->strategy->solver : NULL;
    struct fl_options *options = rv == FL_OK ? work->strategy->options[FL_SLOT_SOLVER] : NULL;
    size_t i;

    for (i = 0; rv == FL_OK && i < args->n_options; i++) {
        rv = set_option(options, args->options[i], err);
    }
    fl_buf_init(&work->offers, SIZE_MAX);
    if (rv == FL_OK && ops->offer != NULL) {
        rv = ops->offer(options, &data, /* seed= */ 1, &work->offers, err);
        inputs[0] = (struct fl_solver_bytes){work->offers.data, work->offers.len};
    }
    return rv == FL_OK ? ops->create(options, &setup, &work->solver, err) : rv;
}

static void close_work(struct work *work)
{
    if (work->solver != NULL) {
        work->strategy->solver->destroy(work->solver);
    }
    fl_strategy_free(work->strategy);
    fl_buf_done(&work->offers);
    free(work->x);
    free(work->y);
    fl_net_free(work->net);
}

/* Slices of the measuring time; their median keeps a busy neighbour out of the figure. */
#define SLICES 51

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median rate of the slices, in samples per second, and the best. */
static double measure(struct work *work, size_t batch, double seconds, double *ret_best)
{
    double rates[SLICES];
    size_t inputs = fl_net_inputs(work->net);
    size_t at = 0;
    size_t i;

    for (i = 0; i < SLICES; i++) {
        uint64_t start = fl_clock_ns();
        uint64_t now;
        uint64_t samples = 0;

        do {
            (void)work->strategy->solver->step(work->solver, work->x + at * inputs, work->y + at,
                                               batch);
            at = at + 2 * batch <= work->n_samples ? at + batch : 0;
            samples += batch;
            now = fl_clock_ns();
        } while ((double)(now - start) < seconds / SLICES * 1e9);
        rates[i] = (double)samples / ((double)(now - start) * 1e-9);
    }
    qsort(rates, SLICES, sizeof(rates[0]), by_value);
    *ret_best = rates[SLICES - 1];
    return rates[SLICES / 2];
}

/* What the process had at most so far, after an evaluation too. */
static unsigned long long peak_rss(struct work *work)
{
    struct rusage used;
    double loss;
    size_t correct;

    fl_net_evaluate(work->net, work->x, work->y, work->n_samples, &loss, &correct);
    return getrusage(RUSAGE_SELF, &used) == 0 ? (unsigned long long)used.ru_maxrss << 10 : 0;
}

static int run(const struct args *args)
{
    struct fl_net_memory memory;
    unsigned long long rss;
    struct fl_net_spec spec;
    struct fl_err err = {0};
    struct work work = {0};
    double best = 0.0;
    double peak, rate, gflops;

    int rv = fl_net_preset(args->model, &spec, &err);

    rv = rv == FL_OK ? fl_net_create(&spec, (size_t)args->batch, &work.net, &err) : rv;
    if (rv == FL_OK) {
        make_samples(&work, (size_t)args->batch);
        rv = open_solver(&work, args, &err);
    }
    if (rv != FL_OK) {
        (void)fprintf(stderr, "bench/train: %s\n", fl_err_text(&err, rv));
        close_work(&work);
        return EXIT_FAILURE;
    }
    rate = measure(&work, (size_t)args->batch, args->seconds, &best);
    rss = peak_rss(&work);
    memory = fl_net_memory(work.net);
    peak = gemm_peak(args->seconds / 2.0);
    gflops = rate * fl_net_step_flops(work.net) * 1e-9;
    (void)printf(
        "train: model=%s algorithm=%s batch=%llu samples_per_s=%.0f best_samples_per_s=%.0f "
        "gflops=%.1f gemm_peak_gflops=%.1f "
        "share_of_peak=%.3f kernel=%s+%s parameter_bytes=%zu activation_bytes=%zu "
        "evaluation_bytes=%zu peak_rss_bytes=%llu\n",
        args->model, args->algorithm, (unsigned long long)args->batch, rate, best, gflops, peak,
        gflops / peak, fl_kernels_name(fl_kernels_best()), fl_gemm_kernel(), memory.parameters,
        memory.training, memory.evaluation, rss);
    close_work(&work);
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
        {"algorithm", required_argument, NULL, 'a'},
        {"option", required_argument, NULL, 'k'},
        {"momentum", required_argument, NULL, 'o'},
        {"seconds", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct args args = {.model = "mlp200", .algorithm = "fedavg", .batch = 10, .seconds = 2.0};
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
        case 'a':
            args.algorithm = optarg;
            break;
        case 'k':
            if (args.n_options == MAX_OPTIONS) {
                return bad("option", optarg, "at most 8 of them");
            }
            args.options[args.n_options++] = optarg;
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
