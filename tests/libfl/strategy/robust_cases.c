/*
 * Robust rules through the aggregation pass, for test_robust_numpy.sh. A case on standard input:
 *
 *     RULE OPTIONS N D      options as "f=1,mix=nnm"; "-": none
 *     WEIGHT X1 … XD        for each of the N clients
 *     C1 … CD               the centre, or the reference update
 *
 * Answers, in double: the D values of the result, then N times what was used of the update; with
 * mix=bucketing before them the number of buckets and for each client its bucket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/aggregator/aggregate.h"
#include "libfl/strategy/strategy.h"

enum { D_MAX = 4096, N_MAX = 256 };

static struct {
    size_t n, d;
    struct fl_layout *layout;
    struct fl_codec_memory memory[N_MAX];
    float sent[N_MAX][D_MAX], centre[D_MAX], theta[D_MAX], theta_new[D_MAX], centre_new[D_MAX];
    double result[D_MAX], used[N_MAX];
    size_t done;
} at;

static void fail(const char *what)
{
    (void)fprintf(stderr, "robust_cases: %s\n", what);
    exit(1);
}

static double number(void)
{
    double x;

    if (scanf("%lf", &x) != 1) {
        fail("a number is missing");
    }
    return x;
}

static int open_sent(void *ctx, size_t client, size_t payload, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct fl_codec_reader reader;

    (void)ctx;
    (void)payload;
    at.memory[client] = (struct fl_codec_memory){
        .data = (const uint8_t *)(const void *)at.sent[client], .len = at.d * sizeof(float)};
    reader = fl_codec_memory_reader(&at.memory[client]);
    return fl_codec_open(d, &fl_codec_float32, at.layout, unit, &reader);
}

/* What the rule gives, before it is rounded to the model's float32. */
static void step_take(const struct fl_options *o, const struct fl_agg_block *block)
{
    (void)o;
    (void)memcpy(at.result + at.done, block->dbar, block->n * sizeof(double));
    (void)memset(block->step, 0, block->n * sizeof(double));
    at.done += block->n;
}

static const struct fl_aggregate_ops taking = {.policy = {.name = "taking", .options = fl_opt_none},
                                               .step = step_take};

static void print_buckets(const struct fl_options *o)
{
    struct fl_robust_mixtures x = {0};
    struct fl_robust_updates in = {.n = at.n};
    struct fl_rng rng;
    size_t a;
    size_t i;

    fl_rng_key(&rng, 7, FL_RNG_BUCKETS, 3, 0);
    if (fl_robust_mix_updates(o, &in, &rng, &x) != FL_OK) {
        fail("out of memory");
    }
    (void)printf("%zu", x.m);
    for (i = 0; i < at.n; i++) {
        for (a = 0; a < x.m && !(x.mix[a * at.n + i] > 0); a++) {
        }
        (void)printf(" %zu", a);
    }
    (void)printf(" ");
    fl_robust_mixtures_done(&x);
}

static void run_case(const char *rule, char *options)
{
    static struct fl_agg_client clients[N_MAX];
    static const uint8_t all[1] = {1};
    const float *state[1] = {at.centre};
    float *state_new[1] = {at.centre_new};
    const struct fl_policy *policy = NULL;
    struct fl_component_option list[8];
    struct fl_options *o = NULL;
    struct fl_err err = {0};
    size_t bad = 0;
    size_t n = 0;
    size_t i;
    size_t k;
    char *option = options;

    while (strcmp(options, "-") != 0 && option != NULL) {
        char *comma = strchr(option, ',');
        char *eq = strchr(option, '=');

        if (comma != NULL) {
            *comma++ = '\0';
        }
        if (eq == NULL) {
            fail("an option has no value");
        }
        *eq = '\0';
        list[n++] = (struct fl_component_option){option, eq + 1};
        option = comma;
    }
    if (fl_component_by_name(FL_COMPONENT_ROBUST, rule, list, n, &policy, &o, &err) != FL_OK ||
        fl_layout_create(&at.layout) != FL_OK ||
        fl_layout_add(at.layout, "u", "w", &at.d, 1, false, NULL) != FL_OK ||
        fl_layout_finish(at.layout, NULL) != FL_OK)
    {
        fail(err.msg);
    }
    for (k = 0; k < at.n; k++) {
        clients[k] = (struct fl_agg_client){.weight = number(), .units = all};
        for (i = 0; i < at.d; i++) {
            at.sent[k][i] = (float)number();
        }
    }
    for (i = 0; i < at.d; i++) {
        at.centre[i] = (float)number();
    }
    at.done = 0;
    (void)memset(at.result, 0, sizeof(at.result)); /* A rule may keep the model without a step. */
    if (fl_aggregate_run(&(struct fl_agg_job){.layout = at.layout,
                                              .ops = &taking,
                                              .round = 3,
                                              .members = at.n,
                                              .n_clients = at.n,
                                              .clients = clients,
                                              .open = open_sent,
                                              .theta = at.theta,
                                              .theta_new = at.theta_new,
                                              .robust = (const void *)policy,
                                              .robust_options = o,
                                              .reference = at.centre,
                                              .seed = 7,
                                              .used = at.used,
                                              .state = state,
                                              .state_new = state_new},
                         &bad, &err) != FL_OK)
    {
        fail(err.msg);
    }
    for (i = 0; i < n; i++) {
        if (strcmp(list[i].name, "mix") == 0 && strcmp(list[i].value, "bucketing") == 0) {
            print_buckets(o);
        }
    }
    for (i = 0; i < at.d; i++) {
        (void)printf("%.17g ", at.result[i]);
    }
    for (k = 0; k < at.n; k++) {
        (void)printf("%.17g ", at.used[k]);
    }
    (void)printf("\n");
    fl_options_free(o);
    fl_layout_free(at.layout);
}

int main(void)
{
    char rule[64];
    char options[256];

    while (scanf("%63s %255s %zu %zu", rule, options, &at.n, &at.d) == 4) {
        if (at.n == 0 || at.n > N_MAX || at.d == 0 || at.d > D_MAX) {
            fail("too many numbers");
        }
        run_case(rule, options);
    }
    return 0;
}
