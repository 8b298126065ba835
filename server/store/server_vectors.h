#ifndef FL_STORE_SUMS_H
#define FL_STORE_SUMS_H

/*
 * Checksums of a byte range, one for each block, so that any section can be checked when it is
 * read, before use: 8 bytes for 16 KiB. Private to server/store.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/checksum.h"

#define FL__SUM_BLOCK ((size_t)16384)

/* Computed incrementally, in order. All zero: empty. */
struct fl__sums {
    uint64_t *list; /* one for each block; the last one after fl__sums_end() */
    size_t n, cap;
    struct fl_summer *open; /* state of the unfinished block */
    uint64_t bytes;
};

/* Number of blocks of `bytes` bytes. */
size_t fl__sums_blocks(uint64_t bytes);
/* Reserve memory for `len` more bytes, so that adding them cannot fail. */
FL_MUST_CHECK int fl__sums_reserve(struct fl__sums *sums, size_t len);
void fl__sums_add(struct fl__sums *sums, const void *data, size_t len);
/* Finish the last block. */
void fl__sums_end(struct fl__sums *sums);
void fl__sums_done(struct fl__sums *sums);
/*
 * Do `len` bytes at `offset` match their checksums? `offset` is a block boundary; the end is one
 * too, or the end of the range.
 */
bool fl__sums_match(const uint64_t *list, uint64_t offset, const void *data, size_t len);

#endif
