#ifndef FL_MODEL_ST_PARSE_H
#define FL_MODEL_ST_PARSE_H

/*
 * Headers of safetensors files, read and checked; private to libfl/model.
 *
 * Limits: a header of at most 16 MiB; its brackets and commas are counted before it is parsed as
 * JSON, so that a header of "[],[],…" cannot make the JSON parser allocate a disproportionate
 * amount of memory.
 */

#include <jansson.h>
#include <stdbool.h>

#include "libfl/base/checksum.h"
#include "libfl/model/layout.h"

#define FL_ST_MAX_HEADER ((size_t)16 << 20)
/* Metadata key of fl_layout_text(). */
#define FL_ST_LAYOUT_KEY "fl.layout"
/*
 * The beginning of the header of a file with a checksum: 16 hex digits follow, XXH3 of the whole
 * file with zeros in their place. A program that rewrites a file and keeps its metadata puts the
 * key elsewhere or keeps an old value; only a checksum at this place is verified.
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

/* Open a file and check everything except the data. Close with fl_st_close(). */
FL_MUST_CHECK int fl_st_open(const char *path, struct fl_st_file *ret, struct fl_err *err);
void fl_st_close(struct fl_st_file *file);
/* Comparison functions for qsort(): by data offset, and by name. */
int fl_st_by_begin(const void *a, const void *b);
int fl_st_by_name(const void *a, const void *b);
/*
 * A layout for files of other programs: units are the name prefixes before the last dot, in data
 * order, with batch-norms in the units of their layers. Free with fl_layout_free().
 */
FL_MUST_CHECK int fl_st_layout_by_names(const struct fl_st_file *file, struct fl_layout **ret,
                                        struct fl_err *err);
/* Convert `n` numbers from the file to float. */
void fl_st_convert(enum fl_st_dtype dtype, float *out, const uint8_t *raw, size_t n);
/* Size of one number in bytes. */
size_t fl_st_dtype_size(enum fl_st_dtype dtype);
/* "__metadata__" value of `key`, borrowed from the file, or NULL. */
const char *fl_st_meta_of(const struct fl_st_file *file, const char *key);

#endif
