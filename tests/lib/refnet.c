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
    size_t groups = l->groups > 0 ? l->groups : 1;
    size_t group_c = in->c / groups;
    size_t patch = group_c * l->kh * l->kw;
    size_t q, t;

    for (q = 0; q < w->batch * count(&out); q++) {
        size_t ox = q % ow;
        size_t oy = q / ow % oh;
        size_t k = q / ow / oh % l->out;
        size_t from = k / (l->out / groups) * group_c;
        double sum = l->nobias ? 0.0 : w->params[patch * l->out + k];

        for (t = 0; t < patch; t++) {
            ptrdiff_t y = (ptrdiff_t)(oy * l->stride + t / l->kw % l->kh) - (ptrdiff_t)l->pad;
            ptrdiff_t x = (ptrdiff_t)(ox * l->stride + t % l->kw) - (ptrdiff_t)l->pad;
            const double *v = pixel(in, q / count(&out), from + t / l->kw / l->kh, y, x);

            sum += v != NULL ? *v * w->params[k * patch + t] : 0.0;
        }
        out.a[q] = sum;
    }
    take_params(w, patch * l->out + (l->nobias ? 0 : l->out));
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

/*
 * Each sample over the channels of a group: over its pixels too, or with `alone` each pixel for
 * itself.
 */
static struct plane group_norm(struct walk *w, size_t groups, bool alone, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t area = in->h * in->w;
    size_t sets = alone ? area : 1;
    size_t pixels = area / sets;
    size_t n = in->c / groups;
    size_t q, i;

    for (q = 0; q < w->batch * groups * sets; q++) {
        const double *from = in->a + q / sets * n * area + q % sets;
        double *to = out.a + q / sets * n * area + q % sets;
        double m = (double)(n * pixels);
        double mean = 0.0;
        double var = 0.0;

        for (i = 0; i < n * pixels; i++) {
            mean += from[i / pixels * area + i % pixels] / m;
        }
        for (i = 0; i < n * pixels; i++) {
            var += pow(from[i / pixels * area + i % pixels] - mean, 2.0) / m;
        }
        for (i = 0; i < n * pixels; i++) {
            size_t at = i / pixels * area + i % pixels;
            size_t c = q / sets % groups * n + i / pixels;

            to[at] = (from[at] - mean) / sqrt(var + 1e-5) * w->params[c] + w->params[in->c + c];
        }
    }
    take_params(w, 2 * in->c);
    return out;
}

static struct plane avgpool(struct walk *w, size_t size, size_t stride, const struct plane *in)
{
    size_t oh = (in->h - size) / stride + 1;
    size_t ow = (in->w - size) / stride + 1;
    struct plane out = make(w, in->c, oh, ow);
    size_t q, t;

    for (q = 0; q < w->batch * count(&out); q++) {
        for (t = 0; t < size * size; t++) {
            out.a[q] += *pixel(in, q / count(&out), q / ow / oh % in->c,
                               (ptrdiff_t)(q / ow % oh * stride + t / size),
                               (ptrdiff_t)(q % ow * stride + t % size)) /
                        (double)(size * size);
        }
    }
    return out;
}

static struct plane globalpool(struct walk *w, const struct plane *in)
{
    struct plane out = make(w, in->c, 1, 1);
    size_t area = in->h * in->w;
    size_t i;

    for (i = 0; i < w->batch * count(in); i++) {
        out.a[i / area] += in->a[i] / (double)area;
    }
    return out;
}

static double activation(enum ref_kind kind, double x)
{
    if (kind == REF_GELU) {
        return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
    }
    return kind == REF_TANH ? tanh(x) : 1.0 / (1.0 + exp(-x));
}

static struct plane activate(struct walk *w, enum ref_kind kind, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t i;

    for (i = 0; i < w->batch * count(in); i++) {
        out.a[i] = activation(kind, in->a[i]);
    }
    return out;
}

