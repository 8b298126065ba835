#ifndef FL_NN_LAYER_H
#define FL_NN_LAYER_H

/*
 * Interface between a kind of layer and the network; private to libfl/nn. One file per kind, one
 * row in the table of net_create.c.
 *
 * Activations are NHWC internally: a sample is h*w pixels of c channels, a flat one has h = w = 1.
 * The network converts the images of a batch once, unless its first layer flattens them: then the
 * numbers keep the caller's order (channel, row, column). PyTorch's flatten always has that order,
 * so a dense layer after a flattened image permutes its inputs on import and export (shape.pixels).
 *
 * Life of a layer: parse (its text) -> shape (input known) -> params (its position in the layout
 * and in the internal block) -> the network allocates memory -> forward, backward, their JVP forms,
 * import, export. None of the latter allocates.
 */

#include "libfl/nn/loss.h"
#include "libfl/nn/net.h"
#include "libfl/num/attention.h"
#include "libfl/num/conv.h"
#include "libfl/num/group_norm.h"
#include "libfl/num/norm.h"
#include "libfl/num/pool.h"

/* Maximum number of samples per piece of an evaluation; it affects the bits of the result. */
#define FL__NET_PIECE_MAX 64

struct fl__shape {
    size_t c, h, w;
    bool flat; /* one row of numbers per sample, as "dense" needs */
    /* a flat row that was an image of this many pixels; 1: in exported order */
    size_t pixels;
    bool raw; /* an image in the caller's order */
};

struct fl__layer;

/* One pass through the network. */
struct fl__pass {
    size_t batch;
    float *params; /* the network's block */
    bool training; /* a backward pass follows */
    bool track;    /* update running statistics */
    struct fl_rng *rng;
    fl_net_update_cb update;
    void *ctx;
    float *scratch; /* the network's scratch, of the largest size that a layer needs */
};

/* Where a layer reads and writes during a pass; strides in floats per sample. */
struct fl__io {
    const float *x;
    size_t ldx;
    float *y;
    size_t ldy;
    float *dy; /* as y; the layer may overwrite it */
    float *dx; /* as x, but with the stride lddx; NULL: not needed */
    size_t lddx;
    /* n_index bytes per sample; kept from forward to backward only in training */
    uint8_t *index;
    /* of "add": the second input, and its gradient (NULL: not needed), added to when add_dx2 */
    const float *x2;
    size_t ldx2;
    float *dx2;
    size_t lddx2;
    bool add_dx2;
};

/*
 * Inputs and outputs of a JVP pass (directional derivative; net.h, fl_net_pass_jvp()): rx and ry
 * are the tangents of x and y, sy and sx the adjoints of those, like dy and dx. Decisions of the
 * forward pass are frozen: the side of ReLU, the maximum of a window, the numbers dropped.
 */
struct fl__jvp {
    const float *params; /* direction of the parameters; NULL: zero */
    const float *rx;     /* stride ldx; NULL: zero */
    float *ry;           /* stride ldy; backward reads it */
    float *sy;           /* as dy; the layer may overwrite it */
    float *sx;           /* as dx, NULL together with it */
    const float *rx2;    /* of "add": as rx, of x2 */
    float *sx2;          /* as dx2, NULL together with it */
    float *spare;        /* scratch: a batch of the widest activation */
    const float *zeros;  /* zeros for the outputs of the widest layer, with slack */
};

/* What a layer is for the branches of a residual block; see net_graph.c. */
enum fl__branch {
    FL__BRANCH_NONE,
    FL__BRANCH_OPEN,     /* its input is kept for the layer that closes the block */
    FL__BRANCH_SHORTCUT, /* what follows starts from the input of the block again */
    FL__BRANCH_CLOSE,    /* reads the output of both branches */
};

/* Which results of the forward pass backward reads (in JVP passes: of rx and ry too). */
struct fl__needs {
    bool x, y;
};

