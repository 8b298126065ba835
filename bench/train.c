/*
 * Training speed of the built-in engine: steps of an algorithm's solver on synthetic inputs, one
 * thread, beside what the same core can do in the same run, and beside PyTorch. Measures, asserts
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/train_peak.h"
#include "bench/train_profile.h"
#include "bench/train_torch.h"
#include "bench/train_work.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels.h"

static const struct fl_arg rows[] = {
    FL_ARG("model", '\0', "NAME", 'm',
           "network to train (default mlp200); --model help lists them"),
    FL_ARG("batch", '\0', "N", 'b', "samples per step (default 10)"),
    FL_ARG("all", '\0', NULL, 'A',
           "one line each for the networks and batches that have a wanted ratio"),
    FL_ARG("instructions", '\0', "NAME", 'i',
           "kernels that compute: auto (default), avx512, avx2, portable, reference"),
    FL_ARG("reference", '\0', NULL, 'r',
           "as --instructions reference: patches, plain loops and OpenBLAS"),
    FL_ARG("torch", '\0', NULL, 'T', "PyTorch's steps of the same network in turns with ours"),
    FL_ARG("python", '\0', "PROGRAM", 'y', "that has PyTorch (default /usr/bin/python3)"),
    FL_ARG("profile", '\0', NULL, 'p',
           "a table of the time of each layer, forward, backward and update"),
    FL_ARG("threads", '\0', "N", 't', "only 1 is offered: one training thread per client"),
    FL_ARG("algorithm", '\0', "NAME", 'a', "preset whose solver makes the steps (default fedavg)"),
    FL_ARG("option", '\0', "K=V", 'k', "an option of that solver, any number of times"),
    FL_ARG("momentum", '\0', "M", 'o', "heavy-ball momentum (default 0), of PyTorch's steps too"),
    FL_ARG("seconds", '\0', "S", 's', "measuring time (default 2)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints one line:\n"
    "  train: model=… algorithm=… batch=… samples_per_s=… best_samples_per_s=… gflops=…\n"
    "         fma_peak_gflops=… fma_peak_share=… gemm_peak_gflops=… share_of_peak=… kernel=…\n"
    "         parameter_bytes=… workspace_bytes=… activation_bytes=… evaluation_bytes=…\n"
    "         peak_rss_bytes=… torch_samples_per_s=… ratio=… wanted=…\n"
    "samples_per_s is the median of 51 slices of the time, best_samples_per_s the best of "
    "them\n"
    "(far apart: other programs were running). gflops counts, at the median, 2 operations per\n"
    "weight, place and sample for forward, weight gradient and (above the first layer) input\n"
    "gradient, as a plain step by the direct algorithm has them, whatever more the solver "
    "computes\n"
    "and however many fewer a faster algorithm makes: with Winograd fma_peak_share, its share "
    "of\n"
    "the most that multiply-adds between registers reach in the same run, may be above 1. "
    "These\n"
    "have the vectors of the kernels (the widest there are under reference). The GEMM peak is "
    "the\n"
    "best of several square products of OpenBLAS, whose name for the core stands behind "
    "kernel's +.\n"
    "workspace_bytes is the scratch of a pass; activation_bytes are those of one batch with "
    "their\n"
    "gradients; evaluation_bytes lie in the same place. The peak of the whole process is "
    "taken\n"
    "after steps and an evaluation; about 1000 samples and what OpenBLAS reserves are in it.\n"
    "With --torch there are 15 slices, each followed by one of PyTorch's of the same length "
    "(one\n"
    "thread, the same core under taskset); ratio is the median of the slices' ratios, wanted "
    "the\n"
    "least that it should be beside PyTorch 1.13 with oneDNN on a core with AVX-512.\n"
    "OpenBLAS, which PyTorch may use too, heeds OPENBLAS_CORETYPE.\n";

#define SLICES       51
#define TORCH_SLICES 15

struct args {
    struct train_how how;
    double seconds;
    const char *python;
    bool all, torch, profile;
};

/* PyTorch 1.13 with oneDNN on one thread of a core with AVX-512 is what these are beside. */
static const struct wanted {
    const char *model;
    uint64_t batch;
    double ratio;
} wanted[] = {
    {"mlr", 20, 10.0},         {"mlp200", 10, 3.5},      {"mlp200", 50, 1.5},
    {"cifar_cnn32", 100, 2.5}, {"fedmix_cnn", 10, 2.5},  {"vgg9_bn", 64, 2.5},
    {"lenet5", 20, 1},         {"resnet18_gn", 10, 1.5}, {"shakespeare_lstm", 10, 1.5},
    {"attention", 10, 1},      {"depthwise", 20, 1},     {"depthwise_only", 20, 1},
};
#define N_WANTED (sizeof(wanted) / sizeof(wanted[0]))

