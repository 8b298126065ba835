#ifndef FL_MODEL_ST_PARSE_H
#define FL_MODEL_ST_PARSE_H

/*
 * The header of a safetensors file, read and checked; private to libfl/model.
 *
 * Limits: a header of at most 16 MiB; its brackets and commas are counted before the
 * JSON reader sees it, so that a header made of "[],[],…" cannot make that reader take
 * memory out of proportion.
 */

#include <jansson.h>
#include <stdbool.h>

#include "libfl/base/checksum.h"
#include "libfl/model/layout.h"

#define FL_ST_MAX_HEADER ((size_t)16 << 20)
/* Key of our metadata that holds fl_layout_text(). */
#define FL_ST_LAYOUT_KEY "fl.layout"
/*
 * How the header of a file begins that carries a checksum: its digits follow, XXH3 of the
 * whole file with zeros in their place. A program that writes a file anew and keeps our
 * metadata puts it elsewhere, or as it was: only what is exactly here is ours.
 */
#define FL_ST_CHECKSUM_KEY  "fl.checksum"
#define FL_ST_CHECKSUM_HEAD "{\"__metadata__\":{\"" FL_ST_CHECKSUM_KEY "\":\""
#define FL_ST_CHECKSUM_NONE "0000000000000000"

enum fl_st_dtype { FL_ST_F32, FL_ST_F16, FL_ST_BF16, FL_ST_F64, FL_ST_SKIPPED };

struct fl_st_entry {
    const char *name; /* borrowed from the JSON tree */
    enum fl_st_dtype dtype;
    bool counter; /* num_batches_tracked of a batch-norm, which is skipped */
    size_t dims[FL_LAYOUT_MAX_DIMS];
    size_t n_dims;
    uint64_t count;
    uint64_t begin, end; /* bytes from the start of the data */
};

struct fl_st_file {
    int fd;
    uint64_t data_offset; /* of the data in the file */
    json_t *root;
    struct fl_st_entry *entries; /* in data order */
    size_t n_entries;
    struct fl_summer *summer; /* over the header; NULL: the file carries no checksum */
    char checksum[FL_CHECKSUM_TEXT];
};

/* Open and check everything but the data itself. Close with fl_st_close(). */
FL_MUST_CHECK int fl_st_open(const char *path, struct fl_st_file *ret, struct fl_err *err);
void fl_st_close(struct fl_st_file *file);
/* Entries as they lie in the file, and by name. */
int fl_st_by_begin(const void *a, const void *b);
int fl_st_by_name(const void *a, const void *b);
/*
 * A layout whose units are the name prefixes before the last dot, in data order, with batch-norms
 * in those of their layers: for files of other programs. Free with fl_layout_free().
 */
FL_MUST_CHECK int fl_st_layout_by_names(const struct fl_st_file *file, struct fl_layout **ret,
                                        struct fl_err *err);
/* `n` numbers as they lie in the file, to float. */
void fl_st_convert(enum fl_st_dtype dtype, float *out, const uint8_t *raw, size_t n);
/* Bytes of one number. */
size_t fl_st_dtype_size(enum fl_st_dtype dtype);
/* "__metadata__" value of `key`, borrowed from the file, or NULL. */
const char *fl_st_meta_of(const struct fl_st_file *file, const char *key);

#endif
