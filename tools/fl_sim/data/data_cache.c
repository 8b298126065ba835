/*
 * Partitions in files, so that a continued run has the partition that it started with: a header,
 * the offset of each client's list, the lists, and a checksum of all of it. Called by one thread at
 * a time for one file; it reads no samples.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "tools/fl_sim/data/data_impl.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "partitions are written in host byte order");

struct header {
    char magic[8];
    uint8_t key[32];
    uint64_t n_clients, n_items;
};
_Static_assert(sizeof(struct header) == 56, "no padding");

static const char magic[8] = {'F', 'L', 'P', 'A', 'R', 'T', '0', '1'};

void fl__data_describe_partition(const struct fl_split_conf *conf, struct fl_writer *w)
{
    const struct fl_partition_option *option;

    fl_writer_printf(w, " %s clients=%zu seed=%" PRIu64 " test_share=%.17g", conf->method->name,
                     conf->partition.n_clients, conf->partition.seed, conf->test_share);
    for (option = conf->method->options; option->name != NULL; option++) {
        const char *at = (const char *)&conf->partition + option->offset;
        uint64_t count;
        double value;

        if (option->type == FL_PARTITION_REAL) {
            (void)memcpy(&value, at, sizeof(value));
            fl_writer_printf(w, " %s=%.17g", option->name, value);
        } else {
            (void)memcpy(&count, at, sizeof(count));
            fl_writer_printf(w, " %s=%" PRIu64, option->name, count);
        }
    }
}

/* Labels, method, options and seed determine a partition completely. */
int fl__data_partition_key(const struct fl_dataset *train, const struct fl_split_conf *conf,
                           struct fl__data_key *ret, struct fl_err *err)
{
    struct fl_buf text;
    struct fl_writer w = {.out = &text};

    fl_buf_init(&text, 4096);
    fl_writer_printf(&w, "n=%zu classes=%zu labels=%016" PRIx64, train->n, train->classes,
                     fl_checksum(train->y, train->n * sizeof(*train->y)));
    fl__data_describe_partition(conf, &w);
    fl_writer_note(&w, fl_sha256(text.data, text.len, ret->sha));
    fl_buf_done(&text);
    if (w.code != FL_OK) {
        return fl_err_set(err, w.code, "partition: %s", fl_strerror(w.code));
    }
    return FL_OK;
}

static int cache_path(const char *folder, const struct fl__data_key *key, char path[FL__DATA_PATH],
                      struct fl_err *err)
{
    char name[2 * 8 + 8];
    size_t n = strlen(fl_hex(name, key->sha, 8));

    (void)snprintf(name + n, sizeof(name) - n, ".part");
    return fl_fs_join(path, FL__DATA_PATH, folder, name) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%.200s…' is too long", folder);
}

static size_t cache_file_size(size_t n_clients, size_t n_items)
{
    return sizeof(struct header) + (n_clients + 1) * sizeof(uint64_t) + n_items * sizeof(uint32_t) +
           sizeof(uint64_t);
}

/* Is this the complete, undamaged file of this partition? */
static bool cache_is_valid(const struct fl_buf *buf, const struct fl__data_key *key,
                           size_t n_clients, size_t n_samples, struct header *ret)
{
    uint64_t sum;

    if (buf->len < cache_file_size(n_clients, 0)) {
        return false;
    }
    (void)memcpy(ret, buf->data, sizeof(*ret));
    (void)memcpy(&sum, buf->data + buf->len - sizeof(sum), sizeof(sum));
    return memcmp(ret->magic, magic, sizeof(magic)) == 0 &&
           memcmp(ret->key, key->sha, sizeof(ret->key)) == 0 && ret->n_clients == n_clients &&
           ret->n_items <= n_samples &&
           buf->len == cache_file_size(n_clients, (size_t)ret->n_items) &&
           sum == fl_checksum(buf->data, buf->len - sizeof(sum));
}

/* Checks the lists, as samples are read by these indices without further checks. */
static bool cache_unpack(const struct fl_buf *buf, const struct header *h, size_t n_samples,
                         struct fl_partition *part)
{
    const uint8_t *at = buf->data + sizeof(*h);
    uint64_t start;
    size_t i;

    for (i = 0; i <= h->n_clients; i++, at += sizeof(start)) {
        (void)memcpy(&start, at, sizeof(start));
        part->start[i] = (size_t)start;
        if (start > h->n_items || (i == 0 ? start != 0 : start <= part->start[i - 1])) {
            return false;
        }
    }
    (void)memcpy(part->items, at, (size_t)h->n_items * sizeof(*part->items));
    for (i = 0; i < h->n_items; i++) {
        if (part->items[i] >= n_samples) {
            return false;
        }
    }
    return part->start[h->n_clients] == h->n_items;
}

int fl__data_read_partition(const char *folder, const struct fl__data_key *key, size_t n_clients,
                            size_t n_samples, struct fl_partition *ret, struct fl_err *err)
{
    struct fl_partition part = {.n_clients = n_clients};
    char path[FL__DATA_PATH];
    struct header h;
    struct fl_buf buf;
    int rv = cache_path(folder, key, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_exists(path) ? fl_fs_read(path, cache_file_size(n_clients, n_samples), &buf, err)
                            : FL_ENOENT;
    if (rv != FL_OK) {
        return rv == FL_ELIMIT ? FL_ENOENT : rv; /* Larger than any possible file. */
    }
    if (cache_is_valid(&buf, key, n_clients, n_samples, &h)) {
        part.start = calloc(n_clients + 1, sizeof(*part.start));
        part.items = calloc((size_t)h.n_items + 1, sizeof(*part.items));
        rv = part.start == NULL || part.items == NULL
                 ? fl_err_set(err, FL_ENOMEM, "out of memory reading '%s'", path)
                 : (cache_unpack(&buf, &h, n_samples, &part) ? FL_OK : FL_ENOENT);
    } else {
        rv = FL_ENOENT;
    }
    fl_buf_done(&buf);
    if (rv != FL_OK) {
        fl_partition_done(&part);
        return rv;
    }
    *ret = part;
    return FL_OK;
}

static int cache_pack(const struct fl__data_key *key, const struct fl_partition *part,
                      struct fl_buf *buf)
{
    struct header h = {.n_clients = part->n_clients, .n_items = part->start[part->n_clients]};
    struct fl_writer w = {.out = buf};
    uint64_t number;
    size_t i;

    (void)memcpy(h.magic, magic, sizeof(magic));
    (void)memcpy(h.key, key->sha, sizeof(h.key));
    fl_writer_note(&w, fl_buf_reserve(buf, cache_file_size(part->n_clients, (size_t)h.n_items)));
    fl_writer_add(&w, &h, sizeof(h));
    for (i = 0; i <= part->n_clients; i++) {
        number = part->start[i];
        fl_writer_add(&w, &number, sizeof(number));
    }
    fl_writer_add(&w, part->items, (size_t)h.n_items * sizeof(*part->items));
    if (w.code != FL_OK) {
        return w.code;
    }
    number = fl_checksum(buf->data, buf->len);
    return fl_buf_add(buf, &number, sizeof(number));
}

int fl__data_write_partition(const char *folder, const struct fl__data_key *key,
                             const struct fl_partition *part, struct fl_err *err)
{
    char path[FL__DATA_PATH];
    struct fl_buf buf;
    int rv = cache_path(folder, key, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_mkdirs(folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_buf_init(&buf, SIZE_MAX);
    rv = cache_pack(key, part, &buf);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "'%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = fl_fs_replace(path, buf.data, buf.len, false, err);
done:
    fl_buf_done(&buf);
    return rv;
}
