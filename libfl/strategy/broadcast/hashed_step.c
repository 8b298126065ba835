/*
 * The step of a round in a hashed space (docs/algorithms.md#hashed-spaces): the aggregated
 * displacement z, whole steps of the broadcast's lattice, becomes moves of the model's entries by
 * the multiples of 2^-20 that clients add, too. So server and clients end at the same model bit for
 * bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/broadcast/hashed_moves.h"
#include "libfl/strategy/broadcast/versions.h"
#include "libfl/strategy/grid.h"

struct hashed_step {
    const struct fl_space *space;
    uint64_t draw;
    uint32_t grid;
    int32_t *numbers, *moves; /* scratch: of a unit */
    struct fl_buf coded;
};

/* By how many multiples of 2^-20 an entry moves when its number moves by one step of the lattice.
 */
static uint32_t hashed_step_entry(const struct hashed_step *s, size_t l)
{
    double m = rint(s->grid * fl_space_scale(s->space, l));

    return m < 1 ? 1 : (uint32_t)m;
}

/* The numbers of a unit in whole steps; `*ret_any`: one is not 0. */
static int hashed_step_round(const struct hashed_step *s, const float *z, size_t n, bool *ret_any,
                             struct fl_err *err)
{
    size_t i;

    *ret_any = false;
    for (i = 0; i < n; i++) {
        double q = rint((double)z[i] / (s->grid * FL_GRID));

        if (!(fabs(q) <= FL_MOVE_MAX)) {
            return fl_err_set(err, FL_ENUMERIC, "a hashed number moved by %.9g", (double)z[i]);
        }
        s->numbers[i] = (int32_t)q;
        *ret_any |= s->numbers[i] != 0;
    }
    return FL_OK;
}

/* Entries of the unit of the new model; those that are not trained follow the n numbers in `z`. */
static void hashed_step_move(const struct hashed_step *s, size_t l, const float *z,
                             const float *old, float *new)
{
    const struct fl_layout *layout = s->space->layout;
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    const float *other = z + fl_layout_unit(s->space->updates, l)->n_trainable;
    size_t trained = 0;
    size_t t;
    size_t i;

    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            new[i] = fl_tensor_counts(tensor)
                         ? (float)((double)old[i] + FL_GRID * s->moves[trained++])
                         : *other++;
        }
    }
}

static int hashed_step_unit(struct hashed_step *s, size_t l, const float *z, const float *old,
                            float *new, struct fl_err *err)
{
    static const uint8_t lists[2][2] = {{0, 0}, {1, 0}};
    size_t entries = fl_layout_unit(s->space->layout, l)->n_trainable;
    const struct fl_unit *to = fl_layout_unit(s->space->updates, l);
    const struct fl_hashed_head head = {hashed_step_entry(s, l), fl_space_seed(s->space, s->draw),
                                        (uint32_t)fl_space_numbers(s->space, l, s->draw)};
    bool any = false;
    int rv = hashed_step_round(s, z + to->offset, head.n, &any, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memset(s->moves, 0, entries * sizeof(*s->moves));
    rv = fl_buf_add(&s->coded, lists[any], sizeof(lists[any]));
    if (rv != FL_OK) {
        return rv;
    }
    if (any) {
        rv = fl_hashed_encode(&head, s->numbers, &s->coded);
        if (rv != FL_OK) {
            return rv;
        }
        if (fl_hashed_expand(&head, l, entries, s->numbers, s->moves, err) != FL_OK) {
            return FL_ENUMERIC; /* Not malformed: too long a move. */
        }
    }
    hashed_step_move(s, l, z + to->offset, old, new);
    return FL_OK;
}

int fl_step_make_hashed(const struct fl_hashed_round *round, const float *z, const float *old,
                        float *new, struct fl_step *ret, struct fl_err *err)
{
    const struct fl_space *space = round->space;
    size_t n = fl_layout_most_trainable(space->layout) + 1;
    struct hashed_step s = {.space = space, .draw = round->draw, .grid = round->grid};
    size_t l;
    int rv = FL_ENOMEM;

    *ret = (struct fl_step){.round = round->round};
    fl_buf_init(&s.coded, SIZE_MAX);
    s.numbers = malloc(n * sizeof(*s.numbers));
    s.moves = malloc(n * sizeof(*s.moves));
    if (s.numbers == NULL || s.moves == NULL) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(space->layout); l++) {
        rv = hashed_step_unit(&s, l, z, old, new, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_versions_check(space->layout, new, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_versions_digest(space->layout, new, ret->to);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_blob_from_buf(&s.coded, &ret->moves);
done:
    fl_buf_done(&s.coded);
    free(s.numbers);
    free(s.moves);
    return rv;
}
