#include "tests/lib/rawpeer.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_HEADERS 32

FL_PRINTF(2, 3) static void note(struct rawpeer *raw, const char *fmt, ...)
{
    size_t n = strlen(raw->trace);
    va_list ap;

    if (n > 0 && n + 2 < RAWPEER_TRACE) {
        raw->trace[n++] = ' ';
        raw->trace[n] = '\0';
    }
    va_start(ap, fmt);
    (void)vsnprintf(raw->trace + n, RAWPEER_TRACE - n, fmt, ap);
    va_end(ap);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct rawpeer *raw = user_data;

    (void)session;
    raw->last_stream = frame->hd.stream_id;
    raw->request[0] = '\0';
    if (raw->server) {
        note(raw, "H");
    } else if (frame->headers.cat != NGHTTP2_HCAT_RESPONSE) {
        note(raw, "T");
    }
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user_data)
{
    struct rawpeer *raw = user_data;
    const char *n = (const char *)name;
    size_t at = strlen(raw->request);

    (void)session;
    (void)frame;
    (void)flags;
    (void)snprintf(raw->request + at, RAWPEER_TRACE - at, "%.*s: %.*s\n", (int)name_len, n,
                   (int)value_len, (const char *)value);
    if (strcmp(n, ":status") == 0) {
        note(raw, "H%.*s", (int)value_len, (const char *)value);
    } else if (strncmp(n, "grpc-", 5) == 0 && !raw->server &&
               strcmp(n, "grpc-accept-encoding") != 0) { /* the same in every reply */
        note(raw, "%s=%.*s", n, (int)value_len, (const char *)value);
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct rawpeer *raw = user_data;

    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_DATA:
        if (!raw->mute) {
            note(raw, "D%zu", frame->hd.length);
        }
        raw->received += frame->hd.length;
        break;
    case NGHTTP2_RST_STREAM:
        note(raw, "R%u", frame->rst_stream.error_code);
        break;
    case NGHTTP2_GOAWAY:
        note(raw, "G%u", frame->goaway.error_code);
        break;
    default:
        break;
    }
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
    {
        note(raw, "E");
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *user_data)
{
    const struct rawpeer *raw = user_data;

    (void)session;
    (void)flags;
    (void)id;
    if (raw->sink != NULL) {
        ck_assert_int_eq(fl_buf_add(raw->sink, data, len), FL_OK);
    }
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length,
                         uint32_t *data_flags, nghttp2_data_source *source, void *user_data)
{
    struct rawpeer *raw = user_data;
    size_t n = raw->body_len - raw->body_at;

    (void)session;
    (void)id;
    (void)source;
    n = n < length ? n : length;
    if (n > 0) {
        (void)memcpy(buf, raw->body + raw->body_at, n);
    }
    raw->body_at += n;
    if (raw->body_at == raw->body_len) {
        if (!raw->body_ends && n == 0) {
            return NGHTTP2_ERR_DEFERRED;
        }
        if (raw->body_ends) {
            *data_flags |= NGHTTP2_DATA_FLAG_EOF;
        }
    }
    return (ssize_t)n;
}

void rawpeer_open(struct rawpeer *raw, struct fl_h2 *other, bool server, uint32_t window)
{
    nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_session_callbacks *cbs = NULL;

    *raw = (struct rawpeer){.other = other, .server = server};
    ck_assert_int_eq(nghttp2_session_callbacks_new(&cbs), 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data_chunk);
    if (server) {
        ck_assert_int_eq(nghttp2_session_server_new(&raw->session, cbs, raw), 0);
    } else {
        ck_assert_int_eq(nghttp2_session_client_new(&raw->session, cbs, raw), 0);
    }
    nghttp2_session_callbacks_del(cbs);
    ck_assert_int_eq(nghttp2_submit_settings(raw->session, NGHTTP2_FLAG_NONE, iv, 1), 0);
    rawpeer_run(raw);
}

void rawpeer_close(struct rawpeer *raw)
{
    nghttp2_session_del(raw->session);
    fl_h2_free(raw->other);
}

int rawpeer_bytes(struct rawpeer *raw, const void *data, size_t len)
{
    int rv = fl_h2_recv(raw->other, data, len);

    raw->code = raw->code == FL_OK ? rv : raw->code;
    return rv;
}

/* All pending nghttp2 output, in one buffer. */
static bool to_other(struct rawpeer *raw)
{
    const uint8_t *data = NULL;
    struct fl_buf buf;
    bool moved;
    ssize_t n;

    fl_buf_init(&buf, SIZE_MAX / 2);
    while ((n = nghttp2_session_mem_send(raw->session, &data)) > 0) {
        ck_assert_int_eq(fl_buf_add(&buf, data, (size_t)n), FL_OK);
    }
    ck_assert_int_eq(n, 0);
    moved = buf.len > 0;
    if (moved) {
        (void)rawpeer_bytes(raw, buf.data, buf.len);
    }
    fl_buf_done(&buf);
    return moved;
}

static bool from_other(struct rawpeer *raw)
{
    struct iovec iov[3];
    int n = fl_h2_output(raw->other, iov, 3);
    size_t total = 0;

    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(nghttp2_session_mem_recv(raw->session, iov[i].iov_base, iov[i].iov_len),
                         (ssize_t)iov[i].iov_len);
        total += iov[i].iov_len;
    }
    fl_h2_sent(raw->other, total);
    fl_h2_dispatch(raw->other);
    return total > 0;
}

