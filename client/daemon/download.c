/*
 * Downloads the payloads of a task, or the model of an evaluation. Normal case of a task: the
 * training thread commits or discards the client state by the last round that the server aggregated
 * and looks for payloads on disk; then the missing payloads are fetched one after the other: a
 * FetchRequest, then chunks in rising offsets directly into the payload's memory. After a broken
 * stream the received bytes stay, and the next Fetch of the same round continues behind them. Runs
 * on the loop; only the state job runs on the training thread.
 */

#include "client/daemon/download.h"

#include <stdlib.h>
#include <string.h>

#include "client/work/settle_state.h"
#include "client/work/transfer_end.h"
#include "libfl/base/sm.h"

enum download_state {
    DOWNLOAD_IDLE,     /* received bytes wait for the next attempt */
    DOWNLOAD_SETTLING, /* job on the training thread */
    DOWNLOAD_RUNNING,  /* a Fetch call is open */
    DOWNLOAD_ENDING,   /* the call ended and its follow-up runs: continues in on_closed */
    DOWNLOAD_CANCELED, /* cancelled while ENDING: on_closed frees it */
    DOWNLOAD_GIVEN_UP, /* freed when the call or the job ends */
    DOWNLOAD_STATES
};

static const struct fl_sm_state download_states[DOWNLOAD_STATES] = {
    [DOWNLOAD_IDLE] = {"IDLE", FL_SM_TO(DOWNLOAD_SETTLING) | FL_SM_TO(DOWNLOAD_RUNNING)},
    [DOWNLOAD_SETTLING] = {"SETTLING", FL_SM_TO(DOWNLOAD_IDLE) | FL_SM_TO(DOWNLOAD_GIVEN_UP)},
    [DOWNLOAD_RUNNING] = {"RUNNING", FL_SM_TO(DOWNLOAD_ENDING) | FL_SM_TO(DOWNLOAD_GIVEN_UP)},
    [DOWNLOAD_ENDING] = {"ENDING", FL_SM_TO(DOWNLOAD_IDLE) | FL_SM_TO(DOWNLOAD_SETTLING) |
                                       FL_SM_TO(DOWNLOAD_RUNNING) | FL_SM_TO(DOWNLOAD_CANCELED)},
    [DOWNLOAD_CANCELED] = {"CANCELED", 0},
    [DOWNLOAD_GIVEN_UP] = {"GIVEN_UP", 0},
};

struct fl_download {
    struct fl_downloads *owner;
    struct fl_sm sm;
    struct fl_call *call; /* set from RUNNING until the call has ended; else NULL */
    struct fl_round_key key;
    bool bad;                /* the server sent a chunk that the payload cannot have */
    bool evaluation;         /* the model of an evaluation, not the payloads of a task */
    double rate;             /* learning rate of the evaluation */
    struct fl_input payload; /* the model of the evaluation, as it was listed */
    struct fl_inputs in;
    struct fl_input *at; /* the payload being fetched, inside `in` */
};

static int download_next_payload(struct fl_download *f);

static void download_free(struct fl_download *f)
{
    fl_inputs_done(&f->in);
    free(f);
}

static enum fl_activity download_activity(const struct fl_download *f)
{
    return f->evaluation ? FL_ACTIVITY_EVALUATION : FL_ACTIVITY_FETCH;
}

static void download_log_failure(const struct fl_download *f, const char *text)
{
    if (!f->evaluation) {
        fl_log_peer(f->owner->jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "fetching the payloads of round %llu failed: %s",
                    (unsigned long long)f->key.round, text);
    }
}

static void download_failed(struct fl_download *f, enum fl_fault fault, const char *text)
{
    download_log_failure(f, text);
    fl_session_shell_failed(f->owner->jobs->shell, download_activity(f), f->key, fault, text);
}

