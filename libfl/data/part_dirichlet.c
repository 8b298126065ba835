/*
 * Partition method "dirichlet": each class is divided by a Dirichlet draw over the clients
 * (FedLDF).
 */
#include "libfl/data/partition_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/dirichlet.h"

/* Limit of attempts to draw a split in which every client has the minimum. */
#define DIRICHLET_TRIES 10000
/* Limit of clients times classes: 1 GiB of cuts. */
#define DIRICHLET_CELLS ((size_t)1 << 27)

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
 * Class-wise Dirichlet split (FedLDF, non-IID): for each class draw Dirichlet_N(alpha) over the
 * clients and cut the shuffled class accordingly; repeat all draws until every client has the
 * minimum.
 */
int fl__partition_dirichlet(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
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
        return fl_err_set(err, FL_ELIMIT, "%zu clients times %zu classes exceed the limit",
                          n_clients, classes);
    }
    cuts = calloc(classes * (n_clients + 1), sizeof(*cuts));
    sizes = calloc(n_clients, sizeof(*sizes));
    p = calloc(n_clients, sizeof(*p));
    ret->items = malloc(n * sizeof(*ret->items));
    if (cuts == NULL || sizes == NULL || p == NULL || ret->items == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    if (need > n / n_clients) {
        rv = fl_err_set(err, FL_ERANGE,
                        "%zu clients with at least %" PRIu64 " samples each need more than the "
                        "%zu samples there are",
                        n_clients, need, n);
        goto out;
    }
    fl__partition_key(&rng, conf);
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
