/*
 * The receiving half of a call: header blocks, messages, ends. Runs on the loop of its connection,
 * from the transport's receive step. Does not send and keeps no timers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/rpc/call_impl.h"

/* A header block more than four times over the limit is abuse: close the connection. */
#define FL_HEADERS_HOPELESS 4

/* Message memory up to this size is kept for the next message. */
#define FL_MSG_KEEP ((size_t)64 * 1024)

struct text {
    const char *p;
    size_t len;
};

static bool text_is(struct text t, const char *want)
{
    return t.len == strlen(want) && memcmp(t.p, want, t.len) == 0;
}

static int request_header(struct fl_call *call, struct text name, struct text value)
{
    int rv;

    if (text_is(name, ":method")) {
        call->peer.is_post = text_is(value, "POST");
        return FL_OK;
    }
    if (text_is(name, ":path")) {
        rv = fl_call_charge(call, value.len + 1);
        if (rv != FL_OK) {
            return rv;
        }
        free(call->path);
        call->path = malloc(value.len + 1);
        if (call->path == NULL) {
            return FL_ENOMEM;
        }
        (void)memcpy(call->path, value.p, value.len);
        call->path[value.len] = '\0';
        return FL_OK;
    }
    if (name.len > 0 && name.p[0] == ':') {
        return FL_OK;
    }
    if (text_is(name, "content-type")) {
        call->peer.grpc_type = fl_grpc_content_type_ok(value.p, value.len);
    } else if (text_is(name, "te")) {
        call->peer.te_trailers = text_is(value, "trailers");
    } else if (text_is(name, "grpc-timeout")) {
        call->has_timeout = true;
        call->peer.bad_timeout =
            fl_grpc_timeout_parse(value.p, value.len, &call->timeout_ms) != FL_OK;
    }
    return FL_OK; /* Nobody reads other metadata, so it is not kept. */
}

static int response_header(struct fl_call *call, struct text name, struct text value)
{
    if (text_is(name, ":status")) {
        unsigned n = 0;
        size_t i;

        for (i = 0; i < value.len && i < 3; i++) {
            n = n * 10 +
                (value.p[i] >= '0' && value.p[i] <= '9' ? (unsigned)(value.p[i] - '0') : 0);
        }
        call->peer.http_status = n;
    } else if (text_is(name, "content-type")) {
        call->peer.grpc_type = fl_grpc_content_type_ok(value.p, value.len);
    } else if (text_is(name, "grpc-status")) {
        call->peer.have_status = true;
        call->peer.status = fl_grpc_status_parse(value.p, value.len);
    } else if (text_is(name, "grpc-message")) {
        free(call->peer.message);
        call->peer.message = fl_grpc_message_decode(value.p, value.len);
        return call->peer.message != NULL ? FL_OK : FL_ENOMEM;
    }
    return FL_OK;
}

int fl_call_recv_header(struct fl_call *call, const void *name, size_t name_len, const void *value,
                        size_t value_len)
{
    size_t limit = call->conn->limits.header_bytes;
    struct text n = {.p = name, .len = name_len};
    struct text v = {.p = value, .len = value_len};

    call->peer.bytes += name_len + value_len + FL_HEADER_OVERHEAD;
    if (call->peer.bytes > limit) {
        call->peer.oversized = true;
        return call->peer.bytes / FL_HEADERS_HOPELESS > limit ? FL_ELIMIT : FL_OK;
    }
    return call->server && call->sm.state == FL_CALL_HEADERS ? request_header(call, n, v)
           : call->server                                    ? FL_OK
                                                             : response_header(call, n, v);
}

enum fl_grpc_status fl_call_check_request(struct fl_call *call, unsigned *ret_http, char *text,
                                          size_t size)
{
    const struct fl_call_peer_headers *peer = &call->peer;

    *ret_http = 200;
    if (peer->oversized) {
        (void)snprintf(text, size, "the request's headers exceed %u bytes",
                       (unsigned)call->conn->limits.header_bytes);
        return FL_GRPC_RESOURCE_EXHAUSTED;
    }
    /* Peers that do not speak gRPC at all understand the HTTP status. */
    if (!peer->is_post) {
        *ret_http = 405;
        (void)snprintf(text, size, "the method must be POST");
        return FL_GRPC_INTERNAL;
    }
    if (!peer->grpc_type) {
        *ret_http = 415;
        (void)snprintf(text, size, "the content type must be " FL_GRPC_CONTENT_TYPE);
        return FL_GRPC_INTERNAL;
    }
    if (!peer->te_trailers) {
        *ret_http = 400;
        (void)snprintf(text, size, "'te: trailers' is missing; a proxy may have removed it");
        return FL_GRPC_INTERNAL;
    }
    if (peer->bad_timeout) {
        (void)snprintf(text, size, "grpc-timeout must be one to eight digits and a unit");
        return FL_GRPC_INTERNAL;
    }
    return FL_GRPC_OK;
}

