/*
 * Convolution algorithm with fewer multiplications (Winograd; kernels and algebra in
 * wino_kern.h, measurements in docs/kernels.md#convolutions). Tiles are processed in blocks. For
 * each packed block of outputs and chunk of channels the weights are transformed again and stay
 * in the L2 cache for the products of all transform points; that costs a few percent of a
 * block's products and avoids storing them: with 36 points they are four times as large as the
 * weights of 3x3. No state; runs on the caller's thread.
 */
#include <string.h>

#include "libfl/num/conv_impl.h"
#include "libfl/num/vec.h"
#include "libfl/num/wino_kern.h"

/*
 * Limit of the floats of V and M in one block, and of its tiles: 64 to 256 tiles are within 5 %
 * of each other on all presets; fewer repeat the weight transforms, more need memory.
 */
#define BLOCK_FLOATS ((size_t)1 << 21)
#define BLOCK_MIN    64
#define BLOCK_MAX    128
/* Minimum factor by which products must decrease: transforms have a cost, too. */
#define MIN_SAVING 1.5

struct work {
    const struct fl_conv *conv;
    const struct fl__wino_kern *kern;
    const struct fl__wino_form *form;
    size_t image; /* tiles of one image */
    size_t block; /* tiles per block */
    size_t n_w;   /* floats per weight row and output: r * r */
    /* Arrays in the scratch; `plane_*` is the stride between transform points. */
    size_t plane_v, plane_m, plane_p;
    float *v; /* [point][tile][c] */
    float *p; /* [point][tile][packed block] */
    float *u; /* [point][FL__DEPTH][packed block] */
    float *t; /* weights of such a chunk: transposed, or their gradient */
    float *m; /* [point][tile][k], backward only */
    /* the gradient of all weights, when it is the sum of several blocks; else NULL */
    float *g;
};

static size_t tiles_jvp(size_t side, size_t m)
{
    return (side + m - 1) / m;
}

static const struct fl__wino_form *form_of(const struct fl_conv *conv)
{
    const struct fl__wino_kern *kern = conv->kernels->wino;

    if (conv->kh == 5) {
        return kern->form[FL__WINO_5X5];
    }
    return kern->form[conv->h == 2 && conv->w == 2 && conv->pad == 1 ? FL__WINO_2X2 : FL__WINO_3X3];
}

static size_t image_tiles(const struct fl_conv *conv, const struct fl__wino_form *form)
{
    return tiles_jvp(conv->oh, form->m) * tiles_jvp(conv->ow, form->m);
}

static bool conv_wino_fits(const struct fl_conv *conv)
{
    const struct fl__wino_form *form;

    if (conv->kernels->wino == NULL || conv->stride != 1 || conv->kh != conv->kw ||
        (conv->kh != 3 && conv->kh != 5) || conv->c % 16 != 0 || conv->k % 16 != 0)
    {
        return false;
    }
    form = form_of(conv);
    return (double)(conv->oh * conv->ow * conv->kh * conv->kw) >=
           MIN_SAVING * (double)(image_tiles(conv, form) * form->points);
}

static size_t conv_wino_packed_width(size_t from, size_t n)
{
    return n - from < FL__PANEL ? n - from : FL__PANEL;
}

static size_t chunk_rows(size_t from, size_t n)
{
    return n - from < FL__DEPTH ? n - from : FL__DEPTH;
}

/* Offset of row `row` of the packed block that begins with output `k`. */
static size_t row_offset(const struct fl_conv *conv, size_t k, size_t row)
{
    return conv->kh * conv->kw * (k * conv->c + row * conv_wino_packed_width(k, conv->k));
}

static size_t conv_wino_place(const struct fl_conv *conv, size_t i)
{
    size_t area = conv->kh * conv->kw;
    size_t k = i / area / conv->c;
    size_t first = k / FL__PANEL * FL__PANEL;

    return row_offset(conv, first, i / area % conv->c) +
           i % area * conv_wino_packed_width(first, conv->k) + k - first;
}

