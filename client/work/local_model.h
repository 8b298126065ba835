#ifndef FL_CLIENT_WORK_LOCAL_H
#define FL_CLIENT_WORK_LOCAL_H

/*
 * Tensors that stay on the client (fl_tensor.local; FedBN). What it has of them is one block,
 * packed in the order of the layout, that it keeps between rounds as everything else it keeps
 * (data_cache.h): it takes the place of what was received before a training and before an
 * evaluation, and of what leaves the machine these entries are zero. Trainers know nothing of it.
 */

#include "client/work/worker.h"

/* Entries of local tensors of `model` [floats of the layout] to `packed` [fl_layout_local()]. */
void fl_local_pack(const struct fl_layout *layout, const float *model, float *packed);
/* And back over those of `model`. */
void fl_local_put(const struct fl_layout *layout, const float *packed, float *model);
/* Those of `block` become 0. */
void fl_local_clear(const struct fl_layout *layout, float *block);
/* Norms of the displacement per unit, as fl_train_result has them, of units with local tensors. */
void fl_local_divergence(const struct fl_layout *layout, const float *delta, float *divergence);
/*
 * For an evaluation: a copy of `model` with what this client has, which may wait for being counted.
 * `*ret` NULL: it has nothing, the model is as it was received. Owned, free(). FL_ENOMEM, those of
 * the disk.
 */
FL_MUST_CHECK int fl_local_copy(const struct fl_worker *worker, const struct fl_layout *layout,
                                const float *model, float **ret, struct fl_err *err);

#endif
