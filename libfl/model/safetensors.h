#ifndef FL_MODEL_SAFETENSORS_H
#define FL_MODEL_SAFETENSORS_H

/*
 * Reading and writing safetensors (8-byte header length, JSON header, data), so
 * that checkpoints open in PyTorch and Hugging Face tools as they are.
 *
 * Written: F32 tensors of a layout, in order, "__metadata__" with our keys, among them
 * "fl.layout", the textual layout (fl_layout_text()), which keeps units and buffers.
 * Read: F32 (F16, BF16 and F64 are converted), any order of names, no gaps or
 * overlaps; header at most 16 MiB. Units of a file without our metadata are the
 * name prefixes before the last dot, in the file's data order, with batch-norms in the units of
 * the layers that they follow (docs/networks.md#units-of-a-file); tensors named running_mean or
 * running_var are buffers. num_batches_tracked, and tensors of whole numbers or truth values, are
 * skipped: constants of the program, which stay with it.
 * fl_st_save_sealed() puts the key "fl.checksum" before all others: XXH3 of the whole file, header
 * and data, with zeros in its own place. Where it is, it is checked; files of other programs
 * have none. The JSON stays what every reader of the format takes.
 * Errors: FL_EFORMAT, FL_EIO, FL_ESHAPE with the file and what was expected.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/model/layout.h"

struct fl_st_meta {
    const char *key;
    const char *value;
};

/* Header and its 8-byte length for a layout, into `ret` (initialised here). */
FL_MUST_CHECK int fl_st_header(const struct fl_layout *layout, const struct fl_st_meta *meta,
                               size_t n_meta, struct fl_buf *ret);
/* Whole file through fl_fs_replace's steps (tmp, fsync when `sync`, rename). */
FL_MUST_CHECK int fl_st_save(const char *path, const struct fl_layout *layout, const float *params,
                             const struct fl_st_meta *meta, size_t n_meta, bool sync,
                             struct fl_err *err);
/*
 * The same with a checksum: for what nobody but us reads again. Whoever gets a file to work with
 * may well write other values under the metadata that he found.
 */
FL_MUST_CHECK int fl_st_save_sealed(const char *path, const struct fl_layout *layout,
                                    const float *params, const struct fl_st_meta *meta,
                                    size_t n_meta, bool sync, struct fl_err *err);
/*
 * The same in parts, while the numbers are being made. fl_st_draft_begin() takes metadata as long
 * as what fl_st_draft_seal() will write, of which only the lengths count. Until then the file is
 * `path`.tmp. The next `n` numbers in exported order are added by fl_st_draft_write(); with `sync`
 * the disk begins with them at once. Sealing takes all of them once more, for the checksum, and
 * ends as fl_st_save_sealed(); FL_ESTATE: numbers are missing, or the header came out longer or
 * shorter, or it was sealed. After an error only fl_st_draft_free() makes sense, which removes what
 * was not sealed; NULL is allowed. Keeps a reference to `layout`. One thread at a time.
 */
struct fl_st_draft;
FL_MUST_CHECK int fl_st_draft_begin(const char *path, const struct fl_layout *layout,
                                    const struct fl_st_meta *meta, size_t n_meta, bool sync,
                                    struct fl_st_draft **ret, struct fl_err *err);
FL_MUST_CHECK int fl_st_draft_write(struct fl_st_draft *draft, const float *values, size_t n,
                                    struct fl_err *err);
FL_MUST_CHECK int fl_st_draft_seal(struct fl_st_draft *draft, const float *params,
                                   const struct fl_st_meta *meta, size_t n_meta,
                                   struct fl_err *err);
void fl_st_draft_free(struct fl_st_draft *draft);
/* Read the layout of a file. Free with fl_layout_free(). */
FL_MUST_CHECK int fl_st_layout(const char *path, struct fl_layout **ret, struct fl_err *err);
/*
 * What a file has that is skipped beside counters of batch-norms, for people: "'a.position_ids', …
 * and 3 more" into `out`; empty: nothing. Returns how many there are in `*ret`.
 */
FL_MUST_CHECK int fl_st_constants(const char *path, char *out, size_t size, size_t *ret,
                                  struct fl_err *err);
/* Read the tensors of `layout` by name into `params`; FL_ESHAPE names the first difference. */
FL_MUST_CHECK int fl_st_load(const char *path, const struct fl_layout *layout, float *params,
                             struct fl_err *err);
/* A "__metadata__" key that is wanted along. */
struct fl_st_field {
    const char *key;
    char *out; /* [size]; empty when it is not there */
    size_t size;
    bool found;
};
/*
 * The same with metadata, out of one reading: what it says belongs to the bytes. A value that
 * does not fit is FL_EFORMAT. `*ret_checked`: the file carries a checksum, and it is right.
 * On an error `params` and `fields` are not set to anything certain.
 */
FL_MUST_CHECK int fl_st_load_fields(const char *path, const struct fl_layout *layout, float *params,
                                    struct fl_st_field *fields, size_t n_fields, bool *ret_checked,
                                    struct fl_err *err);
/* Value of a "__metadata__" key into `out`; FL_ENOENT when it is not there. */
FL_MUST_CHECK int fl_st_meta(const char *path, const char *key, char *out, size_t size,
                             struct fl_err *err);

#endif
