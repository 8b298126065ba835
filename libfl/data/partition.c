#include "libfl/data/partition.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/data/dirichlet.h"
#include "libfl/data/pick.h"

/* Draws of a split whose smallest client is too small before we say that it cannot be. */
#define DIRICHLET_TRIES 10000
/* Clients times classes: 1 GiB of cuts. */
#define DIRICHLET_CELLS ((size_t)1 << 27)

static void key(struct fl_rng *rng, const struct fl_partition_conf *conf)
{
    fl_rng_key(rng, conf->seed, FL_RNG_PARTITION, FL_PICK_PARTITION, 0);
}

static int no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "no memory to split the data");
}

/* Numbers 0 … n - 1, or NULL. */
static uint32_t *count_up(size_t n)
{
    uint32_t *items = malloc(n * sizeof(*items));
    size_t i;

    for (i = 0; items != NULL && i < n; i++) {
        items[i] = (uint32_t)i;
    }
    return items;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* IID (ALGORITHMS 11.E): deal a shuffled deck, as equal as it goes or `samples` each. */
static int make_iid(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                    size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    struct fl_rng rng;
    size_t k;

    (void)y;
    (void)classes;
    if (conf->samples > n / conf->n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with %" PRIu64 " samples each need more than the %zu "
                          "samples there are",
                          conf->n_clients, conf->samples, n);
    }
    ret->items = count_up(n);
    if (ret->items == NULL) {
        return no_memory(err);
    }
    key(&rng, conf);
    fl_rng_shuffle(&rng, ret->items, n);
    for (k = 0; k <= conf->n_clients; k++) {
        /* The first n % n_clients clients get one more. */
        size_t extra = k < n % conf->n_clients ? k : n % conf->n_clients;

        ret->start[k] =
            conf->samples > 0 ? k * (size_t)conf->samples : k * (n / conf->n_clients) + extra;
    }
    return FL_OK;
}

/* Stable counting sort of the sample numbers by label; first[c] is where class c starts. */
static int sort_by_label(const int32_t *y, size_t n, size_t classes, uint32_t **ret_sorted,
                         size_t **ret_first)
{
    uint32_t *sorted = malloc(n * sizeof(*sorted));
    size_t *first = calloc(classes + 1, sizeof(*first));
    size_t i;

    if (sorted == NULL || first == NULL) {
        free(sorted);
        free(first);
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        first[y[i] + 1]++;
    }
    for (i = 0; i < classes; i++) {
        first[i + 1] += first[i];
    }
    for (i = 0; i < n; i++) {
        sorted[first[y[i]]++] = (uint32_t)i;
    }
    for (i = classes; i > 0; i--) { /* Each now points behind its class. */
        first[i] = first[i - 1];
    }
    first[0] = 0;
    *ret_sorted = sorted;
    *ret_first = first;
    return FL_OK;
}

/*
 * Shards (ALGORITHMS 11.A, McMahan et al. 2017 section 3): sort stably by label, cut into
 * clients * s shards of equal size (to within one sample), deal a random permutation of them.
 */
static int make_shards(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                       size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    size_t per_client = (size_t)conf->shards_per_client;
    uint32_t *sorted = NULL;
    uint32_t *shards = NULL;
    size_t *first = NULL;
    struct fl_rng rng;
    size_t total;
    size_t used = 0;
    size_t i;
    int rv = FL_OK;

    if (per_client > n / conf->n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with %zu shards each need more than the %zu samples there "
                          "are",
                          conf->n_clients, per_client, n);
    }
    total = conf->n_clients * per_client;
    shards = count_up(total);
    ret->items = malloc(n * sizeof(*ret->items));
    if (shards == NULL || ret->items == NULL ||
        sort_by_label(y, n, classes, &sorted, &first) != FL_OK) {
        rv = no_memory(err);
        goto out;
    }
    key(&rng, conf);
    fl_rng_shuffle(&rng, shards, total);
    for (i = 0; i < total; i++) {
        /* 64 bits hold n * total: both are at most 2^31. */
        size_t from = (size_t)((uint64_t)shards[i] * n / total);
        size_t to = (size_t)(((uint64_t)shards[i] + 1) * n / total);

        if (i % per_client == 0) {
            ret->start[i / per_client] = used;
        }
        (void)memcpy(ret->items + used, sorted + from, (to - from) * sizeof(*sorted));
        used += to - from;
    }
    ret->start[conf->n_clients] = used;
out:
    free(shards);
    free(sorted);
    free(first);
    return rv;
}

