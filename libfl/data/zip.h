#ifndef FL_DATA_ZIP_H
#define FL_DATA_ZIP_H

/*
 * ZIP archives, as numpy writes NPZ: stored and deflated entries, with 64-bit sizes
 * (APPNOTE 6.3.9). No encryption, no archives of several files. The directory at the end is read
 * once; an entry is then a source of bytes whose length and CRC-32 must be those of the directory.
 *
 * Limits, so that a small file cannot take much memory or time: the directory FL__ZIP_MAX_DIRECTORY
 * bytes and FL__ZIP_MAX_ENTRIES entries; an entry whose directory claims more than deflate can pack
 * (1032 : 1), or more than FL__ZIP_MAX_RATIO : 1 above FL__ZIP_BOMB bytes, is refused before it is
 * unpacked.
 *
 * Threading: an archive and its streams belong to one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/source.h"

#define FL__ZIP_MAX_DIRECTORY ((uint64_t)4 << 20)
#define FL__ZIP_MAX_ENTRIES   4096
#define FL__ZIP_MAX_RATIO     200
#define FL__ZIP_BOMB          ((uint64_t)256 << 20)

struct fl__zip {
    const char *name; /* the path, for messages */
    int fd;
    uint64_t size;
    uint8_t *directory; /* [directory_size]: the entries */
    size_t directory_size;
    size_t n_entries;
};

/* FL_ENOENT, FL_EFORMAT, FL_ELIMIT, FL_EIO. On success the caller calls fl__zip_close(). */
FL_MUST_CHECK int fl__zip_open(struct fl__zip *zip, const char *path, struct fl_err *err);
void fl__zip_close(struct fl__zip *zip);
bool fl__zip_has(const struct fl__zip *zip, const char *entry);
/*
 * Make `src` the entry `entry`; `name` is for messages and kept, as is `zip`. FL_ENOENT,
 * FL_EFORMAT, FL_ELIMIT, FL_EIO, FL_ENOMEM.
 */
FL_MUST_CHECK int fl__zip_source(struct fl_source *src, const struct fl__zip *zip,
                                 const char *entry, const char *name, struct fl_err *err);

/* zip_stream.c: what fl__source_read() and fl__source_close() do for an entry. */

struct fl__zip_entry {
    unsigned method, flags;
    uint32_t crc;
    uint64_t packed, size; /* bytes */
    uint64_t at;           /* offset of the packed bytes */
};
/* Read exactly `len` bytes of the archive at `at`, which are within it. */
FL_MUST_CHECK int fl__zip_pread(const struct fl__zip *zip, void *buf, size_t len, uint64_t at,
                                struct fl_err *err);
/* Returns owned: fl__zip_stream_free(). FL_ENOMEM. */
FL_MUST_CHECK int fl__zip_stream_create(const struct fl__zip *zip,
                                        const struct fl__zip_entry *entry,
                                        struct fl__zip_stream **ret, struct fl_err *err);
void fl__zip_stream_free(struct fl__zip_stream *stream); /* NULL is allowed. */
/* Up to `len` bytes; fewer only at the end of the entry, where length and checksum are checked. */
FL_MUST_CHECK int fl__zip_stream_read(struct fl__zip_stream *stream, const char *name, void *buf,
                                      size_t len, size_t *ret_got, struct fl_err *err);

#endif
