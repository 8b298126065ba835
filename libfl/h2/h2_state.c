/*
 * What all parts of a session share: its error, the calls of its owner, limits on how often a peer
 * does something, and header fields. Runs on the loop of the session.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/h2/h2_session_impl.h"
#include "libfl/rpc/headers.h"

/* Frames without content, per allowed reset: gRPC peers ping a few times a second. */
#define FL_IDLE_FRAMES_PER_RESET 10

int fl__h2_fail(struct fl_h2 *h2, int code)
{
    if (h2->code == FL_OK) {
        h2->code = code;
    }
    return h2->code;
}

int fl__h2_check(struct fl_h2 *h2, int nghttp2_code)
{
    switch (nghttp2_code) {
    case 0:
        return FL_OK;
    case NGHTTP2_ERR_NOMEM:
        return fl__h2_fail(h2, FL_ENOMEM);
    case NGHTTP2_ERR_FLOODED:
        return fl__h2_fail(h2, FL_ELIMIT);
    case NGHTTP2_ERR_CALLBACK_FAILURE: /* the callback has recorded the error */
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
        return fl__h2_fail(h2, FL_EPROTO);
    default:
        /* Below NGHTTP2_ERR_FATAL only the deletion of the session is allowed. */
        return nghttp2_code < NGHTTP2_ERR_FATAL ? fl__h2_fail(h2, FL_EPROTO) : FL_ESTATE;
    }
}

static void session_wake(struct fl_h2 *h2, bool *flag)
{
    if (!*flag && !h2->freeing) {
        *flag = true;
        if (h2->wake != NULL) {
            h2->wake(h2->ctx);
        }
    }
}

void fl__h2_wake_output(struct fl_h2 *h2)
{
    session_wake(h2, &h2->woken_output);
}

void fl__h2_wake_dispatch(struct fl_h2 *h2)
{
    session_wake(h2, &h2->woken_dispatch);
}

static int count_events(struct fl_h2 *h2, uint32_t *counter, uint64_t limit)
{
    *counter += 1;
    return *counter > limit ? fl__h2_fail(h2, FL_ELIMIT) : FL_OK;
}

int fl__h2_count_reset(struct fl_h2 *h2)
{
    return count_events(h2, &h2->resets, h2->conn.limits.resets);
}

int fl__h2_count_idle(struct fl_h2 *h2)
{
    return count_events(h2, &h2->idle_frames,
                        (uint64_t)h2->conn.limits.resets * FL_IDLE_FRAMES_PER_RESET);
}

/* nghttp2 declares its input without const and copies it. */
nghttp2_nv fl__h2_nv(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = strlen(value),
                        .flags = NGHTTP2_NV_FLAG_NONE};
}

int fl__h2_submit_status(struct fl_h2 *h2, const struct h2_stream *s, unsigned http_status,
                         enum fl_grpc_status status, const char *message)
{
    char http_text[12];
    char status_text[12];
    nghttp2_nv nv[5];
    size_t n = 0;
    int rv;

    (void)snprintf(http_text, sizeof(http_text), "%u", http_status);
    (void)snprintf(status_text, sizeof(status_text), "%u", (unsigned)status);
    if (!s->submitted) {
        nv[n++] = fl__h2_nv(":status", http_text);
        nv[n++] = fl__h2_nv("content-type", FL_GRPC_CONTENT_TYPE);
        nv[n++] = fl__h2_nv("grpc-accept-encoding", "identity");
    }
    nv[n++] = fl__h2_nv("grpc-status", status_text);
    if (message != NULL) {
        nv[n++] = fl__h2_nv("grpc-message", message);
    }
    if (s->submitted) {
        rv = nghttp2_submit_trailer(h2->session, s->id, nv, n);
    } else {
        rv = nghttp2_submit_response(h2->session, s->id, nv, n, NULL);
    }
    return fl__h2_check(h2, rv);
}
