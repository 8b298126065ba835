/*
 * The frame of all codecs: walks a unit in runs of trainable entries and buffers, opens
 * decoders, and validates and measures coded units. No I/O of its own: coded bytes come through
 * struct fl_codec_reader. Runs on the caller's thread; the codecs themselves are in codec_*.c.
 */
#include "libfl/strategy/codec/codec.h"

#include <math.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/codec_masked.h"

/* Floats decoded at a time when only their norm is needed; on the stack. */
#define VALIDATE_BLOCK 2048

bool fl__unit_next_run(const struct fl_layout *layout, size_t l, size_t *tensor, size_t *ret_count,
                       bool *ret_buffer)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t count = 0;
    bool buffer = false;

    while (*tensor < unit->n_tensors) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + *tensor);

        if (count > 0 && fl_tensor_counts(t) == buffer) {
            break;
        }
        buffer = !fl_tensor_counts(t);
        count += t->count;
        ++*tensor;
    }
    *ret_count = count;
    *ret_buffer = buffer;
    return count > 0;
}

size_t fl__coded_part(const struct fl_codec_decoder *d, size_t n)
{
    return n / d->rows * d->kept;
}

size_t fl__coded_count(const struct fl_codec_decoder *d)
{
    return fl__coded_part(d, fl_layout_unit(d->layout, d->unit)->count);
}

size_t fl__coded_trainable(const struct fl_codec_decoder *d)
{
    return fl__coded_part(d, fl_layout_unit(d->layout, d->unit)->n_trainable);
}

uint64_t fl__coded_buffer_bytes(const struct fl_codec_decoder *d)
{
    size_t n = fl__coded_part(d, fl_layout_unit(d->layout, d->unit)->n_buffers);

    return (uint64_t)n * sizeof(float);
}

uint64_t fl__codec_body_end(const struct fl_codec_decoder *d)
{
    uint64_t buffers = fl__coded_buffer_bytes(d);

    return d->reader.size > buffers ? d->reader.size - buffers : 0;
}

int fl__codec_bytes(const struct fl_codec_decoder *d, uint64_t offset, void *out, size_t len)
{
    return d->reader.read(d->reader.ctx, d->base + offset, out, len);
}

void fl__decoder_init(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                      const struct fl_layout *layout, size_t unit,
                      const struct fl_codec_reader *reader)
{
    FL_REQUIRE(unit < fl_layout_units(layout));
    d->ops = ops;
    d->layout = layout;
    d->unit = unit;
    d->reader = *reader;
    d->base = 0;
    d->rows = 1;
    d->kept = 1;
    d->next = 0;
    d->tensor = 0;
    d->run = 0;
    d->in_buffers = false;
    d->offset = 0;
    (void)memset(d->state, 0, sizeof(d->state));
    d->inner = NULL;
}

int fl_codec_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                  const struct fl_layout *layout, size_t unit, const struct fl_codec_reader *reader)
{
    fl__decoder_init(d, ops, layout, unit, reader);
    if (reader->size > ops->max_size(layout, unit)) {
        return FL_EFORMAT;
    }
    return ops->open(d);
}

int fl__codec_add_read(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n)
{
    int rv = d->ops->read(d, block, n);

    if (rv != FL_OK) {
        return rv;
    }
    if (sum != NULL) {
        fl_acc_add(sum, w, block, n);
    }
    return FL_OK;
}

int fl_codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n)
{
    return d->ops->add != NULL ? d->ops->add(d, w, sum, block, n)
                               : fl__codec_add_read(d, w, sum, block, n);
}

/* Clients may add up squares as float32: about as far off as sums of 10^7 of them are. */
#define CLAIM_SLACK (1.0 / 256)
/* Below it the squares of float32 underflow. */
#define CLAIM_LEAST 1e-18

/*
 * Under a mask the neurons that moved most are there, so none that is absent moved more than the
 * mean of those: at most rows / kept times their square in all.
 */
static void set_bounds(const struct fl_codec_decoder *d, struct fl_codec_size *size)
{
    const struct fl_codec_ops *ops = d->inner != NULL ? d->inner : d->ops;
    double norm = sqrt(size->norm_sq);

    size->low = size->high = norm;
    if (ops->bounds != NULL) {
        ops->bounds(d, norm, &size->low, &size->high);
    }
    size->high *= sqrt((double)d->rows / (double)d->kept);
    size->low = fmax(size->low * (1 - CLAIM_SLACK) - CLAIM_LEAST, 0);
    size->high = size->high * (1 + CLAIM_SLACK) + CLAIM_LEAST;
}

int fl_codec_measure(struct fl_codec_decoder *d, struct fl_codec_size *ret)
{
    struct fl_codec_size size = {.n = fl__coded_trainable(d),
                                 .n_buffers = fl__coded_count(d) - fl__coded_trainable(d)};
    float block[VALIDATE_BLOCK];
    size_t tensor = 0;
    size_t count;
    bool buffer;
    int rv;

    while (fl__unit_next_run(d->layout, d->unit, &tensor, &count, &buffer)) {
        double *sum = buffer ? &size.buffers_sq : &size.norm_sq;

        while (count > 0) {
            size_t n = count < VALIDATE_BLOCK ? count : VALIDATE_BLOCK;
            size_t i;

            rv = d->ops->read(d, block, n);
            if (rv != FL_OK) {
                return rv;
            }
            /*
             * Entries that the mask leaves out are NaN and add nothing to a norm. Every other NaN
             * was refused.
             */
            for (i = 0; fl_masked_decoder(d) && i < n; i++) {
                block[i] = isnan(block[i]) ? 0 : block[i];
            }
            *sum += fl_vec_dot(block, block, n);
            count -= n;
        }
    }
    rv = d->ops->close(d);
    if (rv != FL_OK) {
        return rv;
    }
    set_bounds(d, &size);
    *ret = size;
    return FL_OK;
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
