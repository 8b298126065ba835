/*
 * Local response normalisation across neighbouring channels (norm.h), its gradient and its
 * directional derivatives (JVP). Plain loops without state on the caller's thread.
 */
#include <math.h>
#include <string.h>

#include "libfl/num/norm.h"

/* Krizhevsky's constants, as in TensorFlow. */
#define RADIUS 4
#define ALPHA  ((float)(0.001 / 9.0))

/* Two rows of channels, each with RADIUS zeros on both sides. */
size_t fl_lrn_scratch(size_t c)
{
    return 2 * (c + 2 * RADIUS);
}

/* s[0..c) from one pixel; `squares` has zeros on both sides. */
static void lrn_scales(float *restrict s, float *restrict squares, const float *restrict x,
                       size_t c)
{
    size_t i;
    size_t d;

    for (i = 0; i < c; i++) {
        squares[RADIUS + i] = x[i] * x[i];
        s[i] = 0.0f;
    }
    for (d = 0; d <= 2 * RADIUS; d++) {
        for (i = 0; i < c; i++) {
            s[i] += squares[i + d];
        }
    }
    for (i = 0; i < c; i++) {
        s[i] = 1.0f + ALPHA * s[i];
    }
}

/* v^-0.75 by two square roots, which are instructions, while pow() is a call. */
static inline float inverse_power(float v)
{
    float root = sqrtf(v);

    return 1.0f / (root * sqrtf(root));
}

void fl_lrn_forward(float *y, size_t ldy, const float *x, size_t ldx, size_t c, size_t pixels,
                    size_t batch, float *scratch)
{
    float *s = scratch + c + 2 * RADIUS;
    size_t b, p, i;

    (void)memset(scratch, 0, fl_lrn_scratch(c) * sizeof(*scratch));
    for (b = 0; b < batch; b++) {
        for (p = 0; p < pixels; p++) {
            const float *from = x + b * ldx + p * c;
            float *to = y + b * ldy + p * c;

            lrn_scales(s, scratch, from, c);
            for (i = 0; i < c; i++) {
                to[i] = from[i] * inverse_power(s[i]);
            }
        }
    }
}

/*
 * dx[i] = dy[i] s[i]^-0.75 - 1.5 alpha x[i] * sum over |j - i| <= 4 of dy[j] x[j] s[j]^-1.75
 */
static void lrn_pixel(float *restrict dx, const float *restrict dy, const float *restrict x,
                      size_t c, float *restrict terms, float *restrict s)
{
    size_t i;
    size_t d;

    lrn_scales(s, terms, x, c);
    for (i = 0; i < c; i++) {
        float power = inverse_power(s[i]);

        terms[RADIUS + i] = dy[i] * x[i] * power / s[i];
        dx[i] = dy[i] * power;
        s[i] = 0.0f;
    }
    for (d = 0; d <= 2 * RADIUS; d++) {
        for (i = 0; i < c; i++) {
            s[i] += terms[i + d];
        }
    }
    for (i = 0; i < c; i++) {
        dx[i] -= 1.5f * ALPHA * x[i] * s[i];
    }
}

void fl_lrn_backward(float *dx, size_t lddx, const float *dy, size_t lddy, const float *x,
                     size_t ldx, size_t c, size_t pixels, size_t batch, float *scratch)
{
    float *s = scratch + c + 2 * RADIUS;
    size_t b, p;

    (void)memset(scratch, 0, fl_lrn_scratch(c) * sizeof(*scratch));
    for (b = 0; b < batch; b++) {
        for (p = 0; p < pixels; p++) {
            lrn_pixel(dx + b * lddx + p * c, dy + b * lddy + p * c, x + b * ldx + p * c, c, scratch,
                      s);
        }
        (void)memset(dx + b * lddx + pixels * c, 0, (lddx - pixels * c) * sizeof(*dx));
    }
}

/* Four rows of channels, each with RADIUS zeros on both sides. */
size_t fl_lrn_scratch_jvp(size_t c)
{
    return 4 * (c + 2 * RADIUS);
}

