#ifndef FL_MODEL_SAFETENSORS_H
#define FL_MODEL_SAFETENSORS_H

/*
 * Reading and writing safetensors (8-byte header length, JSON header, data): PyTorch and Hugging
 * Face tools open checkpoints directly.
 *
 * Written: F32 tensors of a layout, in order, and "__metadata__" with keys of this program, among
 * them "fl.layout", the textual layout (fl_layout_text()), which preserves units and buffers. Read:
 * F32 (F16, BF16 and F64 are converted), any order of names, no gaps or overlaps; header at most 16
 * MiB. Units of a file without "fl.layout" are the name prefixes before the last dot, in the file's
 * data order, with batch-norms in the units of the layers that they follow
 * (docs/models.md#units-of-a-file); tensors named running_mean or running_var are buffers.
 * num_batches_tracked and tensors of integers or booleans are skipped: they are constants of the
 * program that wrote the file. fl_st_save_sealed() writes the key "fl.checksum" before all others:
 * XXH3 of the whole file, header and data, with zeros in place of the checksum. It is verified when
 * present; files of other programs have none. Every reader of the format accepts the JSON. Errors:
 * FL_EFORMAT, FL_EIO, FL_ESHAPE with the file and what was expected.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/model/layout.h"

/* Metadata of a model that fl-serverd exports: its network, "1,28,28" and "dense 20; relu; …". */
#define FL_ST_INPUT_KEY  "fl.input"
#define FL_ST_LAYERS_KEY "fl.layers"

struct fl_st_meta {
    const char *key;
    const char *value;
};

/* Header and its 8-byte length for a layout, into `ret` (initialised here). */
FL_MUST_CHECK int fl_st_header(const struct fl_layout *layout, const struct fl_st_meta *meta,
                               size_t n_meta, struct fl_buf *ret);
/* Write a whole file atomically (tmp, fsync when `sync`, rename). */
FL_MUST_CHECK int fl_st_save(const char *path, const struct fl_layout *layout, const float *params,
                             const struct fl_st_meta *meta, size_t n_meta, bool sync,
                             struct fl_err *err);
/*
 * fl_st_save() with a checksum, for files that only this program reads. Files given to other
 * programs have none: these may copy the metadata and write other values.
 */
FL_MUST_CHECK int fl_st_save_sealed(const char *path, const struct fl_layout *layout,
                                    const float *params, const struct fl_st_meta *meta,
                                    size_t n_meta, bool sync, struct fl_err *err);
/*
 * fl_st_save_sealed() in pieces, while the parameters are being computed. fl_st_draft_begin()
 * takes metadata of the same length as that of fl_st_draft_seal(); only the lengths matter.
 * Until sealed the file is `path`.tmp. fl_st_draft_write() adds the next `n` floats in exported
 * order; with `sync` their write-back starts at once. fl_st_draft_seal() gets all of them again,
 * for the checksum, and ends as fl_st_save_sealed(); FL_ESTATE: floats are missing, the header
 * has another length, or the file was sealed already. After an error only fl_st_draft_free() is
 * allowed, which removes an unsealed file; NULL is allowed. Keeps a reference to `layout`. One
 * thread at a time.
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
 * List the skipped tensors of a file, except counters of batch-norms, for messages:
 * "'a.position_ids', … and 3 more" into `out`; empty: none. Returns their number in `*ret`.
 */
FL_MUST_CHECK int fl_st_constants(const char *path, char *out, size_t size, size_t *ret,
                                  struct fl_err *err);
/* Read the tensors of `layout` by name into `params`; FL_ESHAPE names the first difference. */
FL_MUST_CHECK int fl_st_load(const char *path, const struct fl_layout *layout, float *params,
                             struct fl_err *err);
/* A "__metadata__" key to read together with the parameters. */
struct fl_st_field {
    const char *key;
    char *out; /* [size]; empty when the key is missing */
    size_t size;
    bool found;
};
/*
 * fl_st_load() with metadata, from a single read, so that the metadata belongs to the
 * parameters. A value that does not fit is FL_EFORMAT. `*ret_checked`: the file has a checksum,
 * which matches. On error `params` and `fields` are undefined.
 */
FL_MUST_CHECK int fl_st_load_fields(const char *path, const struct fl_layout *layout, float *params,
                                    struct fl_st_field *fields, size_t n_fields, bool *ret_checked,
                                    struct fl_err *err);
/* Copy the value of a "__metadata__" key into `out`; FL_ENOENT when the key is missing. */
FL_MUST_CHECK int fl_st_meta(const char *path, const char *key, char *out, size_t size,
                             struct fl_err *err);

#endif
