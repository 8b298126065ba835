#ifndef FL_SERVER_WORK_CLIP_H
#define FL_SERVER_WORK_CLIP_H

/* Bounds the length of one client's update
 * (docs/algorithms.md#an-update-that-is-longer-than-others). */

#include "server/core/records.h"

/*
 * The factor in (0, 1] of the update of each responder: the norm of its entries (rms) is brought
 * down to `clip` times the median of all; of two in the middle the smaller one, updates that are
 * zero not counted. Returns how many factors are below 1. `clip` 0, or fewer than three such
 * updates: all are 1. A function of the records alone, so a restarted server clips the same.
 */
size_t fl_clip_factors(const struct fl_participant_rec *parts, size_t n, double clip,
                       double *factors);

#endif
