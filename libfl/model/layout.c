/*
 * Layouts: builds the list of units and tensors within the limits, with a set of names for
 * look-ups, and computes its digests. Pure data on the caller's thread; the text form is in
 * layout_text.c, differences in layout_diff.c.
 */
#include "libfl/model/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/model/digest.h"
#include "libfl/model/shape.h"
#include "libfl/num/vec.h"

/* Hash set of names with open addressing; grows so that at least half of it stays empty. */
struct name_set {
    uint32_t *slots; /* index + 1 of a tensor or unit; 0 is empty */
    size_t n_slots;  /* a power of two, or 0 */
};

struct fl_layout {
    struct fl_tensor *tensors;
    size_t n_tensors, cap_tensors;
    struct fl_unit *units;
    size_t n_units, cap_units;
    struct name_set tensor_names, unit_names;
    size_t count;
    size_t trainable;
    size_t local;
    bool finished;
    uint8_t digest[FL_DIGEST_SIZE], shape_digest[FL_DIGEST_SIZE];
};

typedef const char *(*name_at_fn)(const struct fl_layout *layout, size_t i);

static const char *tensor_name_at(const struct fl_layout *layout, size_t i)
{
    return layout->tensors[i].name;
}

static const char *unit_name_at(const struct fl_layout *layout, size_t i)
{
    return layout->units[i].name;
}

/* Slot of `name`, or the empty slot where it belongs. The set is never full. */
static size_t name_set_slot(const struct fl_layout *layout, const struct name_set *set,
                            name_at_fn name_at, const char *name)
{
    size_t slot = (size_t)fl_hash64(name, strlen(name)) & (set->n_slots - 1);

    while (set->slots[slot] != 0 && strcmp(name_at(layout, set->slots[slot] - 1), name) != 0) {
        slot = (slot + 1) & (set->n_slots - 1);
    }
    return slot;
}

/* Reserve room for one more name beside the `n` names in the set. */
static int name_set_reserve(struct fl_layout *layout, struct name_set *set, name_at_fn name_at,
                            size_t n)
{
    struct name_set bigger = {.n_slots = set->n_slots == 0 ? 16 : set->n_slots * 2};
    size_t i;

    if ((n + 1) * 2 <= set->n_slots) {
        return FL_OK;
    }
    bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
    if (bigger.slots == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        bigger.slots[name_set_slot(layout, &bigger, name_at, name_at(layout, i))] = (uint32_t)i + 1;
    }
    free(set->slots);
    *set = bigger;
    return FL_OK;
}

/* Double the array when `n` elements of `size` bytes fill it. */
static int layout_grow(void **array, size_t *cap, size_t n, size_t size)
{
    size_t want = *cap == 0 ? 8 : *cap * 2;
    void *bigger;

    if (n < *cap) {
        return FL_OK;
    }
    bigger = realloc(*array, want * size);
    if (bigger == NULL) {
        return FL_ENOMEM;
    }
    *array = bigger;
    *cap = want;
    return FL_OK;
}

int fl_layout_create(struct fl_layout **ret)
{
    struct fl_layout *layout = calloc(1, sizeof(*layout));

    if (layout == NULL) {
        return FL_ENOMEM;
    }
    *ret = layout;
    return FL_OK;
}

void fl_layout_free(struct fl_layout *layout)
{
    if (layout == NULL) {
        return;
    }
    free(layout->tensors);
    free(layout->units);
    free(layout->tensor_names.slots);
    free(layout->unit_names.slots);
    free(layout);
}

/* Number of floats of a shape, checked against the limit of the model. */
static int layout_count_of(const struct fl_layout *layout, const char *tensor, const size_t *dims,
                           size_t n_dims, size_t *ret, struct fl_err *err)
{
    uint64_t count = 1;
    size_t i;

    for (i = 0; i < n_dims; i++) {
        if (dims[i] == 0) {
            return fl_err_set(err, FL_EINVAL, "tensor '%s': dimension %zu is zero", tensor, i + 1);
        }
        if (dims[i] > FL_LAYOUT_MAX_FLOATS / count) {
            return fl_err_set(err, FL_ELIMIT, "tensor '%s' has more than 2^%d numbers", tensor,
                              FL_LAYOUT_MAX_LOG2);
        }
        count *= dims[i];
    }
    if (count > FL_LAYOUT_MAX_FLOATS - layout->count) {
        return fl_err_set(err, FL_ELIMIT, "tensor '%s': the model has more than 2^%d numbers",
                          tensor, FL_LAYOUT_MAX_LOG2);
    }
    *ret = (size_t)count;
    return FL_OK;
}

