#ifndef FL_NN_LAYER_H
#define FL_NN_LAYER_H

/*
 * What a kind of layer offers to the network; private to libfl/nn. One file per kind,
 * one row in net_create.c's table.
 *
 * Activations are NHWC inside: a sample is h*w pixels of c channels, a flat one has
 * h = w = 1. The raw input keeps the order in which it is handed in (channel, row,
 * column); a layer that reads pixels as such converts them, a dense layer takes them as
 * they come, which is what PyTorch's flatten does.
 *
 * Life of a layer: parse (its text) -> shape (input known) -> params (its place in the
 * layout and in the internal block) -> workspace is taken by the network -> forward,
 * backward, import, export. None of the last four allocates.
 */

#include "libfl/nn/net.h"

struct fl__shape {
    size_t c, h, w;
    bool flat; /* one number per sample, as "dense" wants it */
};

struct fl__layer;

/* One pass through the network. */
struct fl__pass {
    size_t batch;
    float *params; /* the network's block */
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
};

struct fl__layer_ops {
    const char *word;  /* first word of the text */
    const char *usage; /* the whole form, for error messages */
    /* The words after the first; fills layer->arg. FL_ECONF without saying which layer. */
    int (*parse)(struct fl__layer *layer, const char *args, struct fl_err *err);
    /* layer->in to layer->out. `next` is the layer above or NULL: it may be fused (set skip). */
    int (*shape)(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err);
    /*
     * NULL: no parameters. Adds its tensors, the `index`-th layer of its kind, and sets unit,
     * n_block, n_scratch.
     */
    int (*params)(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                  struct fl_err *err);
    /* NULL: y is x itself, and dx is dy. */
    void (*forward)(const struct fl__layer *layer, const struct fl__pass *pass,
                    const struct fl__io *io);
    void (*backward)(const struct fl__layer *layer, const struct fl__pass *pass,
                     const struct fl__io *io);
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
    struct fl__shape in, out;
    size_t arg;       /* width of a dense layer */
    bool relu;        /* ReLU of the layer above is done here */
    bool skip;        /* done by the layer below: y is x itself */
    size_t unit;      /* in the layout */
    size_t offset;    /* in the internal block */
    size_t n_block;   /* floats there, a multiple of 16 */
    size_t n_scratch; /* floats of scratch that a backward pass needs */
    float *y;         /* NULL when y is x itself */
    size_t ldy;
};

static inline size_t fl__shape_count(const struct fl__shape *s)
{
    return s->c * s->h * s->w;
}

extern const struct fl__layer_ops fl__layer_dense;
extern const struct fl__layer_ops fl__layer_flatten;
extern const struct fl__layer_ops fl__layer_relu;

#endif
