#ifndef FL_TESTS_PUSH_BODY_H
#define FL_TESTS_PUSH_BODY_H

/* The body of a Push: gRPC messages for an update of zeros with every unit. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/codec.h"
#include "libfl/wire/messages.h"

static inline void push_body_message(struct fl_buf *out, const void *head, size_t head_len,
                                     size_t zeros)
{
    size_t len = head_len + zeros;
    uint8_t prefix[5] = {0, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                         (uint8_t)len};
    uint8_t *data = calloc(1, zeros + 1);

    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(fl_buf_add(out, prefix, sizeof(prefix)), FL_OK);
    ck_assert_int_eq(fl_buf_add(out, head, head_len), FL_OK);
    ck_assert_int_eq(fl_buf_add(out, data, zeros), FL_OK);
    free(data);
}

static inline uint64_t push_body_size(const struct fl_layout *layout)
{
    return fl_layout_count(layout) * sizeof(float);
}

/* The session's token is all zero. */
static inline void push_body_header(struct fl_buf *out, const struct fl_layout *layout,
                                    uint64_t round, uint32_t attempt)
{
    struct fl_wire_push_header h = {.round = round,
                                    .attempt = attempt,
                                    .n_parts = fl_layout_units(layout),
                                    .bytes = push_body_size(layout)};
    struct fl_buf buf;
    size_t i;

    h.parts = calloc(h.n_parts, sizeof(*h.parts));
    ck_assert_ptr_nonnull(h.parts);
    for (i = 0; i < h.n_parts; i++) {
        h.parts[i] =
            (struct fl_wire_part){.payload = "update",
                                  .unit = (uint32_t)i,
                                  .codec = FL_CODEC_FLOAT32,
                                  .bytes = fl_layout_unit(layout, i)->count * sizeof(float)};
    }
    fl_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(fl_wire_push_header_encode(&h, &buf), FL_OK);
    push_body_message(out, buf.data, buf.len, 0);
    fl_buf_done(&buf);
    free(h.parts);
}

static inline void push_body_chunk(struct fl_buf *out, uint64_t offset, size_t len)
{
    uint8_t head[FL_WIRE_CHUNK_HEAD];

    push_body_message(out, head, fl_wire_push_chunk_head(offset, len, head), len);
}

/* Header and chunks up to `upto`. */
static inline void push_body(struct fl_buf *out, const struct fl_layout *layout, uint64_t round,
                             uint32_t attempt, uint64_t upto)
{
    const size_t step = 500;
    uint64_t at;

    push_body_header(out, layout, round, attempt);
    for (at = 0; at < upto; at += step) {
        push_body_chunk(out, at, upto - at < step ? (size_t)(upto - at) : step);
    }
}

#endif
