/*
 * Training steps, evaluation, and gradients of a network (net.h): runs the forward and backward
 * passes of its layers. Runs on the network's thread without allocation, I/O or clock. Creation
 * is in net_create.c, memory in net_memory.c, directional derivatives in net_jvp.c.
 */
#include "libfl/nn/net.h"

#include <string.h>

#include "libfl/nn/loss.h"
#include "libfl/nn/network_impl.h"

const struct fl_layout *fl_net_layout(const struct fl_net *net)
{
    return net->layout;
}

size_t fl_net_inputs(const struct fl_net *net)
{
    return net->inputs;
}

size_t fl_net_values(const struct fl_net *net)
{
    return net->loss != FL__LOSS_CE ? net->classes : 0;
}

bool fl_net_takes_indices(const struct fl_net *net)
{
    return net->layers[0].ops == &fl__layer_embedding;
}

void fl_net_set_targets(struct fl_net *net, const float *table)
{
    net->targets = table;
}

size_t fl_net_classes(const struct fl_net *net)
{
    return net->classes;
}

double fl_net_layer_flops(const struct fl_net *net, size_t layer)
{
    return 2.0 * net->layers[layer].macs;
}

size_t fl_net_first(const struct fl_net *net)
{
    return net->first;
}

void fl_net_watch(struct fl_net *net, fl_net_watch_cb watch, void *ctx)
{
    net->watch.call = watch;
    net->watch.ctx = ctx;
}

size_t fl_net_block(const struct fl_net *net)
{
    return net->n_block;
}

struct fl_net_memory fl_net_memory(const struct fl_net *net)
{
    struct fl_net_memory m = {.parameters = net->n_block * sizeof(float)};

    m.scratch = net->n_before * sizeof(float) - m.parameters;
    m.training = net->n_activations * sizeof(float);
    m.evaluation = net->n_evaluation * sizeof(float);
    m.tangents = net->along.n * sizeof(float);
    m.all = m.parameters + m.scratch + m.tangents +
            (m.training > m.evaluation ? m.training : m.evaluation);
    return m;
}

float *fl_net_params(struct fl_net *net)
{
    return net->params;
}

void fl_net_import(const struct fl_net *net, float *internal, const float *exported)
{
    size_t i;

    (void)memset(internal, 0, net->n_block * sizeof(*internal));
    for (i = 0; i < net->n_layers; i++) {
        if (net->layers[i].ops->import != NULL) {
            net->layers[i].ops->import(&net->layers[i], net->layout, internal, exported);
        }
    }
}

void fl_net_export(const struct fl_net *net, float *exported, const float *internal)
{
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        if (net->layers[i].ops->export != NULL) {
            net->layers[i].ops->export(&net->layers[i], net->layout, exported, internal);
        }
    }
}

void fl_net_set(struct fl_net *net, const float *exported)
{
    fl_net_import(net, net->params, exported);
}

void fl_net_get(const struct fl_net *net, float *exported)
{
    fl_net_export(net, exported, net->params);
}

size_t fl_net_max_batch(const struct fl_net *net)
{
    return net->max_batch;
}

void fl_net_seed(struct fl_net *net, uint64_t seed)
{
    fl_rng_seed(&net->rng, seed);
}

void fl_net_init(struct fl_net *net, struct fl_rng *rng)
{
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        if (net->layers[i].ops->init != NULL) {
            net->layers[i].ops->init(&net->layers[i], rng, net->params);
        }
    }
}

int fl_net_draw(const struct fl_net_spec *spec, uint64_t seed, float *exported, size_t n,
                struct fl_err *err)
{
    struct fl_net *net = NULL;
    struct fl_rng rng;
    int rv = fl_net_create(spec, 1, &net, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_layout_count(net->layout) != n) {
        rv = fl_err_set(err, FL_ESHAPE, "the network has %zu parameters, expected %zu",
                        fl_layout_count(net->layout), n);
        goto done;
    }
    fl_rng_key(&rng, seed, FL_RNG_INIT, 0, 0);
    fl_net_init(net, &rng);
    fl_net_get(net, exported);
done:
    fl_net_free(net);
    return rv;
}

void fl__net_clear_padding(float *y, size_t ld, size_t n, size_t batch)
{
    size_t b;

    for (b = 0; b < batch && n < ld; b++) {
        (void)memset(y + b * ld + n, 0, (ld - n) * sizeof(*y));
    }
    (void)memset(y + batch * ld, 0, FL_DENSE_SLACK * sizeof(*y));
}

struct fl__view fl__net_input(const struct fl_net *net, float *image, const float *x, size_t batch)
{
    if (image == NULL) {
        return (struct fl__view){x, net->inputs};
    }
    fl_planes_to_pixels(image, net->ld_image, x, net->inputs, batch, net->input.c,
                        net->input.h * net->input.w);
    fl__net_clear_padding(image, net->ld_image, net->inputs, batch);
    return (struct fl__view){image, net->ld_image};
}

