/*
 * "conv CHANNELS HxW [pad N] [stride N] [groups N] [nobias]": exported as in PyTorch,
 * weight[out][in / groups][h][w] and bias[out]; internally w in the order of its convolution
 * algorithm, padded to 16 floats, then b (libfl/num/conv.h); that order is private
 * (docs/kernels.md#layouts). Runs on the network's thread; algorithms and kernels are in libfl/num.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

#define CHANNELS_MAX 65536
/* Limits of the side of a kernel, and of the stride. */
#define SIDE_MAX 31

static bool parse_side(const char *text, uint64_t min, size_t *ret)
{
    uint64_t n;

    if (fl_str_to_u64(text, &n) != FL_OK || n < min || n > SIDE_MAX) {
        return false;
    }
    *ret = (size_t)n;
    return true;
}

static bool parse_kernel(char *word, struct fl_conv *conv)
{
    char *x = strchr(word, 'x');

    if (x == NULL) {
        return false;
    }
    *x = '\0';
    return parse_side(word, 1, &conv->kh) && parse_side(x + 1, 1, &conv->kw);
}

/* The option that begins with `word`. */
static int parse_option(struct fl__layer *layer, const char *word, const char **args,
                        struct fl_err *err)
{
    struct fl_conv *conv = &layer->is.conv;
    bool pad = strcmp(word, "pad") == 0;
    uint64_t groups;
    char value[16];

    if (strcmp(word, "nobias") == 0) {
        layer->nobias = true;
        return FL_OK;
    }
    if (strcmp(word, "groups") == 0) {
        if (!fl__layer_word(args, value, sizeof(value)) || fl_str_to_u64(value, &groups) != FL_OK ||
            groups == 0 || groups > CHANNELS_MAX || conv->k % groups != 0)
        {
            return fl_err_set(err, FL_ECONF, "groups must be a divisor of the %zu channels",
                              conv->k);
        }
        conv->groups = (size_t)groups;
        return FL_OK;
    }
    if (!pad && strcmp(word, "stride") != 0) {
        return fl_err_set(err, FL_ECONF, "'%s' is neither 'pad' nor 'stride', 'groups' or 'nobias'",
                          word);
    }
    if (!fl__layer_word(args, value, sizeof(value)) ||
        !parse_side(value, pad ? 0 : 1, pad ? &conv->pad : &conv->stride))
    {
        return fl_err_set(err, FL_ECONF, "%s must be an integer from %d to %d", word, pad ? 0 : 1,
                          SIDE_MAX);
    }
    return FL_OK;
}

static int conv_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    struct fl_conv *conv = &layer->is.conv;
    uint64_t channels;
    char word[16];

    if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &channels) != FL_OK ||
        channels == 0 || channels > CHANNELS_MAX)
    {
        return fl_err_set(err, FL_ECONF, "CHANNELS must be an integer from 1 to %d", CHANNELS_MAX);
    }
    conv->k = (size_t)channels;
    if (!fl__layer_word(&args, word, sizeof(word)) || !parse_kernel(word, conv)) {
        return fl_err_set(err, FL_ECONF,
                          "HxW must be the height and width of the kernel, each from 1 to %d, as "
                          "in '3x3'",
                          SIDE_MAX);
    }
    conv->stride = 1;
    conv->groups = 1;
    while (fl__layer_word(&args, word, sizeof(word))) {
        int rv = parse_option(layer, word, &args, err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    if (conv->pad >= conv->kh || conv->pad >= conv->kw) {
        return fl_err_set(err, FL_ECONF,
                          "pad is %zu, expected less than the kernel's sides, %zux%zu", conv->pad,
                          conv->kh, conv->kw);
    }
    return FL_OK;
}

/* Bias gradients use the scratch too. */
static size_t scratch_of(const struct fl__layer *layer)
{
    const struct fl_conv *conv = &layer->is.conv;
    size_t n = fl_conv_scratch(conv, FL__NET_PIECE_MAX, FL_CONV_FORWARD);
    size_t training =
        layer->max_batch > 0 ? fl_conv_scratch(conv, layer->max_batch, FL_CONV_BACKWARD) : conv->k;

    return n > training ? n : training;
}

static int conv_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    struct fl_conv *conv = &layer->is.conv;
    int rv = fl__layer_need_image(layer, err);

    if (rv != FL_OK) {
        return rv;
    }
    conv->c = layer->in.c;
    conv->h = layer->in.h;
    conv->w = layer->in.w;
    if (conv->kh > conv->h + 2 * conv->pad || conv->kw > conv->w + 2 * conv->pad) {
        return fl_err_set(err, FL_ECONF,
                          "the kernel of %zux%zu is larger than the image of %zux%zu pixels with "
                          "padding %zu",
                          conv->kh, conv->kw, conv->h, conv->w, conv->pad);
    }
    if (conv->c % conv->groups != 0) {
        return fl_err_set(err, FL_ECONF,
                          "groups is %zu, expected a divisor of the input's %zu "
                          "channels",
                          conv->groups, conv->c);
    }
    fl_conv_plan(conv, layer->kernels);
    layer->out = (struct fl__shape){.c = conv->k, .h = conv->oh, .w = conv->ow};
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    layer->normalised = next != NULL && next->ops == &fl__layer_bn;
    layer->n_scratch = scratch_of(layer);
    layer->n_jvp = layer->max_batch > 0 ? fl_conv_scratch(conv, layer->max_batch, FL_CONV_JVP) : 0;
    return FL_OK;
}

