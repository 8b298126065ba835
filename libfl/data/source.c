/*
 * Sources of bytes for the readers: plain and gzip files through zlib, and memory (source.h).
 * Blocking I/O on the caller's thread.
 */
#include "libfl/data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libfl/data/dataset.h"
#include "libfl/data/zip.h"

/* First allocation for a packed file, independent of the sizes in its header. */
#define FIRST_GRANT ((uint64_t)16 << 20)
/* gzread() takes an unsigned and returns an int. */
#define READ_STEP ((size_t)1 << 30)

static int source_io_error(struct fl_err *err, const char *what, const char *path)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "%s '%s': %s", what, path, strerror(saved));
}

int fl__source_open(struct fl_source *src, const char *path, struct fl_err *err)
{
    struct stat st;
    gzFile gz;
    int fd;

    if (stat(path, &st) != 0) {
        return source_io_error(err, "cannot open", path);
    }
    if (!S_ISREG(st.st_mode)) { /* Checked before open(), which would block on a pipe. */
        return fl_err_set(err, FL_EFORMAT, "'%s' is not a regular file", path);
    }
    if (st.st_size == 0) {
        return fl_err_set(err, FL_EFORMAT, "'%s' is empty", path);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return source_io_error(err, "cannot open", path);
    }
    gz = gzdopen(fd, "rb");
    if (gz == NULL) {
        (void)close(fd);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot read it", path);
    }
    (void)gzbuffer(gz, 1u << 17);
    *src = (struct fl_source){.name = path, .gz = gz, .size = UINT64_MAX};
    if (gzdirect(gz) != 0) {
        src->size = (uint64_t)st.st_size;
    }
    return FL_OK;
}

void fl__source_mem(struct fl_source *src, const char *name, const void *data, size_t len)
{
    *src = (struct fl_source){.name = name, .mem = data, .size = len};
}

void fl__source_close(struct fl_source *src)
{
    if (src->gz != NULL) {
        (void)gzclose_r(src->gz); /* Read only: errors do not matter. */
    }
    fl__zip_stream_free(src->zip);
    *src = (struct fl_source){.name = NULL};
}

static int read_gz(struct fl_source *src, uint8_t *buf, size_t len, size_t *ret_got,
                   struct fl_err *err)
{
    size_t got = 0;

    while (got < len) {
        size_t want = len - got < READ_STEP ? len - got : READ_STEP;
        int n = gzread(src->gz, buf + got, (unsigned)want);
        int zerr = Z_OK;
        const char *text;

        if (n > 0) {
            got += (size_t)n;
        }
        if (n == (int)want) {
            continue;
        }
        text = gzerror(src->gz, &zerr);
        if (zerr == Z_BUF_ERROR) {
            /* The data read is valid; the reader decides whether it is complete. */
            src->cut = true;
        } else if (zerr == Z_ERRNO) {
            return source_io_error(err, "cannot read", src->name);
        } else if (zerr != Z_OK && zerr != Z_STREAM_END) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s': damaged gzip data after %" PRIu64 " unpacked bytes: %s",
                              src->name, src->pos + got, text);
        }
        break;
    }
    *ret_got = got;
    return FL_OK;
}

int fl__source_read(struct fl_source *src, void *buf, size_t len, size_t *ret_got,
                    struct fl_err *err)
{
    size_t got = 0;
    int rv;

    if (src->gz != NULL) {
        rv = read_gz(src, buf, len, &got, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else if (src->zip != NULL) {
        rv = fl__zip_stream_read(src->zip, src->name, buf, len, &got, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else {
        got = src->size - src->pos < len ? (size_t)(src->size - src->pos) : len;
        if (got > 0) {
            (void)memcpy(buf, src->mem + src->pos, got);
        }
    }
    src->pos += got;
    *ret_got = got;
    return FL_OK;
}

bool fl__source_may_have(const struct fl_source *src, uint64_t len)
{
    return src->size == UINT64_MAX || (src->pos <= src->size && len <= src->size - src->pos);
}

int fl__source_truncated(struct fl_source *src, uint64_t expected, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT,
                      "'%s': truncated: expected %" PRIu64 " bytes%s, found %" PRIu64 "%s",
                      src->name, expected, src->size == UINT64_MAX ? " unpacked" : "",
                      src->size == UINT64_MAX ? src->pos : src->size,
                      src->cut ? " (the gzip stream is cut short)" : "");
}

int fl__source_read_new(struct fl_source *src, uint64_t len, void **ret, struct fl_err *err)
{
    uint64_t expected = src->pos + len;
    uint64_t cap = len;
    uint64_t have = 0;
    uint8_t *data = NULL;
    int rv;

    if (!fl__source_may_have(src, len)) {
        return fl__source_truncated(src, expected, err);
    }
    if (len > FL_DATA_MAX_BYTES) {
        return fl_err_set(err, FL_ELIMIT, "'%s': %" PRIu64 " bytes are more than can be held",
                          src->name, len);
    }
    if (src->size == UINT64_MAX && cap > FIRST_GRANT) {
        cap = FIRST_GRANT;
    }
    for (;;) {
        size_t want = (size_t)(cap - have);
        size_t got = 0;
        uint8_t *grown = realloc(data, cap > 0 ? (size_t)cap : 1);

        if (grown == NULL) {
            rv = fl_err_set(err, FL_ENOMEM, "cannot hold the %" PRIu64 " bytes of '%s'", len,
                            src->name);
            goto out;
        }
        data = grown;
        rv = fl__source_read(src, data + have, want, &got, err);
        if (rv != FL_OK) {
            goto out;
        }
        have += got;
        if (have == len) {
            *ret = data;
            return FL_OK;
        }
        if (got < want) {
            rv = fl__source_truncated(src, expected, err);
            goto out;
        }
        cap = cap > len / 2 ? len : cap * 2;
    }
out:
    free(data);
    return rv;
}

int fl__source_expect_end(struct fl_source *src, struct fl_err *err)
{
    uint8_t extra[4096];
    uint64_t expected = src->pos;
    size_t got = 0;
    int rv = fl__source_read(src, extra, sizeof(extra), &got, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (got > 0) {
        return fl_err_set(
            err, FL_EFORMAT, "'%s': expected %" PRIu64 " bytes, found at least %" PRIu64 " more",
            src->name, expected, src->size != UINT64_MAX ? src->size - expected : (uint64_t)got);
    }
    if (src->cut) {
        return fl_err_set(err, FL_EFORMAT, "'%s': the gzip stream is cut short", src->name);
    }
    return FL_OK;
}
