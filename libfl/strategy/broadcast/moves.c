#include "libfl/strategy/broadcast/moves.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/bits.h"
#include "libfl/strategy/codec/codec_impl.h"

/* Offsets in the head of coded moves, and its length. */
#define MOVES_COUNT 4
#define MOVES_RICE  8
#define MOVES_HEAD  10
#define RICE_MAX    30
/* Instead of a Rice parameter: all magnitudes are 1. */
#define ALL_ONES 255u

/* --- encoding --- */

struct moves_plan {
    uint32_t step, count;
    unsigned gap_rice, size_rice;
    uint64_t bits;
};

uint32_t fl_moves_divisor(uint32_t a, uint32_t b)
{
    while (a != 0) {
        uint32_t rest = b % a;

        b = a;
        a = rest;
    }
    return b;
}

/* How many numbers are coded with one Rice parameter, and their sums without the low bits. */
struct rice_sum {
    uint64_t count;
    uint64_t quotients[RICE_MAX + 1];
};

static void rice_count(struct rice_sum *s, uint64_t value)
{
    unsigned b;

    s->count++;
    for (b = 0; b <= RICE_MAX && value >> b > 0; b++) {
        s->quotients[b] += value >> b;
    }
}

static uint64_t rice_bits(const struct rice_sum *s, unsigned b)
{
    return s->quotients[b] + s->count * (1 + b);
}

static unsigned rice_best(const struct rice_sum *s)
{
    unsigned best = 0;
    unsigned b;

    for (b = 1; b <= RICE_MAX; b++) {
        if (rice_bits(s, b) < rice_bits(s, best)) {
            best = b;
        }
    }
    return best;
}

static uint32_t move_size(int32_t move)
{
    return move < 0 ? (uint32_t)-move : (uint32_t)move;
}

/* An entry that moved: the gap before it and its move. */
struct moved {
    uint64_t gap;
    int32_t move;
};

/* Sets the step and the count. */
static int moves_measure(const int32_t *moves, size_t n, struct moves_plan *ret)
{
    size_t i;

    *ret = (struct moves_plan){.count = 0};
    for (i = 0; i < n; i++) {
        if (moves[i] == 0) {
            continue;
        }
        if (moves[i] > FL_MOVE_MAX || moves[i] < -FL_MOVE_MAX || ret->count == UINT32_MAX) {
            return FL_ELIMIT;
        }
        ret->count++;
        if (ret->step == 0 || move_size(moves[i]) % ret->step != 0) {
            ret->step = fl_moves_divisor(ret->step, move_size(moves[i]));
        }
    }
    FL_REQUIRE(ret->count > 0);
    return FL_OK;
}

/* The entries that moved, their moves in steps. */
static struct moved *moves_collect(const int32_t *moves, size_t n, const struct moves_plan *plan)
{
    struct moved *list = malloc(plan->count * sizeof(*list));
    struct moved *at = list;
    size_t next = 0;
    size_t i;

    for (i = 0; list != NULL && i < n; i++) {
        if (moves[i] != 0) {
            *at++ = (struct moved){i - next, moves[i] / (int32_t)plan->step};
            next = i + 1;
        }
    }
    return list;
}

static void moves_choose_rice(const struct moved *list, struct moves_plan *plan)
{
    struct rice_sum gaps = {.count = 0};
    struct rice_sum sizes = {.count = 0};
    size_t i;

    for (i = 0; i < plan->count; i++) {
        rice_count(&gaps, list[i].gap);
        rice_count(&sizes, move_size(list[i].move) - 1);
    }
    plan->gap_rice = rice_best(&gaps);
    plan->size_rice = sizes.quotients[0] == 0 ? ALL_ONES : rice_best(&sizes);
    plan->bits = rice_bits(&gaps, plan->gap_rice) + plan->count +
                 (plan->size_rice == ALL_ONES ? 0 : rice_bits(&sizes, plan->size_rice));
}

static void moves_write(const struct moves_plan *plan, const struct moved *list, uint8_t *out)
{
    struct fl_bit_writer w = {.at = out};
    size_t i;

    for (i = 0; i < plan->count; i++) {
        fl_bits_put_rice(&w, list[i].gap, plan->gap_rice);
        fl_bits_put(&w, list[i].move < 0);
        if (plan->size_rice != ALL_ONES) {
            fl_bits_put_rice(&w, move_size(list[i].move) - 1, plan->size_rice);
        }
    }
}

