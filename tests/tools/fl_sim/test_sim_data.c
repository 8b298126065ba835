/* The data of an experiment: what is refused, what is shared, what is kept. */
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/data/data_impl.h"

#define SAMPLES 120
#define TESTS   15

struct rig {
    char dir[T_PATH];  /* with a data set in "set" */
    char keep[T_PATH]; /* for partitions */
    struct fl_conf_doc *doc;
    struct fl_sim_data_conf *conf;
    struct fl_sim_data_cache *cache;
};

/* Samples with their number and a constant; label = number mod 4. */
static void write_part(const char *dir, const char *name, int n)
{
    char text[SAMPLES * 16];
    size_t used = 0;
    int i;

    for (i = 0; i < n; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%d,7,%d\n", i, i % 4);
    }
    t_text(dir, name, text);
}

static void rig_init(struct rig *r)
{
    char set[T_PATH];

    *r = (struct rig){.doc = NULL};
    t_dir(r->dir);
    (void)t_path(set, r->dir, "set");
    (void)t_path(r->keep, r->dir, "keep");
    ck_assert_int_eq(mkdir(set, 0700), 0);
    write_part(set, "train.csv", SAMPLES);
    write_part(set, "test.csv", TESTS);
    ck_assert_int_eq(fl_sim_data_cache_new(r->keep, &r->cache, NULL), FL_OK);
}

/* The mapping `keys`, alone in a file. */
static int configure(struct rig *r, const char *keys, struct fl_err *err)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "rounds: 1\ndata: {%s}\n", keys);

    fl_sim_data_conf_free(r->conf);
    fl_conf_free(r->doc);
    r->conf = NULL;
    r->doc = NULL;
    ck_assert_int_eq(fl_conf_parse("e.yaml", text, (size_t)n, &r->doc, NULL), FL_OK);
    return fl_sim_data_conf_read(r->doc, fl_conf_get(fl_conf_root(r->doc), "data"), r->dir,
                                 &r->conf, err);
}

static void rig_done(struct rig *r)
{
    fl_sim_data_cache_free(r->cache);
    fl_sim_data_conf_free(r->conf);
    fl_conf_free(r->doc);
    t_dir_remove(r->dir);
}

static const struct fl_sim_data *get(struct rig *r, uint64_t seed)
{
    const struct fl_sim_data *data = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_sim_data_get(r->cache, r->conf, seed, &data, &err) == FL_OK, "%s", err.msg);
    return data;
}

static const struct fl_sim_data *open_keys(struct rig *r, const char *keys, uint64_t seed)
{
    struct fl_err err = {0};

    ck_assert_msg(configure(r, keys, &err) == FL_OK, "%s", err.msg);
    return get(r, seed);
}

/* As another run in the same folder: nothing is in memory. */
static const struct fl_sim_data *get_anew(struct rig *r, uint64_t seed)
{
    fl_sim_data_cache_free(r->cache);
    r->cache = NULL;
    ck_assert_int_eq(fl_sim_data_cache_new(r->keep, &r->cache, NULL), FL_OK);
    return get(r, seed);
}

/* --- what is refused --- */

