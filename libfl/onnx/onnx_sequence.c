/*
 * The layers of sequences as operators of ONNX: embedding, LSTM, its last position and attention. A
 * sequence is an image of one column, (batch, channels, positions, 1), between two layers, and is
 * transposed to the order that an operator has. Pure.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/onnx/onnx_writer_impl.h"

/* Of the words below inside of an op, with an ending. */
#define WORD_SIZE 32

const char *fl__onnx_inner(const struct fl__onnx_writer *w, const char *what,
                           char out[FL__ONNX_NAME])
{
    (void)snprintf(out, FL__ONNX_NAME, "%s%zu.%s", w->op->word, w->i + 1, what);
    return out;
}

/* A node inside of the op that makes `to` (a word of it) from `from`; `to` becomes the name. */
static const char *onnx_step(struct fl__onnx_writer *w, const char *op, const char *from,
                             const char *with, const char *what, char to[FL__ONNX_NAME])
{
    fl__onnx_node(w->graph, op, (const char *const[]){from, with, NULL},
                  fl__onnx_inner(w, what, to));
    return to;
}

static const char *onnx_transposed(struct fl__onnx_writer *w, const char *from,
                                   const int64_t *order, size_t n, const char *what,
                                   char to[FL__ONNX_NAME])
{
    (void)onnx_step(w, "Transpose", from, NULL, what, to);
    fl__onnx_list(w->graph, "perm", order, n);
    return to;
}

/* 0 keeps a dimension, -1 is what is left. */
static const char *onnx_reshaped(struct fl__onnx_writer *w, const char *from, const int64_t *shape,
                                 size_t n, const char *what, char to[FL__ONNX_NAME])
{
    char name[WORD_SIZE];
    char dims[FL__ONNX_NAME];

    (void)snprintf(name, sizeof(name), "%s.shape", what);
    fl__onnx_ints(w->graph, fl__onnx_inner(w, name, dims), shape, n);
    return onnx_step(w, "Reshape", from, dims, what, to);
}

/* The input as (batch, channels, positions). */
static const char *onnx_positions(struct fl__onnx_writer *w, char to[FL__ONNX_NAME])
{
    const int64_t shape[3] = {0, (int64_t)w->op->in.c, -1};

    return onnx_reshaped(w, w->x, shape, 3, "positions", to);
}

/*
 * Rows of the table. The input has floats: a number that is outside of the table, and NaN, means
 * word 0, as in the layer; Cast cuts a fraction off.
 */
void fl__onnx_embedding(struct fl__onnx_writer *w)
{
    const struct fl_tensor *table = fl__onnx_tensor(w, 0);
    const int64_t shape[4] = {0, (int64_t)w->op->out.c, (int64_t)w->op->out.h, 1};
    char zero[FL__ONNX_NAME], words[FL__ONNX_NAME], low[FL__ONNX_NAME], high[FL__ONNX_NAME];
    char both[FL__ONNX_NAME], known[FL__ONNX_NAME], indices[FL__ONNX_NAME], rows[FL__ONNX_NAME];
    char turned[FL__ONNX_NAME], dims[FL__ONNX_NAME];

    fl__onnx_scalar(w->graph, fl__onnx_inner(w, "zero", zero), 0.0F);
    fl__onnx_scalar(w->graph, fl__onnx_inner(w, "words", words), (float)table->dims[0]);
    (void)onnx_step(w, "GreaterOrEqual", w->x, zero, "low", low);
    (void)onnx_step(w, "Less", w->x, words, "high", high);
    (void)onnx_step(w, "And", low, high, "both", both);
    fl__onnx_node(w->graph, "Where", (const char *const[]){both, w->x, zero, NULL},
                  fl__onnx_inner(w, "known", known));
    (void)onnx_step(w, "Cast", known, NULL, "indices", indices);
    fl__onnx_int(w->graph, "to", 7); /* INT64 */
    fl__onnx_floats(w->graph, table->name, table->dims, 2, w->params + table->offset);
    (void)onnx_step(w, "Gather", table->name, indices, "rows", rows);
    fl__onnx_int(w->graph, "axis", 0);
    (void)onnx_transposed(w, rows, (const int64_t[]){0, 2, 1}, 3, "turned", turned);
    fl__onnx_ints(w->graph, fl__onnx_inner(w, "shape", dims), shape, 4);
    fl__onnx_node(w->graph, "Reshape", (const char *const[]){turned, dims, NULL}, w->y);
}