int fl_moves_encode(const int32_t *moves, size_t n, struct fl_buf *out)
{
    struct moves_plan plan;
    struct moved *list;
    uint8_t *head;
    size_t len;
    int rv = moves_measure(moves, n, &plan);

    if (rv != FL_OK) {
        return rv;
    }
    list = moves_collect(moves, n, &plan);
    if (list == NULL) {
        return FL_ENOMEM;
    }
    moves_choose_rice(list, &plan);
    len = MOVES_HEAD + (size_t)((plan.bits + 7) / 8);
    rv = fl_buf_reserve(out, len);
    if (rv != FL_OK) {
        goto done;
    }
    head = out->data + out->len;
    out->len += len;
    (void)memset(head, 0, len);
    fl__codec_put32(head, plan.step);
    fl__codec_put32(head + MOVES_COUNT, plan.count);
    head[MOVES_RICE] = (uint8_t)plan.gap_rice;
    head[MOVES_RICE + 1] = (uint8_t)plan.size_rice;
    moves_write(&plan, list, head + MOVES_HEAD);
done:
    free(list);
    return rv;
}

/* --- decoding --- */

static int moves_bad(struct fl_err *err, const char *what)
{
    return fl_err_set(err, FL_EFORMAT, "%s", what);
}

/* The next entry that moved: `*at` is the position after the one before, and after this one then.
 */
static int moves_next(struct fl_bit_reader *r, const uint8_t *head, size_t n, size_t *at,
                      int64_t *ret_move, struct fl_err *err)
{
    uint64_t gap;
    uint64_t size = 0;
    unsigned negative;

    /* Positions are below n, so that no longer quotient is read. */
    if (fl_bits_rice(r, head[MOVES_RICE], n - *at, &gap) != FL_OK || gap >= n - *at) {
        return moves_bad(err, "a position is past the last entry, or bytes are missing");
    }
    if (fl_bits_get(r, &negative) != FL_OK) {
        return moves_bad(err, "bytes are missing");
    }
    if (head[MOVES_RICE + 1] != ALL_ONES &&
        (fl_bits_rice(r, head[MOVES_RICE + 1], FL_MOVE_MAX, &size) != FL_OK || size >= FL_MOVE_MAX))
    {
        return moves_bad(err, "a move is too long, or bytes are missing");
    }
    *at += (size_t)gap + 1;
    *ret_move = negative ? -(int64_t)size - 1 : (int64_t)size + 1;
    return FL_OK;
}

uint32_t fl_moves_step(const uint8_t *data, size_t len)
{
    return len < 4 ? 0 : fl__codec_get32(data);
}

int fl_moves_decode(const uint8_t *data, size_t len, size_t n, int32_t *sum, size_t *ret_used,
                    struct fl_err *err)
{
    uint32_t step = fl_moves_step(data, len);
    struct fl_bit_reader r;
    uint32_t count;
    uint32_t k;
    size_t at = 0;
    int64_t move = 0;
    int rv;

    if (len < MOVES_HEAD) {
        return moves_bad(err, "bytes are missing");
    }
    count = fl__codec_get32(data + MOVES_COUNT);
    if (step == 0 || step > FL_MOVE_MAX) {
        return moves_bad(err, "the step is out of range");
    }
    if (count == 0 || count > n || data[MOVES_RICE] > RICE_MAX ||
        (data[MOVES_RICE + 1] > RICE_MAX && data[MOVES_RICE + 1] != ALL_ONES))
    {
        return moves_bad(err, "a count or a Rice parameter is out of range");
    }
    r = (struct fl_bit_reader){.at = data + MOVES_HEAD, .end = data + len};
    for (k = 0; k < count; k++) {
        int64_t total;

        rv = moves_next(&r, data, n, &at, &move, err);
        if (rv != FL_OK) {
            return rv;
        }
        total = sum[at - 1] + move * step;
        if (total > FL_MOVE_MAX || total < -FL_MOVE_MAX) {
            return moves_bad(err, "a move is too long");
        }
        sum[at - 1] = (int32_t)total;
    }
    if (!fl_bits_end(&r)) {
        return moves_bad(err, "a bit after the last move is not 0");
    }
    *ret_used = (size_t)(r.at - data);
    return FL_OK;
}
