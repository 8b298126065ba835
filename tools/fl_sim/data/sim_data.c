/* Open data, shared by trials with equal data (sim_data.h). Any thread: a lock of the cache
   protects references and lists; open data is read-only. */
#include "tools/fl_sim/data/sim_data.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/validation.h"
#include "libfl/base/buf.h"
#include "tools/fl_sim/data/data_impl.h"

struct fl_sim_data_cache {
    pthread_mutex_t lock; /* protects all members below, and the references of open data */
    char *keep;
    struct fl_sim_data *data;
    struct fl_sim_data *idle; /* put back last, without references, for who requests it next */
    struct fl__samples *samples;
};

int fl_sim_data_cache_new(const char *keep, struct fl_sim_data_cache **ret, struct fl_err *err)
{
    struct fl_sim_data_cache *cache = calloc(1, sizeof(*cache));
    char *copy = keep != NULL ? fl_str_dup(keep) : NULL;

    if (cache == NULL || (keep != NULL && copy == NULL) ||
        pthread_mutex_init(&cache->lock, NULL) != 0) {
        free(copy);
        free(cache);
        return fl_err_set(err, FL_ENOMEM, "out of memory for data");
    }
    cache->keep = copy;
    *ret = cache;
    return FL_OK;
}

/* --- called with the lock held --- */

static void data_drop_samples(struct fl_sim_data_cache *cache, struct fl__samples *s)
{
    struct fl__samples **at;

    if (s == NULL || --s->refs > 0) {
        return;
    }
    for (at = &cache->samples; *at != NULL && *at != s; at = &(*at)->next) {
    }
    if (*at == s) {
        *at = s->next;
    }
    fl_split_set_done(&s->set);
    free(s->sums);
    free(s->test_sums);
    free(s->key);
    free(s);
}

static void data_drop(struct fl_sim_data *data)
{
    struct fl_sim_data **at;

    if (data == NULL) {
        return;
    }
    for (at = &data->cache->data; *at != NULL && *at != data; at = &(*at)->next) {
    }
    if (*at == data) {
        *at = data->next;
    }
    fl_dataset_free(data->server_view);
    data_drop_samples(data->cache, data->samples);
    fl_partition_done(&data->part);
    free(data->labels);
    free(data->n_test);
    free(data->names);
    free(data->server_items);
    free(data->key);
    free(data);
}

static void data_drop_idle(struct fl_sim_data_cache *cache)
{
    struct fl_sim_data *idle = cache->idle;

    cache->idle = NULL;
    data_drop(idle);
}

/* How texts and pictures become numbers; texts with their lengths, as they may have any bytes. */
static void data_describe_import(const struct fl_import_conf *import, struct fl_writer *w)
{
    const char *const texts[] = {import->characters, import->target, import->category,
                                 import->drop};
    size_t i;

    fl_writer_printf(w, " import %zu %zu %zu %d %d %d", import->channels, import->window,
                     import->stride, (int)import->regression, (int)import->one_hot,
                     (int)import->missing);
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = texts[i] != NULL ? texts[i] : "";

        fl_writer_printf(w, " %d %zu %s", texts[i] != NULL, strlen(text), text);
    }
}

/* The key of the data: a description of its origin; its first `*ret_samples` bytes describe the
   origin of its samples. */
static int data_make_key(const struct fl_sim_data_conf *conf, struct fl_buf *out,
                         size_t *ret_samples)
{
    const struct fl_split_conf *split = &conf->split;
    const struct fl_synthetic_conf *s = &conf->synthetic;
    struct fl_writer w = {.out = out};

    switch (conf->kind) {
    case FL__DATA_FOLDER:
        fl_writer_printf(&w, "folder %s", conf->path);
        break;
    case FL__DATA_SYNTHETIC:
        fl_writer_printf(&w, "synthetic %zu %.17g %.17g %" PRIu64 " %.17g", s->n_clients, s->alpha,
                         s->beta, s->seed, split->test_share);
        break;
    case FL__DATA_PROGRAM:
        fl_writer_printf(&w, "program %zu", conf->n_clients);
        break;
    case FL__DATA_SET:
        fl_writer_printf(&w, "set %" PRIu64 " %d %d %s", split->crop, (int)split->standardise,
                         (int)fl_split_pools_test(split), conf->path);
        data_describe_import(&conf->import, &w);
        break;
    }
    *ret_samples = out->len;
    if (conf->kind == FL__DATA_SET) {
        fl__data_describe_partition(split, &w);
        fl_writer_printf(&w, " noise=%.17g clients=%.17g", split->noise_share,
                         split->noise_clients);
    }
    return w.code;
}

static char *data_copy_key(const struct fl_buf *key, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy != NULL) {
        (void)memcpy(copy, key->data, len);
        copy[len] = '\0';
    }
    return copy;
}

