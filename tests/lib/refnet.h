#ifndef FL_TESTS_REFNET_H
#define FL_TESTS_REFNET_H

/*
 * Reference implementation of the networks in plain double precision: channel by channel as in
 * PyTorch, from exported parameters, without any code of libfl/nn or libfl/num. The oracle for
 * gradients and the exported order.
 */

#include "libfl/nn/net.h"

enum ref_kind {
    REF_CONV = 1,
    REF_DENSE,
    REF_RELU,
    REF_MAXPOOL,
    REF_FLATTEN,
    REF_BN,
    REF_LRN,
    REF_DROPOUT,
    REF_BLOCK,
    REF_SHORTCUT,
    REF_ADD,
    REF_GN, /* of `out` groups */
    REF_LN,
    REF_AVGPOOL,
    REF_GLOBALPOOL,
    REF_SIGMOID,
    REF_TANH,
    REF_GELU,
    REF_EMBEDDING, /* of `kh` words */
    REF_LSTM,
    REF_LAST,
    REF_ATTENTION /* of `kh` heads, causal with `nobias` */
};

/* A layer: its text in the network description, and its parameters. */
struct ref_layer {
    const char *text;
    enum ref_kind kind;
    size_t out;    /* channels or width */
    size_t kh, kw; /* kernel or window */
    size_t stride;
    size_t pad; /* before the image */
    size_t oh, ow;
    double rate;
    size_t groups; /* of a convolution; 0: 1 */
    bool nobias;
};

#define REF_MAX_LAYERS 24

/* Ends with a layer of kind 0. */
struct ref_net {
    size_t input[3]; /* channels, height, width; a flat one is {n, 1, 1} */
    bool flat;
    struct ref_layer layers[REF_MAX_LAYERS];
};

/* The description of the same network; `texts` holds REF_MAX_LAYERS pointers. */
struct fl_net_spec ref_spec(const struct ref_net *net, const char **texts);
/*
 * Sum of the losses over the batch. `training`: batch-norm by the batch and dropout with
 * masks drawn from a generator seeded with `seed`; otherwise as in evaluation. With `after`
 * not NULL: a copy of the parameters in which the running statistics are updated.
 */
double ref_loss(const struct ref_net *net, const double *params, const float *x, const int32_t *y,
                size_t batch, bool training, uint64_t seed, double *after);

#endif