static int layout_check_new(const struct fl_layout *layout, const char *unit, const char *tensor,
                            bool new_unit, struct fl_err *err)
{
    if (layout->n_tensors >= FL_LAYOUT_MAX_TENSORS) {
        return fl_err_set(err, FL_ELIMIT, "more than %d tensors", FL_LAYOUT_MAX_TENSORS);
    }
    if (new_unit && layout->n_units >= FL_LAYOUT_MAX_UNITS) {
        return fl_err_set(err, FL_ELIMIT, "more than %d units", FL_LAYOUT_MAX_UNITS);
    }
    if (new_unit && layout->unit_names.n_slots > 0 &&
        layout->unit_names.slots[name_set_slot(layout, &layout->unit_names, unit_name_at, unit)] !=
            0)
    {
        return fl_err_set(err, FL_EINVAL, "unit '%s' is listed twice", unit);
    }
    if (layout->tensor_names.n_slots > 0 &&
        layout->tensor_names
                .slots[name_set_slot(layout, &layout->tensor_names, tensor_name_at, tensor)] != 0)
    {
        return fl_err_set(err, FL_EINVAL, "tensor '%s' is listed twice", tensor);
    }
    return FL_OK;
}

static int layout_reserve_one(struct fl_layout *layout)
{
    void *tensors = layout->tensors;
    void *units = layout->units;
    int rv =
        layout_grow(&tensors, &layout->cap_tensors, layout->n_tensors, sizeof(*layout->tensors));

    layout->tensors = tensors;
    if (rv != FL_OK) {
        return rv;
    }
    rv = layout_grow(&units, &layout->cap_units, layout->n_units, sizeof(*layout->units));
    layout->units = units;
    if (rv != FL_OK) {
        return rv;
    }
    rv = name_set_reserve(layout, &layout->tensor_names, tensor_name_at, layout->n_tensors);
    if (rv != FL_OK) {
        return rv;
    }
    return name_set_reserve(layout, &layout->unit_names, unit_name_at, layout->n_units);
}

static int layout_bad_tensor(const char *unit, struct fl_err *err)
{
    return fl_err_set(err, FL_EINVAL,
                      "unit '%s': invalid tensor name, expected 1 to %d of [A-Za-z0-9._-], not "
                      "'unit'",
                      unit, FL_NAME_MAX - 1);
}

static int layout_bad_unit(struct fl_err *err)
{
    return fl_err_set(err, FL_EINVAL, "invalid unit name, expected 1 to %d of [A-Za-z0-9._-]",
                      FL_NAME_MAX - 1);
}

int fl_layout_add_like(struct fl_layout *layout, const char *unit, const struct fl_tensor *like,
                       struct fl_err *err)
{
    bool new_unit;
    size_t count = 0;
    struct fl_unit *u;
    struct fl_tensor *t;
    size_t trainable;
    int rv;

    FL_REQUIRE(!layout->finished && like->n_dims <= FL_LAYOUT_MAX_DIMS);
    if (!fl_name_valid(unit)) {
        return layout_bad_unit(err);
    }
    /* A tensor called "unit" would make the textual layout ambiguous. */
    if (!fl_name_valid(like->name) || strcmp(like->name, "unit") == 0) {
        return layout_bad_tensor(unit, err);
    }
    new_unit = layout->n_units == 0 || strcmp(layout->units[layout->n_units - 1].name, unit) != 0;
    rv = layout_check_new(layout, unit, like->name, new_unit, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = layout_count_of(layout, like->name, like->dims, like->n_dims, &count, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = layout_reserve_one(layout);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "tensor '%s': %s", like->name, fl_strerror(rv));
    }
    t = &layout->tensors[layout->n_tensors];
    trainable = fl_tensor_counts(like) ? count : 0;
    if (layout->n_units == 0 || strcmp(layout->units[layout->n_units - 1].name, unit) != 0) {
        u = &layout->units[layout->n_units];
        *u = (struct fl_unit){.first_tensor = layout->n_tensors, .offset = layout->count};
        (void)memcpy(u->name, unit, strlen(unit) + 1);
        layout->unit_names.slots[name_set_slot(layout, &layout->unit_names, unit_name_at, unit)] =
            (uint32_t)layout->n_units + 1;
        layout->n_units++;
    }
    u = &layout->units[layout->n_units - 1];
    *t = *like;
    t->unit = layout->n_units - 1;
    t->offset = layout->count;
    t->count = count;
    layout->tensor_names
        .slots[name_set_slot(layout, &layout->tensor_names, tensor_name_at, t->name)] =
        (uint32_t)layout->n_tensors + 1;
    layout->n_tensors++;
    u->n_tensors++;
    u->count += count;
    u->n_trainable += trainable;
    u->n_buffers += count - trainable;
    u->n_local += like->local ? count : 0;
    layout->count += count;
    layout->trainable += trainable;
    layout->local += like->local ? count : 0;
    return FL_OK;
}