static const struct {
    const char *keys, *says;
} refusals[] = {
    {"", "key 'data': expected either 'path', a folder that fl-data made, or 'set', a data set to "
         "partition, found neither"},
    {"set: ./set, path: ./set", "key 'data': expected either 'path'"},
    {"path: ./none", "key 'data.path': "},
    {"path: ./set",
     "was not made by fl-data: it holds no split.json; a data set is named by 'set'"},
    {"path: ./set, clients: 4",
     "key 'data.clients': cannot be combined with 'path': that folder has"},
    {"set: ./set", "key 'data': the required key 'clients' is missing"},
    {"set: ./set, clients: 0", "key 'data.clients': expected"},
    {"set: ./set, clients: 4, methud: iid", "unknown key 'methud', did you mean 'method'?"},
    {"set: ./set, clients: 4, method: shard",
     "key 'data.method': unknown method 'shard', did you mean 'shards'?; known: iid, shards,"},
    {"set: ./set, clients: 4, alpha: 1", "key 'data.alpha': does not apply to method 'iid'"},
    {"set: ./set, clients: 4, method: dirichlet, alpah: 1", "did you mean 'alpha'?"},
    {"set: ./set, clients: 4, method: dirichlet, alpha: many",
     "key 'data.alpha': expected a number, found 'many'"},
    {"set: ./set, clients: 4, method: device, dirichlet_prior: q",
     "key 'data.dirichlet_prior': expected one of rho_over_C, rho, found 'q'"},
    {"set: ./set, clients: 4, shards-per-client: 2", "did you mean 'shards_per_client'?"},
    {"set: ./set, clients: 4, seed: soon", "key 'data.seed': expected 'trial' or a whole number"},
    {"set: ./set, clients: 4, test_share: 1", "key 'data.test_share': expected"},
    {"set: ./sett, clients: 4", "key 'data.set': folder '"},
    {"set: sett, clients: 4", "did you mean 'set'?"},
    {"set: '', clients: 4", "no data set ''"},
    {"set: synthetic, clients: 4, crop: 3",
     "key 'data.crop': cannot be combined with 'set: synthetic'"},
    {"set: ./set, clients: 4, noise_share: 1.5", "key 'data.noise_share': expected"},
    {"set: ./set, clients: 4, noise_share: 0.1, noise_clients: -0.5",
     "key 'data.noise_clients': expected"},
    {"set: ./set, clients: 4, noise_clients: 0.5", "key 'data.noise_clients': needs noise_share"},
    {"set: synthetic, clients: 4, noise_share: 0.1",
     "key 'data.noise_share': cannot be combined with 'set: synthetic'"},
    {"set: ./set, clients: 4, method: lognormal-sizes, alpha: 1",
     "key 'data.alpha': does not apply to method 'lognormal-sizes'"},
    {"set: synthetic, clients: 4, beta: -1", "key 'data.beta': expected a number from 0 to 1e6"},
    {"set: synthetic", "the required key 'clients' is missing"},
};

TEST_CASE("refused", NULL, NULL);

TEST_EACH(what_cannot_be_is_refused_with_its_line_before_data_is_opened, ARRAY_LEN(refusals))
{
    struct fl_err err = {0};
    struct rig r;

    rig_init(&r);
    ck_assert_int_eq(configure(&r, refusals[_i].keys, &err), FL_ECONF);
    ck_assert_msg(strncmp(err.msg, "e.yaml:2: ", 10) == 0 &&
                      strstr(err.msg, refusals[_i].says) != NULL,
                  "%s", err.msg);
    rig_done(&r);
}

static const struct {
    const char *keys, *says;
} misfits[] = {
    {"set: ./set, clients: 121", "key 'data': 121 clients cannot share 120 samples"},
    {"set: ./set, clients: 10, samples: 20", "need more than the 120 samples there are"},
    {"set: ./set, clients: 4, method: silo, shards_per_client: 5", "shards of different labels"},
    {"set: ./set, clients: 4, crop: 2", "key 'data.set': '"},
    {"set: ./empty, clients: 4", "contains no train data; looked for"},
    {"set: ./empty, clients: 4, pool: yes", "contains no train data; looked for"},
    {"set: ./one, clients: 4, noise_share: 0.1", "expected at least 2 classes, found 1"},
    {"set: synthetic, clients: 10001", "key 'data': expected 1 to 10000 clients, found 10001"},
};

