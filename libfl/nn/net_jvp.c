/*
 * JVP passes: directional derivatives and their gradients (R-operator; Pearlmutter 1994, "Fast
 * exact multiplication by the Hessian"). Tangents are computed forward together with the values,
 * then the adjoints of both backward. With z' = f(z), R z' = f'(z) R z the objective is a function
 * of the two, and its reverse pass has two streams: s, the adjoint of the tangent, is propagated
 * like an ordinary gradient; d, the adjoint of the value, also gets the dependence of the tangent
 * on the value.
 *
 *     y = x W + b        R y = (R x) W + x V + v       d_x = d_y W^T + s_y V^T    s_x = s_y W^T
 *                                                      d_W = x^T d_y + (R x)^T s_y
 */
#include <string.h>

#include "libfl/nn/loss.h"
#include "libfl/nn/network_impl.h"

static void net_jvp_plan(struct fl_net *net, struct fl__arena *arena)
{
    struct fl__tangents *t = &net->along;
    float *batch = fl__arena_take(arena, net->n_batch);
    uint64_t widest = fl__net_widest(net);
    uint64_t scratch = 16;
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];

        scratch = layer->n_scratch > scratch ? layer->n_scratch : scratch;
        scratch = layer->n_jvp > scratch ? layer->n_jvp : scratch;
        if (!layer->skip) {
            layer->ry = batch != NULL ? batch + layer->at_y : NULL;
            layer->sy = batch != NULL && layer->graded ? batch + layer->at_dy : NULL;
            layer->rspare = batch != NULL && layer->add_dx ? batch + layer->at_spare : NULL;
            layer->rstate = fl__arena_take(arena, layer->n_state);
        }
    }
    t->image = batch != NULL && net->image_first ? batch + net->at_image : NULL;
    t->spare = fl__arena_take(arena, net->max_batch * widest);
    t->zeros = fl__arena_take(arena, widest);
    t->scratch = fl__arena_take(arena, scratch);
}

int fl_net_take_tangents(struct fl_net *net, struct fl_err *err)
{
    struct fl__arena arena = {0};
    uint64_t all;
    size_t i;

    FL_REQUIRE(net->max_batch > 0);
    if (net->along.memory != NULL) {
        return FL_OK;
    }
    for (i = 0; i < net->n_layers; i++) {
        const struct fl__layer_ops *ops = net->layers[i].ops;

        if (ops->forward != NULL && ops->forward_jvp == NULL) {
            return fl_err_set(
                err, FL_ECONF,
                "layer %zu '%s' has no second derivatives, which this algorithm needs", i + 1,
                ops->word);
        }
    }
    net_jvp_plan(net, &arena);
    all = arena.used + net->n_before + net->n_activations;
    if (all > FL__NET_MAX_FLOATS) {
        return fl_err_set(err, FL_ECONF,
                          "the network needs more than 2 GiB for second derivatives with batches "
                          "of %zu",
                          net->max_batch);
    }
    net->along.memory = fl__net_floats(arena.used);
    if (net->along.memory == NULL) {
        return fl_err_set(err, FL_ENOMEM, "the network needs %llu MB for second derivatives",
                          (unsigned long long)(arena.used * sizeof(float) >> 20));
    }
    net->along.n = (size_t)arena.used;
    arena = (struct fl__arena){.base = net->along.memory};
    net_jvp_plan(net, &arena);
    (void)memset(net->along.memory, 0, net->along.n * sizeof(float));
    return FL_OK;
}

/* Compute the tangent of layer i: rviews[i + 1] from rviews[i]. */
static void net_jvp_tangent(const struct fl_net *net, const struct fl__pass *pass, size_t i,
                            const float *direction, const struct fl__view *views,
                            struct fl__view *rviews)
{
    const struct fl__layer *layer = &net->layers[i];
    const struct fl__io io = {.x = views[layer->from].data,
                              .ldx = views[layer->from].ld,
                              .y = layer->y,
                              .ldy = layer->ldy,
                              .index = layer->index,
                              .ldx2 = views[layer->also].ld};
    const struct fl__jvp along = {.params = direction,
                                  .rx = rviews[layer->from].data,
                                  .rx2 = layer->joins ? rviews[layer->also].data : NULL,
                                  .ry = layer->ry,
                                  .spare = net->along.spare,
                                  .zeros = net->along.zeros};
    bool moves =
        along.rx != NULL || along.rx2 != NULL || (along.params != NULL && layer->n_block > 0);

    rviews[i + 1] = layer->skip ? rviews[layer->from] : (struct fl__view){NULL, layer->ldy};
    if (!layer->skip && moves) {
        layer->ops->forward_jvp(layer, pass, &io, &along);
        fl__net_clear_padding(layer->ry, layer->ldy, fl__shape_count(&layer->out), pass->batch);
        fl__net_mark(net, FL_NET_FORWARD, i);
        rviews[i + 1].data = layer->ry;
    }
}

