#include "server/network/disk.h"

#include <stdlib.h>

#include "server/network/frontend_impl.h"

/* Two: the thread has its next job while the loop handles the result of one. */
#define JOBS_SUBMITTED_MAX 2

static void disk_job_finish(struct fl_disk_job *job)
{
    if (!job->forgotten) {
        job->done(job);
    }
    if (job->release != NULL) {
        job->release(job);
    }
    free(job);
}

static void disk_job_run(void *arg)
{
    struct fl_disk_job *job = arg;

    job->code = job->work(job);
}

static void disk_job_returned(void *arg);

static int disk_job_submit(struct fl_disk_job *job)
{
    int rv = fl_frontend_on_disk(job->frontend, disk_job_run, disk_job_returned, job);

    if (rv != FL_OK) {
        return rv;
    }
    job->frontend->disk.n_submitted++;
    return FL_OK;
}

static void disk_job_returned(void *arg)
{
    struct fl_disk_job *job = arg;
    struct fl_disk *disk = &job->frontend->disk;
    struct fl_disk_job *next;

    disk->n_submitted--;
    /* Start the next job first, so that a job added by `done` queues behind the waiting ones. */
    while (disk->n_submitted < JOBS_SUBMITTED_MAX &&
           (next = FL_LIST_FIRST(&disk->waiting, struct fl_disk_job, waits)) != NULL)
    {
        int rv;

        fl_list_remove(&next->waits);
        rv = disk_job_submit(next);
        /* Submitted, it may have run: its code is what its work returned. */
        if (rv != FL_OK) {
            next->code = rv;
            disk_job_finish(next);
        }
    }
    disk_job_finish(job);
}

int fl_disk_ask(struct fl_frontend *frontend, struct fl_disk_job *job)
{
    job->frontend = frontend;
    if (frontend->disk.n_submitted < JOBS_SUBMITTED_MAX) {
        return disk_job_submit(job);
    }
    fl_list_append(&frontend->disk.waiting, &job->waits);
    return FL_OK;
}

void fl_disk_forget(struct fl_disk_job *job)
{
    if (job == NULL) {
        return;
    }
    job->forgotten = true;
    if (fl_list_is_linked(&job->waits)) {
        fl_list_remove(&job->waits);
        disk_job_finish(job);
    }
}
