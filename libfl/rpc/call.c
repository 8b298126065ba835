/*
 * The life cycle of a call: creation, status and outcome, cancelling, time limits, delivery of
 * callbacks. Runs on the loop of its connection. Receiving is in call_recv.c, the send queue in
 * call_send.c; the wire format of HTTP/2 is libfl/h2's.
 */
#include "libfl/rpc/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/rpc/call_impl.h"

static const struct fl_sm_state call_states[] = {
    [FL_CALL_HEADERS] = {"headers", FL_SM_TO(FL_CALL_OPEN) | FL_SM_TO(FL_CALL_CLOSED)},
    [FL_CALL_OPEN] = {"open", FL_SM_TO(FL_CALL_ENDING) | FL_SM_TO(FL_CALL_CLOSED)},
    [FL_CALL_ENDING] = {"ending", FL_SM_TO(FL_CALL_CLOSED)},
    [FL_CALL_CLOSED] = {"closed", FL_SM_TO(FL_CALL_DONE)},
    [FL_CALL_DONE] = {"done", 0},
};

int fl_call_create(struct fl_rpc_conn *conn, void *stream, bool server, const char *path,
                   struct fl_call **ret)
{
    struct fl_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return FL_ENOMEM;
    }
    if (path != NULL) {
        call->path = fl_str_dup(path);
        if (call->path == NULL) {
            free(call);
            return FL_ENOMEM;
        }
    }
    call->server = server;
    call->conn = conn;
    call->stream = stream;
    call->queue_bytes = conn->limits.queue_bytes;
    fl_sm_init(&call->sm, call_states, sizeof(call_states) / sizeof(call_states[0]),
               server ? FL_CALL_HEADERS : FL_CALL_OPEN);
    call->magic = FL_CALL_MAGIC;
    *ret = call;
    return FL_OK;
}

/*
 * When the call closes, not when it is freed: a peer that keeps to the announced number of streams
 * begins the next call as soon as it has seen the end of this one.
 */
static void call_uncount(struct fl_call *call)
{
    if (call->counted) {
        call->counted = false;
        fl_account_count_call(&call->conn->account, false);
    }
}

void fl_call_free(struct fl_call *call)
{
    if (call == NULL) {
        return;
    }
    FL_REQUIRE(call->magic == FL_CALL_MAGIC);
    call->magic = 0;
    fl_account_give(&call->conn->account,
                    call->msg_cap + call->held + call->queue_cost + call->extra);
    if (call->vouched) {
        fl_account_vouch(&call->conn->account, false);
    }
    call_uncount(call);
    fl_segq_done(&call->out);
    free(call->msg);
    free(call->path);
    free(call->peer.message);
    free(call->status_message);
    free(call->outcome_text);
    free(call);
}

void fl__call_close(struct fl_call *call, enum fl_grpc_status status, const char *text)
{
    if (call->sm.state >= FL_CALL_CLOSED) {
        return;
    }
    fl_sm_move(&call->sm, FL_CALL_CLOSED);
    call_uncount(call);
    call->outcome = status;
    call->outcome_text = fl_str_dup(text); /* out of memory: no text */
    fl_segq_clear(&call->out);
    call->conn->ops->due(call->stream);
}

void fl__call_fail(struct fl_call *call, enum fl_grpc_status status, const char *fmt, ...)
{
    char text[256];
    char *encoded;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (call->sm.state >= FL_CALL_CLOSED) {
        return;
    }
    if (call->server) {
        encoded = fl_grpc_message_encode(text);
        call->conn->ops->reject(call->stream, status, encoded);
        free(encoded);
    } else {
        call->conn->ops->reset(call->stream, /* cancel= */ true);
    }
    fl__call_close(call, status, text);
}

void fl__call_over(struct fl_call *call, int code, const char *what)
{
    char text[160];

    (void)snprintf(
        text, sizeof(text), "%s: %s", what,
        code == FL_ELIMIT
            ? "memory limit of this connection exceeded: too many unfinished or unread bytes"
            : "memory limit of all connections exceeded by unfinished or unread bytes");
    if (call->conn->notice != NULL) {
        call->conn->notice(call->conn->notice_ctx, call, what, text);
    }
    fl__call_fail(call, FL_GRPC_RESOURCE_EXHAUSTED, "%s", text);
}

