/* The digest of open data: equal for equal data, whatever its source. */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/checksum.h"
#include "libfl/model/digest.h"
#include "tools/fl_sim/data/data_impl.h"

/* Maximum length of a piece; each piece is hashed with the digest before it. */
#define PIECE ((size_t)1 << 20)

struct hashing {
    struct fl_buf buf; /* begins with the previous digest */
    int rv;            /* the first error */
};

static void hash_fold(struct hashing *h)
{
    uint8_t digest[32];

    if (h->rv != FL_OK) {
        return;
    }
    h->rv = fl_sha256(h->buf.data, h->buf.len, digest);
    if (h->rv != FL_OK) {
        return;
    }
    fl_buf_clear(&h->buf);
    h->rv = fl_buf_add(&h->buf, digest, sizeof(digest));
}

static void hash_add(struct hashing *h, const void *data, size_t len)
{
    if (h->rv != FL_OK) {
        return;
    }
    h->rv = fl_buf_add(&h->buf, data, len);
    if (h->buf.len >= PIECE) {
        hash_fold(h);
    }
}

static void hash_add_number(struct hashing *h, uint64_t number)
{
    hash_add(h, &number, sizeof(number));
}

int fl__data_sum_samples(const struct fl_dataset *ds, uint64_t **ret, struct fl_err *err)
{
    size_t bytes = ds->dim * fl_dataset_value_size(ds);
    uint64_t *sums = malloc((ds->n + 1) * sizeof(*sums));
    size_t i;

    if (sums == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for the checksums of %zu samples", ds->n);
    }
    for (i = 0; i < ds->n; i++) {
        sums[i] = fl_checksum(fl_dataset_row(ds, i), bytes);
        if (ds->n_targets > 0) { /* Values to be predicted belong to the sample. */
            const uint64_t both[2] = {sums[i], fl_checksum(fl_dataset_target(ds, i),
                                                           ds->n_targets * sizeof(*ds->target))};

            sums[i] = fl_checksum(both, sizeof(both));
        }
    }
    *ret = sums;
    return FL_OK;
}

/* `items` NULL: the first n samples. */
static void hash_add_samples(struct hashing *h, const int32_t *labels, const uint64_t *sums,
                             const uint32_t *items, size_t n)
{
    size_t i;

    hash_add_number(h, n);
    for (i = 0; i < n; i++) {
        size_t at = items != NULL ? items[i] : i;

        hash_add_number(h, sums[at]);
        hash_add(h, &labels[at], sizeof(labels[at]));
    }
}

static void hash_add_shape(struct hashing *h, const struct fl_dataset *ds)
{
    size_t i;

    hash_add(h, fl_dataset_type_name(ds), strlen(fl_dataset_type_name(ds)));
    hash_add_number(h, ds->n_dims);
    for (i = 0; i < 3; i++) {
        hash_add_number(h, ds->dims[i]);
    }
    hash_add_number(h, ds->n_norm);
    if (ds->n_norm > 0) {
        hash_add(h, ds->mean, ds->n_norm * sizeof(*ds->mean));
        hash_add(h, ds->std, ds->n_norm * sizeof(*ds->std));
    }
}

int fl__data_hash(struct fl_sim_data *data, struct fl_err *err)
{
    const struct fl__samples *s = data->samples;
    const int32_t *y = s->set.train->y;
    struct hashing h = {.rv = FL_OK};
    size_t k;

    fl_buf_init(&h.buf, PIECE * 4);
    hash_add_number(&h, data->part.n_clients);
    hash_add_shape(&h, s->set.train);
    for (k = 0; k < data->part.n_clients; k++) {
        const char *name = data->names + k * data->name_size;
        const uint32_t *items = data->part.items + data->part.start[k];
        size_t n_train = fl_partition_count(&data->part, k) - data->n_test[k];

        hash_add(&h, name, strlen(name) + 1);
        hash_add_samples(&h, data->labels != NULL ? data->labels : y, s->sums, items, n_train);
        hash_add_samples(&h, y, s->sums, items + n_train, data->n_test[k]);
    }
    if (data->server == NULL) {
        hash_add_number(&h, 0);
    } else if (data->server == data->server_view) {
        hash_add_shape(&h, data->server);
        hash_add_samples(&h, y, s->sums, data->server_items, data->server->n);
    } else {
        hash_add_shape(&h, data->server);
        hash_add_samples(&h, s->set.test->y, s->test_sums, NULL, data->server->n);
    }
    hash_fold(&h);
    if (h.rv != FL_OK) {
        fl_buf_done(&h.buf);
        return fl_err_set(err, h.rv, "hash of the data: %s", fl_strerror(h.rv));
    }
    (void)fl_hex(data->hash, h.buf.data, 32);
    fl_buf_done(&h.buf);
    return FL_OK;
}
