/*
 * The lists of moves of one unit (docs/algorithms.md#moves-as-bytes): reading those of a peer, and
 * adding up those of many rounds into as few as possible. Pure; the caller gives scratch.
 */
#include "libfl/strategy/broadcast/move_lists.h"

#include <stdlib.h>
#include <string.h>

/*
 * Moves with different steps are added up unless their common step is shorter than both by more
 * than this factor: then magnitudes would take more bits than positions.
 */
#define SHORTEST 16

/* --- scratch --- */

void fl__scratch_done(struct fl__scratch *s)
{
    free(s->moves.sums);
    free(s->moves.touched);
    free(s->numbers);
    *s = (struct fl__scratch){.n_moves = 0};
}

void fl__scratch_clear(struct fl__scratch *s)
{
    if (s->n_moves > 0) {
        (void)memset(s->moves.sums, 0, s->n_moves * sizeof(*s->moves.sums));
        (void)memset(s->moves.touched, 0, (s->n_moves / 64 + 1) * sizeof(*s->moves.touched));
    }
}

size_t fl__scratch_bytes(const struct fl__scratch *s)
{
    return s->n_moves * sizeof(*s->moves.sums) + s->n_moves / 8 +
           2 * s->n_numbers * sizeof(*s->numbers);
}

int fl__scratch_moves(struct fl__scratch *s, size_t n)
{
    if (n > s->n_moves || s->n_moves == 0) {
        free(s->moves.sums);
        free(s->moves.touched);
        s->n_moves = 0;
        s->moves.sums = calloc(n + 1, sizeof(*s->moves.sums));
        s->moves.touched = calloc((n + 1) / 64 + 1, sizeof(*s->moves.touched));
        if (s->moves.sums == NULL || s->moves.touched == NULL) {
            return FL_ENOMEM;
        }
        s->n_moves = n + 1;
    }
    s->moves.n = n;
    return FL_OK;
}

/* Room for n hashed numbers, all 0, and for as many decoded ones. */
static int scratch_numbers(struct fl__scratch *s, size_t n)
{
    if (n == 0) {
        return FL_OK;
    }
    if (n > s->n_numbers) {
        free(s->numbers);
        s->n_numbers = 0;
        s->numbers = malloc(2 * n * sizeof(*s->numbers));
        if (s->numbers == NULL) {
            return FL_ENOMEM;
        }
        s->n_numbers = n;
    }
    s->decoded = s->numbers + n;
    (void)memset(s->numbers, 0, n * sizeof(*s->numbers));
    return FL_OK;
}

/* --- reading --- */

int fl__lists_open(struct fl__lists *l, const struct fl_layout *layout, size_t unit,
                   const uint8_t *data, size_t len, struct fl_err *err)
{
    if (len < FL__LISTS_HEAD) {
        return fl_err_set(err, FL_EFORMAT, "bytes are missing");
    }
    *l = (struct fl__lists){.data = data,
                            .len = len,
                            .at = FL__LISTS_HEAD,
                            .left = data[0] | (size_t)data[1] << 8,
                            .unit = unit,
                            .n = fl_layout_unit(layout, unit)->n_trainable};
    return FL_OK;
}

/* The head of the next list. */
static int lists_peek(const struct fl__lists *l, struct fl_hashed_head *ret, struct fl_err *err)
{
    return fl_hashed_peek(l->data + l->at, l->len - l->at, l->n, ret, err);
}

/* Add the next list, with this head: to scratch->numbers where it is about hashed ones. */
static int lists_add(struct fl__lists *l, const struct fl_hashed_head *head,
                     struct fl__scratch *scratch, struct fl_err *err)
{
    const uint8_t *data = l->data + l->at;
    size_t len = l->len - l->at;
    size_t used = 0;
    int rv;

    if (head->n > 0 && ++l->hashed > FL__LISTS_HASHED_MAX) {
        return fl_err_set(err, FL_EFORMAT, "more than %d lists of hashed numbers",
                          FL__LISTS_HASHED_MAX);
    }
    rv = head->n > 0
             ? fl_hashed_decode(data, len, head, scratch->decoded, scratch->numbers, &used, err)
             : fl_moves_decode(data, len, &scratch->moves, &used, err);
    if (rv != FL_OK) {
        return rv;
    }
    l->at += used;
    l->left--;
    return FL_OK;
}

