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
    ret->m = m;
    ret->mix = calloc(2 * m * n + m, sizeof(*ret->mix));
    if (ret->mix == NULL) {
        return FL_ENOMEM;
    }
    ret->members = ret->mix + m * n;
    ret->sizes = ret->members + m * n;
    return FL_OK;
}

/* Mixture a is the mean of `size` updates, i among them. */
static void mixtures_join(struct fl_robust_mixtures *x, size_t n, size_t a, size_t i, size_t size)
{
    x->mix[a * n + i] = 1 / (double)size;
    x->members[a * n + i] = 1;
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

/* Inner product of mixtures a and b; of the centre with b = m. */
static double mixture_product(const struct fl_robust_updates *in,
                              const struct fl_robust_mixtures *x, size_t a, size_t b)
{
    double sum = 0;
    size_t i;
    size_t j;

    for (i = 0; i < in->n; i++) {
        double w = x->mix[a * in->n + i];

        if (b == x->m) {
            sum += w * fl__robust_product(in, i, in->n);
        }
        for (j = 0; b < x->m && w > 0 && j < in->n; j++) {
            sum += w * x->mix[b * in->n + j] * fl__robust_product(in, i, j);
        }
    }
    return sum;
}

static int weigh_mixtures(const struct fl_robust_ops *ops, const struct fl_options *o,
                          const struct fl_robust_updates *in, const struct fl_robust_mixtures *x,
                          double *out, double *scores)
{
    size_t m = x->m;
    double *gram = calloc((m + 1) * (m + 1) + 3 * (m + 1), sizeof(*gram));
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
        for (b = a; b <= m; b++) {
            gram[a * (m + 1) + b] = mixture_product(in, x, a, b);
            gram[b * (m + 1) + a] = gram[a * (m + 1) + b];
        }
    }
    gram[m * (m + 1) + m] = fl__robust_product(in, in->n, in->n);
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

size_t fl_robust_scratch(size_t n)
{
    return (2 * n + 3) * FL_ROBUST_TILE + n;
}

/* Updates themselves: sorted as floats, which is twice as fast. `floats` has the place of the tile.
 */
static void tile_sort_updates(const struct fl_robust_values *v, size_t from, size_t n,
                              float *floats, double *sorted)
{
    size_t i;

    (void)memset(floats, 0, v->n_rows * FL_ROBUST_TILE * sizeof(*floats));
    for (i = 0; i < v->n_rows; i++) {
        (void)memcpy(floats + i * FL_ROBUST_TILE, v->rows + i * v->stride + from,
                     n * sizeof(*floats));
    }
    fl_rows_sort(floats, v->n_rows);
    for (i = 0; i < v->n_rows * FL_ROBUST_TILE; i++) {
        sorted[i] = (double)floats[i];
    }
}

/* Mixtures, in `tile` and sorted; `sorted` has place for all updates. */
static void tile_sort_mixtures(const struct fl_robust_mixtures *x, const struct fl_robust_values *v,
                               size_t from, size_t n, double *tile, double *sorted)
{
    size_t a;
    size_t i;
    size_t c;

    for (i = 0; i < v->n_rows; i++) {
        double *wide = sorted + i * FL_ROBUST_TILE;
        const float *row = v->rows + i * v->stride + from;

        for (c = 0; c < n; c++) {
            wide[c] = (double)row[c];
        }
        for (; c < FL_ROBUST_TILE; c++) {
            wide[c] = 0;
        }
    }
    fl_rows_sum(tile, x->members, x->m, sorted, v->n_rows);
    for (a = 0; a < x->m; a++) {
        for (c = 0; c < FL_ROBUST_TILE; c++) {
            tile[a * FL_ROBUST_TILE + c] /= x->sizes[a];
        }
    }
    (void)memcpy(sorted, tile, x->m * FL_ROBUST_TILE * sizeof(*tile));
    fl_rows_sort_wide(sorted, x->m);
}

/* How many of n values were used. */
static double tile_used(const struct fl_robust_tile *t, const double *row, size_t n)
{
    size_t used = 0;
    size_t c;

    for (c = 0; c < n; c++) {
        used += (size_t)((row[c] >= t->low[c]) & (row[c] <= t->high[c]));
    }
    return (double)used;
}

/* Of updates, from how many columns of the mixtures that they are in were used. */
static void count_mixtures(const struct fl_robust_mixtures *x, const struct fl_robust_values *v,
                           const double *columns)
{
    size_t a;
    size_t i;

    for (a = 0; a < x->m; a++) {
        for (i = 0; i < v->n_rows; i++) {
            v->used[i] += columns[a] * x->mix[a * v->n_rows + i];
        }
    }
}

static void tile_count_updates(const struct fl_robust_values *v, const struct fl_robust_tile *t,
                               size_t from, size_t n)
{
    size_t i;
    size_t c;

    for (i = 0; i < v->n_rows; i++) {
        const float *row = v->rows + i * v->stride + from;
        size_t used = 0;

        for (c = 0; c < n; c++) {
            used += (size_t)(((double)row[c] >= t->low[c]) & ((double)row[c] <= t->high[c]));
        }
        v->used[i] += (double)used;
    }
}

void fl_robust_combine(const struct fl_robust_ops *ops, const struct fl_options *o,
                       const struct fl_robust_mixtures *mixtures,
                       const struct fl_robust_values *values)
{
    size_t m = mixtures->m;
    double *tile = values->scratch;
    double *sorted = tile + m * FL_ROBUST_TILE;
    double *out = sorted + values->n_rows * FL_ROBUST_TILE;
    double *columns = out + 3 * FL_ROBUST_TILE; /* [m] used */
    size_t from;
    size_t i;

    (void)memset(columns, 0, m * sizeof(*columns));

    for (from = 0; from < values->n; from += FL_ROBUST_TILE) {
        size_t left = values->n - from;
        size_t n = left < FL_ROBUST_TILE ? left : FL_ROBUST_TILE;
        struct fl_robust_tile t = {.n_rows = m,
                                   .rows = sorted,
                                   .out = out,
                                   .low = out + FL_ROBUST_TILE,
                                   .high = out + 2 * FL_ROBUST_TILE};

        if (mixtures->mix != NULL) {
            tile_sort_mixtures(mixtures, values, from, n, tile, sorted);
            ops->combine(o, &t);
            for (i = 0; i < m; i++) {
                columns[i] += tile_used(&t, tile + i * FL_ROBUST_TILE, n);
            }
        } else {
            tile_sort_updates(values, from, n, (void *)tile, sorted);
            ops->combine(o, &t);
            tile_count_updates(values, &t, from, n);
        }
        (void)memcpy(values->out + from, out, n * sizeof(*out));
        for (i = 0; i < values->n_rows; i++) {
            values->apart[i] +=
                fl_acc_distance_sq(out, values->rows + i * values->stride + from, n);
        }
    }
    if (mixtures->mix != NULL) {
        count_mixtures(mixtures, values, columns);
    }
}
