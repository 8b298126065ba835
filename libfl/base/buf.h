#ifndef FL_BASE_BUF_H
#define FL_BASE_BUF_H

/*
 * Bytes in memory: a growing buffer with a limit, and a shared immutable blob.
 *
 * Limits: every fl_buf has a maximum; growing past it is FL_ELIMIT, so that the memory that a peer
 * can cause is bounded where the buffer is created. Threading: a fl_buf belongs to one thread. A
 * fl_blob may be referenced from any thread; its count is atomic and its bytes never change after
 * creation.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max;
    bool secret; /* set after fl_buf_init(): memory is wiped before it is freed */
};

/* A configured limit, clamped to size_t: larger values are unreachable on 32-bit machines. */
static inline size_t fl_addressable(uint64_t limit)
{
    return limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
}

void fl_buf_init(struct fl_buf *buf, size_t max);
void fl_buf_done(struct fl_buf *buf);
/* Remove the contents, keep the memory. */
void fl_buf_clear(struct fl_buf *buf);
/* Make room for `extra` more bytes. FL_ELIMIT past the maximum, FL_ENOMEM. */
FL_MUST_CHECK int fl_buf_reserve(struct fl_buf *buf, size_t extra);
/* Append a copy of `len` bytes. On error the buffer is unchanged. */
FL_MUST_CHECK int fl_buf_add(struct fl_buf *buf, const void *data, size_t len);
FL_MUST_CHECK FL_PRINTF(2, 3) int fl_buf_printf(struct fl_buf *buf, const char *fmt, ...);
FL_MUST_CHECK FL_PRINTF(2, 0) int fl_buf_vprintf(struct fl_buf *buf, const char *fmt, va_list ap);
/* Drop the first `n` bytes (n <= len). */
void fl_buf_drop(struct fl_buf *buf, size_t n);

/* A reference-counted, immutable byte array. */
struct fl_blob;

typedef void (*fl_blob_free_cb)(void *ctx);

/* A blob with its own memory of `len` bytes, to be filled before it is shared. */
FL_MUST_CHECK int fl_blob_create(size_t len, struct fl_blob **ret);
/* A blob over borrowed bytes; `release(ctx)` runs when the last reference is dropped. */
FL_MUST_CHECK int fl_blob_wrap(const void *data, size_t len, fl_blob_free_cb release, void *ctx,
                               struct fl_blob **ret);
/* Its own memory (fl_blob_create()) is wiped before it is freed; before the blob is shared. */
void fl_blob_set_secret(struct fl_blob *blob);
/* Takes the contents of `buf` (which is left empty), no more memory than they need; on error `buf`
 * is unchanged. */
FL_MUST_CHECK int fl_blob_from_buf(struct fl_buf *buf, struct fl_blob **ret);
struct fl_blob *fl_blob_ref(struct fl_blob *blob);
void fl_blob_unref(struct fl_blob *blob); /* NULL is allowed. */
const uint8_t *fl_blob_data(const struct fl_blob *blob);
/* Only before the blob is shared, and only for fl_blob_create(). */
uint8_t *fl_blob_fill(struct fl_blob *blob);
size_t fl_blob_len(const struct fl_blob *blob);
/* Are there more references than the caller's? */
bool fl_blob_is_shared(const struct fl_blob *blob);

#endif