TEST_EACH(data_that_does_not_fit_is_refused_with_its_line, ARRAY_LEN(misfits))
{
    const struct fl_sim_data *data = NULL;
    struct fl_err err = {0};
    char path[T_PATH];
    struct rig r;

    rig_init(&r);
    ck_assert_int_eq(mkdir(t_path(path, r.dir, "empty"), 0700), 0);
    ck_assert_int_eq(mkdir(t_path(path, r.dir, "one"), 0700), 0);
    t_text(path, "train.csv", "1,0\n2,0\n3,0\n4,0\n");
    ck_assert_msg(configure(&r, misfits[_i].keys, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_sim_data_get(r.cache, r.conf, 0, &data, &err), FL_ECONF);
    ck_assert_msg(strncmp(err.msg, "e.yaml:2: ", 10) == 0 &&
                      strstr(err.msg, misfits[_i].says) != NULL,
                  "%s", err.msg);
    rig_done(&r);
}

TEST(an_experiment_without_data_is_refused)
{
    struct fl_err err = {0};
    struct rig r;

    rig_init(&r);
    ck_assert_int_eq(fl_conf_parse("e.yaml", "rounds: 1\n", 10, &r.doc, NULL), FL_OK);
    ck_assert_int_eq(fl_sim_data_conf_read(r.doc, NULL, r.dir, &r.conf, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "the required section 'data' is missing"));
    rig_done(&r);
}

TEST(every_key_stands_in_the_documents)
{
    const char *source = getenv("FL_SRCDIR");
    const struct fl_opt_spec *spec;
    struct fl_buf page;
    char path[T_PATH];
    char row[64];

    (void)t_path(path, source != NULL ? source : ".", "docs/simulation.md");
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &page, NULL), FL_OK);
    ck_assert_int_eq(fl_buf_add(&page, "", 1), FL_OK);
    for (spec = fl_sim_data_options; spec->name != NULL; spec++) {
        (void)snprintf(row, sizeof(row), "\n| `%s` |", spec->name);
        ck_assert_msg(strstr((const char *)page.data, row) != NULL, "%s", spec->name);
    }
    fl_buf_done(&page);
}

/* --- what clients have --- */

TEST_CASE("clients", NULL, NULL);

TEST(every_sample_goes_to_one_client)
{
    const struct fl_sim_data *data;
    bool seen[SAMPLES] = {false};
    uint64_t n[2] = {0, 0};
    uint32_t i;
    size_t k;
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, "set: ./set, clients: 7, test_share: 0.25", 0);
    ck_assert_uint_eq(fl_sim_data_clients(data), 7);
    ck_assert_str_eq(fl_sim_data_name(data, 6), "client-006");
    for (k = 0; k < 7; k++) {
        struct fl_dataset *part[2] = {NULL, NULL};
        size_t p;

        fl_sim_data_counts(data, k, 0.0, &n[0], &n[1]);
        ck_assert_int_eq(
            fl_sim_data_client(data, k, 0.0, FL_AUGMENT_NONE, &part[0], &part[1], NULL), FL_OK);
        for (p = 0; p < 2; p++) {
            ck_assert_uint_eq(part[p]->n, n[p]);
            ck_assert_uint_gt(n[p], 0);
            for (i = 0; i < part[p]->n; i++) {
                float x[2];

                fl_dataset_gather(part[p], &i, 1, x, NULL);
                ck_assert(!seen[(size_t)x[0]]);
                seen[(size_t)x[0]] = true;
            }
            fl_dataset_free(part[p]);
        }
    }
    for (i = 0; i < SAMPLES; i++) {
        ck_assert(seen[i]);
    }
    ck_assert_uint_eq(fl_sim_data_server(data)->n, TESTS);
    fl_sim_data_put(data);
    rig_done(&r);
}

