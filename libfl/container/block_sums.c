#include "libfl/container/block_sums.h"

#include <stdlib.h>

size_t fl_block_sums_count(uint64_t bytes)
{
    return (size_t)((bytes + FL_SUM_BLOCK - 1) / FL_SUM_BLOCK);
}

int fl_block_sums_reserve(struct fl_block_sums *sums, size_t len)
{
    size_t want = fl_block_sums_count(sums->bytes + len);
    size_t cap = want + want / 2;
    uint64_t *grown;
    int rv = sums->open == NULL ? fl_summer_new(&sums->open) : FL_OK;

    if (rv != FL_OK) {
        return rv;
    }
    if (want <= sums->cap) {
        return FL_OK;
    }
    grown = realloc(sums->list, cap * sizeof(*grown));
    if (grown == NULL) {
        return FL_ENOMEM;
    }
    sums->list = grown;
    sums->cap = cap;
    return FL_OK;
}

static void close_block(struct fl_block_sums *sums)
{
    FL_REQUIRE(sums->n < sums->cap);
    sums->list[sums->n++] = fl_summer_value(sums->open);
    fl_summer_reset(sums->open);
}

void fl_block_sums_add(struct fl_block_sums *sums, const void *data, size_t len)
{
    const uint8_t *at = data;

    while (len > 0) {
        size_t room = FL_SUM_BLOCK - (size_t)(sums->bytes % FL_SUM_BLOCK);
        size_t n = len < room ? len : room;

        if (n == FL_SUM_BLOCK) { /* A whole block at once is faster on some machines. */
            FL_REQUIRE(sums->n < sums->cap);
            sums->list[sums->n++] = fl_checksum(at, n);
            sums->bytes += n;
        } else {
            fl_summer_add(sums->open, at, n);
            sums->bytes += n;
            if (n == room) {
                close_block(sums);
            }
        }
        at += n;
        len -= n;
    }
}

void fl_block_sums_end(struct fl_block_sums *sums)
{
    if (sums->n < fl_block_sums_count(sums->bytes)) {
        close_block(sums);
    }
}

void fl_block_sums_done(struct fl_block_sums *sums)
{
    free(sums->list);
    fl_summer_free(sums->open);
    *sums = (struct fl_block_sums){0};
}

bool fl_block_sums_match(const uint64_t *list, uint64_t offset, const void *data, size_t len)
{
    const uint8_t *at = data;
    size_t block = (size_t)(offset / FL_SUM_BLOCK);

    FL_REQUIRE(offset % FL_SUM_BLOCK == 0);
    while (len > 0) {
        size_t n = len < FL_SUM_BLOCK ? len : FL_SUM_BLOCK;

        if (fl_checksum(at, n) != list[block]) {
            return false;
        }
        block++;
        at += n;
        len -= n;
    }
    return true;
}
