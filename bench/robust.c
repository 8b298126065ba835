/*
 * What robust rules cost beside the weighted mean: the aggregation pass over updates in memory,
 * rules and mean in turn, medians of the ratios.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/line.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/strategy/strategy.h"

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'n', "updates (default 50)"),
    FL_ARG("parameters", '\0', "N", 'd', "of the model (default 1000000)"),
    FL_ARG("f", '\0', "N", 'f', "hostile clients to withstand (default 5)"),
    FL_ARG("runs", '\0', "N", 'r', "of each rule (default 5)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints a line for the mean and for each rule, without and with nearest-neighbour mixing\n"
    "  robust: rule=… mix=… ms=… of_mean=… memory_models=…\n"
    "of_mean is the time beside that of the mean in the same run, memory_models the growth of the\n"
    "largest memory of the process since the updates were there, in models.\n";

enum { RUNS_MAX = 1000 };

struct bench {
    size_t n, d, f, runs;
    struct fl_layout *layout;
    float **updates;
    struct fl_codec_memory *memory;
    struct fl_agg_client *clients;
    float *theta, *theta_new, *centre, *centre_new;
};

static int bench_open_update(void *ctx, size_t client, size_t payload, size_t unit,
                             struct fl_codec_decoder *d)
{
    struct bench *b = ctx;
    struct fl_codec_reader reader;

    (void)payload;
    b->memory[client] = (struct fl_codec_memory){
        .data = (const uint8_t *)(const void *)b->updates[client], .len = b->d * sizeof(float)};
    reader = fl_codec_memory_reader(&b->memory[client]);
    return fl_codec_open(d, &fl_codec_float32, b->layout, unit, &reader);
}

static double run_once(struct bench *b, const struct fl_robust_ops *rule, struct fl_options *o,
                       struct fl_options *mean)
{
    const float *state[1] = {b->centre};
    float *state_new[1] = {b->centre_new};
    const struct fl_agg_job job = {.layout = b->layout,
                                   .ops = &fl_aggregate_mean,
                                   .options = mean,
                                   .round = 1,
                                   .members = b->n,
                                   .n_clients = b->n,
                                   .clients = b->clients,
                                   .open = bench_open_update,
                                   .ctx = b,
                                   .theta = b->theta,
                                   .theta_new = b->theta_new,
                                   .robust = rule,
                                   .robust_options = o,
                                   .reference = b->updates[0],
                                   .seed = 1,
                                   .state = state,
                                   .state_new = state_new};
    struct fl_err err = {0};
    uint64_t start = fl_clock_ns();
    size_t bad;

    if (fl_aggregate_run(&job, &bad, &err) != FL_OK) {
        (void)fprintf(stderr, "robust: %s\n", err.msg);
        exit(1);
    }
    return (double)(fl_clock_ns() - start) / 1e6;
}

static double peak_bytes(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static void bench_rule(struct bench *b, const struct fl_robust_ops *rule, const char *mix)
{
    double ms[RUNS_MAX];
    double ratio[RUNS_MAX];
    double before = peak_bytes();
    struct fl_options *mean = NULL;
    struct fl_options *o = NULL;
    const struct fl_policy *policy;
    struct fl_err err = {0};
    char f[32];
    const struct fl_component_option with[] = {{"f", f}, {"mix", mix}};
    size_t r;
    int rv;

    (void)snprintf(f, sizeof(f), "%zu", b->f);
    rv = fl_component_by_name(FL_COMPONENT_ROBUST, rule->policy.name, with,
                              fl_robust_on(rule) && !rule->trusts ? 2 : 0, &policy, &o, &err);
    if (rv == FL_ECONF && strcmp(mix, "none") != 0) {
        return; /* The rule refuses mixing. */
    }
    if (rv != FL_OK || fl_options_create(fl_aggregate_mean.policy.options, &mean) != FL_OK) {
        (void)fprintf(stderr, "robust: %s\n", err.msg);
        exit(1);
    }
    for (r = 0; r < b->runs; r++) {
        double one = run_once(b, NULL, NULL, mean);

        ms[r] = run_once(b, rule, o, mean);
        ratio[r] = ms[r] / one;
    }
    (void)printf("robust: rule=%s mix=%s ms=%.1f of_mean=%.2f memory_models=%.2f\n",
                 rule->policy.name, mix, bench_median(ms, b->runs), bench_median(ratio, b->runs),
                 (peak_bytes() - before) / (double)(b->d * sizeof(float)));
    (void)fflush(stdout);
    fl_options_free(o);
    fl_options_free(mean);
}

static void *bench_memory(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL) {
        (void)fprintf(stderr, "robust: out of memory: choose fewer --clients or --parameters\n");
        exit(1);
    }
    return p;
}

static void make_updates(struct bench *b)
{
    static const uint8_t all[1] = {1};
    struct fl_rng rng;
    size_t i;
    size_t k;

    if (fl_layout_create(&b->layout) != FL_OK ||
        fl_layout_add(b->layout, "unit", "weight", &b->d, 1, false, NULL) != FL_OK ||
        fl_layout_finish(b->layout, NULL) != FL_OK)
    {
        (void)fprintf(stderr, "robust: --parameters: no layout of %zu\n", b->d);
        exit(1);
    }
    b->updates = bench_memory(b->n, sizeof(*b->updates));
    b->memory = bench_memory(b->n, sizeof(*b->memory));
    b->clients = bench_memory(b->n, sizeof(*b->clients));
    b->theta = bench_memory(b->d, sizeof(float));
    b->theta_new = bench_memory(b->d, sizeof(float));
    b->centre = bench_memory(b->d, sizeof(float));
    b->centre_new = bench_memory(b->d, sizeof(float));
    fl_rng_seed(&rng, 1);
    for (k = 0; k < b->n; k++) {
        b->updates[k] = bench_memory(b->d, sizeof(float));
        b->clients[k] = (struct fl_agg_client){.weight = 100, .units = all};
        for (i = 0; i < b->d; i++) {
            b->updates[k][i] = (float)(fl_rng_unit(&rng) - 0.5);
        }
    }
}

static void bench_count(struct fl_args *line, const char *name, size_t most, size_t *ret)
{
    uint64_t n;

    if (fl_str_to_u64(line->value, &n) != FL_OK || n == 0 || n > most) {
        (void)fprintf(stderr, "robust: --%s: expected 1 to %zu, found '%s'\n", name, most,
                      line->value);
        exit(2);
    }
    *ret = (size_t)n;
}

int main(int argc, char **argv)
{
    struct bench b = {.n = 50, .d = 1000000, .f = 5, .runs = 5};
    struct fl_args line = {.program = "bench/robust", .rows = rows, .argc = argc, .argv = argv};
    const struct fl_policy *const *rule;
    int opt;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        switch (opt) {
        case 'n':
            bench_count(&line, "clients", 10000, &b.n);
            break;
        case 'd':
            bench_count(&line, "parameters", (size_t)1 << 30, &b.d);
            break;
        case 'f':
            bench_count(&line, "f", 16, &b.f);
            break;
        default:
            bench_count(&line, "runs", RUNS_MAX, &b.runs);
            break;
        }
    }
    make_updates(&b);
    for (rule = fl_strategy_policies(FL_COMPONENT_ROBUST); *rule != NULL; rule++) {
        const struct fl_robust_ops *ops = (const void *)*rule;

        bench_rule(&b, ops, "none");
        if (fl_robust_on(ops) && !ops->trusts) {
            bench_rule(&b, ops, "nnm");
        }
    }
    return 0;
}
