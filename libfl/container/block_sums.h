#ifndef FL_CONTAINER_BLOCK_SUMS_H
#define FL_CONTAINER_BLOCK_SUMS_H

/*
 * Checksums of a byte range, one for each block, so that any section can be checked when it is
 * read, before use: 8 bytes for 16 KiB.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/checksum.h"

#define FL_SUM_BLOCK ((size_t)16384)

/* Computed incrementally, in order. All zero: empty. */
struct fl_block_sums {
    uint64_t *list; /* one for each block; the last one after fl_block_sums_end() */
    size_t n, cap;
    struct fl_summer *open; /* state of the unfinished block */
    uint64_t bytes;
};

/* Number of blocks of `bytes` bytes. */
size_t fl_block_sums_count(uint64_t bytes);
/* Reserve memory for `len` more bytes, so that adding them cannot fail. */
FL_MUST_CHECK int fl_block_sums_reserve(struct fl_block_sums *sums, size_t len);
void fl_block_sums_add(struct fl_block_sums *sums, const void *data, size_t len);
/* Finish the last block. */
void fl_block_sums_end(struct fl_block_sums *sums);
void fl_block_sums_done(struct fl_block_sums *sums);
/*
 * Do `len` bytes at `offset` match their checksums? `offset` is a block boundary; the end is one
 * too, or the end of the range.
 */
bool fl_block_sums_match(const uint64_t *list, uint64_t offset, const void *data, size_t len);

#endif
