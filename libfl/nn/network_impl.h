#ifndef FL_NN_NET_IMPL_H
#define FL_NN_NET_IMPL_H

/* The body of a network, shared by net.c, net_jvp.c and net_create.c. */

#include "libfl/nn/layer.h"
#include "libfl/nn/plan.h"
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
    float *image; /* a batch in NHWC; NULL when the caller's order is the same or kept */
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
     * A batch lies at `activations`: what each layer keeps for itself, then n_batch floats that all
     * share, for what the passes forward and backward hold at each moment (at_image, at_y, at_dy).
     * Evaluation keeps nothing: two buffers in turn, in the same memory. No pass reads there what
     * it did not write itself. Floats before the activations, and of each kind of them.
     */
    float *turn[2];
    uint8_t *index;
    float *activations;
    size_t at_image;
    size_t n_batch, n_before, n_activations, n_evaluation;
    /* Passes along a direction: NULL until fl_net_take_tangents(). */
    struct fl__tangents {
        float *memory;
        size_t n;     /* floats of it */
        float *image; /* as the network's */
        float *spare, *zeros, *scratch;
    } along;
};

/* Hands out pieces of one aligned block: first counted, then given. */
struct fl__arena {
    float *base; /* NULL while counting */
    uint64_t used;
};

/* What n floats take: with slack behind, for kernels that read full vectors. */
static inline uint64_t fl__arena_piece(uint64_t n)
{
    return (n + FL_DENSE_SLACK + 15) / 16 * 16;
}

static inline float *fl__arena_take(struct fl__arena *arena, uint64_t n)
{
    float *p = arena->base != NULL ? arena->base + arena->used : NULL;

    arena->used += fl__arena_piece(n);
    return p;
}

/* `n` aligned floats, free(); NULL without memory. */
float *fl__net_floats(uint64_t n);
/* Of the layers: floats of a sample. */
uint64_t fl__net_widest(const struct fl_net *net);
/* All of a network whose layers have their shape. FL_ECONF: more than is allowed. */
FL_MUST_CHECK int fl__net_take_memory(struct fl_net *net, struct fl_err *err);

/*
 * What a batch needs and when; `of` is the place's at_… in the network. The moments of a pass
 * through n layers: 0 the image, 1 + i layer i forward, 1 + n the loss, 1 + 2 n - i layer i
 * backward.
 */
#define FL__NET_BUFFERS (2 * FL_NET_MAX_LAYERS + 1)
size_t fl__net_lives(struct fl_net *net, struct fl__buffer buffers[FL__NET_BUFFERS]);

/* Where a layer that computes nothing finds its output. */
struct fl__view {
    const float *data; /* tangents: NULL where they are zero */
    size_t ld;
};

/* The batch as the lowest layer reads it, through `image` where its order changes, padded. */
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
/* Forward through layer i: views[i] is its input and views[i + 1] what it makes, of all layers. */
void fl__net_forward(const struct fl_net *net, const struct fl__pass *pass, size_t i,
                     struct fl__view *views);
/*
 * Zero behind the n numbers of each row and behind the last one: what kernels may read there must
 * be finite, and other rows were there before.
 */
void fl__net_clear_padding(float *y, size_t ld, size_t n, size_t batch);
/* The layer that computes below layer i, which is above the lowest with parameters. */
size_t fl__net_below(const struct fl_net *net, size_t i);

#endif
