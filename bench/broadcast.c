/*
 * What clients cost that hold different models, with a broadcast that sends what changed: the
 * server's own code (server/work/differences.c) adds up the moves since each of these models and
 * keeps the result while the newest one is served. Against it the least that downloads of whole
 * models cost: each byte copied once.
 */
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/line.h"
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
    "whole_cpu_s=… ratio=… memory_mb=…\n"
    "log_bytes are the moves of all rounds, as they are kept in memory and on disk; mean_bytes is "
    "the mean "
    "download.\n"
    "differences_cpu_s is the processor time of all downloads, of what changed; whole_cpu_s that "
    "of copying "
    "as many whole\n"
    "models once, ratio the first to the second. memory_mb is the most memory beyond the log and "
    "the "
    "model.\n";

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

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
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

static double whole_cpu_s(const float *model, size_t bytes, uint64_t clients)
{
    uint8_t *copy = malloc(bytes);
    double from;
    uint64_t i;
    volatile uint8_t seen = 0;

    check(copy != NULL ? FL_OK : FL_ENOMEM, "a model");
    from = cpu_s();
    for (i = 0; i < clients; i++) {
        (void)memcpy(copy, model, bytes);
        seen = (uint8_t)(seen + copy[i % bytes]);
    }
    from = cpu_s() - from;
    free(copy);
    return from;
}

static void measure(uint64_t clients, uint64_t n_versions)
{
    struct fl_layout *layout = layout_new();
    size_t bytes = fl_layout_count(layout) * sizeof(float);
    uint8_t(*digests)[FL_DIGEST_SIZE] = calloc(n_versions, sizeof(*digests));
    struct fl_differences *d = NULL;
    struct fl_blob *model = NULL;
    struct fl_versions *versions;
    struct fl_rng rng;
    size_t log = 0;
    size_t scratch = dims[0][0] * dims[0][1] * sizeof(int32_t);
    size_t before;
    size_t most;
    uint64_t sent = 0;
    double spent;
    double whole;
    uint64_t i;

    check(digests != NULL ? fl_blob_create(bytes, &model) : FL_ENOMEM, "a model");
    (void)memset(fl_blob_fill(model), 0, bytes);
    versions = rounds_of(layout, (float *)(void *)fl_blob_fill(model), n_versions, digests, &log);
    before = allocated();
    check(fl_differences_create(layout, versions, model, &d), "differences");
    fl_rng_seed(&rng, 2);
    spent = cpu_s();
    for (i = 0; i < clients; i++) {
        struct fl_blob *difference = NULL;
        int rv = fl_differences_get(d, digests[fl_rng_below(&rng, n_versions)], &difference);

        check(rv == FL_ENOENT ? FL_OK : rv, "a difference");
        sent += difference != NULL ? fl_blob_len(difference) : bytes;
        fl_blob_unref(difference);
    }
    spent = cpu_s() - spent;
    most = allocated() - before + scratch;
    whole = whole_cpu_s((const float *)(const void *)fl_blob_data(model), bytes, clients);
    (void)printf("broadcast: clients=%" PRIu64 " versions=%" PRIu64
                 " model_bytes=%zu log_bytes=%zu mean_bytes=%.0f differences_cpu_s=%.3f "
                 "whole_cpu_s=%.3f ratio=%.2f memory_mb=%.2f\n",
                 clients, n_versions, bytes, log, (double)sent / (double)clients, spent, whole,
                 spent / whole, (double)most / 1e6);
    fl_differences_unref(d);
    fl_blob_unref(model);
    free(digests);
    fl_layout_free(layout);
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