TEST_EACH(a_validation_part_is_for_those_without_a_test_part, 2)
{
    static const char *const keys[] = {"set: ./set, clients: 5",
                                       "set: ./set, clients: 5, test_share: 0.25"};
    const struct fl_sim_data *data;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    uint64_t n[2] = {0, 0};
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, keys[_i], 0);
    fl_sim_data_counts(data, 1, 0.5, &n[0], &n[1]);
    ck_assert_int_eq(fl_sim_data_client(data, 1, 0.5, FL_AUGMENT_NONE, &train, &test, NULL), FL_OK);
    ck_assert_uint_eq(n[0], _i == 0 ? 12 : 18);
    ck_assert_uint_eq(n[1], _i == 0 ? 12 : 6);
    ck_assert_uint_eq(train->n, n[0]);
    ck_assert_uint_eq(test->n, n[1]);
    fl_dataset_free(train);
    fl_dataset_free(test);
    if (_i == 0) {
        fl_sim_data_counts(data, 1, 0.0, &n[0], &n[1]);
        ck_assert_uint_eq(n[1], 0);
        ck_assert_int_eq(fl_sim_data_client(data, 1, 0.0, FL_AUGMENT_NONE, &train, &test, NULL),
                         FL_OK);
        ck_assert_ptr_null(test);
        fl_dataset_free(train);
    }
    ck_assert_int_eq(fl_sim_data_client(data, 1, 0.0, FL_AUGMENT_FLIP_CROP, &train, &test, NULL),
                     FL_ESHAPE); /* No pictures. */
    fl_sim_data_put(data);
    rig_done(&r);
}

TEST(after_pooling_the_server_has_the_clients_test_samples)
{
    const struct fl_sim_data *data;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    const struct fl_dataset *server;
    size_t at = 0;
    size_t k;
    size_t i;
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, "set: ./set, clients: 4, pool: yes, test_share: 0.2", 0);
    server = fl_sim_data_server(data);
    ck_assert_uint_eq(fl_sim_data_samples(data)->n, SAMPLES + TESTS);
    for (k = 0; k < 4; k++) {
        ck_assert_int_eq(fl_sim_data_client(data, k, 0.0, FL_AUGMENT_NONE, &train, &test, NULL),
                         FL_OK);
        for (i = 0; i < test->n; i++, at++) {
            ck_assert_ptr_eq(fl_dataset_row(test, i), fl_dataset_row(server, at));
        }
        fl_dataset_free(train);
        fl_dataset_free(test);
    }
    ck_assert_uint_eq(at, server->n);
    fl_sim_data_put(data);
    data = open_keys(&r, "set: ./set, clients: 4, pool: yes", 0);
    ck_assert_ptr_null(fl_sim_data_server(data));
    fl_sim_data_put(data);
    rig_done(&r);
}

/* Counts labels of a part that are not those of write_part(). */
static size_t noisy_labels(const struct fl_dataset *part)
{
    size_t n = 0;
    uint32_t i;

    for (i = 0; part != NULL && i < part->n; i++) {
        float x[2];
        int32_t y;

        fl_dataset_gather(part, &i, 1, x, &y);
        n += y != (int32_t)x[0] % 4;
    }
    return n;
}

#define NOISE "set: ./set, clients: 6, test_share: 0.25, noise_share: 0.4, noise_clients: 0.5"

/* 20 samples each, 15 of them for training; half of the clients have 6 other labels. */
TEST(training_labels_have_noise_and_test_labels_have_none)
{
    const struct fl_sim_data *data;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    size_t noisy = 0;
    size_t k;
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, NOISE ", pool: no", 0);
    for (k = 0; k < 6; k++) {
        size_t n;

        ck_assert_int_eq(fl_sim_data_client(data, k, 0.0, FL_AUGMENT_NONE, &train, &test, NULL),
                         FL_OK);
        n = noisy_labels(train);
        ck_assert(n == 0 || n == 6);
        noisy += n > 0;
        ck_assert_uint_eq(noisy_labels(test), 0);
        fl_dataset_free(train);
        fl_dataset_free(test);
    }
    ck_assert_uint_eq(noisy, 3);
    ck_assert_uint_eq(noisy_labels(fl_sim_data_server(data)), 0);
    ck_assert_uint_eq(noisy_labels(fl_sim_data_samples(data)), 0);
    fl_sim_data_put(data);
    rig_done(&r);
}

