/*
 * The step of a program that gets all updates of a round (fl_aggregate_ops.program): a pass before
 * the one of aggregate_run.c, which decodes each unit a second time and treats the program's step
 * as that of any policy. So buffers, partial uploads, a server part and the broadcast work as with
 * all of them. Runs on the caller's thread, and waits in fl_agg_whole.make() for the program.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"
#include "libfl/strategy/codec/codec_impl.h"

/* The next n entries of all senders, from entry `offset` of the model on. */
static int whole_read(const struct fl__agg_pass *p, size_t l, size_t offset, size_t n, bool buffer)
{
    const struct fl_agg_job *job = p->job;
    const struct fl_agg_whole *w = job->whole;
    size_t entries = fl_layout_count(job->layout);
    size_t s;

    for (s = 0; s < p->n_senders; s++) {
        size_t k = p->senders[s];
        float *row = w->updates + k * entries + offset;
        double clip = job->clients[k].clip != NULL ? job->clients[k].clip[l] : 1;
        int rv = fl__agg_read(p, k, 0, l, row, n);

        if (rv != FL_OK) {
            return rv;
        }
        if (!buffer && clip < 1) {
            fl_vec_scale(row, (float)clip, row, n);
        }
        fl_acc_add(w->mean + offset, p->weights[k], row, n);
    }
    return FL_OK;
}

static int whole_unit(struct fl__agg_pass *p, size_t l)
{
    const struct fl_agg_job *job = p->job;
    const struct fl_agg_whole *w = job->whole;
    const struct fl_unit *unit = fl_layout_unit(job->layout, l);
    size_t entries = fl_layout_count(job->layout);
    size_t offset = unit->offset;
    size_t tensor = 0;
    size_t count;
    bool buffer;
    bool sent = fl__agg_weigh(p, l);
    size_t k;
    int rv;

    (void)memset(w->mean + offset, 0, unit->count * sizeof(*w->mean));
    for (k = 0; k < job->n_clients; k++) {
        w->weights[k * fl_layout_units(job->layout) + l] = p->weights[k];
        if (job->clients[k].units[l] == 0) {
            (void)memset(w->updates + k * entries + offset, 0, unit->count * sizeof(float));
        }
    }
    if (!sent) {
        return FL_OK;
    }
    rv = fl__agg_open(p, l, 1);
    if (rv != FL_OK) {
        return rv;
    }
    while (fl__unit_next_run(job->layout, l, &tensor, &count, &buffer)) {
        while (count > 0) {
            size_t n = count < p->block ? count : p->block;

            rv = whole_read(p, l, offset, n, buffer);
            if (rv != FL_OK) {
                return rv;
            }
            offset += n;
            count -= n;
        }
    }
    return fl__agg_close(p, l, 1);
}

int fl__agg_whole_make(struct fl__agg_pass *p)
{
    const struct fl_agg_job *job = p->job;
    size_t entries = fl_layout_count(job->layout);
    size_t l;

    if (job->ops->program == NULL) {
        return FL_OK;
    }
    p->made = calloc(entries, sizeof(*p->made));
    if (p->made == NULL) {
        return fl_err_set(p->err, FL_ENOMEM, "step of %zu parameters: out of memory", entries);
    }
    for (l = 0; l < fl_layout_units(job->layout); l++) {
        int rv = whole_unit(p, l);

        if (rv != FL_OK) {
            return rv;
        }
    }
    *p->ret_client = job->n_clients;
    return job->whole->make(job->whole->ctx, p->made, p->err);
}
