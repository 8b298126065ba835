/*
 * The block pass (ALGORITHMS 4, 15.3): unit by unit, block by block, clients in the
 * order given. Everything is a displacement; denominators are per unit; the weights
 * are made to sum to 1 before they are used, so that a single sender is taken over
 * exactly.
 *
 * Cost: one read of each coded unit; with distances the decoded blocks of all clients
 * are held until the step of the block is known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/aggregate.h"
#include "libfl/strategy/codec_impl.h"

/* What the decoded blocks may take together, and how long a block is at most and at
   least: 64 KiB still sit in a core's own cache beside the sums. */
#define SCRATCH_BYTES ((size_t)4 << 20)
#define BLOCK_MAX     16384u
#define BLOCK_MIN     64u

struct pass {
    const struct fl_agg_job *job;
    size_t n_weighted; /* bundles of which weighted means are made: the update, ops->takes */
    size_t n_bundles;  /* … and extra->takes behind them, with plain means */
    size_t n_state;    /* the aggregate's and the part's */
    size_t n_sums;     /* n_bundles, one more when the part wants fl_agg_block.scaled */
    size_t block;
    struct fl_codec_decoder *decoders; /* [n_clients][n_bundles] */
    double *weights;                   /* [n_clients], of the unit at hand; 0: not sent */
    size_t n_senders;                  /* of the unit at hand */
    double *sums;                      /* [n_sums][block] */
    const double **means;              /* [n_bundles]: of bundle 1, 2, … */
    double *step;                      /* [block] */
    float *in;                         /* [n_clients][block] with distances, else [block] */
    double *distance_sq;               /* [n_clients] */
    size_t *ret_client;
    struct fl_err *err;
};

static bool sends(const struct pass *p, size_t k, size_t l)
{
    return p->job->clients[k].units[l] != 0;
}

static int client_error(const struct pass *p, size_t k, size_t l, int code)
{
    *p->ret_client = k;
    return fl_err_set(p->err, code, "update %zu, unit '%s': %s", k,
                      fl_layout_unit(p->job->layout, l)->name, fl_strerror(code));
}

static size_t part_states(const struct fl_agg_job *job)
{
    return job->extra != NULL ? job->extra->n_state : 0;
}

static void keep_entries(const struct fl_agg_job *job, size_t offset, size_t n)
{
    size_t n_state = job->ops->n_state + part_states(job);
    size_t s;

    (void)memcpy(job->theta_new + offset, job->theta + offset, n * sizeof(float));
    for (s = 0; s < n_state; s++) {
        (void)memcpy(job->state_new[s] + offset, job->state[s] + offset, n * sizeof(float));
    }
}

static double *bundle_sum(const struct pass *p, size_t bundle)
{
    return p->sums + bundle * p->block;
}

/* NULL when nobody wants it. */
static double *scaled_sum(const struct pass *p)
{
    return p->n_sums > p->n_bundles ? bundle_sum(p, p->n_bundles) : NULL;
}

static int read_client(const struct pass *p, size_t k, size_t l, size_t n)
{
    const struct fl_agg_job *job = p->job;
    float *in = job->want_distance ? p->in + k * p->block : p->in;
    size_t b;

    /* The update last: its block stays behind for the distance. */
    for (b = p->n_bundles; b-- > 0;) {
        struct fl_codec_decoder *d = &p->decoders[k * p->n_bundles + b];
        int rv = d->ops->read(d, in, n);

        if (rv != FL_OK) {
            return client_error(p, k, l, rv);
        }
        fl_acc_add(bundle_sum(p, b), b < p->n_weighted ? p->weights[k] : 1, in, n);
    }
    if (scaled_sum(p) != NULL) {
        fl_acc_add(scaled_sum(p), job->clients[k].factor, in, n);
    }
    return FL_OK;
}

static void divide(double *sum, size_t n, size_t by)
{
    size_t i;

    for (i = 0; i < n; i++) {
        sum[i] /= (double)by;
    }
}

