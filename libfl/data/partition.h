#ifndef FL_DATA_PARTITION_H
#define FL_DATA_PARTITION_H

/*
 * Partitioning a data set among clients: computes a list of samples per client from the labels
 * (docs/models.md#the-splits-of-the-papers). Pure functions of labels, options and seed; the same
 * on every machine.
 *
 * A method is a row of one table, with its options: the command line, its help and the checks are
 * derived from the table.
 *
 * Threading: no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

#define FL_PARTITION_MAX_CLIENTS ((size_t)1000000)

/* Lists of samples: client k has items[start[k]] … items[start[k + 1] - 1], in rising order. */
struct fl_partition {
    size_t n_clients;
    size_t *start;   /* n_clients + 1 */
    uint32_t *items; /* numbers of samples, none twice */
};

/* Configuration of all methods; each uses the fields named by its options. */
struct fl_partition_conf {
    size_t n_clients;
    uint64_t seed;
    uint64_t samples; /* per client; 0: all of them, shared equally */
    uint64_t shards_per_client;
    double alpha;         /* concentration of the Dirichlet distribution */
    double sigma;         /* standard deviation of the logarithm of a client's size */
    uint64_t min_samples; /* that every client must get */
    uint64_t shard_size;  /* 0: the size that uses all samples */
    double rho;           /* concentration of Dir(rho q), q the prior of the labels */
    uint64_t prior;       /* enum fl_partition_prior */
    uint64_t size_seed;   /* below 2^32: seed of numpy's generator for the sizes */
    uint64_t variant;     /* enum fl_partition_variant */
};

/* Meaning of rho for each of C labels (docs/models.md#the-splits-of-the-papers). */
enum fl_partition_prior { FL_PARTITION_RHO_OVER_C, FL_PARTITION_RHO };

/* Variants of method "pairs". */
enum fl_partition_variant {
    FL_PARTITION_PAPER,  /* the rule that the paper states for every data set */
    FL_PARTITION_FMNIST, /* what the released program for Fashion-MNIST does */
    FL_PARTITION_CIFAR   /* what the released program for CIFAR-10 does */
};

enum fl_partition_option_type { FL_PARTITION_COUNT, FL_PARTITION_REAL, FL_PARTITION_CHOICE };

/*
 * One option: a field of the conf with its name, range and default. Counts and choices (index in
 * `choices`) are uint64_t, reals double.
 */
struct fl_partition_option {
    const char *name; /* as on the command line, without dashes; NULL ends a list */
    const char *help;
    enum fl_partition_option_type type;
    size_t offset;
    double min, max, def;
    const char *const *choices; /* of a FL_PARTITION_CHOICE, NULL ends them */
};

struct fl_partition_ops {
    const char *name;
    const char *help;
    const struct fl_partition_option *options;
    /*
     * Defaults as in the paper: whether the test part is partitioned too, and the share of each
     * client's samples for its own test set.
     */
    bool pools;
    double test_share;
    /* Checked by fl_partition_make(): 1 <= n_clients, every label in [0, classes). */
    int (*make)(const struct fl_partition_conf *conf, const int32_t *y, size_t n, size_t classes,
                struct fl_partition *ret, struct fl_err *err);
};

/* Row `i` of the table, or NULL past its end; the row with that name, or NULL. */
const struct fl_partition_ops *fl_partition_at(size_t i);
const struct fl_partition_ops *fl_partition_find(const char *name);

/* The defaults of all options of all methods; n_clients and seed are 0. */
void fl_partition_conf_init(struct fl_partition_conf *conf);
/* Set a field from text. FL_EINVAL, FL_ERANGE with the expected values. */
FL_MUST_CHECK int fl_partition_option_set(const struct fl_partition_option *option,
                                          struct fl_partition_conf *conf, const char *text,
                                          struct fl_err *err);

/*
 * Partition samples 0 … n - 1 with labels `y`. Borrows all. FL_ERANGE when it is impossible (too
 * few samples, a minimum that no draw meets), FL_ENOMEM. Every client gets at least one sample.
 * On success the caller calls fl_partition_done().
 */
FL_MUST_CHECK int fl_partition_make(const struct fl_partition_ops *ops,
                                    const struct fl_partition_conf *conf, const int32_t *y,
                                    size_t n, size_t classes, struct fl_partition *ret,
                                    struct fl_err *err);
void fl_partition_done(struct fl_partition *part);

static inline size_t fl_partition_count(const struct fl_partition *part, size_t client)
{
    return part->start[client + 1] - part->start[client];
}

#endif