static size_t conv_bias_offset(const struct fl__layer *layer)
{
    return layer->offset + fl__layer_padded(fl_conv_weights(&layer->is.conv));
}

static int conv_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                       struct fl_err *err)
{
    const struct fl_conv *conv = &layer->is.conv;
    const size_t dims[4] = {conv->k, conv->c / conv->groups, conv->kh, conv->kw};
    char unit[32];
    char tensor[48];
    int rv;

    layer->tensor = fl_layout_tensors(layout);
    (void)snprintf(unit, sizeof(unit), "conv%zu", index);
    (void)snprintf(tensor, sizeof(tensor), "conv%zu.weight", index);
    rv = fl_layout_add(layout, unit, tensor, dims, 4, false, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!layer->nobias) {
        (void)snprintf(tensor, sizeof(tensor), "conv%zu.bias", index);
        rv = fl_layout_add(layout, unit, tensor, dims, 1, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    layer->macs = (double)fl_conv_weights(conv) * (double)(conv->oh * conv->ow);
    layer->n_block = fl__layer_padded(fl_conv_weights(conv)) + fl__layer_padded(conv->k);
    return FL_OK;
}

static void conv_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    fl_conv_forward(&layer->is.conv, io->y, io->ldy, io->x, io->ldx, pass->params + layer->offset,
                    pass->params + conv_bias_offset(layer), pass->batch, layer->relu,
                    pass->scratch);
}

struct weights_update {
    const struct fl__pass *pass;
    size_t offset; /* of the weights in the network's block */
};

static void conv_update_weights(void *ctx, size_t offset, size_t n, const float *grad)
{
    const struct weights_update *u = ctx;
    size_t at = u->offset + offset;

    u->pass->update(u->pass->ctx, at, n, u->pass->params + at, grad);
}

/*
 * Also masks dy with ReLU. A following batch-norm subtracts the mean and so cancels the bias:
 * its gradient is exactly zero, while the sums would only give rounding errors.
 */
static void conv_update_bias(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io)
{
    const struct fl_conv *conv = &layer->is.conv;
    bool mask = layer->relu && !layer->masked;
    size_t at = conv_bias_offset(layer);

    if (layer->nobias && !mask) {
        return;
    }
    if (layer->normalised) {
        (void)memset(pass->scratch, 0, conv->k * sizeof(float));
    } else {
        fl_conv_backward_bias(conv, pass->scratch, io->dy, io->ldy, mask ? io->y : NULL, io->ldy,
                              pass->batch);
    }
    if (!layer->nobias) {
        pass->update(pass->ctx, at, conv->k, pass->params + at, pass->scratch);
    }
}

static void conv_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    struct weights_update u = {.pass = pass, .offset = layer->offset};

    conv_update_bias(layer, pass, io);
    fl_conv_backward(&layer->is.conv,
                     &(struct fl_conv_backward){.batch = pass->batch,
                                                .dy = io->dy,
                                                .lddy = io->ldy,
                                                .w = pass->params + layer->offset,
                                                .dx = io->dx,
                                                .lddx = io->lddx,
                                                .x = io->x,
                                                .ldx = io->ldx,
                                                .update = conv_update_weights,
                                                .ctx = &u},
                     pass->scratch);
}

/* As in a dense layer: ry = rx * w + x * v + rb where y > 0. */
static void conv_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_conv *conv = &layer->is.conv;
    bool both = along->rx != NULL && along->params != NULL;

    if (along->params != NULL) {
        fl_conv_forward(conv, along->ry, io->ldy, io->x, io->ldx, along->params + layer->offset,
                        along->params + conv_bias_offset(layer), pass->batch, false, pass->scratch);
    }
    if (along->rx != NULL) {
        fl_conv_forward(conv, both ? along->spare : along->ry, io->ldy, along->rx, io->ldx,
                        pass->params + layer->offset, along->zeros, pass->batch, false,
                        pass->scratch);
    }
    if (both) {
        fl__layer_accumulate(along->ry, along->spare, io->ldy, fl__shape_count(&layer->out),
                             pass->batch);
    }
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch,
                         fl__shape_count(&layer->out));
    }
}

