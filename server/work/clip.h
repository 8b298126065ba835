#ifndef FL_SERVER_WORK_CLIP_H
#define FL_SERVER_WORK_CLIP_H

/* Bounds the length of one client's update
 * (docs/algorithms.md#an-update-that-is-longer-than-others). */

#include "server/core/records.h"
#include "server/store/store_files.h"

/*
 * The factor in (0, 1] of the update of each responder: the norm of its entries (rms) is brought
 * down to `clip` times the median of all; of two in the middle the smaller one, updates that are
 * zero not counted. Returns how many factors are below 1. `clip` 0, or fewer than three such
 * updates: all are 1. A function of the records alone, so a restarted server clips the same.
 */
size_t fl_clip_factors(const struct fl_participant_rec *parts, size_t n, double clip,
                       double *factors);

/*
 * The same with partial uploads, where only updates of the same layers compare: the norm of each
 * layer is brought down to `clip` times the median of those who sent it. `factors` [n][n_units];
 * where a layer has fewer than three senders, or was not sent whole, it is `least` of its client,
 * which is the result of fl_clip_factors() before and the client's smallest factor afterwards.
 * `*ret_clipped`: clients with a factor below 1. Reads the uploads once. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_clip_units(const struct fl_layout *layout,
                                struct fl_spool_reader *const *readers, size_t n, double clip,
                                double *least, double *factors, size_t *ret_clipped);

#endif
