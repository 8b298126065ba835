#ifndef FL_CLIENT_WORK_LOCAL_H
#define FL_CLIENT_WORK_LOCAL_H

/*
 * Tensors that stay on the client (fl_tensor.local; FedBN). The client keeps their values as one
 * block, packed in the order of the layout, in its client state between rounds (client_state.h).
 * They replace the received values before a training and before an evaluation; in everything that
 * leaves the machine these entries are zero. Trainers do not know about them.
 */

#include "client/work/worker.h"

/* Copy the local tensors of `model` [floats of the layout] to `packed` [fl_layout_local()]. */
void fl_local_pack(const struct fl_layout *layout, const float *model, float *packed);
/* Copy `packed` back into the local tensors of `model`. */
void fl_local_put(const struct fl_layout *layout, const float *packed, float *model);
/* Set the local tensors of `block` to 0. */
void fl_local_clear(const struct fl_layout *layout, float *block);
/* Recompute the norm of the displacement of each unit with local tensors, as in fl_train_result. */
void fl_local_divergence(const struct fl_layout *layout, const float *delta, float *divergence);
/*
 * For an evaluation: a copy of `model` with the newest local tensors of this client, which may be
 * pending. `*ret` NULL: there are none, use the model as received. Owned, free(). FL_ENOMEM, errors
 * of the disk.
 */
FL_MUST_CHECK int fl_local_copy(const struct fl_worker *worker, const struct fl_layout *layout,
                                const float *model, float **ret, struct fl_err *err);

#endif