/* All payloads are complete. Those of a task wait for fl_downloads_take(). */
static void download_finished(struct fl_download *f)
{
    struct fl_downloads *d = f->owner;

    if (f->evaluation) {
        fl_evaluations_begin(d->evaluations, f->key.round, f->rate, &d->wanted->task, &f->in);
    } else {
        fl_session_shell_ended(d->jobs->shell, FL_ACTIVITY_FETCH, f->key, FL_OK, NULL);
    }
}

static void download_continue(struct fl_download *f)
{
    int rv = download_next_payload(f);

    if (rv != FL_OK) {
        download_failed(f, FL_FAULT_PASSING, fl_strerror(rv));
    }
}

/* The current payload is complete: check it, then fetch the next one. */
static void download_payload_done(struct fl_download *f)
{
    struct fl_err err = {0};
    int rv = fl_input_check(f->at, &err);

    if (rv != FL_OK) {
        download_failed(f, FL_FAULT_PASSING, fl_err_text(&err, rv));
        return;
    }
    download_continue(f);
}

static void download_broke_off(struct fl_download *f, enum fl_fault fault, const char *text)
{
    const struct fl_jobs *jobs = f->owner->jobs;
    const struct fl_input *in = f->at;

    if (!f->evaluation) {
        fl_log_peer(jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "fetching payload '%s' of round %llu interrupted at %llu of %llu bytes: %s",
                    in->name, (unsigned long long)f->key.round, (unsigned long long)in->have,
                    (unsigned long long)in->bytes, text);
    }
    fl_session_shell_failed(jobs->shell, download_activity(f), f->key, fault, text);
}

static enum fl_transfer download_transfer(const struct fl_download *f, enum fl_grpc_status status)
{
    if (f->bad) {
        return FL_TRANSFER_BAD;
    }
    switch (status) {
    case FL_GRPC_OK:
        return FL_TRANSFER_DONE;
    case FL_GRPC_FAILED_PRECONDITION:
        return FL_TRANSFER_NOT_HELD;
    case FL_GRPC_OUT_OF_RANGE:
        return FL_TRANSFER_PAST_END;
    case FL_GRPC_NOT_FOUND:
        return FL_TRANSFER_REMOVED;
    default:
        return FL_TRANSFER_BROKEN;
    }
}

/* The call has ended: the next payload, the same one as a whole, or the end of this attempt. */
static void download_transferred(struct fl_download *f, enum fl_grpc_status status,
                                 const char *message)
{
    enum fl_fault fault = FL_FAULT_PASSING;
    const char *why = NULL;

    switch (fl_transfer_ended(f->at, download_transfer(f, status), &fault, &why)) {
    case FL_TRANSFER_COMPLETE:
        download_payload_done(f);
        return;
    case FL_TRANSFER_AGAIN:
        download_continue(f);
        return;
    case FL_TRANSFER_FAILED:
        if (why == NULL) {
            why = message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);
        }
        download_broke_off(f, fault, why);
        return;
    }
}

static bool download_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_download *f = ctx;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    int rv = fl_wire_chunk_decode(data, len, &chunk, &err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_input_add(f->at, chunk.offset, chunk.data, chunk.len, &err);
done:
    if (rv != FL_OK) {
        fl_log_peer(f->owner->jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    rv == FL_ENOMEM ? "out of memory for a chunk of the server, retrying: %s"
                                    : "bad chunk from the server: %s",
                    fl_err_text(&err, rv));
        f->bad = rv == FL_EPROTO;
        fl_call_cancel(call);
    }
    return true;
}

static void download_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                               const char *message)
{
    struct fl_download *f = ctx;

    (void)call;
    f->call = NULL;
    if (f->sm.state == DOWNLOAD_GIVEN_UP) {
        download_free(f);
        return;
    }
    fl_sm_move(&f->sm, DOWNLOAD_ENDING);
    download_transferred(f, status, message);
    if (f->sm.state == DOWNLOAD_CANCELED) {
        download_free(f);
    } else if (f->sm.state == DOWNLOAD_ENDING) {
        fl_sm_move(&f->sm, DOWNLOAD_IDLE);
        if (f->evaluation) { /* Each evaluation has its own download. */
            f->owner->model = NULL;
            download_free(f);
        }
    } /* Else the next payload or the next attempt is in progress. */
}

