#ifndef FL_NN_NET_H
#define FL_NN_NET_H

/*
 * Networks: a stack of layers over one parameter block, softmax cross-entropy on top.
 *
 * A network is described by its input dimensions (channels, height, width; or one
 * number for a flat input) and one text per layer:
 *     "dense 200"                             width
 *     "conv 64 3x3 pad 1 stride 1"            channels, kernel; no padding, stride 1 unless given
 *     "maxpool 2", "maxpool 3 stride 2 same"  window; stride as wide as the window unless given
 *     "bn"                                    batch-norm of each channel; see below
 *     "dropout 0.5"                           share of numbers that training sets to 0
 *     "lrn"                                   local response normalisation across channels
 *     "relu", "flatten"
 * The last layer is a dense one whose width is the number of classes. An image is handed in
 * channel by channel (channels, height, width), as PyTorch and libfl/data have it.
 *
 * Batch-norm trains on the statistics of the batch and evaluates with running ones (momentum
 * 0.1, eps 1e-5, as PyTorch). Those are buffers of the unit of the layer with weights below:
 * part of the exported block, moved by fl_net_step(), never visited by the update hook.
 *
 * Two orders of parameters: the exported order (PyTorch's, see libfl/model/layout.h)
 * and the internal one, which kernels choose and which nothing outside this room
 * interprets. Solver operands (anchor, control, …) live in the internal order:
 * convert them once with fl_net_import(); norms and sums are the same in both.
 *
 * Purity: no clock, no I/O, no threads; randomness comes in as a generator or a seed.
 * Memory: all of it is taken by fl_net_create(), what one batch needs at a time and no more, and
 * once more by fl_net_take_tangents(); nothing is allocated in a step or an evaluation.
 * Threading: a network belongs to one thread.
 */

#include "libfl/base/rng.h"
#include "libfl/model/layout.h"
#include "libfl/num/kernels.h"

#define FL_NET_MAX_LAYERS     256
#define FL_NET_MAX_INPUT_DIMS 3

struct fl_net_spec {
    size_t input[FL_NET_MAX_INPUT_DIMS];
    size_t n_input;
    const char *const *layers;
    size_t n_layers;
    const struct fl_kernels *kernels; /* what computes; NULL: the fastest that is here */
};

/* A named network (docs/networks.md#presets); FL_ENOENT with the known names. Static memory. */
FL_MUST_CHECK int fl_net_preset(const char *name, struct fl_net_spec *ret, struct fl_err *err);
/* Names of the presets, NULL-terminated. */
const char *const *fl_net_presets(void);

struct fl_net;

/* FL_ECONF names the layer ("layer 3 'dense x': …"). `max_batch` samples at most per call. */
FL_MUST_CHECK int fl_net_create(const struct fl_net_spec *spec, size_t max_batch,
                                struct fl_net **ret, struct fl_err *err);
/*
 * Only for parameters and evaluation: without memory for a backward pass. Fails like
 * fl_net_create().
 */
FL_MUST_CHECK int fl_net_create_evaluator(const struct fl_net_spec *spec, struct fl_net **ret,
                                          struct fl_err *err);
void fl_net_free(struct fl_net *net);

/*
 * Bytes. Activations and their gradients for a batch of max_batch (0 in an evaluator), as many as
 * are needed at a time, and those of an evaluation lie in the same place; scratch holds the
 * gradient of one layer. Tangents: 0 before fl_net_take_tangents().
 */
struct fl_net_memory {
    size_t parameters, scratch, training, evaluation, tangents;
    size_t all; /* what it takes, with what lies in the same place counted once */
};
struct fl_net_memory fl_net_memory(const struct fl_net *net);

/*
 * What passes and evaluations work in goes back to the system, until the next one takes it again;
 * nothing that they compute changes. When it may be long until then, or others need memory now:
 * fresh pages cost the next step about as much as reading its activations once more. Parameters
 * stay.
 */
void fl_net_release(struct fl_net *net);

/* Layout in the exported order; owned by the network. */
const struct fl_layout *fl_net_layout(const struct fl_net *net);
size_t fl_net_inputs(const struct fl_net *net); /* floats of one sample */
size_t fl_net_classes(const struct fl_net *net);
size_t fl_net_max_batch(const struct fl_net *net); /* 0: an evaluator */
/*
 * Operations of one step per sample: 2 for each weight and place where it is used, for forward,
 * weight gradient and (above the first layer with weights) input gradient. For benchmarks.
 */
double fl_net_step_flops(const struct fl_net *net);
/* Floats of an internal block: at least fl_layout_count(), padding included and zero. */
size_t fl_net_block(const struct fl_net *net);

/*
 * uniform(+-1/sqrt(fan_in)) for weights and biases, batch-norm as the identity,
 * into the network.
 */
void fl_net_init(struct fl_net *net, struct fl_rng *rng);
/*
 * Start of the stream that dropout draws from in fl_net_step() and fl_net_gradient(); 0 after
 * fl_net_create(). Evaluation draws nothing.
 */