/*
 * A tensor of an LSTM with its four parts of `units` rows in the order of ONNX (i, o, f, g) instead
 * of PyTorch's (i, f, g, o).
 */
static void onnx_gates(const struct fl__onnx_writer *w, size_t n, float *to, size_t units)
{
    static const size_t order[4] = {0, 3, 1, 2};
    const struct fl_tensor *t = fl__onnx_tensor(w, n);
    size_t part = t->count / 4;
    size_t i;

    FL_REQUIRE(t->dims[0] == 4 * units);
    for (i = 0; i < 4; i++) {
        (void)memcpy(to + i * part, w->params + t->offset + order[i] * part, part * sizeof(*to));
    }
}

void fl__onnx_lstm(struct fl__onnx_writer *w)
{
    size_t units = w->op->out.c;
    const size_t w_x[3] = {1, 4 * units, w->op->in.c}, w_h[3] = {1, 4 * units, units};
    const size_t bias[2] = {1, 8 * units};
    char positions[FL__ONNX_NAME], steps[FL__ONNX_NAME], hidden[FL__ONNX_NAME];
    char names[3][FL__ONNX_NAME];
    float *values[3];
    size_t i;

    (void)onnx_transposed(w, onnx_positions(w, positions), (const int64_t[]){2, 0, 1}, 3, "steps",
                          steps);
    values[0] = fl__onnx_blank(w->graph, fl__onnx_inner(w, "W", names[0]), w_x, 3);
    values[1] = fl__onnx_blank(w->graph, fl__onnx_inner(w, "R", names[1]), w_h, 3);
    /* ONNX has two biases; the second stays zero. */
    values[2] = fl__onnx_blank(w->graph, fl__onnx_inner(w, "B", names[2]), bias, 2);
    for (i = 0; i < 3; i++) {
        if (values[i] != NULL) {
            onnx_gates(w, i, values[i], units);
        }
    }
    fl__onnx_node(w->graph, "LSTM",
                  (const char *const[]){steps, names[0], names[1], names[2], NULL},
                  fl__onnx_inner(w, "hidden", hidden));
    fl__onnx_int(w->graph, "hidden_size", (int64_t)units);
    /* (positions, 1, batch, units) -> (batch, units, positions, 1) */
    fl__onnx_node(w->graph, "Transpose", (const char *const[]){hidden, NULL}, w->y);
    fl__onnx_list(w->graph, "perm", (const int64_t[]){2, 3, 0, 1}, 4);
}

void fl__onnx_last(struct fl__onnx_writer *w)
{
    char positions[FL__ONNX_NAME], end[FL__ONNX_NAME];

    fl__onnx_index(w->graph, fl__onnx_inner(w, "end", end), -1);
    fl__onnx_node(w->graph, "Gather",
                  (const char *const[]){onnx_positions(w, positions), end, NULL}, w->y);
    fl__onnx_int(w->graph, "axis", 2);
}

/* from W^T + b with the op's tensors `n` and `n` + 1. */
static const char *onnx_linear(struct fl__onnx_writer *w, const char *from, size_t n,
                               const char *what, char to[FL__ONNX_NAME])
{
    const struct fl_tensor *weight = fl__onnx_tensor(w, n);
    const struct fl_tensor *bias = fl__onnx_tensor(w, n + 1);
    char name[WORD_SIZE], turned[FL__ONNX_NAME], product[FL__ONNX_NAME];

    fl__onnx_floats(w->graph, weight->name, weight->dims, 2, w->params + weight->offset);
    fl__onnx_floats(w->graph, bias->name, bias->dims, 1, w->params + bias->offset);
    (void)snprintf(name, sizeof(name), "%s.weight", what);
    (void)onnx_transposed(w, weight->name, (const int64_t[]){1, 0}, 2, name, turned);
    (void)snprintf(name, sizeof(name), "%s.product", what);
    (void)onnx_step(w, "MatMul", from, turned, name, product);
    return onnx_step(w, "Add", product, bias->name, what, to);
}