/* The gradient of the input alone. */
static void conv_backward_data(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io, const float *dy, const float *params,
                               float *dx)
{
    fl_conv_backward(&layer->is.conv,
                     &(struct fl_conv_backward){.batch = pass->batch,
                                                .dy = dy,
                                                .lddy = io->ldy,
                                                .w = params + layer->offset,
                                                .dx = dx,
                                                .lddx = io->lddx},
                     pass->scratch);
}

static void conv_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along)
{
    struct weights_update u = {.pass = pass, .offset = layer->offset};

    conv_update_bias(layer, pass, io);
    if (layer->relu && !layer->masked) {
        fl_relu_backward(layer->kernels, along->sy, io->ldy, io->y, io->ldy, pass->batch,
                         fl__shape_count(&layer->out));
    }
    if (io->dx != NULL) {
        conv_backward_data(layer, pass, io, io->dy, pass->params, io->dx);
        conv_backward_data(layer, pass, io, along->sy, pass->params, along->sx);
    }
    if (io->dx != NULL && along->params != NULL) {
        conv_backward_data(layer, pass, io, along->sy, along->params, along->spare);
        fl__layer_accumulate(io->dx, along->spare, io->lddx, fl__shape_count(&layer->in),
                             pass->batch);
    }
    fl_conv_backward(&layer->is.conv,
                     &(struct fl_conv_backward){.batch = pass->batch,
                                                .dy = io->dy,
                                                .lddy = io->ldy,
                                                .w = pass->params + layer->offset,
                                                .x = io->x,
                                                .ldx = io->ldx,
                                                .rx = along->rx,
                                                .sy = along->sy,
                                                .update = conv_update_weights,
                                                .ctx = &u},
                     pass->scratch);
}

static void conv_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    const struct fl_conv *conv = &layer->is.conv;
    double bound = 1.0 / sqrt((double)(conv->kh * conv->kw * (conv->c / conv->groups)));
    size_t i;

    for (i = 0; i < fl_conv_weights(conv); i++) {
        fl__layer_draw(rng, bound, internal + layer->offset + fl_conv_place(conv, i), 1, 1);
    }
    if (!layer->nobias) {
        fl__layer_draw(rng, bound, internal + conv_bias_offset(layer), conv->k, 1);
    }
}

static void conv_import(const struct fl__layer *layer, const struct fl_layout *layout,
                        float *internal, const float *exported)
{
    const struct fl_conv *conv = &layer->is.conv;
    const float *from = exported + fl__layer_tensor(layer, layout, 0);
    float *to = internal + layer->offset;
    size_t i;

    for (i = 0; i < fl_conv_weights(conv); i++) {
        to[fl_conv_place(conv, i)] = from[i];
    }
    if (!layer->nobias) {
        (void)memcpy(internal + conv_bias_offset(layer),
                     exported + fl__layer_tensor(layer, layout, 1), conv->k * sizeof(*to));
    }
}

static void conv_export(const struct fl__layer *layer, const struct fl_layout *layout,
                        float *exported, const float *internal)
{
    const struct fl_conv *conv = &layer->is.conv;
    const float *from = internal + layer->offset;
    float *to = exported + fl__layer_tensor(layer, layout, 0);
    size_t i;

    for (i = 0; i < fl_conv_weights(conv); i++) {
        to[i] = from[fl_conv_place(conv, i)];
    }
    if (!layer->nobias) {
        (void)memcpy(exported + fl__layer_tensor(layer, layout, 1),
                     internal + conv_bias_offset(layer), conv->k * sizeof(*to));
    }
}

static struct fl__needs conv_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.x = true, .y = layer->relu && !layer->masked};
}

const struct fl__layer_ops fl__layer_conv = {
    .word = "conv",
    .usage = "conv CHANNELS HxW [pad N] [stride N] [groups N] [nobias]",
    .parse = conv_parse,
    .shape = conv_shape,
    .params = conv_params,
    .needs = conv_needs,
    .forward = conv_forward,
    .backward = conv_backward,
    .forward_jvp = conv_forward_jvp,
    .backward_jvp = conv_backward_jvp,
    .init = conv_init,
    .import = conv_import,
    .export = conv_export,
};
