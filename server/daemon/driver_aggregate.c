/* Aggregation on the work lane, and what the core hears of it. */

#include <stdlib.h>

#include "server/daemon/driver_jobs.h"

/* Names and weights of the parts' clients, in the order of the parts. */
static bool copy_part_clients(struct fl_job *job, const struct fl_driver *driver)
{
    size_t i;

    job->clients = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->clients));
    if (job->clients == NULL) {
        return false;
    }
    for (i = 0; i < job->n_parts; i++) {
        job->clients[i] = *fl_coord_part_client(driver->coord, job->parts[i].client);
    }
    job->n_clients = job->n_parts;
    return true;
}

static void aggregate_work(void *arg)
{
    struct fl_job *job = arg;

    job->code = fl_aggregation_run(&job->driver->federation, &job->aggregation, &job->err);
}

static void aggregate_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_driver *driver = job->driver;
    struct fl_aggregation *a = &job->aggregation;
    struct fl_event event = {.type = FL_EV_AGGREGATED};

    if (!fl_job_failed(job)) {
        fl_progress_aggregated(&driver->progress, &a->next);
        if (a->info.effective > 0.0) {
            fl_log(driver->srv->log, FL_LOG_INFO, "round",
                   "round %llu: attention as over %.2f of %zu clients, %.3f on themselves",
                   (unsigned long long)job->round, a->info.effective, job->n_parts,
                   a->info.self_weight);
        }
        event.u.aggregated.seq = job->seq;
        event.u.aggregated.distance = a->want_distance ? a->distance : NULL;
        event.u.aggregated.effective = a->info.effective;
        event.u.aggregated.self_weight = a->info.self_weight;
        event.u.aggregated.offered_bytes =
            driver->progress.offered.file != NULL ? fl_file_size(driver->progress.offered.file) : 0;
        fl_driver_step(driver, &event);
    }
    fl_job_free(job);
}

void fl_driver_aggregate(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_job *job = fl_job_new(driver, e);

    if (job != NULL && !copy_part_clients(job, driver)) {
        fl_job_free(job);
        job = NULL;
    }
    if (job != NULL) {
        struct fl_aggregation *a = &job->aggregation;

        a->round = job->round;
        a->attempt = job->attempt;
        a->members = job->size.members;
        a->learning_rate = fl_coord_learning_rate(&driver->coord_conf, job->round);
        a->parts = job->parts;
        a->n_parts = job->n_parts;
        a->clients = job->clients;
        a->model =
            &driver->progress.committed.model; /* Replaced by a commit only, which comes after. */
    }
    fl_job_submit(driver, driver->srv->work, job, e, aggregate_work, aggregate_done);
}
