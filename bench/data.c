/*
 * What the data of an experiment costs: opening it, opening it again when its partition is kept,
 * and making the views of a client.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/line.h"
#include "bench/scratch.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/data/npy.h"
#include "tools/fl_sim/data/sim_data.h"

static const struct fl_arg rows[] = {
    FL_ARG("keys", '\0', "TEXT", 'k',
           "of the mapping data: (default \"set: mnist, method: shards, clients: 100\")"),
    FL_ARG("samples", '\0', "N", 's',
           "make a data set of N random samples first, which 'set: ./made' names"),
    FL_ARG("values", '\0', "N", 'v', "of a sample of it, bytes (default 64)"),
    FL_ARG("dir", '\0', "FOLDER", 'd',
           "where that and the partition are kept and removed (default $TMPDIR, /tmp)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints a line\n"
    "  data: clients=… samples=… values=… open_ms=… kept_ms=… view_ns=… samples_mb=… "
    "own_mb=… rss_mb=… hash=…\n"
    "open_ms is the time until clients can train, kept_ms the same with the partition "
    "of the run\n"
    "before. view_ns is the mean of making and dropping the views of a client. "
    "samples_mb is what\n"
    "the samples take, own_mb all else of the data, rss_mb the peak of the process.\n";

struct bench {
    const char *keys;
    uint64_t samples, values;
    char dir[4096];
    struct fl_conf_doc *doc;
    struct fl_sim_data_conf *conf;
};

static double ms_since(uint64_t start_ns)
{
    return (double)(fl_clock_ns() - start_ns) / 1e6;
}

static int write_part(const char *folder, const char *name, const uint64_t *shape, size_t n_dims,
                      enum fl_npy_type type, struct fl_err *err)
{
    struct fl_npy_writer *w = NULL;
    uint8_t row[65536];
    char path[4200];
    struct fl_rng rng;
    uint64_t i;
    size_t j;
    int rv = fl_fs_join(path, sizeof(path), folder, name);

    if (rv == FL_OK) {
        rv = fl_npy_create(path, type, shape, n_dims, &w, err);
    }
    fl_rng_seed(&rng, 1);
    for (i = 0; rv == FL_OK && i < shape[0]; i++) {
        int32_t label = (int32_t)fl_rng_below(&rng, 10);

        for (j = 0; n_dims > 1 && j < shape[1]; j++) {
            row[j] = (uint8_t)fl_rng_u64(&rng);
        }
        rv = n_dims > 1 ? fl_npy_add(w, row, shape[1], err) : fl_npy_add(w, &label, 1, err);
    }
    if (rv == FL_OK) {
        rv = fl_npy_finish(w, err);
    } else {
        fl_npy_abort(w);
    }
    return rv;
}

static int make_set(const struct bench *b, struct fl_err *err)
{
    const uint64_t shape[2] = {b->samples, b->values};
    char folder[4200];
    int rv = fl_fs_join(folder, sizeof(folder), b->dir, "made");

    if (rv == FL_OK) {
        rv = fl_fs_mkdirs(folder, err);
    }
    if (rv == FL_OK) {
        rv = write_part(folder, "train-x.npy", shape, 2, FL_NPY_U8, err);
    }
    return rv == FL_OK ? write_part(folder, "train-y.npy", shape, 1, FL_NPY_I32, err) : rv;
}

static int configure(struct bench *b, struct fl_err *err)
{
    char text[1024];
    int n = snprintf(text, sizeof(text), "data: {%s}\n", b->keys);
    int rv;

    if (n < 0 || (size_t)n >= sizeof(text)) {
        return fl_err_set(err, FL_ELIMIT, "--keys: the text is too long");
    }
    rv = fl_conf_parse("--keys", text, (size_t)n, &b->doc, err);
    return rv == FL_OK ? fl_sim_data_conf_read(b->doc, fl_conf_get(fl_conf_root(b->doc), "data"),
                                               b->dir, &b->conf, err)
                       : rv;
}

/* Opens it in a cache of its own, so that nothing is there. */
static int open_once(const struct bench *b, struct fl_sim_data_cache **ret_cache,
                     const struct fl_sim_data **ret, double *ret_ms, struct fl_err *err)
{
    uint64_t start = fl_clock_ns();
    char keep[4200];
    int rv = fl_fs_join(keep, sizeof(keep), b->dir, "keep");

    if (rv == FL_OK) {
        rv = fl_sim_data_cache_new(keep, ret_cache, err);
    }
    if (rv == FL_OK) {
        rv = fl_sim_data_get(*ret_cache, b->conf, 1, ret, err);
    }
    *ret_ms = ms_since(start);
    return rv;
}

