#include "libfl/nn/layer.h"

/* An image as one row of numbers. Nothing moves: the dense layer above knows the order. */

static int flatten_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    (void)layer;
    return args[0] == '\0' ? FL_OK : fl_err_set(err, FL_ECONF, "takes no argument");
}

static int flatten_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = (struct fl__shape){
        .c = fl__shape_count(&layer->in),
        .h = 1,
        .w = 1,
        .flat = true,
    };
    layer->skip = true;
    return FL_OK;
}

const struct fl__layer_ops fl__layer_flatten = {
    .word = "flatten",
    .usage = "flatten",
    .parse = flatten_parse,
    .shape = flatten_shape,
};
