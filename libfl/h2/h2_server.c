/* The server's side of a session: receives requests, sends response headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/h2/h2_session_impl.h"
#include "libfl/rpc/headers.h"

static const struct fl_rpc_method *server_find_method(const struct fl_h2 *h2, const char *path)
{
    const struct fl_rpc_method *m;

    for (m = h2->methods; m->path != NULL; m++) {
        if (strcmp(m->path, path) == 0) {
            return m;
        }
    }
    return NULL;
}

static int submit_headers(struct fl_h2 *h2, struct h2_stream *s)
{
    nghttp2_nv nv[] = {fl__h2_nv(":status", "200"), fl__h2_nv("content-type", FL_GRPC_CONTENT_TYPE),
                       /*
                        * Required by gRPC's compression specification: we accept nothing
                        * compressed.
                        */
                       fl__h2_nv("grpc-accept-encoding", "identity")};
    nghttp2_data_provider provider = {.source = {.ptr = NULL}, .read_callback = fl__h2_read_cb};

    s->submitted = true;
    return fl__h2_check(
        h2, nghttp2_submit_response(h2->session, s->id, nv, sizeof(nv) / sizeof(nv[0]), &provider));
}

int fl__h2_server_request(struct fl_h2 *h2, struct h2_stream *s, bool end)
{
    const struct fl_rpc_method *method = NULL;
    enum fl_grpc_status status;
    const char *message = NULL;
    unsigned http_status = 200;
    bool denied = false;
    char text[256];
    int rv;

    status = fl_call_check_request(s->call, &http_status, text, sizeof(text));
    if (status == FL_GRPC_OK) {
        method = server_find_method(h2, fl_call_path(s->call));
    }
    if (status == FL_GRPC_OK && method == NULL) {
        status = FL_GRPC_UNIMPLEMENTED;
        (void)snprintf(text, sizeof(text), "unknown method %s", fl_call_path(s->call));
        /*
         * Probes by unauthenticated peers are not logged; an authenticated peer has a wrong
         * address.
         */
        denied = (h2->conn.who & (FL_WHO_CLIENT | FL_WHO_ADMIN)) != 0;
    } else if (status == FL_GRPC_OK) {
        status = fl_call_check_peer(s->call, method, text, sizeof(text));
        denied = status != FL_GRPC_OK;
    }
    if (denied && h2->conn.notice != NULL) {
        h2->conn.notice(h2->conn.notice_ctx, s->call,
                        method == NULL                         ? "unknown method"
                        : status == FL_GRPC_RESOURCE_EXHAUSTED ? "too many calls"
                                                               : "not allowed",
                        text);
    }
    if (status != FL_GRPC_OK) {
        char *encoded = fl_grpc_message_encode(text);

        /* Rejected before its method sees it. */
        rv = fl__h2_submit_status(h2, s, http_status, status, encoded);
        free(encoded);
        fl__h2_stream_free(s);
        return rv;
    }
    fl__h2_stream_count(s);
    fl_call_start(s->call, method);
    if (!s->attached) {
        return h2->code; /* cancelled by its method */
    }
    if (fl_call_out_end(s->call) && fl_call_out_bytes(s->call) == 0) {
        status = fl_call_out_status(s->call, &message);
        fl_list_remove(&s->ready);
        return fl__h2_submit_status(h2, s, 200, status, message);
    }
    rv = submit_headers(h2, s);
    if (rv != FL_OK) {
        return rv;
    }
    if (end) {
        fl_call_recv_end(s->call);
    }
    return h2->code;
}

void fl_h2_expel(struct fl_h2 *h2, const char *why)
{
    struct h2_stream *s, *next;

    FL_LIST_FOREACH_SAFE (s, next, &h2->all, struct h2_stream, all) {
        if (s->attached && s->counted) {
            fl_call_expel(s->call, why);
        }
    }
}
