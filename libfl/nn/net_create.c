/*
 * Creates a network from its description (net.h): parses the layers, computes their shapes, and
 * builds the layout and the internal block. Memory is planned in net_memory.c. Runs on the
 * caller's thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/nn/network_impl.h"
#include "libfl/num/gemm.h"

/* Limit of parameters (1 GiB), checked before allocation: a description may come from a peer. */
#define MAX_PARAMS ((uint64_t)1 << 28)
#define MAX_INPUT  ((uint64_t)1 << 24)
#define MAX_BATCH  ((size_t)1 << 20)
/* Characters of a layer's text that are quoted in an error message. */
#define TEXT_MAX 64

static const struct fl__layer_ops *const kinds[] = {
    &fl__layer_add,        &fl__layer_attention, &fl__layer_avgpool,  &fl__layer_bce,
    &fl__layer_block,      &fl__layer_bn,        &fl__layer_conv,     &fl__layer_dense,
    &fl__layer_dropout,    &fl__layer_embedding, &fl__layer_flatten,  &fl__layer_gelu,
    &fl__layer_globalpool, &fl__layer_gn,        &fl__layer_last,     &fl__layer_ln,
    &fl__layer_lrn,        &fl__layer_lstm,      &fl__layer_mae,      &fl__layer_maxpool,
    &fl__layer_mse,        &fl__layer_relu,      &fl__layer_shortcut, &fl__layer_sigmoid,
    &fl__layer_tanh,
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Length of the first word. */
static size_t word_len(const char *text)
{
    return strcspn(text, " \t");
}

static int unknown_layer(const char *text, struct fl_err *err)
{
    const char *words[N_KINDS];
    const char *nearest;
    char known[1024] = "";
    char word[32] = "";
    size_t len = word_len(text);
    size_t used = 0;
    size_t i;

    for (i = 0; i < N_KINDS; i++) {
        int n = snprintf(known + used, sizeof(known) - used, "%s'%s'", i == 0 ? "" : ", ",
                         kinds[i]->usage);

        used += n > 0 && used + (size_t)n < sizeof(known) ? (size_t)n : 0;
        words[i] = kinds[i]->word;
    }
    if (len < sizeof(word)) {
        (void)memcpy(word, text, len);
    }
    nearest = fl_str_nearest(word, words, N_KINDS);
    return fl_err_set(err, FL_ECONF, "unknown layer%s%s%s; known: %s",
                      nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'?" : "", known);
}

static int parse_layer(struct fl__layer *layer, const char *text, struct fl_err *err)
{
    size_t len = word_len(text);
    const char *args = text + len + strspn(text + len, " \t");
    size_t i;
    int rv;

    for (i = 0; i < N_KINDS; i++) {
        if (strlen(kinds[i]->word) == len && strncmp(kinds[i]->word, text, len) == 0) {
            layer->ops = kinds[i];
            rv = layer->ops->parse(layer, args, err);
            if (rv != FL_OK) {
                return fl_err_wrap(err, rv, "expected '%s'", layer->ops->usage);
            }
            return FL_OK;
        }
    }
    return unknown_layer(text, err);
}

/* Prefix the message with "layer 3 'dense x': …"; text of a peer is escaped. */
static int net_name_layer(size_t i, const char *text, int rv, struct fl_err *err)
{
    char quoted[TEXT_MAX * 2];

    return fl_err_wrap(err, rv, "layer %zu %s", i + 1,
                       fl_log_quote(quoted, sizeof(quoted), text, strlen(text)));
}

static int check_input(const struct fl_net_spec *spec, struct fl__shape *ret, struct fl_err *err)
{
    uint64_t count = 1;
    size_t i;

    if (spec->n_input != 1 && spec->n_input != 3) {
        return fl_err_set(err, FL_ECONF,
                          "the input has %zu dimensions; expected one number or channels, height, "
                          "width",
                          spec->n_input);
    }
    for (i = 0; i < spec->n_input; i++) {
        if (spec->input[i] == 0 || spec->input[i] > MAX_INPUT) {
            return fl_err_set(err, FL_ECONF, "input dimension %zu is %zu; expected 1 to 2^24",
                              i + 1, spec->input[i]);
        }
        count *= spec->input[i];
        if (count > MAX_INPUT) {
            return fl_err_set(err, FL_ECONF, "the input has more than 2^24 numbers");
        }
    }
    *ret = spec->n_input == 1
               ? (struct fl__shape){.c = spec->input[0], .h = 1, .w = 1, .flat = true, .pixels = 1}
               : (struct fl__shape){.c = spec->input[0], .h = spec->input[1], .w = spec->input[2]};
    return FL_OK;
}

/* Number of the layer among its kind, from 1: "fc1", "fc2". */
static size_t index_of_kind(const struct fl_net *net, size_t i)
{
    size_t index = 1;
    size_t j;

    for (j = 0; j < i; j++) {
        index += net->layers[j].ops == net->layers[i].ops;
    }
    return index;
}

/*
 * A pool can mask the gradient with a preceding ReLU without reading more data; the layer with
 * the ReLU would need a separate pass.
 */
static void net_fuse_pool_masks(struct fl_net *net)
{
    size_t i;

    for (i = 2; i < net->n_layers; i++) {
        const struct fl__layer *relu = &net->layers[i - 1];

        if (net->layers[i].ops == &fl__layer_maxpool && relu->ops == &fl__layer_relu && relu->skip)
        {
            net->layers[i].relu = true;
            net->layers[i - 2].masked = true;
        }
    }
}

static const struct fl__shape *shape_of_view(const struct fl_net *net, size_t view)
{
    return view == 0 ? &net->input : &net->layers[view - 1].out;
}

/*
 * Compute the shapes from the first layer to the last, then each layer's position in the layout
 * and the block.
 */
static int shape_layers(struct fl_net *net, const struct fl_net_spec *spec, struct fl__shape shape,
                        struct fl_err *err)
{
    size_t i;
    int rv;

    net->inputs = fl__shape_count(&shape);
    shape.raw = !shape.flat && net->layers[0].ops == &fl__layer_flatten;
    net->input = shape;
    /* With one channel or one pixel the caller's order equals the internal one. */
    net->image_first = !shape.flat && !shape.raw && shape.c > 1 && shape.h * shape.w > 1;
    net->first = net->n_layers;
    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];
        struct fl__layer *next = i + 1 < net->n_layers ? &net->layers[i + 1] : NULL;

        layer->in = *shape_of_view(net, layer->from);
        layer->in2 = *shape_of_view(net, layer->also);
        layer->max_batch = net->max_batch;
        layer->kernels = spec->kernels != NULL ? spec->kernels : fl_kernels_best();
        rv = layer->ops->shape(layer, next, err);
        if (rv != FL_OK) {
            goto fail;
        }
        /*
         * The output of a layer for one sample has the limit of an input: products with it stay in
         * range.
         */
        if (layer->out.c > MAX_INPUT || layer->out.h * layer->out.w > MAX_INPUT / layer->out.c) {
            rv = fl_err_set(err, FL_ECONF, "its output, %zux%zux%zu, has more than 2^24 numbers",
                            layer->out.c, layer->out.h, layer->out.w);
            goto fail;
        }
        if (layer->ops->params != NULL) {
            net->first = net->first < i ? net->first : i;
            layer->offset = net->n_block;
            rv = layer->ops->params(layer, net->layout, index_of_kind(net, i), err);
            if (rv != FL_OK) {
                goto fail;
            }
            net->n_block += layer->n_block;
        }
        if (fl_layout_count(net->layout) > MAX_PARAMS) {
            rv = fl_err_set(err, FL_ECONF, "the network has more than 2^28 parameters");
            goto fail;
        }
    }
    net_fuse_pool_masks(net);
    fl__net_link(net);
    net->classes = net->layers[net->n_layers - 1].out.c;
    if (net->loss == FL__LOSS_CE && net->classes < 2) {
        i = net->n_layers - 1;
        rv = fl_err_set(err, FL_ECONF,
                        "a network needs at least two classes; one that predicts a value ends with "
                        "'mse', 'mae' or 'bce'");
        goto fail;
    }
    return fl_layout_finish(net->layout, err);
fail:
    return net_name_layer(i, spec->layers[i], rv == FL_ENOMEM ? rv : FL_ECONF, err);
}