void fl_call_start(struct fl_call *call, const struct fl_rpc_method *method)
{
    fl_sm_move(&call->sm, FL_CALL_OPEN);
    call->counted = true;
    fl_account_count_call(&call->conn->account, true);
    method->start(call, method->ctx);
    /* A method either sets a handler or ends its call. */
    FL_REQUIRE(call->handler != NULL || call->sm.state != FL_CALL_OPEN);
}

void fl_call_recv_response(struct fl_call *call, bool end)
{
    struct fl_call_peer_headers *peer = &call->peer;

    if (call->sm.state != FL_CALL_OPEN) {
        return;
    }
    if (!peer->responded && peer->http_status >= 100 && peer->http_status < 200 && !end) {
        free(peer->message);
        *peer = (struct fl_call_peer_headers){0};
        return;
    }
    if (peer->oversized) {
        fl__call_fail(call, FL_GRPC_RESOURCE_EXHAUSTED, "the reply's headers exceed %u bytes",
                      (unsigned)call->conn->limits.header_bytes);
        return;
    }
    if (!peer->responded) {
        peer->responded = true;
        peer->bytes = 0; /* the trailers have their own limit */
        if (!peer->have_status && peer->http_status != 200) {
            fl__call_fail(call, fl_grpc_status_from_http(peer->http_status),
                          "the server answered with HTTP status %u", peer->http_status);
            return;
        }
        if (!peer->have_status && !peer->grpc_type) {
            fl__call_fail(call, FL_GRPC_UNKNOWN, "the server's answer is not gRPC");
            return;
        }
    }
    if (end) {
        fl_call_recv_end(call);
    }
}

