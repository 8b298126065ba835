#include "tests/lib/adnet.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum op { LEAF, MAC, POW, EXP, LOG, ERF };

struct node {
    enum op op;
    uint32_t a, b, c; /* MAC: a + b c; POW: a to the number c; EXP, LOG, ERF: of a */
    double v, r;      /* value, and its derivative along the direction */
    double g, rg;     /* adjoint, and its derivative */
};

struct tape {
    struct node *nodes;
    uint32_t n, room;
    uint32_t zero, one, minus;
    struct fl_rng *rng;
    struct ad_result *seen;
};

/* A batch between two layers: at[batch][c][h][w], places on the tape. */
struct grid {
    uint32_t *at;
    size_t batch, c, h, w;
};

static uint32_t add_node(struct tape *t, struct node node)
{
    if (t->n == t->room) {
        t->room = t->room == 0 ? 1U << 16 : 2 * t->room;
        t->nodes = realloc(t->nodes, t->room * sizeof(*t->nodes));
        ck_assert_ptr_nonnull(t->nodes);
    }
    t->nodes[t->n] = node;
    return t->n++;
}

static uint32_t leaf(struct tape *t, double v, double r)
{
    return add_node(t, (struct node){.op = LEAF, .v = v, .r = r});
}

static uint32_t mac(struct tape *t, uint32_t a, uint32_t b, uint32_t c)
{
    const struct node *n = t->nodes;

    return add_node(t, (struct node){.op = MAC,
                                     .a = a,
                                     .b = b,
                                     .c = c,
                                     .v = n[a].v + n[b].v * n[c].v,
                                     .r = n[a].r + n[b].r * n[c].v + n[b].v * n[c].r});
}

static uint32_t add(struct tape *t, uint32_t a, uint32_t b)
{
    return mac(t, a, b, t->one);
}

static uint32_t subtract(struct tape *t, uint32_t a, uint32_t b)
{
    return mac(t, a, b, t->minus);
}

static uint32_t multiply(struct tape *t, uint32_t a, uint32_t b)
{
    return mac(t, t->zero, a, b);
}

static uint32_t times(struct tape *t, uint32_t a, double number)
{
    return multiply(t, a, leaf(t, number, 0));
}

static uint32_t power(struct tape *t, uint32_t a, double to)
{
    uint32_t c = leaf(t, to, 0);
    double v = t->nodes[a].v;

    return add_node(
        t,
        (struct node){
            .op = POW, .a = a, .c = c, .v = pow(v, to), .r = to * pow(v, to - 1) * t->nodes[a].r});
}

static uint32_t exponential(struct tape *t, uint32_t a)
{
    double v = exp(t->nodes[a].v);

    return add_node(t, (struct node){.op = EXP, .a = a, .v = v, .r = v * t->nodes[a].r});
}

static uint32_t logarithm(struct tape *t, uint32_t a)
{
    double v = t->nodes[a].v;

    return add_node(t, (struct node){.op = LOG, .a = a, .v = log(v), .r = t->nodes[a].r / v});
}

static double erf_slope(double x)
{
    return 1.1283791670955126 * exp(-x * x);
}

static uint32_t error_function(struct tape *t, uint32_t a)
{
    double v = t->nodes[a].v;

    return add_node(
        t, (struct node){.op = ERF, .a = a, .v = erf(v), .r = erf_slope(v) * t->nodes[a].r});
}

/* Adds p times the adjoint of `n` to that of `to`, with the derivative; rp is that of p. */
static void hand_back(struct node *to, const struct node *n, double p, double rp)
{
    to->g += p * n->g;
    to->rg += rp * n->g + p * n->rg;
}

