/*
 * The layers of a network as operators of ONNX (onnx_model.h), a function for each kind. Weights
 * are in PyTorch's order, which ONNX has too. Pure.
 */
#include "libfl/onnx/onnx_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/group_norm.h"
#include "libfl/num/norm.h"
#include "libfl/onnx/onnx_writer_impl.h"

/* The name of the op's tensor `n`, which becomes an initializer of shape `dims`. */
static const char *onnx_weight_as(struct fl__onnx_writer *w, size_t n, const size_t *dims,
                                  size_t n_dims)
{
    const struct fl_tensor *t = fl__onnx_tensor(w, n);

    fl__onnx_floats(w->graph, t->name, dims, n_dims, w->params + t->offset);
    return t->name;
}

static const char *onnx_weight(struct fl__onnx_writer *w, size_t n)
{
    const struct fl_tensor *t = fl__onnx_tensor(w, n);

    return onnx_weight_as(w, n, t->dims, t->n_dims);
}

static void onnx_unary(struct fl__onnx_writer *w, const char *operator)
{
    fl__onnx_node(w->graph, operator,(const char *const[]){w->x, NULL}, w->y);
}

static void onnx_dense(struct fl__onnx_writer *w)
{
    const char *weight = onnx_weight(w, 0);

    fl__onnx_node(w->graph, "Gemm", (const char *const[]){w->x, weight, onnx_weight(w, 1), NULL},
                  w->y);
    fl__onnx_int(w->graph, "transB", 1);
}

/* Window, stride and padding, as convolutions and pools have them. */
static void onnx_window(const struct fl__onnx_writer *w)
{
    const struct fl_net_op *op = w->op;

    fl__onnx_list(w->graph, "kernel_shape", (const int64_t[]){(int64_t)op->kh, (int64_t)op->kw}, 2);
    fl__onnx_list(w->graph, "strides", (const int64_t[]){(int64_t)op->stride, (int64_t)op->stride},
                  2);
    fl__onnx_list(w->graph, "pads",
                  (const int64_t[]){(int64_t)op->top, (int64_t)op->left, (int64_t)op->bottom,
                                    (int64_t)op->right},
                  4);
}

static void onnx_conv(struct fl__onnx_writer *w)
{
    const char *weight = onnx_weight(w, 0);
    const char *bias = w->op->bias ? onnx_weight(w, 1) : NULL;

    fl__onnx_node(w->graph, "Conv", (const char *const[]){w->x, weight, bias, NULL}, w->y);
    onnx_window(w);
    fl__onnx_int(w->graph, "group", (int64_t)w->op->groups);
}

static void onnx_maxpool(struct fl__onnx_writer *w)
{
    onnx_unary(w, "MaxPool");
    onnx_window(w);
}

static void onnx_avgpool(struct fl__onnx_writer *w)
{
    onnx_unary(w, "AveragePool");
    onnx_window(w);
}

static void onnx_globalpool(struct fl__onnx_writer *w)
{
    char mean[FL__ONNX_NAME];

    fl__onnx_node(w->graph, "GlobalAveragePool", (const char *const[]){w->x, NULL},
                  fl__onnx_inner(w, "mean", mean));
    fl__onnx_node(w->graph, "Flatten", (const char *const[]){mean, NULL}, w->y);
}

static void onnx_flatten(struct fl__onnx_writer *w)
{
    onnx_unary(w, w->op->in.flat ? "Identity" : "Flatten");
}

static void onnx_bn(struct fl__onnx_writer *w)
{
    const char *names[4];
    size_t i;

    for (i = 0; i < 4; i++) { /* weight, bias, mean, variance */
        names[i] = onnx_weight(w, i);
    }
    fl__onnx_node(w->graph, "BatchNormalization",
                  (const char *const[]){w->x, names[0], names[1], names[2], names[3], NULL}, w->y);
    fl__onnx_float(w->graph, "epsilon", (float)FL_BN_EPS);
}

/*
 * Group normalisation as instance normalisation of its groups (GroupNormalization itself is younger
 * than most programs): (n, c, h, w) -> (n, groups, rest), normalised without scale, and back.
 */
