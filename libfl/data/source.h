#ifndef FL_DATA_SOURCE_H
#define FL_DATA_SOURCE_H

/*
 * Sources of bytes for the readers: a plain file, a gzip file, an entry of a ZIP archive or memory.
 * The size of plain files and memory is known, so sizes in a header are checked before allocation;
 * that of packed files is not, so memory grows with the data read.
 *
 * Ownership: `name`, memory and archive are kept by reference until fl__source_close().
 * Threading: one thread per source.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl__zip_stream;

struct fl_source {
    const char *name;           /* the path, for messages */
    void *gz;                   /* handle of zlib; NULL for memory */
    struct fl__zip_stream *zip; /* an entry of an archive (zip.h); else NULL */
    const uint8_t *mem;
    uint64_t size; /* UINT64_MAX when unknown (packed) */
    uint64_t pos;  /* bytes delivered so far */
    bool cut;      /* the packed stream is truncated */
};

/* FL_ENOENT, FL_EFORMAT for an empty file or one that is not a regular file, FL_EIO. */
FL_MUST_CHECK int fl__source_open(struct fl_source *src, const char *path, struct fl_err *err);
void fl__source_mem(struct fl_source *src, const char *name, const void *data, size_t len);
void fl__source_close(struct fl_source *src);

/* Up to `len` bytes; fewer only at the end of the data. */
FL_MUST_CHECK int fl__source_read(struct fl_source *src, void *buf, size_t len, size_t *ret_got,
                                  struct fl_err *err);
/* True when the source can have `len` more bytes, or its size is unknown. */
bool fl__source_may_have(const struct fl_source *src, uint64_t len);
/*
 * Read exactly `len` bytes into new memory, which grows with the data read. FL_EFORMAT
 * "truncated" when there are fewer, with the expected and the actual size of the file. Returns
 * owned: free().
 */
FL_MUST_CHECK int fl__source_read_new(struct fl_source *src, uint64_t len, void **ret,
                                      struct fl_err *err);
/* Report a source with fewer than `expected` bytes in total. */
int fl__source_truncated(struct fl_source *src, uint64_t expected, struct fl_err *err);
/* FL_EFORMAT when bytes are left; also verifies the gzip checksum. */
FL_MUST_CHECK int fl__source_expect_end(struct fl_source *src, struct fl_err *err);

#endif
