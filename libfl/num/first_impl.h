#ifndef FL_NUM_FIRST_IMPL_H
#define FL_NUM_FIRST_IMPL_H

/*
 * The kernels of first_kern.h, written once with vectors of FL__LANES floats (lanes_impl.h).
 *
 * Blocks of ROWS pixels of y (of ROWS weights, for the gradient) and COLS vectors of outputs are
 * kept in registers; each step reads COLS vectors and ROWS single numbers of the image.
 */

#include <stddef.h>

#include "libfl/num/first_kern.h"
#include "libfl/num/lanes_impl.h"

#define ROWS 6
#if FL__LANES == 16
#define COLS 4
#else
#define COLS 2
#endif

/*
 * Pixels whose gradient is summed before it is added to the total: their dy stays in the L1
 * cache while all weights are processed, and sums of sums have smaller rounding errors.
 */
#define STRIP 64

/* Floats of a row of the padded image, and of a row of the kernel. */
INLINE size_t image_row(const struct fl_conv *conv)
{
    return (conv->w + 2 * conv->pad) * conv->c;
}

INLINE size_t kernel_row(const struct fl_conv *conv)
{
    return conv->kw * conv->c;
}

/* `rows` pixels of y, `cols` vectors of outputs; image[r] is the start of the patch of pixel r. */
INLINE void forward_block(size_t rows, size_t cols, const struct fl_conv *conv, float *y,
                          const float *const *image, const float *w, const float *bias, bool relu)
{
    size_t run = kernel_row(conv);
    size_t skip = image_row(conv);
    vec acc[ROWS][COLS];
    size_t r, j, i, t;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = load(bias + j * FL__LANES);
        }
    }
    for (i = 0; i < conv->kh; i++) {
        for (t = i * skip; t < i * skip + run; t++) {
            vec row[COLS];

            UNROLL for (j = 0; j < cols; j++)
            {
                row[j] = load(w + j * FL__LANES);
            }
            w += conv->k;
            UNROLL for (r = 0; r < rows; r++)
            {
                vec a = broadcast(image[r][t]);

                UNROLL for (j = 0; j < cols; j++)
                {
                    acc[r][j] += a * row[j];
                }
            }
        }
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            store(y + r * conv->k + j * FL__LANES, relu ? relu_of(acc[r][j]) : acc[r][j]);
        }
    }
}

/* Iterator over the pixels of y: the start of the patch of the next pixel. */
struct walk {
    const float *at;
    size_t left; /* pixels of this row */
};

INLINE const float *next_pixel(const struct fl_conv *conv, struct walk *walk)
{
    const float *at = walk->at;

    walk->at += conv->c;
    walk->left--;
    if (walk->left == 0) {
        walk->at += (conv->w + 2 * conv->pad - conv->ow) * conv->c;
        walk->left = conv->ow;
    }
    return at;
}

/* Number of vectors of outputs in the block that begins at output k: at most COLS. */
INLINE size_t cols_from(const struct fl_conv *conv, size_t k)
{
    size_t left = (conv->k - k) / FL__LANES;

    return left < COLS ? left : COLS;
}

/* `rows` pixels of y with all their outputs. */
INLINE void forward_rows(size_t rows, const struct fl_conv *conv, float *y,
                         const float *const *image, const float *w, const float *bias, bool relu)
{
    size_t k = 0;

    while (k < conv->k) {
        size_t cols = cols_from(conv, k);

        switch (cols) {
#if COLS == 4
        case 4:
            forward_block(rows, 4, conv, y + k, image, w + k, bias + k, relu);
            break;
        case 3:
            forward_block(rows, 3, conv, y + k, image, w + k, bias + k, relu);
            break;
        case 1:
            forward_block(rows, 1, conv, y + k, image, w + k, bias + k, relu);
            break;
#endif
        default: /* the only other value: outputs are multiples of 16 */
            forward_block(rows, 2, conv, y + k, image, w + k, bias + k, relu);
            break;
        }
        k += cols * FL__LANES;
    }
}

static void first_kern_forward(const struct fl_conv *conv, float *y, const float *image,
                               const float *w, const float *bias, bool relu)
{
    struct walk walk = {.at = image, .left = conv->ow};
    size_t pixels = conv->oh * conv->ow;
    const float *patch[ROWS];
    size_t r;

    for (; pixels >= ROWS; pixels -= ROWS) {
        UNROLL for (r = 0; r < ROWS; r++)
        {
            patch[r] = next_pixel(conv, &walk);
        }
        forward_rows(ROWS, conv, y, patch, w, bias, relu);
        y += ROWS * conv->k;
    }
    for (; pixels > 0; pixels--) {
        patch[0] = next_pixel(conv, &walk);
        forward_rows(1, conv, y, patch, w, bias, relu);
        y += conv->k;
    }
}

/* A run of consecutive pixels of y. */
struct strip {
    const float *dy;  /* dy of the first pixel */
    struct walk walk; /* iterator at the first pixel */
    size_t pixels;
    size_t next; /* pixels of the next strip */
};

/*
 * g of `rows` weights and `cols` vectors of outputs; of[r] is the offset of weight r in a patch
 * of the image.
 */
