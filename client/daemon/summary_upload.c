#include "client/daemon/summary_upload.h"

#include <stdlib.h>

enum summary_state {
    SUMMARY_NONE,   /* no data summary for this setup */
    SUMMARY_MAKING, /* job on the training thread */
    SUMMARY_MADE,
    SUMMARY_STATES
};

static const struct fl_sm_state summary_states[SUMMARY_STATES] = {
    [SUMMARY_NONE] = {"NONE", FL_SM_TO(SUMMARY_MAKING)},
    [SUMMARY_MAKING] = {"MAKING", FL_SM_TO(SUMMARY_NONE) | FL_SM_TO(SUMMARY_MADE)},
    [SUMMARY_MADE] = {"MADE", FL_SM_TO(SUMMARY_NONE)},
};

struct summary_job {
    struct fl_summary_upload *owner;
    struct fl_data_summary summary;
    int code;
    struct fl_err err;
};

void fl_summary_upload_init(struct fl_summary_upload *o, const struct fl_jobs *jobs,
                            const struct fl_worker *worker, struct fl_connection *connection)
{
    *o = (struct fl_summary_upload){.jobs = jobs, .worker = worker, .connection = connection};
    fl_sm_init(&o->sm, summary_states, SUMMARY_STATES, SUMMARY_NONE);
}

void fl_summary_upload_go_on(struct fl_summary_upload *o)
{
    struct fl_wire_event event = {.type = FL_WIRE_DATA_SUMMARY};

    if (!o->wanted || o->sm.state != SUMMARY_MADE) {
        return;
    }
    /* Above half of its queue the stream rejects more; on_writable continues. */
    while (fl_connection_has_room(o->connection)) {
        if (!fl_data_summary_next(&o->summary, &event.u.summary)) {
            o->wanted = false;
            fl_log(o->jobs->log, FL_LOG_INFO, "client", "sent the data summary: %zu bytes",
                   o->summary.data.len);
            return;
        }
        fl_connection_send(o->connection, &event);
    }
}

static void summary_job_work(void *arg)
{
    struct summary_job *job = arg;

    job->code = fl_data_summary_make(job->owner->worker, &job->summary, &job->err);
}

/* Without a summary, or an empty one, the server does not select this client. */
static void summary_reconnect(struct fl_summary_upload *o, const char *why)
{
    fl_log(o->jobs->log, FL_LOG_ERROR, "client", "cannot send the data summary, reconnecting: %s",
           why);
    fl_connection_give_up(o->connection);
}

static void summary_job_done(void *arg)
{
    struct summary_job *job = arg;
    struct fl_summary_upload *o = job->owner;
    bool stopped = fl_session_shell_stopped(o->jobs->shell);

    fl_sm_move(&o->sm, job->code == FL_OK ? SUMMARY_MADE : SUMMARY_NONE);
    o->summary = job->summary;
    if (job->code == FL_OK && !stopped) {
        fl_summary_upload_go_on(o);
    } else if (!stopped) {
        summary_reconnect(o, fl_err_text(&job->err, job->code));
    }
    free(job);
}

void fl_summary_upload_begin(struct fl_summary_upload *o)
{
    struct summary_job *job;

    o->wanted = true;
    if (o->sm.state == SUMMARY_MADE) {
        fl_data_summary_rewind(&o->summary);
        fl_summary_upload_go_on(o);
    }
    if (o->sm.state != SUMMARY_NONE) {
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->owner = o;
        if (fl_jobs_submit(o->jobs, summary_job_work, summary_job_done, job) == FL_OK) {
            fl_sm_move(&o->sm, SUMMARY_MAKING);
            return;
        }
        free(job);
    }
    summary_reconnect(o, fl_strerror(FL_ENOMEM));
}

void fl_summary_upload_stop(struct fl_summary_upload *o)
{
    o->wanted = false;
}

void fl_summary_upload_forget(struct fl_summary_upload *o)
{
    if (o->sm.state == SUMMARY_MADE) {
        fl_data_summary_done(&o->summary);
        fl_sm_move(&o->sm, SUMMARY_NONE);
    }
}
