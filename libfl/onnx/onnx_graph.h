#ifndef FL_ONNX_ONNX_GRAPH_H
#define FL_ONNX_ONNX_GRAPH_H

/*
 * Builds an ONNX graph node by node; private to libfl/onnx. Names and arrays that are passed are
 * copied, numbers of tensors of floats are borrowed until the graph is packed. Memory that runs out
 * is remembered and reported by fl__onnx_pack(), so that building needs no check after each node.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"

#define FL__ONNX_NAME 64

struct fl__onnx;

/* NULL: out of memory. */
struct fl__onnx *fl__onnx_create(const char *name);
void fl__onnx_free(struct fl__onnx *g); /* NULL is allowed. */

/* An input or output of the graph; dimension 0 is the batch. */
void fl__onnx_port(struct fl__onnx *g, bool output, const char *name, const size_t *dims, size_t n);
/* An initializer. Borrows `values`. */
void fl__onnx_floats(struct fl__onnx *g, const char *name, const size_t *dims, size_t n,
                     const float *values);
/*
 * An initializer of zeros, which the caller fills before the graph is packed. NULL: out of memory,
 * which is remembered.
 */
float *fl__onnx_blank(struct fl__onnx *g, const char *name, const size_t *dims, size_t n);
/* One integer. */
void fl__onnx_index(struct fl__onnx *g, const char *name, int64_t value);
void fl__onnx_ints(struct fl__onnx *g, const char *name, const int64_t *values, size_t n);
/* An initializer with `n` times the same number. */
void fl__onnx_repeated(struct fl__onnx *g, const char *name, float value, size_t n);
/* The same for one float that is used under this name, made once. */
void fl__onnx_scalar(struct fl__onnx *g, const char *name, float value);
/* A node of `op` with at most 8 inputs, up to a NULL, and one output. */
void fl__onnx_node(struct fl__onnx *g, const char *op, const char *const *inputs,
                   const char *output);
/* Attributes of the last node. */
void fl__onnx_int(struct fl__onnx *g, const char *name, int64_t value);
void fl__onnx_float(struct fl__onnx *g, const char *name, float value);
void fl__onnx_list(struct fl__onnx *g, const char *name, const int64_t *values, size_t n);

/* Append the model with this graph to `out`. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl__onnx_pack(struct fl__onnx *g, struct fl_buf *out);

#endif
