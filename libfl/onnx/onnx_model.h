#ifndef FL_ONNX_ONNX_MODEL_H
#define FL_ONNX_ONNX_MODEL_H

/*
 * A network of libfl/nn with its parameters as an ONNX model (IR version 8, operators of opset 17),
 * as other programs run it: https://onnx.ai/onnx/operators/. The input "x" is float32 of shape
 * (batch, channels, height, width) or (batch, features), standardised by the caller; the output
 * "logits" (before softmax), or "values" of a network that predicts values (with bce before
 * sigmoid), is (batch, outputs). Evaluation: dropout is left out, batch-norm uses its running
 * statistics.
 *
 * Indices of "embedding" are floats too. Threading: no state.
 */

#include "libfl/base/buf.h"
#include "libfl/nn/outline.h"

/*
 * Append the model to `out`. `params` are the numbers of outline->layout. `name` is that of the
 * graph. FL_EUNIMPL names the layer; FL_ENOMEM, FL_ELIMIT (of `out`).
 */
FL_MUST_CHECK int fl_onnx_model(const struct fl_net_outline *outline, const float *params,
                                const char *name, struct fl_buf *out, struct fl_err *err);

#endif
