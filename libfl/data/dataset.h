#ifndef FL_DATA_DATASET_H
#define FL_DATA_DATASET_H

/*
 * Labelled samples in memory. Features stay in the type that the file has (bytes
 * or floats) and are converted batch by batch, so a data set is never copied.
 *
 * value = (raw * scale - mean[channel]) / std[channel]; byte features have scale
 * 1/255 unless told otherwise, floats 1.
 *
 * Errors name the file, what was expected and what was found.
 * Threading: read-only after loading, any number of readers.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

enum fl_data_type { FL_DATA_U8, FL_DATA_F32 };

#define FL_DATA_MAX_CHANNELS 16

struct fl_dataset {
    enum fl_data_type type;
    size_t n;       /* samples */
    size_t dims[3]; /* channels, height, width; {features, 1, 1} for flat data */
    size_t n_dims;  /* 1 or 3 */
    size_t dim;     /* product of dims: values of one sample */
    void *x;        /* n * dim values of `type` */
    int32_t *y;     /* n class numbers, all in [0, classes) */
    size_t classes; /* largest label + 1 unless the caller said more */
    float scale;
    size_t n_norm; /* 0: no standardisation; else 1 or channels */
    float mean[FL_DATA_MAX_CHANNELS], std[FL_DATA_MAX_CHANNELS];
};

void fl_dataset_free(struct fl_dataset *ds);

/*
 * Open the part `part` ("train" or "test") of a folder in any known format:
 *   IDX     <part>-images-idx3-ubyte[.gz] and -labels-idx1-ubyte[.gz] ("t10k" for test)
 *   CIFAR   data_batch_*.bin[.gz] (all that are there) or test_batch.bin[.gz]
 *   NPY     <part>-x.npy and <part>-y.npy
 *   CSV     <part>.csv[.gz], label in the last column
 * FL_ENOENT when the folder has no such part; the message lists what was looked for.
 */
FL_MUST_CHECK int fl_dataset_open(const char *folder, const char *part, struct fl_dataset **ret,
                                  struct fl_err *err);

/* x[n][dim] and y[n] of the samples `idx`; each index below ds->n. */
void fl_dataset_gather(const struct fl_dataset *ds, const uint32_t *idx, size_t n, float *x,
                       int32_t *y);
/* Samples per class into counts[ds->classes]. */
void fl_dataset_histogram(const struct fl_dataset *ds, size_t *counts);
/*
 * Move a random share of the samples (0..1, at least 1 when share > 0 and n > 1) to a new set;
 * the seed decides which. Used for a local validation part.
 */
FL_MUST_CHECK int fl_dataset_split(struct fl_dataset *ds, double share, uint64_t seed,
                                   struct fl_dataset **ret_rest, struct fl_err *err);

#endif
