#include "libfl/data/partition_impl.h"

/* IID: deal shuffled samples, as equally as possible or `samples` per client. */
int fl__partition_iid(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                      size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    struct fl_rng rng;
    size_t k;
    int rv;

    (void)y;
    (void)classes;
    rv = fl__partition_enough(conf, conf->samples, "samples", n, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->items = fl__partition_count_up(n);
    if (ret->items == NULL) {
        return fl__partition_no_memory(err);
    }
    fl__partition_key(&rng, conf);
    fl_rng_shuffle(&rng, ret->items, n);
    for (k = 0; k <= conf->n_clients; k++) {
        /* The first n % n_clients clients get one more. */
        size_t extra = k < n % conf->n_clients ? k : n % conf->n_clients;

        ret->start[k] =
            conf->samples > 0 ? k * (size_t)conf->samples : k * (n / conf->n_clients) + extra;
    }
    return FL_OK;
}
