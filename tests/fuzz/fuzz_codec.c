/* Any bytes as a coded unit of any codec: refused, or decoded to exactly the unit's end with
   finite values. The first byte is the codec's number, the rest the coded unit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLOATS 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t weight = 9;
    size_t mean = FLOATS - weight;
    const struct fl_codec_ops *ops = size > 0 ? fl_codec_by_id(data[0]) : NULL;
    struct fl_layout *layout = NULL;
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
    struct fl_codec_decoder d;
    struct fl_codec_size got;
    uint8_t *copy;

    if (ops == NULL) {
        return 0;
    }
    /* A copy of exactly that length, so that the sanitizer sees every read past it. */
    copy = malloc(size > 1 ? size - 1 : 1);
    if (copy == NULL || fl_layout_create(&layout) != FL_OK ||
        fl_layout_add(layout, "u", "u.weight", &weight, 1, false, NULL) != FL_OK ||
        fl_layout_add(layout, "u", "u.running_mean", &mean, 1, true, NULL) != FL_OK ||
        fl_layout_finish(layout, NULL) != FL_OK)
    {
        abort();
    }
    (void)memcpy(copy, data + 1, size - 1);
    memory.data = copy;
    memory.len = size - 1;
    reader = fl_codec_memory_reader(&memory);
    if (fl_codec_open(&d, ops, layout, 0, &reader) == FL_OK &&
        fl_codec_measure(&d, &got) == FL_OK && (!isfinite(got.norm_sq) || got.norm_sq < 0))
    {
        abort();
    }
    fl_layout_free(layout);
    free(copy);
    return 0;
}
