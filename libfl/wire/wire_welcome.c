/*
 * The layout of the model in a Welcome: units and their tensors, which a struct fl_layout holds.
 * Pure functions, any thread.
 */
#include <stdio.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

/* --- encoding --- */

static int fill_tensors(struct fl_pb_arena *arena, const struct fl_layout *layout,
                        Fl__V1__Tensor **ret)
{
    size_t n = fl_layout_tensors(layout);
    Fl__V1__Tensor *tensors = fl_pb_arena_array(arena, n, sizeof(*tensors));
    uint32_t *dims = fl_pb_arena_array(arena, n * FL_LAYOUT_MAX_DIMS, sizeof(*dims));
    size_t i;
    size_t d;

    if (tensors == NULL || dims == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, i);

        fl__v1__tensor__init(&tensors[i]);
        tensors[i].name = fl_pb_text(tensor->name);
        tensors[i].buffer = tensor->buffer;
        tensors[i].local = tensor->local;
        tensors[i].dims = dims + i * FL_LAYOUT_MAX_DIMS;
        tensors[i].n_dims = tensor->n_dims;
        for (d = 0; d < tensor->n_dims; d++) {
            if (tensor->dims[d] > UINT32_MAX) {
                return FL_ELIMIT;
            }
            tensors[i].dims[d] = (uint32_t)tensor->dims[d];
        }
    }
    *ret = tensors;
    return FL_OK;
}

static int welcome_put_layout(struct fl_pb_arena *arena, const void *own, void *to)
{
    const struct fl_layout *layout = ((const struct fl_wire_welcome *)own)->layout;
    Fl__V1__ModelDescription *msg = to;
    size_t n = fl_layout_units(layout);
    Fl__V1__Unit *units = fl_pb_arena_array(arena, n, sizeof(*units));
    Fl__V1__Tensor **list =
        fl_pb_arena_array(arena, fl_layout_tensors(layout), sizeof(Fl__V1__Tensor *));
    Fl__V1__Tensor *tensors = NULL;
    size_t i;
    int rv;

    msg->n_units = n;
    msg->units = fl_pb_arena_array(arena, n, sizeof(*msg->units));
    if (units == NULL || list == NULL || msg->units == NULL) {
        return FL_ENOMEM;
    }
    rv = fill_tensors(arena, layout, &tensors);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        list[i] = &tensors[i];
    }
    for (i = 0; i < n; i++) {
        const struct fl_unit *unit = fl_layout_unit(layout, i);

        fl__v1__unit__init(&units[i]);
        units[i].name = fl_pb_text(unit->name);
        units[i].tensors = list + unit->first_tensor;
        units[i].n_tensors = unit->n_tensors;
        msg->units[i] = &units[i];
    }
    msg->digest = fl_pb_bytes(fl_layout_digest(layout), FL_DIGEST_SIZE);
    return FL_OK;
}

/* --- decoding --- */

/* `at` is that of the units. */
static int welcome_add_tensor(const struct fl_pb_at *at, struct fl_layout *layout,
                              const Fl__V1__Unit *unit, const Fl__V1__Tensor *tensor,
                              struct fl_err *err)
{
    const struct fl_pb_at tensors = {at, "tensors"};
    const struct fl_pb_at dims = {&tensors, "dims"};
    const struct fl_pb_at name = {&tensors, "name"};
    struct fl_tensor like = {
        .n_dims = tensor->n_dims, .buffer = tensor->buffer != 0, .local = tensor->local != 0};
    size_t i;
    int rv = fl_pb_check_count(&dims, tensor->n_dims, FL_LAYOUT_MAX_DIMS, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < tensor->n_dims; i++) {
        like.dims[i] = tensor->dims[i];
    }
    if (fl_str_copy(like.name, sizeof(like.name), tensor->name) != FL_OK) {
        return fl_pb_refuse(&name, err, "is longer than %d bytes", FL_NAME_MAX - 1);
    }
    rv = fl_layout_add_like(layout, unit->name, &like, err);
    return rv == FL_OK || rv == FL_ENOMEM ? rv : fl_pb_wrap(at, err, FL_EPROTO);
}

static int refuse_unit(const struct fl_pb_at *at, size_t i, const char *text, struct fl_err *err)
{
    char entry[32];
    const struct fl_pb_at unit = {at, entry};

    (void)snprintf(entry, sizeof(entry), "units[%zu]", i);
    return fl_pb_refuse(&unit, err, "%s", text);
}

/*
 * The layout starts a new unit where the name changes, so adjacent units of one name would silently
 * merge. The layout checks whether a name is valid.
 */
static int add_unit(const struct fl_pb_at *at, struct fl_layout *layout,
                    const Fl__V1__ModelDescription *msg, size_t i, struct fl_err *err)
{
    const struct fl_pb_at units = {at, "units"};
    const Fl__V1__Unit *unit = msg->units[i];
    size_t t;
    int rv;

    if (unit->n_tensors == 0) {
        return refuse_unit(at, i, "has no tensors", err);
    }
    if (i > 0 && strcmp(unit->name, msg->units[i - 1]->name) == 0) {
        return refuse_unit(at, i, "has the name of the one before", err);
    }
    for (t = 0; t < unit->n_tensors; t++) {
        rv = welcome_add_tensor(&units, layout, unit, unit->tensors[t], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int check_digest(const struct fl_pb_at *at, const struct fl_layout *layout,
                        const ProtobufCBinaryData *value, struct fl_err *err)
{
    const struct fl_pb_at digest = {at, "digest"};

    if (value->len == 0) {
        return FL_OK;
    }
    if (value->len != FL_DIGEST_SIZE) {
        return fl_pb_refuse(&digest, err, "%zu bytes, a SHA-256 has %d", value->len,
                            FL_DIGEST_SIZE);
    }
    if (memcmp(value->data, fl_layout_digest(layout), FL_DIGEST_SIZE) == 0) {
        return FL_OK;
    }
    return fl_pb_refuse(&digest, err, "is not that of the units described");
}

static int welcome_take_layout(const struct fl_pb_at *at, const void *from, void *own,
                               struct fl_err *err)
{
    const struct fl_pb_at units = {at, "units"};
    const Fl__V1__ModelDescription *msg = from;
    struct fl_layout *layout = NULL;
    size_t i;
    int rv = fl_pb_check_range(&units, msg->n_units, 1, FL_LAYOUT_MAX_UNITS, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_layout_create(&layout);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < msg->n_units; i++) {
        rv = add_unit(at, layout, msg, i, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK && rv != FL_ENOMEM) {
        rv = fl_pb_wrap(&units, err, FL_EPROTO);
    }
    if (rv != FL_OK) {
        goto fail;
    }
    rv = check_digest(at, layout, &msg->digest, err);
    if (rv != FL_OK) {
        goto fail;
    }
    ((struct fl_wire_welcome *)own)->layout = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
}

static void welcome_free_layout(void *own)
{
    fl_layout_free(((struct fl_wire_welcome *)own)->layout);
}

const struct fl_pb_code fl__wire_layout_code = {welcome_put_layout, welcome_take_layout,
                                                welcome_free_layout};
