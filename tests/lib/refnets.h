#ifndef FL_TESTS_REFNETS_H
#define FL_TESTS_REFNETS_H

/* Small networks with every kind of layer, in many orders. */

#include "tests/lib/refnet_layers.h"

static const struct ref_net nets[] = {
    /* One channel: the caller's order is NHWC already. */
    IMAGE(1, 5, 4, CONV("conv 3 3x3", 3, 3, 3, 1, 0), RELU, FLATTEN, DENSE3),
    IMAGE(2, 5, 7, CONV("conv 5 3x3 pad 1 stride 2", 5, 3, 3, 2, 1), FLATTEN, DENSE3),
    IMAGE(3, 6, 5, CONV("conv 2 2x3 stride 2 pad 1", 2, 2, 3, 2, 1), RELU, FLATTEN, DENSE3),
    /* With rows of 16 channels, several images share one matrix product. */
    IMAGE(3, 4, 4, CONV("conv 16 3x3 pad 1", 16, 3, 3, 1, 1), RELU,
          CONV("conv 4 5x5 pad 2", 4, 5, 5, 1, 2), RELU, FLATTEN, DENSE3),
    IMAGE(2, 7, 5, CONV4, RELU, POOL("maxpool 2", 2, 2, 0, 3, 2), FLATTEN, DENSE3),
    IMAGE(2, 6, 6, CONV4, RELU, POOL("maxpool 3 stride 2 same", 3, 2, 0, 3, 3), FLATTEN, DENSE3),
    IMAGE(2, 5, 5, CONV4, POOL("maxpool 3 same stride 2", 3, 2, 1, 3, 3), CONV4, RELU,
          POOL("maxpool 3 stride 1", 3, 1, 0, 1, 1), FLATTEN, DENSE3),
    /* No weights below the pool, a flatten of a flat row, ReLU not fused. */
    IMAGE(2, 4, 4, POOL("maxpool 2 stride 1", 2, 1, 0, 3, 3), CONV4, FLATTEN, RELU, FLATTEN,
          DENSE("dense 20", 20), RELU, DENSE3),
    /* Batch-norm: with ReLU in it, alone, behind a pool, above a dense layer, twice. */
    IMAGE(2, 5, 4, CONV4, BN, RELU, POOL("maxpool 2", 2, 2, 0, 2, 2), FLATTEN, DENSE3),
    IMAGE(3, 4, 5, CONV("conv 5 3x3 stride 2", 5, 3, 3, 2, 0), BN, FLATTEN, DENSE("dense 6", 6), BN,
          RELU, DENSE3),
    IMAGE(2, 4, 4, CONV4, RELU, POOL("maxpool 2", 2, 2, 0, 2, 2), BN, BN, CONV4, BN, RELU, FLATTEN,
          DENSE3),
    IMAGE(1, 4, 4, CONV("conv 70 2x2", 70, 2, 2, 1, 0), BN, FLATTEN, DENSE3),
    IMAGE(1, 3, 3, CONV("conv 11 2x2", 11, 2, 2, 1, 0), LRN, FLATTEN, DENSE3),
    IMAGE(2, 6, 6, CONV4, RELU, POOL("maxpool 3 stride 2 same", 3, 2, 0, 3, 3), LRN, CONV4, RELU,
          LRN, POOL("maxpool 3 stride 2 same", 3, 2, 1, 2, 2), FLATTEN, DENSE3),
    IMAGE(2, 5, 3, CONV("conv 3 3x3 pad 1", 3, 3, 3, 1, 1), RELU, DROPOUT("dropout 0.25", 0.25),
          FLATTEN, DROPOUT("dropout 0", 0.0), DENSE("dense 9", 9), RELU,
          DROPOUT("dropout 0.5", 0.5), DENSE3),
    IMAGE(3, 3, 3, LRN, DROPOUT("dropout 0.1", 0.1), CONV4, BN, RELU, DROPOUT("dropout 0.3", 0.3),
          FLATTEN, DENSE3),
    /* Flattened at once, and flattened behind something. */
    IMAGE(3, 2, 3, FLATTEN, DENSE("dense 5", 5), RELU, DENSE3),
    IMAGE(3, 2, 3, RELU, FLATTEN, DENSE3),
    /* Groups: several channels each way, one each way, one in and several out; no bias. */
    IMAGE(4, 5, 4, CONVG("conv 6 3x3 pad 1 groups 2", 6, 3, 3, 1, 1, 2, false), RELU,
          CONVG("conv 6 3x2 stride 2 pad 1 groups 6 nobias", 6, 3, 2, 2, 1, 6, true), RELU,
          CONVG("conv 18 2x2 groups 6", 18, 2, 2, 1, 0, 6, false), FLATTEN, DENSE3),
    /* Depthwise with several vectors of channels of every instruction set, and a rest. */
    IMAGE(2, 4, 5, CONV("conv 70 1x1", 70, 1, 1, 1, 0), RELU,
          CONVG("conv 70 3x2 stride 2 pad 1 groups 70", 70, 3, 2, 2, 1, 70, false),
          CONVG("conv 70 2x2 groups 70 nobias", 70, 2, 2, 1, 0, 70, true), GLOBALPOOL, DENSE3),
    IMAGE(2, 4, 4, CONVG("conv 4 3x3 pad 1 nobias", 4, 3, 3, 1, 1, 1, true), BN, RELU,
          POOL("maxpool 2", 2, 2, 0, 2, 2), FLATTEN, DENSE3),
    /* Means: windows that overlap and leave pixels out, all of them, activations that are no ReLU.
     */
    IMAGE(3, 6, 7, AVGPOOL("avgpool 2 stride 1", 2, 1), CONV4, TANH, AVGPOOL("avgpool 2", 2, 2),
          SIGMOID, GLOBALPOOL, GELU, DENSE("dense 5", 5), GELU, DENSE3),
    IMAGE(2, 3, 3, GELU, CONV4, GELU, AVGPOOL("avgpool 3", 3, 3), FLATTEN, TANH, DENSE3),
    /* Group and layer norm: with ReLU in it, below a pool, first of all, of a flat row. */
    IMAGE(2, 4, 5, CONV4, GN("gn 2", 2), RELU, POOL("maxpool 2", 2, 2, 0, 2, 2), GN("gn 4", 4),
          CONV("conv 70 1x1", 70, 1, 1, 1, 0), GN("gn 1", 1), GLOBALPOOL, DENSE3),
    IMAGE(6, 3, 4, LN, CONV4, LN, RELU, FLATTEN, DENSE("dense 12", 12), GN("gn 3", 3), TANH,
          DENSE("dense 7", 7), LN, RELU, DENSE3),
    /*
     * Residual blocks: around weights, with a shortcut that has some, that has none, one in
     * another, around nothing, from the batch itself, of flat rows, below ReLU and below a pool.
     */
    IMAGE(2, 4, 5, CONV4, RELU, BLOCK, CONV4, GN("gn 2", 2), RELU, CONV4, ADD, RELU,
          POOL("maxpool 2", 2, 2, 0, 2, 2), FLATTEN, DENSE3),
    IMAGE(2, 5, 4, CONV4, BLOCK, CONV("conv 6 3x3 pad 1 stride 2", 6, 3, 3, 2, 1), BN, RELU,
          CONV("conv 6 3x3 pad 1", 6, 3, 3, 1, 1), SHORTCUT,
          CONV("conv 6 1x1 stride 2", 6, 1, 1, 2, 0), BN, ADD, RELU, GLOBALPOOL, DENSE3),
    IMAGE(2, 4, 4, BLOCK, CONV("conv 2 3x3 pad 1", 2, 3, 3, 1, 1), BLOCK, RELU, BLOCK, TANH, ADD,
          SHORTCUT, DROPOUT("dropout 0.25", 0.25), ADD, SHORTCUT, RELU, ADD, BLOCK, ADD, FLATTEN,
          DENSE("dense 8", 8), BLOCK, DENSE("dense 8", 8), RELU, ADD, DENSE3),
    IMAGE(3, 4, 4, BLOCK, POOL("maxpool 2", 2, 2, 0, 2, 2), SHORTCUT, AVGPOOL("avgpool 2", 2, 2),
          ADD, BLOCK, CONV("conv 3 1x1", 3, 1, 1, 1, 0), SHORTCUT,
          CONV("conv 3 1x1", 3, 1, 1, 1, 0), BN, ADD, BLOCK, LRN, SHORTCUT, GELU, ADD, FLATTEN,
          DENSE3),
    /* Sequences: words, of which some are outside of the table; rows of an image; a residual LSTM.
     */
    ROW(6, EMBEDDING("embedding 3 5", 3, 5), LSTM("lstm 4", 4), LSTM("lstm 7", 7), LAST, DENSE3),
    IMAGE(3, 5, 1, LSTM("lstm 6", 6), TANH, LSTM("lstm 3", 3), FLATTEN, DENSE3),
    IMAGE(4, 1, 1, LSTM("lstm 5", 5), GLOBALPOOL, DENSE3),
    ROW(5, EMBEDDING("embedding 4 6", 4, 6), BLOCK, LSTM("lstm 6", 6), ADD, LN, LAST, DENSE3),
    /* Attention: of words, of the rows of an image, with a block around it as in a transformer. */
    ROW(7, EMBEDDING("embedding 3 6", 3, 6), ATTENTION("attention 2", 2, false), LAST, DENSE3),
    IMAGE(4, 5, 1, BLOCK, LN, ATTENTION("attention 4 causal", 4, true), ADD, BLOCK, LN,
          CONV("conv 9 1x1", 9, 1, 1, 1, 0), GELU, CONV("conv 4 1x1", 4, 1, 1, 1, 0), ADD,
          GLOBALPOOL, DENSE3),
    IMAGE(3, 1, 1, ATTENTION("attention 1", 1, false), FLATTEN, DENSE3),
};

#endif