void fl_net_seed(struct fl_net *net, uint64_t seed);
/* Set or read the network's own parameters, buffers included, in exported order. */
void fl_net_set(struct fl_net *net, const float *exported);
void fl_net_get(const struct fl_net *net, float *exported);
/* Convert any vector of the model's shape between the two orders. */
void fl_net_import(const struct fl_net *net, float *internal, const float *exported);
void fl_net_export(const struct fl_net *net, float *exported, const float *internal);
/* The network's parameters in internal order, to be updated in place. */
float *fl_net_params(struct fl_net *net);

/*
 * Called during the backward pass for each finished contiguous range of the internal
 * block: `params` is fl_net_params() + offset, `grad` the mean gradient of the batch.
 * The callee updates params[0..n). Ranges do not overlap; each trainable entry is
 * visited once a step; buffers never.
 */
typedef void (*fl_net_update_cb)(void *ctx, size_t offset, size_t n, float *params,
                                 const float *grad);

/*
 * One training step on x[batch][inputs], y[batch] (class numbers, checked by the
 * caller to be < classes): forward, loss, backward, updates. `batch` is at least 1
 * and at most max_batch. Returns the mean loss.
 */
double fl_net_step(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                   fl_net_update_cb update, void *ctx);

/* A pass forward and backward, for those who need more than a step. */
struct fl_net_pass {
    const float *x;
    const int32_t *y; /* not looked at with soft targets */
    /*
     * [batch][classes], a distribution of classes for each sample: the loss is the cross-entropy
     * towards it. NULL: y.
     */
    const float *target;
    size_t batch;
    bool track; /* move running statistics on; the statistics of the batch count in any case */
};
/* As fl_net_step(), which is such a pass with `track`. */
double fl_net_pass(struct fl_net *net, const struct fl_net_pass *how, fl_net_update_cb update,
                   void *ctx);

/*
 * A direction in which the samples of a batch and the parameters move, and what a pass along it
 * differentiates:
 *
 *     loss * L(x, w) + slope * d/de L_y(x + e direction.x, w + e direction.params) at e = 0
 *
 * L is the mean loss of the pass, L_y the one towards the classes y. So loss 0, slope 1 and params
 * make the product of the Hessian of L_y with params. Derivatives are exact in the sense of
 * reverse-mode differentiation done twice: what the forward pass at (x, w) decides, the side of
 * ReLU (0 belongs to the flat one), the place of a maximum, what dropout leaves out, is frozen; the
 * statistics of batch-norm are not, they are functions of the batch.
 */
struct fl_net_direction {
    const float *x;      /* [batch][inputs]; NULL: samples stay */
    const float *params; /* internal order; NULL: parameters stay. Not both */
    double loss, slope;
};
/*
 * The memory that passes along a direction need, about that of another batch, once and until
 * fl_net_free(). Not in an evaluator. FL_ENOMEM, FL_ECONF.
 */
FL_MUST_CHECK int fl_net_take_tangents(struct fl_net *net, struct fl_err *err);
/*
 * As fl_net_pass(); the update hook gets the gradient of the above. It costs two passes. Returns L;
 * *ret_slope is the derivative of L_y. `how->y` is looked at with soft targets too. The hook may
 * read direction->params and must not write it. After fl_net_take_tangents().
 */
double fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                       const struct fl_net_direction *direction, fl_net_update_cb update, void *ctx,
                       double *ret_slope);
/*
 * Samples that an evaluation takes at a time: 64, or fewer where with their activations they have
 * more than 16 MiB. It depends on the description of the network and on nothing else, max_batch
 * included; so do the bits of an evaluation that is handed in in multiples of it.
 */
size_t fl_net_piece(const struct fl_net *net);
/* Sum of losses and number of correct predictions over `n` samples, any number. */
void fl_net_evaluate(struct fl_net *net, const float *x, const int32_t *y, size_t n,
                     double *ret_loss_sum, size_t *ret_correct);
/*
 * Mean gradient of a batch in internal order, buffers zero, as a step would see it (statistics
 * of the batch, dropout on). Leaves parameters and buffers alone. Returns the mean loss.
 */
double fl_net_gradient(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                       float *grad);

/*
 * For measuring: the network calls `watch` at the end of each part of a pass forward and backward,
 * and the callee reads its own clock. What lies between two calls belongs to the second of them:
 * before the first layer that is work outside the network. `layer` counts from 0 in the order of
 * the description; 0 where it means nothing. A layer that another one does is not reported. NULL,
 * as after fl_net_create(): no calls, and no cost.
 */
enum fl_net_part {
    FL_NET_EXTERNAL, /* the pass begins */
    FL_NET_FORWARD,  /* of a layer; of the first one with the change of the batch's order */
    FL_NET_LOSS,     /* with its gradient */
    FL_NET_BACKWARD, /* of a layer, without what its update hook took */
    FL_NET_UPDATE,   /* the update hook, for one range of a layer */
};
#define FL_NET_PARTS 5
typedef void (*fl_net_watch_cb)(void *ctx, enum fl_net_part part, size_t layer);
void fl_net_watch(struct fl_net *net, fl_net_watch_cb watch, void *ctx);
/* Operations of a layer's forward pass per sample, counted as in fl_net_step_flops(). */
double fl_net_layer_flops(const struct fl_net *net, size_t layer);
/* Layers below it have no gradient. */
size_t fl_net_first(const struct fl_net *net);

#endif