INLINE void weights_block(size_t rows, size_t cols, const struct fl_conv *conv, float *g,
                          const size_t *of, const struct strip *strip, size_t k)
{
    vec acc[ROWS][COLS];
    const float *dy = strip->dy + k;
    const float *x = strip->walk.at;
    size_t pixels = strip->pixels;
    size_t left = strip->walk.left;
    size_t r, j;

    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            acc[r][j] = (vec){0};
        }
    }
    while (pixels > 0) {
        size_t n = pixels < left ? pixels : left;
        const float *end = x + n * conv->c;

        for (; x < end; x += conv->c) {
            vec d[COLS];

            UNROLL for (j = 0; j < cols; j++)
            {
                d[j] = load(dy + j * FL__LANES);
            }
            dy += conv->k;
            UNROLL for (r = 0; r < rows; r++)
            {
                vec a = broadcast(x[of[r]]);

                UNROLL for (j = 0; j < cols; j++)
                {
                    acc[r][j] += a * d[j];
                }
            }
        }
        pixels -= n;
        left = conv->ow;
        x += (conv->w + 2 * conv->pad - conv->ow) * conv->c;
    }
    UNROLL for (r = 0; r < rows; r++)
    {
        UNROLL for (j = 0; j < cols; j++)
        {
            float *to = g + k + r * conv->k + j * FL__LANES;

            store(to, load(to) + acc[r][j]);
        }
    }
}

/*
 * The blocks are separate functions: when they are inlined into one caller, their pointers do
 * not fit into registers, which costs a quarter of the speed.
 */
typedef void weights_fn(const struct fl_conv *conv, float *g, const size_t *of,
                        const struct strip *strip, size_t k);

#define WEIGHTS_FN(rows, cols)                                                                  \
    static void weights_##rows##x##cols(const struct fl_conv *conv, float *g, const size_t *of, \
                                        const struct strip *strip, size_t k)                    \
    {                                                                                           \
        weights_block(rows, cols, conv, g, of, strip, k);                                       \
    }
#define WEIGHTS_FNS(cols) \
    WEIGHTS_FN(1, cols)   \
    WEIGHTS_FN(2, cols)   \
    WEIGHTS_FN(3, cols)   \
    WEIGHTS_FN(4, cols)   \
    WEIGHTS_FN(5, cols)   \
    WEIGHTS_FN(6, cols)
#define WEIGHTS_NAMES(cols)                                                                       \
    {                                                                                             \
        weights_1x##cols, weights_2x##cols, weights_3x##cols, weights_4x##cols, weights_5x##cols, \
            weights_6x##cols                                                                      \
    }

WEIGHTS_FNS(2)
#if COLS == 4
WEIGHTS_FNS(1)
WEIGHTS_FNS(3)
WEIGHTS_FNS(4)
static weights_fn *const weights_fns[COLS][ROWS] = {
    WEIGHTS_NAMES(1),
    WEIGHTS_NAMES(2),
    WEIGHTS_NAMES(3),
    WEIGHTS_NAMES(4),
};
#else
/* Outputs are multiples of 16: there is always a second vector. */
static weights_fn *const weights_fns[COLS][ROWS] = {{NULL}, WEIGHTS_NAMES(2)};
#endif

/*
 * Prefetch part `i` of `parts` of the next strip's dy. Prefetched in parts it arrives in time;
 * prefetched at once it displaces the current data.
 */
INLINE void prefetch_part(const struct fl_conv *conv, const struct strip *strip, size_t i,
                          size_t parts)
{
    size_t n = strip->next * conv->k;
    const float *dy = strip->dy + strip->pixels * conv->k;
    size_t at;

    for (at = n * i / parts; at < n * (i + 1) / parts; at += 16) {
        __builtin_prefetch(dy + at);
    }
}

/* Offsets of the next weights in a patch of the image: one kernel row after another. */
struct window_offsets {
    size_t row, in_row;
};

static void next_offsets(const struct fl_conv *conv, struct window_offsets *window, size_t *of,
                         size_t n)
{
    size_t r;

    for (r = 0; r < n; r++) {
        of[r] = window->row * image_row(conv) + window->in_row;
        window->in_row++;
        if (window->in_row == kernel_row(conv)) {
            window->in_row = 0;
            window->row++;
        }
    }
}

/*
 * All weights, in blocks of nearly equal height: 27 are twice 6 and three times 5 instead of
 * four times 6 and 3.
 */
static void weights_strip(const struct fl_conv *conv, float *g, const struct strip *strip)
{
    size_t left = conv->kh * kernel_row(conv);
    size_t blocks = (left + ROWS - 1) / ROWS;
    struct window_offsets window = {0};
    size_t of[ROWS];
    size_t i, k;

    for (i = 0; i < blocks; i++) {
        size_t rows = (left + blocks - i - 1) / (blocks - i);

        prefetch_part(conv, strip, i, blocks);
        next_offsets(conv, &window, of, rows);
        for (k = 0; k < conv->k; k += cols_from(conv, k) * FL__LANES) {
            weights_fns[cols_from(conv, k) - 1][rows - 1](conv, g, of, strip, k);
        }
        g += rows * conv->k;
        left -= rows;
    }
}

static void first_kern_weights(const struct fl_conv *conv, float *g, const float *image,
                               const float *dy)
{
    size_t pixels = conv->oh * conv->ow;
    size_t p;

    for (p = 0; p < pixels; p += STRIP) {
        size_t y = p / conv->ow;
        size_t x = p % conv->ow;
        size_t n = pixels - p < STRIP ? pixels - p : STRIP;
        size_t rest = pixels - p - n;
        struct strip strip = {
            .dy = dy + p * conv->k,
            .walk = {.at = image + y * image_row(conv) + x * conv->c, .left = conv->ow - x},
            .pixels = n,
            .next = rest < STRIP ? rest : STRIP,
        };

        weights_strip(conv, g, &strip);
    }
}

#endif
