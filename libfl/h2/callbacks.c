/*
 * nghttp2's callbacks for received frames. Every callback here runs inside fl_h2_recv() on the loop
 * of the session, except on_stream_close and on_frame_send, which sending causes too. Output is
 * chosen in h2_output.c.
 */
#include <string.h>

#include "libfl/h2/h2_session_impl.h"

/* A frame or header ended the connection: the reason is what fl__h2_fail() recorded. */
static int callback_result(int code)
{
    if (code != FL_OK) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = NULL;
    int rv;

    if (!h2->server || frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    rv = fl__h2_stream_create(h2, NULL, &s);
    if (rv != FL_OK) {
        return callback_result(fl__h2_fail(h2, rv));
    }
    s->id = frame->hd.stream_id;
    s->attached = true;
    rv = nghttp2_session_set_stream_user_data(session, s->id, s);
    return rv == 0 ? 0 : callback_result(fl__h2_fail(h2, FL_ENOMEM));
}

static int on_header_field(nghttp2_session *session, const nghttp2_frame *frame,
                           const uint8_t *name, size_t name_len, const uint8_t *value,
                           size_t value_len, uint8_t flags, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, frame->hd.stream_id);
    int rv;

    (void)session;
    (void)flags;
    if (s == NULL || frame->hd.type != NGHTTP2_HEADERS) {
        return 0;
    }
    rv = fl_call_recv_header(s->call, name, name_len, value, value_len);
    if (rv != FL_OK) {
        return callback_result(fl__h2_fail(h2, rv));
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, id);

    (void)flags;
    if (s != NULL) {
        fl_call_recv_data(s->call, data, len);
        return callback_result(h2->code);
    }
    /* The stream has ended: its credit is returned at once. */
    return callback_result(fl__h2_check(h2, nghttp2_session_consume(session, id, len)));
}

static int on_headers(struct fl_h2 *h2, const nghttp2_frame *frame, bool end)
{
    struct h2_stream *s = fl__h2_stream_get(h2, frame->hd.stream_id);

    if (s == NULL) {
        return FL_OK;
    }
    if (!h2->server) {
        fl_call_recv_response(s->call, end);
    } else if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        return fl__h2_server_request(h2, s, end);
    } else if (end) {
        fl_call_recv_end(s->call);
    }
    return h2->code;
}

/* The ping after the notice has come back: all frames that the peer sent before have arrived. */
static int on_drain_ping(struct fl_h2 *h2)
{
    if (h2->drain != FL_H2_NOTICED) {
        return FL_OK;
    }
    h2->drain = FL_H2_DRAINED;
    h2->going_away = true;
    return fl__h2_check(h2,
                        nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                                              nghttp2_session_get_last_proc_stream_id(h2->session),
                                              NGHTTP2_NO_ERROR, NULL, 0));
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    bool ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    struct h2_stream *s;
    int rv;

    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        return callback_result(on_headers(h2, frame, end));
    case NGHTTP2_DATA:
        s = fl__h2_stream_get(h2, frame->hd.stream_id);
        if (end && s != NULL) {
            fl_call_recv_end(s->call);
        }
        return callback_result(!end && frame->hd.length == 0 ? fl__h2_count_idle(h2) : h2->code);
    case NGHTTP2_RST_STREAM:
        /* Only calls that still run count: a client may reset a call that was answered. */
        s = fl__h2_stream_get(h2, frame->hd.stream_id);
        return callback_result(h2->server && s != NULL ? fl__h2_count_reset(h2) : FL_OK);
    case NGHTTP2_SETTINGS:
        if (ack) {
            return 0;
        }
        rv = h2->settings_received ? fl__h2_count_idle(h2) : FL_OK;
        h2->settings_received = true;
        return callback_result(rv);
    case NGHTTP2_PING:
        return callback_result(ack ? on_drain_ping(h2) : fl__h2_count_idle(h2));
    case NGHTTP2_GOAWAY:
        h2->going_away = true;
        return 0;
    case NGHTTP2_PRIORITY:
        return callback_result(fl__h2_count_idle(h2));
    default:
        return 0;
    }
}

/* nghttp2 answers this frame with RST_STREAM, which costs as much work as a reset by the peer. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int lib_error,
                            void *user_data)
{
    struct fl_h2 *h2 = user_data;

    (void)session;
    (void)frame;
    (void)lib_error;
    return callback_result(h2->server ? fl__h2_count_reset(h2) : FL_OK);
}

/* What a reset by the server means (gRPC over HTTP/2, "HTTP2 Transport Mapping: Errors"). */
static enum fl_grpc_status status_of_reset(uint32_t error_code)
{
    switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
        return FL_GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return FL_GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return FL_GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return FL_GRPC_PERMISSION_DENIED;
    case NGHTTP2_STREAM_CLOSED:
    case NGHTTP2_HTTP_1_1_REQUIRED:
        return FL_GRPC_UNKNOWN;
    default:
        return FL_GRPC_INTERNAL;
    }
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error_code,
                           void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, id);

    (void)session;
    if (s == NULL) {
        return 0;
    }
    s->attached = false;
    fl_list_remove(&s->ready);
    if (h2->server) {
        fl_call_closed(s->call, FL_GRPC_CANCELLED, "the client has reset the call");
    } else {
        fl_call_closed(s->call, status_of_reset(error_code), nghttp2_http2_strerror(error_code));
    }
    return 0;
}

void fl__h2_set_callbacks(nghttp2_session_callbacks *cbs)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cbs, on_header_field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cbs, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_stream_close);
}