int fl_call_charge(struct fl_call *call, size_t n)
{
    int rv = fl_account_take(&call->conn->account, n);

    if (rv != FL_OK) {
        return rv;
    }
    call->extra += n;
    return FL_OK;
}

void fl_call_discharge(struct fl_call *call, size_t n)
{
    FL_REQUIRE(n <= call->extra);
    call->extra -= n;
    fl_account_give(&call->conn->account, n);
}

void fl_call_vouch(struct fl_call *call, const char *name)
{
    if (!call->vouched) {
        if (name != NULL) {
            fl_account_join(&call->conn->account, name);
        }
        call->vouched = true;
        fl_account_vouch(&call->conn->account, true);
    }
}

void fl_call_set_patient(struct fl_call *call, bool patient)
{
    call->patient = patient;
    call->progressed = true;
}

void fl_call_set_bulk(struct fl_call *call, enum fl_call_bulk bulk)
{
    FL_REQUIRE(call->magic == FL_CALL_MAGIC && !call->server && call->queued == 0);
    call->bulk = bulk;
}

enum fl_call_bulk fl_call_bulk(const struct fl_call *call)
{
    return call->bulk;
}

void fl_call_set_handler(struct fl_call *call, const struct fl_call_handler *handler, void *ctx)
{
    call->handler = handler;
    call->ctx = ctx;
}

void fl_call_set_queue(struct fl_call *call, size_t bytes)
{
    FL_REQUIRE(call->magic == FL_CALL_MAGIC);
    if (bytes < call->queue_bytes) {
        call->queue_bytes = bytes;
    }
}

size_t fl_call_queued(const struct fl_call *call)
{
    return call->queued;
}

uint8_t *fl_call_take(struct fl_call *call)
{
    uint8_t *data;

    FL_REQUIRE(call->magic == FL_CALL_MAGIC && call->in_message);
    if (call->direct != NULL) {
        data = malloc(call->msg_len > 0 ? call->msg_len : 1);
        if (data != NULL && call->msg_len > 0) {
            (void)memcpy(data, call->direct, call->msg_len);
        }
        return data;
    }
    data = call->msg;
    fl_account_give(&call->conn->account, call->msg_cap);
    call->msg = NULL;
    call->msg_cap = 0;
    return data;
}

void fl_call_consume(struct fl_call *call, size_t n)
{
    size_t give = n < call->held ? n : call->held;

    FL_REQUIRE(call->magic == FL_CALL_MAGIC);
    if (call->in_message) {
        call->early += n - give;
    }
    if (give > 0) {
        call->held -= give;
        call->progressed = true;
        fl_account_give(&call->conn->account, give);
        call->conn->ops->release(call->stream, give);
    }
}

void fl_call_finish(struct fl_call *call, enum fl_grpc_status status, const char *message)
{
    FL_REQUIRE(call->magic == FL_CALL_MAGIC && call->server);
    if (call->sm.state != FL_CALL_OPEN) {
        return;
    }
    call->status = status;
    if (message != NULL && message[0] != '\0') {
        /* Out of memory: the status is sent without a message. */
        call->status_message = fl_grpc_message_encode(message);
    }
    call->progressed = call->progressed || call->queued == 0;
    fl_sm_move(&call->sm, FL_CALL_ENDING);
    call->conn->ops->output(call->stream);
}

void fl_call_end(struct fl_call *call)
{
    FL_REQUIRE(call->magic == FL_CALL_MAGIC && !call->server);
    if (call->sm.state != FL_CALL_OPEN || call->local_end) {
        return;
    }
    call->local_end = true;
    call->conn->ops->output(call->stream);
}

void fl_call_cancel(struct fl_call *call)
{
    FL_REQUIRE(call->magic == FL_CALL_MAGIC);
    if (call->sm.state >= FL_CALL_CLOSED) {
        return;
    }
    call->conn->ops->reset(call->stream, /* cancel= */ true);
    fl__call_close(call, FL_GRPC_CANCELLED, "cancelled locally");
}

