#ifndef FL_NN_NET_IMPL_H
#define FL_NN_NET_IMPL_H

/* The body of a network, shared by net.c and net_create.c. */

#include "libfl/nn/layer.h"

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
    struct fl_rng rng;        /* of dropout */
    struct fl_rng rng_before; /* as it was before the last pass */
    void *memory;             /* all of the above floats in one piece */
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
};

#endif