/* Scores without those of later positions: -inf is added to them. */
static const char *onnx_masked(struct fl__onnx_writer *w, const char *scores,
                               char to[FL__ONNX_NAME])
{
    size_t n = w->op->in.h * w->op->in.w;
    const size_t dims[2] = {n, n};
    char name[FL__ONNX_NAME];
    float *mask = fl__onnx_blank(w->graph, fl__onnx_inner(w, "mask", name), dims, 2);
    size_t i, j;

    for (i = 0; mask != NULL && i < n; i++) {
        for (j = i + 1; j < n; j++) {
            mask[i * n + j] = -INFINITY;
        }
    }
    return onnx_step(w, "Add", scores, name, "masked", to);
}

/* Softmax of the scaled products of q and k, (batch, heads, positions, positions). */
static const char *onnx_shares(struct fl__onnx_writer *w, const char *q, const char *k,
                               char to[FL__ONNX_NAME])
{
    double part = (double)(w->op->in.c / w->op->heads);
    char turned[FL__ONNX_NAME], products[FL__ONNX_NAME], scale[FL__ONNX_NAME];
    char scores[FL__ONNX_NAME], masked[FL__ONNX_NAME];
    const char *from = scores;

    (void)onnx_transposed(w, k, (const int64_t[]){0, 1, 3, 2}, 4, "turned", turned);
    (void)onnx_step(w, "MatMul", q, turned, "products", products);
    fl__onnx_scalar(w->graph, fl__onnx_inner(w, "scale", scale), (float)(1.0 / sqrt(part)));
    (void)onnx_step(w, "Mul", products, scale, "scores", scores);
    if (w->op->causal) {
        from = onnx_masked(w, scores, masked);
    }
    (void)onnx_step(w, "Softmax", from, NULL, "shares", to);
    fl__onnx_int(w->graph, "axis", -1);
    return to;
}

void fl__onnx_attention(struct fl__onnx_writer *w)
{
    const struct fl_net_op *op = w->op;
    int64_t d = (int64_t)op->in.c;
    int64_t heads = (int64_t)op->heads;
    const int64_t split[5] = {0, -1, 3, heads, d / heads};
    const int64_t back[4] = {0, d, (int64_t)op->in.h, (int64_t)op->in.w};
    static const char *const words[3] = {"q", "k", "v"};
    char a[FL__ONNX_NAME], b[FL__ONNX_NAME], c[FL__ONNX_NAME], parts[FL__ONNX_NAME];
    char qkv[3][FL__ONNX_NAME], shares[FL__ONNX_NAME];
    size_t i;

    /* (batch, positions, 3 d) -> (3, batch, heads, positions, d / heads) */
    (void)onnx_transposed(w, onnx_positions(w, a), (const int64_t[]){0, 2, 1}, 3, "rows", b);
    (void)onnx_linear(w, b, 0, "in", c);
    (void)onnx_reshaped(w, c, split, 5, "split", a);
    (void)onnx_transposed(w, a, (const int64_t[]){2, 0, 3, 1, 4}, 5, "parts", parts);
    for (i = 0; i < 3; i++) {
        char name[WORD_SIZE], index[FL__ONNX_NAME];

        (void)snprintf(name, sizeof(name), "%s.index", words[i]);
        fl__onnx_index(w->graph, fl__onnx_inner(w, name, index), (int64_t)i);
        (void)onnx_step(w, "Gather", parts, index, words[i], qkv[i]);
        fl__onnx_int(w->graph, "axis", 0);
    }
    (void)onnx_shares(w, qkv[0], qkv[1], shares);
    (void)onnx_step(w, "MatMul", shares, qkv[2], "heads", a);
    (void)onnx_transposed(w, a, (const int64_t[]){0, 2, 1, 3}, 4, "together", b);
    (void)onnx_reshaped(w, b, (const int64_t[]){0, -1, d}, 3, "seen", a);
    (void)onnx_linear(w, a, 2, "out", b);
    (void)onnx_transposed(w, b, (const int64_t[]){0, 2, 1}, 3, "channels", c);
    fl__onnx_ints(w->graph, fl__onnx_inner(w, "shape", a), back, 4);
    fl__onnx_node(w->graph, "Reshape", (const char *const[]){c, a, NULL}, w->y);
}
