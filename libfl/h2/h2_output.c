/*
 * Sending, on the loop of the session. Every stream's data waits inside nghttp2 (deferred) until
 * the scheduler here grants it one DATA frame: calls with little queued first, then the others in
 * turn. A frame's payload is never copied: references to the queued pieces move into `out`. Does
 * not write to the socket.
 *
 * `out` is bounded, so that the next stream is chosen late, when the socket can take its frame;
 * nghttp2 makes no frames while `out` is full, so answers to a peer that does not read are bounded
 * by nghttp2's own limits.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/h2/h2_session_impl.h"

/* A call with less than this queued is served before bulk data (the contract in h2.h). */
#define FL_SMALL_BYTES ((size_t)64 * 1024)
/* After this many small frames a bulk call gets one frame, so that no call starves. */
#define FL_SMALL_RUN 32
/* Frames that may wait for the socket before no more are granted. */
#define FL_OUT_FRAMES 2
/* Frames smaller than half of this would cost more than they gain. */
#define FL_PACING_MIN ((size_t)8 * 1024)
/* Copied bytes (frame headers, HEADERS and similar) are stored in pages of this size. */
#define FL_PAGE_BYTES ((size_t)4 * 1024)

static void drop_page(struct fl_h2 *h2)
{
    fl_blob_unref(h2->page);
    h2->page = NULL;
    h2->page_left = 0;
}

static int out_copy(struct fl_h2 *h2, const uint8_t *data, size_t len)
{
    int rv = fl_segq_reserve(&h2->out, 1);

    if (rv != FL_OK) {
        return rv;
    }
    if (len > h2->page_left) {
        size_t size = len > FL_PAGE_BYTES ? len : FL_PAGE_BYTES;
        uint8_t *bytes = malloc(size);
        struct fl_blob *page = NULL;

        /* The unused rest of the page may be filled: the blob only provides its reference count. */
        if (bytes == NULL) {
            return FL_ENOMEM;
        }
        if (fl_blob_wrap(bytes, size, free, bytes, &page) != FL_OK) {
            free(bytes);
            return FL_ENOMEM;
        }
        drop_page(h2);
        h2->page = page;
        h2->page_next = bytes;
        h2->page_left = size;
    }
    (void)memcpy(h2->page_next, data, len);
    fl_segq_push(&h2->out, h2->page_next, len, h2->page, 0);
    h2->page_next += len;
    h2->page_left -= len;
    return FL_OK;
}

void fl__h2_output_done(struct fl_h2 *h2)
{
    fl_segq_done(&h2->out);
    drop_page(h2);
}

static bool out_full(const struct fl_h2 *h2)
{
    return h2->out.bytes >= h2->pace;
}

void fl_h2_set_pacing(struct fl_h2 *h2, size_t bytes)
{
    size_t most = (size_t)h2->conn.limits.frame_bytes * FL_OUT_FRAMES;

    bytes = bytes < most ? bytes : most;
    h2->pace = bytes > FL_PACING_MIN ? bytes : FL_PACING_MIN;
}

/* Large frames for bulk data; small calls never make nghttp2's frame buffer grow. */
static ssize_t on_read_length(nghttp2_session *session, uint8_t type, int32_t id,
                              int32_t session_window, int32_t stream_window, uint32_t remote_max,
                              void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, id);
    size_t n = h2->pace / FL_OUT_FRAMES;
    size_t queued = s != NULL ? fl_call_out_bytes(s->call) : 0;
    const struct fl__bulk *bulk = s != NULL ? fl__h2_bulk_sends(s) : NULL;

    (void)session;
    (void)type;
    n = n < remote_max ? n : remote_max;
    if (n > queued) {
        n = queued > FL_H2_FRAME_MIN ? queued : FL_H2_FRAME_MIN;
    }
    n = bulk != NULL && bulk->ready > 0 && bulk->ready < n ? (size_t)bulk->ready : n;
    n = session_window > 0 && (size_t)session_window < n ? (size_t)session_window : n;
    n = stream_window > 0 && (size_t)stream_window < n ? (size_t)stream_window : n;
    return (ssize_t)n;
}

