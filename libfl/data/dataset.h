#ifndef FL_DATA_DATASET_H
#define FL_DATA_DATASET_H

/*
 * Labelled samples in memory. Features keep the type of the file (bytes or floats) and are
 * converted batch by batch, so a data set is never copied.
 *
 * value = (raw * scale - mean) / std with one mean and std for all values, for each channel or for
 * each value of a sample; byte features have scale 1/255 unless the caller sets another, floats 1.
 *
 * A view (fl_dataset_view()) contains some samples of another set without copying them; the
 * functions below read both in the same way.
 *
 * Errors name the file, what was expected and what was found. Limits: FL_DATA_MAX_…; sizes in a
 * header are checked against the size of the file. Threading: read-only after loading, any number
 * of readers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/rng.h"

enum fl_data_type { FL_DATA_U8, FL_DATA_F32 };

/* Augmentation of a sample in fl_dataset_gather_train(). */
enum fl_data_augment {
    FL_AUGMENT_NONE,
    /* random mirroring, and a random crop of the picture with a black margin of 4 */
    FL_AUGMENT_FLIP_CROP
};

/* Samples are numbered by uint32_t; 2^31 leaves one bit for signed indices. */
#define FL_DATA_MAX_SAMPLES (UINT64_C(1) << 31)
/* Values of one sample: a 2048 x 2048 picture with four channels. */
#define FL_DATA_MAX_DIM (UINT64_C(1) << 24)
/* All features of one set in bytes (64 GiB). */
#define FL_DATA_MAX_BYTES (UINT64_C(1) << 36)
/* Largest class number. */
#define FL_DATA_MAX_LABEL 65535

struct fl_dataset {
    enum fl_data_type type;
    size_t n;                    /* samples */
    size_t dims[3];              /* channels, height, width; {features, 1, 1} for flat data */
    size_t n_dims;               /* 1 or 3 */
    size_t dim;                  /* product of dims: values of one sample */
    void *x;                     /* n * dim values of `type`; view: those of the viewed set */
    int32_t *y;                  /* n class numbers, all in [0, classes); of a view: as x, or by
                                    fl_dataset_relabel() */
    const struct fl_dataset *of; /* the viewed set; NULL: not a view */
    const uint32_t *items;       /* [n]: sample i of the view is sample items[i] of that set */
    uint32_t *own_items;         /* owned; `items` of a view that fl_dataset_split() made */
    size_t classes;              /* largest label + 1, or more if set by the caller */
    size_t n_targets;            /* values to be predicted for a sample; 0: its class is */
    float *target;               /* [n][n_targets]; all y are 0 then, and classes is 1 */
    float scale;
    size_t n_norm;     /* 0: no standardisation; else 1, channels or dim: fl_dataset_set_norm() */
    float *mean, *std; /* [n_norm] */
    enum fl_data_augment augment;
    const char *format; /* "idx", "cifar", "npy", "npz", "csv" …; "memory" when made by a caller */
    char *source;       /* owned; the file that holds the labels, for messages; may be NULL */
};

/*
 * Create a set of `n` zeroed samples, to be filled by the caller; n_dims is 1 or 3 and no
 * dimension 0. FL_ELIMIT, FL_ENOMEM. Returns owned: fl_dataset_free().
 */
FL_MUST_CHECK int fl_dataset_create(enum fl_data_type type, size_t n, const size_t *dims,
                                    size_t n_dims, struct fl_dataset **ret, struct fl_err *err);
void fl_dataset_free(struct fl_dataset *ds);
/*
 * Give a set, which is not a view and has none, `n` > 0 values to be predicted for each sample,
 * zeroed, in place of classes (regression, several labels). FL_ELIMIT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl_dataset_add_targets(struct fl_dataset *ds, size_t n, struct fl_err *err);
/* The values to be predicted for sample `i`, [n_targets]. */
const float *fl_dataset_target(const struct fl_dataset *ds, size_t i);
/*
 * Create a view: its samples are items[0 … n - 1] of `of`, each below of->n (the caller
 * guarantees this), with the current classes, standardisation and augmentation of `of`, which
 * must not be a view. Costs one small allocation. Borrows `of` and `items`, which must live
 * unchanged as long as the view; any number of views of one set may be used by as many threads.
 * Functions that change samples or their standardisation are not allowed on views;
 * fl_dataset_set_augment() and fl_dataset_split() are. FL_ENOMEM. Returns owned:
 * fl_dataset_free().
 */
