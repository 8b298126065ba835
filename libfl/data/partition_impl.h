#ifndef FL_DATA_PARTITION_IMPL_H
#define FL_DATA_PARTITION_IMPL_H

/* Shared by the methods, and their entry points for the table; private to libfl/data. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/rng.h"
#include "libfl/data/partition.h"

/* --- part_common.c --- */

/* Initialise the generator for all random choices of a partition. */
void fl__partition_key(struct fl_rng *rng, const struct fl_partition_conf *conf);
int fl__partition_no_memory(struct fl_err *err);
/* Numbers 0 … n - 1, or NULL. Returns owned: free(). */
uint32_t *fl__partition_count_up(size_t n);
/*
 * Stable counting sort of the sample numbers by label; first[c] is where class c starts,
 * first[classes] = n. Returns both owned: free(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl__partition_sort(const int32_t *y, size_t n, size_t classes,
                                     uint32_t **ret_sorted, size_t **ret_first);
/*
 * FL_ERANGE unless every client can have `each` of `n` samples; `what` is their name in
 * messages.
 */
FL_MUST_CHECK int fl__partition_enough(const struct fl_partition_conf *conf, uint64_t each,
                                       const char *what, size_t n, struct fl_err *err);
/* FL_ERANGE unless every client can have `each` of `n` samples or more. */
FL_MUST_CHECK int fl__partition_at_least(const struct fl_partition_conf *conf, uint64_t each,
                                         size_t n, struct fl_err *err);

/* A method: see struct fl_partition_ops. */
int fl__partition_iid(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                      size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_shards(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                         size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_dirichlet(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                            size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_silo(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                       size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_device(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                         size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_pairs(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                        size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_lognormal_sizes(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                                  size_t classes, struct fl_partition *ret, struct fl_err *err);
int fl__partition_dirichlet_sizes(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                                  size_t classes, struct fl_partition *ret, struct fl_err *err);

#endif