ssize_t fl__h2_read_cb(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length,
                       uint32_t *data_flags, nghttp2_data_source *source, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, id);
    size_t queued;
    size_t n;
    bool end;

    (void)session;
    (void)buf;
    (void)source;
    if (s == NULL) {
        return NGHTTP2_ERR_DEFERRED;
    }
    queued = fl_call_out_bytes(s->call);
    end = fl_call_out_end(s->call);
    if (!s->granted || (queued == 0 && !end)) {
        s->granted = false;
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    s->granted = false;
    n = queued < length ? queued : length;
    if (n == queued) {
        fl_list_remove(&s->ready);
        if (end) {
            *data_flags |= NGHTTP2_DATA_FLAG_EOF;
        }
    }
    if (n == queued && end && h2->server) {
        const char *message = NULL;
        enum fl_grpc_status status = fl_call_out_status(s->call, &message);

        /* The earliest moment at which nghttp2 accepts trailers. */
        *data_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (fl__h2_submit_status(h2, s, 200, status, message) != FL_OK) {
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    }
    if (n > 0) {
        *data_flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    }
    return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *framehd,
                        size_t length, nghttp2_data_source *source, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = fl__h2_stream_get(h2, frame->hd.stream_id);
    int rv;

    (void)session;
    (void)source;
    if (s == NULL) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    rv = out_copy(h2, framehd, FL_H2_FRAME_HEAD);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_call_out_take(s->call, &h2->out, length, (uint32_t)s->id);
    if (rv != FL_OK) {
        goto fail;
    }
    fl__h2_bulk_sent(s, length);
    return 0;
fail:
    (void)fl__h2_fail(h2, rv);
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct fl_h2 *h2 = user_data;
    int32_t id = frame->hd.stream_id;
    struct h2_stream *s;

    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        /* nghttp2 has terminated the connection. */
        (void)fl__h2_fail(h2, FL_EPROTO);
        return 0;
    }
    if (!h2->server && frame->hd.type == NGHTTP2_HEADERS) {
        s = fl__h2_stream_get(h2, id);
        return s == NULL || fl__h2_bulk_opened(s) == FL_OK ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (!h2->server || frame->hd.type != NGHTTP2_HEADERS ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
    {
        return 0;
    }
    s = fl__h2_stream_get(h2, id);
    if (s != NULL) {
        fl_call_out_status_sent(s->call);
    }
    if (nghttp2_session_get_stream_remote_close(session, id) == 0) {
        /* The reply is complete and the client still sends: tell it to stop. */
        (void)fl__h2_check(
            h2, nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR));
    }
    return 0;
}

/* Only a request that the server's GOAWAY has overtaken fails here. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int lib_error,
                             void *user_data)
{
    struct fl_h2 *h2 = user_data;
    struct h2_stream *s = NULL;

    (void)session;
    (void)lib_error;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        s = fl__h2_stream_get(h2, frame->hd.stream_id);
    }
    if (s != NULL) {
        fl_call_closed(s->call, FL_GRPC_UNAVAILABLE, "the server accepts no new calls");
    }
    return 0;
}

static bool can_send(struct fl_h2 *h2, const struct h2_stream *s)
{
    if (!s->attached) {
        return false;
    }
    if (fl_call_out_bytes(s->call) == 0) {
        /* A status needs no window, so it does not wait until nghttp2 asks for data. */
        return fl_call_out_end(s->call) && (h2->server ? s->submitted : s->deferred);
    }
    return s->deferred && fl__h2_bulk_may_send(s) &&
           nghttp2_session_get_remote_window_size(h2->session) > 0 &&
           nghttp2_session_get_stream_remote_window_size(h2->session, s->id) > 0;
}

/* The next stream to send a frame: the first small one, else the first of all. */
static struct h2_stream *pick_stream(struct fl_h2 *h2)
{
    struct h2_stream *bulk = NULL;
    struct h2_stream *small = NULL;
    struct h2_stream *s;

