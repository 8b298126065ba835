/*
 * The directory of a ZIP archive (zip.h): found from the end of the file, checked entry by entry.
 * Unpacking is in zip_stream.c. Blocking I/O on the caller's thread.
 */
#include "libfl/data/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"

/* The records of APPNOTE 4.3: sizes of their fixed parts, and their signatures. */
#define END_SIZE         22
#define END_SIGNATURE    0x06054b50U
#define END64_SIZE       56
#define END64_SIGNATURE  0x06064b50U
#define FIND64_SIZE      20
#define FIND64_SIGNATURE 0x07064b50U
#define ENTRY_SIZE       46
#define ENTRY_SIGNATURE  0x02014b50U
#define LOCAL_SIZE       30
#define LOCAL_SIGNATURE  0x04034b50U
#define COMMENT_MAX      65535
#define EXTRA_ZIP64      1
#define FLAG_ENCRYPTED   1U

static uint64_t zip_le(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

static int zip_broken(const struct fl__zip *zip, const char *what, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "'%s': %s", zip->name, what);
}

int fl__zip_pread(const struct fl__zip *zip, void *buf, size_t len, uint64_t at, struct fl_err *err)
{
    FL_REQUIRE(at <= zip->size && len <= zip->size - at);
    if (fl_fs_pread(zip->fd, buf, len, at) != FL_OK) {
        return fl_err_set(err, FL_EIO, "cannot read %zu bytes at %" PRIu64 " of '%s'", len, at,
                          zip->name);
    }
    return FL_OK;
}

/* Where the directory is: offset, bytes, entries. */
struct zip_end {
    uint64_t at, size, n;
};

/* The end record for archives of 4 GiB and more; the 32-bit one stays when there is none. */
static int zip_find_end64(const struct fl__zip *zip, uint64_t end_at, struct zip_end *end,
                          struct fl_err *err)
{
    uint8_t raw[END64_SIZE];
    uint64_t at;
    int rv;

