#ifndef FL_CLIENTD_JOBS_H
#define FL_CLIENTD_JOBS_H

/*
 * Jobs on the training thread: where they run and which session gets their results. Jobs run one
 * after the other, in the order of submission; each begins and ends on the loop.
 */

#include "client/shell/session_shell.h"
#include "libfl/net/loop.h"

struct fl_jobs {
    const struct fl_log *log;
    struct fl_loop *loop;
    struct fl_worker_thread *thread;
    struct fl_session_shell *shell;
};

/* Runs work(arg) on the training thread, then done(arg) on the loop. FL_ENOMEM: neither. */
static inline int fl_jobs_submit(const struct fl_jobs *jobs, fl_loop_cb work, fl_loop_cb done,
                                 void *arg)
{
    return fl_worker_thread_submit(jobs->thread, work, jobs->loop, done, arg);
}

#endif
