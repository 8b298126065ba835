#include "tests/lib/refnet.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* A batch between two layers: a[batch][c][h][w]. */
struct plane {
    double *a;
    size_t c, h, w;
};

/* Further state of a pass. */
struct walk {
    size_t batch;
    bool training;
    struct fl_rng rng;
    const double *params; /* moves on */
    double *after;        /* likewise, or NULL */
};

static size_t count(const struct plane *p)
{
    return p->c * p->h * p->w;
}

static struct plane make(const struct walk *w, size_t c, size_t h, size_t width)
{
    struct plane p = {.c = c, .h = h, .w = width};

    p.a = calloc(w->batch * count(&p), sizeof(*p.a));
    ck_assert_ptr_nonnull(p.a);
    return p;
}

/* The pixel of channel c at (y, x), NULL in the padding. */
static const double *pixel(const struct plane *p, size_t b, size_t c, ptrdiff_t y, ptrdiff_t x)
{
    if (y < 0 || x < 0 || y >= (ptrdiff_t)p->h || x >= (ptrdiff_t)p->w) {
        return NULL;
    }
    return p->a + ((b * p->c + c) * p->h + (size_t)y) * p->w + (size_t)x;
}

static void take_params(struct walk *w, size_t n)
{
    size_t i;

    for (i = 0; w->after != NULL && i < n; i++) {
        *w->after++ = w->params[i];
    }
    w->params += n;
}

static struct plane conv(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    size_t oh = (in->h + 2 * l->pad - l->kh) / l->stride + 1;
    size_t ow = (in->w + 2 * l->pad - l->kw) / l->stride + 1;
    struct plane out = make(w, l->out, oh, ow);
    size_t patch = in->c * l->kh * l->kw;
    size_t q, t;

    for (q = 0; q < w->batch * count(&out); q++) {
        size_t ox = q % ow;
        size_t oy = q / ow % oh;
        size_t k = q / ow / oh % l->out;
        double sum = w->params[patch * l->out + k];

        for (t = 0; t < patch; t++) {
            ptrdiff_t y = (ptrdiff_t)(oy * l->stride + t / l->kw % l->kh) - (ptrdiff_t)l->pad;
            ptrdiff_t x = (ptrdiff_t)(ox * l->stride + t % l->kw) - (ptrdiff_t)l->pad;
            const double *v = pixel(in, q / count(&out), t / l->kw / l->kh, y, x);

            sum += v != NULL ? *v * w->params[k * patch + t] : 0.0;
        }
        out.a[q] = sum;
    }
    take_params(w, patch * l->out + l->out);
    return out;
}

static struct plane dense(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = make(w, l->out, 1, 1);
    size_t n = count(in);
    size_t b, i, j;

    for (b = 0; b < w->batch; b++) {
        for (j = 0; j < l->out; j++) {
            double sum = w->params[n * l->out + j];

            for (i = 0; i < n; i++) {
                sum += in->a[b * n + i] * w->params[j * n + i];
            }
            out.a[b * l->out + j] = sum;
        }
    }
    take_params(w, n * l->out + l->out);
    return out;
}

static struct plane maxpool(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = make(w, in->c, l->oh, l->ow);
    size_t q, t;

    for (q = 0; q < w->batch * count(&out); q++) {
        double best = -HUGE_VAL;

        for (t = 0; t < l->kh * l->kw; t++) {
            ptrdiff_t y =
                (ptrdiff_t)(q / l->ow % l->oh * l->stride + t / l->kw) - (ptrdiff_t)l->pad;
            ptrdiff_t x = (ptrdiff_t)(q % l->ow * l->stride + t % l->kw) - (ptrdiff_t)l->pad;
            const double *v = pixel(in, q / count(&out), q / l->ow / l->oh % in->c, y, x);

            best = v != NULL && *v > best ? *v : best;
        }
        out.a[q] = best;
    }
    return out;
}

/* Mean and biased variance of one channel over batch and pixels. */
static void moments(const struct walk *w, const struct plane *in, size_t c, double *ret_mean,
                    double *ret_var)
{
    size_t area = in->h * in->w;
    double n = (double)(w->batch * area);
    double mean = 0.0;
    double var = 0.0;
    size_t b, i;

    for (b = 0; b < w->batch; b++) {
        for (i = 0; i < area; i++) {
            mean += in->a[(b * in->c + c) * area + i] / n;
        }
    }
    for (b = 0; b < w->batch; b++) {
        for (i = 0; i < area; i++) {
            double d = in->a[(b * in->c + c) * area + i] - mean;

            var += d * d / n;
        }
    }
    *ret_mean = mean;
    *ret_var = var;
}

