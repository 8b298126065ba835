/* The shell of the coordinator (coord_shell.h): effects to operations, and results to events. The
   coordinator's thread; no clock, thread or loop, and no decision about rounds. */
#include "server/shell/coord_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/decision_log.h"
#include "server/work/norms.h"

/* Each decision is a line of the log at level debug, the same in every program. */
static void shell_log_decision(const struct fl_coord_shell *shell, const struct fl_effect *e)
{
    size_t n = fl_layout_units(shell->federation->layout);
    char line[FL_DECISION_LOG_SIZE];

    if (shell->log != NULL && atomic_load(&shell->log->level) >= FL_LOG_DEBUG &&
        fl_decision_log(shell->coord, e, n, line) != NULL)
    {
        fl_log(shell->log, FL_LOG_DEBUG, "decision", "%s", line);
    }
}

static void shell_submit(struct fl_coord_shell *shell, const struct fl_effect *e)
{
    struct fl_coord_job *job = fl_coord_job_new(shell, e);

    if (job == NULL || shell->ops->submit(shell->ctx, job) != FL_OK) {
        fl_coord_job_free(job);
        shell->ops->unsubmitted(shell->ctx, e->seq);
    }
}

static void shell_execute(struct fl_coord_shell *shell, const struct fl_effect *e)
{
    switch (e->type) {
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_QUARANTINE:
    case FL_EFF_PERSIST_PAUSE:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
    case FL_EFF_AGGREGATE:
    case FL_EFF_EVALUATE:
    case FL_EFF_COMMIT:
        shell_submit(shell, e);
        break;
    default:
        if (shell->ops->effects[e->type] != NULL) {
            shell->ops->effects[e->type](shell->ctx, e);
        }
        break;
    }
}

void fl_coord_shell_step(struct fl_coord_shell *shell, struct fl_event *event)
{
    const struct fl_coord_ops *ops = shell->ops;
    struct fl_effects effects = {0};
    size_t i;

    if (shell->stopped) {
        return;
    }
    event->now_ms = ops->now_ms(shell->ctx);
    event->wall_ms = ops->wall_ms(shell->ctx);
    if (ops->traffic != NULL) {
        event->traffic = ops->traffic(shell->ctx);
    }
    if (fl_coord_step(shell->coord, event, &effects) != FL_OK) { /* FL_ENOMEM only. */
        ops->no_memory(shell->ctx);
    }
    if (ops->stepped != NULL) {
        ops->stepped(shell->ctx, event, &effects);
    }
    for (i = 0; i < effects.n && !shell->stopped; i++) {
        shell_log_decision(shell, &effects.list[i]);
        shell_execute(shell, &effects.list[i]);
    }
    ops->timer(shell->ctx, fl_coord_deadline(shell->coord));
    if (ops->settled != NULL) {
        ops->settled(shell->ctx);
    }
}

/* --- results --- */

void fl_coord_shell_summaries(struct fl_coord_shell *shell, struct fl_collection *collection,
                              int code)
{
    /* No round is selected until the collection is rebuilt: the selection rebuilds it. */
    shell->summaries_stale = code != FL_OK || (shell->summaries_stale && collection->file == NULL);
    fl_progress_collection(shell->progress, collection);
}

/* Logged once as a notice: an operator who knows that the data differ needs no repetition. */
static void shell_log_norms(struct fl_coord_shell *shell, uint64_t round, double apart)
{
    if (apart > 0) {
        fl_log(shell->log, FL_LOG_DEBUG, "round",
               "round %llu: batch-norms of clients lie %.3f apart", (unsigned long long)round,
               apart);
    }
    if (apart > FL_NORMS_APART && !shell->norms_logged) {
        shell->norms_logged = true;
        fl_log(shell->log, FL_LOG_NOTICE, "round",
               "round %llu: the batch-norm means of clients differ by %.2f of their variance: data "
               "look different from client to client, 'model.norm: local' may fit them better",
               (unsigned long long)round, apart);
    }
}

/* "a (0.25), b (0.01), …": names of participants with a figure below `below`. */
static void shell_names(const struct fl_aggregation *a, const double *figure, double below,
                        char *out, size_t size)
{
    const char *more = ", …";
    size_t len = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < a->n_parts; i++) {
        char one[FL_NAME_MAX + 16];
        int n = snprintf(one, sizeof(one), "%s%s (%.2f)", len > 0 ? ", " : "", a->clients[i].name,
                         figure[i]);

        if (figure[i] >= below || n < 0) {
            continue;
        }
        if (len + (size_t)n + strlen(more) + 1 > size) {
            (void)memcpy(out + len, more, strlen(more) + 1);
            return;
        }
        (void)memcpy(out + len, one, (size_t)n + 1);
        len += (size_t)n;
    }
}

/* Whose updates were shortened, weigh less than by attention, or are left out by a robust rule, or
   would have been. */