static struct plane embedding(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = make(w, l->out, in->c, 1);
    size_t q;

    for (q = 0; q < w->batch * count(&out); q++) {
        double number = in->a[q / count(&out) * in->c + q % in->c];
        size_t word = number >= 0.0 && number < (double)l->kh ? (size_t)number : 0;

        out.a[q] = w->params[word * l->out + q / in->c % l->out];
    }
    take_params(w, l->kh * l->out);
    return out;
}

/* The sum of gate number `row` of 4 h at position t of sample b. */
static double lstm_sum(const struct walk *w, const struct plane *in, const struct plane *out,
                       size_t b, size_t t, size_t row)
{
    size_t steps = in->h * in->w;
    size_t h = out->c;
    const double *w_h = w->params + 4 * h * in->c;
    double sum = w_h[4 * h * h + row];
    size_t i;

    for (i = 0; i < in->c; i++) {
        sum += in->a[(b * in->c + i) * steps + t] * w->params[row * in->c + i];
    }
    for (i = 0; t > 0 && i < h; i++) {
        sum += out->a[(b * h + i) * steps + t - 1] * w_h[row * h + i];
    }
    return sum;
}

static struct plane lstm(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    size_t steps = in->h * in->w;
    struct plane out = make(w, l->out, steps, 1);
    struct plane cells = make(w, l->out, steps, 1);
    size_t h = l->out;
    size_t b, t, j;

    for (b = 0; b < w->batch; b++) {
        for (t = 0; t < steps; t++) {
            for (j = 0; j < h; j++) {
                size_t at = (b * h + j) * steps + t;
                double i = activation(REF_SIGMOID, lstm_sum(w, in, &out, b, t, j));
                double f = activation(REF_SIGMOID, lstm_sum(w, in, &out, b, t, h + j));
                double g = tanh(lstm_sum(w, in, &out, b, t, 2 * h + j));
                double o = activation(REF_SIGMOID, lstm_sum(w, in, &out, b, t, 3 * h + j));

                cells.a[at] = i * g + (t > 0 ? f * cells.a[at - 1] : 0.0);
                out.a[at] = o * tanh(cells.a[at]);
            }
        }
    }
    free(cells.a);
    take_params(w, 4 * h * (in->c + h + 1));
    return out;
}

static struct plane last(struct walk *w, const struct plane *in)
{
    struct plane out = make(w, in->c, 1, 1);
    size_t steps = in->h * in->w;
    size_t i;

    for (i = 0; i < w->batch * in->c; i++) {
        out.a[i] = in->a[i * steps + steps - 1];
    }
    return out;
}

/* The part of q (0), k (1) or v (2) of channel c, at position t of sample b. */
static double attention_part(const struct walk *w, const struct plane *in, size_t which, size_t b,
                             size_t c, size_t t)
{
    size_t steps = in->h * in->w;
    size_t row = which * in->c + c;
    double sum = w->params[3 * in->c * in->c + row];
    size_t i;

    for (i = 0; i < in->c; i++) {
        sum += w->params[row * in->c + i] * in->a[(b * in->c + i) * steps + t];
    }
    return sum;
}

/* What channel c of the heads sees at position t. */
static double attention_seen(const struct walk *w, const struct ref_layer *l,
                             const struct plane *in, size_t b, size_t c, size_t t)
{
    size_t steps = in->h * in->w;
    size_t part = in->c / l->kh;
    double total = 0.0;
    double seen = 0.0;
    size_t s, i;

    for (s = 0; s < (l->nobias ? t + 1 : steps); s++) {
        double score = 0.0;

        for (i = c / part * part; i < (c / part + 1) * part; i++) {
            score += attention_part(w, in, 0, b, i, t) * attention_part(w, in, 1, b, i, s);
        }
        score = exp(score / sqrt((double)part));
        total += score;
        seen += score * attention_part(w, in, 2, b, c, s);
    }
    return seen / total;
}

