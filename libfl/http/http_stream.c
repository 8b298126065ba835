/*
 * Server-sent events: one source, read by each stream at its own place. A stream without news is
 * suspended and costs no time; a silent one sends a comment, so that a reader that left is noticed.
 * A slow reader holds at most FL__HTTP_STREAM_BYTES, and libmicrohttpd closes it when it makes no
 * progress. HTTP thread.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/http/http_impl.h"

static ssize_t stream_read(void *cls, uint64_t pos, char *out, size_t max)
{
    static const char alive[] = ": no news\n\n";
    struct fl__http_stream *s = cls;
    struct fl_http *http = s->http;
    uint64_t now = fl_clock_ms();
    size_t n;

    (void)pos;
    if (atomic_load(&http->stop)) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (s->ready.len == 0 && s->read(s->ctx, &s->at, &s->ready, FL__HTTP_STREAM_BYTES) != FL_OK) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (s->ready.len == 0 && now - s->sent_ms >= 1000u * http->setup.limits.alive_s &&
        fl_buf_add(&s->ready, alive, sizeof(alive) - 1) != FL_OK)
    {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (s->ready.len == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    n = s->ready.len < max ? s->ready.len : max;
    memcpy(out, s->ready.data, n);
    fl_buf_drop(&s->ready, n);
    s->sent_ms = now;
    return (ssize_t)n;
}

static void stream_done(void *cls)
{
    struct fl__http_stream *s = cls;

    fl_list_remove(&s->link);
    s->http->n_streams--;
    atomic_fetch_sub(&s->http->n_open_streams, 1);
    fl_buf_done(&s->ready);
    free(s);
}

void fl_http_stream(struct fl_http_request *r, uint64_t at, fl_http_read_cb read, void *ctx)
{
    struct fl_http *http = r->http;
    struct MHD_Response *response;
    struct fl__http_stream *s;

    if (http->n_streams >= http->setup.limits.streams) {
        fl_http_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE,
                     "%u event streams are open, the limit: end some, or poll the list of events",
                     http->n_streams);
        return;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        fl__http_respond(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL);
        return;
    }
    s->http = http;
    s->connection = r->connection;
    s->read = read;
    s->ctx = ctx;
    s->at = at;
    fl_buf_init(&s->ready, 4 * (size_t)FL__HTTP_STREAM_BYTES);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, FL__HTTP_STREAM_BYTES,
                                                 stream_read, s, stream_done);
    if (response == NULL) {
        free(s);
        fl__http_respond(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL);
        return;
    }
    http->n_streams++;
    atomic_fetch_add(&http->n_open_streams, 1);
    fl_list_append(&http->streams, &s->link);
    fl__http_add_header(response, "Content-Type", "text/event-stream");
    fl__http_add_header(response, "X-Accel-Buffering", "no"); /* A proxy passes each event on. */
    fl__http_respond(r, MHD_HTTP_OK, response);
}

void fl__http_streams_resume(struct fl_http *http, uint64_t now_ms, bool all)
{
    struct fl__http_stream *s;

    FL_LIST_FOREACH (s, &http->streams, struct fl__http_stream, link) {
        if (s->suspended && (all || now_ms - s->sent_ms >= 1000u * http->setup.limits.alive_s)) {
            s->suspended = false;
            MHD_resume_connection(s->connection);
        }
    }
}
