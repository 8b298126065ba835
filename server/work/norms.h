#ifndef FL_SERVER_WORK_NORMS_H
#define FL_SERVER_WORK_NORMS_H

/*
 * How far the batch-norm statistics of clients are apart
 * (docs/algorithms.md#norms-that-stay-on-the-client): the only thing that a server learns of the
 * distribution of a client's data.
 */

#include "server/store/store_files.h"

/* Above this a shared batch-norm fits no client well; the document derives the value. */
#define FL_NORMS_APART 0.1

/* Rounds in which it is measured, since a second pass over the uploads costs time: 4, 8, 16, … */
static inline bool fl_norms_round(uint64_t round)
{
    return round >= 4 && (round & (round - 1)) == 0;
}

/*
 * From the uploads of a round, which were aggregated to `theta` [floats of the layout]: the mean
 * over all channels of the variance, between clients, of their running means, as a share of the
 * running variance of `theta`. 0: not measured, for lack of a shared batch-norm or of two clients.
 * Uploads that cannot be read are left out: the aggregation has read them before. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_norms_apart(const struct fl_layout *layout,
                                 struct fl_spool_reader *const *readers, size_t n,
                                 const float *theta, double *ret);

#endif