void rawpeer_run(struct rawpeer *raw)
{
    bool moved = true;

    while (moved) {
        moved = to_other(raw);
        moved = from_other(raw) || moved;
    }
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = strlen(value)};
}

static size_t add_headers(nghttp2_nv *nv, size_t n, const struct rawpeer_header *headers)
{
    for (; headers != NULL && headers->name != NULL; headers++) {
        size_t i;

        for (i = 0; i < n; i++) {
            if (strcmp((const char *)nv[i].name, headers->name) == 0) {
                break;
            }
        }
        ck_assert_uint_lt(i, MAX_HEADERS);
        if (headers->value != NULL) {
            nv[i] = nv_of(headers->name, headers->value);
            n += i == n ? 1 : 0;
        } else if (i < n) {
            nv[i] = nv[--n];
        }
    }
    return n;
}

static nghttp2_data_provider body_of(struct rawpeer *raw, const void *body, size_t len, bool ends)
{
    raw->body = body;
    raw->body_len = len;
    raw->body_at = 0;
    raw->body_ends = ends;
    return (nghttp2_data_provider){.read_callback = read_body};
}

int32_t rawpeer_request(struct rawpeer *raw, const char *path, const struct rawpeer_header *extra,
                        const void *body, size_t len, bool ends)
{
    nghttp2_nv nv[MAX_HEADERS] = {
        nv_of(":method", "POST"), nv_of(":scheme", "http"),
        nv_of(":path", path),     nv_of(":authority", "raw"),
        nv_of("te", "trailers"),  nv_of("content-type", "application/grpc")};
    size_t n = add_headers(nv, 6, extra);
    nghttp2_data_provider provider = body_of(raw, body, len, ends);
    int32_t id = nghttp2_submit_request(raw->session, NULL, nv, n, &provider, NULL);

    ck_assert_int_gt(id, 0);
    return id;
}

void rawpeer_headers(struct rawpeer *raw, int32_t id, const struct rawpeer_header *headers,
                     bool ends)
{
    nghttp2_nv nv[MAX_HEADERS];
    size_t n = add_headers(nv, 0, headers);

    ck_assert_int_eq(nghttp2_submit_headers(raw->session, ends ? NGHTTP2_FLAG_END_STREAM : 0, id,
                                            NULL, nv, n, NULL),
                     0);
}

void rawpeer_reply(struct rawpeer *raw, int32_t id, const struct rawpeer_header *headers,
                   const void *body, size_t len, bool ends)
{
    nghttp2_nv nv[MAX_HEADERS];
    size_t n = add_headers(nv, 0, headers);
    nghttp2_data_provider provider = body_of(raw, body, len, ends);

    ck_assert_int_eq(nghttp2_submit_response(raw->session, id, nv, n, &provider), 0);
}