static struct plane attention(struct walk *w, const struct ref_layer *l, const struct plane *in)
{
    struct plane out = make(w, in->c, in->h, in->w);
    size_t steps = in->h * in->w;
    size_t d = in->c;
    const double *w_out = w->params + 3 * d * (d + 1);
    size_t q, i, c;

    for (q = 0; q < w->batch * steps; q++) {
        for (i = 0; i < d; i++) {
            out.a[(q / steps * d + i) * steps + q % steps] = w_out[d * d + i];
        }
        for (c = 0; c < d; c++) {
            double seen = attention_seen(w, l, in, q / steps, c, q % steps);

            for (i = 0; i < d; i++) {
                out.a[(q / steps * d + i) * steps + q % steps] += w_out[i * d + c] * seen;
            }
        }
    }
    take_params(w, 4 * d * (d + 1));
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
    case REF_GN:
        return group_norm(w, l->out, false, in);
    case REF_LN:
        return group_norm(w, 1, true, in);
    case REF_AVGPOOL:
        return avgpool(w, l->kh, l->stride, in);
    case REF_GLOBALPOOL:
        return globalpool(w, in);
    case REF_EMBEDDING:
        return embedding(w, l, in);
    case REF_LSTM:
        return lstm(w, l, in);
    case REF_LAST:
        return last(w, in);
    case REF_ATTENTION:
        return attention(w, l, in);
    case REF_SIGMOID:
    case REF_TANH:
    case REF_GELU:
        return activate(w, l->kind, in);
    case REF_BLOCK:
    case REF_SHORTCUT:
    case REF_ADD:
        return out; /* ref_branch() */
    case REF_FLATTEN:
    default:
        /* The data stays in place, but each number becomes a channel. */
        out.c = count(in);
        out.h = out.w = 1;
        return out;
    }
}

/* The open blocks: what each began with, and the first branch of those with a shortcut. */
struct branches {
    struct plane begin[4], first[4];
    bool shortcut[4];
    size_t n;
};

/* The layers of a residual block; `now` is what they leave. */
static void branch(struct walk *w, struct branches *open, enum ref_kind kind, struct plane *now)
{
    const struct plane *other;
    struct plane sum;
    size_t i;

    if (kind == REF_BLOCK) {
        open->shortcut[open->n] = false;
        open->begin[open->n++] = *now;
    } else if (kind == REF_SHORTCUT) {
        open->shortcut[open->n - 1] = true;
        open->first[open->n - 1] = *now;
        *now = open->begin[open->n - 1];
    } else if (kind == REF_ADD) {
        open->n--;
        other = open->shortcut[open->n] ? &open->first[open->n] : &open->begin[open->n];
        sum = make(w, now->c, now->h, now->w);
        ck_assert_uint_eq(count(other), count(now));
        for (i = 0; i < w->batch * count(now); i++) {
            sum.a[i] = now->a[i] + other->a[i];
        }
        *now = sum;
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
    struct branches open = {.n = 0};
    double *all[REF_MAX_LAYERS + 1] = {now.a};
    const struct ref_layer *l;
    double total = 0.0;
    size_t n_all = 1;
    size_t i;

    fl_rng_seed(&w.rng, seed);
    for (i = 0; i < batch * count(&now); i++) {
        now.a[i] = (double)x[i];
    }
    for (l = net->layers; l->kind != 0; l++) {
        now = apply(&w, l, &now);
        branch(&w, &open, l->kind, &now);
        for (i = 0; i < n_all && all[i] != now.a; i++) {
        }
        if (i == n_all) {
            all[n_all++] = now.a;
        }
    }
    for (i = 0; i < batch; i++) {
        total += cross_entropy(now.a + i * now.c, now.c, (size_t)y[i]);
    }
    for (i = 0; i < n_all; i++) {
        free(all[i]);
    }
    return total;
}
