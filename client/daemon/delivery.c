/*
 * Uploads one result. Normal case: PushStatus reports how many bytes the server has; the training
 * thread encodes the layers that the upload mask selects into one byte string (client/work/code.c);
 * header and chunks are sent from that offset, a few at a time; the reply, or Accepted on the
 * control stream, ends the upload. After a temporary failure the session retries from PushStatus.
 * Runs on the loop; only the encoding runs on the training thread.
 *
 * Only Rejected or Dismissed on the control stream, or FAILED_PRECONDITION, drops the result.
 * INVALID_ARGUMENT alone means that the server could not decode a message while it still wants the
 * update: the upload is retried MALFORMED_MAX times, then Failed is sent so that the round does not
 * wait, and the result stays until the server answers.
 */

#include "client/daemon/delivery.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/work/code.h"
#include "libfl/base/sm.h"

#define STATUS_TIMEOUT_MS 60000
/* Uploads of one update that the server may answer with INVALID_ARGUMENT before Failed is sent. */
#define MALFORMED_MAX 5

enum delivery_state {
    DELIVERY_ASKING,   /* PushStatus */
    DELIVERY_CODING,   /* job on the training thread */
    DELIVERY_SENDING,  /* Push */
    DELIVERY_WAITING,  /* everything is sent, or the call failed: waits for its end */
    DELIVERY_GIVEN_UP, /* freed when its call or job has ended */
    DELIVERY_STATES
};

static const struct fl_sm_state delivery_states[DELIVERY_STATES] = {
    [DELIVERY_ASKING] = {"ASKING", FL_SM_TO(DELIVERY_CODING) | FL_SM_TO(DELIVERY_GIVEN_UP)},
    [DELIVERY_CODING] = {"CODING", FL_SM_TO(DELIVERY_SENDING) | FL_SM_TO(DELIVERY_GIVEN_UP)},
    [DELIVERY_SENDING] = {"SENDING", FL_SM_TO(DELIVERY_WAITING) | FL_SM_TO(DELIVERY_GIVEN_UP)},
    [DELIVERY_WAITING] = {"WAITING", FL_SM_TO(DELIVERY_GIVEN_UP)},
    [DELIVERY_GIVEN_UP] = {"GIVEN_UP", 0},
};

/* The newest answer of the server about this update. */
enum delivery_answer { ANSWER_NONE, ANSWER_INCOMPLETE, ANSWER_ACCEPTED };

struct fl_delivery {
    struct fl_deliveries *owner;
    struct fl_sm sm;
    struct fl_call *call; /* PushStatus, then Push; NULL: no call is open */
    struct fl_round_key key;
    struct fl_code code;
    uint64_t offset;
    enum delivery_answer answer;
    uint64_t received; /* bytes that the server has, from PushStatus */
    int error;         /* of the encoding job */
    struct fl_err err;
};

static void delivery_free(struct fl_delivery *p)
{
    if (p->owner->newest == p) {
        p->owner->newest = NULL;
    }
    fl_code_done(&p->code);
    free(p);
}

static void send_chunks(struct fl_delivery *p)
{
    size_t chunk = fl_connection_chunk(p->owner->connection);
    uint64_t total = fl_blob_len(p->code.bytes);

    /*
     * Sends until the call's queue is full; only then on_writable is called. The queue holds
     * references.
     */
    while (p->sm.state == DELIVERY_SENDING && p->offset < total) {
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        size_t n = total - p->offset < chunk ? (size_t)(total - p->offset) : chunk;
        struct fl_piece pieces[2];
        int rv;

        pieces[0] =
            (struct fl_piece){.data = head, .len = fl_wire_push_chunk_head(p->offset, n, head)};
        pieces[1] = (struct fl_piece){
            .data = fl_blob_data(p->code.bytes) + p->offset, .len = n, .blob = p->code.bytes};
        rv = fl_call_send(p->call, pieces, 2);
        if (rv == FL_ELIMIT) {
            return;
        }
        if (rv != FL_OK) {
            fl_sm_move(&p->sm, DELIVERY_WAITING);
            fl_call_cancel(p->call);
            return;
        }
        p->offset += n;
    }
    if (p->sm.state == DELIVERY_SENDING) {
        fl_sm_move(&p->sm, DELIVERY_WAITING);
        fl_call_end(p->call);
    }
}

