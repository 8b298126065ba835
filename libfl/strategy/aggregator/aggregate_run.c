/*
 * The aggregation pass (docs/algorithms.md#partial-uploads): unit by unit, block by block, clients
 * in the order given. All values are displacements. Denominators are per unit, or per entry with
 * upload masks. Weights are normalised to sum 1 before they are used, so the update of a single
 * sender is applied exactly. Runs on the caller's thread; set-up and checks are in
 * aggregate_pass.c.
 *
 * Cost: one read of each coded unit; with distances the decoded blocks of all clients stay in
 * memory until the step of the block is known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"
#include "libfl/strategy/aggregator/aggregate_masked.h"
#include "libfl/strategy/codec/codec_impl.h"

static double *payload_sum(const struct fl__agg_pass *p, size_t payload)
{
    return p->sums + payload * p->block;
}

/* NULL when the server part does not read it. */
static double *scaled_sum(const struct fl__agg_pass *p)
{
    return p->n_sums > p->n_payloads ? payload_sum(p, p->n_payloads) : NULL;
}

/* Read the values of the update of sender s themselves, for distances, masks, a robust rule by
   entries or the scaled sum. */
static int read_values(const struct fl__agg_pass *p, size_t s, size_t l, size_t n, double weight,
                       double clip, double scale)
{
    const struct fl_agg_job *job = p->job;
    size_t k = p->senders[s];
    /* With distances all clients are senders. */
    float *in = job->want_distance || p->robust.by_entries ? p->in + s * p->block : p->in;
    int rv = fl__agg_read(p, k, 0, l, in, n);

    if (rv != FL_OK) {
        return rv;
    }
    if (clip < 1) {
        fl_vec_scale(in, (float)clip, in, n);
    }
    if (p->presence->on) {
        fl__presence_add(p->presence, p->sums, weight, in, n);
    } else if (!p->robust.by_entries || p->robust.report) { /* Else the rule makes the sum. */
        fl_acc_add(p->sums, weight * scale, in, n);
    }
    if (scaled_sum(p) != NULL) {
        fl_acc_add(scaled_sum(p), job->clients[k].factor, in, n);
    }
    return FL_OK;
}

static double agg_clip(const struct fl_agg_client *client, size_t l)
{
    return client->clip != NULL ? client->clip[l] : 1;
}

