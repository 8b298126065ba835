/*
 * A robust rule in the aggregation pass (docs/algorithms.md#robust-aggregation). The distances
 * between updates come from the pass of attention (aggregate_attend.c); the rules are in
 * libfl/strategy/robust. With complete uploads a rule decides about whole updates, else about each
 * unit, among those who sent it. A unit with fewer senders than the rule needs keeps its value.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/sorted.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"

int fl__agg_robust_init(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;
    size_t n = p->job->n_clients;

    if (!r->on) {
        return FL_OK;
    }
    r->means = calloc(n, sizeof(*r->means));
    r->weights = calloc(n + 1, sizeof(*r->weights));
    r->trust = calloc(n, sizeof(*r->trust));
    r->tile = fl__agg_zeroed(fl_robust_scratch(n), sizeof(*r->tile));
    r->out = calloc(p->block, sizeof(*r->out));
    r->columns = calloc(n, sizeof(*r->columns));
    r->used = calloc(n, sizeof(*r->used));
    r->entries = calloc(n, sizeof(*r->entries));
    r->scores = calloc(n, sizeof(*r->scores));
    r->sorted = calloc(n, sizeof(*r->sorted));
    r->apart = calloc(n, sizeof(*r->apart));
    r->positive = calloc(n, sizeof(*r->positive));
    r->zero = calloc(n, sizeof(*r->zero));
    if (r->means == NULL || r->weights == NULL || r->trust == NULL || r->tile == NULL ||
        r->out == NULL || r->columns == NULL || r->used == NULL || r->entries == NULL ||
        r->scores == NULL || r->sorted == NULL || r->apart == NULL || r->positive == NULL ||
        r->zero == NULL)
    {
        return fl_err_set(p->err, FL_ENOMEM, "robust aggregation of %zu updates: out of memory", n);
    }
    return FL_OK;
}

void fl__agg_robust_done(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;

    fl_robust_mixtures_done(&r->mixtures);
    free(r->means);
    free(r->weights);
    free(r->trust);
    free(r->tile);
    free(r->out);
    free(r->columns);
    free(r->used);
    free(r->entries);
    free(r->scores);
    free(r->sorted);
    free(r->apart);
    free(r->positive);
    free(r->zero);
}

bool fl__agg_robust_lacks(const struct fl__agg_pass *p)
{
    return p->robust.on && !p->robust.report &&
           p->n_senders < fl_robust_needs(p->job->robust, p->job->robust_options);
}

bool fl__agg_robust_keeps(const struct fl__agg_pass *p)
{
    return p->robust.on && !p->robust.report && p->robust.unused;
}

double fl__agg_robust_buffer_weight(const struct fl__agg_pass *p, size_t s)
{
    size_t k = p->senders[s];

    return fl_robust_trusts(p->job->robust) && !p->robust.report ? p->robust.trust[k]
                                                                 : p->weights[k];
}

const float *fl__agg_robust_centre(const struct fl__agg_pass *p)
{
    if (fl_robust_trusts(p->job->robust)) {
        return p->job->reference;
    }
    return fl_robust_centred(p->job->robust, p->job->robust_options)
               ? p->job->state[p->job->ops->n_state]
               : NULL;
}

void fl__agg_robust_clear(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;

    if (r->on) {
        (void)memset(r->positive, 0, p->n_senders * sizeof(*r->positive));
        (void)memset(r->zero, 0, p->n_senders * sizeof(*r->zero));
    }
}

void fl__agg_robust_signs(const struct fl__agg_pass *p, size_t s, const float *x, size_t n)
{
    int32_t positive = 0; /* A block is small. */
    int32_t zero = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        positive += x[i] > 0;
        zero += !(x[i] > 0) & !(x[i] < 0);
    }
    p->robust.positive[s] += (double)positive;
    p->robust.zero[s] += (double)zero;
}

/* A length beside the median one. */
static double robust_score(double length, double median)
{
    if (!(length > 0)) {
        return 0;
    }
    return length < FL_ROBUST_SCORE_MAX * median ? length / median : FL_ROBUST_SCORE_MAX;
}

