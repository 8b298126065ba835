#ifndef FL_MODEL_ST_NORMS_H
#define FL_MODEL_ST_NORMS_H

/* Which layer of a file a batch-norm follows; private to libfl/model. */

#include "libfl/model/st_parse.h"

/* A tensor of a file, and the unit that it is put into: the first `len` bytes of `unit`. */
struct fl__st_place {
    const struct fl_st_entry *entry;
    const char *unit; /* borrowed from a name of the file */
    size_t len;
    size_t index; /* in data order, without what is skipped */
    size_t first; /* index of the unit's first tensor, once units are grouped */
};

/* Is it a statistic of batch-norm? */
bool fl__st_is_buffer(const char *name);
/* Length of the part of a tensor's name that is its module's: up to the last dot, or all. */
size_t fl__st_module_len(const char *name);
/*
 * `list` is in data order, each in the unit of its module. Tensors of batch-norms are put into the
 * unit of the layer that theirs follows; one that follows none stays by itself. FL_ENOMEM.
 */
FL_MUST_CHECK int fl__st_join_norms(struct fl__st_place *list, size_t n);

#endif
