#include <string.h>

#include "libfl/nn/layer.h"

/*
 * "maxpool SIZE [stride N] [same]". Without `stride` windows are adjacent; without `same` they are
 * completely inside the image and the remainder at the far edges is dropped. With `same` the output
 * has ceil(side / stride) pixels and the padding is split between both edges, the odd pixel at the
 * far edge (TensorFlow's rule, as in McMahan's network).
 */

static int maxpool_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
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
        if (strcmp(word, "same") == 0) {
            /* 1 marks that there is padding; its size depends on the input. */
            pool->top = 1;
        } else if (strcmp(word, "stride") != 0) {
            return fl_err_set(err, FL_ECONF, "'%s' is neither 'stride' nor 'same'", word);
        } else if (!fl__layer_word(&args, word, sizeof(word)) ||
                   fl_str_to_u64(word, &stride) != FL_OK || stride == 0 ||
                   stride > FL_POOL_SIZE_MAX)
        {
            return fl_err_set(err, FL_ECONF, "the stride must be an integer from 1 to %d",
                              FL_POOL_SIZE_MAX);
        }
    }
    pool->size = (size_t)size;
    pool->stride = (size_t)stride;
    return FL_OK;
}

/* Number of output pixels along one side, and the padding before the image. */
static size_t same_side(const struct fl_pool *pool, size_t side, size_t *ret_before)
{
    size_t n = (side + pool->stride - 1) / pool->stride;
    size_t reach = (n - 1) * pool->stride + pool->size;

    *ret_before = reach > side ? (reach - side) / 2 : 0;
    return n;
}

static int maxpool_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
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
    if (pool->top != 0) {
        pool->oh = same_side(pool, pool->h, &pool->top);
        pool->ow = same_side(pool, pool->w, &pool->left);
    } else if (pool->size > pool->h || pool->size > pool->w) {
        return fl_err_set(err, FL_ECONF,
                          "the window of %zux%zu is larger than the image of %zux%zu pixels",
                          pool->size, pool->size, pool->h, pool->w);
    } else {
        pool->oh = (pool->h - pool->size) / pool->stride + 1;
        pool->ow = (pool->w - pool->size) / pool->stride + 1;
    }
    layer->out = (struct fl__shape){.c = pool->c, .h = pool->oh, .w = pool->ow};
    layer->n_index = fl__shape_count(&layer->out);
    return FL_OK;
}

static void maxpool_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io)
{
    fl_pool_forward(layer->kernels, &layer->is.pool, io->y, io->ldy, io->index, io->x, io->ldx,
                    pass->batch);
}

static void maxpool_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io)
{
    if (io->dx != NULL) {
        fl_pool_backward(layer->kernels, &layer->is.pool, io->dx, io->lddx, io->dy, io->ldy,
                         io->index, layer->relu ? io->y : NULL, io->ldy, pass->batch);
    }
}

static void maxpool_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                const struct fl__io *io, const struct fl__jvp *along)
{
    fl_pool_take(&layer->is.pool, along->ry, io->ldy, io->index, along->rx, io->ldx, pass->batch);
}

static struct fl__needs maxpool_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.y = layer->relu};
}

const struct fl__layer_ops fl__layer_maxpool = {
    .word = "maxpool",
    .usage = "maxpool SIZE [stride N] [same]",
    .parse = maxpool_parse,
    .shape = maxpool_shape,
    .needs = maxpool_needs,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
    .forward_jvp = maxpool_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