    FL_LIST_FOREACH (s, &h2->ready, struct h2_stream, ready) {
        if (!can_send(h2, s)) {
            continue;
        }
        if (fl_call_out_bytes(s->call) < FL_SMALL_BYTES) {
            small = small != NULL ? small : s;
        } else {
            bulk = bulk != NULL ? bulk : s;
        }
    }
    if (small != NULL && (bulk == NULL || h2->small_run < FL_SMALL_RUN)) {
        h2->small_run++;
        return small;
    }
    h2->small_run = 0;
    return bulk;
}

/* Lets the stream send: a frame of data, or its status when nothing else is left. */
static int grant_frame(struct fl_h2 *h2, struct h2_stream *s)
{
    fl_list_remove(&s->ready);
    if (h2->server && fl_call_out_bytes(s->call) == 0) {
        const char *message = NULL;
        enum fl_grpc_status status = fl_call_out_status(s->call, &message);

        /* Directly: as stream data it would wait for a window that it does not need. */
        s->deferred = false;
        return fl__h2_submit_status(h2, s, 200, status, message);
    }
    fl_list_append(&h2->ready, &s->ready);
    s->deferred = false;
    s->granted = true;
    return fl__h2_check(h2, nghttp2_session_resume_data(h2->session, s->id));
}

/* Takes all frames that nghttp2 has to send. */
static int drain_nghttp2(struct fl_h2 *h2)
{
    while (h2->code == FL_OK && !out_full(h2)) {
        const uint8_t *data = NULL;
        ssize_t n = nghttp2_session_mem_send(h2->session, &data);
        int rv;

        if (n == 0) {
            break;
        }
        if (n < 0) {
            return fl__h2_check(h2, (int)n);
        }
        rv = out_copy(h2, data, (size_t)n);
        if (rv != FL_OK) {
            return fl__h2_fail(h2, rv);
        }
    }
    return h2->code;
}

void fl__h2_pump(struct fl_h2 *h2, bool data)
{
    struct h2_stream *s;

    h2->depth++;
    while (drain_nghttp2(h2) == FL_OK && data && !out_full(h2)) {
        s = pick_stream(h2);
        if (s == NULL || grant_frame(h2, s) != FL_OK) {
            break;
        }
    }
    h2->depth--;
}

int fl_h2_output(struct fl_h2 *h2, struct iovec *iov, int max)
{
    int n = 0;

    FL_REQUIRE(h2->depth == 0);
    h2->woken_output = false;
    if (h2->code == FL_OK) {
        fl__h2_pump(h2, /* data= */ true);
    }
    while (n < max && (size_t)n < h2->out.n) {
        const struct fl_seg *seg = fl_segq_at(&h2->out, (size_t)n);

        iov[n].iov_base = (void *)(uintptr_t)seg->data;
        iov[n].iov_len = seg->len;
        n++;
    }
    /* A failed connection still sends its final frames. */
    if (n == 0 && h2->code != FL_OK) {
        return h2->code;
    }
    return n;
}

void fl_h2_sent(struct fl_h2 *h2, size_t n)
{
    FL_REQUIRE(n <= h2->out.bytes);
    while (n > 0) {
        uint32_t tag = 0;
        size_t done = fl_segq_drop_front(&h2->out, n, &tag);
        struct h2_stream *s = NULL;

        n -= done;
        if (tag != 0 && h2->code == FL_OK) {
            s = fl__h2_stream_get(h2, (int32_t)tag);
        }
        if (s != NULL) {
            fl_call_out_sent(s->call, done);
        }
    }
    if (h2->out.n == 0) {
        /* An idle connection holds no memory for sending. */
        fl_segq_clear(&h2->out);
        drop_page(h2);
    }
}

void fl__h2_set_output_callbacks(nghttp2_session_callbacks *cbs)
{
    nghttp2_session_callbacks_set_data_source_read_length_callback(cbs, on_read_length);
    nghttp2_session_callbacks_set_send_data_callback(cbs, on_send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(cbs, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cbs, on_frame_not_send);
}