static struct plane batch_norm(struct walk *w, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    const double *p = w->params;
    double *after = w->after;
    size_t area = in->h * in->w;
    double n = (double)(w->batch * area);
    size_t b, c, i;

    take_params(w, 4 * in->c);
    for (c = 0; c < in->c; c++) {
        double mean = p[2 * in->c + c];
        double var = p[3 * in->c + c];

        if (w->training) {
            moments(w, in, c, &mean, &var);
            if (after != NULL) {
                after[2 * in->c + c] = 0.9 * p[2 * in->c + c] + 0.1 * mean;
                after[3 * in->c + c] = 0.9 * p[3 * in->c + c] + 0.1 * var * n / (n - 1.0);
            }
        }
        for (b = 0; b < w->batch; b++) {
            for (i = 0; i < area; i++) {
                size_t at = (b * in->c + c) * area + i;

                out.a[at] = (in->a[at] - mean) / sqrt(var + 1e-5) * p[c] + p[in->c + c];
            }
        }
    }
    return out;
}

static struct plane response_norm(struct walk *w, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t area = in->h * in->w;
    size_t b, c, d, i;

    for (b = 0; b < w->batch; b++) {
        for (c = 0; c < in->c; c++) {
            for (i = 0; i < area; i++) {
                double sum = 0.0;

                for (d = c < 4 ? 0 : c - 4; d <= c + 4 && d < in->c; d++) {
                    sum += pow(in->a[(b * in->c + d) * area + i], 2.0);
                }
                out.a[(b * in->c + c) * area + i] =
                    in->a[(b * in->c + c) * area + i] / pow(1.0 + 0.001 / 9.0 * sum, 0.75);
            }
        }
    }
    return out;
}

/* Masks are drawn sample by sample, pixel by pixel, channel by channel; two of each word. */
static struct plane dropout(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t area = in->h * in->w;
    size_t b, i;

    for (b = 0; b < w->batch; b++) {
        uint64_t word = 0;

        for (i = 0; i < count(in); i++) {
            size_t at = b * count(in) + i % in->c * area + i / in->c;

            word = i % 2 == 0 && w->training ? fl_rng_u64(&w->rng) : word >> 32;
            if (!w->training) {
                out.a[at] = in->a[at];
            } else if ((double)(word & UINT32_MAX) >= l->rate * 4294967296.0) {
                out.a[at] = in->a[at] / (1.0 - l->rate);
            }
        }
    }
    return out;
}

static struct plane relu(struct walk *w, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t i;

    for (i = 0; i < w->batch * count(in); i++) {
        out.a[i] = in->a[i] > 0.0 ? in->a[i] : 0.0;
    }
    return out;
}

static struct plane apply(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = *in;

    switch (l->kind) {
    case REF_CONV:
        return conv(w, l, in);
    case REF_DENSE:
        return dense(w, l, in);
    case REF_RELU:
        return relu(w, in);
    case REF_MAXPOOL:
        return maxpool(w, l, in);
    case REF_BN:
        return batch_norm(w, in);
    case REF_LRN:
        return response_norm(w, in);
    case REF_DROPOUT:
        return dropout(w, l, in);
    case REF_FLATTEN:
    default:
        /* The data stays in place, but each number becomes a channel. */
        out.c = count(in);
        out.h = out.w = 1;
        return out;
    }
}

static double cross_entropy(const double *z, size_t n, size_t label)
{
    double sum = 0.0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += exp(z[i]);
    }
    return log(sum) - z[label];
}

struct fl_net_spec ref_spec(const struct ref_net *net, const char **texts)
{
    struct fl_net_spec spec = {.input = {net->input[0], net->input[1], net->input[2]},
                               .n_input = net->flat ? 1 : 3,
                               .layers = texts};

    while (net->layers[spec.n_layers].kind != 0) {
        texts[spec.n_layers] = net->layers[spec.n_layers].text;
        spec.n_layers++;
    }
    return spec;
}

double ref_loss(const struct ref_net *net, const double *params, const float *x, const int32_t *y,
                size_t batch, bool training, uint64_t seed, double *after)
{
    struct walk w = {.batch = batch, .training = training, .params = params, .after = after};
    struct plane now = make(&w, net->input[0], net->input[1], net->input[2]);
    const struct ref_layer *l;
    double total = 0.0;
    size_t i;

    fl_rng_seed(&w.rng, seed);
    for (i = 0; i < batch * count(&now); i++) {
        now.a[i] = (double)x[i];
    }
    for (l = net->layers; l->kind != 0; l++) {
        struct plane next = apply(&w, l, &now);

        if (next.a != now.a) {
            free(now.a);
        }
        now = next;
    }
    for (i = 0; i < batch; i++) {
        total += cross_entropy(now.a + i * now.c, now.c, (size_t)y[i]);
    }
    free(now.a);
    return total;
}