/* Take the loss off the end of the list, and check the layer before it, and that no other names
 * one. */
static int net_take_loss(struct fl_net *net, const struct fl_net_spec *spec, struct fl_err *err)
{
    size_t last = net->n_layers - 1;
    size_t i;
    int rv;

    net->loss = net->layers[last].ops->loss;
    if (net->loss != FL__LOSS_CE && last > 0) {
        net->n_layers = last--;
    }
    for (i = 0; i < net->n_layers; i++) {
        if (net->layers[i].ops->loss != FL__LOSS_CE) {
            rv = fl_err_set(err, FL_ECONF, "a loss must be the last of at least two layers");
            return net_name_layer(i, spec->layers[i], rv, err);
        }
    }
    if (net->layers[last].ops != &fl__layer_dense) {
        rv = fl_err_set(err, FL_ECONF,
                        "the last layer must be 'dense' with the number of classes, or of values, "
                        "as its width");
        return net_name_layer(last, spec->layers[last], rv, err);
    }
    return FL_OK;
}

static int net_create_layers(const struct fl_net_spec *spec, size_t max_batch, struct fl_net **ret,
                             struct fl_err *err)
{
    struct fl__shape input;
    struct fl_net *net = NULL;
    int rv = check_input(spec, &input, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    if (spec->n_layers == 0 || spec->n_layers > FL_NET_MAX_LAYERS) {
        return fl_err_set(err, FL_ECONF, "a network has 1 to %d layers, not %zu", FL_NET_MAX_LAYERS,
                          spec->n_layers);
    }
    net = calloc(1, sizeof(*net));
    if (net == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    net->max_batch = max_batch;
    fl_net_seed(net, 0);
    net->n_layers = spec->n_layers;
    net->layers = calloc(spec->n_layers, sizeof(*net->layers));
    rv = net->layers == NULL ? FL_ENOMEM : fl_layout_create(&net->layout);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s", fl_strerror(rv));
        goto fail;
    }
    for (i = 0; i < spec->n_layers; i++) {
        rv = parse_layer(&net->layers[i], spec->layers[i], err);
        if (rv != FL_OK) {
            rv = net_name_layer(i, spec->layers[i], rv, err);
            goto fail;
        }
    }
    rv = net_take_loss(net, spec, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__net_branch(net, &i, err);
    if (rv != FL_OK) {
        rv = net_name_layer(i, spec->layers[i], rv, err);
        goto fail;
    }
    rv = shape_layers(net, spec, input, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = net;
    return FL_OK;
fail:
    fl_net_free(net);
    return rv;
}

int fl__net_describe(const struct fl_net_spec *spec, struct fl_net **ret, struct fl_err *err)
{
    return net_create_layers(spec, 0, ret, err);
}

static int net_create_whole(const struct fl_net_spec *spec, size_t max_batch, struct fl_net **ret,
                            struct fl_err *err)
{
    struct fl_net *net = NULL;
    int rv = fl_gemm_init(err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = net_create_layers(spec, max_batch, &net, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__net_take_memory(net, err);
    if (rv != FL_OK) {
        fl_net_free(net);
        return rv;
    }
    *ret = net;
    return FL_OK;
}

int fl_net_create(const struct fl_net_spec *spec, size_t max_batch, struct fl_net **ret,
                  struct fl_err *err)
{
    if (max_batch == 0 || max_batch > MAX_BATCH) {
        return fl_err_set(err, FL_ECONF, "the batch size is %zu; expected 1 to 2^20", max_batch);
    }
    return net_create_whole(spec, max_batch, ret, err);
}

int fl_net_create_evaluator(const struct fl_net_spec *spec, struct fl_net **ret, struct fl_err *err)
{
    return net_create_whole(spec, 0, ret, err);
}

void fl_net_free(struct fl_net *net)
{
    if (net == NULL) {
        return;
    }
    fl_layout_free(net->layout);
    free(net->layers);
    free(net->memory);
    free(net->along.memory);
    free(net);
}
