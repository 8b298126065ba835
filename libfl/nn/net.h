#ifndef FL_NN_NET_H
#define FL_NN_NET_H

/*
 * Networks: a stack of layers, with residual blocks, over one parameter block, with a loss on top:
 * softmax cross-entropy, or one of values.
 *
 * A network is described by its input dimensions (channels, height, width; or one
 * number for a flat input) and one text per layer:
 *     "dense 200"                             width
 *     "conv 64 3x3 pad 1 stride 1"            channels, kernel; no padding, stride 1 unless given;
 *                                             "groups 8": grouped; "nobias": without bias
 *     "maxpool 2", "maxpool 3 stride 2 same"  window; stride as wide as the window unless given
 *     "avgpool 2", "globalpool"               mean of a window, of each channel (a flat output)
 *     "bn"                                    batch-norm of each channel; see below
 *     "gn 2", "ln"                            group norm; layer norm of the channels of each pixel
 *     "dropout 0.5"                           share of numbers that training sets to 0
 *     "lrn"                                   local response normalisation across channels
 *     "relu", "sigmoid", "tanh", "gelu", "flatten"
 *     "embedding 80 8", "lstm 256", "last"    words and rows; units; the last position (flat)
 *     "attention 4 causal"                    heads; positions see earlier ones alone, or all
 *     "block", "shortcut", "add"              residual block: input plus output
 * (docs/models.md#layers) The last layer is a dense one whose width is the number of classes.
 * Behind it "mse", "mae" or "bce" makes it that of values to be predicted: the loss of a sample is
 * the mean over its values of (z - t)^2, of |z - t|, or of the binary cross-entropy of sigmoid(z)
 * with t. Images are passed channel by channel (channels, height, width), as in PyTorch and
 * libfl/data.
 *
 * Batch-norm trains on the statistics of the batch and evaluates with running ones (momentum 0.1,
 * eps 1e-5, as PyTorch). The running statistics are buffers of the unit of the preceding layer with
 * weights: part of the exported block, updated by fl_net_step(), never passed to the update hook.
 *
 * Two orders of parameters: the exported order (PyTorch's, see libfl/model/layout.h) and the
 * internal order, which the kernels define and which is private to libfl/nn. Solver operands
 * (anchor, control, …) use the internal order: convert them once with fl_net_import(); norms and
 * sums are the same in both.
 *
 * Purity: no clock, no I/O, no threads; random numbers come from a generator or seed of the caller.
 * Memory: fl_net_create() allocates what one batch needs at a time, and fl_net_take_tangents() what
 * JVP passes need; steps and evaluations do not allocate. Threading: a network belongs to one
 * thread.
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
    const struct fl_kernels *kernels; /* kernels; NULL: the fastest of this processor */
};

/* Find a preset (docs/models.md#presets); FL_ENOENT with the known names. Static memory. */
FL_MUST_CHECK int fl_net_preset(const char *name, struct fl_net_spec *ret, struct fl_err *err);
/* Names of the presets, NULL-terminated. */
const char *const *fl_net_presets(void);

struct fl_net;

/*
 * Create a network (returns owned) for at most `max_batch` samples per call. FL_ECONF with the
 * layer ("layer 3 'dense x': …").
 */
FL_MUST_CHECK int fl_net_create(const struct fl_net_spec *spec, size_t max_batch,
                                struct fl_net **ret, struct fl_err *err);
/*
 * Create a network for parameters and evaluation only, without memory for a backward pass.
 * Errors as fl_net_create().
 */
FL_MUST_CHECK int fl_net_create_evaluator(const struct fl_net_spec *spec, struct fl_net **ret,
                                          struct fl_err *err);
void fl_net_free(struct fl_net *net);

/*
 * Sizes in bytes. Activations and their gradients for a batch of max_batch (0 in an evaluator),
 * where buffers that are not needed at the same time share memory, with those of an evaluation
 * too; scratch includes the gradient of one layer. Tangents: 0 before fl_net_take_tangents().
 */
struct fl_net_memory {
    size_t parameters, scratch, training, evaluation, tangents;
    size_t all; /* total, shared memory counted once */
};
struct fl_net_memory fl_net_memory(const struct fl_net *net);

/*
 * Release the working memory of passes and evaluations to the system until the next one needs
 * it; results do not change and parameters stay. Useful before a long pause or when other
 * processes need memory: new pages cost the next step about as much as reading its activations
 * once.
 */
void fl_net_release(struct fl_net *net);

/* Layout in the exported order; owned by the network. */
const struct fl_layout *fl_net_layout(const struct fl_net *net);
size_t fl_net_inputs(const struct fl_net *net);  /* floats of one sample */
size_t fl_net_classes(const struct fl_net *net); /* or values to be predicted */
/* Values to be predicted for a sample; 0: a class is. */
size_t fl_net_values(const struct fl_net *net);
/* True when the inputs are indices (of "embedding"), which no arithmetic means anything for. */
bool fl_net_takes_indices(const struct fl_net *net);
/*
 * Set what a network of values is compared with, [rows][fl_net_values()], before its passes and
 * evaluations. Their `y` is then not a class but the row of each sample, as fl_dataset_gather()
 * returns it for a set with such values. Borrowed until the next call; no effect otherwise.
 */
void fl_net_set_targets(struct fl_net *net, const float *table);
size_t fl_net_max_batch(const struct fl_net *net); /* 0: an evaluator */
/* Floats of an internal block: at least fl_layout_count(); padding is included and zero. */
size_t fl_net_block(const struct fl_net *net);

/*
 * Initialise the parameters: uniform(+-1/sqrt(fan_in)) for weights and biases, batch-norm as the
 * identity.
 */