static void onnx_gn(struct fl__onnx_writer *w)
{
    const struct fl_net_op *op = w->op;
    const size_t scale[3] = {op->in.c, 1, 1};
    const int64_t back[4] = {0, (int64_t)op->in.c, (int64_t)op->in.h, (int64_t)op->in.w};
    size_t rank = op->in.flat ? 1 : 3;
    char shape[FL__ONNX_NAME], parts[FL__ONNX_NAME], one[FL__ONNX_NAME], zero[FL__ONNX_NAME];
    char normal[FL__ONNX_NAME], image[FL__ONNX_NAME], whole[FL__ONNX_NAME], scaled[FL__ONNX_NAME];

    fl__onnx_ints(w->graph, fl__onnx_inner(w, "groups", shape),
                  (const int64_t[]){0, (int64_t)op->groups, -1}, 3);
    fl__onnx_node(w->graph, "Reshape", (const char *const[]){w->x, shape, NULL},
                  fl__onnx_inner(w, "parts", parts));
    fl__onnx_repeated(w->graph, fl__onnx_inner(w, "one", one), 1.0F, op->groups);
    fl__onnx_repeated(w->graph, fl__onnx_inner(w, "zero", zero), 0.0F, op->groups);
    fl__onnx_node(w->graph, "InstanceNormalization", (const char *const[]){parts, one, zero, NULL},
                  fl__onnx_inner(w, "normal", normal));
    fl__onnx_float(w->graph, "epsilon", (float)FL_GN_EPS);
    fl__onnx_ints(w->graph, fl__onnx_inner(w, "shape", whole), back, 1 + rank);
    fl__onnx_node(w->graph, "Reshape", (const char *const[]){normal, whole, NULL},
                  fl__onnx_inner(w, "image", image));
    fl__onnx_node(w->graph, "Mul",
                  (const char *const[]){image, onnx_weight_as(w, 0, scale, rank), NULL},
                  fl__onnx_inner(w, "scaled", scaled));
    fl__onnx_node(w->graph, "Add",
                  (const char *const[]){scaled, onnx_weight_as(w, 1, scale, rank), NULL}, w->y);
}

/* Of the channels of each pixel: they are brought to the end, and back. */
static void onnx_ln(struct fl__onnx_writer *w)
{
    bool flat = w->op->in.flat;
    const char *weight = onnx_weight(w, 0);
    const char *bias = onnx_weight(w, 1);
    char last[FL__ONNX_NAME];
    char normal[FL__ONNX_NAME];

    if (!flat) {
        fl__onnx_node(w->graph, "Transpose", (const char *const[]){w->x, NULL},
                      fl__onnx_inner(w, "last", last));
        fl__onnx_list(w->graph, "perm", (const int64_t[]){0, 2, 3, 1}, 4);
    }
    fl__onnx_node(w->graph, "LayerNormalization",
                  (const char *const[]){flat ? w->x : last, weight, bias, NULL},
                  flat ? w->y : fl__onnx_inner(w, "normal", normal));
    fl__onnx_int(w->graph, "axis", -1);
    fl__onnx_float(w->graph, "epsilon", (float)FL_GN_EPS);
    if (!flat) {
        fl__onnx_node(w->graph, "Transpose", (const char *const[]){normal, NULL}, w->y);
        fl__onnx_list(w->graph, "perm", (const int64_t[]){0, 3, 1, 2}, 4);
    }
}

/* TensorFlow's constants (libfl/num/norm.h); ONNX divides alpha by the size. */
static void onnx_lrn(struct fl__onnx_writer *w)
{
    onnx_unary(w, "LRN");
    fl__onnx_int(w->graph, "size", 9);
    fl__onnx_float(w->graph, "alpha", 0.001F);
    fl__onnx_float(w->graph, "beta", 0.75F);
    fl__onnx_float(w->graph, "bias", 1.0F);
}

/* x * 0.5 * (1 + erf(x / sqrt(2))): the operator Gelu is younger than most programs. */
static void onnx_gelu(struct fl__onnx_writer *w)
{
    char part[FL__ONNX_NAME], erf_of[FL__ONNX_NAME], sum[FL__ONNX_NAME], product[FL__ONNX_NAME];

    fl__onnx_scalar(w->graph, "sqrt_half", (float)sqrt(0.5));
    fl__onnx_scalar(w->graph, "one", 1.0F);
    fl__onnx_scalar(w->graph, "half", 0.5F);
    fl__onnx_node(w->graph, "Mul", (const char *const[]){w->x, "sqrt_half", NULL},
                  fl__onnx_inner(w, "part", part));
    fl__onnx_node(w->graph, "Erf", (const char *const[]){part, NULL},
                  fl__onnx_inner(w, "erf", erf_of));
    fl__onnx_node(w->graph, "Add", (const char *const[]){erf_of, "one", NULL},
                  fl__onnx_inner(w, "sum", sum));
    fl__onnx_node(w->graph, "Mul", (const char *const[]){w->x, sum, NULL},
                  fl__onnx_inner(w, "product", product));
    fl__onnx_node(w->graph, "Mul", (const char *const[]){product, "half", NULL}, w->y);
}