/* Reverse pass from `top` to the leaves. */
static void sweep(struct tape *t, uint32_t top)
{
    struct node *all = t->nodes;
    uint32_t i;

    for (i = 0; i < t->n; i++) {
        all[i].g = all[i].rg = 0;
    }
    all[top].g = 1;
    for (i = top + 1; i > 0; i--) {
        const struct node *n = &all[i - 1];
        struct node *a = &all[n->a];
        double to;

        switch (n->op) {
        case MAC:
            hand_back(a, n, 1, 0);
            hand_back(&all[n->b], n, all[n->c].v, all[n->c].r);
            hand_back(&all[n->c], n, all[n->b].v, all[n->b].r);
            break;
        case POW:
            to = all[n->c].v;
            hand_back(a, n, to * pow(a->v, to - 1), to * (to - 1) * pow(a->v, to - 2) * a->r);
            break;
        case EXP:
            hand_back(a, n, n->v, n->r);
            break;
        case LOG:
            hand_back(a, n, 1 / a->v, -a->r / (a->v * a->v));
            break;
        case ERF:
            hand_back(a, n, erf_slope(a->v), -2 * a->v * erf_slope(a->v) * a->r);
            break;
        case LEAF:
        default:
            break;
        }
    }
}

/* --- layers --- */

static size_t each(const struct grid *g)
{
    return g->c * g->h * g->w;
}

static struct grid make(const struct grid *like, size_t c, size_t h, size_t w)
{
    struct grid g = {.batch = like->batch, .c = c, .h = h, .w = w};

    g.at = calloc(g.batch * each(&g), sizeof(*g.at));
    ck_assert_ptr_nonnull(g.at);
    return g;
}

/* The pixel of channel c at (y, x), NULL in the padding. */
static const uint32_t *pixel(const struct grid *g, size_t b, size_t c, ptrdiff_t y, ptrdiff_t x)
{
    if (y < 0 || x < 0 || y >= (ptrdiff_t)g->h || x >= (ptrdiff_t)g->w) {
        return NULL;
    }
    return g->at + ((b * g->c + c) * g->h + (size_t)y) * g->w + (size_t)x;
}

/* `p`: the first of the layer's parameters on the tape; advanced. */
static struct grid conv(struct tape *t, const struct ref_layer *l, const struct grid *in,
                        uint32_t *p)
{
    size_t oh = (in->h + 2 * l->pad - l->kh) / l->stride + 1;
    size_t ow = (in->w + 2 * l->pad - l->kw) / l->stride + 1;
    struct grid out = make(in, l->out, oh, ow);
    size_t groups = l->groups > 0 ? l->groups : 1;
    size_t group_c = in->c / groups;
    size_t patch = group_c * l->kh * l->kw;
    size_t q, i;

    for (q = 0; q < in->batch * each(&out); q++) {
        size_t k = q / ow / oh % l->out;
        size_t from = k / (l->out / groups) * group_c;
        uint32_t sum = l->nobias ? t->zero : *p + (uint32_t)(patch * l->out + k);

        for (i = 0; i < patch; i++) {
            ptrdiff_t y =
                (ptrdiff_t)(q / ow % oh * l->stride + i / l->kw % l->kh) - (ptrdiff_t)l->pad;
            ptrdiff_t x = (ptrdiff_t)(q % ow * l->stride + i % l->kw) - (ptrdiff_t)l->pad;
            const uint32_t *v = pixel(in, q / each(&out), from + i / l->kw / l->kh, y, x);

            sum = v != NULL ? mac(t, sum, *v, *p + (uint32_t)(k * patch + i)) : sum;
        }
        out.at[q] = sum;
    }
    *p += (uint32_t)(patch * l->out + (l->nobias ? 0 : l->out));
    return out;
}

static struct grid dense(struct tape *t, const struct ref_layer *l, const struct grid *in,
                         uint32_t *p)
{
    struct grid out = make(in, l->out, 1, 1);
    size_t n = each(in);
    size_t q, i;

    for (q = 0; q < in->batch * l->out; q++) {
        size_t j = q % l->out;
        uint32_t sum = *p + (uint32_t)(n * l->out + j);

        for (i = 0; i < n; i++) {
            sum = mac(t, sum, in->at[q / l->out * n + i], *p + (uint32_t)(j * n + i));
        }
        out.at[q] = sum;
    }
    *p += (uint32_t)(n * l->out + l->out);
    return out;
}

