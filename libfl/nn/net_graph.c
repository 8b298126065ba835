/*
 * The order in which layers read each other's outputs: a chain with residual blocks in it. "block"
 * keeps its input; the layers up to "shortcut", or to "add", are the main branch, those between
 * "shortcut" and "add" the other one, which is the input itself without "shortcut". "block" and
 * "shortcut" compute nothing: their outputs are views of earlier ones. An output with several
 * readers gets the sum of their gradients: the first one in the backward pass writes it, the others
 * add (add_dx). Pure; runs while the network is created.
 */
#include <string.h>

#include "libfl/nn/network_impl.h"

/* An open block. */
struct open_block {
    size_t layer;    /* "block" */
    size_t shortcut; /* 0: none; layer 0 cannot be one */
};

static void graph_close(struct fl__layer *layer, const struct open_block *block)
{
    layer->joins = true;
    /* The output of the layer before "shortcut", or the input of the block. */
    layer->also = block->shortcut > 0 ? block->shortcut : block->layer;
}

int fl__net_branch(struct fl_net *net, size_t *ret_layer, struct fl_err *err)
{
    struct open_block open[FL__NET_MAX_DEPTH];
    size_t depth = 0;
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];
        enum fl__branch branch = layer->ops->branch;

        *ret_layer = i;
        layer->from = i;
        if (branch != FL__BRANCH_NONE && branch != FL__BRANCH_OPEN && depth == 0) {
            return fl_err_set(err, FL_ECONF, "needs a preceding 'block' without an 'add'");
        }
        if (branch == FL__BRANCH_OPEN && depth == FL__NET_MAX_DEPTH) {
            return fl_err_set(err, FL_ECONF, "more than %d blocks inside of each other",
                              FL__NET_MAX_DEPTH);
        }
        if (branch == FL__BRANCH_OPEN) {
            open[depth++] = (struct open_block){.layer = i};
        } else if (branch == FL__BRANCH_SHORTCUT) {
            if (open[depth - 1].shortcut > 0) {
                return fl_err_set(err, FL_ECONF, "the block has a 'shortcut' already");
            }
            open[depth - 1].shortcut = i;
            layer->from = open[depth - 1].layer;
        } else if (branch == FL__BRANCH_CLOSE) {
            depth--;
            graph_close(layer, &open[depth]);
        }
    }
    if (depth > 0) {
        *ret_layer = open[depth - 1].layer;
        return fl_err_set(err, FL_ECONF, "no 'add' follows that closes the block");
    }
    return FL_OK;
}

/* The view of a layer that computes, or of the batch, which `view` is. */
static size_t graph_computed(const struct fl_net *net, size_t view)
{
    while (view > 0 && net->layers[view - 1].skip) {
        view = net->layers[view - 1].from;
    }
    return view;
}

static bool graph_graded(const struct fl_net *net, size_t view)
{
    return view > 0 && net->layers[view - 1].graded;
}

void fl__net_link(struct fl_net *net)
{
    bool written[FL_NET_MAX_LAYERS + 1] = {false};
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];

        layer->from = graph_computed(net, layer->from);
        layer->also = layer->joins ? graph_computed(net, layer->also) : 0;
        layer->graded = layer->ops->params != NULL || graph_graded(net, layer->from) ||
                        (layer->joins && graph_graded(net, layer->also));
    }
    for (i = net->n_layers; i > 0; i--) {
        struct fl__layer *layer = &net->layers[i - 1];

        if (layer->skip || !layer->graded) {
            continue;
        }
        if (graph_graded(net, layer->from)) {
            layer->add_dx = written[layer->from];
            written[layer->from] = true;
        }
        if (layer->joins && graph_graded(net, layer->also)) {
            layer->add_dx2 = written[layer->also];
            written[layer->also] = true;
        }
    }
}

/* The lowest buffer that is free after `moment`. */
static size_t graph_free_turn(const size_t until[FL__NET_TURNS], size_t moment)
{
    size_t turn = 0;

    while (until[turn] > moment) {
        turn++;
    }
    return turn;
}

void fl__net_take_turns(struct fl_net *net, uint64_t widest[FL__NET_TURNS])
{
    size_t view[FL_NET_MAX_LAYERS + 1]; /* in an evaluation, where some layers do not compute */
    size_t last[FL_NET_MAX_LAYERS + 1] = {0}; /* reader of a view, counted from 1 */
    size_t until[FL__NET_TURNS] = {0};
    size_t i;

    (void)memset(widest, 0, FL__NET_TURNS * sizeof(*widest));
    widest[0] = widest[1] = 16;
    view[0] = 0;
    for (i = 0; i < net->n_layers; i++) {
        const struct fl__layer *layer = &net->layers[i];
        bool computes = !layer->skip && !layer->ops->training_only;

        view[i + 1] = computes ? i + 1 : view[layer->from];
        if (computes) {
            last[view[layer->from]] = i + 1;
        }
        if (computes && layer->joins) {
            last[view[layer->also]] = i + 1;
        }
    }
    if (net->image_first) {
        widest[0] = net->ld_image;
        until[0] = last[0];
    }
    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];

        if (view[i + 1] == i + 1) {
            /* It reads its inputs while it writes. */
            layer->turn = graph_free_turn(until, i);
            until[layer->turn] = last[i + 1];
            widest[layer->turn] =
                layer->ldy > widest[layer->turn] ? layer->ldy : widest[layer->turn];
        }
    }
}
