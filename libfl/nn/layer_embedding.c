/*
 * "embedding WORDS DIM": a row of DIM weights for each number of a flat input, which is the index
 * of a word; the output is a sequence of as many positions. Numbers outside of 0 to WORDS - 1, and
 * NaN, mean word 0, whatever a data set contains. The first layer of a network: its input has no
 * gradient. Exported and internal order are the same, weight[words][dim]. Runs on the network's
 * thread.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"

#define WORDS_MAX (1 << 20)
#define DIM_MAX   65536

static int embedding_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t words, dim;
    char word[16];
    char last[16];

    if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &words) != FL_OK ||
        words == 0 || words > WORDS_MAX)
    {
        return fl_err_set(err, FL_ECONF, "WORDS must be an integer from 1 to %d", WORDS_MAX);
    }
    if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &dim) != FL_OK ||
        dim == 0 || dim > DIM_MAX || fl__layer_word(&args, last, sizeof(last)))
    {
        return fl_err_set(err, FL_ECONF, "DIM must be an integer from 1 to %d, the last word",
                          DIM_MAX);
    }
    layer->is.table.words = (size_t)words;
    layer->is.table.dim = (size_t)dim;
    return FL_OK;
}

static size_t embedding_count(const struct fl__layer *layer)
{
    return layer->is.table.words * layer->is.table.dim;
}

static int embedding_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    if (!layer->in.flat || layer->in.pixels > 1 || layer->from > 0) {
        return fl_err_set(err, FL_ECONF,
                          "must be the first layer, with a flat input: the indices of words");
    }
    layer->out = (struct fl__shape){.c = layer->is.table.dim, .h = layer->in.c, .w = 1};
    layer->n_scratch = embedding_count(layer);
    return FL_OK;
}

static int embedding_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                            struct fl_err *err)
{
    const size_t dims[2] = {layer->is.table.words, layer->is.table.dim};
    char unit[32];
    char tensor[48];

    layer->tensor = fl_layout_tensors(layout);
    layer->n_block = fl__layer_padded(embedding_count(layer));
    (void)snprintf(unit, sizeof(unit), "embedding%zu", index);
    (void)snprintf(tensor, sizeof(tensor), "embedding%zu.weight", index);
    return fl_layout_add(layout, unit, tensor, dims, 2, false, err);
}

/* Offset of a number's row. */
static size_t embedding_row(const struct fl__layer *layer, float number)
{
    bool inside = number >= 0.0f && number < (float)layer->is.table.words;

    return (inside ? (size_t)number : 0) * layer->is.table.dim;
}

static void embedding_take(const struct fl__layer *layer, const float *table, float *y,
                           const struct fl__io *io, size_t batch)
{
    size_t dim = layer->is.table.dim;
    size_t b, i;

    for (b = 0; b < batch; b++) {
        for (i = 0; i < layer->in.c; i++) {
            (void)memcpy(y + b * io->ldy + i * dim,
                         table + embedding_row(layer, io->x[b * io->ldx + i]), dim * sizeof(*y));
        }
    }
}

static void embedding_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io)
{
    embedding_take(layer, pass->params + layer->offset, io->y, io, pass->batch);
}

static void embedding_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io)
{
    size_t dim = layer->is.table.dim;
    float *grad = pass->scratch;
    size_t b, i, j;

    (void)memset(grad, 0, embedding_count(layer) * sizeof(*grad));
    for (b = 0; b < pass->batch; b++) {
        for (i = 0; i < layer->in.c; i++) {
            float *row = grad + embedding_row(layer, io->x[b * io->ldx + i]);
            const float *dy = io->dy + b * io->ldy + i * dim;

            for (j = 0; j < dim; j++) {
                row[j] += dy[j];
            }
        }
    }
    pass->update(pass->ctx, layer->offset, embedding_count(layer), pass->params + layer->offset,
                 grad);
}

/* An index has no tangent. */
static void embedding_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                  const struct fl__io *io, const struct fl__jvp *along)
{
    if (along->params != NULL) {
        embedding_take(layer, along->params + layer->offset, along->ry, io, pass->batch);
    } else {
        (void)memset(along->ry, 0, pass->batch * io->ldy * sizeof(float));
    }
}

static void embedding_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                   const struct fl__io *io, const struct fl__jvp *along)
{
    (void)along;
    embedding_backward(layer, pass, io);
}

static struct fl__needs embedding_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = true};
}

/* PyTorch's default. */
static void embedding_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    size_t i;

    for (i = 0; i < embedding_count(layer); i++) {
        internal[layer->offset + i] = (float)fl_rng_normal(rng);
    }
}

static void embedding_import(const struct fl__layer *layer, const struct fl_layout *layout,
                             float *internal, const float *exported)
{
    (void)memcpy(internal + layer->offset, exported + fl__layer_tensor(layer, layout, 0),
                 embedding_count(layer) * sizeof(*internal));
}

static void embedding_export(const struct fl__layer *layer, const struct fl_layout *layout,
                             float *exported, const float *internal)
{
    (void)memcpy(exported + fl__layer_tensor(layer, layout, 0), internal + layer->offset,
                 embedding_count(layer) * sizeof(*exported));
}

const struct fl__layer_ops fl__layer_embedding = {
    .word = "embedding",
    .usage = "embedding WORDS DIM",
    .parse = embedding_parse,
    .shape = embedding_shape,
    .params = embedding_params,
    .needs = embedding_needs,
    .forward = embedding_forward,
    .backward = embedding_backward,
    .forward_jvp = embedding_forward_jvp,
    .backward_jvp = embedding_backward_jvp,
    .init = embedding_init,
    .import = embedding_import,
    .export = embedding_export,
};
