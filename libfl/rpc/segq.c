#include "libfl/rpc/segq.h"

#include <stdlib.h>
#include <string.h>

#define FL_SEGQ_MIN 8

static struct fl_seg *seg_at(const struct fl_segq *q, size_t i)
{
    return &q->ring[(q->head + i) & (q->cap - 1)];
}

void fl_segq_clear(struct fl_segq *q)
{
    size_t i;

    for (i = 0; i < q->n; i++) {
        fl_blob_unref(seg_at(q, i)->blob);
    }
    free(q->ring);
    *q = (struct fl_segq){0};
}

void fl_segq_done(struct fl_segq *q)
{
    fl_segq_clear(q);
}

int fl_segq_reserve(struct fl_segq *q, size_t n)
{
    size_t cap = q->cap > 0 ? q->cap : FL_SEGQ_MIN;
    struct fl_seg *ring;
    size_t i;

    if (n <= q->cap - q->n) {
        return FL_OK;
    }
    if (n > SIZE_MAX / sizeof(*ring) / 4 || q->n > SIZE_MAX / sizeof(*ring) / 4) {
        return FL_ENOMEM;
    }
    while (cap < q->n + n) {
        cap *= 2;
    }
    ring = malloc(cap * sizeof(*ring));
    if (ring == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < q->n; i++) {
        ring[i] = *seg_at(q, i);
    }
    free(q->ring);
    q->ring = ring;
    q->cap = cap;
    q->head = 0;
    return FL_OK;
}

void fl_segq_push(struct fl_segq *q, const uint8_t *data, size_t len, struct fl_blob *blob,
                  uint32_t tag)
{
    struct fl_seg *last = q->n > 0 ? seg_at(q, q->n - 1) : NULL;

    if (len == 0) {
        return;
    }
    q->bytes += len;
    if (last != NULL && last->blob == blob && last->tag == tag && last->data + last->len == data) {
        last->len += len;
        return;
    }
    FL_REQUIRE(q->n < q->cap);
    *seg_at(q, q->n) =
        (struct fl_seg){.data = data, .len = len, .blob = fl_blob_ref(blob), .tag = tag};
    q->n++;
}

const struct fl_seg *fl_segq_at(const struct fl_segq *q, size_t i)
{
    FL_REQUIRE(i < q->n);
    return seg_at(q, i);
}

size_t fl_segq_drop_front(struct fl_segq *q, size_t max, uint32_t *ret_tag)
{
    struct fl_seg *seg;
    size_t n;

    FL_REQUIRE(q->n > 0);
    seg = seg_at(q, 0);
    n = max < seg->len ? max : seg->len;
    *ret_tag = seg->tag;
    seg->data += n;
    seg->len -= n;
    q->bytes -= n;
    if (seg->len == 0) {
        fl_blob_unref(seg->blob);
        q->head = (q->head + 1) & (q->cap - 1);
        q->n--;
    }
    return n;
}

int fl_segq_move(struct fl_segq *to, struct fl_segq *from, size_t n, uint32_t tag)
{
    size_t left = n;
    size_t i;
    int rv;

    FL_REQUIRE(n <= from->bytes);
    for (i = 0; left > 0; i++) {
        size_t len = seg_at(from, i)->len;

        left -= len < left ? len : left;
    }
    rv = fl_segq_reserve(to, i);
    if (rv != FL_OK) {
        return rv;
    }
    for (left = n; left > 0;) {
        const struct fl_seg *seg = seg_at(from, 0);
        size_t len = seg->len < left ? seg->len : left;
        uint32_t old_tag;

        fl_segq_push(to, seg->data, len, seg->blob, tag);
        left -= fl_segq_drop_front(from, len, &old_tag);
    }
    return FL_OK;
}
