#ifndef FL_MODEL_ST_NORMS_H
#define FL_MODEL_ST_NORMS_H

/* Finds the layer that a batch-norm of a file belongs to; private to libfl/model. */

#include "libfl/model/st_parse.h"

/* A tensor of a file and its unit: the first `len` bytes of `unit`. */
struct fl__st_place {
    const struct fl_st_entry *entry;
    const char *unit; /* borrowed from a name in the file */
    size_t len;
    size_t index; /* in data order, without skipped tensors */
    size_t first; /* index of the unit's first tensor, once units are grouped */
};

/* True for running statistics of batch-norm. */
bool fl__st_is_buffer(const char *name);
/* Length of the module name in a tensor's name: up to the last dot, or all of it. */
size_t fl__st_module_len(const char *name);
/*
 * Put the tensors of batch-norms into the units of their layers; a batch-norm without a layer
 * stays a unit of its own. `list` is in data order, each tensor in the unit of its module.
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl__st_join_norms(struct fl__st_place *list, size_t n);

#endif