/* Forward pass of layer i from x to y. The loss reads no padding of the logits. */
static void forward_layer(const struct fl_net *net, const struct fl__pass *pass, size_t i,
                          const struct fl__io *io)
{
    const struct fl__layer *layer = &net->layers[i];

    layer->ops->forward(layer, pass, io);
    if (i + 1 < net->n_layers) {
        fl__net_clear_padding(io->y, io->ldy, fl__shape_count(&layer->out), pass->batch);
    }
}

void fl__net_forward(const struct fl_net *net, const struct fl__pass *pass, size_t i,
                     struct fl__view *views)
{
    const struct fl__layer *layer = &net->layers[i];
    const struct fl__io io = {.x = views[layer->from].data,
                              .ldx = views[layer->from].ld,
                              .y = layer->y,
                              .ldy = layer->ldy,
                              .index = layer->index,
                              .x2 = views[layer->also].data,
                              .ldx2 = views[layer->also].ld};

    views[i + 1] = views[layer->from];
    if (!layer->skip) {
        forward_layer(net, pass, i, &io);
        fl__net_mark(net, FL_NET_FORWARD, i);
        views[i + 1] = (struct fl__view){layer->y, layer->ldy};
    }
}

/* Forward pass of all layers without keeping results for backward; returns the logits. */
static struct fl__view forward_only(const struct fl_net *net, const struct fl__pass *pass,
                                    const float *x)
{
    struct fl__view views[FL_NET_MAX_LAYERS + 1];
    size_t i;

    views[0] = fl__net_input(net, net->image_first ? net->turn[0] : NULL, x, pass->batch);
    for (i = 0; i < net->n_layers; i++) {
        const struct fl__layer *layer = &net->layers[i];
        const struct fl__io io = {.x = views[layer->from].data,
                                  .ldx = views[layer->from].ld,
                                  .y = net->turn[layer->turn],
                                  .ldy = layer->ldy,
                                  .index = net->index,
                                  .x2 = views[layer->also].data,
                                  .ldx2 = views[layer->also].ld};

        views[i + 1] = views[layer->from];
        if (!layer->skip && !layer->ops->training_only) {
            forward_layer(net, pass, i, &io);
            views[i + 1] = (struct fl__view){io.y, layer->ldy};
        }
    }
    return views[net->n_layers];
}

const struct fl__layer *fl__net_graded(const struct fl_net *net, size_t view)
{
    return view > 0 && net->layers[view - 1].graded ? &net->layers[view - 1] : NULL;
}

struct fl__io fl__net_backward_io(const struct fl_net *net, size_t i, const struct fl__view *views)
{
    const struct fl__layer *layer = &net->layers[i];
    const struct fl__layer *below = fl__net_graded(net, layer->from);
    const struct fl__layer *below2 = layer->joins ? fl__net_graded(net, layer->also) : NULL;
    struct fl__io io = {.x = views[layer->from].data,
                        .ldx = views[layer->from].ld,
                        .y = layer->y,
                        .ldy = layer->ldy,
                        .dy = layer->dy,
                        .index = layer->index,
                        .add_dx2 = layer->add_dx2};

    if (below != NULL) {
        io.dx = layer->add_dx ? layer->spare : below->dy;
        io.lddx = io.ldx;
    }
    if (below2 != NULL) {
        io.dx2 = below2->dy;
        io.lddx2 = below2->ldy;
    }
    return io;
}

void fl__net_finish_dx(const struct fl__layer *layer, const struct fl__io *io, float *dx, float *dy,
                       size_t batch)
{
    if (layer->add_dx) {
        fl__layer_accumulate(dy, dx, io->lddx, fl__shape_count(&layer->in), batch);
    }
    fl__net_clear_padding(dy, io->lddx, io->lddx, batch);
}

static void net_backward(struct fl_net *net, const struct fl__pass *pass,
                         const struct fl__view *views)
{
    size_t i;

    for (i = net->n_layers; i > net->first; i--) {
        const struct fl__layer *layer = &net->layers[i - 1];
        const struct fl__io io = fl__net_backward_io(net, i - 1, views);

        if (layer->skip || !layer->graded) {
            continue;
        }
        net->watch.layer = i - 1;
        layer->ops->backward(layer, pass, &io);
        if (io.dx != NULL) {
            fl__net_finish_dx(layer, &io, io.dx, fl__net_graded(net, layer->from)->dy, pass->batch);
        }
        if (io.dx2 != NULL) {
            fl__net_clear_padding(io.dx2, io.lddx2, io.lddx2, pass->batch);
        }
        fl__net_mark(net, FL_NET_BACKWARD, i - 1);
    }
}

/* Call the update hook with marks for measuring around it. */
static void net_measured_update(void *ctx, size_t offset, size_t n, float *params,
                                const float *grad)
{
    const struct fl_net *net = ctx;

    fl__net_mark(net, FL_NET_BACKWARD, net->watch.layer);
    net->watch.update(net->watch.update_ctx, offset, n, params, grad);
    fl__net_mark(net, FL_NET_UPDATE, net->watch.layer);
}

