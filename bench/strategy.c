/*
 * What an aggregation by a program costs beside the built-in one: the pass over updates in memory,
 * `aggregate: fedyogi` and the same rule as a script in turn, medians of both.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/line.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "server/work/aggregation_program.h"

#define SCRIPT BENCH_PYTHON_DIR "/examples/strategy_fedyogi.py"

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'n', "updates (default 50)"),
    FL_ARG("model", '\0', "NAME", 'm', "preset of the network (default mlp200)"),
    FL_ARG("runs", '\0', "N", 'r', "of each (default 15)"),
    FL_ARG("python", '\0', "PROGRAM", 'p', "with numpy (default: FL_PYTHON, or /usr/bin/python3)"),
    FL_ARG("script", '\0', "FILE", 's', "default: FedYogi of client/python/examples"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints\n"
    "  strategy: clients=… parameters=… built_in_ms=… program_ms=… more_ms=… start_ms=…\n"
    "more_ms is the median of what the program took more than the built-in rule in the same run,\n"
    "start_ms the start of the program with its imports, which a round does not contain.\n";

enum { RUNS_MAX = 1000 };

struct bench {
    size_t n, d, runs;
    const char *model, *python, *script;
    struct fl_net_spec net;
    struct fl_layout *layout;
    float **updates;
    struct fl_codec_memory *memory;
    struct fl_agg_client *agg;
    struct fl_participant_rec *parts;
    struct fl_client_rec *clients;
    float *theta, *theta_new, *state[2], *state_new[2];
    struct fl_blob *kept;
};

static void bench_fail(const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "strategy: %s\n", fl_err_text(err, rv));
    exit(1);
}

static void *bench_memory(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL) {
        bench_fail(NULL, FL_ENOMEM);
    }
    return p;
}

static int bench_open_update(void *ctx, size_t client, size_t payload, size_t unit,
                             struct fl_codec_decoder *d)
{
    struct bench *b = ctx;
    const struct fl_unit *u = fl_layout_unit(b->layout, unit);
    struct fl_codec_reader reader;

    (void)payload;
    b->memory[client] = (struct fl_codec_memory){
        .data = (const uint8_t *)(const void *)(b->updates[client] + u->offset),
        .len = u->count * sizeof(float)};
    reader = fl_codec_memory_reader(&b->memory[client]);
    return fl_codec_open(d, &fl_codec_float32, b->layout, unit, &reader);
}

static struct fl_agg_job bench_job(struct bench *b, const struct fl_strategy *s)
{
    return (struct fl_agg_job){.layout = b->layout,
                               .ops = s->aggregate,
                               .options = s->options[FL_COMPONENT_AGGREGATE],
                               .round = 1,
                               .members = b->n,
                               .n_clients = b->n,
                               .clients = b->agg,
                               .open = bench_open_update,
                               .ctx = b,
                               .theta = b->theta,
                               .theta_new = b->theta_new,
                               .state = (const float *const *)b->state,
                               .state_new = b->state_new};
}

static double run_built_in(struct bench *b, const struct fl_strategy *s)
{
    const struct fl_agg_job job = bench_job(b, s);
    struct fl_err err = {0};
    uint64_t start = fl_clock_ns();
    size_t bad;
    int rv = fl_aggregate_run(&job, &bad, &err);

    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    return (double)(fl_clock_ns() - start) / 1e6;
}

static double run_program(struct bench *b, const struct fl_strategy *s,
                          struct fl_aggregation_program *program)
{
    const struct fl_program_round round = {.round = 1,
                                           .attempt = 1,
                                           .parts = b->parts,
                                           .clients = b->clients,
                                           .n_parts = b->n,
                                           .theta = b->theta,
                                           .kept = b->kept};
    struct fl_agg_job job = bench_job(b, s);
    struct fl_agg_whole whole;
    struct fl_err err = {0};
    uint64_t start = fl_clock_ns();
    size_t bad;
    int rv = fl_aggregation_program_begin(program, &round, &whole, &err);

    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    job.whole = &whole;
    rv = fl_aggregate_run(&job, &bad, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    fl_blob_unref(b->kept);
    rv = fl_aggregation_program_kept(program, &b->kept, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    return (double)(fl_clock_ns() - start) / 1e6;
}

/* The default strategy with this aggregate; `program`, by commas: NULL: without one. */
static struct fl_strategy *bench_strategy(const char *name, const char *program)
{
    const struct fl_component_option with[] = {{"program", program}};
    const struct fl_policy *policy = NULL;
    struct fl_options *o = NULL;
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};
    int rv = fl_strategy_create("fedavg", &s, &err);

    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    rv = fl_component_by_name(FL_COMPONENT_AGGREGATE, name, with, program != NULL ? 1 : 0, &policy,
                              &o, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    fl_options_free(s->options[FL_COMPONENT_AGGREGATE]);
    s->options[FL_COMPONENT_AGGREGATE] = o;
    s->aggregate = (const void *)policy; /* The first member. */
    return s;
}

