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
/* Bytes of the largest number that is coded: a gap (FL_LAYOUT_MAX_FLOATS). */
#define SIZE_BYTES 5

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

/*
 * Sums over numbers v of v >> b for each b, of which the best Rice parameter follows. They follow
 * from how many numbers have each bit, which are counted for eight bits at once: in a byte each, up
 * to 255 numbers long.
 */
struct rice_sum {
    uint64_t count;
    uint64_t eights[SIZE_BYTES]; /* of bits 8 k + 7 to 8 k in the bytes from the lowest one on */
    uint64_t bits[8 * SIZE_BYTES];
    unsigned pending; /* numbers in `eights` that are not in `count` and `bits` yet */
};

static void rice_settle(struct rice_sum *s)
{
    unsigned k;

    for (k = 0; k < 8 * SIZE_BYTES; k++) {
        s->bits[k] += s->eights[k / 8] >> 8 * (7 - k % 8) & 0xff;
    }
    (void)memset(s->eights, 0, sizeof(s->eights));
    s->count += s->pending;
    s->pending = 0;
}

static inline void rice_count(struct rice_sum *s, uint64_t value)
{
    uint64_t *at = s->eights;

    do {
        *at++ += (value & 0xff) * UINT64_C(0x8040201008040201) >> 7 & UINT64_C(0x0101010101010101);
        value >>= 8;
    } while (value > 0);
    if (++s->pending == 255) {
        rice_settle(s);
    }
}

/* The parameter of the fewest bits, which are added to `*bits`. */
static unsigned rice_best(struct rice_sum *s, uint64_t *bits)
{
    uint64_t quotients = 0;
    uint64_t least = UINT64_MAX;
    unsigned best = 0;
    unsigned b;

    rice_settle(s);
    for (b = 8 * SIZE_BYTES; b-- > 0;) {
        quotients = 2 * quotients + s->bits[b];
        if (b <= RICE_MAX && quotients + s->count * (1 + b) <= least) {
            least = quotients + s->count * (1 + b);
            best = b;
        }
    }
    *bits += least;
    return best;
}

/* Without a branch, as signs cannot be predicted. */
static inline uint32_t move_size(int32_t move)
{
    uint32_t negative = -(uint32_t)(move < 0);

    return ((uint32_t)move ^ negative) - negative;
}

/* A walk over the entries that are marked as touched; all zero at first. */
struct touched_walk {
    size_t words;  /* read so far */
    uint64_t left; /* of the last one */
};

static inline bool touched_next(const struct fl_moves *m, struct touched_walk *walk, size_t *ret)
{
    while (walk->left == 0) {
        if (walk->words > m->n / 64) {
            return false;
        }
        walk->left = m->touched[walk->words++];
    }
    *ret = 64 * (walk->words - 1) + (size_t)__builtin_ctzll(walk->left);
    walk->left &= walk->left - 1;
    return true;
}

/* Sets the step, the count and the Rice parameter of the gaps; `*ret_most`: the largest move. */
static int moves_measure(struct fl_moves *m, struct moves_plan *ret, uint32_t *ret_most)
{
    struct rice_sum gaps = {.count = 0};
    struct touched_walk walk = {.words = 0};
    uint32_t step = 0;
    uint64_t count = 0;
    size_t next = 0;
    size_t i;

    *ret_most = 0;
    while (touched_next(m, &walk, &i)) {
        uint32_t size = move_size(m->sums[i]);

        if (size == 0) { /* They cancelled. */
            m->touched[i / 64] ^= UINT64_C(1) << i % 64;
            continue;
        }
        if (size != step && (step == 0 || size % step != 0)) {
            step = fl_moves_divisor(step, size);
        }
        *ret_most = size > *ret_most ? size : *ret_most;
        rice_count(&gaps, i - next);
        next = i + 1;
        count++;
    }
    *ret = (struct moves_plan){.step = step, .count = (uint32_t)count, .bits = count};
    ret->gap_rice = rice_best(&gaps, &ret->bits);
    return *ret_most > FL_MOVE_MAX || count > UINT32_MAX ? FL_ELIMIT : FL_OK;
}

/* How many steps a move is long, without a division. */
static inline uint32_t move_steps(int32_t move, uint64_t inverse)
{
    return (uint32_t)(move_size(move) * inverse >> 32);
}

/* Of a size below 2^25 that is a multiple of `step`, the product with this exceeds it by < 1. */
static uint64_t step_inverse(uint32_t step)
{
    return UINT64_C(0xffffffff) / step + 1;
}

static void moves_measure_sizes(const struct fl_moves *m, struct moves_plan *plan)
{
    uint64_t inverse = step_inverse(plan->step);
    struct rice_sum sizes = {.count = 0};
    struct touched_walk walk = {.words = 0};
    size_t i;

    while (touched_next(m, &walk, &i)) {
        rice_count(&sizes, move_steps(m->sums[i], inverse) - 1);
    }
    plan->size_rice = rice_best(&sizes, &plan->bits);
}