/* Half of the training samples of a client without a test part: their labels are of its data. */
TEST(a_validation_part_has_the_noise_of_the_samples_that_it_takes)
{
    const struct fl_sim_data *data;
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, "set: ./set, clients: 6, noise_share: 1", 0);
    ck_assert_int_eq(fl_sim_data_client(data, 2, 0.5, FL_AUGMENT_NONE, &train, &test, NULL), FL_OK);
    ck_assert_uint_eq(noisy_labels(train), 10);
    ck_assert_uint_eq(noisy_labels(test), 10);
    fl_dataset_free(train);
    fl_dataset_free(test);
    fl_sim_data_put(data);
    rig_done(&r);
}

TEST(noise_shares_samples_with_data_without_it_and_changes_the_hash)
{
    const struct fl_sim_data *data[3];
    char folder[FL__DATA_PATH];
    struct fl_err err = {0};
    bool whole;
    struct rig r;

    rig_init(&r);
    data[0] = open_keys(&r, "set: ./set, clients: 6, test_share: 0.25", 0);
    ck_assert_int_eq(fl_sim_data_conf_folder(r.conf, NULL, folder, sizeof(folder), &whole, NULL),
                     FL_OK);
    data[1] = open_keys(&r, NOISE, 0);
    data[2] = open_keys(&r, NOISE ", seed: 1", 0);
    ck_assert_ptr_eq(fl_sim_data_samples(data[0]), fl_sim_data_samples(data[1]));
    ck_assert_str_ne(fl_sim_data_hash(data[0]), fl_sim_data_hash(data[1]));
    ck_assert_str_ne(fl_sim_data_hash(data[1]), fl_sim_data_hash(data[2]));
    ck_assert_uint_eq(fl_sim_data_bytes(data[1]) - fl_sim_data_bytes(data[0]),
                      SAMPLES * sizeof(int32_t));
    /* A program would read the labels of the set. */
    ck_assert_int_eq(fl_sim_data_conf_folder(r.conf, NULL, folder, sizeof(folder), &whole, &err),
                     FL_ECONF);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "key 'data.noise_share': a program reads the labels of "));
    fl_sim_data_put(data[2]);
    fl_sim_data_put(data[1]);
    fl_sim_data_put(data[0]);
    rig_done(&r);
}

/* --- who shares it --- */

TEST(open_data_is_shared_and_partitions_share_their_samples)
{
    const struct fl_sim_data *a;
    const struct fl_sim_data *b;
    const struct fl_sim_data *c;
    struct rig r;

    rig_init(&r);
    a = open_keys(&r, "set: ./set, clients: 7, seed: trial", 1);
    ck_assert(fl_sim_data_conf_by_trial(r.conf));
    b = get(&r, 1);
    c = get(&r, 2);
    ck_assert_ptr_eq(a, b);
    ck_assert_ptr_ne(a, c);
    ck_assert_ptr_eq(fl_sim_data_samples(a), fl_sim_data_samples(c));
    ck_assert_str_ne(fl_sim_data_hash(a), fl_sim_data_hash(c));
    fl_sim_data_put(b);
    fl_sim_data_put(a);
    b = open_keys(&r, "set: ./set, clients: 7, method: dirichlet, alpha: 5, seed: 2", 1);
    ck_assert(!fl_sim_data_conf_by_trial(r.conf));
    ck_assert_ptr_eq(fl_sim_data_samples(b), fl_sim_data_samples(c));
    ck_assert_ptr_eq(get(&r, 9), b); /* The trial's seed has no say. */
    fl_sim_data_put(b);
    a = open_keys(&r, "set: ./set, clients: 7, standardise: pixel, seed: 2", 1);
    ck_assert_ptr_ne(fl_sim_data_samples(a), fl_sim_data_samples(c));
    ck_assert_str_ne(fl_sim_data_hash(a), fl_sim_data_hash(c));
    fl_sim_data_put(a);
    fl_sim_data_put(b);
    fl_sim_data_put(c);
    rig_done(&r);
}

