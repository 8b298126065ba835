/*
 * Attention between updates: a pass before the server step, per unit under partial uploads
 * (docs/algorithms.md#partial-uploads). It computes the inner products of the uploads from the
 * coded units, block by block, and passes them to the policy, which returns weights. It does not
 * step the model (aggregate_run.c) or compute personalized models (aggregate_mix.c). Runs on the
 * caller's thread.
 *
 * The inner products have the fixed order of libfl/num/rows.h; the block size depends on the number
 * of clients alone and blocks are summed in rising order. The weights are therefore the same for
 * any order of arrival. A BLAS matrix product in float would lose the distance of near updates, and
 * its bits depend on the BLAS.
 *
 * Cost: each coded unit is decoded a second time, and n (n + 1) / 2 products per entry. Memory:
 * n^2 doubles twice, with scope TENSOR once for each tensor of a unit and once more.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/rows.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"

/* Entries that are read of one update before the next: long enough for memory to be read in order,
   and those of 50 clients fit into a core's second cache. */
#define BLOCK_MAX 4096u
#define BLOCK_MIN 64u
/* Between rows, so that the rows of a pair do not share the same lines of a cache. */
#define ROW_SPACE 16u

/* Far inside the range of doubles, so that differences stay finite. */
#define SCORE_MAX 1e300

void fl__normalise(double *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += x[i];
    }
    for (i = 0; i < n; i++) {
        x[i] /= sum;
    }
}

void fl__softmax(double *x, size_t n)
{
    double max = -SCORE_MAX;
    size_t i;

    for (i = 0; i < n; i++) {
        x[i] = fmin(fmax(x[i], -SCORE_MAX), SCORE_MAX);
        max = fmax(max, x[i]);
    }
    for (i = 0; i < n; i++) {
        x[i] = exp(x[i] - max);
    }
    fl__normalise(x, n);
}

double fl__agg_cosine(const struct fl_attention *in, size_t i, size_t j)
{
    double a = in->gram[i * in->n + i];
    double b = in->gram[j * in->n + j];

    if (i == j) {
        return 1;
    }
    if (!(a > 0) || !(b > 0)) {
        return 0;
    }
    return fmin(fmax(in->gram[i * in->n + j] / (sqrt(a) * sqrt(b)), -1), 1);
}

/* Some client sent a part of the units only. Clients that sent no unit are ignored. */
static bool attend_is_partial(const struct fl_agg_job *job)
{
    size_t n_units = fl_layout_units(job->layout);
    size_t k;
    size_t l;

    for (k = 0; k < job->n_clients; k++) {
        for (l = 1; l < n_units; l++) {
            if ((job->clients[k].units[l] != 0) != (job->clients[k].units[0] != 0)) {
                return true;
            }
        }
    }
    return false;
}

