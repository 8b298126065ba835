#ifndef FL_NN_LAYER_H
#define FL_NN_LAYER_H

/*
 * What a kind of layer offers to the network; private to libfl/nn. One file per kind,
 * one row in net_create.c's table.
 *
 * Activations are NHWC inside: a sample is h*w pixels of c channels, a flat one has
 * h = w = 1. The network converts an image once a batch, unless its first layer flattens
 * it: then the numbers stay in the order in which they are handed in (channel, row,
 * column). PyTorch's flatten has that order everywhere, so a dense layer above a flattened
 * image permutes its inputs on import and export (shape.pixels).
 *
 * Life of a layer: parse (its text) -> shape (input known) -> params (its place in the
 * layout and in the internal block) -> workspace is taken by the network -> forward,
 * backward, both along a direction, import, export. None of these allocates.
 */

#include "libfl/nn/net.h"
#include "libfl/num/conv.h"
#include "libfl/num/norm.h"
#include "libfl/num/pool.h"

/* Samples of an evaluation at a time, at most; part of what decides the bits of its result. */
#define FL__NET_PIECE_MAX 64

struct fl__shape {
    size_t c, h, w;
    bool flat;     /* one row of numbers per sample, as "dense" wants it */
    size_t pixels; /* a flat row was an image of so many pixels; 1: its order is the exported one */
    bool raw;      /* an image still in the order of the caller */
};

struct fl__layer;

/* One pass through the network. */
struct fl__pass {
    size_t batch;
    float *params; /* the network's block */
    bool training; /* a backward pass follows */
    bool track;    /* move running statistics on */
    struct fl_rng *rng;
    fl_net_update_cb update;
    void *ctx;
    float *scratch; /* the network's, as large as the largest wish of a layer */
};

/* Where a layer reads and writes during a pass; strides in floats per sample. */
struct fl__io {
    const float *x;
    size_t ldx;
    float *y;
    size_t ldy;
    float *dy; /* as y; the layer may overwrite it */
    float *dx; /* as x, but with the stride lddx; NULL when nobody needs it */
    size_t lddx;
    uint8_t *index; /* n_index bytes a sample; forward's are backward's only in training */
};

/*
 * The same along a direction (net.h, fl_net_pass_jvp()): rx and ry are the tangents of x and y,
 * sy and sx the adjoints of those, like dy and dx. What a layer decided in the forward pass, which
 * side of ReLU, which pixel of a window, which numbers were dropped, is frozen.
 */
struct fl__jvp {
    const float *params; /* the direction of the network's block; NULL: it stays */
    const float *rx;     /* stride ldx; NULL: zero */
    float *ry;           /* stride ldy */
    float *sy;           /* as dy; the layer may overwrite it */
    float *sx;           /* as dx, NULL together with it */
    float *spare;        /* a batch of the widest activation, for the call */
    const float *zeros;  /* as many as the widest layer has outputs, and slack behind */
};

/* What backward passes read of what the forward pass left; along a direction of rx and ry too. */
struct fl__needs {
    bool x, y;
};

struct fl__layer_ops {
    const char *word;   /* first word of the text */
    const char *usage;  /* the whole form, for error messages */
    bool training_only; /* in evaluation y is x itself */
    /* The words after the first. FL_ECONF without saying which layer. */
    int (*parse)(struct fl__layer *layer, const char *args, struct fl_err *err);
    /*
     * layer->in to layer->out, and the wishes n_scratch, n_state and n_index. `next` is the layer
     * above or NULL: it may be fused (set skip).
     */
    int (*shape)(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err);
    /*
     * NULL: no parameters. Adds its tensors, the `index`-th layer of its kind, and sets tensor
     * and n_block.
     */
    int (*params)(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                  struct fl_err *err);
    /*
     * Asked when all layers have their shape, skip and masked. The memory of what no layer needs
     * goes to others when the layer above has been through its forward pass.
     */
    struct fl__needs (*needs)(const struct fl__layer *layer);
    /* NULL: y is x itself, and dx is dy. */
    void (*forward)(const struct fl__layer *layer, const struct fl__pass *pass,
                    const struct fl__io *io);
    void (*backward)(const struct fl__layer *layer, const struct fl__pass *pass,
                     const struct fl__io *io);
    /*
     * As forward, which came before with the same x and y, and as backward. Without a tangent a
     * layer that has no params is not asked. `backward_jvp` does both: dy and dx too.
     */
    void (*forward_jvp)(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io, const struct fl__jvp *along);
    void (*backward_jvp)(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io, const struct fl__jvp *along);
    /*
     * Only with params. Blocks of the whole model; the layer knows its offsets in both.
     * init draws in exported order, so that a seed gives the same model for any kernel's layout.
     */
    void (*init)(const struct fl__layer *layer, struct fl_rng *rng, float *internal);
    void (*import)(const struct fl__layer *layer, const struct fl_layout *layout, float *internal,
                   const float *exported);
    void (*export)(const struct fl__layer *layer, const struct fl_layout *layout, float *exported,
                   const float *internal);
};

