#include "server/daemon/disk.h"

#include <stdlib.h>

#include "server/daemon/frontend_impl.h"

/* Two: while the loop deals with one the lane has the next. */
#define ON_LANE_MAX 2

static void finish(struct fl_disk_job *job)
{
    if (!job->forgotten) {
        job->done(job);
    }
    if (job->release != NULL) {
        job->release(job);
    }
    free(job);
}

static void on_lane(void *arg)
{
    struct fl_disk_job *job = arg;

    job->code = job->work(job);
}

static void back(void *arg);

static int submit(struct fl_disk_job *job)
{
    int rv = fl_frontend_on_disk(job->frontend, on_lane, back, job);

    job->frontend->disk.n_on_lane += rv == FL_OK ? 1 : 0;
    return rv;
}

static void back(void *arg)
{
    struct fl_disk_job *job = arg;
    struct fl_disk *disk = &job->frontend->disk;
    struct fl_disk_job *next;

    disk->n_on_lane--;
    /* First, so that what this one asks for next comes behind those that wait. */
    while (disk->n_on_lane < ON_LANE_MAX &&
           (next = FL_LIST_FIRST(&disk->waiting, struct fl_disk_job, waits)) != NULL)
    {
        fl_list_remove(&next->waits);
        next->code = submit(next);
        if (next->code != FL_OK) {
            finish(next);
        }
    }
    finish(job);
}

int fl_disk_ask(struct fl_frontend *frontend, struct fl_disk_job *job)
{
    job->frontend = frontend;
    if (frontend->disk.n_on_lane < ON_LANE_MAX) {
        return submit(job);
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
        finish(job);
    }
}
