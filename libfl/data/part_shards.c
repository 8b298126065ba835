/*
 * Partition method "shards": sorted by label, cut into shards, dealt at random (McMahan et al.
 * 2017).
 */
#include "libfl/data/partition_impl.h"

#include <stdlib.h>
#include <string.h>

/*
 * Shards (McMahan et al. 2017 section 3): sort stably by label, cut into
 * clients * s shards of equal size (to within one sample), deal a random permutation of them.
 */
int fl__partition_shards(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
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
    int rv;

    rv = fl__partition_enough(conf, per_client, "shards", n, err);
    if (rv != FL_OK) {
        return rv;
    }
    total = conf->n_clients * per_client;
    shards = fl__partition_count_up(total);
    ret->items = malloc(n * sizeof(*ret->items));
    if (shards == NULL || ret->items == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    fl__partition_key(&rng, conf);
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
