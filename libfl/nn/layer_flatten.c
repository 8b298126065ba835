#include "libfl/nn/layer.h"

/*
 * Makes one row of numbers from an image. No data is moved: the next dense layer knows the
 * order.
 */

static int flatten_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = layer->in;
    if (!layer->in.flat) {
        layer->out = (struct fl__shape){
            .c = fl__shape_count(&layer->in),
            .h = 1,
            .w = 1,
            .flat = true,
            .pixels = layer->in.raw ? 1 : layer->in.h * layer->in.w,
        };
    }
    layer->skip = true;
    return FL_OK;
}

const struct fl__layer_ops fl__layer_flatten = {
    .word = "flatten",
    .usage = "flatten",
    .parse = fl__layer_no_args,
    .shape = flatten_shape,
};
