#ifndef FL_STORE_SUMS_H
#define FL_STORE_SUMS_H

/*
 * Checksums of a run of bytes, one for each block of it, so that any part can be checked as it is
 * read, before it is used: 8 bytes for 16 KiB. For the files of this room only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/checksum.h"

#define FL__SUM_BLOCK ((size_t)16384)

/* Made while the bytes go by, in order. All zero: nothing yet. */
struct fl__sums {
    uint64_t *list; /* one a block; the last one after fl__sums_end() */
    size_t n, cap;
    struct fl_summer *open; /* of the block that is not full */
    uint64_t bytes;
};

/* Blocks of so many bytes. */
size_t fl__sums_blocks(uint64_t bytes);
/* Room for `len` more: adding them cannot fail then. */
FL_MUST_CHECK int fl__sums_reserve(struct fl__sums *sums, size_t len);
void fl__sums_add(struct fl__sums *sums, const void *data, size_t len);
/* No more comes. */
void fl__sums_end(struct fl__sums *sums);
void fl__sums_done(struct fl__sums *sums);
/*
 * Are these the bytes at `offset`? It lies on a border of blocks, and so does the end, or it is
 * that of the run.
 */
bool fl__sums_match(const uint64_t *list, uint64_t offset, const void *data, size_t len);

#endif