static int sum_block(const struct fl__agg_pass *p, size_t l, size_t n, bool buffer)
{
    size_t b;
    size_t s;

    for (b = 0; b < p->n_sums; b++) {
        (void)memset(payload_sum(p, b), 0, n * sizeof(double));
    }
    if (p->presence->on) {
        fl__presence_clear(p->presence, n);
    }
    for (s = 0; s < p->n_senders; s++) {
        bool values = p->job->want_distance || p->presence->on || p->robust.by_entries ||
                      scaled_sum(p) != NULL;
        size_t k = p->senders[s];
        double clip = buffer ? 1 : agg_clip(&p->job->clients[k], l);
        double scale = buffer || p->steps_scale == NULL ? 1 : p->steps_scale[k];
        double weight = buffer ? fl__agg_robust_buffer_weight(p, s) : p->weights[k];

        for (b = p->n_payloads; b-- > 0;) {
            double w = (b < p->n_weighted ? weight : 1) * (b == 0 ? clip * scale : 1);
            int rv = b == 0 && values ? read_values(p, s, l, n, weight, clip, scale)
                                      : fl__agg_add(p, k, b, l, w, payload_sum(p, b), n);

            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    if (p->presence->on) {
        fl__presence_divide(p->presence, p->sums, n);
    }
    for (b = p->n_weighted; b < p->n_sums; b++) {
        size_t i;

        for (i = 0; i < n; i++) {
            payload_sum(p, b)[i] /= (double)p->n_senders;
        }
    }
    return FL_OK;
}

/* The aggregator's step, then the step of the server part, which may correct it. */
static void agg_server_step(const struct fl__agg_pass *p, size_t offset, size_t n)
{
    const struct fl_agg_job *job = p->job;
    const float *state[FL_AGG_MAX_STATE];
    float *state_new[FL_AGG_MAX_STATE];
    struct fl_agg_block block = {
        .n = n,
        .round = job->round,
        .n_senders = p->n_senders,
        .members = job->members,
        .dbar = p->sums,
        .means = p->means,
        .state = state,
        .state_new = state_new,
        .made = p->made != NULL ? p->made + offset : NULL,
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
        block.state = state + fl__agg_own_states(job);
        block.state_new = state_new + fl__agg_own_states(job);
        job->extra->step(job->extra_options, &block);
    }
}

/* The model of the next round from the step, in the form that clients receive. */
static void agg_move(const struct fl__agg_pass *p, size_t offset, size_t n)
{
    const struct fl_agg_job *job = p->job;
    const size_t rest = fl__agg_own_states(job) - 1;

    if (!fl__agg_keeps_rest(job)) {
        fl_acc_step(job->theta_new + offset, job->theta + offset, p->step, n);
        return;
    }
    job->broadcast->move(job->broadcast_options,
                         &(struct fl_broadcast_block){.n = n,
                                                      .model = job->theta + offset,
                                                      .rest = job->state[rest] + offset,
                                                      .step = p->step,
                                                      .grid = job->grid,
                                                      .model_new = job->theta_new + offset,
                                                      .rest_new = job->state_new[rest] + offset});
}

/* Is state `s` the step itself (fl_agg_part.is_step)? */
static bool agg_state_is_step(const struct fl_agg_job *job, size_t s)
{
    return job->extra != NULL && job->extra->is_step && s >= fl__agg_own_states(job);
}

/* Entries that no client sent keep their value, whatever the step computed for them. */
static void agg_freeze_absent(const struct fl__agg_pass *p, size_t offset, size_t n)
{
    const struct fl_agg_job *job = p->job;
    size_t s;

    fl__presence_freeze(p->presence, job->theta_new + offset, job->theta + offset, n);
    for (s = 0; s < p->n_state; s++) {
        if (agg_state_is_step(job, s)) {
            fl__presence_zero(p->presence, job->state_new[s] + offset, n);
        } else {
            fl__presence_freeze(p->presence, job->state_new[s] + offset, job->state[s] + offset, n);
        }
    }
}

static int agg_run_block(struct fl__agg_pass *p, size_t l, size_t offset, size_t n, bool buffer)
{
    const struct fl_agg_job *job = p->job;
    int rv = sum_block(p, l, n, buffer);
    size_t k;
    bool finite;
    size_t s;

    if (rv != FL_OK) {
        return rv;
    }
    if (buffer) {
        fl__agg_keep(job, offset, n);
    }
    if (p->robust.on) {
        fl__agg_robust_block(p, offset, n, buffer);
    }
    if (buffer) {
        fl_acc_step(job->theta_new + offset, job->theta + offset, p->sums, n);
    } else {
        agg_server_step(p, offset, n);
        agg_move(p, offset, n);
        for (k = 0; job->want_distance && k < job->n_clients; k++) {
            /* theta_new - theta_k = step - Delta_k (AdaFL, eq. 1). */
            p->distance_sq[k] += fl_acc_distance_sq(p->step, p->in + k * p->block, n);
        }
    }
    if (p->presence->on) {
        agg_freeze_absent(p, offset, n);
    }
    finite = fl_vec_finite(p->job->theta_new + offset, n);
    for (s = 0; finite && s < p->n_state; s++) {
        finite = fl_vec_finite(p->job->state_new[s] + offset, n);
    }
    return finite ? FL_OK : fl__agg_not_finite(p, l, "the new model");
}

static int agg_step_unit(struct fl__agg_pass *p, size_t l)
{
    size_t offset = fl_layout_unit(p->job->layout, l)->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;
    int rv = fl__agg_open(p, l, p->n_payloads);

    if (rv != FL_OK) {
        return rv;
    }
    while (fl__unit_next_run(p->job->layout, l, &tensor, &count, &buffer)) {
        while (count > 0) {
            size_t n = count < p->block ? count : p->block;

            rv = agg_run_block(p, l, offset, n, buffer);
            if (rv != FL_OK) {
                return rv;
            }
            offset += n;
            count -= n;
        }
    }
    rv = fl__agg_close(p, l, p->n_payloads);
    if (rv != FL_OK || !fl__agg_keeps_rest(p->job) || p->job->broadcast->move_unit == NULL) {
        return rv;
    }
    offset = fl_layout_unit(p->job->layout, l)->offset;
    return p->job->broadcast->move_unit(p->job->broadcast_options, p->job->layout, l,
                                        p->job->theta_new + offset,
                                        p->job->state_new[p->job->ops->n_state] + offset);
}

/*
 * Freeze a range that no client sent, with its state: a missing update is not a zero update. A
 * state that is the step itself becomes 0.
 */
static void agg_freeze_range(const struct fl_agg_job *job, size_t offset, size_t n)
{
    size_t n_state = fl__agg_states(job);
    size_t s;

    fl__agg_keep(job, offset, n);
    for (s = 0; s < n_state; s++) {
        if (agg_state_is_step(job, s)) {
            (void)memset(job->state_new[s] + offset, 0, n * sizeof(float));
        }
    }
}

static int agg_run_unit(struct fl__agg_pass *p, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(p->job->layout, l);
    int rv;

    if (!fl__agg_weigh(p, l) || fl__agg_robust_lacks(p)) {
        agg_freeze_range(p->job, unit->offset, unit->count);
        return FL_OK;
    }
    rv = fl__agg_attend_unit(p, l);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__agg_robust_unit(p, l);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl__agg_robust_keeps(p)) {
        agg_freeze_range(p->job, unit->offset, unit->count);
        if (p->job->info != NULL) {
            p->job->info->robust_kept++;
        }
        return FL_OK;
    }
    return p->job->ops->mixes ? fl__agg_mix_unit(p, l) : agg_step_unit(p, l);
}

static int agg_make_unit(struct fl__agg_pass *p, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(p->job->layout, l);
    int rv = agg_run_unit(p, l);
    size_t t;

    if (rv != FL_OK) {
        return rv;
    }
    /*
     * Local tensors (batch-norm layers that stay on the clients) keep the server's values bit for
     * bit, also when a client sent them.
     */
    for (t = 0; fl_layout_local(p->job->layout) > 0 && t < unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(p->job->layout, unit->first_tensor + t);

        if (tensor->local) {
            fl__agg_keep(p->job, tensor->offset, tensor->count);
        }
    }
    if (p->job->made != NULL) {
        p->job->made(p->job->ctx, unit->offset, unit->count);
    }
    return FL_OK;
}

/* From sums over the components to means. */
static void agg_attention_mean(const struct fl__agg_pass *p)
{
    const struct fl_agg_job *job = p->job;
    double entries = p->attention.entries;
    size_t i;

    for (i = 0; job->mixing != NULL && i < job->n_mixing * job->n_mixing; i++) {
        job->mixing[i] = entries > 0 ? job->mixing[i] / entries : 0;
    }
    for (i = 0; job->attention != NULL && i < job->n_clients; i++) {
        job->attention[i] = entries > 0 ? job->attention[i] / entries : 0;
    }
}

int fl_aggregate_run(const struct fl_agg_job *job, size_t *ret_client, struct fl_err *err)
{
    struct fl__agg_pass p = {.job = job, .ret_client = ret_client, .err = err};
    bool robust = fl_robust_on(job->robust);
    size_t k;
    size_t l;
    int rv;

    rv = fl__agg_check(job, ret_client, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (job->info != NULL) {
        *job->info = (struct fl_agg_info){0};
    }
    if (job->n_clients == 0) {
        agg_freeze_range(job, 0, fl_layout_count(job->layout));
        return FL_OK;
    }
    p.robust.on = robust;
    p.robust.by_entries = robust && job->robust->weigh == NULL;
    p.robust.wants = fl_robust_wants(job->robust, job->robust_options);
    p.robust.report = fl_robust_reports(job->robust, job->robust_options);
    rv = fl__agg_init(&p);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__agg_attend_init(&p);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__agg_whole_make(&p);
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < fl_layout_units(job->layout); l++) {
        rv = agg_make_unit(&p, l);
        if (rv != FL_OK) {
            goto done;
        }
    }
    for (k = 0; job->want_distance && k < job->n_clients; k++) {
        job->distance[k] = sqrt(p.distance_sq[k]);
    }
    fl__agg_robust_report(&p);
    fl__agg_share_report(&p);
    agg_attention_mean(&p);
    if (job->info != NULL) {
        const struct fl__agg_attention *a = &p.attention;

        /* Means over the components, weighted by their entries. */
        if (a->entries > 0) {
            job->info->effective = a->effective / a->entries;
            job->info->self_weight = a->self_weight / a->entries;
        }
    }
done:
    fl__agg_done(&p);
    return rv;
}