static const struct fl_call_handler download_handler = {.on_message = download_on_message,
                                                        .on_closed = download_on_closed};

static int download_start_fetch(struct fl_download *f)
{
    struct fl_wire_fetch request = {.session = fl_connection_token(f->owner->connection),
                                    .round = f->key.round,
                                    .offset = f->at->have,
                                    .has_held = f->at->has_held};
    struct fl_buf buf;
    struct fl_piece piece;
    int rv;

    (void)memcpy(request.held, f->at->held, sizeof(request.held));
    rv = fl_str_copy(request.payload, sizeof(request.payload), f->at->name);
    fl_buf_init(&buf, 4096);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_wire_fetch_encode(&request, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_connection_call(f->owner->connection, "/fl.v1.Federation/Fetch", 0, &download_handler,
                            f, &f->call);
    if (rv != FL_OK) {
        goto done;
    }
    f->bad = false;
    fl_call_set_bulk(f->call, FL_CALL_TAKES_BULK);
    fl_sm_move(&f->sm, DOWNLOAD_RUNNING);
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    rv = fl_call_send(f->call, &piece, 1);
    fl_call_end(f->call);
    if (rv != FL_OK) { /* download_on_closed() reports it to the session. */
        fl_call_cancel(f->call);
        rv = FL_OK;
    }
done:
    fl_buf_done(&buf);
    return rv;
}

static int download_next_payload(struct fl_download *f)
{
    int rv = fl_inputs_next(&f->in, &f->at);

    if (rv != FL_OK) {
        return rv;
    }
    if (f->at != NULL) {
        return download_start_fetch(f);
    }
    /* May start another download or free `f`: do not use `f` afterwards. */
    download_finished(f);
    return FL_OK;
}

/* --- before the first payload: client state and payloads on disk --- */

struct settle_job {
    struct fl_download *f; /* outlives the job */
    struct fl_settling settling;
    int code;
    struct fl_err err;
};

/* Runs on the training thread: touches neither the download nor the task. */
static void settle_work(void *arg)
{
    struct settle_job *job = arg;

    job->code = fl_settling_run(&job->settling, job->f->owner->worker, &job->err);
}

static int download_start(struct fl_download *f, struct fl_settling *settling, struct fl_err *err)
{
    struct fl_wanted *wanted = f->owner->wanted;
    int rv = f->evaluation
                 ? fl_settling_choose_model(settling, &f->payload, &f->in, err)
                 : fl_settling_choose(settling, &wanted->listed, f->owner->jobs->log, &f->in, err);

    if (rv != FL_OK) {
        return rv;
    }
    return download_next_payload(f);
}

static void settle_done(void *arg)
{
    struct settle_job *job = arg;
    struct fl_download *f = job->f;
    bool evaluation = f->evaluation;

    if (f->sm.state == DOWNLOAD_GIVEN_UP) {
        download_free(f);
    } else {
        fl_sm_move(&f->sm, DOWNLOAD_IDLE);
        if (job->code == FL_OK && !fl_session_shell_stopped(f->owner->jobs->shell)) {
            job->code = download_start(f, &job->settling, &job->err);
        }
        if (job->code != FL_OK) {
            download_failed(f, fl_fault_of(job->code), fl_err_text(&job->err, job->code));
        }
        /* That of a task may be freed by now; that of an evaluation has ended without a Fetch. */
        if (evaluation && f->sm.state == DOWNLOAD_IDLE) {
            f->owner->model = NULL;
            download_free(f);
        }
    }
    fl_settling_done(&job->settling);
    free(job);
}

/* Takes `settling`, on error too. */
static int download_settle_state(struct fl_download *f, struct fl_settling *settling)
{
    struct settle_job *job = calloc(1, sizeof(*job));
    int rv = FL_ENOMEM;

    if (job != NULL) {
        *job = (struct settle_job){.f = f, .settling = *settling};
        rv = fl_jobs_submit(f->owner->jobs, settle_work, settle_done, job);
    }
    if (rv != FL_OK) {
        fl_settling_done(settling);
        free(job);
        return rv;
    }
    fl_sm_move(&f->sm, DOWNLOAD_SETTLING);
    return FL_OK;
}

/* --- the two kinds --- */

static struct fl_download *download_new(struct fl_downloads *d, struct fl_round_key key)
{
    struct fl_download *f = calloc(1, sizeof(*f));

    if (f != NULL) {
        f->owner = d;
        fl_sm_init(&f->sm, download_states, DOWNLOAD_STATES, DOWNLOAD_IDLE);
        f->key = key;
    }
    return f;
}

int fl_downloads_begin_task(struct fl_downloads *d, struct fl_round_key key, struct fl_err *err)
{
    struct fl_settling settling;
    int rv;

    if (d->task != NULL &&
        (d->task->sm.state == DOWNLOAD_RUNNING || d->task->sm.state == DOWNLOAD_SETTLING))
    {
        fl_downloads_cancel_task(d);
    }
    if (d->task == NULL) {
        d->task = download_new(d, key);
    }
    if (d->task == NULL) {
        return FL_ENOMEM;
    }
    d->task->key = key;
    if (!fl_settling_begin(d->worker, d->worker->setup, &d->wanted->listed, &d->wanted->task,
                           &settling))
    {
        rv = download_start(d->task, &settling, err);
        fl_settling_done(&settling);
    } else {
        rv = download_settle_state(d->task, &settling);
    }
    if (rv != FL_OK) {
        download_log_failure(d->task, fl_err_text(err, rv));
    }
    return rv;
}

void fl_downloads_take(struct fl_downloads *d, struct fl_inputs *ret)
{
    *ret = (struct fl_inputs){.n = 0};
    if (d->task != NULL) {
        *ret = d->task->in;
        d->task->in = (struct fl_inputs){.n = 0};
    }
}

void fl_downloads_cancel_task(struct fl_downloads *d)
{
    struct fl_download *f = d->task;

    if (f == NULL) {
        return;
    }
    d->task = NULL;
    if (f->sm.state == DOWNLOAD_IDLE) {
        download_free(f);
    } else if (f->sm.state == DOWNLOAD_ENDING) {
        fl_sm_move(&f->sm, DOWNLOAD_CANCELED);
    } else {
        fl_sm_move(&f->sm, DOWNLOAD_GIVEN_UP);
        if (f->call != NULL) {
            fl_call_cancel(f->call);
        }
    }
}

int fl_downloads_begin_model(struct fl_downloads *d, struct fl_err *err)
{
    const struct fl_wanted_evaluation *wanted = &d->wanted->evaluation;
    struct fl_round_key key = {.round = wanted->round};
    struct fl_settling settling;
    struct fl_download *f;
    int rv;

    if (d->model != NULL) {
        return fl_err_set(err, FL_ESTATE,
                          "the model of the previous evaluation is still being fetched");
    }
    f = download_new(d, key);
    if (f == NULL) {
        return FL_ENOMEM;
    }
    f->evaluation = true;
    f->rate = wanted->rate;
    f->payload = wanted->payload;
    if (fl_settling_begin_model(d->worker, d->worker->setup, &f->payload, &settling)) {
        rv = download_settle_state(f, &settling);
    } else {
        rv = download_start(f, &settling, err);
        fl_settling_done(&settling);
    }
    if (rv != FL_OK) {
        download_free(f);
        return rv;
    }
    d->model = f;
    return FL_OK;
}