static void onnx_relu(struct fl__onnx_writer *w)
{
    onnx_unary(w, "Relu");
}

static void onnx_sigmoid(struct fl__onnx_writer *w)
{
    onnx_unary(w, "Sigmoid");
}

static void onnx_tanh(struct fl__onnx_writer *w)
{
    onnx_unary(w, "Tanh");
}

static void onnx_add(struct fl__onnx_writer *w)
{
    fl__onnx_node(w->graph, "Add", (const char *const[]){w->x, w->views[w->op->also], NULL}, w->y);
}

static const struct {
    const char *word;
    void (*write)(struct fl__onnx_writer *w); /* NULL: the output is the input */
} onnx_kinds[] = {
    {"add", onnx_add},
    {"attention", fl__onnx_attention},
    {"avgpool", onnx_avgpool},
    {"block", NULL},
    {"bn", onnx_bn},
    {"conv", onnx_conv},
    {"dense", onnx_dense},
    {"dropout", NULL},
    {"embedding", fl__onnx_embedding},
    {"flatten", onnx_flatten},
    {"gelu", onnx_gelu},
    {"globalpool", onnx_globalpool},
    {"gn", onnx_gn},
    {"last", fl__onnx_last},
    {"ln", onnx_ln},
    {"lrn", onnx_lrn},
    {"lstm", fl__onnx_lstm},
    {"maxpool", onnx_maxpool},
    {"relu", onnx_relu},
    {"shortcut", NULL},
    {"sigmoid", onnx_sigmoid},
    {"tanh", onnx_tanh},
};
#define N_KINDS (sizeof(onnx_kinds) / sizeof(onnx_kinds[0]))

static int onnx_write_op(struct fl__onnx_writer *w, size_t i)
{
    const struct fl_net_op *op = &w->outline->ops[i];
    bool last = i + 1 == w->outline->n_ops;
    size_t k;

    for (k = 0; k < N_KINDS && strcmp(onnx_kinds[k].word, op->word) != 0; k++) {
    }
    if (k == N_KINDS) {
        return fl_err_set(w->err, FL_EUNIMPL,
                          "layer %zu '%s' cannot be exported as ONNX: export safetensors instead",
                          i + 1, op->word);
    }
    if (onnx_kinds[k].write == NULL) {
        (void)memcpy(w->views[i + 1], w->views[op->from], FL__ONNX_NAME);
        return FL_OK;
    }
    w->op = op;
    w->i = i;
    w->x = w->views[op->from];
    w->y = w->views[i + 1];
    if (last) {
        (void)snprintf(w->y, FL__ONNX_NAME, "%s", w->outline->values > 0 ? "values" : "logits");
    } else {
        (void)snprintf(w->y, FL__ONNX_NAME, "%s%zu", op->word, i + 1);
    }
    onnx_kinds[k].write(w);
    return FL_OK;
}

static int onnx_write_graph(struct fl__onnx_writer *w)
{
    const struct fl_net_outline *o = w->outline;
    const size_t input[3] = {o->input.c, o->input.h, o->input.w};
    const struct fl_net_shape *out = &o->ops[o->n_ops - 1].out;
    size_t i;
    int rv;

    (void)snprintf(w->views[0], FL__ONNX_NAME, "x");
    fl__onnx_port(w->graph, /* output= */ false, "x", input, o->input.flat ? 1 : 3);
    for (i = 0; i < o->n_ops; i++) {
        rv = onnx_write_op(w, i);
        if (rv != FL_OK) {
            return rv;
        }
    }
    fl__onnx_port(w->graph, /* output= */ true, w->views[o->n_ops], &out->c, 1);
    return FL_OK;
}

int fl_onnx_model(const struct fl_net_outline *outline, const float *params, const char *name,
                  struct fl_buf *out, struct fl_err *err)
{
    struct fl__onnx_writer w = {.outline = outline, .params = params, .err = err};
    int rv;

    w.graph = fl__onnx_create(name);
    w.views = calloc(outline->n_ops + 1, sizeof(*w.views));
    if (w.graph == NULL || w.views == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto done;
    }
    rv = onnx_write_graph(&w);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__onnx_pack(w.graph, out);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "the model as ONNX: %s", fl_strerror(rv));
    }
done:
    fl__onnx_free(w.graph);
    free(w.views);
    return rv;
}