TEST(data_that_was_put_back_is_kept_until_other_samples_are_read)
{
    const struct fl_sim_data *data;
    struct fl_err err = {0};
    char train[T_PATH];
    char set[T_PATH];
    struct rig r;

    rig_init(&r);
    (void)t_path(set, r.dir, "other");
    ck_assert_int_eq(mkdir(set, 0700), 0);
    write_part(set, "train.csv", SAMPLES);
    fl_sim_data_put(open_keys(&r, "set: ./set, clients: 7", 1));
    ck_assert_int_eq(unlink(t_path(train, r.dir, "set/train.csv")), 0);
    fl_sim_data_put(open_keys(&r, "set: ./set, clients: 7", 1)); /* not read again */
    fl_sim_data_put(open_keys(&r, "set: ./set, clients: 5", 1)); /* with the samples of the last */
    data = open_keys(&r, "set: ./other, clients: 7, test_share: 0.1", 1);
    ck_assert_int_eq(configure(&r, "set: ./set, clients: 7", &err), FL_OK);
    ck_assert_int_ne(fl_sim_data_get(r.cache, r.conf, 1, &data, &err), FL_OK);
    fl_sim_data_put(data);
    rig_done(&r);
}

struct reader {
    struct rig *r;
    pthread_t thread;
    uint64_t samples;
};

static void *read_all(void *arg)
{
    struct reader *reader = arg;
    uint64_t seed;
    size_t k;

    for (seed = 0; seed < 20; seed++) {
        const struct fl_sim_data *data = get(reader->r, seed % 3);

        for (k = 0; k < fl_sim_data_clients(data); k++) {
            struct fl_dataset *train = NULL;
            struct fl_dataset *test = NULL;

            ck_assert_int_eq(
                fl_sim_data_client(data, k, 0.25, FL_AUGMENT_NONE, &train, &test, NULL), FL_OK);
            reader->samples += train->n + test->n;
            fl_dataset_free(train);
            fl_dataset_free(test);
        }
        fl_sim_data_put(data);
    }
    return NULL;
}

TEST(many_threads_use_one_cache)
{
    struct reader readers[4];
    struct rig r;
    size_t i;

    rig_init(&r);
    ck_assert_int_eq(configure(&r, "set: ./set, clients: 7, seed: trial", NULL), FL_OK);
    for (i = 0; i < 4; i++) {
        readers[i] = (struct reader){.r = &r};
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);
        ck_assert_uint_eq(readers[i].samples, 20 * SAMPLES);
    }
    rig_done(&r);
}

/* --- what is kept --- */

/* The only file of the folder for partitions. */
static void kept_file(const struct rig *r, char path[T_PATH])
{
    const struct dirent *entry;
    DIR *dir = opendir(r->keep);
    int n = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)t_path(path, r->keep, entry->d_name);
            n++;
        }
    }
    (void)closedir(dir);
    ck_assert_int_eq(n, 1);
}

#define KEPT "set: ./set, clients: 6, test_share: 0.1, method: dirichlet, alpha: 3"

TEST_CASE("kept", NULL, NULL);

TEST(a_partition_that_was_kept_is_taken_again)
{
    const struct fl_sim_data *data;
    struct fl_partition other = {.n_clients = 0};
    struct fl__data_key key;
    char hash[FL__DATA_HASH];
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, KEPT, 0);
    ck_assert_int_eq(fl_str_copy(hash, sizeof(hash), fl_sim_data_hash(data)), FL_OK);
    /* Put one in its place that the method did not make: the file decides. */
    ck_assert_int_eq(fl__data_partition_key(fl_sim_data_samples(data), &r.conf->split, &key, NULL),
                     FL_OK);
    r.conf->split.partition.seed++;
    ck_assert_int_eq(fl_split_share(fl_sim_data_samples(data), &r.conf->split, &other, NULL),
                     FL_OK);
    r.conf->split.partition.seed--;
    fl_sim_data_put(data);
    data = get_anew(&r, 0);
    ck_assert_str_eq(fl_sim_data_hash(data), hash);
    fl_sim_data_put(data);
    ck_assert_int_eq(fl__data_write_partition(r.keep, &key, &other, NULL), FL_OK);
    data = get_anew(&r, 0);
    ck_assert_str_ne(fl_sim_data_hash(data), hash);
    fl_sim_data_put(data);
    fl_partition_done(&other);
    rig_done(&r);
}

