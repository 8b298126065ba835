#include "libfl/strategy/codec.h"

#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec_impl.h"

/* Floats decoded at a time when only their norm is wanted; on the stack. */
#define VALIDATE_BLOCK 2048

bool fl__unit_next_run(const struct fl_layout *layout, size_t l, size_t *tensor, size_t *ret_count,
                       bool *ret_buffer)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t count = 0;
    bool buffer = false;

    while (*tensor < unit->n_tensors) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + *tensor);

        if (count > 0 && t->buffer != buffer) {
            break;
        }
        buffer = t->buffer;
        count += t->count;
        ++*tensor;
    }
    *ret_count = count;
    *ret_buffer = buffer;
    return count > 0;
}

int fl_codec_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                  const struct fl_layout *layout, size_t unit, const struct fl_codec_reader *reader)
{
    FL_REQUIRE(unit < fl_layout_units(layout));
    d->ops = ops;
    d->layout = layout;
    d->unit = unit;
    d->reader = *reader;
    d->next = 0;
    d->tensor = 0;
    d->run = 0;
    d->in_buffers = false;
    d->offset = 0;
    (void)memset(d->state, 0, sizeof(d->state));
    if (reader->size > ops->max_size(layout, unit)) {
        return FL_EFORMAT;
    }
    return ops->open(d);
}

int fl_codec_validate(struct fl_codec_decoder *d, double *ret_norm_sq)
{
    float block[VALIDATE_BLOCK];
    double norm_sq = 0;
    size_t tensor = 0;
    size_t count;
    bool buffer;
    int rv;

    while (fl__unit_next_run(d->layout, d->unit, &tensor, &count, &buffer)) {
        while (count > 0) {
            size_t n = count < VALIDATE_BLOCK ? count : VALIDATE_BLOCK;

            rv = d->ops->read(d, block, n);
            if (rv != FL_OK) {
                return rv;
            }
            if (!buffer) {
                norm_sq += fl_vec_dot(block, block, n);
            }
            count -= n;
        }
    }
    rv = d->ops->close(d);
    if (rv == FL_OK) {
        *ret_norm_sq = norm_sq;
    }
    return rv;
}

static int read_memory(void *ctx, uint64_t offset, void *out, size_t len)
{
    const struct fl_codec_memory *memory = ctx;

    if (offset > memory->len || len > memory->len - offset) {
        return FL_EFORMAT;
    }
    if (len > 0) {
        (void)memcpy(out, memory->data + offset, len);
    }
    return FL_OK;
}

struct fl_codec_reader fl_codec_memory_reader(struct fl_codec_memory *memory)
{
    return (struct fl_codec_reader){.read = read_memory, .ctx = memory, .size = memory->len};
}
