/*
 * Models that clients may hold, the steps between them, and the differences that clients download
 * and apply (docs/algorithms.md#lattice). Immutable objects and pure functions; what is kept of the
 * differences is the caller's to decide (server/work/differences.c).
 */
#include "libfl/strategy/broadcast/versions.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/broadcast/move_lists.h"
#include "libfl/strategy/codec/codec_impl.h"

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

/* --- models --- */

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

/* --- steps --- */

/* The moves of a unit in multiples of the grid. */
static void step_moves(const struct fl_layout *layout, size_t l, const float *old, const float *new,
                       struct fl_moves *moves)
{
    size_t k = 0;
    size_t at = fl_layout_unit(layout, l)->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = at; !buffer && i < at + count; i++) {
            moves->sums[k] = (int32_t)(((double)new[i] - (double)old[i]) / FL_GRID);
            moves->touched[k / 64] |= (uint64_t)(moves->sums[k] != 0) << k % 64;
            k++;
        }
        at += count;
    }
}

int fl_step_make(const struct fl_layout *layout, const float *old, const float *new,
                 struct fl_step *ret, struct fl_err *err)
{
    struct fl_buf coded;
    struct fl__scratch scratch = {.n_moves = 0};
    struct fl__sum s = {.scratch = &scratch, .out = &coded};
    size_t l;
    int rv = fl_versions_check(layout, new, err);

    *ret = (struct fl_step){.round = 0};
    fl_buf_init(&coded, SIZE_MAX);
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        rv = fl__sum_begin(&s);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl__scratch_moves(&scratch, fl_layout_unit(layout, l)->n_trainable);
        if (rv != FL_OK) {
            goto done;
        }
        step_moves(layout, l, old, new, &scratch.moves);
        s.of.step = 1;
        rv = fl__sum_end(&s);
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
    fl__scratch_done(&scratch);
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
    struct fl__scratch scratch = {.n_moves = 0};
    size_t at = 0;
    size_t u;
    int rv = FL_OK;

    for (u = 0; u < fl_layout_units(layout); u++) {
        struct fl__lists l = {.left = 0};

        rv = fl__lists_open(&l, layout, u, data + at, len - at, err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl__lists_add_all(&l, &scratch, err);
        if (rv != FL_OK) {
            goto done;
        }
        at += l.at;
    }
    rv = at == len ? FL_OK : fl_err_set(err, FL_EFORMAT, "bytes are left over");
done:
    fl__scratch_done(&scratch);
    return rv;
}

/* --- lists of versions --- */

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

/* --- where differences are divided --- */

/* The head of the first list of a step; n 0: of moves. */
static struct fl_hashed_head step_head(const struct fl_step *step)
{
    const uint8_t *data = fl_blob_data(step->moves);
    size_t len = fl_blob_len(step->moves);
    struct fl_hashed_head head = {0};

    while (len > FL__LISTS_HEAD && data[0] == 0 && data[1] == 0) { /* A unit without moves. */
        data += FL__LISTS_HEAD;
        len -= FL__LISTS_HEAD;
    }
    if (len <= FL__LISTS_HEAD ||
        fl_hashed_peek(data + FL__LISTS_HEAD, len - FL__LISTS_HEAD, SIZE_MAX, &head, NULL) != FL_OK)
    {
        return (struct fl_hashed_head){0};
    }
    return head;
}

/*
 * May differences be divided at model `i`, when that is done each `span` rounds? Numbers of one
 * draw are not: the sum of all is as short as a part.
 */
static bool versions_divides(const struct fl_versions *v, size_t i, uint64_t span)
{
    const struct fl_step *before = &v->steps[i - 1]->step;
    const struct fl_step *after = &v->steps[i]->step;
    struct fl_hashed_head a = step_head(before);
    struct fl_hashed_head b = step_head(after);

    if (a.n > 0 && b.n > 0) {
        return a.seed != b.seed;
    }
    return (before->round + span - 1) / span != (after->round + span - 1) / span;
}

/* Where the difference from model `from` to the newest one is divided; `n` of steps: nowhere. */
static size_t versions_division(const struct fl_versions *v, size_t from)
{
    uint64_t rounds = from < v->n ? v->steps[v->n - 1]->step.round - v->steps[from]->step.round : 0;
    uint64_t span = 1;
    bool back;
    size_t i;

    while (2 * span * FL_VERSIONS_PARTS <= rounds) {
        span *= 2;
    }
    /* The first step may be the sum of many, of which the next ones take back a part. */
    if (from == 0 || span == 1 || versions_divides(v, from, span)) {
        return v->n;
    }
    /* Back to the begin of a draw all of its numbers would be sent twice. */
    back = step_head(&v->steps[from - 1]->step).n == 0;
    for (i = 1; from + i < v->n; i++) {
        if (versions_divides(v, from + i, span)) {
            return from + i;
        }
        if (back && i < from && versions_divides(v, from - i, span)) {
            return from - i;
        }
    }
    return v->n;
}

const uint8_t *fl_versions_divide(const struct fl_versions *versions,
                                  const uint8_t held[FL_DIGEST_SIZE])
{
    size_t from = versions_find(versions, held);
    size_t at = from != SIZE_MAX ? versions_division(versions, from) : versions->n;

    return at < versions->n ? versions->steps[at]->step.from : NULL;
}

/* --- sums of steps --- */

struct fl_merger {
    const struct fl_layout *layout;
    struct fl__scratch scratch;
};

int fl_merger_create(const struct fl_layout *layout, struct fl_merger **ret)
{
    struct fl_merger *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        return FL_ENOMEM;
    }
    m->layout = layout;
    *ret = m;
    return FL_OK;
}

