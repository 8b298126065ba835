/*
 * "avgpool SIZE [stride N]": mean of a window; windows are adjacent unless `stride` is given and
 * lie wholly on the image. "globalpool": mean of each channel over the image, a flat output. Both
 * are linear without weights. Runs on the network's thread; kernels: libfl/num/pool_mean.h.
 */
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/pool_mean.h"

static int avgpool_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    struct fl_pool *pool = &layer->is.pool;
    uint64_t size;
    uint64_t stride;
    char word[16];

    if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &size) != FL_OK ||
        size == 0 || size > FL_POOL_SIZE_MAX)
    {
        return fl_err_set(err, FL_ECONF, "SIZE must be an integer from 1 to %d", FL_POOL_SIZE_MAX);
    }
    stride = size;
    while (fl__layer_word(&args, word, sizeof(word))) {
        if (strcmp(word, "stride") != 0) {
            return fl_err_set(err, FL_ECONF, "'%s' is not 'stride'", word);
        }
        if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &stride) != FL_OK ||
            stride == 0 || stride > FL_POOL_SIZE_MAX)
        {
            return fl_err_set(err, FL_ECONF, "the stride must be an integer from 1 to %d",
                              FL_POOL_SIZE_MAX);
        }
    }
    pool->size = (size_t)size;
    pool->stride = (size_t)stride;
    return FL_OK;
}

static int avgpool_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    struct fl_pool *pool = &layer->is.pool;
    int rv = fl__layer_need_image(layer, err);

    (void)next;
    if (rv != FL_OK) {
        return rv;
    }
    pool->c = layer->in.c;
    pool->h = layer->in.h;
    pool->w = layer->in.w;
    if (pool->size > pool->h || pool->size > pool->w) {
        return fl_err_set(err, FL_ECONF,
                          "the window of %zux%zu is larger than the image of %zux%zu pixels",
                          pool->size, pool->size, pool->h, pool->w);
    }
    pool->oh = (pool->h - pool->size) / pool->stride + 1;
    pool->ow = (pool->w - pool->size) / pool->stride + 1;
    layer->out = (struct fl__shape){.c = pool->c, .h = pool->oh, .w = pool->ow};
    return FL_OK;
}

static void avgpool_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io)
{
    fl_pool_mean_forward(&layer->is.pool, io->y, io->ldy, io->x, io->ldx, pass->batch);
}

static void avgpool_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io)
{
    if (io->dx != NULL) {
        fl_pool_mean_backward(&layer->is.pool, io->dx, io->lddx, io->dy, io->ldy, pass->batch);
    }
}

static void avgpool_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                const struct fl__io *io, const struct fl__jvp *along)
{
    fl_pool_mean_forward(&layer->is.pool, along->ry, io->ldy, along->rx, io->ldx, pass->batch);
}

static int globalpool_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    int rv = fl__layer_need_image(layer, err);

    (void)next;
    layer->out = (struct fl__shape){.c = layer->in.c, .h = 1, .w = 1, .flat = true, .pixels = 1};
    return rv;
}

static void globalpool_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io)
{
    fl_pool_all_forward(layer->in.c, layer->in.h * layer->in.w, io->y, io->ldy, io->x, io->ldx,
                        pass->batch);
}

static void globalpool_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                                const struct fl__io *io)
{
    if (io->dx != NULL) {
        fl_pool_all_backward(layer->in.c, layer->in.h * layer->in.w, io->dx, io->lddx, io->dy,
                             io->ldy, pass->batch);
    }
}

static void globalpool_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                   const struct fl__io *io, const struct fl__jvp *along)
{
    fl_pool_all_forward(layer->in.c, layer->in.h * layer->in.w, along->ry, io->ldy, along->rx,
                        io->ldx, pass->batch);
}

static struct fl__needs avgpool_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = false};
}

const struct fl__layer_ops fl__layer_avgpool = {
    .word = "avgpool",
    .usage = "avgpool SIZE [stride N]",
    .parse = avgpool_parse,
    .shape = avgpool_shape,
    .needs = avgpool_needs,
    .forward = avgpool_forward,
    .backward = avgpool_backward,
    .forward_jvp = avgpool_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};

const struct fl__layer_ops fl__layer_globalpool = {
    .word = "globalpool",
    .usage = "globalpool",
    .parse = fl__layer_no_args,
    .shape = globalpool_shape,
    .needs = avgpool_needs,
    .forward = globalpool_forward,
    .backward = globalpool_backward,
    .forward_jvp = globalpool_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