struct fl__pass fl__net_begin(struct fl_net *net, const struct fl_net_pass *how,
                              fl_net_update_cb update, void *ctx)
{
    FL_REQUIRE(how->batch >= 1 && how->batch <= net->max_batch);
    fl__net_mark(net, FL_NET_EXTERNAL, 0);
    if (net->watch.call != NULL) {
        net->watch.update = update;
        net->watch.update_ctx = ctx;
        update = net_measured_update;
        ctx = net;
    }
    return (struct fl__pass){.batch = how->batch,
                             .params = net->params,
                             .training = true,
                             .track = how->track,
                             .rng = &net->rng,
                             .update = update,
                             .ctx = ctx,
                             .scratch = net->scratch};
}

struct fl__value_loss fl__net_values(const struct fl_net *net, const struct fl__view *outputs,
                                     const int32_t *y, size_t batch)
{
    return (struct fl__value_loss){.loss = net->loss,
                                   .z = outputs->data,
                                   .ld = outputs->ld,
                                   .table = net->targets,
                                   .y = y,
                                   .batch = batch,
                                   .width = net->classes};
}

/* The sum of the losses of a training batch, and `share` times the gradient. */
static double net_loss(const struct fl_net *net, const struct fl__view *logits,
                       const struct fl_net_pass *how, float share, float *dz)
{
    struct fl__value_loss values;

    if (net->loss != FL__LOSS_CE) {
        FL_REQUIRE(how->target == NULL);
        values = fl__net_values(net, logits, how->y, how->batch);
        values.scale = share;
        return fl__loss_of_values(&values, dz, NULL, NULL, NULL);
    }
    return fl__softmax_ce(net->layers[0].kernels,
                          &(struct fl__ce){.z = logits->data,
                                           .ld = logits->ld,
                                           .y = how->y,
                                           .target = how->target,
                                           .batch = how->batch,
                                           .classes = net->classes,
                                           .scale = share},
                          dz, NULL);
}

double fl_net_pass(struct fl_net *net, const struct fl_net_pass *how, fl_net_update_cb update,
                   void *ctx)
{
    const struct fl__pass pass = fl__net_begin(net, how, update, ctx);
    struct fl__view views[FL_NET_MAX_LAYERS + 1];
    const struct fl__view *logits = &views[net->n_layers];
    float *dz = net->layers[net->n_layers - 1].dy;
    float share = 1.0f / (float)how->batch;
    double loss;
    size_t i;

    views[0] = fl__net_input(net, net->image, how->x, how->batch);
    for (i = 0; i < net->n_layers; i++) {
        fl__net_forward(net, &pass, i, views);
    }
    loss = net_loss(net, logits, how, share, dz);
    fl__net_clear_padding(dz, logits->ld, logits->ld, how->batch);
    fl__net_mark(net, FL_NET_LOSS, 0);
    net_backward(net, &pass, views);
    return loss / (double)how->batch;
}

double fl_net_step(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                   fl_net_update_cb update, void *ctx)
{
    const struct fl_net_pass how = {.x = x, .y = y, .batch = batch, .track = true};

    return fl_net_pass(net, &how, update, ctx);
}

size_t fl_net_piece(const struct fl_net *net)
{
    return net->piece;
}

struct fl_net_found fl_net_evaluate_logits(struct fl_net *net, const float *x, const int32_t *y,
                                           size_t n, fl_net_logits_cb watch, void *ctx)
{
    struct fl__pass pass = {.params = net->params, .scratch = net->scratch};
    struct fl_net_found found = {.correct = 0};
    size_t at;

    for (at = 0; at < n; at += pass.batch) {
        struct fl__view logits;
        size_t correct = 0;

        pass.batch = n - at < net->piece ? n - at : net->piece;
        logits = forward_only(net, &pass, x + at * net->inputs);
        if (net->loss != FL__LOSS_CE) {
            const struct fl__value_loss values = fl__net_values(net, &logits, y + at, pass.batch);

            found.loss_sum += fl__loss_of_values(&values, NULL, NULL, NULL, &correct);
        } else {
            found.loss_sum += fl__softmax_ce(net->layers[0].kernels,
                                             &(struct fl__ce){.z = logits.data,
                                                              .ld = logits.ld,
                                                              .y = y + at,
                                                              .batch = pass.batch,
                                                              .classes = net->classes},
                                             /* dz= */ NULL, &correct);
        }
        found.correct += correct;
        if (watch != NULL) {
            watch(ctx, logits.data, logits.ld, y + at, pass.batch);
        }
    }
    return found;
}

void fl_net_evaluate(struct fl_net *net, const float *x, const int32_t *y, size_t n,
                     double *ret_loss_sum, size_t *ret_correct)
{
    const struct fl_net_found found = fl_net_evaluate_logits(net, x, y, n, NULL, NULL);

    *ret_loss_sum = found.loss_sum;
    *ret_correct = found.correct;
}

/* Update hook that only copies the gradient. */
static void copy_gradient(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    float *all = ctx;

    (void)params;
    (void)memcpy(all + offset, grad, n * sizeof(*grad));
}

double fl_net_gradient(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                       float *grad)
{
    const struct fl_net_pass how = {.x = x, .y = y, .batch = batch};

    (void)memset(grad, 0, net->n_block * sizeof(*grad));
    return fl_net_pass(net, &how, copy_gradient, grad);
}
