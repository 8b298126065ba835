#ifndef FL_SERVER_WORK_NORMS_H
#define FL_SERVER_WORK_NORMS_H

/*
 * How far the batch-norm statistics of clients lie apart
 * (docs/algorithms.md#norms-that-stay-on-the-client): the one thing that a server is told of how a
 * client's data look.
 */

#include "server/store/store_files.h"

/* Above this one batch-norm for all fits nobody well: where it comes from is in the document. */
#define FL_NORMS_APART 0.1

/* Rounds in which it is looked at, since a second reading of the uploads costs time: 4, 8, 16, … */
static inline bool fl_norms_round(uint64_t round)
{
    return round >= 4 && (round & (round - 1)) == 0;
}

/*
 * Of the uploads of a round, which were aggregated to `theta` [floats of the layout]: the mean over
 * all channels of the variance, between clients, of their running means, as a share of the running
 * variance of `theta`. 0: not measured, for want of a batch-norm that travels, or of two clients.
 * What cannot be read is left out: the aggregation has read it before. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_norms_apart(const struct fl_layout *layout,
                                 struct fl_spool_reader *const *readers, size_t n,
                                 const float *theta, double *ret);

#endif