static struct grid maxpool(const struct tape *t, const struct ref_layer *l, const struct grid *in)
{
    struct grid out = make(in, in->c, l->oh, l->ow);
    size_t q, i;

    for (q = 0; q < in->batch * each(&out); q++) {
        const uint32_t *best = NULL;

        for (i = 0; i < l->kh * l->kw; i++) {
            ptrdiff_t y =
                (ptrdiff_t)(q / l->ow % l->oh * l->stride + i / l->kw) - (ptrdiff_t)l->pad;
            ptrdiff_t x = (ptrdiff_t)(q % l->ow * l->stride + i % l->kw) - (ptrdiff_t)l->pad;
            const uint32_t *v = pixel(in, q / each(&out), q / l->ow / l->oh % in->c, y, x);

            if (v != NULL && (best == NULL || t->nodes[*v].v > t->nodes[*best].v)) {
                best = v;
            }
        }
        ck_assert_ptr_nonnull(best);
        out.at[q] = *best;
    }
    return out;
}

/* Tape index of number i, counted over batch and pixels, of channel c. */
static size_t place(const struct grid *g, size_t c, size_t i)
{
    size_t area = g->h * g->w;

    return (i / area * g->c + c) * area + i % area;
}

static struct grid batch_norm(struct tape *t, const struct grid *in, uint32_t *p)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t n = in->batch * in->h * in->w;
    size_t c, i;

    for (c = 0; c < in->c; c++) {
        uint32_t mean = t->zero;
        uint32_t var = t->zero;
        uint32_t inverse;

        for (i = 0; i < n; i++) {
            mean = add(t, mean, in->at[place(in, c, i)]);
        }
        mean = times(t, mean, 1.0 / (double)n);
        for (i = 0; i < n; i++) {
            uint32_t d = subtract(t, in->at[place(in, c, i)], mean);

            out.at[place(in, c, i)] = d;
            var = mac(t, var, d, d);
        }
        var = times(t, var, 1.0 / (double)n);
        inverse = power(t, add(t, var, leaf(t, 1e-5, 0)), -0.5);
        for (i = 0; i < n; i++) {
            uint32_t xhat = multiply(t, out.at[place(in, c, i)], inverse);

            out.at[place(in, c, i)] = mac(t, *p + (uint32_t)(in->c + c), xhat, *p + (uint32_t)c);
        }
    }
    *p += (uint32_t)(4 * in->c);
    return out;
}

/* As in refnet.c. */
static struct grid group_norm(struct tape *t, size_t groups, bool alone, const struct grid *in,
                              uint32_t *p)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t area = in->h * in->w;
    size_t sets = alone ? area : 1;
    size_t pixels = area / sets;
    size_t n = in->c / groups;
    size_t q, i;

    for (q = 0; q < in->batch * groups * sets; q++) {
        const uint32_t *from = in->at + q / sets * n * area + q % sets;
        uint32_t *to = out.at + q / sets * n * area + q % sets;
        double share = 1.0 / (double)(n * pixels);
        uint32_t mean = t->zero;
        uint32_t var = t->zero;
        uint32_t inverse;

        for (i = 0; i < n * pixels; i++) {
            mean = add(t, mean, from[i / pixels * area + i % pixels]);
        }
        mean = times(t, mean, share);
        for (i = 0; i < n * pixels; i++) {
            uint32_t d = subtract(t, from[i / pixels * area + i % pixels], mean);

            to[i / pixels * area + i % pixels] = d;
            var = mac(t, var, d, d);
        }
        inverse = power(t, add(t, times(t, var, share), leaf(t, 1e-5, 0)), -0.5);
        for (i = 0; i < n * pixels; i++) {
            size_t at = i / pixels * area + i % pixels;
            uint32_t c = (uint32_t)(q / sets % groups * n + i / pixels);

            to[at] = mac(t, *p + (uint32_t)in->c + c, multiply(t, to[at], inverse), *p + c);
        }
    }
    *p += (uint32_t)(2 * in->c);
    return out;
}

