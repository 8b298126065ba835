#ifndef FL_NN_NET_IMPL_H
#define FL_NN_NET_IMPL_H

/* The body of a network, shared by net.c, net_along.c and net_create.c. */

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

/* 2 GiB with the activations: more is refused before memory is taken. */
#define FL__NET_MAX_FLOATS ((uint64_t)1 << 29)

struct fl_net {
    struct fl__layer *layers;
    size_t n_layers;
    struct fl_layout *layout;
    size_t inputs;
    size_t classes;
    size_t max_batch; /* 0: only for evaluation */
    size_t piece;     /* samples of an evaluation at a time */
    size_t n_block;
    size_t first; /* the lowest layer with parameters: nothing below it needs a gradient */
    float *params;
    float *scratch;
    float *grads[2]; /* gradients of activations, used in turn */
    float *image;    /* a batch in NHWC; NULL when the caller's order is the same or kept */
    size_t ld_image;
    bool image_first; /* there is such a change of order */
    struct fl__shape input;
    struct fl_rng rng; /* of dropout */
    void *memory;      /* all of the above floats in one piece */
    struct {
        fl_net_watch_cb call; /* NULL: nobody measures */
        void *ctx;
        fl_net_update_cb update; /* the caller's, around which is measured */
        void *update_ctx;
        size_t layer; /* whose backward pass runs */
    } watch;
    /*
     * Evaluation keeps no activations: two buffers in turn, in the memory where training has its
     * own. `dirty`: what training reads there without having written it (padding) must become
     * zero again. Floats before the activations, and of each kind of them.
     */
    float *turn[2];
    uint8_t *index;
    float *activations;
    size_t n_before, n_activations, n_evaluation;
    bool dirty;
    /* Passes along a direction: NULL until fl_net_take_tangents(). */
    struct fl__tangents {
        float *memory;
        size_t n;        /* floats of it */
        float *image;    /* as the network's */
        float *grads[2]; /* adjoints of tangents, used in turn */
        float *spare, *zeros, *scratch;
    } along;
};

/* Hands out pieces of one aligned block: first counted, then given. */
struct fl__arena {
    float *base; /* NULL while counting */
    uint64_t used;
};

static inline float *fl__arena_take(struct fl__arena *arena, uint64_t n)
{
    float *p = arena->base != NULL ? arena->base + arena->used : NULL;

    /* Slack behind each piece, for kernels that read full vectors. */
    arena->used += (n + FL_DENSE_SLACK + 15) / 16 * 16;
    return p;
}

/* `n` aligned floats, free(); NULL without memory. */
float *fl__net_floats(uint64_t n);
/* Gradients are as wide as the widest layer. */
uint64_t fl__net_widest(const struct fl_net *net);

/* Where a layer that computes nothing finds its output. */
struct fl__view {
    const float *data; /* tangents: NULL where they are zero */
    size_t ld;
};

/* The batch as the lowest layer reads it, through `image` where its order changes. */
struct fl__view fl__net_input(const struct fl_net *net, float *image, const float *x, size_t batch);
/* The end of a part, told to whoever measures. */
static inline void fl__net_mark(const struct fl_net *net, enum fl_net_part part, size_t layer)
{
    if (net->watch.call != NULL) {
        net->watch.call(net->watch.ctx, part, layer);
    }
}

/* What a training pass begins with. */
struct fl__pass fl__net_begin(struct fl_net *net, const struct fl_net_pass *how,
                              fl_net_update_cb update, void *ctx);
/* Forward through all layers; views[i] is the input of layer i, the last one the logits. */
void fl__net_forward(const struct fl_net *net, const struct fl__pass *pass, const float *x,
                     struct fl__view views[FL_NET_MAX_LAYERS + 1]);

#endif