/* 0: nothing is wanted of it. */
static double wanted_of(const struct train_how *how)
{
    size_t i;

    for (i = 0; i < N_WANTED; i++) {
        if (wanted[i].batch == how->batch && strcmp(wanted[i].model, how->model) == 0) {
            return wanted[i].ratio;
        }
    }
    return 0.0;
}

/* Samples per second; PyTorch's and the ratio are 0 without --torch. */
struct rates {
    double ours, best, torch, ratio;
};

/* In slices: their median keeps a busy neighbour out of the figures. */
static struct rates measure(struct train_work *work, struct train_torch *torch, double seconds)
{
    double ours[SLICES];
    double theirs[SLICES];
    double ratios[SLICES];
    size_t n = torch != NULL ? TORCH_SLICES : SLICES;
    struct rates rates = {0};
    size_t i;

    (void)train_work_rate(work, 0.0);
    if (torch != NULL) {
        (void)train_torch_rate(torch, 0.1); /* oneDNN compiles its kernels. */
    }
    for (i = 0; i < n; i++) {
        ours[i] = train_work_rate(work, seconds / (double)n);
        if (torch != NULL) {
            theirs[i] = train_torch_rate(torch, seconds / (double)n);
            ratios[i] = theirs[i] > 0.0 ? ours[i] / theirs[i] : 0.0;
        }
    }
    rates.ours = bench_median(ours, n);
    rates.best = ours[n - 1];
    if (torch != NULL) {
        rates.torch = bench_median(theirs, n);
        rates.ratio = bench_median(ratios, n);
    }
    return rates;
}

/* With the vectors of the kernels; OpenBLAS takes the widest. */
static double fma_peak(const struct fl_kernels *kernels, double seconds)
{
    const char *name = fl_kernels_name(kernels);

    if (strcmp(name, "reference") == 0) {
        name = fl_kernels_name(fl_kernels_best());
    }
    return train_fma_peak(name, seconds);
}

/*
 * Operations of one step per sample: 2 for each use of a weight, in forward, weight gradient and
 * (after the first layer with weights) input gradient.
 */
static double step_flops(const struct train_work *work)
{
    size_t first = fl_net_first(work->net);
    double sum = 0.0;
    size_t i;

    for (i = first; i < work->spec.n_layers; i++) {
        sum += fl_net_layer_flops(work->net, i) * (i == first ? 2.0 : 3.0);
    }
    return sum;
}

static void print_line(const struct args *args, struct train_work *work, const struct rates *rates)
{
    unsigned long long rss = train_work_peak_rss(work);
    struct fl_net_memory memory = fl_net_memory(work->net);
    double fma = fma_peak(args->how.kernels, args->seconds / 4.0);
    double gemm = train_gemm_peak(args->seconds / 2.0);
    double gflops = rates->ours * step_flops(work) * 1e-9;
    double want = wanted_of(&args->how);

    (void)printf("train: model=%s algorithm=%s batch=%zu samples_per_s=%.0f "
                 "best_samples_per_s=%.0f gflops=%.1f fma_peak_gflops=%.1f fma_peak_share=%.3f "
                 "gemm_peak_gflops=%.1f share_of_peak=%.3f kernel=%s+%s parameter_bytes=%zu "
                 "workspace_bytes=%zu activation_bytes=%zu evaluation_bytes=%zu "
                 "peak_rss_bytes=%llu",
                 args->how.model, args->how.algorithm, work->batch, rates->ours, rates->best,
                 gflops, fma, gflops / fma, gemm, gflops / gemm, fl_kernels_name(args->how.kernels),
                 fl_gemm_kernel(), memory.parameters, memory.scratch, memory.training,
                 memory.evaluation, rss);
    if (rates->torch > 0.0) {
        (void)printf(" torch_samples_per_s=%.0f ratio=%.2f", rates->torch, rates->ratio);
    }
    if (rates->torch > 0.0 && want > 0.0) {
        (void)printf(" wanted=%.1f", want);
    }
    (void)printf("\n");
}

