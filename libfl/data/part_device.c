/*
 * Partition method "device": equal sizes, label shares per client from a Dirichlet draw (IGFL,
 * cross-device).
 */
#include "libfl/data/partition_impl.h"

#include <stdlib.h>

#include "libfl/data/dirichlet.h"

struct pools {
    struct fl_rng rng;
    const uint32_t *sorted; /* by class, each class shuffled */
    const size_t *first;
    size_t classes;
    size_t *left; /* [classes]: samples not yet dealt, from first[c] on */
    size_t total; /* sum of `left` */
    double *p;    /* [classes]: shares of the current client; 0 for an empty pool */
    double sum;   /* of p */
};

/* Set the shares of empty pools to 0 and recompute the sum. */
static void device_renormalise(struct pools *pools)
{
    size_t c;

    pools->sum = 0.0;
    for (c = 0; c < pools->classes; c++) {
        pools->p[c] = pools->left[c] > 0 ? pools->p[c] : 0.0;
        pools->sum += pools->p[c];
    }
}

/* Draw the class of the next sample, among classes with a non-empty pool. */
static size_t draw_class(struct pools *pools)
{
    size_t last = 0;
    size_t c;
    double at;
    uint64_t nth;

    if (pools->sum > 0.0) {
        at = fl_rng_unit(&pools->rng) * pools->sum;
        for (c = 0; c < pools->classes && at >= 0.0; c++) {
            if (pools->p[c] > 0.0) {
                at -= pools->p[c];
                /* also when rounding leaves a remainder after the last class */
                last = c;
            }
        }
        return last;
    }
    /* No share is left: draw uniformly from all remaining samples. */
    nth = fl_rng_below(&pools->rng, pools->total);
    for (c = 0; nth >= pools->left[c]; c++) {
        nth -= pools->left[c];
    }
    return c;
}

static void device_deal(struct pools *pools, double concentration, size_t samples,
                        struct fl_partition *ret)
{
    size_t used = 0;
    size_t k;
    size_t i;

    for (k = 0; k < ret->n_clients; k++) {
        ret->start[k] = used;
        fl_dirichlet_draw(&pools->rng, concentration, pools->p, pools->classes);
        device_renormalise(pools);
        for (i = 0; i < samples; i++) {
            size_t c = draw_class(pools);

            ret->items[used++] = pools->sorted[pools->first[c] + --pools->left[c]];
            pools->total--;
            if (pools->left[c] == 0) {
                device_renormalise(pools);
            }
        }
    }
    ret->start[ret->n_clients] = used;
}

/*
 * Cross-device federation of IGFL (section 5.1, after Hsu et al. 2019): per client draw label
 * shares from Dir(rho q) with the prior q_c = 1/C, then the same number of samples for every
 * client, drawn by class without replacement.
 */
int fl__partition_device(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                         size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    size_t samples = conf->samples > 0 ? (size_t)conf->samples : n / conf->n_clients;
    double share = conf->prior == FL_PARTITION_RHO_OVER_C ? (double)classes : 1.0;
    struct pools pools = {.classes = classes, .total = n};
    uint32_t *sorted = NULL;
    size_t *first = NULL;
    size_t c;
    int rv = fl__partition_enough(conf, samples, "samples", n, err);

    if (rv != FL_OK) {
        return rv;
    }
    ret->items = malloc(n * sizeof(*ret->items));
    pools.left = calloc(classes, sizeof(*pools.left));
    pools.p = calloc(classes, sizeof(*pools.p));
    if (ret->items == NULL || pools.left == NULL || pools.p == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    fl__partition_key(&pools.rng, conf);
    for (c = 0; c < classes; c++) {
        pools.left[c] = first[c + 1] - first[c];
        fl_rng_shuffle(&pools.rng, sorted + first[c], pools.left[c]);
    }
    pools.sorted = sorted;
    pools.first = first;
    device_deal(&pools, conf->rho / share, samples, ret);
out:
    free(pools.left);
    free(pools.p);
    free(sorted);
    free(first);
    return rv;
}