static struct fl_sim_data *data_find(const struct fl_sim_data_cache *cache,
                                     const struct fl_buf *key)
{
    struct fl_sim_data *data = cache->data;

    while (data != NULL &&
           (strlen(data->key) != key->len || memcmp(data->key, key->data, key->len) != 0))
    {
        data = data->next;
    }
    return data;
}

static struct fl__samples *data_find_samples(const struct fl_sim_data_cache *cache,
                                             const struct fl_buf *key, size_t len)
{
    struct fl__samples *s = cache->samples;

    while (s != NULL && (strlen(s->key) != len || memcmp(s->key, key->data, len) != 0)) {
        s = s->next;
    }
    return s;
}

/* Attaches the samples of `data` with a reference: existing ones, or new ones. */
static int data_take_samples(struct fl_sim_data *data, const struct fl_buf *key, size_t len,
                             bool *ret_new)
{
    struct fl_sim_data_cache *cache = data->cache;
    struct fl__samples *s = data_find_samples(cache, key, len);

    *ret_new = s == NULL;
    if (s == NULL) {
        s = calloc(1, sizeof(*s));
        if (s == NULL) {
            return FL_ENOMEM;
        }
        s->key = data_copy_key(key, len);
        if (s->key == NULL) {
            free(s);
            return FL_ENOMEM;
        }
    }
    s->refs++;
    data->samples = s;
    return FL_OK;
}

static int data_fill(const struct fl_sim_data_conf *conf, bool new_samples,
                     struct fl_sim_data *data, struct fl_err *err)
{
    struct fl__samples *s = data->samples;
    int rv = FL_OK;

