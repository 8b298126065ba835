/*
 * share_cap in an attention (docs/algorithms.md#the-share-of-one-client): the influence of one
 * client's update, its weight in the mean, or with `mixes` what it has in the models of the other
 * senders together, is at most share_cap times that of a plain mean. Called for each component,
 * with the weights of the policy (aggregate_attend.c). Runs on the caller's thread.
 *
 * Cost: O(n log n) a component, O(n^2) with `mixes`.
 */
#include "libfl/strategy/aggregator/aggregate_impl.h"

/* Fair shares of the senders, with sum 1. */
static void share_fair(const struct fl__agg_pass *p, const struct fl_attention *in, double *fair)
{
    const struct fl_agg_job *job = p->job;
    bool samples = job->ops->attends_samples != NULL && job->ops->attends_samples(job->options);
    size_t s;

    for (s = 0; s < in->n; s++) {
        fair[s] = samples ? in->samples[s] : 1;
    }
    fl__normalise(fair, in->n);
}

/* Influence of sender k: in the mean, or over the models of the others. */
static double influence_of(const struct fl__agg_pass *p, size_t n, const double *out, size_t k)
{
    double sum = 0;
    size_t i;

    if (!p->job->ops->mixes) {
        return out[k];
    }
    for (i = 0; i < n; i++) {
        sum += i != k ? out[i * n + k] : 0;
    }
    return n > 1 ? sum / (double)(n - 1) : 0;
}

/* factor[k]: what is left of the influence; 1 for those that the others' excess goes to. */
static void share_bound(struct fl__agg_pass *p, size_t n, double *out)
{
    struct fl__agg_attention *a = &p->attention;
    double cap = p->job->share_cap;
    size_t k;

    for (k = 0; k < n; k++) {
        a->factor[k] = 1;
    }
    if (p->job->ops->mixes) {
        (void)fl_share_cap_columns(out, a->fair, n, cap, a->factor);
        return;
    }
    for (k = 0; k < n; k++) {
        a->factor[k] = out[k];
    }
    (void)fl_share_cap(out, a->fair, n, cap, a->scratch, a->capped);
    for (k = 0; k < n; k++) {
        a->factor[k] = a->capped[k] ? out[k] / a->factor[k] : 1;
    }
}

void fl__agg_share(struct fl__agg_pass *p, const struct fl_attention *in, double *out)
{
    struct fl__agg_attention *a = &p->attention;
    double entries = (double)in->entries;
    size_t s;

    share_fair(p, in, a->fair);
    share_bound(p, in->n, out);
    for (s = 0; s < in->n; s++) {
        size_t k = p->senders[s];

        a->sent[k] += entries;
        a->left[k] += entries * a->factor[s];
        a->relative[k] += entries * (influence_of(p, in->n, out, s) / a->fair[s]);
    }
}

void fl__agg_share_report(const struct fl__agg_pass *p)
{
    const struct fl__agg_attention *a = &p->attention;
    const struct fl_agg_job *job = p->job;
    double largest = 0;
    size_t n_capped = 0;
    size_t k;

    for (k = 0; k < job->n_clients; k++) {
        bool sent = a->sent != NULL && a->sent[k] > 0;
        double left = sent ? a->left[k] / a->sent[k] : 1;
        double relative = sent ? a->relative[k] / a->sent[k] : 0;

        largest = relative > largest ? relative : largest;
        n_capped += left < 1;
        if (job->influence != NULL) {
            job->influence[k] = left;
        }
    }
    if (job->info != NULL) {
        job->info->influence = largest;
        job->info->n_capped = n_capped;
    }
}
