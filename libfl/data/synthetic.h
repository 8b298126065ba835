#ifndef FL_DATA_SYNTHETIC_H
#define FL_DATA_SYNTHETIC_H

/*
 * The federation Synthetic(alpha, beta) of FedProx, pFedMe and FedMCSA: 60
 * features, 10 classes, one linear model per client, sizes from a log-normal law. Bit for bit
 * the samples that numpy's legacy generator gives for the same seed, so that results can
 * be compared with the published ones. Seed 0 with alpha = beta = 0.5 is the published set.
 *
 * Clients are generated one after the other, in draw order; only one is in memory. Threading: a
 * generator belongs to one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"

#define FL_SYNTHETIC_FEATURES 60
#define FL_SYNTHETIC_CLASSES  10

struct fl_synthetic_conf {
    size_t n_clients;
    double alpha;  /* standard deviation of the clients' models */
    double beta;   /* standard deviation of the clients' feature means */
    uint64_t seed; /* below 2^32, the limit of MT19937's init_genrand */
};

/* Default share of each client's samples for its own test set. */
#define FL_SYNTHETIC_TEST_SHARE 0.25

/* Defaults: the published set, except the number of clients, which is 0. */
void fl_synthetic_conf_init(struct fl_synthetic_conf *conf);

struct fl_synthetic;

/* FL_ERANGE for an invalid conf, FL_ELIMIT when a size exceeds the limits, FL_ENOMEM. */
FL_MUST_CHECK int fl_synthetic_create(const struct fl_synthetic_conf *conf,
                                      struct fl_synthetic **ret, struct fl_err *err);
void fl_synthetic_free(struct fl_synthetic *gen);
/* Number of samples of client `k` < n_clients. */
size_t fl_synthetic_size(const struct fl_synthetic *gen, size_t k);
/*
 * Generate the data of the next client, in client order; FL_ENOENT after the last. Returns owned:
 * fl_dataset_free(). Features are float32, rounded from the double of the generator; labels are
 * those of the doubles.
 */
FL_MUST_CHECK int fl_synthetic_next(struct fl_synthetic *gen, struct fl_dataset **ret,
                                    struct fl_err *err);

#endif