int fl__agg_read_senders(const struct fl__agg_pass *p, size_t l, size_t n)
{
    const struct fl__agg_attention *a = &p->attention;
    size_t s;

    for (s = 0; s < p->n_senders; s++) {
        int rv = fl__agg_read(p, p->senders[s], 0, l, a->in + s * a->in_row, n);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* The inner products of n entries of each row, which are followed by zeros up to a multiple of
   FL_ROWS_STEP. */
static void gram_add_pairs(const struct fl__agg_attention *a, size_t rows, size_t n)
{
    size_t columns = (n + FL_ROWS_STEP - 1) / FL_ROWS_STEP * FL_ROWS_STEP;
    size_t at;
    size_t i;

    for (i = 0; i < rows; i++) {
        (void)memset(a->in + i * a->in_row + n, 0, (columns - n) * sizeof(*a->in));
    }
    for (at = 0; at < columns; at += FL_ROWS_PIECE) {
        fl_rows_gram(a->gram, a->rows, a->in + at, a->in_row, rows,
                     columns - at < FL_ROWS_PIECE ? columns - at : FL_ROWS_PIECE);
    }
}

/* The norms of a block, and with a centre, not NULL, its norm and the products with it. */
static void gram_add_norms(const struct fl__agg_pass *p, const float *centre, size_t n)
{
    const struct fl__agg_attention *a = &p->attention;
    size_t i;

    for (i = 0; i < p->n_senders; i++) {
        const float *x = a->in + i * a->in_row;

        a->gram[i * a->rows + i] += fl_vec_dot(x, x, n);
        if (centre != NULL) {
            a->gram[p->n_senders * a->rows + i] += fl_vec_dot(x, centre, n);
        }
    }
    if (centre != NULL) {
        a->gram[p->n_senders * a->rows + p->n_senders] += fl_vec_dot(centre, centre, n);
    }
}

/* The pairs of a block, in attention.in, from entry `offset` of the model on. */
static void gram_add_block(const struct fl__agg_pass *p, size_t offset, size_t n)
{
    const struct fl__agg_attention *a = &p->attention;
    const float *centre = fl__agg_robust_centre(p);
    size_t i;

    if ((p->robust.wants & FL_ROBUST_SIGNS) != 0) {
        for (i = 0; i < p->n_senders; i++) {
            fl__agg_robust_signs(p, i, a->in + i * a->in_row, n);
        }
    }
    if (p->robust.wants != 0 && (p->robust.wants & FL_ROBUST_PRODUCTS) == 0) {
        gram_add_norms(p, (p->robust.wants & FL_ROBUST_REFERENCE) != 0 ? centre + offset : NULL, n);
        return;
    }
    if (centre != NULL) {
        (void)memcpy(a->in + p->n_senders * a->in_row, centre + offset, n * sizeof(*centre));
    }
    gram_add_pairs(a, p->n_senders + (centre != NULL ? 1 : 0), n);
}

static int gram_add_tensor(const struct fl__agg_pass *p, size_t l, const struct fl_tensor *tensor)
{
    size_t offset = tensor->offset;
    size_t left = tensor->count;

    while (left > 0) {
        size_t n = left < p->attention.block ? left : p->attention.block;
        int rv = fl__agg_read_senders(p, l, n);

        if (rv != FL_OK) {
            return rv;
        }
        if (fl_tensor_counts(tensor)) {
            gram_add_block(p, offset, n);
        }
        offset += n;
        left -= n;
    }
    return FL_OK;
}

static void gram_clear(struct fl__agg_pass *p)
{
    struct fl__agg_attention *a = &p->attention;

    a->rows = p->n_senders + (p->robust.on ? 1 : 0);
    (void)memset(a->gram, 0, a->rows * a->rows * sizeof(double));
    fl__agg_robust_clear(p);
}

/* Copy the lower triangle of x[n][n] to the upper one. */
static void gram_mirror(double *x, size_t n)
{
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++) {
            x[j * n + i] = x[i * n + j];
        }
    }
}

/* exp(entropy) of a row of weights. */
static double attend_effective_n(const double *w, size_t n)
{
    double entropy = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        entropy -= w[i] > 0 ? w[i] * log(w[i]) : 0;
    }
    return exp(entropy);
}

/* Add row i of the weights of a component, `share` each, of the clients that are asked for. */
static void attend_mix_row(const struct fl__agg_pass *p, size_t i, const double *row, double share)
{
    const struct fl_agg_job *job = p->job;
    size_t j;

    for (j = 0; j < p->n_senders; j++) {
        if (p->senders[j] < job->n_mixing) {
            job->mixing[p->senders[i] * job->n_mixing + p->senders[j]] += share * row[j];
        }
    }
}

bool fl_aggregate_has_mixing(const struct fl_aggregate_ops *ops, const struct fl_options *options)
{
    return ops->mixes || (ops->scores_pairs != NULL && ops->scores_pairs(options));
}

/* Add the weights of a component to the job's; q[n][n] with `mixes`. */
static void attend_mix(const struct fl__agg_pass *p, const struct fl_attention *in, const double *q)
{
    const struct fl_agg_job *job = p->job;
    size_t i;

    for (i = 0; i < in->n; i++) {
        if (p->senders[i] >= job->n_mixing) {
            continue;
        }
        if (!job->ops->mixes) {
            job->ops->pair_scores(job->options, in, i, p->attention.row);
        }
        attend_mix_row(p, i, job->ops->mixes ? q + i * in->n : p->attention.row,
                       (double)in->entries);
    }
}