void fl_merger_free(struct fl_merger *m)
{
    if (m != NULL) {
        fl__scratch_done(&m->scratch);
        free(m);
    }
}

size_t fl_merger_bytes(const struct fl_merger *m)
{
    return fl__scratch_bytes(&m->scratch);
}

void fl_difference_done(struct fl_difference *difference)
{
    fl_blob_unref(difference->bytes);
    free(difference->units);
    *difference = (struct fl_difference){.bytes = NULL};
}

/* The sum of the steps `from` to `end` - 1. */
struct sum_of {
    const struct fl_versions *versions;
    size_t from, end;
    bool back;                        /* it is subtracted */
    const float *model;               /* of its other entries; NULL: without them */
    const struct fl_difference *rest; /* follows; NULL: nothing */
};

/* at[end - from]: how far the bytes of each step were read. */
static int sum_unit(const struct sum_of *of, const struct fl_layout *layout, size_t l,
                    struct fl__sum *s, size_t *at)
{
    const struct fl_difference *rest = of->rest;
    size_t i;
    int rv = fl__sum_begin(s);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = of->from; i < of->end; i++) {
        struct fl_blob *moves = of->versions->steps[i]->step.moves;
        size_t *done = &at[i - of->from];
        size_t used = 0;

        rv = fl__sum_add(s, layout, l, fl_blob_data(moves) + *done, fl_blob_len(moves) - *done,
                         &used);
        if (rv != FL_OK) {
            return rv;
        }
        *done += used;
    }
    rv = fl__sum_end(s);
    if (rv != FL_OK) {
        return rv;
    }
    if (rest != NULL) {
        const struct fl_difference_unit *unit = &rest->units[l];

        return fl__sum_follow(s, fl_blob_data(rest->bytes) + unit->at + FL__LISTS_HEAD,
                              unit[1].at - unit->at - FL__LISTS_HEAD, unit->lists, unit->hashed);
    }
    return of->model == NULL
               ? FL_OK
               : fl__codec_add_buffers(layout, l, of->model + fl_layout_unit(layout, l)->offset,
                                       s->out);
}

/* A sum is shorter than the model. */
static size_t sum_most(const struct fl_layout *layout)
{
    return fl_layout_count(layout) * sizeof(float) - 1;
}

/* Its length before moves are added up, which is mostly not less. */
static size_t sum_room(const struct sum_of *of, const struct fl_layout *layout)
{
    size_t most = sum_most(layout);
    size_t room = of->rest != NULL ? fl_blob_len(of->rest->bytes)
                  : of->model != NULL
                      ? (fl_layout_count(layout) - fl_layout_trainable(layout)) * sizeof(float)
                      : 0;
    size_t i;

    for (i = of->from; i < of->end && room < most; i++) {
        room += fl_blob_len(of->versions->steps[i]->step.moves);
    }
    return room < most ? room : most;
}

/*
 * The sum as a blob, and where its units are. FL_ELIMIT: it is as long as the model, or has more
 * lists than can be counted.
 */