static struct grid avgpool(struct tape *t, size_t size, size_t stride, const struct grid *in)
{
    size_t oh = (in->h - size) / stride + 1;
    size_t ow = (in->w - size) / stride + 1;
    struct grid out = make(in, in->c, oh, ow);
    size_t q, i;

    for (q = 0; q < in->batch * each(&out); q++) {
        uint32_t sum = t->zero;

        for (i = 0; i < size * size; i++) {
            sum = add(t, sum,
                      *pixel(in, q / each(&out), q / ow / oh % in->c,
                             (ptrdiff_t)(q / ow % oh * stride + i / size),
                             (ptrdiff_t)(q % ow * stride + i % size)));
        }
        out.at[q] = times(t, sum, 1.0 / (double)(size * size));
    }
    return out;
}

static struct grid globalpool(struct tape *t, const struct grid *in)
{
    struct grid out = make(in, in->c, 1, 1);
    size_t area = in->h * in->w;
    size_t q, i;

    for (q = 0; q < in->batch * in->c; q++) {
        uint32_t sum = t->zero;

        for (i = 0; i < area; i++) {
            sum = add(t, sum, in->at[q * area + i]);
        }
        out.at[q] = times(t, sum, 1.0 / (double)area);
    }
    return out;
}

static uint32_t sigmoid(struct tape *t, uint32_t x)
{
    return power(t, add(t, t->one, exponential(t, multiply(t, x, t->minus))), -1.0);
}

static uint32_t hyperbolic(struct tape *t, uint32_t x)
{
    return subtract(t, times(t, sigmoid(t, times(t, x, 2.0)), 2.0), t->one);
}

static struct grid activate(struct tape *t, enum ref_kind kind, const struct grid *in)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t i;

    for (i = 0; i < in->batch * each(in); i++) {
        uint32_t x = in->at[i];

        if (kind == REF_GELU) {
            uint32_t below = add(t, t->one, error_function(t, times(t, x, sqrt(0.5))));

            out.at[i] = multiply(t, times(t, x, 0.5), below);
        } else if (kind == REF_TANH) {
            out.at[i] = hyperbolic(t, x);
        } else {
            out.at[i] = sigmoid(t, x);
        }
    }
    return out;
}

/* --- sequences, as in refnet.c --- */

static struct grid embedding(struct tape *t, const struct ref_layer *l, const struct grid *in,
                             uint32_t *p)
{
    struct grid out = make(in, l->out, in->c, 1);
    size_t q;

    for (q = 0; q < in->batch * each(&out); q++) {
        double x = t->nodes[in->at[q / each(&out) * in->c + q % in->c]].v;
        size_t word = x >= 0 && x < (double)l->kh ? (size_t)x : 0;

        out.at[q] = *p + (uint32_t)(word * l->out + q / in->c % l->out);
    }
    *p += (uint32_t)(l->kh * l->out);
    return out;
}

/* The gate number `row` of 4 h at position s of sample b, before its function. */
static uint32_t lstm_sum(struct tape *t, const struct grid *in, const struct grid *out, uint32_t p,
                         size_t b, size_t s, size_t row)
{
    size_t steps = in->h * in->w;
    size_t h = out->c;
    uint32_t w_h = p + (uint32_t)(4 * h * in->c);
    uint32_t sum = w_h + (uint32_t)(4 * h * h + row);
    size_t i;

    for (i = 0; i < in->c; i++) {
        sum = mac(t, sum, in->at[(b * in->c + i) * steps + s], p + (uint32_t)(row * in->c + i));
    }
    for (i = 0; s > 0 && i < h; i++) {
        sum = mac(t, sum, out->at[(b * h + i) * steps + s - 1], w_h + (uint32_t)(row * h + i));
    }
    return sum;
}