/* A rule that `trusts`: its weights without the factor that brings an update to the length of the
   reference. */
static void robust_trust(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;
    const double *gram = p->attention.gram;
    size_t rows = p->attention.rows;
    double length = sqrt(gram[rows * rows - 1]);
    size_t s;

    r->unused = true;
    for (s = 0; s < p->n_senders; s++) {
        r->trust[p->senders[s]] =
            r->weights[s] > 0 ? r->weights[s] * (sqrt(gram[s * rows + s]) / length) : 0;
        r->unused = r->unused && !(r->weights[s] > 0);
    }
    /* The model stays, so a client is as far from it as its update is long. */
    for (s = 0; fl__agg_robust_keeps(p) && p->job->want_distance && s < p->n_senders; s++) {
        p->distance_sq[p->senders[s]] += gram[s * rows + s];
    }
}

/* What a rule by weights used of the updates of a component. */
static void robust_count_weights(struct fl__agg_pass *p, size_t entries)
{
    struct fl__agg_robust *r = &p->robust;
    double median;
    size_t s;

    (void)memcpy(r->sorted, r->scores, p->n_senders * sizeof(*r->sorted));
    median = fl_lower_median(r->sorted, p->n_senders);
    for (s = 0; s < p->n_senders; s++) {
        double full = p->job->robust->by_samples ? r->means[s] : 1 / (double)p->n_senders;
        size_t k = p->senders[s];
        double used = (p->job->robust->trusts ? r->trust[k] : r->weights[s]) / full;

        r->used[k] += (used < 1 ? used : 1) * (double)entries;
        r->entries[k] += (double)entries;
        r->apart[k] += robust_score(r->scores[s], median) * (double)entries;
    }
}

static int robust_error(const struct fl__agg_pass *p, int code)
{
    return fl_err_set(p->err, code, "robust '%s' of %zu updates: %s", p->job->robust->policy.name,
                      p->n_senders, fl_strerror(code));
}

int fl__agg_robust_component(struct fl__agg_pass *p, size_t entries)
{
    const struct fl_agg_job *job = p->job;
    struct fl__agg_robust *r = &p->robust;
    const struct fl_robust_updates in = {.n = p->n_senders,
                                         .gram = p->attention.gram,
                                         .weights = r->means,
                                         .positive = r->positive,
                                         .zero = r->zero,
                                         .entries = (double)entries};
    struct fl_rng rng;
    size_t s;
    int rv;

    for (s = 0; s < p->n_senders; s++) {
        r->means[s] = p->weights[p->senders[s]];
    }
    fl_rng_key(&rng, job->seed, FL_RNG_BUCKETS, job->round, 0);
    fl_robust_mixtures_done(&r->mixtures);
    rv = fl_robust_mix_updates(job->robust_options, &in, &rng, &r->mixtures);
    if (rv != FL_OK) {
        return robust_error(p, rv);
    }
    if (r->by_entries) {
        return FL_OK;
    }
    rv =
        fl_robust_weigh(job->robust, job->robust_options, &in, &r->mixtures, r->weights, r->scores);
    if (rv != FL_OK) {
        return robust_error(p, rv);
    }
    r->centre_weight = r->weights[p->n_senders];
    if (job->robust->trusts) {
        robust_trust(p);
    }
    robust_count_weights(p, entries);
    return FL_OK;
}

/* Updates with weight 0 need not be read again. */
static void robust_skip(struct fl__agg_pass *p)
{
    size_t n = 0;
    size_t s;

    for (s = 0; s < p->n_senders; s++) {
        if (fabs(p->weights[p->senders[s]]) > 0) {
            p->senders[n++] = p->senders[s];
        }
    }
    p->n_senders = n;
}

