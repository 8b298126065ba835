/*
 * What all robust rules share (docs/algorithms.md#robust-aggregation): the options, mixing before a
 * rule, and the two ways in which a rule is applied.
 *
 *     bucketing   means of `bucket` updates of a random permutation, the last of the rest
 *                 (Karimireddy, He, Jaggi 2022, Algorithm 1)
 *     nnm         for each update the mean of the n - f nearest ones, itself included
 *                 (Allouah et al. 2023, Algorithm 1)
 *
 * The inner products of mixtures follow from those of the updates, and the weights of mixtures are
 * weights of updates: nothing is mixed but the values of rules by entries.
 */
#include "libfl/strategy/robust/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/rows.h"
#include "libfl/strategy/robust/robust_impl.h"

const char *const fl__robust_mixes[] = {
    [FL_MIX_NONE] = "none", [FL_MIX_BUCKETING] = "bucketing", [FL_MIX_NNM] = "nnm", NULL};

const struct fl_robust_ops fl_robust_none = {
    .policy = {.name = "none",
               .help = "the mean: every client is trusted",
               .source = "FedAvg",
               .options = fl_opt_none},
};

bool fl_robust_on(const struct fl_robust_ops *ops)
{
    return ops != NULL && ops->needs != NULL;
}

bool fl_robust_centred(const struct fl_robust_ops *ops, const struct fl_options *o)
{
    return ops != NULL && ops->centred != NULL && ops->centred(o);
}

bool fl_robust_trusts(const struct fl_robust_ops *ops)
{
    return ops != NULL && ops->trusts;
}

bool fl_robust_reports(const struct fl_robust_ops *ops, const struct fl_options *o)
{
    return fl_robust_on(ops) && fl__robust_common(o)->report;
}

bool fl_robust_draws(const struct fl_robust_ops *ops, const struct fl_options *o)
{
    return fl_robust_on(ops) && fl__robust_common(o)->mix == FL_MIX_BUCKETING;
}

unsigned fl_robust_wants(const struct fl_robust_ops *ops, const struct fl_options *o)
{
    if (!fl_robust_on(ops)) {
        return 0;
    }
    switch (fl__robust_common(o)->mix) {
    case FL_MIX_NNM:
        return ops->wants | FL_ROBUST_PRODUCTS;
    case FL_MIX_BUCKETING: /* The norm of a mixture follows from inner products. */
        return ops->wants != 0 ? ops->wants | FL_ROBUST_PRODUCTS : 0;
    case FL_MIX_NONE:
        break;
    }
    return ops->wants | (fl_robust_centred(ops, o) ? (unsigned)FL_ROBUST_REFERENCE : 0);
}

size_t fl__robust_majority(const struct fl_options *o)
{
    return 2 * fl__robust_f(o) + 1;
}

size_t fl__robust_bound_f(const struct fl_options *o, size_t n)
{
    size_t most = (n - 1) / 2;

    return fl__robust_f(o) < most ? fl__robust_f(o) : most;
}

size_t fl_robust_needs(const struct fl_robust_ops *ops, const struct fl_options *o)
{
    const struct fl_robust_common *common;
    size_t needs;

    if (!fl_robust_on(ops)) {
        return 1;
    }
    common = fl__robust_common(o);
    needs = ops->needs(o);
    /* The last bucket may hold one update only. */
    return common->mix == FL_MIX_BUCKETING ? (needs - 1) * (size_t)common->bucket + 1 : needs;
}

double fl__robust_point_sq(const struct fl_robust_updates *in, const double *a)
{
    double sum = 0;
    size_t i;
    size_t j;

    for (i = 0; i <= in->n; i++) {
        for (j = 0; j <= in->n; j++) {
            sum += a[i] * a[j] * fl__robust_product(in, i, j);
        }
    }
    return sum;
}

double fl__robust_from_point(const struct fl_robust_updates *in, const double *a, double point_sq,
                             size_t i)
{
    double sum = fl__robust_product(in, i, i) + point_sq;
    size_t j;

    for (j = 0; j <= in->n; j++) {
        sum -= 2 * a[j] * fl__robust_product(in, i, j);
    }
    return sum > 0 ? sum : 0;
}

