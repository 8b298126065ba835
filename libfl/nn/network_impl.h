#ifndef FL_NN_NET_IMPL_H
#define FL_NN_NET_IMPL_H

/* The internals of a network, shared by net.c, net_graph.c, net_memory.c, net_jvp.c and
 * net_create.c. */

#include "libfl/nn/layer.h"
#include "libfl/nn/plan.h"
#include "libfl/num/dense.h"

/* Limit of the memory of a network with activations, 2 GiB, checked before allocation. */
#define FL__NET_MAX_FLOATS ((uint64_t)1 << 29)
/* Limit of residual blocks inside of each other. */
#define FL__NET_MAX_DEPTH 6
/* Buffers of an evaluation: two, and one for each open block. */
#define FL__NET_TURNS (2 + FL__NET_MAX_DEPTH)

struct fl_net {
    struct fl__layer *layers;
    size_t n_layers;
    struct fl_layout *layout;
    size_t inputs;
    size_t classes;
    enum fl__loss loss;
    const float *targets; /* borrowed: fl_net_set_targets() */
    size_t max_batch;     /* 0: evaluation only */
    size_t piece;         /* samples per piece of an evaluation */
    size_t n_block;
    size_t first; /* the first layer with parameters: earlier layers need no gradient */
    float *params;
    float *scratch;
    float *image; /* a batch in NHWC; NULL when the caller's order is used */
    size_t ld_image;
    bool image_first; /* the order of images is converted */
    struct fl__shape input;
    struct fl_rng rng; /* of dropout */
    void *memory;      /* the block of all float arrays above */
    struct {
        fl_net_watch_cb call; /* NULL: no measuring */
        void *ctx;
        fl_net_update_cb update; /* the caller's hook, which is measured */
        void *update_ctx;
        size_t layer; /* layer in its backward pass */
    } watch;
    /*
     * A batch is at `activations`: results that each layer keeps, then n_batch floats shared by all
     * buffers of the forward and backward passes (at_image, at_y, at_dy). Evaluation keeps no
     * results: it alternates between two buffers in the same memory, with a further one for each
     * open residual block. A pass only reads what it wrote itself. The sizes are floats before the
     * activations, and of each kind of them.
     */
    float *turn[FL__NET_TURNS];
    uint8_t *index;
    float *activations;
    size_t at_image;
    size_t n_batch, n_before, n_activations, n_evaluation;
    /* Memory of JVP passes: NULL until fl_net_take_tangents(). */
    struct fl__tangents {
        float *memory;
        size_t n;     /* floats of it */
        float *image; /* as the network's */
        float *spare, *zeros, *scratch;
    } along;
};

/* Allocator of pieces of one aligned block: a first run counts, a second one assigns. */
struct fl__arena {
    float *base; /* NULL while counting */
    uint64_t used;
};

/* Size of n floats with slack after them, for kernels that read full vectors. */
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

/*
 * The layers of a network with shapes and layout, for an evaluation, without its memory: for an
 * outline. Errors as fl_net_create(). Returns owned: fl_net_free().
 */
FL_MUST_CHECK int fl__net_describe(const struct fl_net_spec *spec, struct fl_net **ret,
                                   struct fl_err *err);
/* Set from, also and joins of parsed layers. FL_ECONF: *ret_layer has no partner. */
FL_MUST_CHECK int fl__net_branch(struct fl_net *net, size_t *ret_layer, struct fl_err *err);
/* Complete the links of layers that have their shape: from, also, graded, add_dx and add_dx2. */
void fl__net_link(struct fl_net *net);
/* Set `turn` of all layers; widest[i] becomes the largest number of floats per sample of turn i. */
void fl__net_take_turns(struct fl_net *net, uint64_t widest[FL__NET_TURNS]);
/* Allocate `n` aligned floats (owned, free()); NULL: out of memory. */
float *fl__net_floats(uint64_t n);
/* The largest number of floats per sample in any layer. */
uint64_t fl__net_widest(const struct fl_net *net);
/*
 * Plan and allocate the memory of a network whose layers have their shape. FL_ECONF: more than
 * the limit.
 */
FL_MUST_CHECK int fl__net_take_memory(struct fl_net *net, struct fl_err *err);

/*
 * The buffers of a batch and their lifetimes; `of` is the buffer's at_… member. Times of a pass
 * through n layers: 0 the image, 1 + i layer i forward, 1 + n the loss, 1 + 2 n - i layer i
 * backward.
 */
#define FL__NET_BUFFERS (3 * FL_NET_MAX_LAYERS + 1)
size_t fl__net_lives(struct fl_net *net, struct fl__buffer buffers[FL__NET_BUFFERS]);

/* Location of a layer's output, also of a skipped layer. */
struct fl__view {
    const float *data; /* tangents: NULL where they are zero */
    size_t ld;
};

/* The batch as the first layer reads it, converted through `image` if needed, padded. */
struct fl__view fl__net_input(const struct fl_net *net, float *image, const float *x, size_t batch);
/* Report the end of a phase for measuring. */
static inline void fl__net_mark(const struct fl_net *net, enum fl_net_part part, size_t layer)
{
    if (net->watch.call != NULL) {
        net->watch.call(net->watch.ctx, part, layer);
    }
}

/* The values that the outputs of a batch are compared with; without a gradient. */
struct fl__value_loss fl__net_values(const struct fl_net *net, const struct fl__view *outputs,
                                     const int32_t *y, size_t batch);
/* Start a training pass. */
struct fl__pass fl__net_begin(struct fl_net *net, const struct fl_net_pass *how,
                              fl_net_update_cb update, void *ctx);
/* Forward pass of layer i: views[i] is its input and views[i + 1] its output. */
void fl__net_forward(const struct fl_net *net, const struct fl__pass *pass, size_t i,
                     struct fl__view *views);
/*
 * Set the padding after the n numbers of each row, and after the last row, to zero: kernels may
 * read it, so it must be finite, and the memory was used for other rows before.
 */
void fl__net_clear_padding(float *y, size_t ld, size_t n, size_t batch);
/* Where the backward pass of layer i reads and writes; io->dx may be the layer's `spare`. */
struct fl__io fl__net_backward_io(const struct fl_net *net, size_t i, const struct fl__view *views);
/* The layer whose output is `view`; NULL when that has no gradient. */
const struct fl__layer *fl__net_graded(const struct fl_net *net, size_t view);
/* Finish the gradient `dx` of layer i's input: add it to the one in `dy` if the layer has add_dx.
 */
void fl__net_finish_dx(const struct fl__layer *layer, const struct fl__io *io, float *dx, float *dy,
                       size_t batch);

#endif
