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
    size_t max_batch;
    size_t n_block;
    size_t first; /* the lowest layer with parameters: nothing below it needs a gradient */
    float *params;
    float *scratch;
    float *grads[2]; /* gradients of activations, used in turn */
    float *image;    /* a batch in NHWC; NULL when the caller's order is the same or kept */
    size_t ld_image;
    struct fl__shape input;
    struct fl_rng rng; /* of dropout */
    void *memory;      /* all of the above floats in one piece */
};

#endif