FL_MUST_CHECK int fl_dataset_view(const struct fl_dataset *of, const uint32_t *items, size_t n,
                                  struct fl_dataset **ret, struct fl_err *err);
/*
 * Give a view other classes than those of the viewed set: `y` has one for each sample of that set,
 * all below its number of classes (the caller guarantees this). Borrows `y`, as `items`.
 */
void fl_dataset_relabel(struct fl_dataset *view, int32_t *y);

/*
 * Open the part `part` ("train" or "test") of a folder in any known format:
 *   IDX     <part>-images-idx3-ubyte[.gz] and -labels-idx1-ubyte[.gz] ("t10k" for test);
 *           emnist-<split>-<part>-... as EMNIST is distributed, one split in a folder
 *   CIFAR   data_batch_*.bin[.gz] (all of them) or test_batch.bin[.gz]
 *   NPY     <part>-x.npy[.gz] and <part>-y.npy[.gz]; y of floats, (n,) or (n, k): values to be
 *           predicted
 *   NPZ     <part>.npz with the arrays x and y, or data.npz with x_<part> and y_<part>
 *   CSV     <part>.csv[.gz], label in the last column
 * FL_ENOENT when the folder has no such part; the message lists the names that were tried. When a
 * file exists both plain and packed, the plain one is read. A part in two formats is refused
 * (FL_EFORMAT), because it would be unclear which one was used.
 *
 * A client folder made by fl-data has both parts: open "test" for the client's own test split;
 * FL_ENOENT: it has none.
 *
 * norm.npy[.gz] in the same folder, if present, is the standardisation of both parts: float32 of
 * shape (2, m), the means and the standard deviations of the values after `scale`, m as n_norm. It
 * only affects the values that fl_dataset_gather() returns. FL_ESHAPE when it does not fit. Returns
 * owned: fl_dataset_free().
 */
FL_MUST_CHECK int fl_dataset_open(const char *folder, const char *part, struct fl_dataset **ret,
                                  struct fl_err *err);

/*
 * The name of the format of that part ("IDX", "CIFAR", "NPY", "NPZ", "CSV"; static), without
 * reading it. FL_ENOENT, FL_EFORMAT as fl_dataset_open().
 */
FL_MUST_CHECK int fl_dataset_format(const char *folder, const char *part, const char **ret,
                                    struct fl_err *err);
/* Standardise `ds` by the norm.npy of `folder`, if there is one: a step of fl_dataset_open(). */
FL_MUST_CHECK int fl_dataset_read_norm(const char *folder, struct fl_dataset *ds,
                                       struct fl_err *err);

/* True when any file of that part exists, in any format and state. */
bool fl_dataset_has(const char *folder, const char *part);

/*
 * A number that changes when a file of any part in `folder` changes: computed from their names,
 * sizes, times and inodes, without reading them. 0: no such file, or the folder cannot be read.
 */
uint64_t fl_dataset_stamp(const char *folder);

/*
 * Copy the samples `idx` to x[n][dim] and y[n], converted and standardised; each index below
 * ds->n. With values to be predicted y is the row of each sample in `target`, else its class. `y`
 * may be NULL.
 */
void fl_dataset_gather(const struct fl_dataset *ds, const uint32_t *idx, size_t n, float *x,
                       int32_t *y);
/*
 * fl_dataset_gather() for a training batch: every sample is augmented as set in ds->augment,
 * with the next draws of `rng`. Without augmentation nothing is drawn.
 */
void fl_dataset_gather_train(const struct fl_dataset *ds, struct fl_rng *rng, const uint32_t *idx,
                             size_t n, float *x, int32_t *y);
/* FL_ESHAPE when samples are not pictures of at least 2 x 2. */
FL_MUST_CHECK int fl_dataset_set_augment(struct fl_dataset *ds, enum fl_data_augment augment,
                                         struct fl_err *err);