static struct grid lstm(struct tape *t, const struct ref_layer *l, const struct grid *in,
                        uint32_t *p)
{
    size_t steps = in->h * in->w;
    size_t h = l->out;
    struct grid out = make(in, h, steps, 1);
    struct grid cells = make(in, h, steps, 1);
    size_t q, j;

    for (q = 0; q < in->batch * steps; q++) {
        size_t b = q / steps;
        size_t s = q % steps;

        for (j = 0; j < h; j++) {
            size_t at = (b * h + j) * steps + s;
            uint32_t i = sigmoid(t, lstm_sum(t, in, &out, *p, b, s, j));
            uint32_t f = sigmoid(t, lstm_sum(t, in, &out, *p, b, s, h + j));
            uint32_t g = hyperbolic(t, lstm_sum(t, in, &out, *p, b, s, 2 * h + j));
            uint32_t o = sigmoid(t, lstm_sum(t, in, &out, *p, b, s, 3 * h + j));

            cells.at[at] = multiply(t, i, g);
            if (s > 0) {
                cells.at[at] = mac(t, cells.at[at], f, cells.at[at - 1]);
            }
            out.at[at] = multiply(t, o, hyperbolic(t, cells.at[at]));
        }
    }
    free(cells.at);
    *p += (uint32_t)(4 * h * (in->c + h + 1));
    return out;
}

static struct grid last(const struct grid *in)
{
    struct grid out = make(in, in->c, 1, 1);
    size_t steps = in->h * in->w;
    size_t i;

    for (i = 0; i < in->batch * in->c; i++) {
        out.at[i] = in->at[i * steps + steps - 1];
    }
    return out;
}

/* q, k and v: at[batch][3 d][steps]. */
static struct grid attention_parts(struct tape *t, const struct grid *in, uint32_t p)
{
    size_t d = in->c;
    size_t steps = in->h * in->w;
    struct grid out = make(in, 3 * d, steps, 1);
    size_t q, i;

    for (q = 0; q < in->batch * each(&out); q++) {
        size_t row = q / steps % (3 * d);
        uint32_t sum = p + (uint32_t)(3 * d * d + row);

        for (i = 0; i < d; i++) {
            sum = mac(t, sum, in->at[(q / each(&out) * d + i) * steps + q % steps],
                      p + (uint32_t)(row * d + i));
        }
        out.at[q] = sum;
    }
    return out;
}

/* What channel c of the heads sees at position s; qkv: of the sample. */
static uint32_t attention_seen(struct tape *t, const struct ref_layer *l, const uint32_t *qkv,
                               size_t d, size_t steps, size_t c, size_t s)
{
    size_t part = d / l->kh;
    uint32_t total = t->zero;
    uint32_t seen = t->zero;
    size_t u, i;

    for (u = 0; u < (l->nobias ? s + 1 : steps); u++) {
        uint32_t score = t->zero;

        for (i = c / part * part; i < (c / part + 1) * part; i++) {
            score = mac(t, score, qkv[i * steps + s], qkv[(d + i) * steps + u]);
        }
        score = exponential(t, times(t, score, 1.0 / sqrt((double)part)));
        total = add(t, total, score);
        seen = mac(t, seen, score, qkv[(2 * d + c) * steps + u]);
    }
    return multiply(t, seen, power(t, total, -1.0));
}