/* Prepares for the message that the prefix announced; false: the call has failed. */
static bool begin_message(struct fl_call *call)
{
    size_t limit = call->conn->limits.message_bytes;

    call->msg_len = 0;
    call->direct = NULL;
    if (call->frame.flags == 1) {
        fl__call_fail(call, FL_GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        return false;
    }
    if (call->frame.flags != 0) {
        fl__call_fail(call, FL_GRPC_INTERNAL, "unknown message flags %u", call->frame.flags);
        return false;
    }
    if (call->frame.len > limit) {
        fl__call_fail(call, FL_GRPC_RESOURCE_EXHAUSTED,
                      "message too large: %lu bytes exceed the limit of %zu",
                      (unsigned long)call->frame.len, limit);
        return false;
    }
    return true;
}

/* Provides `want` bytes of memory; the received part of the message stays. */
static bool grow_message(struct fl_call *call, size_t want)
{
    size_t more = want - call->msg_cap;
    int rv = fl_account_take(&call->conn->account, more);
    uint8_t *msg;

    if (rv != FL_OK) {
        fl__call_over(call, rv, "an unfinished message");
        return false;
    }
    msg = realloc(call->msg, want);
    if (msg == NULL) {
        fl_account_give(&call->conn->account, more);
        fl__call_fail(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory for a message");
        return false;
    }
    call->msg = msg;
    call->msg_cap = want;
    return true;
}

/*
 * Provides memory for the next `len` bytes of a message that arrives in parts: that of the whole
 * message, but little while it has only begun. A window ends a short way into a message, so every
 * sender that waits for credit has begun one: many such senders would each cost a whole message
 * without data.
 */
static bool reserve_message(struct fl_call *call, size_t len)
{
    size_t all = call->frame.len;
    size_t want = all > FL_CALL_BEGUN && call->msg_len + len <= FL_CALL_BEGUN ? FL_CALL_BEGUN : all;

    if (call->msg_len == 0 &&
        (call->msg_cap < want || (call->msg_cap > FL_MSG_KEEP && call->msg_cap / 4 > all)))
    {
        free(call->msg);
        fl_account_give(&call->conn->account, call->msg_cap);
        call->msg = NULL;
        call->msg_cap = 0;
    }
    return call->msg_cap >= want || grow_message(call, want);
}

static void add_body(struct fl_call *call, const uint8_t *data, size_t len)
{
    if (call->msg_len == 0 && len == call->frame.len) {
        call->direct = data;
        call->msg_len = len;
        return;
    }
    if (!reserve_message(call, len)) {
        return;
    }
    (void)memcpy(call->msg + call->msg_len, data, len);
    call->msg_len += len;
}

/* Passes the message to its handler; returns the stream credit that is free at once. */
static size_t deliver_message(struct fl_call *call)
{
    static const uint8_t nothing[1];
    size_t len = call->msg_len;
    size_t keep;
    bool dealt;

    if (len == 0) {
        call->direct = nothing;
    }
    call->early = 0;
    call->in_message = true;
    dealt = call->handler == NULL ||
            call->handler->on_message(call, call->ctx,
                                      call->direct != NULL ? call->direct : call->msg, len);
    call->in_message = false;
    call->direct = NULL;
    if (dealt || call->early >= len) {
        return len;
    }
    keep = len - call->early;
    call->held += keep;
    fl_account_add(&call->conn->account, keep);
    call->conn->ops->hold(call->stream, keep);
    return len - keep;
}

void fl_call_recv_data(struct fl_call *call, const uint8_t *data, size_t len)
{
    size_t window = 0;
    size_t off = 0;
    bool more = true;

    call->received += len;
    /* A peer that sends but does not read makes no progress. */
    call->progressed = call->progressed || (len > 0 && call->queued == 0);
    while (more && call->sm.state == FL_CALL_OPEN) {
        size_t used = 0;

        switch (fl_frame_next(&call->frame, data + off, len - off, &used)) {
        case FL_FRAME_MORE:
            window += used;
            more = false;
            break;
        case FL_FRAME_HEAD:
            window += used;
            (void)begin_message(call);
            break;
        case FL_FRAME_BODY:
            add_body(call, data + off, used);
            break;
        case FL_FRAME_END:
            window += deliver_message(call);
            break;
        }
        off += used;
    }
    /* Bytes that arrive after our side has ended are dropped and cost no credit. */
    window += len - off;
    call->conn->ops->credit(call->stream, len, window);
}

static void client_end(struct fl_call *call)
{
    struct fl_call_peer_headers *peer = &call->peer;
    enum fl_grpc_status status = peer->have_status ? peer->status : FL_GRPC_UNKNOWN;
    const char *text = peer->have_status ? "" : "the server ended the call without a status";

    if (peer->have_status && peer->message != NULL) {
        text = peer->message;
    }
    if (status == FL_GRPC_OK && !fl_frame_at_boundary(&call->frame)) {
        status = FL_GRPC_INTERNAL;
        text = "the server's last message is incomplete";
    }
    if (call->handler != NULL && call->handler->on_end != NULL) {
        call->handler->on_end(call, call->ctx);
    }
    if (call->sm.state != FL_CALL_OPEN) {
        return;
    }
    if (!call->local_end || call->out.bytes > 0) {
        /* The client has ended: it does not read what is still queued. */
        call->conn->ops->reset(call->stream, /* cancel= */ false);
    }
    fl__call_close(call, status, text);
}

void fl_call_recv_end(struct fl_call *call)
{
    if (call->remote_end || call->sm.state != FL_CALL_OPEN) {
        return;
    }
    call->remote_end = true;
    call->progressed = true;
    if (!call->server) {
        client_end(call);
        return;
    }
    if (!fl_frame_at_boundary(&call->frame)) {
        fl__call_fail(call, FL_GRPC_INTERNAL, "the last message is incomplete");
        return;
    }
    if (call->handler != NULL && call->handler->on_end != NULL) {
        call->handler->on_end(call, call->ctx);
    }
}

void fl_call_closed(struct fl_call *call, enum fl_grpc_status status, const char *text)
{
    fl__call_close(call, status, text);
}

size_t fl_call_held(const struct fl_call *call)
{
    return call->held;
}
