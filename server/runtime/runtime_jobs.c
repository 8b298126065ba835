/*
 * Jobs of the coordinator on the db and work threads. Each returns to the coordinator's loop, where
 * its result is an event of the next step (server/shell).
 */

#include <malloc.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/figures/figures_text.h"
#include "server/runtime/runtime_impl.h"

#define TRIM_MIN ((size_t)256 << 10) /* bytes of a model */

static void job_run(struct fl_coord_job *job)
{
    struct fl_runtime *runtime = job->shell->ctx;

    if (job->e.type == FL_EFF_EVALUATE) {
        job->code = fl_evaluator_run(runtime->setup.evaluator, fl_blob_floats(job->theta),
                                     &runtime->cancel, &job->evaluated, &job->err);
        return;
    }
    /*
     * Return the heap memory that uploads left: the aggregation needs a second model in memory.
     * Below this size the search costs more than it returns.
     */
    if (job->e.type == FL_EFF_AGGREGATE &&
        fl_federation_floats(&runtime->federation) * sizeof(float) >= TRIM_MIN)
    {
        (void)malloc_trim(0);
    }
    fl_coord_job_run(job);
}

static void job_work(void *arg)
{
    struct fl_coord_job *job = arg;
    uint64_t from = fl_clock_ns();

    job_run(job);
    job->seconds = (double)(fl_clock_ns() - from) / 1e9;
}

static void job_done(void *arg)
{
    struct fl_coord_job *job = arg;

    fl_runtime_worked(job->shell->ctx, job);
    fl_coord_shell_done(job->shell, job);
}

int fl_runtime_submit(void *ctx, struct fl_coord_job *job)
{
    struct fl_runtime *runtime = ctx;
    bool computes = job->e.type == FL_EFF_AGGREGATE || job->e.type == FL_EFF_EVALUATE;

    if (job->e.type == FL_EFF_COMMIT) {
        runtime->newest_error[0] = '\0';
    }
    return fl_worker_thread_submit(computes ? runtime->setup.work : runtime->setup.db, job_work,
                                   runtime->loop, job_done, job);
}

/* A job that could not be submitted: reported after the effects of this step are done. */
struct unsubmitted {
    struct fl_runtime *runtime;
    uint64_t seq;
};

static void job_report_unsubmitted(void *arg)
{
    struct unsubmitted *u = arg;

    fl_coord_shell_failed(&u->runtime->shell, u->seq, FL_ENOMEM, "out of memory", FL_NO_CLIENT);
    free(u);
}

void fl_runtime_unsubmitted(void *ctx, uint64_t seq)
{
    struct fl_runtime *runtime = ctx;
    struct unsubmitted *u = malloc(sizeof(*u));

    if (u != NULL) {
        *u = (struct unsubmitted){runtime, seq};
    }
    if (u == NULL || fl_loop_post(runtime->loop, job_report_unsubmitted, u) != FL_OK) {
        fl_serverd_no_memory(runtime->setup.log, "reporting that a job could not be submitted");
    }
}

void fl_runtime_work_failed(void *ctx, int code, const char *reason)
{
    struct fl_runtime *runtime = ctx;

    fl_log_noted(runtime->setup.log, FL_LOG_ERROR, "server", NULL,
                 FL_LOG_NOTE(WORK_FAILED, FL_LOG_WHOLE("round", fl_coord_round(runtime->coord))),
                 "work failed: %s", reason);
    fl_runtime_event(runtime, FL_EVENT_SERVER, true, NULL, reason);
    fl_runtime_own_failure(runtime, reason);
    if (code == FL_ENOSPC) { /* The job is retried. */
        fl_runtime_down(runtime, fl_net_msg_new(runtime, FL_NET_MSG_NO_SPACE));
    }
}

void fl_runtime_result(void *ctx, const struct fl_coord_job *job)
{
    struct fl_runtime *runtime = ctx;
    const struct fl_round_rec *r = &job->record;
    char figures[256];

    fl_runtime_own_failure(runtime, NULL);
    if (job->e.type != FL_EFF_COMMIT) {
        return;
    }
    /* Round and bytes appear as key=value too: log_format json makes them members. */
    fl_log_noted(
        runtime->setup.log, FL_LOG_NOTICE, "server", NULL,
        FL_LOG_NOTE(ROUND_COMMITTED, FL_LOG_WHOLE("round", r->round),
                    FL_LOG_WHOLE("wire_up_bytes", r->wire_up_bytes),
                    FL_LOG_WHOLE("wire_down_bytes", r->wire_down_bytes)),
        "round %llu committed: round=%llu attempt=%u selected=%u responders=%u%s train_loss=%.4f "
        "uplink_bytes=%llu uplink_bytes_full=%llu",
        (unsigned long long)r->round, (unsigned long long)r->round, r->attempt, r->n_selected,
        r->n_responders, fl_figures_log(&fl_round_rows, r, figures, sizeof(figures)), r->train_loss,
        (unsigned long long)r->uplink_bytes, (unsigned long long)r->uplink_bytes_full);
    fl_runtime_hook_committed(runtime, r);
}
