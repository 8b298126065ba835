/*
 * Personalized models of an aggregator with `mixes`
 * (docs/algorithms.md#personalized-models-by-component): one for each sender of a unit, computed
 * from the blocks of all senders and passed to the callback block by block, so no personalized
 * model is ever in memory as a whole. Buffers stay the sender's own. theta becomes the mean of the
 * models sent.
 *
 * Cost: n^2 multiplications per entry; factors of 0 are skipped.
 */
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"

/* q of the tensor's component; NULL for a tensor whose entries stay the sender's own. */
static const double *mix_rows_of(const struct fl__agg_pass *p, const struct fl_unit *unit, size_t t)
{
    const struct fl__agg_attention *a = &p->attention;

    if (!fl_tensor_counts(fl_layout_tensor(p->job->layout, unit->first_tensor + t))) {
        return NULL;
    }
    return a->scope == FL_SCOPE_TENSOR ? a->out + t * a->stride : a->out;
}

static void mix_to_floats(float *out, const double *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        out[i] = (float)x[i];
    }
}

static int mix_block(const struct fl__agg_pass *p, size_t l, const double *q, size_t offset,
                     size_t n)
{
    const struct fl__agg_attention *a = &p->attention;
    const struct fl_agg_job *job = p->job;
    size_t s;

    for (s = 0; s < p->n_senders; s++) {
        const float *values = a->in + s * a->in_row;
        int rv;

        if (q != NULL) {
            const double *w = q + s * p->n_senders;
            size_t j;

            /* sums[n] = sum w[s] x_s over the senders. */
            (void)memset(p->sums, 0, n * sizeof(double));
            for (j = 0; j < p->n_senders; j++) {
                if (w[j] > 0) {
                    fl_acc_add(p->sums, w[j], a->in + j * a->in_row, n);
                }
            }
            mix_to_floats(p->in, p->sums, n);
            values = p->in;
        }
        if (!fl_vec_finite(values, n)) {
            return fl__agg_not_finite(p, l, "a personalized model");
        }
        rv = job->personal_model(job->ctx, p->senders[s], offset, values, n);
        if (rv != FL_OK) {
            return fl_err_wrap(p->err, rv, "personalized model of update %zu", p->senders[s]);
        }
    }
    return FL_OK;
}

int fl__agg_mix_unit(struct fl__agg_pass *p, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(p->job->layout, l);
    const struct fl__agg_attention *a = &p->attention;
    size_t most = p->block < a->block ? p->block : a->block;
    size_t t;
    size_t s;
    int rv = fl__agg_open(p, l, 1);

    if (rv != FL_OK) {
        return rv;
    }
    for (t = 0; t < unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(p->job->layout, unit->first_tensor + t);
        size_t done = 0;

        while (done < tensor->count) {
            size_t n = tensor->count - done < most ? tensor->count - done : most;
            float *theta_new = p->job->theta_new + tensor->offset + done;

            rv = fl__agg_read_senders(p, l, n);
            if (rv != FL_OK) {
                return rv;
            }
            (void)memset(p->sums, 0, n * sizeof(double));
            for (s = 0; s < p->n_senders; s++) {
                fl_acc_add(p->sums, p->weights[p->senders[s]], a->in + s * a->in_row, n);
            }
            mix_to_floats(theta_new, p->sums, n);
            if (!fl_vec_finite(theta_new, n)) {
                return fl__agg_not_finite(p, l, "the new model");
            }
            rv = mix_block(p, l, mix_rows_of(p, unit, t), tensor->offset + done, n);
            if (rv != FL_OK) {
                return rv;
            }
            done += n;
        }
    }
    return fl__agg_close(p, l, 1);
}
