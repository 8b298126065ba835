#ifndef FL_DATA_NPY_PART_H
#define FL_DATA_NPY_PART_H

/*
 * Writes a part of a data folder ("train", "test"), sample by sample: PART-x.npy with the raw
 * features, PART-y.npy with the labels or the values to be predicted, and norm.npy with the
 * standardisation of the folder. The files appear when they are complete. Errors are those of
 * libfl/data/npy.h, and FL_ELIMIT: the path is too long. Threading: one thread per part.
 */

#include "libfl/data/dataset.h"

struct fl_npy_part;

/* A part of `n` samples with the shape and type of those of `like`. */
FL_MUST_CHECK int fl_npy_part_create(const char *folder, const char *name,
                                     const struct fl_dataset *like, size_t n,
                                     struct fl_npy_part **ret, struct fl_err *err);
/* Adds sample `i` of `ds`, which may be a view. */
FL_MUST_CHECK int fl_npy_part_add(struct fl_npy_part *part, const struct fl_dataset *ds, size_t i,
                                  struct fl_err *err);
/* Frees the part, also on error. */
FL_MUST_CHECK int fl_npy_part_finish(struct fl_npy_part *part, struct fl_err *err);
void fl_npy_part_abort(struct fl_npy_part *part); /* NULL is allowed. */

/* A part with all samples of `ds`, which may be a view. */
FL_MUST_CHECK int fl_npy_part_write(const char *folder, const char *name,
                                    const struct fl_dataset *ds, struct fl_err *err);

/* Writes norm.npy with the standardisation of `ds`; no file when it has none. */
FL_MUST_CHECK int fl_npy_part_norm(const char *folder, const struct fl_dataset *ds,
                                   struct fl_err *err);

#endif