enum { FIRST_BYTE, A_START, AN_ITEM, LAST_BYTE, CUT, LONGER, EMPTY, N_DAMAGES };

TEST_EACH(a_damaged_partition_is_made_anew, N_DAMAGES)
{
    const struct fl_sim_data *data;
    char hash[FL__DATA_HASH];
    struct fl_buf before;
    struct fl_buf after;
    char path[T_PATH];
    size_t len;
    struct rig r;

    rig_init(&r);
    data = open_keys(&r, KEPT, 0);
    ck_assert_int_eq(fl_str_copy(hash, sizeof(hash), fl_sim_data_hash(data)), FL_OK);
    fl_sim_data_put(data);
    kept_file(&r, path);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &before, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &after, NULL), FL_OK);
    len = _i == CUT ? after.len - 5 : (_i == EMPTY ? 0 : after.len);
    if (_i == LONGER) {
        ck_assert_int_eq(fl_buf_reserve(&after, 4000), FL_OK);
        (void)memset(after.data + len, 0, 4000);
        len += 4000;
    } else if (_i < CUT) {
        const size_t places[] = {0, 60, len - 20, len - 1};

        after.data[places[_i]] ^= 0x10;
    }
    ck_assert_int_eq(fl_fs_replace(path, after.data, len, false, NULL), FL_OK);
    fl_buf_done(&after);
    data = get_anew(&r, 0);
    ck_assert_str_eq(fl_sim_data_hash(data), hash);
    fl_sim_data_put(data);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &after, NULL), FL_OK);
    ck_assert_uint_eq(after.len, before.len);
    ck_assert_mem_eq(after.data, before.data, before.len);
    fl_buf_done(&before);
    fl_buf_done(&after);
    rig_done(&r);
}

/* Lists that cannot be, behind a checksum that is right: of another program, or of somebody else.
 */
TEST_EACH(lists_that_cannot_be_are_not_believed, 5)
{
    static const size_t starts[][3] = {{0, 3, 6}, {0, 6, 6}, {1, 3, 6}, {0, 7, 6}, {0, 3, 5}};
    size_t start[3];
    uint32_t items[7] = {0, 1, 2, 3, 4, 9, 0};
    struct fl_partition part = {.n_clients = 2, .start = start, .items = items};
    struct fl_partition got = {.n_clients = 0};
    struct fl__data_key key = {.sha = {1}};
    struct fl__data_key other = {.sha = {1, [31] = 2}}; /* The name of the file is the same. */
    struct rig r;
    bool sound = _i == 0 || _i == 4; /* The last says itself how many items it has. */

    rig_init(&r);
    (void)memcpy(start, starts[_i], sizeof(start));
    ck_assert_int_eq(fl__data_write_partition(r.keep, &key, &part, NULL), FL_OK);
    ck_assert_int_eq(fl__data_read_partition(r.keep, &key, 2, 10, &got, NULL),
                     sound ? FL_OK : FL_ENOENT);
    fl_partition_done(&got);
    if (_i == 0) {
        ck_assert_int_eq(fl__data_read_partition(r.keep, &key, 2, 9, &got, NULL), FL_ENOENT);
        ck_assert_int_eq(fl__data_read_partition(r.keep, &key, 3, 10, &got, NULL), FL_ENOENT);
        ck_assert_int_eq(fl__data_read_partition(r.keep, &other, 2, 10, &got, NULL), FL_ENOENT);
    }
    rig_done(&r);
}

TEST(a_folder_for_partitions_that_cannot_be_made_is_an_error)
{
    const struct fl_sim_data *data = NULL;
    struct fl_err err = {0};
    struct rig r;

    rig_init(&r);
    t_text(r.dir, "keep", "not a folder");
    ck_assert_int_eq(configure(&r, KEPT, NULL), FL_OK);
    ck_assert_int_ne(fl_sim_data_get(r.cache, r.conf, 0, &data, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "keep"));
    rig_done(&r);
}
