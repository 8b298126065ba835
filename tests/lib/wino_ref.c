#include "tests/lib/wino_ref.h"

#include <math.h>
#include <string.h>

/* Values of a polynomial with n coefficients at 0, a, -a, b, -b and, its last one, infinity. */
static void six_points(double *rows, size_t n)
{
    double at[5] = {0.0, sqrt(0.5), -sqrt(0.5), sqrt(2.0), -sqrt(2.0)};
    size_t i;
    size_t j;

    for (i = 0; i < 5; i++) {
        for (j = 0; j < n; j++) {
            rows[i * n + j] = j == 0 ? 1.0 : pow(at[i], (double)j);
        }
    }
    for (j = 0; j < n; j++) {
        rows[5 * n + j] = j == n - 1 ? 1.0 : 0.0;
    }
}

static struct wino_ref of_six(size_t r)
{
    struct wino_ref ref = {.points = 6, .r = r, .m = 7 - r, .inputs = 6};
    double aa = 0.5;
    double bb = 2.0;
    double scale[6] = {1.0 / (aa * bb),
                       1.0 / (2.0 * aa * (aa - bb)),
                       1.0 / (2.0 * aa * (aa - bb)),
                       1.0 / (2.0 * bb * (bb - aa)),
                       1.0 / (2.0 * bb * (bb - aa)),
                       1.0};
    double outputs[WINO_REF_TILE];
    size_t i;
    size_t j;

    six_points(ref.g, r);
    six_points(outputs, ref.m);
    for (i = 0; i < 6; i++) {
        double root = i == 1 || i == 2 ? sqrt(aa) : sqrt(bb);
        double other = i == 1 || i == 2 ? bb : aa;
        double *row = ref.bt + i * 6;

        for (j = 0; j < r; j++) {
            ref.g[i * r + j] *= scale[i];
        }
        for (j = 0; j < ref.m; j++) {
            ref.at[j * 6 + i] = outputs[i * ref.m + j];
        }
        if (i == 0 || i == 5) {
            /* The product of all (x - point) but that of 0; with it. */
            row[i / 5] = aa * bb;
            row[i / 5 + 2] = -(aa + bb);
            row[i / 5 + 4] = 1.0;
        } else {
            /* x (x + root) (x^2 - other), or with - root. */
            double sign = i % 2 == 1 ? 1.0 : -1.0;

            row[1] = -sign * root * other;
            row[2] = -other;
            row[3] = sign * root;
            row[4] = 1.0;
        }
    }
    return ref;
}

struct wino_ref wino_ref(enum fl__wino_forms form)
{
    static const struct wino_ref map_of_2 = {
        .points = 3,
        .r = 3,
        .m = 2,
        .inputs = 2,
        .inset = 1,
        .bt = {1, 1, 0, 1, 1, 0},
        .g = {0, 1, 0, 0, -1, 1, 1, -1, 0},
        .at = {1, 1, 0, 1, 0, 1},
    };

    switch (form) {
    case FL__WINO_3X3:
        return of_six(3);
    case FL__WINO_5X5:
        return of_six(5);
    default:
        return map_of_2;
    }
}

void wino_ref_both(double *out, const double *a, size_t rows, size_t cols, bool turned,
                   const double *in)
{
    size_t n = turned ? cols : rows;
    size_t k = turned ? rows : cols;
    size_t i, j, p, q;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            double sum = 0.0;

            for (p = 0; p < k; p++) {
                for (q = 0; q < k; q++) {
                    double left = turned ? a[p * cols + i] : a[i * cols + p];
                    double right = turned ? a[q * cols + j] : a[j * cols + q];

                    sum += left * in[p * k + q] * right;
                }
            }
            out[i * n + j] = sum;
        }
    }
}

size_t wino_ref_tiles(const struct wino_ref *ref, const struct fl_conv *conv)
{
    return ((conv->oh + ref->m - 1) / ref->m) * ((conv->ow + ref->m - 1) / ref->m);
}

static bool at(size_t y, size_t x, size_t back, size_t h, size_t w, size_t channels, size_t image,
               size_t *ret_place)
{
    if (y < back || y - back >= h || x < back || x - back >= w) {
        return false;
    }
    *ret_place = image + ((y - back) * w + (x - back)) * channels;
    return true;
}

bool wino_ref_input_at(const struct wino_ref *ref, const struct fl_conv *conv, size_t ld,
                       size_t tile, size_t i, size_t j, size_t *ret_place)
{
    size_t image = tile / wino_ref_tiles(ref, conv);
    size_t left = tile % wino_ref_tiles(ref, conv);
    size_t cols = (conv->ow + ref->m - 1) / ref->m;

    return at(left / cols * ref->m + ref->inset + i, left % cols * ref->m + ref->inset + j,
              conv->pad, conv->h, conv->w, conv->c, image * ld, ret_place);
}

bool wino_ref_output_at(const struct wino_ref *ref, const struct fl_conv *conv, size_t ld,
                        size_t tile, size_t i, size_t j, size_t *ret_place)
{
    size_t image = tile / wino_ref_tiles(ref, conv);
    size_t left = tile % wino_ref_tiles(ref, conv);
    size_t cols = (conv->ow + ref->m - 1) / ref->m;

    return at(left / cols * ref->m + i, left % cols * ref->m + j, 0, conv->oh, conv->ow, conv->k,
              image * ld, ret_place);
}

size_t wino_ref_weight(const struct fl_conv *conv, size_t k, size_t c, size_t tap)
{
    size_t taps = conv->kh * conv->kw;
    size_t panel = k / FL__PANEL * FL__PANEL;
    size_t wide = conv->k - panel < FL__PANEL ? conv->k - panel : FL__PANEL;

    return panel * conv->c * taps + (c * taps + tap) * wide + (k - panel);
}

void wino_ref_direct(const struct fl_conv *conv, double *y, const float *x, size_t ldx,
                     const float *w, size_t batch)
{
    size_t b, i, tap, c, k, in;

    (void)memset(y, 0, batch * conv->oh * conv->ow * conv->k * sizeof(*y));
    for (b = 0; b < batch; b++) {
        for (tap = 0; tap < conv->kh * conv->kw; tap++) {
            for (c = 0; c < conv->c; c++) {
                for (k = 0; k < conv->k; k++) {
                    double weight = (double)w[wino_ref_weight(conv, k, c, tap)];

                    for (i = 0; i < conv->oh * conv->ow; i++) {
                        if (at(i / conv->ow + tap / conv->kw, i % conv->ow + tap % conv->kw,
                               conv->pad, conv->h, conv->w, conv->c, b * ldx, &in))
                        {
                            y[(b * conv->oh * conv->ow + i) * conv->k + k] +=
                                weight * (double)x[in + c];
                        }
                    }
                }
            }
        }
    }
}

const struct fl__wino_kern *wino_ref_kern(size_t i)
{
#if defined(__x86_64__)
    if (i == 0 && __builtin_cpu_supports("avx512f")) {
        return &fl__wino_avx512;
    }
    if (i == 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &fl__wino_avx2;
    }
#endif
    return i == 2 ? &fl__wino_plain : NULL;
}

const char *wino_ref_kern_name(size_t i)
{
    static const char *const names[WINO_REF_KERNS] = {"avx512", "avx2", "plain"};

    return names[i];
}
