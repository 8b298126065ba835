/*
 * What clients cost that hold different models, with a broadcast that sends what changed: the
 * server's own code (server/work/differences.c) adds up the moves since each of these models, keeps
 * what its budget allows while the newest one is served, and passes the result through TLS. Against
 * it the least that downloads of whole models cost: all of their bytes through TLS. Neither has the
 * kernel's part. In random order, as if each download had ended before the next one begins.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/counted.h"
#include "bench/line.h"
#include "bench/sealed.h"
#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/strategy/broadcast/lattice.h"
#include "server/work/differences.h"

/* mlp200, in units. */
#define UNITS 3
static const size_t dims[UNITS][2] = {{200, 785}, {200, 201}, {10, 201}};
#define STEP (11 * 8192 * FL_GRID)

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'n', "downloads (default 10000)"),
    FL_ARG("versions", '\0', "N", 'v', "models that clients hold (default 300)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints a line:\n"
    "  broadcast: clients=… versions=… model_bytes=… log_bytes=… mean_bytes=… differences_cpu_s=… "
    "whole_cpu_s=… ratio=… memory_mb=… budget_mb=…\n"
    "log_bytes are the moves of all rounds, as they are kept in memory and on disk; mean_bytes is "
    "the mean download.\n"
    "differences_cpu_s is the processor time of all downloads of what changed, making them and "
    "TLS; "
    "whole_cpu_s that of as\n"
    "many whole models through TLS, ratio the first to the second. memory_mb is the peak of all "
    "allocations of the server's code\n"
    "for the downloads, beyond the log and the model: cached differences, scratch and the one that "
    "is sent. budget_mb is its limit.\n";

static void check(int rv, const char *what)
{
    if (rv != FL_OK) {
        (void)fprintf(stderr, "broadcast: %s: %s\n", what, fl_strerror(rv));
        exit(EXIT_FAILURE);
    }
}

static double cpu_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct fl_layout *layout_new(void)
{
    struct fl_layout *layout = NULL;
    size_t l;

    check(fl_layout_create(&layout), "layout");
    for (l = 0; l < UNITS; l++) {
        char unit[16];
        char tensor[32];

        (void)snprintf(unit, sizeof(unit), "fc%zu", l);
        (void)snprintf(tensor, sizeof(tensor), "%s.weight", unit);
        check(fl_layout_add(layout, unit, tensor, dims[l], 2, false, NULL), "layout");
    }
    check(fl_layout_finish(layout, NULL), "layout");
    return layout;
}

/* In each round a share of the entries moves by a step, fewer and fewer as training goes on. */
static void move(struct fl_rng *rng, size_t round, float *model, size_t n)
{
    double share = 0.005 / (1 + (double)round / 60);
    double at = 0;

    for (;;) {
        size_t i;

        at += 1 + floor(log(fl_rng_unit(rng)) / log1p(-share));
        if (at >= (double)n) {
            return;
        }
        i = (size_t)at;
        model[i] += (float)((fl_rng_u64(rng) & 1) != 0 ? STEP : -STEP);
        if (fabs((double)model[i]) >= FL_LATTICE_RANGE) {
            model[i] = 0;
        }
    }
}

/* The rounds of a federation; digests[i] names the model before round i + 1. */
static struct fl_versions *rounds_of(const struct fl_layout *layout, float *model,
                                     size_t n_versions, uint8_t (*digests)[FL_DIGEST_SIZE],
                                     size_t *ret_log)
{
    size_t n = fl_layout_count(layout);
    float *old = malloc(n * sizeof(*old));
    struct fl_versions *versions = NULL;
    struct fl_rng rng;
    size_t i;

    check(old != NULL ? FL_OK : FL_ENOMEM, "a model");
    fl_rng_seed(&rng, 1);
    check(fl_versions_digest(layout, model, digests[0]), "digest");
    check(fl_versions_create(digests[0], &versions), "versions");
    for (i = 0; i < n_versions; i++) {
        struct fl_versions *longer = NULL;
        struct fl_step step;

        check(fl_versions_digest(layout, model, digests[i]), "digest");
        (void)memcpy(old, model, n * sizeof(*old));
        move(&rng, i, model, n);
        check(fl_step_make(layout, old, model, &step, NULL), "a step");
        step.round = i + 1;
        *ret_log += fl_blob_len(step.moves);
        check(fl_versions_add(versions, &step, &longer), "versions");
        fl_versions_unref(versions);
        versions = longer;
    }
    free(old);
    return versions;
}

/* --- downloads --- */

struct cost {
    double cpu_s;
    uint64_t bytes;
    size_t memory;
};

static double whole_cpu_s(struct sealed *sealed, const struct fl_blob *model, uint64_t clients)
{
    double from = cpu_s();
    uint64_t i;

    for (i = 0; i < clients; i++) {
        sealed_write(sealed, fl_blob_data(model), fl_blob_len(model));
    }
    return cpu_s() - from;
}

static struct cost differences_cost(struct sealed *sealed, struct fl_differences *d,
                                    const struct fl_blob *model, uint64_t clients,
                                    uint8_t (*digests)[FL_DIGEST_SIZE], uint64_t n_versions)
{
    struct cost cost = {.bytes = 0};
    double from = cpu_s();
    struct fl_rng rng;
    uint64_t i;

    fl_rng_seed(&rng, 2);
    counted_peak = counted;
    cost.memory = counted;
    for (i = 0; i < clients; i++) {
        struct fl_blob *difference = NULL;
        int rv = fl_differences_get(d, digests[fl_rng_below(&rng, n_versions)], &difference);
        const struct fl_blob *sent = difference != NULL ? difference : model;

        check(rv == FL_ENOENT ? FL_OK : rv, "a difference");
        sealed_write(sealed, fl_blob_data(sent), fl_blob_len(sent));
        cost.bytes += fl_blob_len(sent);
        fl_blob_unref(difference);
    }
    cost.cpu_s = cpu_s() - from;
    cost.memory = counted_peak - cost.memory;
    return cost;
}

static void measure(uint64_t clients, uint64_t n_versions)
{
    struct sealed *sealed = sealed_open();
    struct fl_layout *layout = layout_new();
    size_t bytes = fl_layout_count(layout) * sizeof(float);
    uint8_t(*digests)[FL_DIGEST_SIZE] = calloc(n_versions, sizeof(*digests));
    struct fl_differences *d = NULL;
    struct fl_blob *model = NULL;
    struct fl_versions *versions;
    struct cost cost;
    size_t log = 0;
    double whole;

    check(digests != NULL ? fl_blob_create(bytes, &model) : FL_ENOMEM, "a model");
    (void)memset(fl_blob_fill(model), 0, bytes);
    versions = rounds_of(layout, (float *)(void *)fl_blob_fill(model), n_versions, digests, &log);
    check(fl_differences_create(layout, versions, model, &d), "differences");
    cost = differences_cost(sealed, d, model, clients, digests, n_versions);
    whole = whole_cpu_s(sealed, model, clients);
    (void)printf("broadcast: clients=%" PRIu64 " versions=%" PRIu64
                 " model_bytes=%zu log_bytes=%zu mean_bytes=%.0f differences_cpu_s=%.3f "
                 "whole_cpu_s=%.3f ratio=%.2f memory_mb=%.2f budget_mb=%.2f\n",
                 clients, n_versions, bytes, log, (double)cost.bytes / (double)clients, cost.cpu_s,
                 whole, cost.cpu_s / whole, (double)cost.memory / 1e6,
                 (double)fl_differences_budget(d) / 1e6);
    fl_differences_unref(d);
    fl_blob_unref(model);
    free(digests);
    fl_layout_free(layout);
    sealed_close(sealed);
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/broadcast", .rows = rows, .argc = argc, .argv = argv};
    uint64_t clients = 10000;
    uint64_t versions = 300;
    int opt;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        uint64_t *to = opt == 'n' ? &clients : &versions;

        if (fl_str_to_u64(line.value, to) != FL_OK || *to == 0 || *to > 1000000) {
            (void)fprintf(stderr, "broadcast: --%s wants a number from 1 to 1000000\n",
                          opt == 'n' ? "clients" : "versions");
            return 2;
        }
    }
    measure(clients, versions);
    return EXIT_SUCCESS;
}