static int merger_sum(struct fl_merger *m, const struct sum_of *of, struct fl_difference *ret)
{
    size_t n = fl_layout_units(m->layout);
    struct fl_buf out;
    struct fl__sum s = {.scratch = &m->scratch, .back = of->back, .out = &out};
    struct fl_difference sum = {.units = calloc(n + 1, sizeof(*sum.units))};
    size_t *at = calloc(of->end - of->from + 1, sizeof(*at));
    size_t l;
    int rv = FL_ENOMEM;

    fl_buf_init(&out, sum_room(of, m->layout));
    if (at == NULL || sum.units == NULL) {
        goto done;
    }
    rv = fl_buf_reserve(&out, out.max); /* No more than that, unlike memory that grows. */
    if (rv != FL_OK) {
        goto done;
    }
    out.max = sum_most(m->layout);
    for (l = 0; l < n; l++) {
        sum.units[l].at = out.len;
        rv = sum_unit(of, m->layout, l, &s, at);
        if (rv != FL_OK) {
            fl__scratch_clear(&m->scratch); /* Sums that were not written. */
            goto done;
        }
        sum.units[l].lists = (uint32_t)s.lists;
        sum.units[l].hashed = (uint32_t)s.hashed;
    }
    sum.units[n].at = out.len;
    rv = fl_blob_from_buf(&out, &sum.bytes);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = sum;
    sum.units = NULL;
done:
    fl_buf_done(&out);
    free(sum.units);
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

int fl_versions_merge(const struct fl_versions *versions, const struct fl_layout *layout, size_t n,
                      struct fl_versions **ret)
{
    const struct fl_step *last = &versions->steps[n - 1]->step;
    const struct sum_of of = {.versions = versions, .end = n};
    struct fl_merger merger = {.layout = layout};
    struct fl_difference sum = {.bytes = NULL};
    struct fl_step merged = {.round = last->round};
    struct shared_step *shared = NULL;
    struct fl_versions *v;
    size_t i;
    int rv;

    FL_REQUIRE(n > 1 && n <= versions->n);
    (void)memcpy(merged.from, versions->first, sizeof(merged.from));
    (void)memcpy(merged.to, last->to, sizeof(merged.to));
    rv = merger_sum(&merger, &of, &sum);
    fl__scratch_done(&merger.scratch);
    free(sum.units);
    merged.moves = sum.bytes;
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

/* FL_ENOENT: the model is not known. */
static int versions_sum_of(const struct fl_versions *v, const uint8_t held[FL_DIGEST_SIZE],
                           const struct fl_difference *rest, struct sum_of *ret)
{
    size_t from = versions_find(v, held);
    size_t end = from != SIZE_MAX && rest != NULL ? versions_division(v, from) : v->n;

    *ret = (struct sum_of){.versions = v,
                           .from = from < end ? from : end,
                           .end = from < end ? end : from,
                           .back = end < from,
                           .rest = rest};
    return from != SIZE_MAX ? FL_OK : FL_ENOENT;
}

size_t fl_versions_room(const struct fl_versions *versions, const struct fl_layout *layout,
                        const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                        const struct fl_difference *rest)
{
    struct sum_of of;

    if (versions_sum_of(versions, held, rest, &of) != FL_OK) {
        return 0;
    }
    of.model = newest;
    return sum_room(&of, layout) + (of.end - of.from) * sizeof(size_t);
}

int fl_versions_difference(const struct fl_versions *versions, struct fl_merger *merger,
                           const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                           const struct fl_difference *rest, struct fl_difference *ret)
{
    struct sum_of of;
    int rv = versions_sum_of(versions, held, rest, &of);

    if (rv != FL_OK) {
        return rv;
    }
    of.model = newest;
    return merger_sum(merger, &of, ret);
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
    struct fl__scratch scratch;
    float *model;
};

static int difference_read_unit(struct difference *d, const struct fl_layout *layout, size_t l,
                                struct fl_err *err)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    struct fl__lists lists = {.left = 0};
    int rv = fl__lists_open(&lists, layout, l, d->data + d->at, d->len - d->at, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__lists_add_all(&lists, &d->scratch, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (lists.len - lists.at < 4 * unit->n_buffers) {
        return fl_err_set(err, FL_EFORMAT, "bytes are missing");
    }
    d->at += lists.at + 4 * unit->n_buffers;
    return difference_apply_unit(layout, l, d->scratch.moves.sums, lists.data + lists.at, d->model,
                                 err);
}

int fl_difference_apply(const struct fl_layout *layout, const uint8_t *data, size_t len,
                        float *model, struct fl_err *err)
{
    struct difference d = {.data = data, .len = len, .model = model};
    size_t l;
    int rv = FL_OK;

    for (l = 0; l < fl_layout_units(layout); l++) {
        rv = difference_read_unit(&d, layout, l, err);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "unit '%s'", fl_layout_unit(layout, l)->name);
            goto done;
        }
    }
    rv = d.at == len ? FL_OK : fl_err_set(err, FL_EFORMAT, "%zu bytes are left over", len - d.at);
done:
    fl__scratch_done(&d.scratch);
    return rv;
}