/*
 * Standardise by `n` means and standard deviations, n = 1, channels or dim, of values after
 * `scale`. Copies. FL_ESHAPE, FL_ENUMERIC when one is not finite or a deviation not positive.
 */
FL_MUST_CHECK int fl_dataset_set_norm(struct fl_dataset *ds, const float *mean, const float *std,
                                      size_t n, struct fl_err *err);
/*
 * (raw - mean) / (deviation + 0.001) for each value of a sample, by mean and deviation over the
 * samples of this set: the standardisation of FedMCSA's image sets.
 */
FL_MUST_CHECK int fl_dataset_norm_pixels(struct fl_dataset *ds, struct fl_err *err);
/*
 * Standardise with the common means and deviations of CIFAR-10. FL_ESHAPE unless there are three
 * channels.
 */
FL_MUST_CHECK int fl_dataset_norm_cifar(struct fl_dataset *ds, struct fl_err *err);
/* Copy the standardisation of a set of the same shape. */
FL_MUST_CHECK int fl_dataset_copy_norm(struct fl_dataset *to, const struct fl_dataset *from,
                                       struct fl_err *err);

/*
 * Crop every picture to its centre, `side` x `side`, in place. FL_ESHAPE when samples are not
 * pictures or are smaller.
 */
FL_MUST_CHECK int fl_dataset_crop(struct fl_dataset *ds, size_t side, struct fl_err *err);
/*
 * Append the samples of `more`, of the same type and shape (the caller guarantees this), to
 * `ds`. Copies; on error `ds` is unchanged. FL_ELIMIT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl_dataset_append(struct fl_dataset *ds, const struct fl_dataset *more,
                                    struct fl_err *err);
/* True when the samples have the same type and dimensions, and as many values to be predicted. */
bool fl_dataset_alike(const struct fl_dataset *a, const struct fl_dataset *b);

/* Bytes of one stored value; the stored values and the label of sample `i`. */
size_t fl_dataset_value_size(const struct fl_dataset *ds);
const void *fl_dataset_row(const struct fl_dataset *ds, size_t i);
int32_t fl_dataset_label(const struct fl_dataset *ds, size_t i);
/* Index of sample `i` < ds->n in x and y. */
static inline size_t fl_dataset_place(const struct fl_dataset *ds, size_t i)
{
    return ds->items != NULL ? ds->items[i] : i;
}
/*
 * A warning for samples whose shape looks like (height, width, channels) instead of (channels,
 * height, width): at most four columns and more rows. False: nothing suspicious.
 */
bool fl_dataset_shape_note(const struct fl_dataset *ds, char *out, size_t size);
/* Samples per class into counts[ds->classes]. */
void fl_dataset_histogram(const struct fl_dataset *ds, size_t *counts);
/*
 * List the classes below `classes` without a sample in any of `sets` (some may be NULL), for
 * messages: "0 to 2, 4 to 6" into `out`, cut with "..." where it does not fit. `*ret`: their
 * number; 0: `out` is empty. `classes` 0: the largest number of the sets. Labels are class
 * numbers: a set with only the labels 3 and 7 has eight classes, six of them empty, which is
 * normal for one client and rarely intended for a whole data set. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_dataset_missing(const struct fl_dataset *const *sets, size_t n, size_t classes,
                                     char *out, size_t size, size_t *ret);
/*
 * Move a random share of the samples (0 <= share < 1, at least 1 when share > 0 and n > 1) to a new
 * set; the seed determines which. The old set keeps floor((1 - share) n) samples; both keep the
 * order of the file. With n = 1 or share = 0 the new set is empty (n = 0). Splitting a view moves
 * the same samples and returns a view. Used for a local validation set. Returns owned:
 * fl_dataset_free(). On error `ds` is unchanged.
 */
FL_MUST_CHECK int fl_dataset_split(struct fl_dataset *ds, double share, uint64_t seed,
                                   struct fl_dataset **ret_rest, struct fl_err *err);

/* Number of samples that fl_dataset_split() moves out of `n`. 0 <= share < 1. */
size_t fl_dataset_split_count(size_t n, double share);

#endif