    if (end_at < FIND64_SIZE) {
        return FL_OK;
    }
    rv = fl__zip_pread(zip, raw, FIND64_SIZE, end_at - FIND64_SIZE, err);
    if (rv != FL_OK || zip_le(raw, 4) != FIND64_SIGNATURE) {
        return rv;
    }
    at = zip_le(raw + 8, 8);
    if (end_at < END64_SIZE || at > end_at - END64_SIZE) {
        return zip_broken(zip, "damaged archive: its 64-bit end record is outside", err);
    }
    rv = fl__zip_pread(zip, raw, END64_SIZE, at, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (zip_le(raw, 4) != END64_SIGNATURE) {
        return zip_broken(zip, "damaged archive: its 64-bit end record has another signature", err);
    }
    *end = (struct zip_end){
        .n = zip_le(raw + 32, 8), .size = zip_le(raw + 40, 8), .at = zip_le(raw + 48, 8)};
    return FL_OK;
}

/* The end record is in the last 64 KiB, before a comment whose length it has. */
static int zip_find_end(const struct fl__zip *zip, struct zip_end *ret, struct fl_err *err)
{
    size_t tail = zip->size < END_SIZE + COMMENT_MAX ? (size_t)zip->size : END_SIZE + COMMENT_MAX;
    uint64_t from = zip->size - tail;
    uint8_t *raw;
    size_t at;
    int rv;

    if (tail < END_SIZE) {
        return zip_broken(zip, "expected a ZIP archive, found too few bytes for one", err);
    }
    raw = malloc(tail);
    if (raw == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot read it", zip->name);
    }
    rv = fl__zip_pread(zip, raw, tail, from, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (at = tail - END_SIZE;; at--) {
        if (zip_le(raw + at, 4) == END_SIGNATURE &&
            zip_le(raw + at + 20, 2) == tail - at - END_SIZE) {
            break;
        }
        if (at == 0) {
            rv = zip_broken(
                zip, "expected a ZIP archive, found no end record: no archive, or truncated", err);
            goto done;
        }
    }
    *ret = (struct zip_end){.n = zip_le(raw + at + 10, 2),
                            .size = zip_le(raw + at + 12, 4),
                            .at = zip_le(raw + at + 16, 4)};
    rv = zip_find_end64(zip, from + at, ret, err);
done:
    free(raw);
    return rv;
}

static int zip_read_directory(struct fl__zip *zip, struct fl_err *err)
{
    struct zip_end end = {.n = 0};
    size_t at = 0;
    size_t i;
    int rv = zip_find_end(zip, &end, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (end.at > zip->size || end.size > zip->size - end.at) {
        return zip_broken(zip, "damaged archive: its directory is outside", err);
    }
    if (end.size > FL__ZIP_MAX_DIRECTORY || end.n > FL__ZIP_MAX_ENTRIES) {
        return fl_err_set(err, FL_ELIMIT,
                          "'%s': expected an archive of at most %d entries and a directory of "
                          "%" PRIu64 " bytes, found %" PRIu64 " and %" PRIu64,
                          zip->name, FL__ZIP_MAX_ENTRIES, FL__ZIP_MAX_DIRECTORY, end.n, end.size);
    }
    zip->directory = malloc((size_t)end.size + 1);
    if (zip->directory == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its directory", zip->name);
    }
    zip->directory_size = (size_t)end.size;
    zip->n_entries = (size_t)end.n;
    rv = fl__zip_pread(zip, zip->directory, zip->directory_size, end.at, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < zip->n_entries; i++) {
        const uint8_t *e = zip->directory + at;

        if (zip->directory_size - at < ENTRY_SIZE || zip_le(e, 4) != ENTRY_SIGNATURE ||
            zip_le(e + 28, 2) + zip_le(e + 30, 2) + zip_le(e + 32, 2) >
                zip->directory_size - at - ENTRY_SIZE)
        {
            return fl_err_set(
                err, FL_EFORMAT,
                "'%s': damaged archive: entry %zu of %zu of its directory is no entry", zip->name,
                i + 1, zip->n_entries);
        }
        at += ENTRY_SIZE + zip_le(e + 28, 2) + zip_le(e + 30, 2) + zip_le(e + 32, 2);
    }
    return FL_OK;
}

int fl__zip_open(struct fl__zip *zip, const char *path, struct fl_err *err)
{
    struct stat st;
    int rv;

    *zip = (struct fl__zip){.name = path, .fd = -1};
    if (stat(path, &st) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot open '%s': %s", path,
                          strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) { /* Checked before open(), which would block on a pipe. */
        return fl_err_set(err, FL_EFORMAT, "'%s' is not a regular file", path);
    }
    zip->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (zip->fd < 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot open '%s': %s", path,
                          strerror(errno));
    }
    zip->size = (uint64_t)st.st_size;
    rv = zip_read_directory(zip, err);
    if (rv != FL_OK) {
        fl__zip_close(zip);
    }
    return rv;
}

void fl__zip_close(struct fl__zip *zip)
{
    free(zip->directory);
    if (zip->fd >= 0) {
        (void)close(zip->fd);
    }
    *zip = (struct fl__zip){.fd = -1};
}

/* The entry of this name in the directory, or NULL; the first one, as numpy takes it. */
static const uint8_t *zip_find(const struct fl__zip *zip, const char *name)
{
    const uint8_t *e = zip->directory;
    size_t len = strlen(name);
    size_t i;

    for (i = 0; i < zip->n_entries; i++) {
        if (zip_le(e + 28, 2) == len && memcmp(e + ENTRY_SIZE, name, len) == 0) {
            return e;
        }
        e += ENTRY_SIZE + zip_le(e + 28, 2) + zip_le(e + 30, 2) + zip_le(e + 32, 2);
    }
    return NULL;
}

bool fl__zip_has(const struct fl__zip *zip, const char *entry)
{
    return zip_find(zip, entry) != NULL;
}

/* The values of 64 bits of those that are all ones in the entry: size, packed size, offset. */
static bool zip_wide(const uint8_t *e, uint64_t *size, uint64_t *packed, uint64_t *offset)
{
    uint64_t *const values[3] = {size, packed, offset};
    const uint8_t *extra = e + ENTRY_SIZE + zip_le(e + 28, 2);
    size_t left = (size_t)zip_le(e + 30, 2);
    size_t i;

    if (*size != UINT32_MAX && *packed != UINT32_MAX && *offset != UINT32_MAX) {
        return true;
    }
    while (left >= 4) {
        size_t len = (size_t)zip_le(extra + 2, 2);
        const uint8_t *p = extra + 4;

        if (len > left - 4) {
            return false;
        }
        for (i = 0; i < 3 && zip_le(extra, 2) == EXTRA_ZIP64; i++) {
            if (*values[i] != UINT32_MAX) {
                continue;
            }
            if ((size_t)(extra + 4 + len - p) < 8) {
                return false;
            }
            *values[i] = zip_le(p, 8);
            p += 8;
        }
        if (zip_le(extra, 2) == EXTRA_ZIP64) {
            return true;
        }
        extra += 4 + len;
        left -= 4 + len;
    }
    return false;
}

/* What the directory says of an entry, and where its bytes begin, which its own head says. */
static int zip_entry(const struct fl__zip *zip, const uint8_t *e, const char *name,
                     struct fl__zip_entry *ret, struct fl_err *err)
{
    uint64_t offset = zip_le(e + 42, 4);
    uint8_t local[LOCAL_SIZE];
    int rv;

    *ret = (struct fl__zip_entry){.flags = (unsigned)zip_le(e + 8, 2),
                                  .method = (unsigned)zip_le(e + 10, 2),
                                  .crc = (uint32_t)zip_le(e + 16, 4),
                                  .packed = zip_le(e + 20, 4),
                                  .size = zip_le(e + 24, 4)};
    if (!zip_wide(e, &ret->size, &ret->packed, &offset) || zip->size < LOCAL_SIZE ||
        offset > zip->size - LOCAL_SIZE)
    {
        return fl_err_set(err, FL_EFORMAT, "'%s': damaged archive: it is outside of the file",
                          name);
    }
    rv = fl__zip_pread(zip, local, sizeof(local), offset, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->at = offset + LOCAL_SIZE + zip_le(local + 26, 2) + zip_le(local + 28, 2);
    if (zip_le(local, 4) != LOCAL_SIGNATURE || ret->at > zip->size ||
        ret->packed > zip->size - ret->at) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': damaged archive: its %" PRIu64 " packed bytes are not there", name,
                          ret->packed);
    }
    return FL_OK;
}

/* Refuse what is not supported, or cannot be true, before anything is unpacked. */
static int zip_check(const struct fl__zip_entry *entry, const char *name, struct fl_err *err)
{
    if ((entry->flags & FLAG_ENCRYPTED) != 0) {
        return fl_err_set(err, FL_EFORMAT, "'%s': expected no encryption", name);
    }
    if (entry->method != 0 && entry->method != 8) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected a stored or deflated entry, found method %u", name,
                          entry->method);
    }
    if (entry->method == 0 && entry->size != entry->packed) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': damaged archive: %" PRIu64 " bytes are stored as %" PRIu64, name,
                          entry->size, entry->packed);
    }
    /* A deflated block repeats at most 258 bytes by two bits: 1032 to 1. */
    if (entry->size / 1032 > entry->packed + 16 ||
        (entry->size > FL__ZIP_BOMB && entry->size / FL__ZIP_MAX_RATIO > entry->packed))
    {
        return fl_err_set(err, FL_ELIMIT,
                          "'%s': expected at most %d times the %" PRIu64
                          " packed bytes, found %" PRIu64 ": this looks like a ZIP bomb",
                          name, FL__ZIP_MAX_RATIO, entry->packed, entry->size);
    }
    return FL_OK;
}

int fl__zip_source(struct fl_source *src, const struct fl__zip *zip, const char *entry,
                   const char *name, struct fl_err *err)
{
    const uint8_t *e = zip_find(zip, entry);
    struct fl__zip_stream *stream = NULL;
    struct fl__zip_entry found;
    int rv;

    if (e == NULL) {
        return fl_err_set(err, FL_ENOENT, "'%s': expected the entry '%s', found none of this name",
                          zip->name, entry);
    }
    rv = zip_entry(zip, e, name, &found, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = zip_check(&found, name, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__zip_stream_create(zip, &found, &stream, err);
    if (rv != FL_OK) {
        return rv;
    }
    *src = (struct fl_source){
        .name = name, .zip = stream, .size = found.method == 0 ? found.size : UINT64_MAX};
    return FL_OK;
}