/* Call the policy for a component whose Gram matrix is complete. */
static int attend_component(struct fl__agg_pass *p, size_t entries, double *out)
{
    struct fl__agg_attention *a = &p->attention;
    const struct fl_agg_job *job = p->job;
    struct fl_attention in = {
        .n = p->n_senders,
        .entries = entries,
        .model_entries = fl_layout_trainable(job->layout),
        .gram = a->gram,
        .samples = a->samples,
        .previous_dot = a->previous_dot,
    };
    size_t rows = job->ops->mixes ? in.n : 1;
    double share = (double)entries / (double)rows;
    size_t i;

    gram_mirror(a->gram, a->rows);
    if (p->robust.on) {
        return fl__agg_robust_component(p, entries);
    }
    for (i = 0; i < in.n; i++) {
        a->samples[i] = job->clients[p->senders[i]].weight;
        a->previous_dot[i] = job->clients[p->senders[i]].previous_dot;
    }
    job->ops->attend(job->options, &in, out);
    fl__agg_share(p, &in, out);
    for (i = 0; i < rows; i++) {
        a->effective += share * attend_effective_n(out + i * in.n, in.n);
        a->self_weight += job->ops->mixes ? share * out[i * in.n + i] : 0;
    }
    if (job->mixing != NULL && fl_aggregate_has_mixing(job->ops, job->options)) {
        attend_mix(p, &in, out);
    }
    for (i = 0; !job->ops->mixes && job->attention != NULL && i < in.n; i++) {
        job->attention[p->senders[i]] += (double)entries * out[i];
    }
    a->entries += (double)entries;
    return FL_OK;
}

/* A component without a trainable entry keeps the weights by samples. */
static void attend_take_weights(const struct fl__agg_pass *p, size_t entries)
{
    size_t s;

    for (s = 0; entries > 0 && !p->robust.on && !p->job->ops->mixes && s < p->n_senders; s++) {
        p->weights[p->senders[s]] = p->attention.out[s];
    }
}

static int attend_model(struct fl__agg_pass *p)
{
    const struct fl_layout *layout = p->job->layout;
    size_t l;
    size_t t;

    if (!fl__agg_weigh(p, 0) || fl__agg_robust_lacks(p) || fl_layout_trainable(layout) == 0) {
        return FL_OK;
    }
    gram_clear(p);
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        int rv = fl__agg_open(p, l, 1);

        if (rv != FL_OK) {
            return rv;
        }
        for (t = 0; t < unit->n_tensors; t++) {
            rv = gram_add_tensor(p, l, fl_layout_tensor(layout, unit->first_tensor + t));
            if (rv != FL_OK) {
                return rv;
            }
        }
        rv = fl__agg_close(p, l, 1);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return attend_component(p, fl_layout_trainable(layout), p->attention.out);
}

int fl__agg_attend_unit(struct fl__agg_pass *p, size_t l)
{
    struct fl__agg_attention *a = &p->attention;
    const struct fl_layout *layout = p->job->layout;
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t t;
    int rv;

    if (a->scope == FL_SCOPE_NONE) {
        return FL_OK;
    }
    if (a->scope == FL_SCOPE_MODEL) {
        attend_take_weights(p, fl_layout_trainable(layout));
        return FL_OK;
    }
    if (unit->n_trainable == 0) {
        return FL_OK;
    }
    gram_clear(p);
    rv = fl__agg_open(p, l, 1);
    if (rv != FL_OK) {
        return rv;
    }
    for (t = 0; t < unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, unit->first_tensor + t);

        rv = gram_add_tensor(p, l, tensor);
        if (rv != FL_OK) {
            return rv;
        }
        if (a->scope == FL_SCOPE_TENSOR && fl_tensor_counts(tensor)) {
            rv = attend_component(p, tensor->count, a->out + t * a->stride);
            if (rv != FL_OK) {
                return rv;
            }
            gram_clear(p);
        }
    }
    rv = fl__agg_close(p, l, 1);
    if (rv != FL_OK) {
        return rv;
    }
    if (a->scope == FL_SCOPE_UNIT) {
        rv = attend_component(p, unit->n_trainable, a->out);
        if (rv != FL_OK) {
            return rv;
        }
        attend_take_weights(p, unit->n_trainable);
    }
    return FL_OK;
}

