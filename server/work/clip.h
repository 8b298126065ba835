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
 * The same of each layer, among those who sent it: replaces factors[n][n_units], which remain where
 * a layer has fewer than three senders or was not sent whole (a mask of neurons). Writes the
 * smallest factor of what each client sent to `least` [n], and how many of these are below 1 to
 * `*ret_clipped`. Reads the uploads once. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_clip_units(const struct fl_layout *layout,
                                struct fl_spool_reader *const *readers, size_t n, double clip,
                                double *factors, double *least, size_t *ret_clipped);

#endif