/*
 * Compute value and tangent of a layer before the next one, so that memory used only by its own
 * passes can be reused.
 */
static void forward_jvp(const struct fl_net *net, const struct fl__pass *pass, const float *x,
                        const struct fl_net_direction *direction, struct fl__view *views,
                        struct fl__view *rviews)
{
    size_t i;

    views[0] = fl__net_input(net, net->image, x, pass->batch);
    rviews[0] = (struct fl__view){NULL, views[0].ld};
    if (direction->x != NULL) {
        rviews[0] = fl__net_input(net, net->along.image, direction->x, pass->batch);
    }
    for (i = 0; i < net->n_layers; i++) {
        fl__net_forward(net, pass, i, views);
        net_jvp_tangent(net, pass, i, direction->params, views, rviews);
    }
}

static void backward_jvp(struct fl_net *net, const struct fl__pass *pass, const float *direction,
                         const struct fl__view *views, const struct fl__view *rviews)
{
    size_t i;

    for (i = net->n_layers; i > net->first; i--) {
        const struct fl__layer *layer = &net->layers[i - 1];
        const struct fl__layer *below = fl__net_graded(net, layer->from);
        const struct fl__layer *below2 = layer->joins ? fl__net_graded(net, layer->also) : NULL;
        const struct fl__io io = fl__net_backward_io(net, i - 1, views);
        struct fl__jvp along = {.params = direction,
                                .rx = rviews[layer->from].data,
                                .ry = layer->ry,
                                .sy = layer->sy,
                                .sx2 = below2 != NULL ? below2->sy : NULL,
                                .spare = net->along.spare,
                                .zeros = net->along.zeros};

        if (layer->skip || !layer->graded) {
            continue;
        }
        if (below != NULL) {
            along.sx = layer->add_dx ? layer->rspare : below->sy;
        }
        net->watch.layer = i - 1;
        layer->ops->backward_jvp(layer, pass, &io, &along);
        if (below != NULL) {
            fl__net_finish_dx(layer, &io, io.dx, below->dy, pass->batch);
            fl__net_finish_dx(layer, &io, along.sx, below->sy, pass->batch);
        }
        if (below2 != NULL) {
            fl__net_clear_padding(io.dx2, io.lddx2, io.lddx2, pass->batch);
            fl__net_clear_padding(along.sx2, io.lddx2, io.lddx2, pass->batch);
        }
        fl__net_mark(net, FL_NET_BACKWARD, i - 1);
    }
}

double fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                       const struct fl_net_direction *direction, fl_net_update_cb update, void *ctx,
                       double *ret_slope)
{
    struct fl__pass pass = fl__net_begin(net, how, update, ctx);
    struct fl__view views[FL_NET_MAX_LAYERS + 1];
    struct fl__view rviews[FL_NET_MAX_LAYERS + 1];
    const struct fl__layer *top = &net->layers[net->n_layers - 1];
    double batch = (double)how->batch;
    struct fl__ce_jvp jvp = {.ce = {.y = how->y,
                                    .target = how->target,
                                    .batch = how->batch,
                                    .classes = net->classes,
                                    .scale = (float)(direction->loss / batch)},
                             .slope = (float)(direction->slope / batch)};
    double loss;

    FL_REQUIRE(net->along.memory != NULL && (direction->x != NULL || direction->params != NULL));
    pass.scratch = net->along.scratch;
    forward_jvp(net, &pass, how->x, direction, views, rviews);
    jvp.ce.z = views[net->n_layers].data;
    jvp.ce.ld = views[net->n_layers].ld;
    jvp.rz = rviews[net->n_layers].data;
    if (net->loss != FL__LOSS_CE) {
        struct fl__value_loss values =
            fl__net_values(net, &views[net->n_layers], how->y, how->batch);

        FL_REQUIRE(how->target == NULL);
        values.scale = jvp.ce.scale;
        values.rz = jvp.rz;
        values.slope = jvp.slope;
        loss = fl__loss_of_values(&values, top->dy, top->sy, ret_slope, NULL);
    } else {
        loss = fl__softmax_ce_jvp(net->layers[0].kernels, &jvp, top->dy, top->sy, ret_slope);
    }
    fl__net_clear_padding(top->dy, top->ldy, top->ldy, how->batch);
    fl__net_clear_padding(top->sy, top->ldy, top->ldy, how->batch);
    fl__net_mark(net, FL_NET_LOSS, 0);
    backward_jvp(net, &pass, direction->params, views, rviews);
    *ret_slope /= batch;
    return loss / batch;
}
