#include "libfl/strategy/broadcast/versions.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/broadcast/moves.h"
#include "libfl/strategy/codec/codec_impl.h"

#define DIFFERENCE_HEAD 4

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

/* Scratch for the moves of any unit. */
static int32_t *versions_scratch(const struct fl_layout *layout)
{
    size_t most = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t n = fl_layout_unit(layout, l)->n_trainable;

        most = n > most ? n : most;
    }
    return malloc((most + 1) * sizeof(int32_t));
}

static bool versions_fits(float x)
{
    double q = (double)x / FL_LATTICE_GRID;

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
                    "an entry of '%s' is %.9g: clients hold models with entries below "
                    "16 in multiples of 2^-20 (broadcast 'lattice')",
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

static void step_moves(const struct fl_layout *layout, size_t l, const float *old, const float *new,
                       uint32_t grid, int32_t *moves)
{
    const double s = grid * FL_LATTICE_GRID;
    size_t at = fl_layout_unit(layout, l)->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = at; !buffer && i < at + count; i++) {
            *moves++ = (int32_t)(((double)new[i] - (double)old[i]) / s);
        }
        at += count;
    }
}

/* --- steps --- */

int fl_step_make(const struct fl_layout *layout, const float *old, const float *new, uint32_t grid,
                 struct fl_step *ret, struct fl_err *err)
{
    int32_t *moves = versions_scratch(layout);
    struct fl_buf coded;
    size_t l;
    int rv = FL_ENOMEM;