void fl__robust_score_distances(const struct fl_robust_updates *in, const double *w, double *score)
{
    double point_sq = fl__robust_point_sq(in, w);
    size_t i;

    for (i = 0; i < in->n; i++) {
        score[i] = sqrt(fl__robust_from_point(in, w, point_sq, i));
    }
}

static int ranked_compare(const void *a, const void *b)
{
    const struct fl__robust_ranked *x = a;
    const struct fl__robust_ranked *y = b;

    if (x->value != y->value) {
        return x->value > y->value ? 1 : -1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

void fl__robust_rank(struct fl__robust_ranked *list, size_t n)
{
    qsort(list, n, sizeof(*list), ranked_compare);
}

/* --- mixing --- */

static int mixtures_new(struct fl_robust_mixtures *ret, size_t m, size_t n)
{
    size_t bytes = m * fl_rows_groups(n);

    ret->m = m;
    ret->mix = calloc(m * n + m + bytes / sizeof(*ret->mix) + 1, sizeof(*ret->mix));
    if (ret->mix == NULL) {
        return FL_ENOMEM;
    }
    ret->sizes = ret->mix + m * n;
    ret->groups = (uint8_t *)(void *)(ret->sizes + m);
    return FL_OK;
}

/* Mixture a is the mean of `size` updates, i among them. */
static void mixtures_join(struct fl_robust_mixtures *x, size_t n, size_t a, size_t i, size_t size)
{
    x->mix[a * n + i] = 1 / (double)size;
    x->groups[a * fl_rows_groups(n) + i / FL_ROWS_GROUP] |= (uint8_t)(1u << i % FL_ROWS_GROUP);
    x->sizes[a] = (double)size;
}

static int mix_buckets(const struct fl_robust_common *common, size_t n, struct fl_rng *rng,
                       struct fl_robust_mixtures *ret)
{
    size_t bucket = (size_t)common->bucket;
    uint32_t *order = calloc(n, sizeof(*order));
    size_t i;

    if (mixtures_new(ret, (n + bucket - 1) / bucket, n) != FL_OK || order == NULL) {
        free(order);
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    fl_rng_shuffle(rng, order, n);
    for (i = 0; i < n; i++) {
        size_t a = i / bucket;
        size_t last = n - a * bucket;

        mixtures_join(ret, n, a, order[i], last < bucket ? last : bucket);
    }
    free(order);
    return FL_OK;
}

static int mix_neighbours(const struct fl_options *o, const struct fl_robust_updates *in,
                          struct fl_robust_mixtures *ret)
{
    size_t n = in->n;
    size_t k = n - fl__robust_bound_f(o, n);
    struct fl__robust_ranked *list = calloc(n, sizeof(*list));
    size_t i;
    size_t j;

    if (mixtures_new(ret, n, n) != FL_OK || list == NULL) {
        free(list);
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            /* The update itself is the first, also among equal ones. */
            list[j] = (struct fl__robust_ranked){j == i ? -1 : fl__robust_distance_sq(in, i, j), j};
        }
        fl__robust_rank(list, n);
        for (j = 0; j < k; j++) {
            mixtures_join(ret, n, i, list[j].at, k);
        }
    }
    free(list);
    return FL_OK;
}

int fl_robust_mix_updates(const struct fl_options *o, const struct fl_robust_updates *in,
                          struct fl_rng *rng, struct fl_robust_mixtures *ret)
{
    const struct fl_robust_common *common = fl__robust_common(o);

    FL_REQUIRE(in->n > 0);
    *ret = (struct fl_robust_mixtures){.m = in->n};
    switch (common->mix) {
    case FL_MIX_BUCKETING:
        return mix_buckets(common, in->n, rng, ret);
    case FL_MIX_NNM:
        return mix_neighbours(o, in, ret);
    case FL_MIX_NONE:
        break;
    }
    return FL_OK;
}

void fl_robust_mixtures_done(struct fl_robust_mixtures *mixtures)
{
    free(mixtures->mix);
    mixtures->mix = NULL;
}

/* --- rules by weights --- */

/*
 * gram[m + 1][m + 1] = M G M', M the mixtures and the centre: `half` [n + 1] is a row of M G. Equal
 * mixtures have equal products.
 */
static void mixture_products(const struct fl_robust_updates *in, const struct fl_robust_mixtures *x,
                             double *half, double *gram)
{
    size_t n = in->n;
    size_t m = x->m;
    size_t a;
    size_t b;
    size_t i;
    size_t j;

    for (a = 0; a < m; a++) {
        const double *w = x->mix + a * n;

        (void)memset(half, 0, (n + 1) * sizeof(*half));
        for (i = 0; i < n; i++) {
            for (j = 0; w[i] > 0 && j <= n; j++) {
                half[j] += w[i] * fl__robust_product(in, i, j);
            }
        }
        for (b = a; b < m; b++) {
            double sum = 0;

            for (j = 0; j < n; j++) {
                sum += half[j] * x->mix[b * n + j];
            }
            gram[a * (m + 1) + b] = gram[b * (m + 1) + a] = sum;
        }
        gram[a * (m + 1) + m] = gram[m * (m + 1) + a] = half[n];
    }
    gram[m * (m + 1) + m] = fl__robust_product(in, n, n);
}

static int weigh_mixtures(const struct fl_robust_ops *ops, const struct fl_options *o,
                          const struct fl_robust_updates *in, const struct fl_robust_mixtures *x,
                          double *out, double *scores)
{
    size_t m = x->m;
    double *gram = calloc((m + 1) * (m + 1) + 3 * (m + 1) + in->n + 1, sizeof(*gram));
    struct fl_robust_updates mixed = {.n = m, .gram = gram};
    double *equal;
    double *w;
    double *mixed_scores;
    size_t a;
    size_t b;
    int rv;

    if (gram == NULL) {
        return FL_ENOMEM;
    }
    equal = gram + (m + 1) * (m + 1);
    w = equal + m + 1;
    mixed_scores = w + m + 1;
    mixed.weights = equal;
    for (a = 0; a < m; a++) {
        equal[a] = 1 / (double)m;
    }
    mixture_products(in, x, mixed_scores + m + 1, gram);
    rv = ops->weigh(o, &mixed, w, mixed_scores);
    if (rv != FL_OK) {
        goto done;
    }
    for (b = 0; b < in->n; b++) {
        double shares = 0;

        out[b] = scores[b] = 0;
        for (a = 0; a < m; a++) {
            double share = x->mix[a * in->n + b];

            out[b] += w[a] * share;
            scores[b] += mixed_scores[a] * share;
            shares += share;
        }
        scores[b] /= shares; /* Every update is in a mixture. */
    }
    out[in->n] = w[m];
done:
    free(gram);
    return rv;
}

int fl_robust_weigh(const struct fl_robust_ops *ops, const struct fl_options *o,
                    const struct fl_robust_updates *in, const struct fl_robust_mixtures *mixtures,
                    double *out, double *scores)
{
    FL_REQUIRE(mixtures->mix == NULL || (ops->wants & FL_ROBUST_SIGNS) == 0); /* as checked */
    return mixtures->mix == NULL ? ops->weigh(o, in, out, scores)
                                 : weigh_mixtures(ops, o, in, mixtures, out, scores);
}

/* --- rules by entries --- */

/* For each column: the values as floats, mixtures, and values in rising order; the result and its
   limits; and columns used of each. */
size_t fl_robust_scratch(size_t n)
{
    return (3 * n + 3) * FL_ROBUST_TILE + n;
}

struct combine {
    const struct fl_robust_ops *ops;
    const struct fl_options *o;
    const struct fl_robust_mixtures *x;
    const struct fl_robust_values *v;
    bool sums;       /* mixtures are all of one size: sums of them are sorted, the result divided */
    float *values;   /* [n_rows][FL_ROBUST_TILE] */
    double *mixed;   /* [m][FL_ROBUST_TILE] */
    double *sorted;  /* likewise */
    double *columns; /* [m] used */
    struct fl_robust_tile tile;
};

static void combine_begin(struct combine *c)
{
    size_t n = c->v->n_rows;
    size_t a;

    c->mixed = c->v->scratch;
    c->sorted = c->mixed + n * FL_ROBUST_TILE;
    c->values = (float *)(void *)(c->sorted + n * FL_ROBUST_TILE);
    c->tile = (struct fl_robust_tile){.n_rows = c->x->m, .rows = c->sorted};
    c->tile.out = c->sorted + 2 * n * FL_ROBUST_TILE;
    c->tile.low = c->tile.out + FL_ROBUST_TILE;
    c->tile.high = c->tile.low + FL_ROBUST_TILE;
    c->columns = c->tile.high + FL_ROBUST_TILE;
    (void)memset(c->columns, 0, c->x->m * sizeof(*c->columns));
    c->sums = true;
    for (a = 1; c->x->mix != NULL && a < c->x->m; a++) {
        c->sums =
            c->sums && !(c->x->sizes[a] < c->x->sizes[0]) && !(c->x->sizes[a] > c->x->sizes[0]);
    }
}

/* Sorted as floats, which is twice as fast. */
static void combine_updates(const struct combine *c, size_t from, size_t n)
{
    const struct fl_robust_values *v = c->v;
    size_t i;

    fl_rows_sort(c->values, v->n_rows);
    fl_rows_widen(c->sorted, c->values, v->n_rows * FL_ROBUST_TILE);
    c->ops->combine(c->o, &c->tile);
    for (i = 0; i < v->n_rows; i++) {
        v->used[i] +=
            (double)fl_rows_between(v->rows + i * v->stride + from, c->tile.low, c->tile.high, n);
    }
}

static void combine_mixtures(const struct combine *c, size_t n)
{
    size_t m = c->x->m;
    size_t a;
    size_t i;

    fl_rows_sum(c->mixed, c->x->groups, m, c->values, c->v->n_rows);
    for (a = 0; !c->sums && a < m; a++) {
        for (i = 0; i < FL_ROBUST_TILE; i++) {
            c->mixed[a * FL_ROBUST_TILE + i] /= c->x->sizes[a];
        }
    }
    (void)memcpy(c->sorted, c->mixed, m * FL_ROBUST_TILE * sizeof(*c->sorted));
    fl_rows_sort_wide(c->sorted, m);
    c->ops->combine(c->o, &c->tile);
    for (a = 0; a < m; a++) {
        c->columns[a] += (double)fl_rows_between_wide(c->mixed + a * FL_ROBUST_TILE, c->tile.low,
                                                      c->tile.high, n);
    }
    for (i = 0; c->sums && i < FL_ROBUST_TILE; i++) {
        c->tile.out[i] /= c->x->sizes[0];
    }
}

/* Of updates, from how many columns of the mixtures that they are in were used. */
static void count_mixtures(const struct combine *c)
{
    const struct fl_robust_values *v = c->v;
    size_t a;
    size_t i;

    for (a = 0; a < c->x->m; a++) {
        for (i = 0; i < v->n_rows; i++) {
            v->used[i] += c->columns[a] * c->x->mix[a * v->n_rows + i];
        }
    }
}

void fl_robust_combine(const struct fl_robust_ops *ops, const struct fl_options *o,
                       const struct fl_robust_mixtures *mixtures,
                       const struct fl_robust_values *values)
{
    struct combine c = {.ops = ops, .o = o, .x = mixtures, .v = values};
    size_t from;
    size_t i;

    combine_begin(&c);
    for (from = 0; from < values->n; from += FL_ROBUST_TILE) {
        size_t left = values->n - from;
        size_t n = left < FL_ROBUST_TILE ? left : FL_ROBUST_TILE;

        fl_rows_tile(c.values, values->rows + from, values->stride, values->n_rows, n);
        if (mixtures->mix != NULL) {
            combine_mixtures(&c, n);
        } else {
            combine_updates(&c, from, n);
        }
        (void)memcpy(values->out + from, c.tile.out, n * sizeof(*c.tile.out));
    }
    for (i = 0; i < values->n_rows; i++) {
        values->apart[i] +=
            fl_acc_distance_sq(values->out, values->rows + i * values->stride, values->n);
    }
    if (mixtures->mix != NULL) {
        count_mixtures(&c);
    }
}