const char *fl_call_peer(const struct fl_call *call)
{
    return call->conn->peer;
}

uint64_t fl_call_received(const struct fl_call *call)
{
    return call->received;
}

const char *fl_call_path(const struct fl_call *call)
{
    return call->path != NULL ? call->path : "";
}

bool fl_call_dispatch(struct fl_call *call)
{
    if (call->writable) {
        call->writable = false;
        if (call->sm.state == FL_CALL_OPEN && call->handler != NULL &&
            call->handler->on_writable != NULL) {
            call->handler->on_writable(call, call->ctx);
        }
    }
    if (call->sm.state == FL_CALL_CLOSED) {
        fl_sm_move(&call->sm, FL_CALL_DONE);
        if (call->handler != NULL) {
            call->handler->on_closed(call, call->ctx, call->outcome,
                                     call->outcome_text != NULL ? call->outcome_text : "");
        }
    }
    return call->sm.state == FL_CALL_DONE;
}

/* --- time --- */

/*
 * Time limits of a call: the client's timeout, and a peer that leaves its call waiting. The time is
 * known at ticks only, so a span is measured from the tick that saw bytes move.
 */

void fl_call_set_timeout(struct fl_call *call, uint64_t now_ms, uint64_t timeout_ms)
{
    call->has_timeout = true;
    call->anchored = true;
    call->deadline = timeout_ms > UINT64_MAX - 1 - now_ms ? UINT64_MAX - 1 : now_ms + timeout_ms;
}

/* Before the headers are complete, and once the outcome is known, no time limit applies. */
static bool is_live(const struct fl_call *call)
{
    return call->sm.state == FL_CALL_OPEN || call->sm.state == FL_CALL_ENDING;
}

static bool waits_for_peer(const struct fl_call *call)
{
    if (!call->server || call->conn->limits.idle_ms == 0) {
        return false;
    }
    return call->queued > 0 || call->sm.state == FL_CALL_ENDING ||
           (!call->patient && !call->remote_end && call->held == 0);
}

uint64_t fl_call_deadline(const struct fl_call *call)
{
    uint64_t deadline = UINT64_MAX;

    if (!is_live(call)) {
        return UINT64_MAX;
    }
    if (call->has_timeout) {
        deadline = call->anchored ? call->deadline : 0;
    }
    /* Progress since then is checked when that time has come: not every byte needs a tick. */
    if (waits_for_peer(call) && call->idle_at < deadline) {
        deadline = call->idle_at;
    }
    return deadline;
}

static void end_idle(struct fl_call *call)
{
    bool silent = call->queued == 0 && call->sm.state == FL_CALL_OPEN;
    char text[80];

    (void)snprintf(text, sizeof(text), "timed out: the client %s for %u ms",
                   silent ? "has sent nothing" : "has taken nothing of what is sent",
                   (unsigned)call->conn->limits.idle_ms);
    if (call->conn->notice != NULL) {
        call->conn->notice(call->conn->notice_ctx, call, silent ? "silent" : "unread", text);
    }
    if (silent) {
        fl__call_fail(call, FL_GRPC_DEADLINE_EXCEEDED, "%s", text);
        return;
    }
    /* A status would only wait behind the bytes that the peer does not take. */
    call->conn->ops->reset(call->stream, /* cancel= */ true);
    fl__call_close(call, FL_GRPC_DEADLINE_EXCEEDED, text);
}

void fl_call_tick(struct fl_call *call, uint64_t now_ms)
{
    if (!is_live(call)) {
        return;
    }
    if (!waits_for_peer(call)) {
        call->idle_at = 0;
    } else if (call->idle_at == 0 || call->progressed) {
        call->idle_at = now_ms + call->conn->limits.idle_ms;
    } else if (now_ms >= call->idle_at) {
        end_idle(call);
    }
    call->progressed = false;
    if (!call->has_timeout || !is_live(call)) {
        return;
    }
    if (!call->anchored) {
        fl_call_set_timeout(call, now_ms, call->timeout_ms);
    }
    if (now_ms >= call->deadline) {
        fl__call_fail(call, FL_GRPC_DEADLINE_EXCEEDED, "deadline exceeded");
    }
}
