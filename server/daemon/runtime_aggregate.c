/* Aggregation on the work thread, and its result as an event of the coordinator. */

#include <malloc.h>
#include <stdlib.h>

#include "server/daemon/runtime_jobs.h"
#include "server/work/norms.h"

#define TRIM_MIN ((size_t)256 << 10) /* bytes of a model */

/* Names and weights of the participants' clients, in the order of the participants. */
static bool copy_part_clients(struct fl_job *job, const struct fl_runtime *runtime)
{
    size_t i;

    job->clients = calloc(job->e.n_parts + 1, sizeof(*job->clients));
    if (job->clients == NULL) {
        return false;
    }
    for (i = 0; i < job->e.n_parts; i++) {
        job->clients[i] = *fl_coord_part_client(runtime->coord, job->parts[i].client);
    }
    return true;
}

static void aggregate_work(void *arg)
{
    struct fl_job *job = arg;

    /*
     * Return the heap memory that uploads left: the aggregation needs a second model in memory.
     * Below this size the search costs more than it returns.
     */
    if (fl_federation_floats(&job->runtime->federation) * sizeof(float) >= TRIM_MIN) {
        (void)malloc_trim(0);
    }
    job->code = fl_aggregation_run(&job->runtime->federation, &job->aggregation, &job->err);
}

/*
 * Logged once as a notice: an operator who knows that the clients' data differ needs no repetition.
 */
static void aggregate_log_norms(struct fl_runtime *runtime, uint64_t round, double apart)
{
    if (apart > 0) {
        fl_log(runtime->srv->log, FL_LOG_DEBUG, "round",
               "round %llu: batch-norms of clients lie %.3f apart", (unsigned long long)round,
               apart);
    }
    if (apart > FL_NORMS_APART && !runtime->norms_logged) {
        runtime->norms_logged = true;
        fl_log(runtime->srv->log, FL_LOG_NOTICE, "round",
               "round %llu: the batch-norm means of clients differ by %.2f of their variance: data "
               "look different from client to client, 'model.norm: local' may fit them better",
               (unsigned long long)round, apart);
    }
}

static void aggregate_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_runtime *runtime = job->runtime;
    const struct fl_agg_info *info = &job->aggregation.info;

    if (!fl_job_failed(job)) {
        struct fl_event event = fl_aggregation_take(&job->aggregation, &runtime->progress);

        if (info->effective > 0.0) {
            fl_log(runtime->srv->log, FL_LOG_INFO, "round",
                   "round %llu: attention as over %.2f of %zu clients, %.3f on themselves",
                   (unsigned long long)job->e.round, info->effective, job->e.n_parts,
                   info->self_weight);
        }
        aggregate_log_norms(runtime, job->e.round, job->aggregation.norms_apart);
        event.u.aggregated.seq = job->e.seq;
        fl_runtime_step(runtime, &event);
    }
    fl_job_free(job);
}

void fl_runtime_aggregate(struct fl_runtime *runtime, const struct fl_effect *e)
{
    struct fl_job *job = fl_job_new(runtime, e);

    if (job != NULL && !copy_part_clients(job, runtime)) {
        fl_job_free(job);
        job = NULL;
    }
    if (job != NULL) {
        /* The models that the round began with are replaced only by a commit, which comes later. */
        job->aggregation = fl_aggregation_of(&job->e, job->clients,
                                             fl_coord_learning_rate(&runtime->coord_conf, e->round),
                                             &runtime->progress);
    }
    fl_job_submit(runtime, runtime->srv->work, job, e, aggregate_work, aggregate_done);
}