/*
 * One draw of cuts: client k gets samples cut[c][k] … cut[c][k + 1] - 1 of class c, where
 * the cuts are the running sums of a Dirichlet draw. Returns the smallest client's size.
 */
static size_t draw_cuts(struct fl_rng *rng, double alpha, const size_t *first, size_t classes,
                        size_t n_clients, double *p, size_t *cuts, size_t *sizes)
{
    size_t least = SIZE_MAX;
    size_t c;
    size_t k;

    (void)memset(sizes, 0, n_clients * sizeof(*sizes));
    for (c = 0; c < classes; c++) {
        size_t *cut = cuts + c * (n_clients + 1);
        double n_c = (double)(first[c + 1] - first[c]);
        double sum = 0.0;

        fl_dirichlet_draw(rng, alpha, p, n_clients);
        cut[0] = 0;
        for (k = 0; k < n_clients; k++) {
            sum += p[k];
            cut[k + 1] = sum * n_c < n_c ? (size_t)(sum * n_c) : (size_t)n_c;
        }
        cut[n_clients] = (size_t)n_c; /* Rounding must not lose the last sample. */
        for (k = 0; k < n_clients; k++) {
            sizes[k] += cut[k + 1] - cut[k];
        }
    }
    for (k = 0; k < n_clients; k++) {
        least = sizes[k] < least ? sizes[k] : least;
    }
    return least;
}

static void deal_cuts(const uint32_t *sorted, const size_t *first, size_t classes,
                      const size_t *cuts, struct fl_partition *ret)
{
    size_t used = 0;
    size_t c;
    size_t k;

    for (k = 0; k < ret->n_clients; k++) {
        ret->start[k] = used;
        for (c = 0; c < classes; c++) {
            const size_t *cut = cuts + c * (ret->n_clients + 1) + k;

            (void)memcpy(ret->items + used, sorted + first[c] + cut[0],
                         (cut[1] - cut[0]) * sizeof(*sorted));
            used += cut[1] - cut[0];
        }
    }
    ret->start[ret->n_clients] = used;
}

/*
 * Class-wise Dirichlet split (ALGORITHMS 11.D): for each class draw Dirichlet_N(alpha) over
 * the clients and cut the shuffled class accordingly; draw all anew until every client has
 * the minimum.
 */
