#include "server/daemon/disk.h"

#include <stdlib.h>

#include "server/daemon/frontend_impl.h"

/* Two: while the loop deals with one the lane has the next. */
#define ON_LANE_MAX 2

static void link_last(struct fl_disk *disk, struct fl_disk_job *job)
{
    job->waits = true;
    job->next = NULL;
    job->prev = disk->last;
    if (disk->last != NULL) {
        disk->last->next = job;
    } else {
        disk->first = job;
    }
    disk->last = job;
}

static void unlink_job(struct fl_disk *disk, struct fl_disk_job *job)
{
    job->waits = false;
    if (job->prev != NULL) {
        job->prev->next = job->next;
    } else {
        disk->first = job->next;
    }
    if (job->next != NULL) {
        job->next->prev = job->prev;
    } else {
        disk->last = job->prev;
    }
}

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
    while (disk->n_on_lane < ON_LANE_MAX && (next = disk->first) != NULL) {
        unlink_job(disk, next);
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
    link_last(&frontend->disk, job);
    return FL_OK;
}

void fl_disk_forget(struct fl_disk_job *job)
{
    if (job == NULL) {
        return;
    }
    job->forgotten = true;
    if (job->waits) {
        unlink_job(&job->frontend->disk, job);
        finish(job);
    }
}
