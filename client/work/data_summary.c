/*
 * The data summary of this client: makes it once per state folder, checks it against the operator's
 * limits, and cuts it into pieces to send. The checks run on the loop, fl_data_summary_make() on
 * the training thread. It does not send (client/daemon/summary_upload.c).
 */
#include "client/work/data_summary.h"

#include <inttypes.h>

#include "client/store/own_summary.h"

static int make_new(const struct fl_worker *worker, struct fl_buf *out, struct fl_err *err)
{
    uint64_t least = worker->terms.least_group;
    uint64_t samples = fl_trainer_samples(worker->trainer);
    const struct fl_setup *setup;
    uint64_t group;
    uint64_t means;
    int rv;

    if (samples < least) {
        return fl_err_set(err, FL_EPERM,
                          "a mean needs at least %" PRIu64
                          " samples ('least_group' of this client), and the client has %" PRIu64,
                          least, samples);
    }
    rv = fl_trainer_summary(worker->trainer, worker->seed, out, err);
    if (rv != FL_OK || out->len == 0) {
        return rv;
    }
    /*
     * Reject a summary whose means have fewer samples than requested and allowed. A program of the
     * user makes its own summary, so it is checked, too.
     */
    setup = worker->setup;
    group = setup->solver->summary_group(setup->solver_options);
    least = worker->terms.least_group > 1 ? worker->terms.least_group : 1;
    means = setup->solver->summary_means(out->data, out->len);
    if (group == 0 || group > samples) {
        group = samples;
    }
    if (means <= 1 || means <= samples / (group > least ? group : least)) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EPERM,
                      "a data summary of %" PRIu64 " means of %" PRIu64
                      " samples has means of fewer than %" PRIu64
                      " samples: a short last group has to be merged into the previous one",
                      means, samples, group > least ? group : least);
}

int fl_data_summary_make(const struct fl_worker *worker, struct fl_data_summary *ret,
                         struct fl_err *err)
{
    int rv;
    bool made = false;

    *ret = (struct fl_data_summary){.sent = 0};
    fl_buf_init(&ret->data, FL_SUMMARY_MAX);
    /* The summary that was sent before. FL_ENOENT: none. */
    rv =
        worker->state_dir != NULL ? fl_summary_load(worker->state_dir, &ret->data, err) : FL_ENOENT;
    if (rv == FL_ENOENT) {
        const struct fl_setup *setup;

        rv = make_new(worker, &ret->data, err);
        if (rv != FL_OK) {
            made = true;
            goto fail;
        }
        /* Save the summary before a byte of it is sent. */
        setup = worker->setup;
        rv = worker->state_dir != NULL && ret->data.len > 0
                 ? fl_summary_save(worker->state_dir,
                                   setup->solver->summary_group(setup->solver_options),
                                   ret->data.data, ret->data.len, err)
                 : FL_OK;
    }
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_buf_done(&ret->data);
    fl_buf_init(&ret->data, 0);
    if (rv == FL_ENOMEM || (!made && rv != FL_EFORMAT && rv != FL_EVERSION)) {
        return rv;
    }
    fl_log(worker->log, FL_LOG_WARNING, "client",
           "no data summary is sent, taking part without one: %s", fl_err_text(err, rv));
    return FL_OK;
}

void fl_data_summary_rewind(struct fl_data_summary *summary)
{
    summary->sent = 0;
    summary->sent_all = false;
}

bool fl_data_summary_next(struct fl_data_summary *summary, struct fl_wire_data_summary *ret)
{
    size_t left = summary->data.len - summary->sent;

    if (summary->sent_all) {
        return false;
    }
    ret->offset = summary->sent;
    ret->total = summary->data.len;
    ret->len = left < FL_WIRE_SUMMARY_PIECE ? left : FL_WIRE_SUMMARY_PIECE;
    ret->data = ret->len > 0 ? summary->data.data + summary->sent : NULL;
    summary->sent += ret->len;
    summary->sent_all = summary->sent == summary->data.len;
    return true;
}

void fl_data_summary_done(struct fl_data_summary *summary)
{
    fl_buf_done(&summary->data);
    *summary = (struct fl_data_summary){.sent = 0};
}

int fl_data_summary_allowed(const struct fl_worker_terms *terms, const struct fl_solver_ops *solver,
                            const struct fl_options *options, struct fl_err *err)
{
    uint64_t group = solver->summary != NULL ? solver->summary_group(options) : 0;

    if (!terms->summaries) {
        return fl_err_set(
            err, FL_EPERM,
            "solver '%s' sends means of this client's samples to all other clients, and the "
            "configuration of this client does not allow that ('summaries: yes')",
            solver->policy.name);
    }
    if (group != 0 && group < terms->least_group) {
        return fl_err_set(err, FL_EPERM,
                          "the server requests means of %" PRIu64
                          " samples each (strategy.solver.group), fewer than 'least_group' of this "
                          "client, %" PRIu64,
                          group, terms->least_group);
    }
    return FL_OK;
}

int fl_data_summary_check(const struct fl_worker *worker, bool wants, struct fl_err *err)
{
    const struct fl_setup *setup = worker->setup;
    bool made = setup->solver->summary != NULL;
    uint64_t asked;
    uint64_t sent = 0;
    int rv;

    if (!wants && !made) {
        return FL_OK;
    }
    rv = fl_data_summary_allowed(&worker->terms, setup->solver, setup->solver_options, err);
    if (rv != FL_OK || !made) {
        return rv;
    }
    /* A summary with another group size than the one sent before is never made. */
    asked = setup->solver->summary_group(setup->solver_options);
    rv = worker->state_dir != NULL ? fl_summary_group(worker->state_dir, &sent, err) : FL_ENOENT;
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    if (sent != asked) {
        return fl_err_set(
            err, FL_EPERM,
            "the server requests means with strategy.solver.group %" PRIu64
            ", and this client sent its data summary with %" PRIu64
            ": two summaries of the same samples would reveal single samples (docs/security.md)",
            asked, sent);
    }
    return FL_OK;
}