static size_t attend_components(const struct fl_layout *layout, enum fl_agg_scope scope)
{
    size_t most = 1;
    size_t l;

    for (l = 0; scope == FL_SCOPE_TENSOR && l < fl_layout_units(layout); l++) {
        size_t n = fl_layout_unit(layout, l)->n_tensors;

        most = n > most ? n : most;
    }
    return most;
}

int fl__agg_attend_init(struct fl__agg_pass *p)
{
    struct fl__agg_attention *a = &p->attention;
    const struct fl_agg_job *job = p->job;
    size_t n = job->n_clients;
    size_t block;

    a->scope = job->ops->scope != NULL ? job->ops->scope(job->options) : FL_SCOPE_NONE;
    if (p->robust.wants != 0) {
        a->scope = FL_SCOPE_MODEL;
    }
    if (a->scope == FL_SCOPE_NONE) {
        return FL_OK;
    }
    FL_REQUIRE(a->scope != FL_SCOPE_TENSOR || job->ops->mixes);
    if (a->scope == FL_SCOPE_MODEL && attend_is_partial(job)) {
        a->scope = FL_SCOPE_UNIT;
    }
    block = FL__AGG_SCRATCH / sizeof(float) / n;
    block = block > BLOCK_MAX ? BLOCK_MAX : block;
    a->block = (block < BLOCK_MIN ? BLOCK_MIN : block) / FL_ROWS_STEP * FL_ROWS_STEP;
    a->in_row = a->block + ROW_SPACE;
    a->stride = n * n;
    a->in = fl__agg_zeroed(n + 1, a->in_row * sizeof(*a->in));
    a->gram = calloc(n + 1, (n + 1) * sizeof(*a->gram));
    a->samples = calloc(n, sizeof(*a->samples));
    a->previous_dot = calloc(n, sizeof(*a->previous_dot));
    a->out = calloc(n * attend_components(job->layout, a->scope), n * sizeof(*a->out));
    a->row = calloc(n, sizeof(*a->row));
    a->fair = calloc(n, sizeof(*a->fair));
    a->factor = calloc(n, sizeof(*a->factor));
    a->scratch = calloc(n, sizeof(*a->scratch));
    a->capped = calloc(n, sizeof(*a->capped));
    a->sent = calloc(n, sizeof(*a->sent));
    a->left = calloc(n, sizeof(*a->left));
    a->relative = calloc(n, sizeof(*a->relative));
    if (a->in == NULL || a->gram == NULL || a->samples == NULL || a->previous_dot == NULL ||
        a->out == NULL || a->row == NULL || a->fair == NULL || a->factor == NULL ||
        a->scratch == NULL || a->capped == NULL || a->sent == NULL || a->left == NULL ||
        a->relative == NULL)
    {
        return fl_err_set(p->err, FL_ENOMEM, "attention between %zu updates: out of memory", n);
    }
    return a->scope == FL_SCOPE_MODEL ? attend_model(p) : FL_OK;
}

void fl__agg_attend_done(struct fl__agg_pass *p)
{
    free(p->attention.in);
    free(p->attention.gram);
    free(p->attention.samples);
    free(p->attention.previous_dot);
    free(p->attention.out);
    free(p->attention.row);
    free(p->attention.fair);
    free(p->attention.factor);
    free(p->attention.scratch);
    free(p->attention.capped);
    free(p->attention.sent);
    free(p->attention.left);
    free(p->attention.relative);
}