static size_t conv_wino_block_of(const struct fl_conv *conv, const struct fl__wino_form *form,
                                 size_t total)
{
    size_t n = BLOCK_FLOATS / form->points / (conv->c + conv->k);

    n = n < BLOCK_MIN ? BLOCK_MIN : n > BLOCK_MAX ? BLOCK_MAX : n;
    return n < total ? n : total;
}

/* Divide the scratch into arrays; returns its size in floats; `scratch` NULL: only the size. */
static size_t conv_wino_plan(struct work *work, const struct fl_conv *conv, size_t batch,
                             enum fl_conv_use use, float *scratch)
{
    const struct fl__wino_form *form = form_of(conv);
    size_t chunk = FL__DEPTH * FL__PANEL;
    size_t total = batch * image_tiles(conv, form);
    size_t used = 0;
    size_t i;
    bool whole;
    struct {
        float **at;
        size_t n;
    } parts[6];

    *work = (struct work){.conv = conv,
                          .kern = conv->kernels->wino,
                          .form = form,
                          .image = image_tiles(conv, form),
                          .block = conv_wino_block_of(conv, form, total),
                          .n_w = conv->kh * conv->kw};
    whole = use == FL_CONV_JVP || (use == FL_CONV_BACKWARD && total > work->block);
    work->plane_v = work->block * conv->c + 16;
    work->plane_m = work->block * conv->k + 16;
    work->plane_p = work->block * FL__PANEL + 16;
    parts[0].at = &work->v;
    parts[0].n = form->points * work->plane_v;
    parts[1].at = &work->p;
    parts[1].n = form->points * work->plane_p;
    parts[2].at = &work->u;
    parts[2].n = form->points * (chunk + 16);
    parts[3].at = &work->t;
    parts[3].n = use != FL_CONV_FORWARD ? work->n_w * chunk : 0;
    parts[4].at = &work->m;
    parts[4].n = use != FL_CONV_FORWARD ? form->points * work->plane_m : 0;
    parts[5].at = &work->g;
    parts[5].n = whole ? fl_conv_weights(conv) : 0;
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        *parts[i].at = scratch != NULL && parts[i].n > 0 ? scratch + used : NULL;
        used += parts[i].n + 16;
    }
    return used;
}

static size_t conv_wino_scratch_size(const struct fl_conv *conv, size_t batch, enum fl_conv_use use)
{
    struct work work;

    return conv_wino_plan(&work, conv, batch, use, NULL);
}

/* Products of a chunk for all transform points: p (+)= v u, over `n` tiles. */
static void conv_wino_multiply(const struct work *work, const float *v, size_t plane, size_t ldv,
                               size_t n, size_t rows, size_t width, bool add)
{
    size_t i;

    for (i = 0; i < work->form->points; i++) {
        work->kern->nn(work->p + i * work->plane_p, width, v + i * plane, ldv,
                       work->u + i * (rows * width + 16), n, rows, width, add);
    }
}

static void conv_wino_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                              size_t ldx, const float *w, const float *bias, size_t batch,
                              bool relu, float *scratch)
{
    struct work work;
    size_t total, first, k, c;

    (void)conv_wino_plan(&work, conv, batch, FL_CONV_FORWARD, scratch);
    total = batch * work.image;
    for (first = 0; first < total; first += work.block) {
        size_t n = total - first < work.block ? total - first : work.block;

        work.form->input(conv, work.v, work.plane_v, x, ldx, first, n);
        for (k = 0; k < conv->k; k += FL__PANEL) {
            size_t width = conv_wino_packed_width(k, conv->k);

            for (c = 0; c < conv->c; c += FL__DEPTH) {
                size_t rows = chunk_rows(c, conv->c);

                work.form->weights(work.u, w + row_offset(conv, k, c), rows, width);
                conv_wino_multiply(&work, work.v + c, work.plane_v, conv->c, n, rows, width, c > 0);
            }
            work.form->output(conv, y, ldy, work.p, work.plane_p, first, n, k, width, bias + k,
                              relu);
        }
    }
}

