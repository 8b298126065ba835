/* The layout of the shared memory. */
#include "libfl/program/persistent_impl.h"

/* Alignment of vectors, for vector units and GPUs. */
#define ALIGN UINT64_C(64)
#define PAGE  UINT64_C(4096)

static uint64_t slots_align(uint64_t n, uint64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* A complete safetensors file, from `*at` on. */
static struct fl_memory_slot slots_place_model(const struct fl_persistent *r, uint64_t *at)
{
    uint64_t data = slots_align(*at + r->header.len, ALIGN);
    uint64_t bytes = r->header.len + (uint64_t)fl_layout_count(r->layout) * sizeof(float);
    uint64_t offset = data - r->header.len;

    *at = offset + bytes;
    return (struct fl_memory_slot){(size_t)offset, (size_t)bytes, (size_t)data};
}

static struct fl_memory_slot slots_place_bytes(size_t bytes, uint64_t *at)
{
    struct fl_memory_slot slot;

    if (bytes == 0) {
        return (struct fl_memory_slot){0};
    }
    slot = (struct fl_memory_slot){(size_t)slots_align(*at, ALIGN), bytes, 0};
    *at = slots_align(*at, ALIGN) + bytes;
    return slot;
}

int fl__persistent_place(struct fl_persistent *r, struct fl_err *err)
{
    struct fl_slots s = {0};
    uint64_t weights = 0;
    uint64_t result = 0;
    size_t i;

    for (i = 0; i < FL_PERSISTENT_VECTORS; i++) {
        if ((r->vectors & 1u << i) != 0) {
            s.vectors[i] = slots_place_model(r, &weights);
        }
    }
    s.mixup = slots_place_bytes(r->mixup_bytes, &weights);
    if (r->clients > 0) {
        size_t entries = fl_layout_count(r->layout);

        if (r->clients > SIZE_MAX / 8 / entries) {
            return fl_err_set(err, FL_ELIMIT,
                              "the updates of %zu clients with %zu parameters exceed the address "
                              "space of this machine",
                              r->clients, entries);
        }
        s.updates = slots_place_bytes(r->clients * entries * sizeof(float), &weights);
        s.mean = slots_place_bytes(entries * sizeof(double), &weights);
        s.shares =
            slots_place_bytes(r->clients * fl_layout_units(r->layout) * sizeof(double), &weights);
        s.state = slots_place_bytes(r->state_bytes, &weights);
        s.step = slots_place_bytes(entries * sizeof(double), &result);
        s.scores = slots_place_bytes(r->clients * sizeof(double), &result);
    } else {
        s.result = slots_place_model(r, &result);
    }
    s.result_used = (size_t)slots_align(result, PAGE);
    s.state_new = slots_place_bytes(r->state_bytes, &result);
    s.summary = slots_place_bytes(r->summary_bytes, &result);
    weights = slots_align(weights, PAGE);
    result = slots_align(result, PAGE);
    if (weights > SIZE_MAX / 2 || result > SIZE_MAX / 2) {
        return fl_err_set(err, FL_ELIMIT,
                          "the inputs of the program for a model of %zu parameters exceed "
                          "the address space of this machine",
                          fl_layout_count(r->layout));
    }
    s.weights_bytes = (size_t)weights;
    s.result_bytes = (size_t)result;
    r->slots = s;
    return FL_OK;
}

bool fl__persistent_fits(const struct fl_persistent *r)
{
    return r->weights.bytes == 0 ||
           (r->slots.weights_bytes <= r->weights.bytes && r->slots.result_bytes <= r->result.bytes);
}

int fl__persistent_lay_out(struct fl_persistent *r, struct fl_err *err)
{
    const struct fl_slots *s = &r->slots;
    size_t i;
    int rv;

    if (r->weights.bytes == 0) {
        rv = fl_shared_size(&r->weights, s->weights_bytes, s->weights_bytes, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_shared_size(&r->result, s->result_bytes, s->result_used, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    r->slots.weights_bytes = r->weights.bytes;
    r->slots.result_bytes = r->result.bytes;
    for (i = 0; i < FL_PERSISTENT_VECTORS; i++) {
        if (s->vectors[i].bytes > 0) {
            rv = fl_shared_write(&r->weights, s->vectors[i].offset, r->header.data, r->header.len,
                                 err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return s->result.bytes > 0
               ? fl_shared_write(&r->result, s->result.offset, r->header.data, r->header.len, err)
               : FL_OK;
}

int fl__persistent_hand_over(struct fl_persistent *r, const struct fl_persistent_task *task,
                             struct fl_err *err)
{
    size_t bytes = fl_layout_count(r->layout) * sizeof(float);
    size_t i;
    int rv;

    for (i = 0; i < FL_PERSISTENT_VECTORS; i++) {
        if (task->given[i] != NULL) {
            FL_REQUIRE(r->slots.vectors[i].bytes > 0);
            rv = fl_shared_write(&r->weights, r->slots.vectors[i].data, task->given[i], bytes, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    if (task->aggregate != NULL && task->aggregate->state_len > 0) {
        FL_REQUIRE(task->aggregate->state_len <= r->state_bytes);
        return fl_shared_write(&r->weights, r->slots.state.offset, task->aggregate->state,
                               task->aggregate->state_len, err);
    }
    if (task->mixup != NULL && task->mixup_len > 0) {
        return fl_shared_write(&r->weights, r->slots.mixup.offset, task->mixup, task->mixup_len,
                               err);
    }
    return FL_OK;
}