/* to[i] = sum over |j - i| <= RADIUS of from[j]; `from` has zeros on both sides. */
static void lrn_windows(float *restrict to, const float *restrict from, size_t c)
{
    size_t i;
    size_t d;

    for (i = 0; i < c; i++) {
        to[i] = 0.0f;
    }
    for (d = 0; d <= 2 * RADIUS; d++) {
        for (i = 0; i < c; i++) {
            to[i] += from[i + d];
        }
    }
}

/* rs[0..c), the derivative of s: 2 alpha times the window sums of x * rx. */
static void scales_jvp(float *restrict rs, float *restrict products, const float *restrict x,
                       const float *restrict rx, size_t c)
{
    size_t i;

    for (i = 0; i < c; i++) {
        products[RADIUS + i] = x[i] * rx[i];
    }
    lrn_windows(rs, products, c);
    for (i = 0; i < c; i++) {
        rs[i] *= 2.0f * ALPHA;
    }
}

void fl_lrn_forward_jvp(float *ry, size_t ldy, const float *rx, const float *x, size_t ldx,
                        size_t c, size_t pixels, size_t batch, float *scratch)
{
    size_t row = c + 2 * RADIUS;
    float *s = scratch + row;
    float *rs = scratch + 2 * row;
    size_t b, p, i;

    (void)memset(scratch, 0, fl_lrn_scratch_jvp(c) * sizeof(*scratch));
    for (b = 0; b < batch; b++) {
        for (p = 0; p < pixels; p++) {
            const float *at = x + b * ldx + p * c;
            const float *along = rx + b * ldx + p * c;
            float *to = ry + b * ldy + p * c;

            lrn_scales(s, scratch, at, c);
            scales_jvp(rs, scratch, at, along, c);
            for (i = 0; i < c; i++) {
                to[i] = inverse_power(s[i]) * (along[i] - 0.75f * at[i] * rs[i] / s[i]);
            }
        }
    }
}

/*
 * lrn_pixel() of dy, and its derivative for sy, with t = sy x s^-1.75 and its window sums T:
 *     dx[i] += -0.75 sy[i] s[i]^-1.75 rs[i] - 1.5 alpha (rx[i] T[i] + x[i] RT[i]),
 *     rt = sy s^-1.75 (rx - 1.75 x rs / s)
 */
static void lrn_pixel_jvp(float *restrict dx, const float *restrict sy, const float *restrict rx,
                          const float *restrict x, size_t c, float *restrict scratch)
{
    size_t row = c + 2 * RADIUS;
    float *terms = scratch;
    float *s = scratch + row;
    float *rs = scratch + 2 * row;
    float *rterms = scratch + 3 * row;
    size_t i;

    lrn_scales(s, terms, x, c);
    scales_jvp(rs, terms, x, rx, c);
    for (i = 0; i < c; i++) {
        float power = sy[i] * inverse_power(s[i]) / s[i];

        terms[RADIUS + i] = power * x[i];
        rterms[RADIUS + i] = power * (rx[i] - 1.75f * x[i] * rs[i] / s[i]);
        dx[i] -= 0.75f * power * rs[i];
    }
    lrn_windows(s, terms, c);
    lrn_windows(rs, rterms, c);
    for (i = 0; i < c; i++) {
        dx[i] -= 1.5f * ALPHA * (rx[i] * s[i] + x[i] * rs[i]);
    }
}

void fl_lrn_backward_jvp(float *dx, size_t lddx, const float *dy, const float *sy, size_t lddy,
                         const float *rx, const float *x, size_t ldx, size_t c, size_t pixels,
                         size_t batch, float *scratch)
{
    size_t b, p;

    fl_lrn_backward(dx, lddx, dy, lddy, x, ldx, c, pixels, batch, scratch);
    if (rx == NULL) {
        return;
    }
    (void)memset(scratch, 0, fl_lrn_scratch_jvp(c) * sizeof(*scratch));
    for (b = 0; b < batch; b++) {
        for (p = 0; p < pixels; p++) {
            lrn_pixel_jvp(dx + b * lddx + p * c, sy + b * lddy + p * c, rx + b * ldx + p * c,
                          x + b * ldx + p * c, c, scratch);
        }
    }
}
