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
};

#endif
