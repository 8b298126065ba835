/* What the partition methods share: the random key, samples sorted by label, and errors. */
#include <inttypes.h>
#include <stdlib.h>

#include "libfl/data/partition_impl.h"
#include "libfl/data/pick.h"

void fl__partition_key(struct fl_rng *rng, const struct fl_partition_conf *conf)
{
    fl_rng_key(rng, conf->seed, FL_RNG_PARTITION, FL_PICK_PARTITION, 0);
}

int fl__partition_no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "splitting the data: out of memory");
}

uint32_t *fl__partition_count_up(size_t n)
{
    uint32_t *items = malloc(n * sizeof(*items));
    size_t i;

    for (i = 0; items != NULL && i < n; i++) {
        items[i] = (uint32_t)i;
    }
    return items;
}

int fl__partition_enough(const struct fl_partition_conf *conf, uint64_t each, const char *what,
                         size_t n, struct fl_err *err)
{
    if (each > n / conf->n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with %" PRIu64 " %s each need more than the %zu samples "
                          "there are",
                          conf->n_clients, each, what, n);
    }
    return FL_OK;
}

int fl__partition_at_least(const struct fl_partition_conf *conf, uint64_t each, size_t n,
                           struct fl_err *err)
{
    if (each > n / conf->n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with at least %" PRIu64 " samples each need more than the "
                          "%zu samples there are",
                          conf->n_clients, each, n);
    }
    return FL_OK;
}

int fl__partition_sort(const int32_t *y, size_t n, size_t classes, uint32_t **ret_sorted,
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
    for (i = classes; i > 0; i--) { /* Each entry now is the end of its class. */
        first[i] = first[i - 1];
    }
    first[0] = 0;
    *ret_sorted = sorted;
    *ret_first = first;
    return FL_OK;
}