struct fl__layer {
    const struct fl__layer_ops *ops;
    const struct fl_kernels *kernels;
    size_t max_batch; /* in training; 0: only evaluated */
    struct fl__shape in, out;
    union {
        size_t width; /* dense */
        struct fl_conv conv;
        struct fl_pool pool;
        struct fl_bn bn;
        double rate; /* dropout */
    } is;
    bool relu;        /* ReLU of the layer above is done here; of "maxpool": x comes out of ReLU */
    bool masked;      /* what ReLU stopped is no longer in dy: the layer above left it out */
    bool normalised;  /* of "conv": batch-norm is above */
    bool skip;        /* done by the layer below: y is x itself */
    size_t tensor;    /* the first of its tensors in the layout */
    size_t offset;    /* in the internal block */
    size_t n_block;   /* floats there, a multiple of 16 */
    size_t n_scratch; /* floats of scratch that a pass needs */
    size_t n_jvp;     /* and one along a direction, when that is more */
    size_t n_state;   /* floats that forward leaves to backward; along a direction as many more */
    size_t n_index;   /* bytes a sample that forward leaves to backward */
    double macs;      /* products of a weight in one sample's forward pass */
    float *state;
    uint8_t *index;
    size_t at_y,
        at_dy;     /* in the memory of a batch; y and dy of others may be there at other times */
    float *y, *dy; /* NULL when y is x itself; dy also below the lowest layer with params */
    size_t ldy;
    float *ry, *sy, *rstate; /* along a direction, beside y, dy and state */
};

/* Where the exported block has the n-th tensor of the layer. */
static inline size_t fl__layer_tensor(const struct fl__layer *layer, const struct fl_layout *layout,
                                      size_t n)
{
    return fl_layout_tensor(layout, layer->tensor + n)->offset;
}

static inline size_t fl__shape_count(const struct fl__shape *s)
{
    return s->c * s->h * s->w;
}

static inline size_t fl__layer_padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* A parse() for words that take no argument. */
int fl__layer_no_args(struct fl__layer *layer, const char *args, struct fl_err *err);
/* shape() refuses a flat input: "needs an image". */
int fl__layer_need_image(const struct fl__layer *layer, struct fl_err *err);
/*
 * The next word of *args, which moves behind it, into `word` (cut to `size`); false at the
 * end. Words are separated by blanks.
 */
bool fl__layer_word(const char **args, char *word, size_t size);
/* backward_jvp() of a layer that multiplies by what it froze: sx of sy as dx of dy. */
void fl__layer_backward_twice(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along);
/* to += from, n numbers in each of `batch` rows of ld; what is behind them stays. */
void fl__layer_add(float *to, const float *from, size_t ld, size_t n, size_t batch);
/* n numbers drawn uniformly from +-bound, one every `step` floats. */
void fl__layer_draw(struct fl_rng *rng, double bound, float *to, size_t n, size_t step);

extern const struct fl__layer_ops fl__layer_bn;
extern const struct fl__layer_ops fl__layer_conv;
extern const struct fl__layer_ops fl__layer_dense;
extern const struct fl__layer_ops fl__layer_dropout;
extern const struct fl__layer_ops fl__layer_flatten;
extern const struct fl__layer_ops fl__layer_lrn;
extern const struct fl__layer_ops fl__layer_maxpool;
extern const struct fl__layer_ops fl__layer_relu;

#endif