int fl__lists_add_all(struct fl__lists *l, struct fl__scratch *scratch, struct fl_err *err)
{
    int rv = fl__scratch_moves(scratch, l->n);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memset(scratch->moves.sums, 0, l->n * sizeof(*scratch->moves.sums));
    (void)memset(scratch->moves.touched, 0, (l->n / 64 + 1) * sizeof(*scratch->moves.touched));
    while (l->left > 0) {
        struct fl_hashed_head head;

        rv = lists_peek(l, &head, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = scratch_numbers(scratch, head.n);
        if (rv != FL_OK) {
            return rv;
        }
        rv = lists_add(l, &head, scratch, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = head.n > 0 ? fl_hashed_expand(&head, l->unit, l->n, scratch->numbers,
                                           scratch->moves.sums, err)
                        : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* --- adding up --- */

static void sum_count(const struct fl__sum *s)
{
    s->out->data[s->head] = (uint8_t)(s->lists & 0xff);
    s->out->data[s->head + 1] = (uint8_t)(s->lists >> 8);
}

/* So many lists more. */
static int sum_more(struct fl__sum *s, size_t lists, size_t hashed)
{
    s->lists += lists;
    s->hashed += hashed;
    return s->lists > FL__LISTS_MAX || s->hashed > FL__LISTS_HASHED_MAX ? FL_ELIMIT : FL_OK;
}

int fl__sum_begin(struct fl__sum *s)
{
    static const uint8_t none[FL__LISTS_HEAD];

    s->of = (struct fl_hashed_head){0};
    s->lists = 0;
    s->hashed = 0;
    s->head = s->out->len;
    return fl_buf_add(s->out, none, sizeof(none));
}

/* Appends the hashed numbers, if they are not all 0. */
static int sum_flush_hashed(struct fl__sum *s, const struct fl_hashed_head *of)
{
    size_t i = 0;

    while (i < of->n && s->scratch->numbers[i] == 0) {
        i++;
    }
    return i == of->n ? FL_OK : fl_hashed_encode(of, s->scratch->numbers, s->out);
}

/* Writes what was added up as a list, if it is not all 0. */
static int sum_flush(struct fl__sum *s)
{
    const struct fl_hashed_head of = s->of;
    size_t before = s->out->len;
    int rv;

    s->of = (struct fl_hashed_head){0};
    if (of.step == 0) {
        return FL_OK;
    }
    rv = of.n > 0 ? sum_flush_hashed(s, &of) : fl_moves_encode(&s->scratch->moves, s->back, s->out);
    if (rv != FL_OK || s->out->len == before) {
        return rv;
    }
    return sum_more(s, 1, of.n > 0);
}

int fl__sum_end(struct fl__sum *s)
{
    int rv = sum_flush(s);

    sum_count(s);
    return rv;
}

int fl__sum_follow(struct fl__sum *s, const uint8_t *data, size_t len, size_t lists, size_t hashed)
{
    int rv = sum_more(s, lists, hashed);

    if (rv != FL_OK) {
        return rv;
    }
    sum_count(s);
    return fl_buf_add(s->out, data, len);
}

/* Makes room for a list with another head, unless it can be added to what was added up. */
static int sum_fit(struct fl__sum *s, size_t entries, const struct fl_hashed_head *next)
{
    uint32_t shorter = next->step < s->of.step ? next->step : s->of.step;
    uint32_t common = fl_moves_divisor(s->of.step, next->step);
    int rv;

    if (next->n == 0 && s->of.n == 0 && s->of.step > 0 && common * SHORTEST >= shorter) {
        s->of.step = common;
        return FL_OK;
    }
    if (memcmp(next, &s->of, sizeof(*next)) == 0) {
        return FL_OK;
    }
    rv = sum_flush(s);
    if (rv != FL_OK) {
        return rv;
    }
    s->of = *next;
    return next->n > 0 ? scratch_numbers(s->scratch, next->n)
                       : fl__scratch_moves(s->scratch, entries);
}

int fl__sum_add(struct fl__sum *s, const struct fl_layout *layout, size_t unit, const uint8_t *data,
                size_t len, size_t *ret_used)
{
    struct fl__lists l = {.left = 0};
    int rv = fl__lists_open(&l, layout, unit, data, len, NULL);

    if (rv != FL_OK) {
        return rv;
    }
    while (l.left > 0) {
        struct fl_hashed_head next;

        rv = lists_peek(&l, &next, NULL);
        if (rv != FL_OK) {
            return rv;
        }
        rv = sum_fit(s, l.n, &next);
        if (rv != FL_OK) {
            return rv;
        }
        rv = lists_add(&l, &next, s->scratch, NULL);
        if (rv != FL_OK) {
            return rv;
        }
    }
    *ret_used = l.at;
    return FL_OK;
}
