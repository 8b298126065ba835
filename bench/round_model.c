#include "bench/round_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/rng.h"

static int add_units(struct fl_layout *layout, size_t parameters)
{
    size_t per_unit = parameters / ROUND_UNITS;
    int rv = FL_OK;
    size_t i;

    for (i = 0; rv == FL_OK && i < ROUND_UNITS; i++) {
        char unit[32];
        char tensor[48];

        (void)snprintf(unit, sizeof(unit), "layer%zu", i);
        (void)snprintf(tensor, sizeof(tensor), "layer%zu.weight", i);
        rv = fl_layout_add(layout, unit, tensor, &per_unit, 1, false, NULL);
    }
    return rv == FL_OK ? fl_layout_finish(layout, NULL) : rv;
}

int round_model_make(size_t parameters, struct fl_layout **ret_layout, float **ret_values)
{
    struct fl_layout *layout = NULL;
    struct fl_rng rng;
    float *values = NULL;
    size_t i;
    int rv = fl_layout_create(&layout);

    rv = rv == FL_OK ? add_units(layout, parameters) : rv;
    if (rv == FL_OK) {
        values = malloc(fl_layout_count(layout) * sizeof(float));
        rv = values != NULL ? FL_OK : FL_ENOMEM;
    }
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    fl_rng_seed(&rng, 1);
    for (i = 0; i < fl_layout_count(layout); i++) {
        values[i] = (float)(fl_rng_unit(&rng) - 0.5) * 1e-3f;
    }
    *ret_layout = layout;
    *ret_values = values;
    return FL_OK;
}

static int encode(const struct fl_layout *layout, const float *values,
                  const struct fl_codec_ops *codec, const struct fl_options *options,
                  struct round_update *update, struct fl_buf *out)
{
    size_t l;

    for (l = 0; l < ROUND_UNITS; l++) {
        int rv =
            codec->encode(options, layout, l, values + fl_layout_unit(layout, l)->offset, 0, out);

        if (rv != FL_OK) {
            return rv;
        }
        update->at[l + 1] = out->len;
    }
    return FL_OK;
}

int round_update_make(const struct fl_layout *layout, const float *values,
                      const struct fl_codec_ops *codec, struct round_update *ret)
{
    struct round_update update = {.codec = (uint32_t)codec->id};
    struct fl_options *options = NULL;
    struct fl_buf out;
    int rv = fl_options_create(codec->policy.options, &options);

    fl_buf_init(&out, SIZE_MAX);
    rv = rv == FL_OK ? encode(layout, values, codec, options, &update, &out) : rv;
    rv = rv == FL_OK ? fl_blob_wrap(out.data, out.len, free, out.data, &update.bytes) : rv;
    fl_options_free(options);
    if (rv != FL_OK) {
        fl_buf_done(&out);
        return rv;
    }
    *ret = update;
    return FL_OK;
}

void round_update_done(struct round_update *update)
{
    fl_blob_unref(update->bytes);
    update->bytes = NULL;
}
