/* The client's side of a session: sends requests. */
#include "libfl/h2/h2_session_impl.h"
#include "libfl/rpc/headers.h"

static int client_submit(struct fl_h2 *h2, struct h2_stream *s, const char *path,
                         const char *timeout)
{
    nghttp2_data_provider provider = {.source = {.ptr = NULL}, .read_callback = fl__h2_read_cb};
    nghttp2_nv nv[8];
    size_t n = 0;
    int32_t id;

    nv[n++] = fl__h2_nv(":method", "POST");
    nv[n++] = fl__h2_nv(":scheme", h2->secure ? "https" : "http");
    nv[n++] = fl__h2_nv(":path", path);
    nv[n++] = fl__h2_nv(":authority", h2->authority);
    nv[n++] = fl__h2_nv("te", "trailers");
    nv[n++] = fl__h2_nv("content-type", FL_GRPC_CONTENT_TYPE);
    nv[n++] = fl__h2_nv("user-agent", "grpc-c-fl/" PACKAGE_VERSION);
    if (timeout != NULL) {
        nv[n++] = fl__h2_nv("grpc-timeout", timeout);
    }
    id = nghttp2_submit_request(h2->session, NULL, nv, n, &provider, s);
    if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE) {
        h2->going_away = true;
        return FL_ECLOSED;
    }
    if (id < 0) {
        return fl__h2_check(h2, id);
    }
    s->id = id;
    s->attached = true;
    return FL_OK;
}

int fl_h2_call(struct fl_h2 *h2, const char *path, uint64_t now_ms, uint64_t timeout_ms,
               const struct fl_call_handler *handler, void *ctx, struct fl_call **ret)
{
    char timeout[FL_GRPC_TIMEOUT_SIZE];
    struct h2_stream *s = NULL;
    int rv;

    FL_REQUIRE(!h2->server);
    if (h2->code != FL_OK || h2->going_away) {
        return FL_ECLOSED;
    }
    if (h2->n_calls >=
        nghttp2_session_get_remote_settings(h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    {
        return FL_EAGAIN;
    }
    rv = fl__h2_stream_create(h2, path, &s);
    if (rv != FL_OK) {
        return rv;
    }
    if (timeout_ms > 0) {
        fl_grpc_timeout_format(timeout, timeout_ms);
        fl_call_set_timeout(s->call, now_ms, timeout_ms);
    }
    fl_call_set_handler(s->call, handler, ctx);
    rv = client_submit(h2, s, path, timeout_ms > 0 ? timeout : NULL);
    if (rv != FL_OK) {
        fl__h2_stream_free(s);
        return rv;
    }
    fl__h2_wake_output(h2);
    *ret = s->call;
    return FL_OK;
}
