/*
 * Set-up of the aggregation pass (aggregate_run.c): its checks, its memory, the senders of a
 * unit and their decoders. Runs on the caller's thread; it does no arithmetic on parameters.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"
#include "libfl/strategy/aggregator/aggregate_masked.h"
#include "libfl/strategy/codec/codec_masked.h"

/* Limits of the block length: 64 KiB still fit into a core's own cache beside the sums, and so do
   the values of 50 clients that a robust rule by entries gets. */
#define BLOCK_MAX         16384u
#define BLOCK_ENTRIES_MAX 4096u
#define BLOCK_MIN         64u

const char *const fl__agg_weights[] = {[FL_WEIGHTS_AUTO] = "auto",
                                       [FL_WEIGHTS_SAMPLES] = "samples",
                                       [FL_WEIGHTS_EQUAL] = "equal",
                                       NULL};

enum fl_agg_weights fl__agg_weights_of(const struct fl_options *o)
{
    const struct fl__agg_common *common = fl_options_values(o);

    return common->weights;
}

static int agg_client_error(const struct fl__agg_pass *p, size_t k, size_t l, int code)
{
    *p->ret_client = k;
    return fl_err_set(p->err, code, "update %zu, unit '%s': %s", k,
                      fl_layout_unit(p->job->layout, l)->name, fl_strerror(code));
}

int fl__agg_not_finite(const struct fl__agg_pass *p, size_t l, const char *what)
{
    *p->ret_client = p->job->n_clients;
    return fl_err_set(p->err, FL_ENUMERIC, "%s is not finite in unit '%s'", what,
                      fl_layout_unit(p->job->layout, l)->name);
}

size_t fl__agg_own_states(const struct fl_agg_job *job)
{
    return job->ops->n_state + fl_robust_centred(job->robust, job->robust_options) +
           fl__agg_keeps_rest(job);
}

size_t fl__agg_states(const struct fl_agg_job *job)
{
    return fl__agg_own_states(job) + (job->extra != NULL ? job->extra->n_state : 0);
}

void fl__agg_keep(const struct fl_agg_job *job, size_t offset, size_t n)
{
    size_t n_state = fl__agg_states(job);
    size_t s;

    (void)memcpy(job->theta_new + offset, job->theta + offset, n * sizeof(float));
    for (s = 0; s < n_state; s++) {
        (void)memcpy(job->state_new[s] + offset, job->state[s] + offset, n * sizeof(float));
    }
}

static int agg_compare_steps(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

void fl__agg_scale_steps(struct fl__agg_pass *p)
{
    const struct fl_agg_job *job = p->job;
    double cap;
    double median;
    double first;
    double above = 0; /* the mean of the steps over those of the first sender */
    size_t s;

    if (p->steps_scale == NULL || p->n_senders == 0) {
        return;
    }
    for (s = 0; s < p->n_senders; s++) {
        p->steps_sorted[s] = job->clients[p->senders[s]].steps;
    }
    qsort(p->steps_sorted, p->n_senders, sizeof(double), agg_compare_steps);
    median = p->steps_sorted[(p->n_senders - 1) / 2];
    cap = job->ops->steps_cap(job->options);
    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];

        p->steps_scale[k] = fmin(fmax(job->clients[k].steps, median / cap), median * cap);
    }
    first = p->steps_scale[p->senders[0]];
    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];

        above += p->weights[k] * (p->steps_scale[k] - first);
    }
    /* Exactly 1 when all steps are equal, whatever the weights. */
    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];
        double steps = p->steps_scale[k];

        p->steps_scale[k] = 1 + (above - (steps - first)) / steps;
    }
}

bool fl__agg_weigh(struct fl__agg_pass *p, size_t l)
{
    const struct fl_agg_job *job = p->job;
    enum fl_agg_weights weights =
        job->ops->weights != NULL ? job->ops->weights(job->options) : FL_WEIGHTS_SAMPLES;
    bool equal = weights == FL_WEIGHTS_EQUAL ||
                 (weights == FL_WEIGHTS_AUTO && job->extra != NULL && job->extra->weighs_equally);
    double total = 0;
    size_t k;

    p->n_senders = 0;
    for (k = 0; k < job->n_clients; k++) {
        p->weights[k] = 0;
        if (job->clients[k].units[l] != 0) {
            p->weights[k] = equal ? 1 : job->clients[k].weight;
            p->senders[p->n_senders++] = k;
        }
        total += p->weights[k];
    }
    for (k = 0; p->n_senders > 0 && k < job->n_clients; k++) {
        p->weights[k] /= total;
    }
    fl__agg_scale_steps(p);
    return p->n_senders > 0;
}

