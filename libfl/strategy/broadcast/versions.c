#include "libfl/strategy/broadcast/versions.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/strategy/broadcast/hashed_moves.h"
#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/codec/codec_impl.h"

/* Bytes of the number of moves of a unit that are not added up, and their largest number. */
#define LISTS_HEAD 2
#define LISTS_MAX  65535
/*
 * Moves with different steps are added up unless their common step is shorter than both by more
 * than this factor: then magnitudes would take more bits than positions.
 */
#define SHORTEST 16

/* Shared by all lists of versions that it is in. */
struct shared_step {
    atomic_uint refs;
    struct fl_step step;
};

struct fl_versions {
    atomic_uint refs;
    uint8_t first[FL_DIGEST_SIZE];
    size_t n;
    struct shared_step *steps[]; /* [n], oldest first */
};

/* --- units --- */

/* Of the lists of a unit that are about hashed numbers: reading each takes a pass over the unit. */
#define HASHED_MAX 1024

/* Scratch for the moves of any unit, and behind them twice as much for hashed numbers. */
struct scratch {
    int32_t *moves, *numbers, *decoded;
};

static int scratch_new(const struct fl_layout *layout, struct scratch *ret)
{
    size_t n = fl_layout_most_trainable(layout) + 1;

    ret->moves = malloc(3 * n * sizeof(int32_t));
    if (ret->moves == NULL) {
        return FL_ENOMEM;
    }
    ret->numbers = ret->moves + n;
    ret->decoded = ret->numbers + n;
    return FL_OK;
}

static bool versions_fits(float x)
{
    double q = (double)x / FL_GRID;

    return fabs((double)x) < FL_LATTICE_RANGE && q == floor(q);
}

int fl_versions_check(const struct fl_layout *layout, const float *model, struct fl_err *err)
{
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; fl_tensor_counts(tensor) && i < tensor->offset + tensor->count;
             i++) {
            if (!versions_fits(model[i])) {
                return fl_err_set(
                    err, FL_ENUMERIC,
                    "an entry of '%s' is %.9g: this broadcast has multiples of 2^-20 below 16, "
                    "unlike 'float16' and 'float32'",
                    tensor->name, (double)model[i]);
            }
        }
    }
    return FL_OK;
}

int fl_versions_digest(const struct fl_layout *layout, const float *model,
                       uint8_t ret[FL_DIGEST_SIZE])
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are hashed as they are");
    return fl_sha256(model, fl_layout_count(layout) * sizeof(*model), ret);
}

/* The moves of a unit in multiples of the grid. */
static void step_moves(const struct fl_layout *layout, size_t l, const float *old, const float *new,
                       int32_t *moves)
{
    size_t at = fl_layout_unit(layout, l)->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = at; !buffer && i < at + count; i++) {
            *moves++ = (int32_t)(((double)new[i] - (double)old[i]) / FL_GRID);
        }
        at += count;
    }
}

/* --- the moves of a unit, as several lists of which each is added up --- */

/* The coded lists of a unit, of which some were read. */
struct lists {
    const uint8_t *data;
    size_t len, at, left;
    size_t unit, n; /* its index, and its trainable entries */
    size_t hashed;  /* lists of hashed numbers that were read */
};

static int lists_open(struct lists *l, const struct fl_layout *layout, size_t unit,
                      const uint8_t *data, size_t len, struct fl_err *err)
{
    if (len < LISTS_HEAD) {
        return fl_err_set(err, FL_EFORMAT, "bytes are missing");
    }
    *l = (struct lists){.data = data,
                        .len = len,
                        .at = LISTS_HEAD,
                        .left = data[0] | (size_t)data[1] << 8,
                        .unit = unit,
                        .n = fl_layout_unit(layout, unit)->n_trainable};
    return FL_OK;
}

/* The head of the next list. */
static int lists_peek(const struct lists *l, struct fl_hashed_head *ret, struct fl_err *err)
{
    return fl_hashed_peek(l->data + l->at, l->len - l->at, l->n, ret, err);
}