static void shell_log_bounds(struct fl_coord_shell *shell, const struct fl_aggregation *a)
{
    char names[512];

    if (a->n_clipped > 0) {
        shell_names(a, a->clip, 1, names, sizeof(names));
        fl_log(shell->log, FL_LOG_INFO, "round",
               "round %llu: %zu of %zu updates shortened, with their factor (round.norm_clip): %s",
               (unsigned long long)a->round, a->n_clipped, a->n_parts, names);
    }
    if (a->info.n_capped > 0) {
        shell_names(a, a->influence, 1, names, sizeof(names));
        fl_log(shell->log, FL_LOG_INFO, "round",
               "round %llu: attention lowered for %zu of %zu updates, with the share that is left "
               "(round.share_cap): %s",
               (unsigned long long)a->round, a->info.n_capped, a->n_parts, names);
    }
    if (a->info.robust_kept > 0) {
        fl_log(
            shell->log, FL_LOG_WARNING, "round",
            "round %llu: no update agrees with the server's own in %zu of %zu layers: these keep "
            "their values (strategy.robust); compare evaluation.data with the data of clients",
            (unsigned long long)a->round, a->info.robust_kept,
            fl_layout_units(shell->federation->layout));
    }
    if (a->info.robust_out > 0) {
        fl_log(shell->log, FL_LOG_INFO, "round",
               "round %llu: of %zu of %zu updates the robust rule uses less than %g of an equal "
               "share (client, share, score): %s",
               (unsigned long long)a->round, a->info.robust_out, a->n_parts, FL_AGG_LEFT_OUT,
               a->robust_clients);
    }
}

static void shell_log_aggregation(struct fl_coord_shell *shell, const struct fl_coord_job *job)
{
    const struct fl_agg_info *info = &job->aggregation.info;

    if (info->effective > 0.0) {
        fl_log(shell->log, FL_LOG_DEBUG, "round",
               "round %llu: attention as over %.2f of %zu clients, %.3f on themselves",
               (unsigned long long)job->e.round, info->effective, job->e.n_parts,
               info->self_weight);
    }
    shell_log_bounds(shell, &job->aggregation);
    shell_log_norms(shell, job->e.round, job->aggregation.norms_apart);
}

void fl_coord_shell_take(struct fl_coord_shell *shell, struct fl_coord_job *job)
{
    struct fl_event *event = &job->event;

    if (job->code != FL_OK || event->type != 0) {
        return;
    }
    switch (job->e.type) {
    case FL_EFF_AGGREGATE:
        *event = fl_aggregation_take(&job->aggregation, shell->progress);
        shell_log_aggregation(shell, job);
        break;
    case FL_EFF_EVALUATE:
        event->type = FL_EV_EVALUATED;
        event->u.evaluated.accuracy = job->evaluated.accuracy;
        event->u.evaluated.loss = job->evaluated.loss;
        event->u.evaluated.metrics = job->evaluated.metrics;
        break;
    case FL_EFF_COMMIT:
        fl_progress_committed(shell->progress, &job->record);
        event->type = FL_EV_COMMITTED;
        break;
    default:
        event->type = FL_EV_PERSISTED;
        break;
    }
}

void fl_coord_shell_failed(struct fl_coord_shell *shell, uint64_t seq, int code, const char *reason,
                           uint32_t client)
{
    struct fl_event event = {.type = FL_EV_WORK_FAILED};

    if (shell->ops->failed != NULL) {
        shell->ops->failed(shell->ctx, code, reason);
    }
    event.u.failed_work.seq = seq;
    event.u.failed_work.code = code;
    event.u.failed_work.reason = reason;
    event.u.failed_work.client = client;
    fl_coord_shell_step(shell, &event);
}

/* The number of the job, in the place that its event has for it. */
static void shell_number_event(struct fl_event *event, uint64_t seq)
{
    if (event->type == FL_EV_AGGREGATED) {
        event->u.aggregated.seq = seq;
    } else if (event->type == FL_EV_EVALUATED) {
        event->u.evaluated.seq = seq;
    } else {
        event->u.seq = seq;
    }
}

void fl_coord_shell_done(struct fl_coord_shell *shell, struct fl_coord_job *job)
{
    if (job->summaries) {
        fl_coord_shell_summaries(shell, &job->collection, job->code);
    }
    if (job->code == FL_OK) {
        fl_coord_shell_take(shell, job);
        if (shell->ops->result != NULL) {
            shell->ops->result(shell->ctx, job);
        }
        shell_number_event(&job->event, job->e.seq);
        fl_coord_shell_step(shell, &job->event);
    } else if (job->code != FL_ECANCELED) {
        fl_coord_shell_failed(shell, job->e.seq, job->code, fl_err_text(&job->err, job->code),
                              job->aggregation.bad_client);
    }
    fl_coord_job_free(job);
}