static int make_dirichlet(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                          size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    size_t n_clients = conf->n_clients;
    uint64_t need = conf->min_samples > 0 ? conf->min_samples : 1;
    uint32_t *sorted = NULL;
    size_t *first = NULL;
    size_t *cuts = NULL;
    size_t *sizes = NULL;
    double *p = NULL;
    struct fl_rng rng;
    size_t tries = 0;
    size_t c;
    int rv = FL_OK;

    if (classes > DIRICHLET_CELLS / (n_clients + 1)) {
        return fl_err_set(err, FL_ELIMIT, "%zu clients times %zu classes are too many", n_clients,
                          classes);
    }
    cuts = calloc(classes * (n_clients + 1), sizeof(*cuts));
    sizes = calloc(n_clients, sizeof(*sizes));
    p = calloc(n_clients, sizeof(*p));
    ret->items = malloc(n * sizeof(*ret->items));
    if (cuts == NULL || sizes == NULL || p == NULL || ret->items == NULL ||
        sort_by_label(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = no_memory(err);
        goto out;
    }
    if (need > n / n_clients) {
        rv = fl_err_set(err, FL_ERANGE,
                        "%zu clients with at least %" PRIu64 " samples each need more than the "
                        "%zu samples there are",
                        n_clients, need, n);
        goto out;
    }
    key(&rng, conf);
    while (draw_cuts(&rng, conf->alpha, first, classes, n_clients, p, cuts, sizes) < need) {
        if (++tries == DIRICHLET_TRIES) {
            rv = fl_err_set(err, FL_ERANGE,
                            "no split with alpha %g gave every one of %zu clients at least "
                            "%" PRIu64 " samples in %d tries; raise alpha, lower the minimum or "
                            "take fewer clients",
                            conf->alpha, n_clients, need, DIRICHLET_TRIES);
            goto out;
        }
    }
    for (c = 0; c < classes; c++) {
        fl_rng_shuffle(&rng, sorted + first[c], first[c + 1] - first[c]);
    }
    deal_cuts(sorted, first, classes, cuts, ret);
out:
    free(cuts);
    free(sizes);
    free(p);
    free(sorted);
    free(first);
    return rv;
}

/* clang-format off */
#define COUNT(field, name, lo, hi, def, help) \
    {name, help, FL_PARTITION_COUNT, offsetof(struct fl_partition_conf, field), lo, hi, def}
#define REAL(field, name, lo, hi, def, help) \
    {name, help, FL_PARTITION_REAL, offsetof(struct fl_partition_conf, field), lo, hi, def}

static const struct fl_partition_option iid_options[] = {
    COUNT(samples, "samples", 0, 2147483648.0, 0,
          "samples of each client; 0: all there are, shared equally"),
    {.name = NULL}
};
static const struct fl_partition_option shards_options[] = {
    COUNT(shards_per_client, "shards-per-client", 1, 1000000, 2,
          "shards of (nearly) one label that each client gets"),
    {.name = NULL}
};
static const struct fl_partition_option dirichlet_options[] = {
    REAL(alpha, "alpha", 1e-4, 1e6, 1.0,
         "concentration: small is skewed, large is even"),
    COUNT(min_samples, "min-samples", 1, 2147483648.0, 10,
          "draw again until every client has so many"),
    {.name = NULL}
};

static const struct fl_partition_ops methods[] = {
    {"iid", "a random share of all samples, as equal as it goes", iid_options, make_iid},
    {"shards", "sort by label, cut into shards, deal them out (McMahan et al.)", shards_options,
     make_shards},
    {"dirichlet", "share each class out by a Dirichlet draw over the clients", dirichlet_options,
     make_dirichlet},
};
/* clang-format on */

#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

const struct fl_partition_ops *fl_partition_at(size_t i)
{
    return i < N_METHODS ? &methods[i] : NULL;
}

const struct fl_partition_ops *fl_partition_find(const char *name)
{
    size_t i;

    for (i = 0; i < N_METHODS; i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

static void store(const struct fl_partition_option *option, struct fl_partition_conf *conf,
                  double value)
{
    char *at = (char *)conf + option->offset;
    uint64_t count = (uint64_t)value;

    if (option->type == FL_PARTITION_REAL) {
        (void)memcpy(at, &value, sizeof(value));
    } else {
        (void)memcpy(at, &count, sizeof(count));
    }
}

void fl_partition_conf_init(struct fl_partition_conf *conf)
{
    const struct fl_partition_option *option;
    size_t i;

    *conf = (struct fl_partition_conf){.n_clients = 0};
    for (i = 0; i < N_METHODS; i++) {
        for (option = methods[i].options; option->name != NULL; option++) {
            store(option, conf, option->def);
        }
    }
}

int fl_partition_option_set(const struct fl_partition_option *option,
                            struct fl_partition_conf *conf, const char *text, struct fl_err *err)
{
    bool real = option->type == FL_PARTITION_REAL;
    uint64_t count = 0;
    double value = 0.0;

    if (real ? fl_str_to_double(text, &value) != FL_OK : fl_str_to_u64(text, &count) != FL_OK) {
        return fl_err_set(err, FL_EINVAL, "%s: expected a %s, found '%s'", option->name,
                          real ? "number" : "whole number", text);
    }
    value = real ? value : (double)count;
    if (!(value >= option->min && value <= option->max)) {
        return fl_err_set(err, FL_ERANGE, "%s: expected %.10g to %.10g, found '%s'", option->name,
                          option->min, option->max, text);
    }
    store(option, conf, value);
    return FL_OK;
}

int fl_partition_make(const struct fl_partition_ops *ops, const struct fl_partition_conf *conf,
                      const int32_t *y, size_t n, size_t classes, struct fl_partition *ret,
                      struct fl_err *err)
{
    struct fl_partition part = {.n_clients = conf->n_clients};
    size_t k;
    int rv;

    if (conf->n_clients < 1 || conf->n_clients > FL_PARTITION_MAX_CLIENTS) {
        return fl_err_set(err, FL_ERANGE, "expected 1 to %zu clients, found %zu",
                          FL_PARTITION_MAX_CLIENTS, conf->n_clients);
    }
    if (n < conf->n_clients) {
        return fl_err_set(err, FL_ERANGE, "%zu clients cannot share %zu samples", conf->n_clients,
                          n);
    }
    part.start = calloc(conf->n_clients + 1, sizeof(*part.start));
    if (part.start == NULL) {
        return no_memory(err);
    }
    rv = ops->make(conf, y, n, classes, &part, err);
    if (rv != FL_OK) {
        fl_partition_done(&part);
        return rv;
    }
    for (k = 0; k < part.n_clients; k++) {
        qsort(part.items + part.start[k], fl_partition_count(&part, k), sizeof(*part.items),
              by_number);
    }
    *ret = part;
    return FL_OK;
}

void fl_partition_done(struct fl_partition *part)
{
    free(part->start);
    free(part->items);
    *part = (struct fl_partition){.n_clients = 0};
}