static int send_header(struct fl_delivery *p)
{
    struct fl_wire_push_header header = {.session = fl_connection_token(p->owner->connection),
                                         .round = p->key.round,
                                         .attempt = p->key.attempt,
                                         .parts = p->code.parts,
                                         .n_parts = p->code.n_parts,
                                         .bytes = fl_blob_len(p->code.bytes)};
    struct fl_piece piece;
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    rv = fl_wire_push_header_encode(&header, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    rv = fl_call_send(p->call, &piece, 1);
done:
    fl_buf_done(&buf);
    return rv;
}

/* --- results of an upload --- */

static void refused_as_malformed(struct fl_delivery *p, const char *text)
{
    struct fl_deliveries *d = p->owner;
    const struct fl_jobs *jobs = d->jobs;
    bool same = d->malformed.round == p->key.round && d->malformed.attempt == p->key.attempt;

    d->malformed = p->key;
    d->n_malformed = same ? d->n_malformed + 1 : 1;
    fl_log_peer(jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "round %llu: server rejected the upload as malformed (attempt %u of %d), the "
                "result is kept: %s",
                (unsigned long long)p->key.round, d->n_malformed, MALFORMED_MAX, text);
    if (d->n_malformed < MALFORMED_MAX) {
        fl_session_shell_failed(jobs->shell, FL_ACTIVITY_PUSH, p->key, FL_FAULT_PASSING, text);
    } else {
        d->n_malformed = 0;
        fl_session_shell_failed(jobs->shell, FL_ACTIVITY_PUSH, p->key, FL_FAULT_UNDELIVERED, text);
    }
}

static void report_end(struct fl_delivery *p, enum fl_grpc_status status, const char *message)
{
    const struct fl_jobs *jobs = p->owner->jobs;
    const char *text =
        message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    if (p->answer == ANSWER_ACCEPTED) {
        fl_session_shell_ended(jobs->shell, FL_ACTIVITY_PUSH, p->key, FL_OK, NULL);
        return;
    }
    switch (status) {
    case FL_GRPC_INVALID_ARGUMENT:
        refused_as_malformed(p, text);
        break;
    case FL_GRPC_FAILED_PRECONDITION:
        fl_log_peer(jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "round %llu: update no longer wanted by the server, dropping it: %s",
                    (unsigned long long)p->key.round, text);
        fl_session_shell_key(jobs->shell, FL_CEV_DISMISSED, p->key);
        break;
    default:
        fl_log_peer(jobs->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
                    "upload of round %llu interrupted, retrying: %s",
                    (unsigned long long)p->key.round, status == FL_GRPC_OK ? "incomplete" : text);
        fl_session_shell_failed(jobs->shell, FL_ACTIVITY_PUSH, p->key, FL_FAULT_PASSING, text);
        break;
    }
}

static bool on_reply(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_delivery *p = ctx;
    struct fl_wire_push_reply reply;
    struct fl_err err = {0};

    if (fl_wire_push_reply_decode(data, len, &reply, &err) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    p->answer = reply.accepted ? ANSWER_ACCEPTED : ANSWER_INCOMPLETE;
    return true;
}

static void on_push_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    send_chunks(ctx);
}

static void on_push_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct fl_delivery *p = ctx;

    (void)call;
    p->call = NULL;
    if (p->sm.state != DELIVERY_GIVEN_UP) {
        p->owner->newest = NULL;
        report_end(p, status, message);
    }
    delivery_free(p);
}

static const struct fl_call_handler push_handler = {
    .on_message = on_reply, .on_writable = on_push_writable, .on_closed = on_push_closed};

static void delivery_fail(struct fl_delivery *p, int code, const struct fl_err *err)
{
    const struct fl_jobs *jobs = p->owner->jobs;
    struct fl_round_key key = p->key;
    char copy[FL_ERR_BUF_SIZE];

    (void)snprintf(copy, sizeof(copy), "%s", fl_err_text(err, code));
    delivery_free(p);
    fl_session_shell_ended(jobs->shell, FL_ACTIVITY_PUSH, key, code, copy);
}