int fl__agg_robust_unit(struct fl__agg_pass *p, size_t l)
{
    const struct fl_agg_job *job = p->job;
    struct fl__agg_robust *r = &p->robust;
    size_t s;

    if (!r->on) {
        return FL_OK;
    }
    if (r->wants == 0) {
        return fl__agg_robust_component(p, 0);
    }
    if (p->attention.scope == FL_SCOPE_UNIT && fl_layout_unit(job->layout, l)->n_trainable == 0) {
        /* It has buffers only, and so no distances: they are taken without mixing and weights. */
        fl_robust_mixtures_done(&r->mixtures);
        r->mixtures.m = p->n_senders;
        r->unused = false;
        for (s = 0; s < p->n_senders; s++) {
            r->trust[p->senders[s]] = p->weights[p->senders[s]];
        }
        return FL_OK;
    }
    for (s = 0; !r->by_entries && !r->report && s < p->n_senders; s++) {
        p->weights[p->senders[s]] = r->weights[s];
    }
    if (!r->by_entries && !r->report && !job->want_distance) {
        robust_skip(p);
    }
    return FL_OK;
}

void fl__agg_robust_block(struct fl__agg_pass *p, size_t offset, size_t n, bool buffer)
{
    const struct fl_agg_job *job = p->job;
    struct fl__agg_robust *r = &p->robust;
    size_t i;

    if (r->by_entries) {
        (void)memset(r->columns, 0, p->n_senders * sizeof(*r->columns));
        (void)memset(r->scores, 0, p->n_senders * sizeof(*r->scores));
        fl_robust_combine(job->robust, job->robust_options, &r->mixtures,
                          &(struct fl_robust_values){.rows = p->in,
                                                     .n_rows = p->n_senders,
                                                     .stride = p->block,
                                                     .n = n,
                                                     .scratch = r->tile,
                                                     .out = r->report ? r->out : p->sums,
                                                     .used = r->columns,
                                                     .apart = r->scores});
        for (i = 0; !buffer && i < p->n_senders; i++) {
            r->used[p->senders[i]] += r->columns[i];
            r->entries[p->senders[i]] += (double)n;
            r->apart[p->senders[i]] += r->scores[i];
        }
    }
    if (!fl_robust_centred(job->robust, job->robust_options) || buffer) {
        return;
    }
    if (!r->report) {
        fl_acc_add(p->sums, r->centre_weight, fl__agg_robust_centre(p) + offset, n);
    }
    for (i = 0; i < n; i++) {
        job->state_new[job->ops->n_state][offset + i] = (float)p->sums[i];
    }
}

/* By entries: from sums of squares to distances beside the median one, of an entry each. */
static void robust_score_entries(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;
    size_t n = 0;
    double median;
    size_t k;

    for (k = 0; k < p->job->n_clients; k++) {
        if (r->entries[k] > 0) {
            r->sorted[n++] = sqrt(r->apart[k] / r->entries[k]);
        }
    }
    median = n > 0 ? fl_lower_median(r->sorted, n) : 0;
    for (k = 0; n > 0 && k < p->job->n_clients; k++) {
        if (r->entries[k] > 0) {
            r->apart[k] = robust_score(sqrt(r->apart[k] / r->entries[k]), median) * r->entries[k];
        }
    }
}

void fl__agg_robust_report(struct fl__agg_pass *p)
{
    struct fl__agg_robust *r = &p->robust;
    const struct fl_agg_job *job = p->job;
    size_t k;

    if (r->by_entries) {
        robust_score_entries(p);
    }
    for (k = 0; r->on && k < job->n_clients; k++) {
        double used = r->entries[k] > 0 ? r->used[k] / r->entries[k] : 0;

        used = used < 1 ? used : 1; /* A neighbour of many counts for more than one. */
        if (job->used != NULL) {
            job->used[k] = used;
        }
        if (job->score != NULL) {
            job->score[k] = r->entries[k] > 0 ? r->apart[k] / r->entries[k] : 0;
        }
        if (job->info != NULL) {
            job->info->robust_used += used / (double)job->n_clients;
            job->info->robust_out += (size_t)(used < FL_AGG_LEFT_OUT);
        }
    }
}
