/* The outline of a network (outline.h), from its parsed layers. Pure. */
#include <stdlib.h>
#include <string.h>

#include "libfl/nn/network_impl.h"
#include "libfl/nn/outline.h"

static struct fl_net_shape outline_shape(const struct fl__shape *s)
{
    return (struct fl_net_shape){.c = s->c, .h = s->h, .w = s->w, .flat = s->flat};
}

/* Padding of a pool behind the image: what the last window reaches over its edge. */
static size_t outline_behind(size_t side, size_t n, size_t size, size_t stride, size_t before)
{
    size_t reach = (n - 1) * stride + size;

    return reach > side + before ? reach - side - before : 0;
}

static void outline_pool(const struct fl_pool *pool, struct fl_net_op *op)
{
    op->kh = op->kw = pool->size;
    op->stride = pool->stride;
    op->top = pool->top;
    op->left = pool->left;
    op->bottom = outline_behind(pool->h, pool->oh, pool->size, pool->stride, pool->top);
    op->right = outline_behind(pool->w, pool->ow, pool->size, pool->stride, pool->left);
}

static void outline_op(const struct fl__layer *layer, struct fl_net_op *op)
{
    const struct fl_conv *conv = &layer->is.conv;

    op->word = layer->ops->word;
    op->in = outline_shape(&layer->in);
    op->out = outline_shape(&layer->out);
    op->tensor = layer->ops->params != NULL ? layer->tensor : 0;
    if (layer->ops == &fl__layer_conv) {
        op->kh = conv->kh;
        op->kw = conv->kw;
        op->stride = conv->stride;
        op->top = op->left = op->bottom = op->right = conv->pad;
        op->groups = conv->groups;
        op->bias = !layer->nobias;
    } else if (layer->ops == &fl__layer_maxpool || layer->ops == &fl__layer_avgpool) {
        outline_pool(&layer->is.pool, op);
    } else if (layer->ops == &fl__layer_gn) {
        op->groups = layer->is.gn.groups;
    } else if (layer->ops == &fl__layer_attention) {
        op->heads = layer->is.attention.heads;
        op->causal = layer->is.attention.causal;
    }
}

/* The views that each layer reads, before those that compute nothing are passed over. */
static int outline_views(const struct fl_net_spec *spec, struct fl_net_outline *outline,
                         struct fl_net **ret, struct fl_err *err)
{
    struct fl_net *net = NULL;
    size_t bad = 0;
    size_t i;
    int rv = fl__net_describe(spec, &net, err);

    if (rv != FL_OK) {
        return rv;
    }
    outline->ops = calloc(net->n_layers, sizeof(*outline->ops));
    outline->n_ops = net->n_layers;
    if (outline->ops == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto fail;
    }
    rv = fl__net_branch(net, &bad, err); /* It was linked, which passed over views. */
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < net->n_layers; i++) {
        outline->ops[i].from = net->layers[i].from;
        outline->ops[i].also = net->layers[i].joins ? net->layers[i].also : 0;
    }
    *ret = net;
    return FL_OK;
fail:
    fl_net_free(net);
    return rv;
}

int fl_net_outline_create(const struct fl_net_spec *spec, struct fl_net_outline **ret,
                          struct fl_err *err)
{
    struct fl_net_outline *outline = calloc(1, sizeof(*outline));
    struct fl_net *net = NULL;
    size_t i;
    int rv;

    if (outline == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    rv = outline_views(spec, outline, &net, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < outline->n_ops; i++) {
        outline_op(&net->layers[i], &outline->ops[i]);
    }
    outline->input = outline_shape(&net->input);
    outline->values = fl_net_values(net);
    outline->layout = net->layout;
    net->layout = NULL;
    fl_net_free(net);
    *ret = outline;
    return FL_OK;
fail:
    fl_net_outline_free(outline);
    return rv;
}

void fl_net_outline_free(struct fl_net_outline *outline)
{
    if (outline != NULL) {
        free(outline->ops);
        fl_layout_free(outline->layout);
        free(outline);
    }
}