static int views(const struct fl_sim_data *data, double *ret_ns, struct fl_err *err)
{
    size_t n = fl_sim_data_clients(data);
    size_t rounds = n < 100000 ? 100000 / n : 1;
    uint64_t start = fl_clock_ns();
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < rounds * n && rv == FL_OK; i++) {
        struct fl_dataset *train = NULL;
        struct fl_dataset *test = NULL;

        rv = fl_sim_data_client(data, i % n, 0.0, FL_AUGMENT_NONE, &train, &test, err);
        fl_dataset_free(train);
        fl_dataset_free(test);
    }
    *ret_ns = ms_since(start) * 1e6 / (double)(rounds * n);
    return rv;
}

static void print(const struct fl_sim_data *data, double open_ms, double kept_ms, double view_ns)
{
    const struct fl_dataset *all = fl_sim_data_samples(data);
    double mb = (double)all->n * (double)(all->dim * fl_dataset_value_size(all)) / 1e6;
    struct rusage used;

    (void)getrusage(RUSAGE_SELF, &used);
    (void)printf("data: clients=%zu samples=%zu values=%zu open_ms=%.1f kept_ms=%.1f view_ns=%.0f "
                 "samples_mb=%.1f own_mb=%.1f rss_mb=%.1f hash=%.16s\n",
                 fl_sim_data_clients(data), all->n, all->dim, open_ms, kept_ms, view_ns, mb,
                 (double)fl_sim_data_bytes(data) / 1e6 - mb, (double)used.ru_maxrss / 1e3,
                 fl_sim_data_hash(data));
}

static int run(struct bench *b, struct fl_err *err)
{
    struct fl_sim_data_cache *cache = NULL;
    const struct fl_sim_data *data = NULL;
    double open_ms = 0.0;
    double kept_ms = 0.0;
    double view_ns = 0.0;
    int rv = b->samples > 0 ? make_set(b, err) : FL_OK;

    if (rv == FL_OK) {
        rv = configure(b, err);
    }
    if (rv == FL_OK) {
        rv = open_once(b, &cache, &data, &open_ms, err);
        fl_sim_data_put(data);
        fl_sim_data_cache_free(cache);
        data = NULL;
        cache = NULL;
    }
    if (rv == FL_OK) {
        rv = open_once(b, &cache, &data, &kept_ms, err);
    }
    if (rv == FL_OK) {
        rv = views(data, &view_ns, err);
    }
    if (rv == FL_OK) {
        print(data, open_ms, kept_ms, view_ns);
    }
    fl_sim_data_put(data);
    fl_sim_data_cache_free(cache);
    fl_sim_data_conf_free(b->conf);
    fl_conf_free(b->doc);
    return rv;
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/data", .rows = rows, .argc = argc, .argv = argv};
    struct bench b = {.keys = "set: mnist, method: shards, clients: 100", .values = 64};
    const char *parent = scratch_parent();
    struct fl_err err = {0};
    bool good = true;
    int c;
    int rv;

    while ((c = bench_next(&line, prints)) != FL_ARGS_END) {
        switch (c) {
        case 'k':
            b.keys = line.value;
            break;
        case 's':
            good = good && fl_str_to_u64(line.value, &b.samples) == FL_OK;
            break;
        case 'v':
            good = good && fl_str_to_u64(line.value, &b.values) == FL_OK && b.values >= 1 &&
                   b.values <= 65536;
            break;
        case 'd':
            parent = line.value;
            break;
        default:
            break;
        }
    }
    if (!good) {
        bench_usage(&line, prints, /* asked= */ false);
    }
    rv = scratch_make(parent, "fl-bench-data", b.dir, sizeof(b.dir), &err);
    if (rv == FL_OK) {
        rv = run(&b, &err);
        scratch_remove(b.dir);
    }
    if (rv != FL_OK) {
        (void)fprintf(stderr, "bench/data: %s\n", fl_err_text(&err, rv));
    }
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