static int sum_block(const struct pass *p, size_t l, size_t n)
{
    size_t b;
    size_t k;
    int rv;

    for (b = 0; b < p->n_sums; b++) {
        (void)memset(bundle_sum(p, b), 0, n * sizeof(double));
    }
    for (k = 0; k < p->job->n_clients; k++) {
        if (sends(p, k, l)) {
            rv = read_client(p, k, l, n);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    for (b = p->n_weighted; b < p->n_sums; b++) {
        divide(bundle_sum(p, b), n, p->n_senders);
    }
    return FL_OK;
}

/* The aggregate's step; behind it the part's, which reads it. */
static void server_step(const struct pass *p, size_t offset, size_t n)
{
    const struct fl_agg_job *job = p->job;
    const float *state[FL_AGG_MAX_STATE];
    float *state_new[FL_AGG_MAX_STATE];
    struct fl_agg_block block = {
        .n = n,
        .round = job->round,
        .n_senders = p->n_senders,
        .population = job->population,
        .dbar = p->sums,
        .means = p->means,
        .state = state,
        .state_new = state_new,
        .step = p->step,
    };
    size_t s;

    for (s = 0; s < p->n_state; s++) {
        state[s] = job->state[s] + offset;
        state_new[s] = job->state_new[s] + offset;
    }
    job->ops->step(job->options, &block);
    if (job->extra != NULL) {
        block.means = p->means + (p->n_weighted - 1);
        block.scaled = scaled_sum(p);
        block.state = state + job->ops->n_state;
        block.state_new = state_new + job->ops->n_state;
        job->extra->step(job->extra_options, &block);
    }
}

/*
 * A step of zero leaves the entry alone, bit for bit: -0.0 + 0.0 would be 0.0. NaN goes
 * through.
 */
static void apply(float *theta_new, const float *theta, const double *step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        double moved = (double)theta[i] + step[i];

        theta_new[i] = fabs(step[i]) <= 0 ? theta[i] : (float)moved;
    }
}

static bool block_finite(const struct pass *p, size_t offset, size_t n)
{
    bool finite = fl_vec_finite(p->job->theta_new + offset, n);
    size_t s;

    for (s = 0; finite && s < p->n_state; s++) {
        finite = fl_vec_finite(p->job->state_new[s] + offset, n);
    }
    return finite;
}

static int run_block(const struct pass *p, size_t l, size_t offset, size_t n, bool buffer)
{
    const struct fl_agg_job *job = p->job;
    int rv = sum_block(p, l, n);
    size_t k;

    if (rv != FL_OK) {
        return rv;
    }
    if (buffer) {
        keep_entries(job, offset, n);
        apply(job->theta_new + offset, job->theta + offset, p->sums, n);
    } else {
        server_step(p, offset, n);
        apply(job->theta_new + offset, job->theta + offset, p->step, n);
        for (k = 0; job->want_distance && k < job->n_clients; k++) {
            /* theta_new - theta_k = step - Delta_k (ALGORITHMS 5.3). */
            p->distance_sq[k] += fl_acc_distance_sq(p->step, p->in + k * p->block, n);
        }
    }
    if (!block_finite(p, offset, n)) {
        *p->ret_client = job->n_clients;
        return fl_err_set(p->err, FL_ENUMERIC, "the new model is not finite in unit '%s'",
                          fl_layout_unit(job->layout, l)->name);
    }
    return FL_OK;
}

/* Weights of the unit's senders, summing to 1. False when nobody sent it. */
static bool weigh(struct pass *p, size_t l)
{
    double total = 0;
    size_t k;

    p->n_senders = 0;
    for (k = 0; k < p->job->n_clients; k++) {
        if (sends(p, k, l)) {
            total += p->job->clients[k].weight;
            p->n_senders++;
        }
    }
    for (k = 0; k < p->job->n_clients; k++) {
        p->weights[k] = sends(p, k, l) ? p->job->clients[k].weight / total : 0;
    }
    return p->n_senders > 0;
}

static int for_senders(const struct pass *p, size_t l, bool closing)
{
    const struct fl_agg_job *job = p->job;
    size_t b;
    size_t k;

    for (k = 0; k < job->n_clients; k++) {
        if (!sends(p, k, l)) {
            continue;
        }
        for (b = 0; b < p->n_bundles; b++) {
            struct fl_codec_decoder *d = &p->decoders[k * p->n_bundles + b];
            int rv = closing ? d->ops->close(d) : job->open(job->ctx, k, b, l, d);

            if (rv != FL_OK) {
                return client_error(p, k, l, rv);
            }
        }
    }
    return FL_OK;
}

static int run_unit(struct pass *p, size_t l)
{
    const struct fl_agg_job *job = p->job;
    const struct fl_unit *unit = fl_layout_unit(job->layout, l);
    size_t offset = unit->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;
    int rv;

    if (!weigh(p, l)) {
        /* Frozen, state included: never fed a zero (15.3.1). */
        keep_entries(job, unit->offset, unit->count);
        return FL_OK;
    }
    rv = for_senders(p, l, false);
    while (rv == FL_OK && fl__unit_next_run(job->layout, l, &tensor, &count, &buffer)) {
        while (rv == FL_OK && count > 0) {
            size_t n = count < p->block ? count : p->block;

            rv = run_block(p, l, offset, n, buffer);
            offset += n;
            count -= n;
        }
    }
    return rv == FL_OK ? for_senders(p, l, true) : rv;
}

static size_t choose_block(const struct fl_agg_job *job)
{
    size_t block = job->block;

    if (block == 0) {
        size_t held = job->want_distance ? job->n_clients : 1;

        block = SCRATCH_BYTES / sizeof(float) / held;
        block = block > BLOCK_MAX ? BLOCK_MAX : block;
        block = block < BLOCK_MIN ? BLOCK_MIN : block;
    }
    return block;
}

static size_t names(const char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

static int pass_init(struct pass *p)
{
    const struct fl_agg_job *job = p->job;
    const struct fl_agg_part *extra = job->extra;
    size_t held = job->want_distance ? job->n_clients : 1;
    size_t b;

    p->n_weighted = 1 + names(job->ops->takes);
    p->n_bundles =
        p->n_weighted + (extra != NULL ? names(fl_agg_part_takes(extra, job->extra_options)) : 0);
    p->n_state = job->ops->n_state + part_states(job);
    p->n_sums = p->n_bundles + (extra != NULL && extra->wants_scaled != NULL &&
                                extra->wants_scaled(job->extra_options));
    p->block = choose_block(job);
    p->decoders = calloc(job->n_clients * p->n_bundles, sizeof(*p->decoders));
    p->weights = calloc(job->n_clients, sizeof(*p->weights));
    p->distance_sq = calloc(job->n_clients, sizeof(*p->distance_sq));
    p->sums = calloc(p->n_sums * p->block, sizeof(*p->sums));
    p->means = calloc(p->n_bundles, sizeof(*p->means));
    p->step = calloc(p->block, sizeof(*p->step));
    p->in = calloc(held * p->block, sizeof(*p->in));
    if (p->decoders == NULL || p->weights == NULL || p->distance_sq == NULL || p->sums == NULL ||
        p->means == NULL || p->step == NULL || p->in == NULL)
    {
        return fl_err_set(p->err, FL_ENOMEM, "aggregation of %zu updates: out of memory",
                          job->n_clients);
    }
    for (b = 1; b < p->n_bundles; b++) {
        p->means[b - 1] = bundle_sum(p, b);
    }
    return FL_OK;
}

static void pass_done(struct pass *p)
{
    free(p->decoders);
    free(p->weights);
    free(p->distance_sq);
    free(p->sums);
    free(p->means);
    free(p->step);
    free(p->in);
}

/*
 * Weights and unit lists come from what peers reported: a bad one is the client's fault,
 * not an assertion's.
 */
static int check_job(const struct fl_agg_job *job, size_t *ret_client, struct fl_err *err)
{
    size_t k;
    size_t l;

    FL_REQUIRE(job->ops->n_state + part_states(job) <= FL_AGG_MAX_STATE);
    for (k = 0; k < job->n_clients; k++) {
        *ret_client = k;
        if (!(job->clients[k].weight > 0) || !isfinite(job->clients[k].weight)) {
            return fl_err_set(err, FL_ENUMERIC, "update %zu has the weight %g, expected above 0", k,
                              job->clients[k].weight);
        }
        if (!isfinite(job->clients[k].factor)) {
            return fl_err_set(err, FL_ENUMERIC, "update %zu has the factor %g, expected a number",
                              k, job->clients[k].factor);
        }
        /* Without some unit of theta_k its distance is not known (15.3.5). */
        for (l = 0; job->want_distance && l < fl_layout_units(job->layout); l++) {
            if (job->clients[k].units[l] == 0) {
                return fl_err_set(err, FL_EFORMAT,
                                  "update %zu lacks unit '%s', so its distance is not known", k,
                                  fl_layout_unit(job->layout, l)->name);
            }
        }
    }
    *ret_client = job->n_clients;
    return FL_OK;
}

int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client, struct fl_err *err)
{
    struct pass p = {.job = job, .ret_client = ret_client, .err = err};
    size_t k;
    size_t l;
    int rv;

    rv = check_job(job, ret_client, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (job->n_clients == 0) {
        keep_entries(job, 0, fl_layout_count(job->layout));
        return FL_OK;
    }
    rv = pass_init(&p);
    for (l = 0; rv == FL_OK && l < fl_layout_units(job->layout); l++) {
        rv = run_unit(&p, l);
    }
    for (k = 0; rv == FL_OK && job->want_distance && k < job->n_clients; k++) {
        job->distance[k] = sqrt(p.distance_sq[k]);
    }
    pass_done(&p);
    return rv;
}
