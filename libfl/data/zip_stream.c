/* The bytes of one entry of a ZIP archive: stored, or inflated piece by piece by zlib (zip.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "libfl/data/zip.h"

#define PIECE ((size_t)1 << 16)

struct fl__zip_stream {
    const struct fl__zip *zip;
    struct fl__zip_entry entry;
    uint64_t taken; /* packed bytes read */
    uint64_t given; /* bytes returned */
    uint32_t crc;
    bool ended; /* the deflated stream is complete */
    bool checked;
    z_stream z;
    uint8_t piece[PIECE];
};

int fl__zip_stream_create(const struct fl__zip *zip, const struct fl__zip_entry *entry,
                          struct fl__zip_stream **ret, struct fl_err *err)
{
    struct fl__zip_stream *stream = calloc(1, sizeof(*stream));

    /* Negative window bits: no head of zlib. */
    if (stream == NULL || inflateInit2(&stream->z, -MAX_WBITS) != Z_OK) {
        free(stream);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot unpack it", zip->name);
    }
    stream->zip = zip;
    stream->entry = *entry;
    *ret = stream;
    return FL_OK;
}

void fl__zip_stream_free(struct fl__zip_stream *stream)
{
    if (stream != NULL) {
        (void)inflateEnd(&stream->z);
        free(stream);
    }
}

/* Read the next packed bytes into stream->piece; *ret_n 0: none are left. */
static int zip_stream_fill(struct fl__zip_stream *stream, size_t *ret_n, struct fl_err *err)
{
    uint64_t left = stream->entry.packed - stream->taken;
    size_t n = left < PIECE ? (size_t)left : PIECE;
    int rv = fl__zip_pread(stream->zip, stream->piece, n, stream->entry.at + stream->taken, err);

    if (rv != FL_OK) {
        return rv;
    }
    stream->taken += n;
    *ret_n = n;
    return FL_OK;
}

static int zip_stream_stored(struct fl__zip_stream *stream, uint8_t *buf, size_t len,
                             size_t *ret_got, struct fl_err *err)
{
    uint64_t left = stream->entry.packed - stream->taken;
    size_t n = left < len ? (size_t)left : len;
    int rv = fl__zip_pread(stream->zip, buf, n, stream->entry.at + stream->taken, err);

    if (rv != FL_OK) {
        return rv;
    }
    stream->taken += n;
    *ret_got = n;
    return FL_OK;
}

/* Inflate up to `len` bytes, less than 4 GiB. */
static int zip_stream_inflate(struct fl__zip_stream *stream, const char *name, uint8_t *buf,
                              size_t len, size_t *ret_got, struct fl_err *err)
{
    z_stream *z = &stream->z;
    size_t n = 0;
    int zrv;
    int rv;

    z->next_out = buf;
    z->avail_out = (uInt)len;
    while (z->avail_out > 0 && !stream->ended) {
        if (z->avail_in == 0) {
            rv = zip_stream_fill(stream, &n, err);
            if (rv != FL_OK) {
                return rv;
            }
            z->next_in = stream->piece;
            z->avail_in = (uInt)n;
        }
        zrv = inflate(z, Z_NO_FLUSH);
        if (zrv == Z_MEM_ERROR) {
            return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot unpack it", name);
        }
        stream->ended = zrv == Z_STREAM_END;
        if (zrv != Z_OK && zrv != Z_STREAM_END) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s': damaged: after %" PRIu64 " of %" PRIu64
                              " bytes the deflated data %s",
                              name, stream->given + (len - z->avail_out), stream->entry.size,
                              z->avail_in == 0 && z->msg == NULL ? "end" : "are invalid");
        }
    }
    *ret_got = len - z->avail_out;
    return FL_OK;
}

/* At the end of an entry: its length and checksum are those of the directory. */
static int zip_stream_check(struct fl__zip_stream *stream, const char *name, struct fl_err *err)
{
    if (stream->given != stream->entry.size) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': damaged: expected %" PRIu64 " bytes, found %" PRIu64, name,
                          stream->entry.size, stream->given);
    }
    if (stream->crc != stream->entry.crc) {
        return fl_err_set(err, FL_EFORMAT, "'%s': damaged: wrong checksum", name);
    }
    stream->checked = true;
    return FL_OK;
}

int fl__zip_stream_read(struct fl__zip_stream *stream, const char *name, void *buf, size_t len,
                        size_t *ret_got, struct fl_err *err)
{
    size_t done = 0;
    size_t got = 0;
    int rv;

    while (done < len) {
        size_t step = len - done < ((size_t)1 << 30) ? len - done : (size_t)1 << 30;
        uint8_t *to = (uint8_t *)buf + done;

        rv = stream->entry.method == 0 ? zip_stream_stored(stream, to, step, &got, err)
                                       : zip_stream_inflate(stream, name, to, step, &got, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (got > stream->entry.size - stream->given) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s': damaged: expected %" PRIu64 " bytes, found more", name,
                              stream->entry.size);
        }
        stream->crc = (uint32_t)crc32(stream->crc, to, (uInt)got);
        stream->given += got;
        done += got;
        if (got < step) {
            break;
        }
    }
    *ret_got = done;
    if (done < len && !stream->checked) {
        return zip_stream_check(stream, name, err);
    }
    return FL_OK;
}
