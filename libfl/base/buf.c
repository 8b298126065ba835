/*
 * Growing buffers with a limit (one thread each) and shared immutable blobs with an atomic
 * reference count (any thread).
 */

#include "libfl/base/buf.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_BUF_MIN_CAP 256

struct fl_blob {
    atomic_uint refs;
    const uint8_t *data;
    uint8_t *own; /* NULL when the bytes are borrowed. */
    size_t len;
    bool secret; /* `own` is wiped */
    fl_blob_free_cb release;
    void *ctx;
};

void fl_buf_init(struct fl_buf *buf, size_t max)
{
    *buf = (struct fl_buf){.max = max};
}

static void buf_wipe(const struct fl_buf *buf)
{
    if (buf->secret && buf->data != NULL) {
        explicit_bzero(buf->data, buf->cap);
    }
}

void fl_buf_done(struct fl_buf *buf)
{
    buf_wipe(buf);
    free(buf->data);
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
}

void fl_buf_clear(struct fl_buf *buf)
{
    buf->len = 0;
}

int fl_buf_reserve(struct fl_buf *buf, size_t extra)
{
    size_t want;
    size_t cap;
    uint8_t *data;

    if (extra > buf->max || buf->len > buf->max - extra) {
        return FL_ELIMIT;
    }
    want = buf->len + extra;
    if (want <= buf->cap) {
        return FL_OK;
    }
    cap = buf->cap < FL_BUF_MIN_CAP ? FL_BUF_MIN_CAP : buf->cap;
    while (cap < want) {
        cap = cap > SIZE_MAX / 2 ? want : cap * 2;
    }
    if (cap > buf->max) {
        cap = buf->max;
    }
    data = buf->secret ? malloc(cap)
                       : realloc(buf->data, cap); /* realloc may leave a copy of secret bytes */
    if (data == NULL) {
        return FL_ENOMEM;
    }
    if (buf->secret && buf->data != NULL) {
        (void)memcpy(data, buf->data, buf->len);
        buf_wipe(buf);
        free(buf->data);
    }
    buf->data = data;
    buf->cap = cap;
    return FL_OK;
}

int fl_buf_add(struct fl_buf *buf, const void *data, size_t len)
{
    int rv;

    if (len == 0) {
        return FL_OK;
    }
    rv = fl_buf_reserve(buf, len);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    return FL_OK;
}

int fl_buf_vprintf(struct fl_buf *buf, const char *fmt, va_list ap)
{
    va_list again;
    int n;
    int rv;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        return FL_EINVAL;
    }
    rv = fl_buf_reserve(buf, (size_t)n + 1);
    if (rv != FL_OK) {
        return rv;
    }
    (void)vsnprintf((char *)buf->data + buf->len, (size_t)n + 1, fmt, ap);
    buf->len += (size_t)n;
    return FL_OK;
}

int fl_buf_printf(struct fl_buf *buf, const char *fmt, ...)
{
    va_list ap;
    int rv;

    va_start(ap, fmt);
    rv = fl_buf_vprintf(buf, fmt, ap);
    va_end(ap);
    return rv;
}

void fl_buf_drop(struct fl_buf *buf, size_t n)
{
    FL_REQUIRE(n <= buf->len);
    if (n < buf->len) {
        (void)memmove(buf->data, buf->data + n, buf->len - n);
    }
    buf->len -= n;
}

int fl_blob_create(size_t len, struct fl_blob **ret)
{
    struct fl_blob *blob = calloc(1, sizeof(*blob));

    if (blob == NULL) {
        return FL_ENOMEM;
    }
    blob->own = malloc(len > 0 ? len : 1);
    if (blob->own == NULL) {
        free(blob);
        return FL_ENOMEM;
    }
    atomic_init(&blob->refs, 1);
    blob->data = blob->own;
    blob->len = len;
    *ret = blob;
    return FL_OK;
}

int fl_blob_wrap(const void *data, size_t len, fl_blob_free_cb release, void *ctx,
                 struct fl_blob **ret)
{
    struct fl_blob *blob = calloc(1, sizeof(*blob));

    if (blob == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&blob->refs, 1);
    blob->data = data;
    blob->len = len;
    blob->release = release;
    blob->ctx = ctx;
    *ret = blob;
    return FL_OK;
}

void fl_blob_set_secret(struct fl_blob *blob)
{
    blob->secret = true;
}

/* Returns what it does not need; a copy of secret bytes would stay behind. */
static void buf_shrink(struct fl_buf *buf)
{
    uint8_t *data =
        buf->secret || buf->len == 0 || buf->len == buf->cap ? NULL : realloc(buf->data, buf->len);

    if (data != NULL) {
        buf->data = data;
        buf->cap = buf->len;
    }
}

int fl_blob_from_buf(struct fl_buf *buf, struct fl_blob **ret)
{
    struct fl_blob *blob = calloc(1, sizeof(*blob));

    if (blob == NULL) {
        return FL_ENOMEM;
    }
    buf_shrink(buf);
    atomic_init(&blob->refs, 1);
    blob->own = buf->data;
    blob->data = buf->data;
    blob->len = buf->len;
    blob->secret = buf->secret;
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
    *ret = blob;
    return FL_OK;
}

struct fl_blob *fl_blob_ref(struct fl_blob *blob)
{
    (void)atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
    return blob;
}

void fl_blob_unref(struct fl_blob *blob)
{
    if (blob == NULL || atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (blob->secret) {
        explicit_bzero(blob->own, blob->len);
    }
    free(blob->own);
    if (blob->release != NULL) {
        blob->release(blob->ctx);
    }
    free(blob);
}

const uint8_t *fl_blob_data(const struct fl_blob *blob)
{
    return blob->data;
}

uint8_t *fl_blob_fill(struct fl_blob *blob)
{
    FL_REQUIRE(blob->own != NULL && atomic_load(&blob->refs) == 1);
    return blob->own;
}

size_t fl_blob_len(const struct fl_blob *blob)
{
    return blob->len;
}

bool fl_blob_is_shared(const struct fl_blob *blob)
{
    return atomic_load(&blob->refs) > 1;
}