    *ret = (struct fl_step){.grid = grid};
    fl_buf_init(&coded, SIZE_MAX);
    if (moves == NULL) {
        goto done;
    }
    rv = fl_versions_check(layout, new, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        step_moves(layout, l, old, new, grid, moves);
        rv = fl_moves_encode(moves, fl_layout_unit(layout, l)->n_trainable, &coded);
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
    free(moves);
    return rv;
}

void fl_step_done(struct fl_step *step)
{
    fl_blob_unref(step->moves);
    *step = (struct fl_step){.grid = 0};
}

/* Adds the moves of unit `l` to sum[n_trainable]; `*at` is where they begin, and end then. */
static int step_add(const struct fl_step *step, const struct fl_layout *layout, size_t l,
                    size_t *at, int32_t scale, int32_t *sum, struct fl_err *err)
{
    size_t used = 0;
    int rv = fl_moves_decode(fl_blob_data(step->moves) + *at, fl_blob_len(step->moves) - *at,
                             fl_layout_unit(layout, l)->n_trainable, scale, sum, &used, err);

    *at += used;
    return rv;
}

int fl_step_check(const struct fl_layout *layout, const struct fl_step *step, struct fl_err *err)
{
    int32_t *moves = versions_scratch(layout);
    size_t at = 0;
    size_t l;
    int rv = FL_ENOMEM;

    if (moves == NULL) {
        return rv;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        (void)memset(moves, 0, fl_layout_unit(layout, l)->n_trainable * sizeof(*moves));
        rv = step_add(step, layout, l, &at, 1, moves, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = at == fl_blob_len(step->moves) && step->grid > 0 && step->grid <= FL_LATTICE_STEP_MAX
             ? FL_OK
             : fl_err_set(err, FL_EFORMAT, "bytes are left over, or the step is out of range");
done:
    free(moves);
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
        *step = (struct fl_step){.grid = 0};
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
    const struct fl_step *last =
        versions->n > 0 ? fl_versions_step(versions, versions->n - 1) : NULL;
    bool adds = last == NULL || last->grid % step->grid == 0;
    const uint8_t *newest = fl_versions_newest(versions);
    struct fl_versions *v =
        versions_new(adds ? versions->first : newest, adds ? versions->n + 1 : 1);
    struct shared_step *shared;
    size_t i;

    (void)memcpy(step->from, newest, sizeof(step->from));
    shared = v != NULL ? shared_step_new(step) : NULL;
    if (shared == NULL) {
        free(v);
        fl_step_done(step);
        return FL_ENOMEM;
    }
    for (i = 0; adds && i < versions->n; i++) {
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
 * Codes the sum of the steps `from` to `end` - 1, in units of the last one's grid, unit by unit;
 * `model` NULL: without the other entries.
 */
static int versions_sum(const struct fl_versions *v, const struct fl_layout *layout, size_t from,
                        size_t end, const float *model, struct fl_buf *out)
{
    uint32_t grid = end > 0 ? v->steps[end - 1]->step.grid : 1;
    int32_t *sum = versions_scratch(layout);
    size_t *at = calloc(end - from + 1, sizeof(*at));
    size_t l;
    size_t i;
    int rv = FL_ENOMEM;

    if (sum == NULL || at == NULL) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);

        (void)memset(sum, 0, unit->n_trainable * sizeof(*sum));
        for (i = from; i < end; i++) {
            const struct fl_step *step = &v->steps[i]->step;

            /* An earlier step may be a multiple of the last one (fl_versions_add()). */
            rv = step_add(step, layout, l, &at[i - from], (int32_t)(step->grid / grid), sum, NULL);
            if (rv != FL_OK) {
                goto done;
            }
        }
        rv = fl_moves_encode(sum, unit->n_trainable, out);
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
    free(sum);
    free(at);
    return rv;
}

int fl_versions_merge(const struct fl_versions *versions, const struct fl_layout *layout, size_t n,
                      struct fl_versions **ret, const struct fl_step **ret_step)
{
    const struct fl_step *last = &versions->steps[n - 1]->step;
    struct fl_step merged = {.grid = last->grid, .round = last->round};
    struct fl_versions *v;
    struct shared_step *shared;
    struct fl_buf coded;
    size_t i;
    int rv;

    FL_REQUIRE(n > 1 && n <= versions->n);
    (void)memcpy(merged.from, versions->first, sizeof(merged.from));
    (void)memcpy(merged.to, last->to, sizeof(merged.to));
    fl_buf_init(&coded, SIZE_MAX);
    rv = versions_sum(versions, layout, 0, n, NULL, &coded);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_blob_from_buf(&coded, &merged.moves);
    if (rv != FL_OK) {
        goto done;
    }
    v = versions_new(versions->first, versions->n - n + 1);
    shared = v != NULL ? shared_step_new(&merged) : NULL;
    if (shared == NULL) {
        free(v);
        rv = FL_ENOMEM;
        goto done;
    }
    versions_share(v, shared);
    for (i = n; i < versions->n; i++) {
        versions_share(v, versions->steps[i]);
    }
    *ret = v;
    *ret_step = &shared->step;
done:
    fl_step_done(&merged);
    fl_buf_done(&coded);
    return rv;
}

int fl_versions_difference(const struct fl_versions *versions, const struct fl_layout *layout,
                           const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                           struct fl_blob **ret)
{
    size_t from = versions_find(versions, held);
    struct fl_buf out;
    uint8_t head[DIFFERENCE_HEAD];
    int rv;

    if (from == SIZE_MAX) {
        return FL_ENOENT;
    }
    /* Without a step nothing moves, whatever its length. */
    fl__codec_put32(head, versions->n > 0 ? versions->steps[versions->n - 1]->step.grid : 1);
    fl_buf_init(&out, SIZE_MAX);
    rv = fl_buf_add(&out, head, sizeof(head));
    if (rv != FL_OK) {
        goto done;
    }
    rv = versions_sum(versions, layout, from, versions->n, newest, &out);
    if (rv != FL_OK) {
        goto done;
    }
    rv =
        out.len < fl_layout_count(layout) * sizeof(float) ? fl_blob_from_buf(&out, ret) : FL_ENOENT;
done:
    fl_buf_done(&out);
    return rv;
}

/* --- on the client --- */

static int difference_apply_unit(const struct fl_layout *layout, size_t l, double s,
                                 const int32_t *moves, const uint8_t **buffers, float *model,
                                 struct fl_err *err)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    float *at = model + unit->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = 0; i < count; i++) {
            double x = buffer ? (double)fl__float_of(fl__codec_get32(*buffers))
                              : (double)at[i] + s * *moves++;

            *buffers += buffer ? 4 : 0;
            if (!(fabs(x) < (buffer ? (double)INFINITY : FL_LATTICE_RANGE))) {
                return fl_err_set(err, FL_EFORMAT, "unit '%s': an entry becomes %g", unit->name, x);
            }
            at[i] = (float)x;
        }
        at += count;
    }
    return FL_OK;
}

int fl_difference_apply(const struct fl_layout *layout, const uint8_t *data, size_t len,
                        float *model, struct fl_err *err)
{
    uint32_t grid = len >= DIFFERENCE_HEAD ? fl__codec_get32(data) : 0;
    size_t at = DIFFERENCE_HEAD;
    int32_t *moves;
    size_t l;
    int rv = FL_OK;

    if (grid == 0 || grid > FL_LATTICE_STEP_MAX) {
        return fl_err_set(err, FL_EFORMAT, "its step is %u of 2^24 multiples of 2^-20", grid);
    }
    moves = versions_scratch(layout);
    if (moves == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        const uint8_t *buffers;
        size_t used = 0;

        (void)memset(moves, 0, unit->n_trainable * sizeof(*moves));
        rv = fl_moves_decode(data + at, len - at, unit->n_trainable, 1, moves, &used, err);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "unit '%s'", unit->name);
            goto done;
        }
        at += used;
        if (len - at < 4 * unit->n_buffers) {
            rv = fl_err_set(err, FL_EFORMAT, "unit '%s': bytes are missing", unit->name);
            goto done;
        }
        buffers = data + at;
        at += 4 * unit->n_buffers;
        rv = difference_apply_unit(layout, l, grid * FL_LATTICE_GRID, moves, &buffers, model, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    if (at != len) {
        rv = fl_err_set(err, FL_EFORMAT, "%zu bytes are left over", len - at);
    }
done:
    free(moves);
    return rv;
}