int fl_layout_add(struct fl_layout *layout, const char *unit, const char *tensor,
                  const size_t *dims, size_t n_dims, bool buffer, struct fl_err *err)
{
    struct fl_tensor like = {.n_dims = n_dims, .buffer = buffer};

    if (!fl_name_valid(unit)) {
        return layout_bad_unit(err);
    }
    if (fl_str_copy(like.name, sizeof(like.name), tensor) != FL_OK) {
        return layout_bad_tensor(unit, err);
    }
    if (n_dims > FL_LAYOUT_MAX_DIMS) {
        return fl_err_set(err, FL_ELIMIT, "tensor '%s' has %zu dimensions, the limit is %d",
                          like.name, n_dims, FL_LAYOUT_MAX_DIMS);
    }
    if (n_dims > 0) {
        (void)memcpy(like.dims, dims, n_dims * sizeof(*dims));
    }
    return fl_layout_add_like(layout, unit, &like, err);
}

static int layout_digest_of(const struct fl_layout *layout, bool marks, uint8_t out[FL_DIGEST_SIZE])
{
    struct fl_buf text;
    int rv = fl__layout_text(layout, marks, &text);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_sha256(text.data, text.len, out);
    fl_buf_done(&text);
    return rv;
}

int fl_layout_finish(struct fl_layout *layout, struct fl_err *err)
{
    int rv;

    FL_REQUIRE(!layout->finished);
    if (layout->n_tensors == 0) {
        return fl_err_set(err, FL_EINVAL, "the model has no tensors");
    }
    rv = layout_digest_of(layout, /* marks= */ true, layout->digest);
    (void)memcpy(layout->shape_digest, layout->digest, sizeof(layout->digest));
    if (rv != FL_OK) {
        goto fail;
    }
    if (layout->local > 0) {
        rv = layout_digest_of(layout, /* marks= */ false, layout->shape_digest);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    layout->finished = true;
    return FL_OK;
fail:
    return fl_err_set(err, rv, "digest of the model's layout: %s", fl_strerror(rv));
}

size_t fl_layout_units(const struct fl_layout *layout)
{
    return layout->n_units;
}

size_t fl_layout_tensors(const struct fl_layout *layout)
{
    return layout->n_tensors;
}

const struct fl_unit *fl_layout_unit(const struct fl_layout *layout, size_t i)
{
    FL_REQUIRE(i < layout->n_units);
    return &layout->units[i];
}

const struct fl_tensor *fl_layout_tensor(const struct fl_layout *layout, size_t i)
{
    FL_REQUIRE(i < layout->n_tensors);
    return &layout->tensors[i];
}

const struct fl_tensor *fl_layout_find(const struct fl_layout *layout, const char *name)
{
    uint32_t index = 0;

    if (layout->n_tensors > 0) {
        index = layout->tensor_names
                    .slots[name_set_slot(layout, &layout->tensor_names, tensor_name_at, name)];
    }
    return index != 0 ? &layout->tensors[index - 1] : NULL;
}

size_t fl_layout_count(const struct fl_layout *layout)
{
    return layout->count;
}

size_t fl_layout_trainable(const struct fl_layout *layout)
{
    return layout->trainable;
}

size_t fl_layout_most_trainable(const struct fl_layout *layout)
{
    size_t most = 0;
    size_t l;

    for (l = 0; l < layout->n_units; l++) {
        most = layout->units[l].n_trainable > most ? layout->units[l].n_trainable : most;
    }
    return most;
}

size_t fl_layout_local(const struct fl_layout *layout)
{
    return layout->local;
}

const uint8_t *fl_layout_digest(const struct fl_layout *layout)
{
    FL_REQUIRE(layout->finished);
    return layout->digest;
}

const uint8_t *fl_layout_shape_digest(const struct fl_layout *layout)
{
    FL_REQUIRE(layout->finished);
    return layout->shape_digest;
}

int fl_layout_copy(const struct fl_layout *from, fl_layout_local_fn *local, void *ctx,
                   struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);
    size_t i;

    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < from->n_tensors; i++) {
        struct fl_tensor like = from->tensors[i];

        like.local = local != NULL && local(ctx, from, &from->tensors[i]);
        rv = fl_layout_add_like(layout, from->units[like.unit].name, &like, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
}

bool fl_layout_equal(const struct fl_layout *a, const struct fl_layout *b)
{
    return memcmp(fl_layout_digest(a), fl_layout_digest(b), FL_DIGEST_SIZE) == 0;
}

double fl_unit_distance(const struct fl_layout *layout, size_t l, const float *a, const float *b)
{
    const struct fl_unit *u = fl_layout_unit(layout, l);
    double sum = 0.0;
    size_t i;

    for (i = u->first_tensor; i < u->first_tensor + u->n_tensors; i++) {
        const struct fl_tensor *t = &layout->tensors[i];

        if (fl_tensor_counts(t)) {
            sum += fl_vec_distance_sq(a + t->offset, b + t->offset, t->count);
        }
    }
    return sqrt(sum);
}
