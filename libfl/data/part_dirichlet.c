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

struct dirichlet {
    size_t classes, n_clients;
    uint32_t *sorted; /* indices of the samples, by class */
    size_t *first;    /* [classes + 1], of each class in `sorted` */
    /* Client k gets samples cuts[c][k] … cuts[c][k + 1] - 1 of class c; [classes][clients + 1]. */
    size_t *cuts;
    size_t *sizes; /* [clients] */
    double *p;     /* [clients], of one draw */
};

/*
 * One draw of cuts, the running sums of a Dirichlet draw. Returns the smallest client's size.
 */
static size_t draw_cuts(struct dirichlet *d, struct fl_rng *rng, double alpha)
{
    size_t least = SIZE_MAX;
    size_t c;
    size_t k;

    (void)memset(d->sizes, 0, d->n_clients * sizeof(*d->sizes));
    for (c = 0; c < d->classes; c++) {
        size_t *cut = d->cuts + c * (d->n_clients + 1);
        double n_c = (double)(d->first[c + 1] - d->first[c]);
        double sum = 0.0;

        fl_dirichlet_draw(rng, alpha, d->p, d->n_clients);
        cut[0] = 0;
        for (k = 0; k < d->n_clients; k++) {
            sum += d->p[k];
            cut[k + 1] = sum * n_c < n_c ? (size_t)(sum * n_c) : (size_t)n_c;
        }
        cut[d->n_clients] = (size_t)n_c; /* Rounding must not lose the last sample. */
        for (k = 0; k < d->n_clients; k++) {
            d->sizes[k] += cut[k + 1] - cut[k];
        }
    }
    for (k = 0; k < d->n_clients; k++) {
        least = d->sizes[k] < least ? d->sizes[k] : least;
    }
    return least;
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
    struct dirichlet d = {.classes = classes, .n_clients = n_clients};
    struct fl_rng rng;
    size_t tries = 0;
    size_t c;
    size_t used = 0;
    size_t k;
    int rv = fl__partition_at_least(conf, need, n, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (classes > DIRICHLET_CELLS / (n_clients + 1)) {
        return fl_err_set(err, FL_ELIMIT, "%zu clients times %zu classes exceed the limit",
                          n_clients, classes);
    }
    d.cuts = calloc(classes * (n_clients + 1), sizeof(*d.cuts));
    d.sizes = calloc(n_clients, sizeof(*d.sizes));
    d.p = calloc(n_clients, sizeof(*d.p));
    ret->items = malloc(n * sizeof(*ret->items));
    if (d.cuts == NULL || d.sizes == NULL || d.p == NULL || ret->items == NULL ||
        fl__partition_sort(y, n, classes, &d.sorted, &d.first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    fl__partition_key(&rng, conf);
    while (draw_cuts(&d, &rng, conf->alpha) < need) {
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
        fl_rng_shuffle(&rng, d.sorted + d.first[c], d.first[c + 1] - d.first[c]);
    }
    for (k = 0; k < ret->n_clients; k++) {
        ret->start[k] = used;
        for (c = 0; c < d.classes; c++) {
            const size_t *cut = d.cuts + c * (ret->n_clients + 1) + k;

            (void)memcpy(ret->items + used, d.sorted + d.first[c] + cut[0],
                         (cut[1] - cut[0]) * sizeof(*d.sorted));
            used += cut[1] - cut[0];
        }
    }
    ret->start[ret->n_clients] = used;
out:
    free(d.cuts);
    free(d.sizes);
    free(d.p);
    free(d.sorted);
    free(d.first);
    return rv;
}