int fl__agg_open(const struct fl__agg_pass *p, size_t l, size_t n_payloads)
{
    const struct fl_agg_job *job = p->job;
    size_t b;
    size_t s;

    p->presence->on = false;
    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];

        for (b = 0; b < n_payloads; b++) {
            int rv = job->open(job->ctx, k, b, l, &p->decoders[k * p->n_payloads + b]);

            if (rv != FL_OK) {
                return agg_client_error(p, k, l, rv);
            }
            if (b > 0 || !fl_masked_decoder(&p->decoders[k * p->n_payloads])) {
                continue;
            }
            p->presence->on = true;
            /*
             * fl_strategy_check() refuses these combinations; an upload of an older configuration
             * is rejected here instead of being decoded wrongly.
             */
            if (job->want_distance || job->ops->scope != NULL || job->ops->steps_cap != NULL ||
                job->ops->program != NULL || fl_robust_on(job->robust) ||
                (job->extra != NULL && !job->extra->takes_masks))
            {
                return agg_client_error(p, k, l, FL_EFORMAT);
            }
        }
    }
    return FL_OK;
}

int fl__agg_close(const struct fl__agg_pass *p, size_t l, size_t n_payloads)
{
    size_t b;
    size_t s;

    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];

        for (b = 0; b < n_payloads; b++) {
            struct fl_codec_decoder *d = &p->decoders[k * p->n_payloads + b];
            int rv = d->ops->close(d);

            if (rv != FL_OK) {
                return agg_client_error(p, k, l, rv);
            }
        }
    }
    return FL_OK;
}

int fl__agg_read(const struct fl__agg_pass *p, size_t k, size_t payload, size_t l, float *out,
                 size_t n)
{
    struct fl_codec_decoder *d = &p->decoders[k * p->n_payloads + payload];
    int rv = d->ops->read(d, out, n);

    if (rv != FL_OK) {
        return agg_client_error(p, k, l, rv);
    }
    return FL_OK;
}

int fl__agg_add(const struct fl__agg_pass *p, size_t k, size_t payload, size_t l, double w,
                double *sum, size_t n)
{
    int rv = fl_codec_add(&p->decoders[k * p->n_payloads + payload], w, sum, p->in, n);

    if (rv != FL_OK) {
        return agg_client_error(p, k, l, rv);
    }
    return FL_OK;
}

void *fl__agg_zeroed(size_t n, size_t size)
{
    size_t line = 64; /* of a cache */
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - line) {
        return NULL;
    }
    bytes = (bytes + line) / line * line;
    p = aligned_alloc(line, bytes);
    if (p != NULL) {
        (void)memset(p, 0, bytes);
    }
    return p;
}