struct fl__layer_ops {
    const char *word;   /* first word of the text */
    const char *usage;  /* the whole form, for error messages */
    bool training_only; /* in evaluation y is x itself */
    enum fl__loss loss; /* not CE: no layer, it names the loss of the network and ends its list */
    enum fl__branch branch;
    /* Parse the words after the first. FL_ECONF; the caller adds the layer to the message. */
    int (*parse)(struct fl__layer *layer, const char *args, struct fl_err *err);
    /*
     * Compute layer->out from layer->in, and the sizes n_scratch, n_state and n_index. `next` is
     * the next layer or NULL: it may be fused (set skip).
     */
    int (*shape)(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err);
    /*
     * Add the tensors of the `index`-th layer of its kind to the layout, and set tensor and
     * n_block. NULL: no parameters.
     */
    int (*params)(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                  struct fl_err *err);
    /*
     * Which results must be kept; called when all layers have their shape, skip and masked.
     * Memory that no layer needs is reused after the forward pass of the next layer.
     */
    struct fl__needs (*needs)(const struct fl__layer *layer);
    /* NULL: y is x itself, and dx is dy. */
    void (*forward)(const struct fl__layer *layer, const struct fl__pass *pass,
                    const struct fl__io *io);
    void (*backward)(const struct fl__layer *layer, const struct fl__pass *pass,
                     const struct fl__io *io);
    /*
     * JVP forms of forward and backward; forward was called before with the same x and y. A
     * layer without params and without a tangent is not called. `backward_jvp` also computes dy
     * and dx. NULL while forward is not: the network has no JVP passes.
     */
    void (*forward_jvp)(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io, const struct fl__jvp *along);
    void (*backward_jvp)(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io, const struct fl__jvp *along);
    /*
     * Only with params. Conversions between blocks of the whole model; the layer knows its
     * offsets in both. init draws in exported order, so that a seed gives the same model for any
     * kernel's layout.
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
    size_t max_batch; /* in training; 0: evaluation only */
    struct fl__shape in, out;
    struct fl__shape in2; /* of "add": the second input */
    /*
     * The views that it reads: 0 is the batch, i + 1 the output of layer i. `from` of the layers
     * that compute, and `also`, name layers that compute once the network is complete.
     */
    size_t from, also;
    bool joins;  /* reads `also` */
    bool graded; /* its output has a gradient: it, or a layer below it, has parameters */
    /* a later reader of the same output wrote its gradient before: that of this layer is added */
    bool add_dx, add_dx2;
    size_t turn; /* buffer of its output in an evaluation */
    union {
        size_t width;    /* dense */
        struct fl_gn gn; /* gn, ln */
        struct fl_conv conv;
        struct fl_pool pool;
        struct fl_bn bn;
        double rate; /* dropout */
        struct {
            size_t words, dim;
        } table;                            /* embedding */
        struct fl_self_attention attention; /* heads and causal of it */
    } is;
    /* computes the ReLU of the next layer too; of "maxpool": x is an output of ReLU */
    bool relu;
    bool masked;      /* the next layer already masked dy with ReLU */
    bool normalised;  /* of "conv": followed by batch-norm */
    bool nobias;      /* of "conv": the bias is padding, which is zero */
    bool skip;        /* fused into the previous layer: y is x itself */
    size_t tensor;    /* the first of its tensors in the layout */
    size_t offset;    /* in the internal block */
    size_t n_block;   /* floats in the internal block, a multiple of 16 */
    size_t n_scratch; /* floats of scratch that a pass needs */
    size_t n_jvp;     /* of a JVP pass, when that is more */
    size_t n_state;   /* floats kept from forward to backward; JVP passes keep as many again */
    size_t n_index;   /* bytes per sample kept from forward to backward */
    double macs;      /* multiply-adds of one sample's forward pass */
    float *state;
    uint8_t *index;
    /*
     * Offsets in the memory of a batch, which y, dy and spare of different layers share over time.
     */
    size_t at_y, at_dy, at_spare;
    /* NULL when y is x itself; dy also NULL without `graded`, spare without add_dx */
    float *y, *dy, *spare;
    size_t ldy;
    float *ry, *sy, *rspare, *rstate; /* JVP counterparts of y, dy, spare and state */
};

/* Offset of the layer's n-th tensor in the exported block. */
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

/* parse() for layers without arguments. */
int fl__layer_no_args(struct fl__layer *layer, const char *args, struct fl_err *err);
/* Error of shape() for a flat input: "needs an image". */
int fl__layer_need_image(const struct fl__layer *layer, struct fl_err *err);
/*
 * Copy the next word of *args into `word` (cut to `size`) and advance *args; false at the end.
 * Words are separated by blanks.
 */
bool fl__layer_word(const char **args, char *word, size_t size);
/* backward_jvp() of a layer that multiplies by frozen factors: sx from sy as dx from dy. */
void fl__layer_backward_twice(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along);
/* to += from, n numbers in each of `batch` rows of ld floats; padding is unchanged. */
void fl__layer_accumulate(float *to, const float *from, size_t ld, size_t n, size_t batch);
/* Draw n numbers uniformly from +-bound, stored every `step` floats. */
void fl__layer_draw(struct fl_rng *rng, double bound, float *to, size_t n, size_t step);

extern const struct fl__layer_ops fl__layer_add;
extern const struct fl__layer_ops fl__layer_attention;
extern const struct fl__layer_ops fl__layer_avgpool;
extern const struct fl__layer_ops fl__layer_bce;
extern const struct fl__layer_ops fl__layer_block;
extern const struct fl__layer_ops fl__layer_bn;
extern const struct fl__layer_ops fl__layer_conv;
extern const struct fl__layer_ops fl__layer_dense;
extern const struct fl__layer_ops fl__layer_dropout;
extern const struct fl__layer_ops fl__layer_embedding;
extern const struct fl__layer_ops fl__layer_flatten;
extern const struct fl__layer_ops fl__layer_gelu;
extern const struct fl__layer_ops fl__layer_globalpool;
extern const struct fl__layer_ops fl__layer_gn;
extern const struct fl__layer_ops fl__layer_last;
extern const struct fl__layer_ops fl__layer_ln;
extern const struct fl__layer_ops fl__layer_lrn;
extern const struct fl__layer_ops fl__layer_lstm;
extern const struct fl__layer_ops fl__layer_mae;
extern const struct fl__layer_ops fl__layer_maxpool;
extern const struct fl__layer_ops fl__layer_mse;
extern const struct fl__layer_ops fl__layer_relu;
extern const struct fl__layer_ops fl__layer_shortcut;
extern const struct fl__layer_ops fl__layer_sigmoid;
extern const struct fl__layer_ops fl__layer_tanh;

#endif
