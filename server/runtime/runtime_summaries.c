/*
 * Data summaries: stored on the db thread, listed for operators, and removed. Coordinator thread.
 * Which clients are asked for one is decided in server/core.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/runtime/runtime_impl.h"

static void runtime_step_summary(struct fl_runtime *runtime, uint32_t client, const char *name)
{
    struct fl_event event = {.type = FL_EV_CLIENT_SUMMARY};

    event.u.summary.client = client;
    event.u.summary.name = name;
    fl_coord_shell_step(&runtime->shell, &event);
}

struct summary_job {
    struct fl_runtime *runtime;
    uint64_t session;
    uint32_t client;
    char name[FL_NAME_MAX];
    struct fl_buf data;
    int code;
    struct fl_err err;
};

static void summary_reject(struct fl_runtime *runtime, uint64_t session, const char *name, int code,
                           const char *text)
{
    struct fl_net_msg *down = fl_net_msg_new(runtime, FL_NET_MSG_BAD_SUMMARY);

    fl_log(runtime->setup.log, FL_LOG_WARNING, "round", "data summary of client '%s' rejected: %s",
           name, text);
    down->session = session;
    down->code = code;
    down->text = fl_net_msg_text(runtime, text);
    fl_runtime_down(runtime, down);
}

static void summary_put_work(void *arg)
{
    struct summary_job *job = arg;

    job->code = fl_collection_take(&job->runtime->federation, job->name, job->data.data,
                                   job->data.len, &job->err);
}

static void summary_put_done(void *arg)
{
    struct summary_job *job = arg;

    if (job->code != FL_OK) {
        /* Our own failure: the client may retry. */
        summary_reject(job->runtime, job->session, job->name,
                       fl_collection_is_theirs(job->code) ? job->code : FL_EUNAVAIL,
                       fl_err_text(&job->err, job->code));
    } else {
        runtime_step_summary(job->runtime, job->client, job->name);
    }
    fl_buf_done(&job->data);
    free(job);
}

void fl_runtime_summary(struct fl_runtime *runtime, struct fl_coord_msg *up)
{
    const struct fl_client_rec *rec = fl_coord_client(runtime->coord, up->client);
    struct summary_job *job;
    const char *name;

    if (rec == NULL) {
        return; /* The client was forgotten in the meantime. */
    }
    name = rec->name;
    if (!fl_collection_wanted(&runtime->federation, &runtime->progress)) {
        /* Too late for the open selection. A copy, for it has to outlive the step. */
        char known[FL_NAME_MAX];

        FL_REQUIRE(fl_str_copy(known, sizeof(known), name) == FL_OK);
        runtime_step_summary(runtime, up->client, known);
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->runtime = runtime;
        job->session = up->session;
        job->client = up->client;
        FL_REQUIRE(fl_str_copy(job->name, sizeof(job->name), name) == FL_OK);
        job->data = up->summary;
        fl_buf_init(&up->summary, 0);
    }
    if (job == NULL || fl_worker_thread_submit(runtime->setup.db, summary_put_work, runtime->loop,
                                               summary_put_done, job) != FL_OK)
    {
        summary_reject(runtime, up->session, name, FL_ENOMEM, "out of memory");
        if (job != NULL) {
            fl_buf_done(&job->data);
            free(job);
        }
    }
}

/* --- removing one --- */

struct forget_job {
    struct fl_runtime *runtime;
    struct fl_client_rec client; /* only its name is set */
    struct fl_collection collection;
    struct fl_admin_request *request; /* NULL: no request waits */
    int code;
    struct fl_err err;
};

static void forget_work(void *arg)
{
    struct forget_job *job = arg;

    job->code = fl_collection_forget(&job->runtime->federation, &job->client, 1, &job->collection,
                                     &job->err);
}