/* Add the next list, with this head, to sum[]: of hashed numbers where it is about them. */
static int lists_add(struct lists *l, const struct fl_hashed_head *head, int32_t *decoded,
                     int32_t *sum, struct fl_err *err)
{
    const uint8_t *data = l->data + l->at;
    size_t len = l->len - l->at;
    size_t used = 0;
    int rv;

    if (head->n > 0 && ++l->hashed > HASHED_MAX) {
        return fl_err_set(err, FL_EFORMAT, "more than %d lists of hashed numbers", HASHED_MAX);
    }
    rv = head->n > 0 ? fl_hashed_decode(data, len, head, decoded, sum, &used, err)
                     : fl_moves_decode(data, len, l->n, sum, &used, err);
    if (rv != FL_OK) {
        return rv;
    }
    l->at += used;
    l->left--;
    return FL_OK;
}

/* Add all lists of a unit to the moves of its entries, scratch->moves. */
static int lists_add_all(struct lists *l, const struct scratch *scratch, struct fl_err *err)
{
    (void)memset(scratch->moves, 0, l->n * sizeof(*scratch->moves));
    while (l->left > 0) {
        struct fl_hashed_head head;
        int rv = lists_peek(l, &head, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (head.n > 0) {
            (void)memset(scratch->numbers, 0, head.n * sizeof(*scratch->numbers));
        }
        rv = lists_add(l, &head, scratch->decoded, head.n > 0 ? scratch->numbers : scratch->moves,
                       err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = head.n > 0
                 ? fl_hashed_expand(&head, l->unit, l->n, scratch->numbers, scratch->moves, err)
                 : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* What is added up until it is written as one list. */
struct sum {
    const struct scratch *scratch; /* moves: [n], in multiples of the grid, or hashed numbers */
    size_t n;
    struct fl_hashed_head of; /* n 0: moves, multiples of `step`, which is 0 when all are 0 */
    struct fl_buf *out;       /* of the unit; begins at `head` */
    size_t head, lists, hashed;
};

/* The unit begins; its number of lists follows in sum_end(). */
static int sum_begin(struct sum *s, size_t n)
{
    static const uint8_t none[LISTS_HEAD];

    s->n = n;
    s->of = (struct fl_hashed_head){0};
    s->lists = 0;
    s->hashed = 0;
    s->head = s->out->len;
    (void)memset(s->scratch->moves, 0, n * sizeof(*s->scratch->moves));
    return fl_buf_add(s->out, none, sizeof(none));
}

/* Writes what was added up as a list, if it is not all 0. */
static int sum_flush(struct sum *s)
{
    const struct fl_hashed_head of = s->of;
    int32_t *moves = s->scratch->moves;
    size_t n = of.n > 0 ? of.n : s->n;
    size_t i = 0;
    int rv;

    s->of = (struct fl_hashed_head){0};
    while (i < n && moves[i] == 0) {
        i++;
    }
    if (i == n) {
        return FL_OK;
    }
    s->hashed += of.n > 0;
    if (s->lists == LISTS_MAX || s->hashed > HASHED_MAX) {
        return FL_ELIMIT;
    }
    rv = of.n > 0 ? fl_hashed_encode(&of, moves, s->out) : fl_moves_encode(moves, n, s->out);
    if (rv != FL_OK) {
        return rv;
    }
    s->lists++;
    (void)memset(moves, 0, n * sizeof(*moves));
    return FL_OK;
}

static int sum_end(struct sum *s)
{
    int rv = sum_flush(s);

    s->out->data[s->head] = (uint8_t)(s->lists & 0xff);
    s->out->data[s->head + 1] = (uint8_t)(s->lists >> 8);
    return rv;
}

/* Makes room for a list with another head, unless it can be added to what was added up. */
static int sum_fit(struct sum *s, const struct fl_hashed_head *next)
{
    uint32_t shorter = next->step < s->of.step ? next->step : s->of.step;
    uint32_t common = fl_moves_divisor(s->of.step, next->step);
    int rv;

    if (next->n == 0 && s->of.n == 0 && common * SHORTEST >= shorter) {
        s->of.step = common;
        return FL_OK;
    }
    if (memcmp(next, &s->of, sizeof(*next)) == 0) {
        return FL_OK;
    }
    rv = sum_flush(s);
    s->of = *next;
    return rv;
}

/* Add all lists of a unit of a step, and go behind them. */
static int sum_add(struct sum *s, const struct fl_layout *layout, size_t unit,
                   const struct fl_step *step, size_t *at, struct fl_err *err)
{
    struct lists l = {.left = 0};
    int rv = lists_open(&l, layout, unit, fl_blob_data(step->moves) + *at,
                        fl_blob_len(step->moves) - *at, err);

    if (rv != FL_OK) {
        return rv;
    }
    while (l.left > 0) {
        struct fl_hashed_head next;

        rv = lists_peek(&l, &next, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = sum_fit(s, &next);
        if (rv != FL_OK) {
            return rv;
        }
        rv = lists_add(&l, &next, s->scratch->decoded, s->scratch->moves, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    *at += l.at;
    return FL_OK;
}

/* --- steps --- */

int fl_step_make(const struct fl_layout *layout, const float *old, const float *new,
                 struct fl_step *ret, struct fl_err *err)
{
    struct fl_buf coded;
    struct scratch scratch = {NULL};
    struct sum s = {.scratch = &scratch, .out = &coded};
    size_t l;
    int rv = scratch_new(layout, &scratch);

    *ret = (struct fl_step){.round = 0};
    fl_buf_init(&coded, SIZE_MAX);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_versions_check(layout, new, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        rv = sum_begin(&s, fl_layout_unit(layout, l)->n_trainable);
        if (rv != FL_OK) {
            goto done;
        }
        step_moves(layout, l, old, new, scratch.moves);
        rv = sum_end(&s);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_versions_digest(layout, new, ret->to);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_blob_from_buf(&coded, &ret->moves);
done:
    fl_buf_done(&coded);
    free(scratch.moves);
    return rv;
}

void fl_step_done(struct fl_step *step)
{
    fl_blob_unref(step->moves);
    *step = (struct fl_step){.round = 0};
}

int fl_step_check(const struct fl_layout *layout, const struct fl_step *step, struct fl_err *err)
{
    const uint8_t *data = fl_blob_data(step->moves);
    size_t len = fl_blob_len(step->moves);
    struct scratch scratch = {NULL};
    size_t at = 0;
    size_t u;
    int rv = scratch_new(layout, &scratch);

    if (rv != FL_OK) {
        return rv;
    }
    for (u = 0; u < fl_layout_units(layout); u++) {
        struct lists l = {.left = 0};

        rv = lists_open(&l, layout, u, data + at, len - at, err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = lists_add_all(&l, &scratch, err);
        if (rv != FL_OK) {
            goto done;
        }
        at += l.at;
    }
    rv = at == len ? FL_OK : fl_err_set(err, FL_EFORMAT, "bytes are left over");
done:
    free(scratch.moves);
    return rv;
}

/* --- lists --- */

static struct fl_versions *versions_new(const uint8_t first[FL_DIGEST_SIZE], size_t n)
{
    struct fl_versions *v = malloc(sizeof(*v) + n * sizeof(v->steps[0]));

    if (v != NULL) {
        atomic_init(&v->refs, 1);
        (void)memcpy(v->first, first, sizeof(v->first));
        v->n = 0;
    }
    return v;
}

static void versions_share(struct fl_versions *v, struct shared_step *step)
{
    (void)atomic_fetch_add(&step->refs, 1);
    v->steps[v->n++] = step;
}

static struct shared_step *shared_step_new(struct fl_step *step)
{
    struct shared_step *s = malloc(sizeof(*s));

    if (s != NULL) {
        atomic_init(&s->refs, 0);
        s->step = *step;
        *step = (struct fl_step){.round = 0};
    }
    return s;
}

int fl_versions_create(const uint8_t digest[FL_DIGEST_SIZE], struct fl_versions **ret)
{
    *ret = versions_new(digest, 0);
    return *ret != NULL ? FL_OK : FL_ENOMEM;
}

int fl_versions_add(const struct fl_versions *versions, struct fl_step *step,
                    struct fl_versions **ret)
{
    struct fl_versions *v = versions_new(versions->first, versions->n + 1);
    struct shared_step *shared;
    size_t i;

    (void)memcpy(step->from, fl_versions_newest(versions), sizeof(step->from));
    shared = v != NULL ? shared_step_new(step) : NULL;
    if (shared == NULL) {
        free(v);
        fl_step_done(step);
        return FL_ENOMEM;
    }
    for (i = 0; i < versions->n; i++) {
        versions_share(v, versions->steps[i]);
    }
    versions_share(v, shared);
    *ret = v;
    return FL_OK;
}

void fl_versions_unref(struct fl_versions *versions)
{
    size_t i;

    if (versions == NULL || atomic_fetch_sub(&versions->refs, 1) != 1) {
        return;
    }
    for (i = 0; i < versions->n; i++) {
        struct shared_step *s = versions->steps[i];

        if (atomic_fetch_sub(&s->refs, 1) == 1) {
            fl_step_done(&s->step);
            free(s);
        }
    }
    free(versions);
}

size_t fl_versions_steps(const struct fl_versions *versions)
{
    return versions->n;
}

const struct fl_step *fl_versions_step(const struct fl_versions *versions, size_t i)
{
    return &versions->steps[i]->step;
}

const uint8_t *fl_versions_newest(const struct fl_versions *versions)
{
    return versions->n > 0 ? versions->steps[versions->n - 1]->step.to : versions->first;
}

/* How many steps lead from the first model to this one; SIZE_MAX: it is none of them. */
static size_t versions_find(const struct fl_versions *v, const uint8_t digest[FL_DIGEST_SIZE])
{
    size_t i;

    for (i = v->n; i > 0; i--) { /* Most clients hold a recent one. */
        if (memcmp(v->steps[i - 1]->step.to, digest, FL_DIGEST_SIZE) == 0) {
            return i;
        }
    }
    return memcmp(v->first, digest, FL_DIGEST_SIZE) == 0 ? 0 : SIZE_MAX;
}

/* --- sums of steps --- */

/*
 * Codes the sum of the steps `from` to `end` - 1, unit by unit; `model` NULL: without the other
 * entries.
 */
static int versions_sum(const struct fl_versions *v, const struct fl_layout *layout, size_t from,
                        size_t end, const float *model, struct fl_buf *out)
{
    struct scratch scratch = {NULL};
    struct sum s = {.scratch = &scratch, .out = out};
    size_t *at = calloc(end - from + 1, sizeof(*at));
    size_t l;
    size_t i;
    int rv = at != NULL ? scratch_new(layout, &scratch) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);

        rv = sum_begin(&s, unit->n_trainable);
        if (rv != FL_OK) {
            goto done;
        }
        for (i = from; i < end; i++) {
            rv = sum_add(&s, layout, l, &v->steps[i]->step, &at[i - from], NULL);
            if (rv != FL_OK) {
                goto done;
            }
        }
        rv = sum_end(&s);
        if (rv != FL_OK) {
            goto done;
        }
        if (model != NULL) {
            rv = fl__codec_add_buffers(layout, l, model + unit->offset, out);
            if (rv != FL_OK) {
                goto done;
            }
        }
    }
    rv = FL_OK;
done:
    free(scratch.moves);
    free(at);
    return rv;
}

size_t fl_versions_surplus(const struct fl_versions *versions, size_t keep, size_t bytes)
{
    size_t n = versions->n;
    size_t total = 0;
    size_t i;

    if (n > keep + keep / 4 + 8) {
        return n - keep;
    }
    for (i = 1; i < n; i++) {
        total += fl_blob_len(versions->steps[i]->step.moves);
    }
    if (total <= bytes) {
        return 0;
    }
    for (i = 1; i + 1 < n && total > bytes / 2; i++) {
        total -= fl_blob_len(versions->steps[i]->step.moves);
    }
    return i < 2 ? 0 : i;
}

/*
 * The sum of the steps `from` to `end` - 1 as a blob; `model` as in versions_sum(). FL_ELIMIT: it
 * is as long as the model, or has more lists than can be counted.
 */
static int versions_sum_blob(const struct fl_versions *v, const struct fl_layout *layout,
                             size_t from, size_t end, const float *model, struct fl_blob **ret)
{
    struct fl_buf out;
    int rv;

    fl_buf_init(&out, fl_layout_count(layout) * sizeof(float) - 1);
    rv = versions_sum(v, layout, from, end, model, &out);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_blob_from_buf(&out, ret);
done:
    fl_buf_done(&out);
    return rv;
}

int fl_versions_merge(const struct fl_versions *versions, const struct fl_layout *layout, size_t n,
                      struct fl_versions **ret)
{
    const struct fl_step *last = &versions->steps[n - 1]->step;
    struct fl_step merged = {.round = last->round};
    struct shared_step *shared = NULL;
    struct fl_versions *v;
    size_t i;
    int rv;

    FL_REQUIRE(n > 1 && n <= versions->n);
    (void)memcpy(merged.from, versions->first, sizeof(merged.from));
    (void)memcpy(merged.to, last->to, sizeof(merged.to));
    rv = versions_sum_blob(versions, layout, 0, n, NULL, &merged.moves);
    if (rv != FL_OK && rv != FL_ELIMIT) {
        return rv;
    }
    v = versions_new(rv == FL_OK ? versions->first : last->to, versions->n - n + 1);
    shared = v != NULL && rv == FL_OK ? shared_step_new(&merged) : NULL;
    if (v == NULL || (rv == FL_OK && shared == NULL)) {
        free(v);
        fl_step_done(&merged);
        return FL_ENOMEM;
    }
    if (shared != NULL) {
        versions_share(v, shared);
    }
    for (i = n; i < versions->n; i++) {
        versions_share(v, versions->steps[i]);
    }
    *ret = v;
    return FL_OK;
}

int fl_versions_difference(const struct fl_versions *versions, const struct fl_layout *layout,
                           const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                           struct fl_blob **ret)
{
    size_t from = versions_find(versions, held);

    return from != SIZE_MAX ? versions_sum_blob(versions, layout, from, versions->n, newest, ret)
                            : FL_ENOENT;
}

/* --- on the client --- */

static int difference_apply_unit(const struct fl_layout *layout, size_t l, const int32_t *moves,
                                 const uint8_t *buffers, float *model, struct fl_err *err)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    float *at = model + unit->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = 0; i < count; i++) {
            double x = buffer ? (double)fl__float_of(fl__codec_get32(buffers))
                              : (double)at[i] + FL_GRID * *moves++;

            buffers += buffer ? 4 : 0;
            if (!(fabs(x) < (buffer ? (double)INFINITY : FL_LATTICE_RANGE))) {
                return fl_err_set(err, FL_EFORMAT, "an entry becomes %g", x);
            }
            at[i] = (float)x;
        }
        at += count;
    }
    return FL_OK;
}

/* The bytes of a difference, read up to `at`. */
struct difference {
    const uint8_t *data;
    size_t len, at;
    struct scratch scratch;
    float *model;
};

static int difference_read_unit(struct difference *d, const struct fl_layout *layout, size_t l,
                                struct fl_err *err)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    struct lists lists = {.left = 0};
    int rv = lists_open(&lists, layout, l, d->data + d->at, d->len - d->at, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = lists_add_all(&lists, &d->scratch, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (lists.len - lists.at < 4 * unit->n_buffers) {
        return fl_err_set(err, FL_EFORMAT, "bytes are missing");
    }
    d->at += lists.at + 4 * unit->n_buffers;
    return difference_apply_unit(layout, l, d->scratch.moves, lists.data + lists.at, d->model, err);
}

int fl_difference_apply(const struct fl_layout *layout, const uint8_t *data, size_t len,
                        float *model, struct fl_err *err)
{
    struct difference d = {.data = data, .len = len, .model = model};
    size_t l;
    int rv = scratch_new(layout, &d.scratch);

    if (rv != FL_OK) {
        return rv;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        rv = difference_read_unit(&d, layout, l, err);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "unit '%s'", fl_layout_unit(layout, l)->name);
            goto done;
        }
    }
    rv = d.at == len ? FL_OK : fl_err_set(err, FL_EFORMAT, "%zu bytes are left over", len - d.at);
done:
    free(d.scratch.moves);
    return rv;
}
