/*
 * Is the data of an experiment what the folders hold that fl-data made?
 *
 *     same_data EXPERIMENT FOLDER [KEEP [SEED]]
 *
 * Opens the mapping `data:` of the experiment as fl-sim does (partitions are kept in KEEP, SEED is
 * that of the trial), and each client's folder as fl-clientd does, and compares samples, labels,
 * delivered values, test parts and the server's set, bit for bit. Prints "same CLIENTS SAMPLES
 * TESTS SERVER HASH", or what differs first; exits with 1 then, and with 2 for an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/validation.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/data/sim_data.h"

#define VALIDATION 0.3

static int differ(const char *client, const char *what)
{
    (void)printf("different: %s: %s\n", client, what);
    return 1;
}

/* `ours` may be NULL: then `theirs` must be. */
static int compare(const char *client, const struct fl_dataset *ours,
                   const struct fl_dataset *theirs)
{
    size_t bytes;
    float *x;
    uint32_t i;
    int rv = 0;

    if (ours == NULL || theirs == NULL) {
        return ours == theirs ? 0 : differ(client, "one side has no such part");
    }
    if (ours->n != theirs->n || !fl_dataset_alike(ours, theirs)) {
        return differ(client, "number or shape of samples");
    }
    bytes = ours->dim * fl_dataset_value_size(ours);
    x = malloc(2 * ours->dim * sizeof(*x));
    for (i = 0; i < ours->n && rv == 0 && x != NULL; i++) {
        if (memcmp(fl_dataset_row(ours, i), fl_dataset_row(theirs, i), bytes) != 0) {
            rv = differ(client, "a sample");
        }
        if (fl_dataset_label(ours, i) != fl_dataset_label(theirs, i)) {
            rv = differ(client, "a label");
        }
        fl_dataset_gather(ours, &i, 1, x, NULL);
        fl_dataset_gather(theirs, &i, 1, x + ours->dim, NULL);
        if (memcmp(x, x + ours->dim, ours->dim * sizeof(*x)) != 0) {
            rv = differ(client, "a value that is delivered");
        }
    }
    free(x);
    return x != NULL ? rv : 2;
}

/* The part of a folder; NULL when it has none. */
static int open_part(const char *folder, const char *name, const char *part,
                     struct fl_dataset **ret, struct fl_err *err)
{
    char path[4096];
    int rv;

    *ret = NULL;
    if (fl_fs_join(path, sizeof(path), folder, name) != FL_OK) {
        return FL_ELIMIT;
    }
    if (strcmp(part, "test") == 0 && !fl_dataset_has(path, part)) {
        return FL_OK;
    }
    rv = fl_dataset_open(path, part, ret, err);
    return rv;
}

/* As it is, and with a part kept back for validation. */
static int compare_client(const struct fl_sim_data *data, size_t k, const char *folder,
                          double validation, uint64_t sums[2])
{
    const char *name = fl_sim_data_name(data, k);
    struct fl_dataset *ours[2] = {NULL, NULL};
    struct fl_dataset *theirs[2] = {NULL, NULL};
    uint64_t counts[2] = {0, 0};
    struct fl_err err = {0};
    int rv = open_part(folder, name, "train", &theirs[0], &err);

    if (rv == FL_OK) {
        rv = open_part(folder, name, "test", &theirs[1], &err);
    }
    if (rv == FL_OK) {
        rv = fl_train_keep_back(theirs[0], validation, &theirs[1], &err);
    }
    if (rv == FL_OK) {
        rv = fl_sim_data_client(data, k, validation, FL_AUGMENT_NONE, &ours[0], &ours[1], &err);
    }
    if (rv != FL_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, fl_err_text(&err, rv));
        rv = 2;
        goto out;
    }
    fl_sim_data_counts(data, k, validation, &counts[0], &counts[1]);
    if (counts[0] != theirs[0]->n || counts[1] != (theirs[1] != NULL ? theirs[1]->n : 0)) {
        rv = differ(name, "the counts");
    }
    rv = rv != 0 ? rv : compare(name, ours[0], theirs[0]);
    rv = rv != 0 ? rv : compare(name, ours[1], theirs[1]);
    sums[0] += counts[0];
    sums[1] += counts[1];
out:
    fl_dataset_free(ours[0]);
    fl_dataset_free(ours[1]);
    fl_dataset_free(theirs[0]);
    fl_dataset_free(theirs[1]);
    return rv;
}

static int compare_all(const struct fl_sim_data *data, const char *folder)
{
    const struct fl_dataset *server = fl_sim_data_server(data);
    struct fl_dataset *theirs = NULL;
    struct fl_err err = {0};
    uint64_t kept[2] = {0, 0};
    uint64_t sums[2] = {0, 0};
    size_t k;
    int rv = 0;

    for (k = 0; k < fl_sim_data_clients(data) && rv == 0; k++) {
        rv = compare_client(data, k, folder, 0.0, sums);
        rv = rv != 0 ? rv : compare_client(data, k, folder, VALIDATION, kept);
    }
    if (rv != 0) {
        return rv;
    }
    if (open_part(folder, "server", "test", &theirs, &err) != FL_OK) {
        (void)fprintf(stderr, "server: %s\n", err.msg);
        return 2;
    }
    rv = compare("server", server, theirs);
    if (rv == 0) {
        (void)printf("same %zu %" PRIu64 " %" PRIu64 " %zu %s\n", fl_sim_data_clients(data),
                     sums[0], sums[1], theirs != NULL ? theirs->n : 0, fl_sim_data_hash(data));
    }
    fl_dataset_free(theirs);
    return rv;
}

int main(int argc, char **argv)
{
    struct fl_sim_data_cache *cache = NULL;
    struct fl_sim_data_conf *conf = NULL;
    const struct fl_sim_data *data = NULL;
    struct fl_conf_doc *doc = NULL;
    struct fl_err err = {0};
    uint64_t seed = 0;
    int rv;

    if (argc < 3 || argc > 5 || (argc == 5 && fl_str_to_u64(argv[4], &seed) != FL_OK)) {
        (void)fprintf(stderr, "same_data EXPERIMENT FOLDER [KEEP [SEED]]\n");
        return 2;
    }
    rv = fl_conf_load(argv[1], &doc, &err);
    if (rv == FL_OK) {
        rv = fl_sim_data_conf_read(doc, fl_conf_get(fl_conf_root(doc), "data"), ".", &conf, &err);
    }
    if (rv == FL_OK) {
        rv = fl_sim_data_cache_new(argc > 3 ? argv[3] : NULL, &cache, &err);
    }
    if (rv == FL_OK) {
        rv = fl_sim_data_get(cache, conf, seed, &data, &err);
    }
    if (rv == FL_OK) {
        rv = compare_all(data, argv[2]);
    } else {
        (void)fprintf(stderr, "%s\n", fl_err_text(&err, rv));
        rv = 2;
    }
    fl_sim_data_put(data);
    fl_sim_data_cache_free(cache);
    fl_sim_data_conf_free(conf);
    fl_conf_free(doc);
    return rv;
}
