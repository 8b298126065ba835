/*
 * Partition methods "lognormal-sizes" and "dirichlet-sizes": random samples for every client, in
 * numbers that differ (quantity skew; by Dir_N as in Li, Diao, Chen and He, "Federated Learning on
 * Non-IID Data Silos", ICDE 2022). Labels are those of a random sample of the set.
 */
#include "libfl/data/partition_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/data/dirichlet.h"

struct client_weight {
    double weight;
    size_t client;
};

/* Clients of equal weight stay in order, whatever qsort() does. */
static int sizes_by_weight(const void *a, const void *b)
{
    const struct client_weight *x = a;
    const struct client_weight *y = b;

    if (x->weight != y->weight) {
        return x->weight < y->weight ? -1 : 1;
    }
    return x->client < y->client ? -1 : x->client > y->client;
}

/*
 * Divide `n` samples in proportion to the weights, so that every client has at least `least` of
 * them, n >= n_clients * least: a client whose share is below gets `least`, and the others divide
 * the rest by their weights. In rising order of weights that is one pass: when the smallest
 * remaining share is large enough, all others are. `by_weight` is sorted; `above`, of one value
 * more than clients, is overwritten.
 */
static void sizes_divide(const struct client_weight *by_weight, size_t n_clients, size_t n,
                         size_t least, double *above, size_t *sizes)
{
    size_t rest = n;
    size_t left;
    double per_weight;
    size_t i;

    above[n_clients] = 0.0;
    for (i = n_clients; i > 0; i--) {
        above[i - 1] = above[i] + by_weight[i - 1].weight;
    }
    for (i = 0; i < n_clients; i++) {
        if (by_weight[i].weight * (double)rest >= (double)least * above[i]) {
            break;
        }
        sizes[by_weight[i].client] = least;
        rest -= least;
    }
    /* The largest client is above the minimum: at least `least` samples are left for it. */
    FL_REQUIRE(i < n_clients);
    left = rest;
    per_weight = (double)rest / above[i];
    for (; i < n_clients; i++) {
        size_t share = (size_t)(by_weight[i].weight * per_weight);

        /* Rounding of the product neither goes below the minimum nor above what there is. */
        share = share > least ? share : least;
        share = share < left ? share : left;
        sizes[by_weight[i].client] = share;
        left -= share;
    }
    /* Fewer samples than clients are left by rounding down: one each for the largest. */
    for (i = n_clients; left > 0; i = i > 1 ? i - 1 : n_clients) {
        sizes[by_weight[i - 1].client]++;
        left--;
    }
}

/* Weights of the clients: unsorted, the largest is 1 or they sum to 1. */
typedef void sizes_draw_fn(const struct fl_partition_conf *conf, struct fl_rng *rng, double *p);

static void sizes_draw_lognormal(const struct fl_partition_conf *conf, struct fl_rng *rng,
                                 double *p)
{
    double top = -HUGE_VAL;
    size_t k;

    for (k = 0; k < conf->n_clients; k++) {
        p[k] = conf->sigma * fl_rng_normal(rng);
        top = p[k] > top ? p[k] : top;
    }
    for (k = 0; k < conf->n_clients; k++) {
        p[k] = exp(p[k] - top);
    }
}

static void sizes_draw_dirichlet(const struct fl_partition_conf *conf, struct fl_rng *rng,
                                 double *p)
{
    fl_dirichlet_draw(rng, conf->alpha, p, conf->n_clients);
}

static int sizes_partition(const struct fl_partition_conf *conf, sizes_draw_fn *draw, size_t n,
                           struct fl_partition *ret, struct fl_err *err)
{
    size_t n_clients = conf->n_clients;
    uint64_t least = conf->min_samples > 0 ? conf->min_samples : 1;
    struct client_weight *by_weight = NULL;
    double *p = NULL;
    size_t *sizes = NULL;
    struct fl_rng rng;
    size_t k;
    int rv = fl__partition_at_least(conf, least, n, err);

    if (rv != FL_OK) {
        return rv;
    }
    by_weight = calloc(n_clients, sizeof(*by_weight));
    p = calloc(n_clients + 1, sizeof(*p));
    sizes = calloc(n_clients, sizeof(*sizes));
    ret->items = fl__partition_count_up(n);
    if (by_weight == NULL || p == NULL || sizes == NULL || ret->items == NULL) {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    fl__partition_key(&rng, conf);
    draw(conf, &rng, p);
    for (k = 0; k < n_clients; k++) {
        by_weight[k] = (struct client_weight){.weight = p[k], .client = k};
    }
    qsort(by_weight, n_clients, sizeof(*by_weight), sizes_by_weight);
    sizes_divide(by_weight, n_clients, n, (size_t)least, p, sizes);
    fl_rng_shuffle(&rng, ret->items, n);
    for (k = 0; k < n_clients; k++) {
        ret->start[k + 1] = ret->start[k] + sizes[k];
    }
out:
    free(by_weight);
    free(p);
    free(sizes);
    return rv;
}

int fl__partition_lognormal_sizes(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                                  size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    (void)y;
    (void)classes;
    return sizes_partition(conf, sizes_draw_lognormal, n, ret, err);
}

int fl__partition_dirichlet_sizes(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                                  size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    (void)y;
    (void)classes;
    return sizes_partition(conf, sizes_draw_dirichlet, n, ret, err);
}
