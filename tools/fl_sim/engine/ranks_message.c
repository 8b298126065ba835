/* Encodes and decodes the messages of ranks_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/ranks_impl.h"

struct fl_writer fl__ranks_start_message(struct fl_buf *out, const struct fl__ranks_head *head)
{
    struct fl_writer w = {.out = out};

    fl_buf_init(out, SIZE_MAX / 2);
    fl_writer_add(&w, head, sizeof(*head));
    return w;
}

int fl__ranks_finish_message(struct fl_writer *w, struct fl_blob **ret)
{
    int rv = w->code;

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_blob_from_buf(w->out, ret);
done:
    fl_buf_done(w->out);
    return rv;
}

int fl__ranks_send(const struct fl_ranks *ranks, unsigned to, struct fl_writer *w,
                   struct fl_err *err)
{
    struct fl_blob *blob = NULL;
    int rv = fl__ranks_finish_message(w, &blob);

    if (rv != FL_OK) {
        return rv;
    }
    rv = ranks->send(ranks->ctx, to, blob, err);
    fl_blob_unref(blob);
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

    if (rv != FL_OK) {
        return rv;
    }
    if (n > 0) {
        (void)memcpy(ret, at, n);
    }
    return FL_OK;
}

int fl__ranks_read_blob(struct fl__ranks_rest *rest, uint64_t n, struct fl_blob **ret)
{
    const uint8_t *at;
    int rv = fl__ranks_skip(rest, n, &at);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_blob_create((size_t)n, ret);
    if (rv != FL_OK) {
        return rv;
    }
    if (n > 0) {
        (void)memcpy(fl_blob_fill(*ret), at, (size_t)n);
    }
    return FL_OK;
}

static int ranks_put_file(struct fl_buf *out, struct fl_file *file, size_t len)
{
    int rv = fl_buf_reserve(out, len);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_file_read(file, 0, out->data + out->len, len);
    if (rv != FL_OK) {
        return rv;
    }
    out->len += len;
    return FL_OK;
}

void fl__ranks_put_item(struct fl_writer *w, const struct fl_model_cache_item *item)
{
    const struct fl_bytes *b = &item->bytes;
    struct fl__ranks_item head;

    (void)memset(&head, 0, sizeof(head));
    (void)memcpy(head.name, item->name, sizeof(head.name));
    head.len = fl_bytes_len(b);
    fl_writer_add(w, &head, sizeof(head));
    if (b->file != NULL) {
        fl_writer_note(w, ranks_put_file(w->out, b->file, (size_t)head.len));
    } else if (b->blob != NULL) {
        fl_writer_add(w, fl_blob_data(b->blob), (size_t)head.len);
    }
}

int fl__ranks_read_item(struct fl__ranks_rest *rest, struct fl_model_cache_item *ret)
{
    struct fl__ranks_item head;
    int rv = fl__ranks_read(rest, &head, sizeof(head));

    if (rv != FL_OK) {
        return rv;
    }
    *ret = (struct fl_model_cache_item){.client = ""};
    (void)memcpy(ret->name, head.name, sizeof(ret->name));
    return fl__ranks_read_blob(rest, head.len, &ret->bytes.blob);
}