static struct grid attention(struct tape *t, const struct ref_layer *l, const struct grid *in,
                             uint32_t *p)
{
    size_t d = in->c;
    size_t steps = in->h * in->w;
    struct grid out = make(in, d, in->h, in->w);
    struct grid parts = attention_parts(t, in, *p);
    uint32_t w_out = *p + (uint32_t)(3 * d * (d + 1));
    size_t q, i, c;

    for (q = 0; q < in->batch * steps; q++) {
        for (i = 0; i < d; i++) {
            out.at[(q / steps * d + i) * steps + q % steps] = w_out + (uint32_t)(d * d + i);
        }
        for (c = 0; c < d; c++) {
            uint32_t seen =
                attention_seen(t, l, parts.at + q / steps * each(&parts), d, steps, c, q % steps);

            for (i = 0; i < d; i++) {
                uint32_t *to = &out.at[(q / steps * d + i) * steps + q % steps];

                *to = mac(t, *to, seen, w_out + (uint32_t)(i * d + c));
            }
        }
    }
    free(parts.at);
    *p += (uint32_t)(4 * d * (d + 1));
    return out;
}

static struct grid response_norm(struct tape *t, const struct grid *in)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t n = in->batch * in->h * in->w;
    size_t c, d, i;

    for (c = 0; c < in->c; c++) {
        for (i = 0; i < n; i++) {
            uint32_t sum = t->zero;

            for (d = c < 4 ? 0 : c - 4; d <= c + 4 && d < in->c; d++) {
                uint32_t v = in->at[place(in, d, i)];

                sum = mac(t, sum, v, v);
            }
            sum = add(t, times(t, sum, 0.001 / 9.0), t->one);
            out.at[place(in, c, i)] = multiply(t, in->at[place(in, c, i)], power(t, sum, -0.75));
        }
    }
    return out;
}

/* Masks as in refnet.c. */
static struct grid dropout(struct tape *t, const struct ref_layer *l, const struct grid *in)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t area = in->h * in->w;
    size_t b, i;

    for (b = 0; b < in->batch; b++) {
        uint64_t word = 0;

        for (i = 0; i < each(in); i++) {
            size_t at = b * each(in) + i % in->c * area + i / in->c;

            word = i % 2 == 0 ? fl_rng_u64(t->rng) : word >> 32;
            out.at[at] = (double)(word & UINT32_MAX) >= l->rate * 4294967296.0
                             ? times(t, in->at[at], 1 / (1 - l->rate))
                             : t->zero;
        }
    }
    return out;
}

static struct grid relu(const struct tape *t, const struct grid *in)
{
    struct grid out = make(in, in->c, in->h, in->w);
    size_t i;

    for (i = 0; i < in->batch * each(in); i++) {
        const struct node *n = &t->nodes[in->at[i]];
        double far = fabs(n->v) / fabs(n->r);

        out.at[i] = n->v > 0 ? in->at[i] : t->zero;
        t->seen->n_zeros += n->v == 0;
        if (n->v != 0 && far < t->seen->nearest_bend) {
            t->seen->nearest_bend = far;
        }
    }
    return out;
}

static struct grid apply(struct tape *t, const struct ref_layer *l, const struct grid *in,
                         uint32_t *p)
{
    struct grid out = *in;

    switch (l->kind) {
    case REF_CONV:
        return conv(t, l, in, p);
    case REF_DENSE:
        return dense(t, l, in, p);
    case REF_RELU:
        return relu(t, in);
    case REF_MAXPOOL:
        return maxpool(t, l, in);
    case REF_BN:
        return batch_norm(t, in, p);
    case REF_LRN:
        return response_norm(t, in);
    case REF_DROPOUT:
        return dropout(t, l, in);
    case REF_GN:
        return group_norm(t, l->out, false, in, p);
    case REF_LN:
        return group_norm(t, 1, true, in, p);
    case REF_AVGPOOL:
        return avgpool(t, l->kh, l->stride, in);
    case REF_GLOBALPOOL:
        return globalpool(t, in);
    case REF_SIGMOID:
    case REF_TANH:
    case REF_GELU:
        return activate(t, l->kind, in);
    case REF_BLOCK:
    case REF_SHORTCUT:
    case REF_ADD:
        return out; /* branch() */
    case REF_EMBEDDING:
        return embedding(t, l, in, p);
    case REF_LSTM:
        return lstm(t, l, in, p);
    case REF_LAST:
        return last(in);
    case REF_ATTENTION:
        return attention(t, l, in, p);
    case REF_FLATTEN:
    default:
        out.c = each(in);
        out.h = out.w = 1;
        return out;
    }
}