static void moves_write(const struct moves_plan *plan, struct fl_moves *m, bool back, uint8_t *out)
{
    uint64_t inverse = step_inverse(plan->step);
    struct fl_bit_writer writer = {.at = out};
    struct touched_walk walk = {.words = 0};
    size_t next = 0;
    size_t i;

    while (touched_next(m, &walk, &i)) {
        int32_t move = m->sums[i];

        fl_bits_put_rice(&writer, i - next, plan->gap_rice);
        fl_bits_put(&writer, (move < 0) != back, 1);
        if (plan->size_rice != ALL_ONES) {
            fl_bits_put_rice(&writer, move_steps(move, inverse) - 1, plan->size_rice);
        }
        m->sums[i] = 0;
        next = i + 1;
    }
    (void)memset(m->touched, 0, (m->n / 64 + 1) * sizeof(*m->touched));
    fl_bits_put_end(&writer);
}

int fl_moves_encode(struct fl_moves *moves, bool back, struct fl_buf *out)
{
    struct moves_plan plan;
    uint32_t most;
    uint8_t *head;
    size_t len;
    int rv = moves_measure(moves, &plan, &most);

    if (rv != FL_OK || plan.count == 0) {
        return rv;
    }
    plan.size_rice = ALL_ONES;
    if (most != plan.step) {
        moves_measure_sizes(moves, &plan);
    }
    len = MOVES_HEAD + (size_t)((plan.bits + 7) / 8);
    rv = fl_buf_reserve(out, len);
    if (rv != FL_OK) {
        return rv;
    }
    head = out->data + out->len;
    out->len += len;
    fl__codec_put32(head, plan.step);
    fl__codec_put32(head + MOVES_COUNT, plan.count);
    head[MOVES_RICE] = (uint8_t)plan.gap_rice;
    head[MOVES_RICE + 1] = (uint8_t)plan.size_rice;
    moves_write(&plan, moves, back, head + MOVES_HEAD);
    return FL_OK;
}

/* --- decoding --- */

static int moves_bad(struct fl_err *err, const char *what)
{
    return fl_err_set(err, FL_EFORMAT, "%s", what);
}

/* The next entry that moved: `*at` is the position after the one before, and after this one then.
 */
static inline const char *moves_next(struct fl_bit_reader *r, unsigned gap_rice, unsigned size_rice,
                                     size_t n, size_t *at, int64_t *ret_move)
{
    uint64_t gap = 0;
    uint64_t size = 0;
    unsigned negative = 0;

    /* Positions are below n, so that no longer quotient is read. */
    if (fl_bits_rice(r, gap_rice, n - *at, &gap) != FL_OK || gap >= n - *at) {
        return "a position is past the last entry, or bytes are missing";
    }
    if (fl_bits_get(r, &negative) != FL_OK) {
        return "bytes are missing";
    }
    if (size_rice != ALL_ONES &&
        (fl_bits_rice(r, size_rice, FL_MOVE_MAX, &size) != FL_OK || size >= FL_MOVE_MAX))
    {
        return "a move is too long, or bytes are missing";
    }
    *at += (size_t)gap + 1;
    *ret_move = ((int64_t)size + 1) * (1 - 2 * (int64_t)negative);
    return NULL;
}

uint32_t fl_moves_step(const uint8_t *data, size_t len)
{
    return len < 4 ? 0 : fl__codec_get32(data);
}

int fl_moves_decode(const uint8_t *data, size_t len, struct fl_moves *moves, size_t *ret_used,
                    struct fl_err *err)
{
    int32_t *sums = moves->sums;
    uint64_t *touched = moves->touched;
    size_t n = moves->n;
    uint32_t step = fl_moves_step(data, len);
    struct fl_bit_reader r;
    uint32_t count;
    const char *bad = NULL;
    unsigned gap_rice;
    unsigned size_rice;
    size_t at = 0;

    if (len < MOVES_HEAD) {
        return moves_bad(err, "bytes are missing");
    }
    count = fl__codec_get32(data + MOVES_COUNT);
    gap_rice = data[MOVES_RICE];
    size_rice = data[MOVES_RICE + 1];
    if (step == 0 || step > FL_MOVE_MAX) {
        return moves_bad(err, "the step is out of range");
    }
    if (count == 0 || count > n || gap_rice > RICE_MAX ||
        (size_rice > RICE_MAX && size_rice != ALL_ONES))
    {
        return moves_bad(err, "a count or a Rice parameter is out of range");
    }
    r = (struct fl_bit_reader){.at = data + MOVES_HEAD, .end = data + len};
    for (; count > 0; count--) {
        int64_t total = 0;

        bad = moves_next(&r, gap_rice, size_rice, n, &at, &total);
        if (bad != NULL) {
            return moves_bad(err, bad);
        }
        total = sums[at - 1] + total * step;
        if (total > FL_MOVE_MAX || total < -FL_MOVE_MAX) {
            return moves_bad(err, "a move is too long");
        }
        sums[at - 1] = (int32_t)total;
        touched[(at - 1) / 64] |= UINT64_C(1) << (at - 1) % 64;
    }
    if (!fl_bits_end(&r)) {
        return moves_bad(err, "a bit after the last move is not 0");
    }
    *ret_used = (size_t)(r.at - data);
    return FL_OK;
}