static void forget_done(void *arg)
{
    struct forget_job *job = arg;
    const char *why = job->code != FL_OK ? fl_err_text(&job->err, job->code) : NULL;

    fl_coord_shell_summaries(&job->runtime->shell, &job->collection, job->code);
    if (why != NULL) {
        fl_log(job->runtime->setup.log, FL_LOG_ERROR, "round",
               "cannot remove the data summary of client '%s', retrying at the next selection or "
               "start: %s",
               job->client.name, why);
    }
    if (job->request != NULL) {
        fl_runtime_forgot(job->runtime, job->request, why);
    }
    fl_file_unref(job->collection.file);
    free(job);
}

void fl_runtime_forget_summary(struct fl_runtime *runtime, const char *name,
                               struct fl_admin_request *request)
{
    struct forget_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        fl_serverd_no_memory(runtime->setup.log, "the removal of a data summary");
    }
    job->runtime = runtime;
    job->request = request;
    FL_REQUIRE(fl_str_copy(job->client.name, sizeof(job->client.name), name) == FL_OK);
    if (fl_worker_thread_submit(runtime->setup.db, forget_work, runtime->loop, forget_done, job) !=
        FL_OK)
    {
        fl_serverd_no_memory(runtime->setup.log, "the removal of a data summary");
    }
}

/* --- operator requests --- */

static const char *state_text(const struct fl_data_summary_info *info, bool fixed)
{
    switch (info->state) {
    case FL_SUMMARY_TAKEN:
        return fixed ? "handed out" : "waits for the first round";
    case FL_SUMMARY_EMPTY:
        return "empty";
    case FL_SUMMARY_DROPPED:
        return "dropped";
    case FL_SUMMARY_UNFIT:
        return "left out: damaged, or of another configuration";
    case FL_SUMMARY_OUT_OF_RANGE:
        return "left out: above the bound (limits.summary_range)";
    }
    return "";
}

static int add_summary(void *ctx, const struct fl_data_summary_info *info)
{
    struct fl_admin_request *request = ctx;
    bool fixed = fl_summaries_fixed(request->runtime->federation.state_dir);
    struct fl_wire_summary w = {.bytes = info->bytes,
                                .largest = info->largest,
                                .bound = isfinite(info->bound) ? info->bound : 0.0,
                                .client = fl_wire_lend(info->client),
                                .state = fl_wire_lend(state_text(info, fixed))};

    FL_ADMIN_REPLY(request, fl_wire_summary_encode, &w);
    return request->code;
}

struct operator_job {
    struct fl_runtime *runtime;
    struct fl_admin_request *request;
    struct fl_collection collection;
};

static void operator_work(void *arg)
{
    struct operator_job *job = arg;
    struct fl_admin_request *r = job->request;
    struct fl_federation *f = &job->runtime->federation;
    struct fl_buf empty;

    if (r->verb == FL_VERB_SUMMARIES) {
        r->code = fl_collection_list(f, add_summary, r, &r->err);
        return;
    }
    r->code = fl_collection_drop(f, r->drop, &job->collection, &r->err);
    if (r->code == FL_OK) {
        fl_log(f->log, FL_LOG_NOTICE, "round",
               "the data summary of client '%s' is dropped by the operator", r->drop);
        fl_buf_init(&empty, 1);
        r->code = fl_admin_reply(r, &empty);
    }
}

static void operator_done(void *arg)
{
    struct operator_job *job = arg;
    struct fl_admin_request *r = job->request;

    /* When there was nothing to remove, the collection is not stale. */
    if (r->verb == FL_VERB_SUMMARIES_DROP && r->code != FL_ENOENT && r->code != FL_ESTATE) {
        fl_coord_shell_summaries(&job->runtime->shell, &job->collection, r->code);
    }
    fl_file_unref(job->collection.file);
    fl_runtime_answer(job->runtime, r);
    free(job);
}

void fl_runtime_on_summaries(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct operator_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        *job = (struct operator_job){.runtime = runtime, .request = request};
        if (fl_worker_thread_submit(runtime->setup.db, operator_work, runtime->loop, operator_done,
                                    job) == FL_OK)
        {
            return;
        }
        free(job);
    }
    request->code = FL_ENOMEM;
    fl_runtime_answer(runtime, request);
}
