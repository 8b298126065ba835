#ifndef FL_DATA_SPLIT_H
#define FL_DATA_SPLIT_H

/*
 * Splits a data set into a federation: which samples are partitioned, which client gets which of
 * them, and which are the client's own test samples. fl-data writes the result into folders, fl-sim
 * uses it in memory; both get the same samples in the same order.
 *
 * Threading: no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"
#include "libfl/data/partition.h"

enum fl_split_standardise {
    FL_STANDARDISE_AS_INPUT, /* with the norm.npy of the input, if present */
    FL_STANDARDISE_NONE,
    FL_STANDARDISE_PIXEL, /* fl_dataset_norm_pixels() over the train part */
    FL_STANDARDISE_CIFAR
};
enum fl_split_pool { FL_POOL_AS_METHOD, FL_POOL_NO, FL_POOL_YES };

/* Option texts of these enumerations, in order; NULL-terminated. */
extern const char *const fl_split_standards[];
extern const char *const fl_split_pools[];

#define FL_SPLIT_MAX_SHARE 0.99
#define FL_SPLIT_MAX_CROP  65536

struct fl_split_conf {
    const struct fl_partition_ops *method;
    struct fl_partition_conf partition; /* clients, seed, options of the method */
    double test_share;                  /* share of each client's samples for its own test set */
    enum fl_split_standardise standardise;
    enum fl_split_pool pool;
    uint64_t crop;        /* 0: none */
    double noise_share;   /* share of a noisy client's training labels that are replaced; 0: none */
    double noise_clients; /* share of the clients that are noisy */
};

/*
 * Defaults: method iid, no clients, seed 0, pooling and standardisation of the method and the
 * input, no label noise (with a share, of all clients).
 */
void fl_split_conf_init(struct fl_split_conf *conf);
/* Set the method and its default test_share. */
void fl_split_conf_method(struct fl_split_conf *conf, const struct fl_partition_ops *method);

/* True when the test part of the input is partitioned too. */
bool fl_split_pools_test(const struct fl_split_conf *conf);

/* The data to partition. */
struct fl_split_set {
    struct fl_dataset *train; /* owned */
    struct fl_dataset *test;  /* owned; the server's test set; NULL: none, or pooled */
    bool pooled;              /* train includes the test part of the input, at its end */
};

/*
 * The data of the parts of a data set, cropped, pooled and standardised; `test` may be NULL. Takes
 * both parts, also on error. `input` is their folder, for messages. FL_ENOENT: no test part to
 * pool; FL_ESHAPE: the parts do not fit each other or the requested changes. On success the caller
 * calls fl_split_set_done().
 */
FL_MUST_CHECK int fl_split_prepare(const char *input, const struct fl_split_conf *conf,
                                   struct fl_dataset *train, struct fl_dataset *test,
                                   struct fl_split_set *ret, struct fl_err *err);
void fl_split_set_done(struct fl_split_set *set);

/*
 * Partition the samples of `train`, which fl_split_prepare() made with the same `conf`. Each
 * client's list ends with its test samples, fl_dataset_split_count(its samples,
 * conf->test_share) of them; both parts are in rising order. Errors are those of
 * fl_partition_make(). On success the caller calls fl_partition_done().
 */
FL_MUST_CHECK int fl_split_share(const struct fl_dataset *train, const struct fl_split_conf *conf,
                                 struct fl_partition *ret, struct fl_err *err);
/*
 * The test split of one client: move its test samples to the end of items[0 … n - 1]. FL_ENOMEM:
 * nothing was moved.
 */
FL_MUST_CHECK int fl_split_own_test(uint64_t seed, size_t client, double share, uint32_t *items,
                                    size_t n, struct fl_err *err);

/*
 * Label noise: other labels for the samples of a partition. Of N clients, noise_clients * N are
 * noisy, a random choice; of the n training samples of each, noise_share * n, a random choice, have
 * one of the other classes of the set, all equally likely. Products are rounded to the nearest
 * whole number, halves up. Test samples keep their labels.
 */
struct fl_split_noise {
    int32_t *labels; /* owned; of all samples of the set; NULL: no noise, those of the set */
    uint32_t *noisy; /* owned; replaced labels of each client; NULL: no noise */
    size_t n_clients, n_labels; /* noisy clients; replaced labels of all of them */
};

/*
 * Draw the label noise of `conf` for a partition that fl_split_share() made of `train` with the
 * same `conf`; labels of `train` are unchanged. FL_ESHAPE: `train` has one class, or values to be
 * predicted; FL_ENOMEM. On success the caller calls fl_split_noise_done().
 */
FL_MUST_CHECK int fl_split_noise(const struct fl_dataset *train, const struct fl_split_conf *conf,
                                 const struct fl_partition *part, struct fl_split_noise *ret,
                                 struct fl_err *err);
void fl_split_noise_done(struct fl_split_noise *noise);
/* Replaced labels of client `k`. */
size_t fl_split_noise_count(const struct fl_split_noise *noise, size_t k);

/* "client-007", with as many digits as `n` clients need, into `out`. */
#define FL_SPLIT_NAME 32
const char *fl_split_name(char out[FL_SPLIT_NAME], size_t k, size_t n);
/*
 * Name of the server's folder beside those of the clients, and of the file that describes the
 * split.
 */
#define FL_SPLIT_SERVER   "server"
#define FL_SPLIT_MANIFEST "split.json"

/* Type of the stored features: "uint8" or "float32". */
const char *fl_dataset_type_name(const struct fl_dataset *ds);

#endif
