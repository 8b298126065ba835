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
#include "libfl/num/rows.h"
#include "libfl/strategy/strategy.h"

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'n', "updates (default 50)"),
    FL_ARG("parameters", '\0', "N", 'd', "of the model (default 1000000)"),
    FL_ARG("f", '\0', "N", 'f', "hostile clients to withstand (default 5)"),
    FL_ARG("runs", '\0', "N", 'r', "of each rule (default 5)"),
    FL_ARG("rule", '\0', "NAME", 'R', "only this rule (default all)"),
    FL_ARG("steps", '\0', NULL, 's', "instead of rules the kernels that they are made of"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints a line for the mean and for each rule, without and with nearest-neighbour mixing\n"
    "  robust: rule=… mix=… ms=… of_mean=… memory_models=…\n"
    "of_mean is the time beside that of the mean in the same run, memory_models the growth of the\n"
    "largest memory of the process since the updates were there, in models. With --steps:\n"
    "  steps: gram_ms=… sort_ms=… widen_ms=… between_ms=… sum_ms=… sort_wide_ms=… mean_ms=…\n"
    "for values of a block that is in the cache, sums of n - f updates each, of all "
    "--parameters.\n";

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

/* --- steps --- */

struct steps {
    size_t n, f;
    float *block;  /* [n][STEPS_ROW] */
    float *values; /* [n][FL_ROWS_COLUMNS] */
    double *wide, *sums, *gram;
    uint8_t *groups;
    double low[FL_ROWS_COLUMNS], high[FL_ROWS_COLUMNS];
};

enum { STEPS_COLUMNS = 4 * FL_ROWS_PIECE, STEPS_ROW = STEPS_COLUMNS + 16 };

static void step_gram(struct steps *s, size_t from)
{
    fl_rows_gram(s->gram, s->n, s->block + from, STEPS_ROW, s->n, FL_ROWS_PIECE);
}

static void step_sort(struct steps *s, size_t from)
{
    fl_rows_tile(s->values, s->block + from, STEPS_ROW, s->n, FL_ROWS_COLUMNS);
    fl_rows_sort(s->values, s->n);
}

static void step_widen(struct steps *s, size_t from)
{
    (void)from;
    fl_rows_widen(s->wide, s->values, s->n * FL_ROWS_COLUMNS);
}

static void step_between(struct steps *s, size_t from)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        s->gram[i] += (double)fl_rows_between(s->block + i * STEPS_ROW + from, s->low, s->high,
                                              FL_ROWS_COLUMNS);
    }
}

static void step_sum(struct steps *s, size_t from)
{
    (void)from;
    fl_rows_sum(s->sums, s->groups, s->n, s->values, s->n);
}

static void step_sort_wide(struct steps *s, size_t from)
{
    size_t i;

    for (i = 0; i < s->n; i++) { /* Unsorted again. */
        s->sums[i * FL_ROWS_COLUMNS + from % FL_ROWS_COLUMNS] = (double)s->block[i + from];
    }
    fl_rows_sort_wide(s->sums, s->n);
}

static void step_mean(struct steps *s, size_t from)
{
    (void)from;
    fl_rows_mean(s->low, s->wide, s->f, s->n - s->f);
}

static double step_ms(struct steps *s, const struct bench *b, size_t columns,
                      void (*step)(struct steps *s, size_t from))
{
    double ms[RUNS_MAX];
    size_t r;
    size_t at;

    for (r = 0; r < b->runs; r++) {
        uint64_t start = fl_clock_ns();

        for (at = 0; at < b->d; at += columns) {
            step(s, at % STEPS_COLUMNS);
        }
        ms[r] = (double)(fl_clock_ns() - start) / 1e6;
    }
    return bench_median(ms, b->runs);
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

static void bench_steps(const struct bench *b)
{
    struct steps s = {.n = b->n, .f = b->f < b->n ? b->f : 0};
    size_t groups = fl_rows_groups(s.n);
    size_t tile = s.n * FL_ROWS_COLUMNS;
    double *tiles = aligned_alloc(64, (2 * tile + tile / 2) * sizeof(*tiles));
    struct fl_rng rng;
    size_t i;

    s.block = aligned_alloc(64, s.n * STEPS_ROW * sizeof(*s.block));
    s.gram = bench_memory(s.n * s.n, sizeof(*s.gram));
    s.groups = bench_memory(s.n * groups, 1);
    if (tiles == NULL || s.block == NULL) {
        (void)fprintf(stderr, "robust: out of memory: choose fewer --clients\n");
        exit(1);
    }
    s.wide = tiles;
    s.sums = tiles + tile;
    s.values = (float *)(void *)(tiles + 2 * tile);
    fl_rng_seed(&rng, 1);
    for (i = 0; i < s.n * STEPS_ROW; i++) {
        s.block[i] = (float)(fl_rng_unit(&rng) - 0.5);
    }
    for (i = 0; i < s.n * (s.n - s.f); i++) { /* All but some, which differ. */
        size_t a = i / (s.n - s.f);
        size_t k = (a + i) % s.n;

        s.groups[a * groups + k / FL_ROWS_GROUP] |= (uint8_t)(1u << k % FL_ROWS_GROUP);
    }
    (void)printf("steps: gram_ms=%.1f ", step_ms(&s, b, FL_ROWS_PIECE, step_gram));
    (void)printf("sort_ms=%.1f ", step_ms(&s, b, FL_ROWS_COLUMNS, step_sort));
    (void)printf("widen_ms=%.1f ", step_ms(&s, b, FL_ROWS_COLUMNS, step_widen));
    (void)printf("between_ms=%.1f ", step_ms(&s, b, FL_ROWS_COLUMNS, step_between));
    (void)printf("sum_ms=%.1f ", step_ms(&s, b, FL_ROWS_COLUMNS, step_sum));
    (void)printf("sort_wide_ms=%.1f ", step_ms(&s, b, FL_ROWS_COLUMNS, step_sort_wide));
    (void)printf("mean_ms=%.1f\n", step_ms(&s, b, FL_ROWS_COLUMNS, step_mean));
    free(tiles);
    free(s.block);
    free(s.gram);
    free(s.groups);
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
    const char *only = NULL;
    bool steps = false;
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
        case 's':
            steps = true;
            break;
        case 'R':
            only = line.value;
            break;
        default:
            bench_count(&line, "runs", RUNS_MAX, &b.runs);
            break;
        }
    }
    if (steps) {
        bench_steps(&b);
        return 0;
    }
    make_updates(&b);
    for (rule = fl_strategy_policies(FL_COMPONENT_ROBUST); *rule != NULL; rule++) {
        const struct fl_robust_ops *ops = (const void *)*rule;

        if (only != NULL && strcmp(only, (*rule)->name) != 0) {
            continue;
        }
        bench_rule(&b, ops, "none");
        if (fl_robust_on(ops) && !ops->trusts) {
            bench_rule(&b, ops, "nnm");
        }
    }
    return 0;
}