static void make_updates(struct bench *b)
{
    struct fl_err err = {0};
    struct fl_rng rng;
    uint8_t *all;
    size_t i;
    size_t k;
    struct fl_net *net = NULL;
    int rv = fl_net_preset(b->model, &b->net, &err);

    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    rv = fl_net_create_evaluator(&b->net, &net, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    rv = fl_layout_copy(fl_net_layout(net), NULL, NULL, &b->layout, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    fl_net_free(net);
    b->d = fl_layout_count(b->layout);
    b->updates = bench_memory(b->n, sizeof(*b->updates));
    b->memory = bench_memory(b->n, sizeof(*b->memory));
    b->agg = bench_memory(b->n, sizeof(*b->agg));
    b->parts = bench_memory(b->n, sizeof(*b->parts));
    b->clients = bench_memory(b->n, sizeof(*b->clients));
    b->theta = bench_memory(b->d, sizeof(float));
    b->theta_new = bench_memory(b->d, sizeof(float));
    for (i = 0; i < 2; i++) {
        b->state[i] = bench_memory(b->d, sizeof(float));
        b->state_new[i] = bench_memory(b->d, sizeof(float));
    }
    all = bench_memory(fl_layout_units(b->layout), 1);
    (void)memset(all, 1, fl_layout_units(b->layout));
    fl_rng_seed(&rng, 1);
    for (k = 0; k < b->n; k++) {
        b->updates[k] = bench_memory(b->d, sizeof(float));
        b->agg[k] = (struct fl_agg_client){.weight = 100, .units = all};
        b->parts[k] = (struct fl_participant_rec){.samples = 100, .steps = 10};
        (void)snprintf(b->clients[k].name, sizeof(b->clients[k].name), "client-%zu", k);
        for (i = 0; i < b->d; i++) {
            b->updates[k][i] = (float)(fl_rng_unit(&rng) - 0.5);
        }
    }
}

static void bench_compare(struct bench *b)
{
    char argv[2048];
    double built_in[RUNS_MAX];
    double program_ms[RUNS_MAX];
    double more[RUNS_MAX];
    struct fl_strategy *own = bench_strategy("fedyogi", NULL);
    struct fl_strategy *script;
    struct fl_aggregation_program *program = NULL;
    struct fl_err err = {0};
    uint64_t start = fl_clock_ns();
    double start_ms;
    size_t r;
    int rv;

    (void)snprintf(argv, sizeof(argv), "%s,%s", b->python, b->script);
    script = bench_strategy("command", argv);
    rv = fl_aggregation_program_create(
        &(struct fl_aggregation_program_conf){
            .strategy = script, .layout = b->layout, .net = &b->net, .federation = "bench"},
        &program, &err);
    if (rv != FL_OK) {
        bench_fail(&err, rv);
    }
    start_ms = (double)(fl_clock_ns() - start) / 1e6;
    (void)run_program(b, script, program); /* The first one sizes the memory. */
    for (r = 0; r < b->runs; r++) {
        built_in[r] = run_built_in(b, own);
        program_ms[r] = run_program(b, script, program);
        more[r] = program_ms[r] - built_in[r];
    }
    (void)printf("strategy: clients=%zu parameters=%zu built_in_ms=%.1f program_ms=%.1f "
                 "more_ms=%.1f start_ms=%.0f\n",
                 b->n, b->d, bench_median(built_in, b->runs), bench_median(program_ms, b->runs),
                 bench_median(more, b->runs), start_ms);
    fl_aggregation_program_free(program);
    fl_strategy_free(script);
    fl_strategy_free(own);
}

static void bench_count(struct fl_args *line, const char *name, size_t most, size_t *ret)
{
    uint64_t n;

    if (fl_str_to_u64(line->value, &n) != FL_OK || n == 0 || n > most) {
        (void)fprintf(stderr, "strategy: --%s: expected 1 to %zu, found '%s'\n", name, most,
                      line->value);
        exit(2);
    }
    *ret = (size_t)n;
}

int main(int argc, char **argv)
{
    const char *python = getenv("FL_PYTHON");
    struct bench b = {.n = 50,
                      .runs = 15,
                      .model = "mlp200",
                      .python = python != NULL ? python : "/usr/bin/python3",
                      .script = SCRIPT};
    struct fl_args line = {.program = "bench/strategy", .rows = rows, .argc = argc, .argv = argv};
    int opt;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        switch (opt) {
        case 'n':
            bench_count(&line, "clients", 10000, &b.n);
            break;
        case 'r':
            bench_count(&line, "runs", RUNS_MAX, &b.runs);
            break;
        case 'm':
            b.model = line.value;
            break;
        case 'p':
            b.python = line.value;
            break;
        default:
            b.script = line.value;
            break;
        }
    }
    (void)setenv("PYTHONPATH", BENCH_PYTHON_DIR, 1);
    make_updates(&b);
    bench_compare(&b);
    return 0;
}