void fl_net_init(struct fl_net *net, struct fl_rng *rng);
/*
 * The n parameters of a new network of `spec`, initialised from `seed`, in exported order.
 * FL_ESHAPE: that network has another number of parameters; errors of fl_net_create().
 */
FL_MUST_CHECK int fl_net_draw(const struct fl_net_spec *spec, uint64_t seed, float *exported,
                              size_t n, struct fl_err *err);
/*
 * Seed of the random stream of dropout in fl_net_step() and fl_net_gradient(); 0 after
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
 * Update hook, called in the backward pass for each finished contiguous range of the internal
 * block: `params` is fl_net_params() + offset, `grad` the mean gradient of the batch. The callee
 * updates params[0..n). Ranges do not overlap; each trainable entry is passed once per step,
 * buffers never.
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

/* A forward and backward pass with more options than fl_net_step(). */
struct fl_net_pass {
    const float *x;
    const int32_t *y; /* ignored with soft targets */
    /*
     * Soft targets, [batch][classes]: the loss is the cross-entropy with this distribution of
     * classes per sample. NULL: y.
     */
    const float *target;
    size_t batch;
    bool track; /* update running statistics; the batch is always normalised with its own */
};
/* Run a pass; fl_net_step() is a pass with `track`. */
double fl_net_pass(struct fl_net *net, const struct fl_net_pass *how, fl_net_update_cb update,
                   void *ctx);

/*
 * The direction of a JVP pass, for samples and parameters, and its objective:
 *
 *     loss * L(x, w) + slope * d/de L_y(x + e direction.x, w + e direction.params) at e = 0
 *
 * L is the mean loss of the pass, L_y the loss with labels y. With loss 0, slope 1 and params the
 * gradient is the Hessian-vector product of L_y with params. Derivatives are exact as in
 * reverse-mode differentiation applied twice: decisions of the forward pass at (x, w) are frozen
 * (the side of ReLU, where 0 is on the flat side, the position of a maximum, the numbers dropped);
 * the statistics of batch-norm are functions of the batch and are differentiated.
 */
struct fl_net_direction {
    const float *x;      /* [batch][inputs]; NULL: zero */
    const float *params; /* internal order; NULL: zero. Not both NULL */
    double loss, slope;
};
/*
 * Allocate the memory of JVP passes, about that of another batch, once, until fl_net_free(). Not
 * in an evaluator. FL_ENOMEM, FL_ECONF.
 */
FL_MUST_CHECK int fl_net_take_tangents(struct fl_net *net, struct fl_err *err);
/*
 * Run a JVP pass after fl_net_take_tangents(): fl_net_pass() where the update hook gets the
 * gradient of the objective above. Costs two passes. Returns L; *ret_slope is the directional
 * derivative of L_y. `how->y` is used with soft targets too. The hook may read direction->params
 * but must not write it.
 */
double fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                       const struct fl_net_direction *direction, fl_net_update_cb update, void *ctx,
                       double *ret_slope);
/*
 * Samples per piece of an evaluation: 64, or fewer when their activations need more than 16 MiB.
 * It depends only on the description of the network, not on max_batch; so do the bits of an
 * evaluation with a multiple of it.
 */
size_t fl_net_piece(const struct fl_net *net);
/*
 * Sum of losses and number of correct predictions over `n` samples, any number. Of a network with
 * "bce" those with all outputs on the side of their value (0 of sigmoid's argument, 0.5 of the
 * value); with "mse" and "mae" none: the loss is the measure.
 */
void fl_net_evaluate(struct fl_net *net, const float *x, const int32_t *y, size_t n,
                     double *ret_loss_sum, size_t *ret_correct);
/* The logits of `n` samples, [n][ld] with the classes first in each row, and their labels. */
typedef void (*fl_net_logits_cb)(void *ctx, const float *logits, size_t ld, const int32_t *y,
                                 size_t n);
struct fl_net_found {
    double loss_sum;
    size_t correct;
};
/* As fl_net_evaluate(); calls `logits` for all samples, piece by piece. NULL: it is not called. */
struct fl_net_found fl_net_evaluate_logits(struct fl_net *net, const float *x, const int32_t *y,
                                           size_t n, fl_net_logits_cb logits, void *ctx);
/*
 * Compute the mean gradient of a batch in internal order, buffers zero, as in a step (statistics
 * of the batch, dropout on). Does not change parameters and buffers. Returns the mean loss.
 */
double fl_net_gradient(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                       float *grad);

/*
 * For measuring: the network calls `watch` at the end of each phase of a forward and backward
 * pass, and the callee reads its own clock. The time between two calls belongs to the second;
 * before the first layer that is work outside of the network. `layer` counts from 0 in the order
 * of the description; 0 where it has no meaning. Fused layers are not reported. NULL, as after
 * fl_net_create(): no calls, no cost.
 */
enum fl_net_part {
    FL_NET_EXTERNAL, /* the pass begins */
    /* of a layer; of the first one including the conversion of the batch */
    FL_NET_FORWARD,
    FL_NET_LOSS,     /* with its gradient */
    FL_NET_BACKWARD, /* of a layer, without its update hook */
    FL_NET_UPDATE,   /* the update hook, for one range of a layer */
};
#define FL_NET_PARTS 5
typedef void (*fl_net_watch_cb)(void *ctx, enum fl_net_part part, size_t layer);
void fl_net_watch(struct fl_net *net, fl_net_watch_cb watch, void *ctx);
/* Operations of a layer's forward pass per sample: 2 for each use of a weight. */
double fl_net_layer_flops(const struct fl_net *net, size_t layer);
/* Index of the first layer with a gradient. */
size_t fl_net_first(const struct fl_net *net);

#endif
