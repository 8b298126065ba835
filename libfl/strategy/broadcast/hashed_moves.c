#include "libfl/strategy/broadcast/hashed_moves.h"

#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/dense_code.h"
#include "libfl/strategy/space/bucket.h"

#define HASHED_MARK (UINT32_C(1) << 31)
/* Offsets in the head, and its length. */
#define HASHED_SEED  4
#define HASHED_COUNT 8
#define HASHED_HEAD  12

int fl_hashed_peek(const uint8_t *data, size_t len, size_t entries, struct fl_hashed_head *ret,
                   struct fl_err *err)
{
    uint32_t step = fl_moves_step(data, len);

    *ret = (struct fl_hashed_head){.step = step};
    if ((step & HASHED_MARK) == 0) {
        return FL_OK;
    }
    if (len < HASHED_HEAD) {
        return fl_err_set(err, FL_EFORMAT, "bytes are missing");
    }
    ret->step = step & ~HASHED_MARK;
    ret->seed = fl__codec_get32(data + HASHED_SEED);
    ret->n = fl__codec_get32(data + HASHED_COUNT);
    return ret->step > 0 && ret->step <= (uint32_t)FL_MOVE_MAX && ret->n > 0 && ret->n <= entries
               ? FL_OK
               : fl_err_set(err, FL_EFORMAT,
                            "the step or the count of hashed numbers is out of range");
}

int fl_hashed_encode(const struct fl_hashed_head *head, const int32_t *numbers, struct fl_buf *out)
{
    uint8_t bytes[HASHED_HEAD];
    int rv;

    fl__codec_put32(bytes, head->step | HASHED_MARK);
    fl__codec_put32(bytes + HASHED_SEED, head->seed);
    fl__codec_put32(bytes + HASHED_COUNT, head->n);
    rv = fl_buf_add(out, bytes, sizeof(bytes));
    if (rv != FL_OK) {
        return rv;
    }
    return fl_dense_encode(numbers, head->n, out);
}

int fl_hashed_decode(const uint8_t *data, size_t len, const struct fl_hashed_head *head,
                     int32_t *scratch, int32_t *sum, size_t *ret_used, struct fl_err *err)
{
    size_t used = 0;
    size_t i;
    int rv = fl_dense_decode(data + HASHED_HEAD, len - HASHED_HEAD, head->n, scratch, &used, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < head->n; i++) {
        int64_t total = (int64_t)sum[i] + scratch[i];

        if (total > FL_MOVE_MAX || total < -FL_MOVE_MAX) {
            return fl_err_set(err, FL_EFORMAT, "a move is too long");
        }
        sum[i] = (int32_t)total;
    }
    *ret_used = HASHED_HEAD + used;
    return FL_OK;
}

int fl_hashed_expand(const struct fl_hashed_head *head, size_t unit, size_t entries,
                     const int32_t *numbers, int32_t *sum, struct fl_err *err)
{
    const struct fl_buckets buckets = fl_buckets_of(head->seed, unit, entries, head->n);
    size_t i;

    for (i = 0; i < entries; i++) {
        bool negative = false;
        int64_t move = (int64_t)numbers[fl_bucket(&buckets, i, &negative)] * head->step;
        int64_t total = sum[i] + (negative ? -move : move);

        if (total > FL_MOVE_MAX || total < -FL_MOVE_MAX) {
            return fl_err_set(err, FL_EFORMAT, "a move is too long");
        }
        sum[i] = (int32_t)total;
    }
    return FL_OK;
}