static int run(const struct args *args)
{
    struct train_torch *torch = NULL;
    struct train_work work;
    struct fl_err err = {0};
    struct rates rates;
    int rv = train_work_open(&work, &args->how, &err);

    if (rv == FL_OK && args->torch) {
        rv = train_torch_start(args->python, &work, args->how.momentum, &torch, &err);
    }
    if (rv == FL_OK) {
        rates = measure(&work, torch, args->seconds);
        train_torch_stop(torch);
        print_line(args, &work, &rates);
        if (args->profile) {
            train_profile(&work, args->seconds);
        }
    } else {
        (void)fprintf(stderr, "bench/train: %s\n", fl_err_text(&err, rv));
    }
    train_work_close(&work);
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Each in a process of its own, whose memory is its own. */
static int run_all(const struct args *args)
{
    int failed = 0;
    size_t i;

    for (i = 0; i < N_WANTED; i++) {
        int status = -1;
        pid_t pid;

        (void)fflush(NULL);
        pid = fork();
        if (pid == 0) {
            struct args one = *args;

            one.how.model = wanted[i].model;
            one.how.batch = wanted[i].batch;
            exit(run(&one));
        }
        failed |= pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int print_models(void)
{
    const struct train_layer_net *net;
    const char *const *name;

    for (name = fl_net_presets(); *name != NULL; name++) {
        (void)puts(*name);
    }
    for (net = train_layer_nets; net->name != NULL; net++) {
        (void)puts(net->name);
    }
    return EXIT_SUCCESS;
}

static bool bad(const char *option, const char *value, const char *expected)
{
    (void)fprintf(stderr, "bench/train: --%s '%s': expected %s\n", option, value, expected);
    return false;
}

static bool take_kernels(struct args *args, const char *name)
{
    struct fl_err err = {0};
    int rv = fl_kernels_named(name, &args->how.kernels, &err);

    if (rv != FL_OK) {
        (void)fprintf(stderr, "bench/train: --instructions: %s\n", fl_err_text(&err, rv));
    }
    return rv == FL_OK;
}

/* Those with a number or a list; false when the value will not do. */
static bool take_value(struct args *args, int option, const char *value)
{
    struct train_how *how = &args->how;
    uint64_t threads;

    switch (option) {
    case 'i':
        return take_kernels(args, value);
    case 'b':
        return (fl_str_to_u64(value, &how->batch) == FL_OK && how->batch > 0) ||
               bad("batch", value, "a whole number above 0");
    case 't':
        return (fl_str_to_u64(value, &threads) == FL_OK && threads == 1) ||
               bad("threads", value, "1");
    case 'k':
        if (how->n_options == TRAIN_MAX_OPTIONS) {
            return bad("option", value, "at most 8 of them");
        }
        how->options[how->n_options++] = value;
        return true;
    case 'o':
        return (fl_str_to_double(value, &how->momentum) == FL_OK && how->momentum >= 0.0 &&
                how->momentum < 1.0) ||
               bad("momentum", value, "a number from 0 to below 1");
    default:
        return (fl_str_to_double(value, &args->seconds) == FL_OK && args->seconds > 0.0 &&
                args->seconds <= 3600.0) ||
               bad("seconds", value, "a number above 0, at most 3600");
    }
}

/* Exits with what --help and mistakes ask for. */
static void parse(int argc, char **argv, struct args *args)
{
    struct fl_args line = {.program = "bench/train", .rows = rows, .argc = argc, .argv = argv};
    int c;

    while ((c = bench_next(&line, prints)) != FL_ARGS_END) {
        switch (c) {
        case 'm':
            args->how.model = line.value;
            break;
        case 'a':
            args->how.algorithm = line.value;
            break;
        case 'y':
            args->python = line.value;
            break;
        case 'A':
            args->all = true;
            break;
        case 'T':
            args->torch = true;
            break;
        case 'p':
            args->profile = true;
            break;
        default:
            if (!(c == 'r' ? take_kernels(args, "reference") : take_value(args, c, line.value))) {
                exit(2);
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct args args = {.how = {.model = "mlp200",
                                .algorithm = "fedavg",
                                .kernels = fl_kernels_best(),
                                .batch = 10},
                        .seconds = 2.0,
                        .python = "/usr/bin/python3"};

    parse(argc, argv, &args);
    if (strcmp(args.how.model, "help") == 0) {
        return print_models();
    }
    return args.all ? run_all(&args) : run(&args);
}