    switch (conf->kind) {
    case FL__DATA_FOLDER:
        rv = fl__data_open_folder(conf->path, data, err);
        break;
    case FL__DATA_SYNTHETIC:
        rv = fl__data_open_synthetic(&conf->synthetic, conf->split.test_share, data, err);
        break;
    case FL__DATA_PROGRAM:
        rv = fl__data_open_program(conf, data, err);
        break;
    case FL__DATA_SET:
        rv = new_samples ? fl__data_open_set(conf, s, err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__data_share(&conf->split, data->cache->keep, data, err);
        break;
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (s->sums == NULL) {
        rv = fl__data_sum_samples(s->set.train, &s->sums, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (s->set.test != NULL && s->test_sums == NULL) {
        rv = fl__data_sum_samples(s->set.test, &s->test_sums, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__data_hash(data, err);
}

static int data_open(struct fl_sim_data_cache *cache, const struct fl_sim_data_conf *conf,
                     const struct fl_buf *key, size_t len, struct fl_sim_data **ret,
                     struct fl_err *err)
{
    struct fl_sim_data *data = calloc(1, sizeof(*data));
    bool new_samples = false;
    int rv = FL_ENOMEM;

    /* Only one set of samples that nobody uses is in memory. */
    if (data_find_samples(cache, key, len) == NULL) {
        data_drop_idle(cache);
    }
    if (data != NULL) {
        data->cache = cache;
        data->key = data_copy_key(key, key->len);
        rv = data->key != NULL ? data_take_samples(data, key, len, &new_samples) : FL_ENOMEM;
    }
    if (rv != FL_OK) {
        data_drop(data);
        return fl_err_set(err, rv, "out of memory for data");
    }
    rv = data_fill(conf, new_samples, data, err);
    if (rv != FL_OK) {
        data_drop(data);
        return rv;
    }
    if (new_samples && conf->kind == FL__DATA_SET) {
        data->samples->next = cache->samples;
        cache->samples = data->samples;
    }
    data->next = cache->data;
    cache->data = data;
    *ret = data;
    return FL_OK;
}

static int data_get(struct fl_sim_data_cache *cache, const struct fl_sim_data_conf *conf,
                    struct fl_sim_data **ret, struct fl_err *err)
{
    struct fl_buf key;
    size_t len = 0;
    int rv;

    fl_buf_init(&key, SIZE_MAX);
    rv = data_make_key(conf, &key, &len);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "out of memory for data");
        goto done;
    }
    *ret = data_find(cache, &key);
    if (*ret == NULL) {
        rv = data_open(cache, conf, &key, len, ret, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    (*ret)->refs++;
    cache->idle = cache->idle == *ret ? NULL : cache->idle;
done:
    fl_buf_done(&key);
    return rv;
}

/* Puts the line of the key before an error of opening that is caused by the file. */
static int data_error_at_key(const struct fl_sim_data_conf *conf, int rv,
                             const struct fl_err *inner, struct fl_err *err)
{
    const char *key = conf->kind == FL__DATA_FOLDER ? "path" : "set";

    switch (rv) {
    case FL_ENOENT:
    case FL_EINVAL:
    case FL_EFORMAT:
    case FL_ESHAPE:
    case FL_ENUMERIC:
        return fl_conf_error(fl_conf_get(conf->map, key), err, "%s", fl_err_text(inner, rv));
    case FL_ERANGE: /* The partition method cannot divide these samples. */
    case FL_ELIMIT:
        return fl_conf_error(conf->map, err, "%s", fl_err_text(inner, rv));
    default:
        return fl_err_set(err, rv, "%s", fl_err_text(inner, rv));
    }
}

/* --- public functions --- */

void fl_sim_data_cache_free(struct fl_sim_data_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    data_drop_idle(cache);
    FL_REQUIRE(cache->data == NULL);
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache->keep);
    free(cache);
}

int fl_sim_data_get(struct fl_sim_data_cache *cache, const struct fl_sim_data_conf *conf,
                    uint64_t trial_seed, const struct fl_sim_data **ret, struct fl_err *err)
{
    struct fl_sim_data_conf of_trial = *conf;
    struct fl_sim_data *data = NULL;
    struct fl_err inner = {0};
    int rv;

    if (of_trial.by_trial) {
        of_trial.split.partition.seed = trial_seed;
        of_trial.synthetic.seed = trial_seed;
    }
    (void)pthread_mutex_lock(&cache->lock);
    rv = data_get(cache, &of_trial, &data, &inner);
    (void)pthread_mutex_unlock(&cache->lock);
    if (rv != FL_OK) {
        return data_error_at_key(conf, rv, &inner, err);
    }
    *ret = data;
    return FL_OK;
}

void fl_sim_data_put(const struct fl_sim_data *data)
{
    struct fl_sim_data_cache *cache;
    struct fl_sim_data *at;

    if (data == NULL) {
        return;
    }
    cache = data->cache;
    (void)pthread_mutex_lock(&cache->lock);
    for (at = cache->data; at != data; at = at->next) {
        FL_REQUIRE(at != NULL);
    }
    if (--at->refs == 0) {
        data_drop_idle(cache);
        cache->idle = at;
    }
    (void)pthread_mutex_unlock(&cache->lock);
}

size_t fl_sim_data_clients(const struct fl_sim_data *data)
{
    return data->part.n_clients;
}

const char *fl_sim_data_name(const struct fl_sim_data *data, size_t client)
{
    FL_REQUIRE(client < data->part.n_clients);
    return data->names + client * data->name_size;
}

void fl_sim_data_counts(const struct fl_sim_data *data, size_t client, double validation,
                        uint64_t *ret_train, uint64_t *ret_test)
{
    size_t n_test;
    size_t kept;
    size_t n;

    FL_REQUIRE(client < data->part.n_clients);
    n_test = data->n_test[client];
    n = fl_partition_count(&data->part, client) - n_test;
    kept = fl_train_kept_back(n, n_test > 0, validation);
    *ret_train = n - kept;
    *ret_test = n_test + kept;
}

int fl_sim_data_client(const struct fl_sim_data *data, size_t client, double validation,
                       enum fl_data_augment augment, struct fl_dataset **ret_train,
                       struct fl_dataset **ret_test, struct fl_err *err)
{
    const struct fl_dataset *all = data->samples->set.train;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    const uint32_t *items;
    size_t n_test;
    size_t n;
    int rv;

    FL_REQUIRE(client < data->part.n_clients);
    items = data->part.items + data->part.start[client];
    n_test = data->n_test[client];
    n = fl_partition_count(&data->part, client) - n_test;
    rv = fl_dataset_view(all, items, n, &train, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (n_test > 0) {
        rv = fl_dataset_view(all, items + n, n_test, &test, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (data->labels != NULL) {
        fl_dataset_relabel(train, data->labels);
    }
    rv = fl_train_keep_back(train, validation, &test, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_dataset_set_augment(train, augment, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret_train = train;
    *ret_test = test;
    return FL_OK;
fail:
    fl_dataset_free(train);
    fl_dataset_free(test);
    return rv;
}

const struct fl_dataset *fl_sim_data_server(const struct fl_sim_data *data)
{
    return data->server;
}

const struct fl_dataset *fl_sim_data_samples(const struct fl_sim_data *data)
{
    return data->samples->set.train;
}

const char *fl_sim_data_hash(const struct fl_sim_data *data)
{
    return data->hash;
}

static uint64_t data_set_bytes(const struct fl_dataset *ds)
{
    return ds != NULL ? (uint64_t)ds->n * (ds->dim * fl_dataset_value_size(ds) + sizeof(*ds->y) +
                                           sizeof(uint64_t))
                      : 0;
}

size_t fl_sim_data_skipped(const struct fl_sim_data *data)
{
    return data->samples->skipped;
}

uint64_t fl_sim_data_bytes(const struct fl_sim_data *data)
{
    size_t n = data->part.n_clients;
    uint64_t items = data->part.start[n];

    items += data->server_view != NULL ? data->server_view->n : 0;
    return data_set_bytes(data->samples->set.train) + data_set_bytes(data->samples->set.test) +
           items * sizeof(uint32_t) +
           (data->labels != NULL ? (uint64_t)data->samples->set.train->n * sizeof(*data->labels)
                                 : 0) +
           (uint64_t)n * (sizeof(*data->part.start) + sizeof(*data->n_test) + data->name_size);
}