/* Add the contribution of tiles first..first+n, whose gradient is in work->m, to dx. */
static void conv_wino_add_data(const struct work *work, const struct fl_conv_backward *io,
                               size_t first, size_t n)
{
    const struct fl_conv *conv = work->conv;
    size_t c, k;

    for (c = 0; c < conv->c; c += FL__PANEL) {
        size_t width = conv_wino_packed_width(c, conv->c);

        for (k = 0; k < conv->k; k += FL__DEPTH) {
            size_t rows = chunk_rows(k, conv->k);

            work->kern->turn(conv, work->t, io->w, k, rows, c, width);
            work->form->weights(work->u, work->t, rows, width);
            conv_wino_multiply(work, work->m + k, work->plane_m, conv->k, n, rows, width, k > 0);
        }
        work->form->scatter(conv, io->dx, io->lddx, work->p, work->plane_p, first, n, c, width);
    }
}

/*
 * The gradient of the weights from `n` tiles in work->v and work->m, added to work->g when
 * `add`. With `last` it is complete and is passed to the update chunk by chunk.
 */
static void conv_wino_add_weights(const struct work *work, const struct fl_conv_backward *io,
                                  size_t n, bool add, bool last)
{
    const struct fl_conv *conv = work->conv;
    size_t k, c, i;

    for (k = 0; k < conv->k; k += FL__PANEL) {
        size_t width = conv_wino_packed_width(k, conv->k);

        for (c = 0; c < conv->c; c += FL__DEPTH) {
            size_t rows = chunk_rows(c, conv->c);
            size_t at = row_offset(conv, k, c);
            size_t n_chunk = rows * work->n_w * width;
            float *g = work->g != NULL ? work->g + at : work->t;

            for (i = 0; i < work->form->points; i++) {
                work->kern->tn(work->u + i * (rows * width + 16), work->v + i * work->plane_v + c,
                               conv->c, work->m + i * work->plane_m + k, conv->k, n, rows, width,
                               /* add= */ false);
            }
            work->form->weights_adjoint(add ? work->t : g, work->u, rows, width);
            if (add) {
                fl_vec_axpy(g, 1.0f, work->t, n_chunk);
            }
            if (last) {
                io->update(io->ctx, at, n_chunk, g);
            }
        }
    }
}

/*
 * Process all tiles: dx if requested in `io`, and the gradient of the weights, of which this is
 * the first part, the last part, or both.
 */
static void backward_pass(const struct work *work, const struct fl_conv_backward *io,
                          bool first_part, bool last_part)
{
    const struct fl_conv *conv = work->conv;
    size_t total = io->batch * work->image;
    size_t first = 0;
    size_t n;

    do {
        n = total - first < work->block ? total - first : work->block;
        work->form->gradient(conv, work->m, work->plane_m, io->dy, io->lddy, first, n);
        if (io->dx != NULL) {
            conv_wino_add_data(work, io, first, n);
        }
        if (io->update != NULL) {
            work->form->input(conv, work->v, work->plane_v, io->x, io->ldx, first, n);
            conv_wino_add_weights(work, io, n, !first_part || first > 0,
                                  last_part && first + n == total);
        }
        first += n;
    } while (first < total);
}

static void conv_wino_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                               float *scratch)
{
    bool second = io->update != NULL && io->rx != NULL;
    struct fl_conv_backward other = *io;
    struct work work;

    (void)conv_wino_plan(&work, conv, io->batch, second ? FL_CONV_JVP : FL_CONV_BACKWARD, scratch);
    if (io->dx != NULL) {
        (void)memset(io->dx, 0, io->batch * io->lddx * sizeof(*io->dx));
    }
    backward_pass(&work, io, /* first_part= */ true, /* last_part= */ !second);
    if (second) {
        other.dx = NULL;
        other.x = io->rx;
        other.dy = io->sy;
        backward_pass(&work, &other, /* first_part= */ false, /* last_part= */ true);
    }
}

const struct fl__conv_algorithm fl__conv_wino = {
    .name = "winograd",
    .fits = conv_wino_fits,
    .place = conv_wino_place,
    .scratch = conv_wino_scratch_size,
    .forward = conv_wino_forward,
    .backward = conv_wino_backward,
};