static void start_push(struct fl_delivery *p)
{
    int rv;

    /* An offset past the end belongs to another encoding: the server starts over from 0. */
    p->offset = p->received <= fl_blob_len(p->code.bytes) ? p->received : 0;
    rv = fl_connection_call(p->owner->connection, "/fl.v1.Federation/Push", 0, &push_handler, p,
                            &p->call);
    if (rv != FL_OK) {
        delivery_fail(p, rv, &(struct fl_err){0});
        return;
    }
    fl_call_set_bulk(p->call, FL_CALL_SENDS_BULK);
    fl_sm_move(&p->sm, DELIVERY_SENDING);
    if (send_header(p) != FL_OK) {
        fl_sm_move(&p->sm, DELIVERY_WAITING);
        fl_call_cancel(p->call);
        return;
    }
    send_chunks(p);
}

/* --- coding --- */

static void code_work(void *arg)
{
    struct fl_delivery *p = arg;

    p->error = fl_code_run(&p->code, &p->err);
}

static void code_done(void *arg)
{
    struct fl_delivery *p = arg;
    const struct fl_jobs *jobs = p->owner->jobs;

    if (p->sm.state == DELIVERY_GIVEN_UP || fl_session_shell_stopped(jobs->shell)) {
        delivery_free(p);
    } else if (p->error == FL_OK) {
        start_push(p);
    } else {
        fl_log_peer(jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "encoding the update of round %llu failed: %s",
                    (unsigned long long)p->key.round, fl_err_text(&p->err, p->error));
        delivery_fail(p, p->error, &p->err);
    }
}

static void start_coding(struct fl_delivery *p)
{
    int rv;

    fl_sm_move(&p->sm, DELIVERY_CODING);
    rv = fl_jobs_submit(p->owner->jobs, code_work, code_done, p);
    if (rv != FL_OK) {
        delivery_fail(p, rv, &(struct fl_err){0});
    }
}

static bool delivery_on_status(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_delivery *p = ctx;
    struct fl_wire_push_status status;
    struct fl_err err = {0};

    if (fl_wire_push_status_reply_decode(data, len, &status, &err) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    p->answer = status.accepted ? ANSWER_ACCEPTED : ANSWER_INCOMPLETE;
    p->received = status.received;
    return true;
}

static void on_status_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct fl_delivery *p = ctx;

    (void)call;
    p->call = NULL;
    if (p->sm.state == DELIVERY_GIVEN_UP) {
        delivery_free(p);
    } else if (status == FL_GRPC_OK && p->answer == ANSWER_INCOMPLETE) {
        start_coding(p);
    } else {
        p->owner->newest = NULL;
        report_end(p, status, message);
        delivery_free(p);
    }
}

static const struct fl_call_handler status_handler = {.on_message = delivery_on_status,
                                                      .on_closed = on_status_closed};

static int ask_status(struct fl_delivery *p)
{
    struct fl_wire_push_status status = {.session = fl_connection_token(p->owner->connection),
                                         .round = p->key.round,
                                         .attempt = p->key.attempt};
    struct fl_piece piece;
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 4096);
    rv = fl_wire_push_status_request_encode(&status, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_connection_call(p->owner->connection, "/fl.v1.Federation/PushStatus", STATUS_TIMEOUT_MS,
                            &status_handler, p, &p->call);
    if (rv != FL_OK) {
        goto done;
    }
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    if (fl_call_send(p->call, &piece, 1) != FL_OK) {
        fl_call_cancel(p->call); /* on_status_closed() reports it to the session. */
    }
    fl_call_end(p->call);
done:
    fl_buf_done(&buf);
    return rv;
}

int fl_deliveries_begin(struct fl_deliveries *d, struct fl_round_key key, const uint8_t *units,
                        size_t n_units)
{
    struct fl_delivery *p;
    int rv;

    fl_deliveries_cancel(d);
    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return FL_ENOMEM;
    }
    p->owner = d;
    p->key = key;
    fl_sm_init(&p->sm, delivery_states, DELIVERY_STATES, DELIVERY_ASKING);
    rv = fl_code_begin(&p->code, d->worker, d->pending->result, units, n_units);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = ask_status(p);
    if (rv != FL_OK) {
        goto fail;
    }
    d->newest = p;
    return FL_OK;
fail:
    delivery_free(p);
    return rv;
}

void fl_deliveries_cancel(struct fl_deliveries *d)
{
    struct fl_delivery *p = d->newest;

    if (p == NULL) {
        return;
    }
    d->newest = NULL;
    /* on_push_closed(), on_status_closed() or code_done() frees it. */
    fl_sm_move(&p->sm, DELIVERY_GIVEN_UP);
    if (p->call != NULL) {
        fl_call_cancel(p->call);
    }
}
