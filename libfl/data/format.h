#ifndef FL_DATA_FORMAT_H
#define FL_DATA_FORMAT_H

/*
 * The readers of data formats, one file each; private to libfl/data. They read from struct
 * fl_source, independent of folders and storage.
 *
 * Each returns an owned set (fl_dataset_free()) with `classes` = largest label + 1, or
 * FL_EFORMAT, FL_ESHAPE (counts of samples and labels differ), FL_ERANGE (label),
 * FL_ENUMERIC (NaN or infinity), FL_ELIMIT, FL_ENOMEM, FL_EIO with a message that names
 * the file, what was expected and what was found.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"
#include "libfl/data/source.h"

FL_MUST_CHECK int fl__idx_read(struct fl_source *images, struct fl_source *labels,
                               struct fl_dataset **ret, struct fl_err *err);
FL_MUST_CHECK int fl__npy_read(struct fl_source *x, struct fl_source *y, struct fl_dataset **ret,
                               struct fl_err *err);
/* The arrays `x_name` and `y_name` of an archive, as fl__npy_read(). */
struct fl__zip;
FL_MUST_CHECK int fl__npz_read(const struct fl__zip *zip, const char *x_name, const char *y_name,
                               struct fl_dataset **ret, struct fl_err *err);
FL_MUST_CHECK int fl__csv_read(struct fl_source *src, struct fl_dataset **ret, struct fl_err *err);

/* Read norm.npy and set the standardisation of `ds`. */
FL_MUST_CHECK int fl__norm_read(struct fl_source *src, struct fl_dataset *ds, struct fl_err *err);

/* CIFAR-10 consists of several files: append the records of one file to `ds`. */
FL_MUST_CHECK int fl__cifar_append(struct fl_source *src, struct fl_dataset *ds,
                                   struct fl_err *err);

/* What a reader has filled. */
struct fl__arrays {
    enum fl_data_type type;
    size_t n;           /* samples */
    const size_t *dims; /* of a sample */
    size_t n_dims;
    void *x;       /* owned */
    int32_t *y;    /* owned; NULL with `target` */
    float *target; /* [n][n_targets], owned; NULL: classes */
    size_t n_targets;
};
/* Build a set from arrays. Takes `x`, `y` and `target` (on success). */
FL_MUST_CHECK int fl__dataset_adopt(const struct fl__arrays *arrays, struct fl_dataset **ret,
                                    struct fl_err *err);
/* Largest label + 1. */
size_t fl__dataset_count_classes(const int32_t *y, size_t n);

/*
 * Check the sizes in a header against the limits before allocation: samples, values of a sample,
 * total bytes. FL_ELIMIT.
 */
FL_MUST_CHECK int fl__data_check_size(const char *name, uint64_t n, const uint64_t *dims,
                                      size_t n_dims, size_t value_size, struct fl_err *err);

#endif