static size_t agg_count_names(const char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

int fl__agg_init(struct fl__agg_pass *p)
{
    const struct fl_agg_job *job = p->job;
    const struct fl_agg_part *extra = job->extra;
    size_t n_blocks = job->want_distance || p->robust.by_entries ? job->n_clients : 1;
    size_t b;

    p->n_weighted = 1 + agg_count_names(job->ops->takes);
    p->n_payloads =
        p->n_weighted +
        (extra != NULL ? agg_count_names(fl_agg_part_takes(extra, job->extra_options)) : 0);
    p->n_state = fl__agg_states(job);
    p->n_sums = p->n_payloads + (extra != NULL && extra->wants_scaled != NULL &&
                                 extra->wants_scaled(job->extra_options));
    p->block = job->block;
    if (p->block == 0) {
        p->block = FL__AGG_SCRATCH / sizeof(float) / n_blocks;
        p->block = p->block > BLOCK_MAX ? BLOCK_MAX : p->block;
        p->block =
            p->robust.by_entries && p->block > BLOCK_ENTRIES_MAX ? BLOCK_ENTRIES_MAX : p->block;
        p->block = p->block < BLOCK_MIN ? BLOCK_MIN : p->block;
    }
    p->decoders = calloc(job->n_clients * p->n_payloads, sizeof(*p->decoders));
    p->weights = calloc(job->n_clients, sizeof(*p->weights));
    p->senders = calloc(job->n_clients, sizeof(*p->senders));
    p->distance_sq = calloc(job->n_clients, sizeof(*p->distance_sq));
    p->sums = calloc(p->n_sums * p->block, sizeof(*p->sums));
    p->means = calloc(p->n_payloads, sizeof(*p->means));
    p->step = calloc(p->block, sizeof(*p->step));
    p->presence = fl__presence_create(p->block);
    p->in = calloc(n_blocks * p->block, sizeof(*p->in));
    if (job->ops->steps_cap != NULL) {
        p->steps_scale = calloc(2 * job->n_clients, sizeof(*p->steps_scale));
        p->steps_sorted = p->steps_scale != NULL ? p->steps_scale + job->n_clients : NULL;
    }
    if (p->decoders == NULL || p->weights == NULL || p->senders == NULL || p->distance_sq == NULL ||
        p->sums == NULL || p->means == NULL || p->step == NULL || p->presence == NULL ||
        p->in == NULL || (job->ops->steps_cap != NULL && p->steps_scale == NULL))
    {
        return fl_err_set(p->err, FL_ENOMEM, "aggregation of %zu updates: out of memory",
                          job->n_clients);
    }
    for (b = 1; b < p->n_payloads; b++) {
        p->means[b - 1] = p->sums + b * p->block;
    }
    return fl__agg_robust_init(p);
}

void fl__agg_done(struct fl__agg_pass *p)
{
    fl__agg_attend_done(p);
    fl__agg_robust_done(p);
    free(p->decoders);
    free(p->weights);
    free(p->senders);
    free(p->distance_sq);
    free(p->sums);
    free(p->means);
    free(p->step);
    free(p->presence);
    free(p->steps_scale);
    free(p->made);
    free(p->in);
}

/* These values come from peers' reports: an invalid one is the client's error, not an assertion. */
static int agg_check_client(const struct fl_agg_job *job, size_t k, struct fl_err *err)
{
    const struct fl_agg_client *client = &job->clients[k];
    size_t l;

    if (!(client->weight > 0) || !isfinite(client->weight)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "update %zu has weight %g, expected a finite number "
                          "above 0",
                          k, client->weight);
    }
    if (!isfinite(client->factor)) {
        return fl_err_set(err, FL_ENUMERIC, "update %zu has factor %g, expected a finite number", k,
                          client->factor);
    }
    if (!isfinite(client->previous_dot)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "update %zu reports inner product %g with its previous update, expected "
                          "a finite number",
                          k, client->previous_dot);
    }
    if (job->ops->steps_cap != NULL && !(client->steps > 0 && isfinite(client->steps))) {
        return fl_err_set(err, FL_ENUMERIC,
                          "update %zu has %g local steps, expected a finite number above 0: "
                          "aggregate '%s' divides by it",
                          k, client->steps, job->ops->policy.name);
    }
    /* The distance of a client needs all its units. */
    for (l = 0; job->want_distance && l < fl_layout_units(job->layout); l++) {
        if (client->units[l] == 0) {
            return fl_err_set(err, FL_EFORMAT,
                              "update %zu lacks unit '%s', which its distance to the new model "
                              "needs",
                              k, fl_layout_unit(job->layout, l)->name);
        }
    }
    return FL_OK;
}

int fl__agg_check(const struct fl_agg_job *job, size_t *ret_client, struct fl_err *err)
{
    size_t k;

    FL_REQUIRE(fl__agg_states(job) <= FL_AGG_MAX_STATE);
    FL_REQUIRE((job->ops->scope == NULL) == (job->ops->attend == NULL));
    FL_REQUIRE(job->ops->mixes ? job->ops->attend != NULL : job->ops->step != NULL);
    FL_REQUIRE(job->ops->mixes == (job->personal_model != NULL));
    FL_REQUIRE(job->ops->steps_cap == NULL || job->ops->attend == NULL);
    FL_REQUIRE(job->ops->steps_cap == NULL || !fl_robust_on(job->robust));
    FL_REQUIRE((job->ops->program != NULL && job->n_clients > 0) <= (job->whole != NULL));
    FL_REQUIRE(
        job->ops->program == NULL ||
        (job->ops->attend == NULL && job->ops->steps_cap == NULL && !fl_robust_on(job->robust)));
    /*
     * With `mixes` there is no step that a server part could read, and no common model for a
     * distance.
     */
    FL_REQUIRE(!job->ops->mixes ||
               (fl__agg_states(job) == 0 && job->extra == NULL && !job->want_distance));
    FL_REQUIRE(job->extra == NULL || job->members > 0);
    FL_REQUIRE(!fl_robust_on(job->robust) || (job->ops->scope == NULL && job->extra == NULL));
    FL_REQUIRE(job->n_clients == 0 || !fl_robust_trusts(job->robust) || job->reference != NULL);
    for (k = 0; k < job->n_clients; k++) {
        int rv = agg_check_client(job, k, err);

        if (rv != FL_OK) {
            *ret_client = k;
            return rv;
        }
    }
    *ret_client = job->n_clients;
    return FL_OK;
}
