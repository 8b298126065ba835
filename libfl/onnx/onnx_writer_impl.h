#ifndef FL_ONNX_ONNX_WRITER_IMPL_H
#define FL_ONNX_ONNX_WRITER_IMPL_H

/* What the functions that write a layer have in common; private to libfl/onnx. */

#include "libfl/onnx/onnx_graph.h"
#include "libfl/onnx/onnx_model.h"

struct fl__onnx_writer {
    const struct fl_net_outline *outline;
    const float *params;
    struct fl__onnx *graph;
    char (*views)[FL__ONNX_NAME]; /* [ops + 1]: the names of the views */
    /* Of the op that is being written: */
    const struct fl_net_op *op;
    size_t i;
    const char *x; /* the view that it reads */
    char *y;       /* and that it makes */
    struct fl_err *err;
};

/* The op's n-th tensor. */
static inline const struct fl_tensor *fl__onnx_tensor(const struct fl__onnx_writer *w, size_t n)
{
    return fl_layout_tensor(w->outline->layout, w->op->tensor + n);
}

/* A name for something inside of the op; returns `out`. */
const char *fl__onnx_inner(const struct fl__onnx_writer *w, const char *what,
                           char out[FL__ONNX_NAME]);

/* Layers of sequences (onnx_sequence.c). */
void fl__onnx_attention(struct fl__onnx_writer *w);
void fl__onnx_embedding(struct fl__onnx_writer *w);
void fl__onnx_last(struct fl__onnx_writer *w);
void fl__onnx_lstm(struct fl__onnx_writer *w);

#endif
