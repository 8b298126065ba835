#ifndef FL_TESTS_CONTAINER_FILE_H
#define FL_TESTS_CONTAINER_FILE_H

/* Container files (libfl/container) with a changed head whose checksum is right. */

#include <stdint.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/checksum.h"

#define CONTAINER_VERSION 16 /* offset of the version of the kind */

/* Offset of the checksum of a head, that is, the length of what it covers; 0: none in the file. */
static inline size_t container_covered(const struct fl_buf *file)
{
    uint32_t n = 0;
    uint32_t fields = 0;
    size_t at;

    if (file->len < 32) {
        return 0;
    }
    (void)memcpy(&n, file->data + 20, sizeof(n));
    (void)memcpy(&fields, file->data + 28, sizeof(fields));
    at = 32 + (size_t)16 * n + fields;
    return at + 16 <= file->len ? at : 0;
}

/* Compute the checksum again; the count of received bytes stays what it was. */
static inline void container_set_hash(struct fl_buf *file)
{
    size_t at = container_covered(file);
    uint64_t hash[2];
    uint64_t now;

    if (at == 0) {
        return;
    }
    now = fl_checksum(file->data, at);
    (void)memcpy(hash, file->data + at, sizeof(hash));
    if ((file->data[24] & 1u) != 0) { /* in place */
        hash[1] ^= hash[0] ^ now;
    }
    hash[0] = now;
    (void)memcpy(file->data + at, hash, sizeof(hash));
}

/* As a later program writes it. */
static inline void container_make_later(struct fl_buf *file)
{
    file->data[CONTAINER_VERSION]++;
    container_set_hash(file);
}

#endif
