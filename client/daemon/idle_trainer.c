#include "client/daemon/idle_trainer.h"

/* The check interval: a fraction of idle_exit, within bounds. */
#define SHARE    4
#define LEAST_MS 50
#define MOST_MS  30000

static void rest_work(void *arg)
{
    const struct fl_resting *r = arg;

    (void)fl_trainer_rest(r->worker->trainer);
}

static void rest_done(void *arg)
{
    struct fl_resting *r = arg;

    r->check_queued = false;
    if (r->timer != NULL) {
        fl_timer_start(r->timer, r->every_ms);
    }
}

static void idle_trainer_check(void *arg)
{
    struct fl_resting *r = arg;

    if (!r->check_queued && fl_worker_thread_pending(r->jobs->thread) == 0 &&
        fl_jobs_submit(r->jobs, rest_work, rest_done, r) == FL_OK)
    {
        r->check_queued = true;
        return;
    }
    fl_timer_start(r->timer, r->every_ms);
}

int fl_resting_start(struct fl_resting *r, const struct fl_jobs *jobs,
                     const struct fl_worker *worker, uint64_t idle_exit_ms)
{
    uint64_t every = idle_exit_ms / SHARE;
    int rv;

    *r = (struct fl_resting){.jobs = jobs, .worker = worker};
    if (idle_exit_ms == 0) {
        return FL_OK;
    }
    r->every_ms = every < LEAST_MS ? LEAST_MS : every > MOST_MS ? MOST_MS : every;
    rv = fl_timer_create(jobs->loop, idle_trainer_check, r, &r->timer);
    if (rv != FL_OK) {
        return rv;
    }
    fl_timer_start(r->timer, r->every_ms);
    return FL_OK;
}

void fl_resting_stop(struct fl_resting *r)
{
    fl_timer_close(r->timer);
    r->timer = NULL;
}

static void stop_work(void *arg)
{
    fl_trainer_stop(arg);
}

void fl_resting_end(const struct fl_jobs *jobs, const struct fl_worker *worker)
{
    if (worker->trainer == NULL || jobs->thread == NULL) {
        return;
    }
    fl_trainer_interrupt(worker->trainer);
    if (fl_worker_thread_submit(jobs->thread, stop_work, NULL, NULL, worker->trainer) != FL_OK) {
        /* The kernel kills the program with the training thread (program.h), without a `bye`. */
        fl_log(jobs->log, FL_LOG_WARNING, "client",
               "out of memory: the training program is killed instead of stopped");
    }
}
