#ifndef FL_DATA_SPLIT_H
#define FL_DATA_SPLIT_H

/*
 * From a data set to a federation: what is shared out, who gets which samples, which of them are
 * for the client's own test. fl-data writes the result into folders, fl-sim works with it in
 * memory; both get the same samples in the same order.
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
    FL_STANDARDISE_AS_INPUT, /* by the norm.npy of the input, if it has one */
    FL_STANDARDISE_NONE,
    FL_STANDARDISE_PIXEL, /* fl_dataset_norm_pixels() over what is shared out */
    FL_STANDARDISE_CIFAR
};
enum fl_split_pool { FL_POOL_AS_METHOD, FL_POOL_NO, FL_POOL_YES };

/* The words for them, in their order; NULL ends them. */
extern const char *const fl_split_standards[];
extern const char *const fl_split_pools[];

#define FL_SPLIT_MAX_SHARE 0.99
#define FL_SPLIT_MAX_CROP  65536

struct fl_split_conf {
    const struct fl_partition_ops *method;
    struct fl_partition_conf partition; /* clients, seed, options of the method */
    double test_share;                  /* of each client's samples, for its own test */
    enum fl_split_standardise standardise;
    enum fl_split_pool pool;
    uint64_t crop; /* 0: none */
};

/* The defaults: method iid, no client and seed 0, what methods and input do by themselves. */
void fl_split_conf_init(struct fl_split_conf *conf);
/* `method`, and the share that it tests on. */
void fl_split_conf_method(struct fl_split_conf *conf, const struct fl_partition_ops *method);

/* Whether the test part of an input is shared out too. */
bool fl_split_pools_test(const struct fl_split_conf *conf);

/* What is shared out. */
struct fl_split_set {
    struct fl_dataset *train; /* owned */
    struct fl_dataset *test;  /* the server's, owned; NULL when there is none or it was pooled */
    bool pooled;              /* train holds the test part of the input too, behind its own */
};

/*
 * Open the folder `input` (fl_dataset_open()), crop, pool and standardise. FL_ENOENT when there is
 * no train part, or no test part to pool; FL_ESHAPE when the parts do not fit each other or what
 * is to be done with them. On success the caller calls fl_split_set_done().
 */
FL_MUST_CHECK int fl_split_open(const char *input, const struct fl_split_conf *conf,
                                struct fl_split_set *ret, struct fl_err *err);
void fl_split_set_done(struct fl_split_set *set);

/*
 * Share the samples of `train` out, which fl_split_open() made with the same `conf`. Each client's
 * list ends with its test samples, fl_dataset_split_count(its samples, conf->test_share) of them;
 * both parts are in rising order. Errors are those of fl_partition_make(). On success the caller
 * calls fl_partition_done().
 */
FL_MUST_CHECK int fl_split_share(const struct fl_dataset *train, const struct fl_split_conf *conf,
                                 struct fl_partition *ret, struct fl_err *err);
/*
 * The second half of it for one client: move its test samples to the end of items[0 … n - 1].
 * FL_ENOMEM, and nothing was moved.
 */
FL_MUST_CHECK int fl_split_own_test(uint64_t seed, size_t client, double share, uint32_t *items,
                                    size_t n, struct fl_err *err);

/* "client-007", with as many digits as `n` clients need, into `out`. */
#define FL_SPLIT_NAME 32
const char *fl_split_name(char out[FL_SPLIT_NAME], size_t k, size_t n);
/* The folder of the server beside those of the clients, and the file that says how all was made. */
#define FL_SPLIT_SERVER   "server"
#define FL_SPLIT_MANIFEST "split.json"

/* "uint8" or "float32": what features are stored as. */
const char *fl_dataset_type_name(const struct fl_dataset *ds);

#endif
