/* Encodes and decodes the messages of ranks_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/ranks_impl.h"

int fl__ranks_start_message(struct fl_buf *out, const struct fl__ranks_head *head)
{
    fl_buf_init(out, SIZE_MAX / 2);
    return fl_buf_add(out, head, sizeof(*head));
}

int fl__ranks_send(const struct fl_ranks *ranks, unsigned to, struct fl_buf *message,
                   struct fl_err *err)
{
    struct fl_blob *blob = NULL;
    int rv = fl_blob_from_buf(message, &blob);

    rv = rv == FL_OK ? ranks->send(ranks->ctx, to, blob, err) : rv;
    fl_blob_unref(blob);
    fl_buf_done(message);
    return rv;
}

int fl__ranks_skip(struct fl__ranks_rest *rest, uint64_t n, const uint8_t **ret)
{
    if (n > rest->left) {
        return FL_EFORMAT;
    }
    *ret = rest->at;
    rest->at += n;
    rest->left -= (size_t)n;
    return FL_OK;
}

int fl__ranks_read(struct fl__ranks_rest *rest, void *ret, size_t n)
{
    const uint8_t *at;
    int rv = fl__ranks_skip(rest, n, &at);

    if (rv == FL_OK && n > 0) {
        (void)memcpy(ret, at, n);
    }
    return rv;
}

int fl__ranks_read_blob(struct fl__ranks_rest *rest, uint64_t n, struct fl_blob **ret)
{
    const uint8_t *at;
    int rv = fl__ranks_skip(rest, n, &at);

    rv = rv == FL_OK ? fl_blob_create((size_t)n, ret) : rv;
    if (rv == FL_OK && n > 0) {
        (void)memcpy(fl_blob_fill(*ret), at, (size_t)n);
    }
    return rv;
}

int fl__ranks_put_item(struct fl_buf *out, const struct fl_model_cache_item *item)
{
    const struct fl_bytes *b = &item->bytes;
    struct fl__ranks_item head;
    int rv;

    (void)memset(&head, 0, sizeof(head));
    (void)memcpy(head.name, item->name, sizeof(head.name));
    (void)memcpy(head.digest, item->digest, sizeof(head.digest));
    head.has_digest = item->has_digest;
    head.len = fl_bytes_len(b);
    rv = fl_buf_add(out, &head, sizeof(head));
    if (rv == FL_OK && b->file != NULL) {
        rv = fl_buf_reserve(out, (size_t)head.len);
        rv = rv == FL_OK ? fl_file_read(b->file, 0, out->data + out->len, (size_t)head.len) : rv;
        out->len += rv == FL_OK ? (size_t)head.len : 0;
    } else if (rv == FL_OK && b->blob != NULL) {
        rv = fl_buf_add(out, fl_blob_data(b->blob), (size_t)head.len);
    }
    return rv;
}

int fl__ranks_read_item(struct fl__ranks_rest *rest, struct fl_model_cache_item *ret)
{
    struct fl__ranks_item head;
    int rv = fl__ranks_read(rest, &head, sizeof(head));

    if (rv != FL_OK) {
        return rv;
    }
    *ret = (struct fl_model_cache_item){.has_digest = head.has_digest};
    (void)memcpy(ret->name, head.name, sizeof(ret->name));
    (void)memcpy(ret->digest, head.digest, sizeof(ret->digest));
    return fl__ranks_read_blob(rest, head.len, &ret->bytes.blob);
}