/* The open blocks, as in refnet.c. */
struct branches {
    struct grid begin[4], first[4];
    bool shortcut[4];
    size_t n;
};

static void branch(struct tape *t, struct branches *open, enum ref_kind kind, struct grid *now)
{
    const struct grid *other;
    struct grid sum;
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
        sum = make(now, now->c, now->h, now->w);
        for (i = 0; i < now->batch * each(now); i++) {
            sum.at[i] = add(t, now->at[i], other->at[i]);
        }
        *now = sum;
    }
}

/* Mean cross-entropy with `target`, or with y. */
static uint32_t mean_loss(struct tape *t, const struct grid *z, const int32_t *y,
                          const float *target)
{
    uint32_t total = t->zero;
    size_t b, j;

    for (b = 0; b < z->batch; b++) {
        const uint32_t *row = z->at + b * z->c;
        uint32_t sum = t->zero;
        uint32_t log_sum;

        for (j = 0; j < z->c; j++) {
            sum = add(t, sum, exponential(t, row[j]));
        }
        log_sum = logarithm(t, sum);
        for (j = 0; j < z->c; j++) {
            double share = target != NULL ? (double)target[b * z->c + j] : (size_t)y[b] == j;

            total = add(t, total, times(t, subtract(t, log_sum, row[j]), share));
        }
    }
    return times(t, total, 1 / (double)z->batch);
}

static struct grid input(struct tape *t, const struct ad_job *job)
{
    const struct ref_net *net = job->net;
    const struct grid like = {.batch = job->batch};
    struct grid g = make(&like, net->input[0], net->input[1], net->input[2]);
    size_t i;

    for (i = 0; i < g.batch * each(&g); i++) {
        g.at[i] = leaf(t, (double)job->x[i], job->jvp_x != NULL ? (double)job->jvp_x[i] : 0);
    }
    return g;
}

struct ad_result ad_gradient(const struct ad_job *job, size_t count, double *grad)
{
    struct ad_result seen = {.nearest_bend = (double)INFINITY};
    struct tape t = {.seen = &seen, .rng = job->rng};
    const struct ref_layer *l;
    struct branches open = {.n = 0};
    uint32_t *all[REF_MAX_LAYERS + 1];
    struct grid now;
    uint32_t p = 0;
    uint32_t soft, hard;
    size_t n_all = 1;
    size_t i;

    for (i = 0; i < count; i++) {
        (void)leaf(&t, job->params[i], job->along != NULL ? job->along[i] : 0);
    }
    t.zero = leaf(&t, 0, 0);
    t.one = leaf(&t, 1, 0);
    t.minus = leaf(&t, -1, 0);
    now = input(&t, job);
    all[0] = now.at;
    for (l = job->net->layers; l->kind != 0; l++) {
        now = apply(&t, l, &now, &p);
        branch(&t, &open, l->kind, &now);
        for (i = 0; i < n_all && all[i] != now.at; i++) {
        }
        if (i == n_all) {
            all[n_all++] = now.at;
        }
    }
    ck_assert_uint_eq(p, count);
    soft = mean_loss(&t, &now, job->y, job->target);
    hard = mean_loss(&t, &now, job->y, NULL);
    seen.loss = t.nodes[soft].v;
    seen.slope = t.nodes[hard].r;
    sweep(&t, soft);
    for (i = 0; i < count; i++) {
        grad[i] = job->loss * t.nodes[i].g;
    }
    sweep(&t, hard);
    for (i = 0; i < count; i++) {
        grad[i] += job->slope * t.nodes[i].rg;
    }
    for (i = 0; i < n_all; i++) {
        free(all[i]);
    }
    free(t.nodes);
    return seen;
}
