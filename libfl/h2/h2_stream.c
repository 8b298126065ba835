/*
 * A stream and its call, and the transport functions that calls use, on the loop of the session.
 * Does not choose the next stream to send (h2_output.c).
 */
#include <stdlib.h>

#include "libfl/h2/h2_session_impl.h"

int fl__h2_stream_create(struct fl_h2 *h2, const char *path, struct h2_stream **ret)
{
    struct h2_stream *s = calloc(1, sizeof(*s));
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_call_create(&h2->conn, s, h2->server, path, &s->call);
    if (rv != FL_OK) {
        free(s);
        return rv;
    }
    s->h2 = h2;
    fl_list_append(&h2->all, &s->all);
    if (!h2->server) {
        fl__h2_stream_count(s);
    }
    *ret = s;
    return FL_OK;
}

/*
 * A half-received request does not count as a call: a connection that has nothing else is idle, and
 * its owner's limits for idle connections apply.
 */
void fl__h2_stream_count(struct h2_stream *s)
{
    s->counted = true;
    s->h2->n_calls++;
}

struct h2_stream *fl__h2_stream_get(struct fl_h2 *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2->session, id);
}

void fl__h2_stream_detach(struct h2_stream *s)
{
    if (s->attached) {
        s->attached = false;
        (void)nghttp2_session_set_stream_user_data(s->h2->session, s->id, NULL);
    }
    fl_list_remove(&s->ready);
}

static void release_connection(struct fl_h2 *h2, size_t n)
{
    size_t unpaid = n < h2->debt ? n : h2->debt;

    h2->debt -= unpaid;
    n -= unpaid;
    FL_REQUIRE(n <= h2->withheld);
    h2->withheld -= n;
    if (n > 0) {
        (void)fl__h2_check(h2, nghttp2_session_consume_connection(h2->session, n));
    }
}

void fl__h2_stream_free(struct h2_stream *s)
{
    struct fl_h2 *h2 = s->h2;

    fl__h2_bulk_ended(s);
    if (h2->code == FL_OK) {
        fl__h2_stream_detach(s);
        release_connection(h2, fl_call_held(s->call));
        fl__h2_wake_output(h2);
    }
    fl_list_remove(&s->ready);
    fl_list_remove(&s->due);
    fl_list_remove(&s->all);
    h2->n_calls -= s->counted ? 1 : 0;
    fl_call_free(s->call);
    free(s);
}

static void op_output(void *stream)
{
    struct h2_stream *s = stream;

    if (s->h2->code == FL_OK && !fl_list_is_linked(&s->ready)) {
        fl_list_append(&s->h2->ready, &s->ready);
    }
    fl__h2_wake_output(s->h2);
}

static void op_credit(void *stream, size_t conn, size_t window)
{
    struct h2_stream *s = stream;
    size_t kept;

    if (s->h2->code != FL_OK) {
        return;
    }
    /* Return credit to the connection, withholding what users hold. */
    kept = conn < s->h2->debt ? conn : s->h2->debt;
    s->h2->debt -= kept;
    s->h2->withheld += kept;
    if (conn > kept) {
        (void)fl__h2_check(s->h2, nghttp2_session_consume_connection(s->h2->session, conn - kept));
    }
    /* With a rate limit, the bucket gives the credit, not the arrival of data. */
    if (window > 0 && fl__h2_bulk_takes(s) == NULL) {
        (void)fl__h2_check(s->h2, nghttp2_session_consume_stream(s->h2->session, s->id, window));
    }
}

static void op_hold(void *stream, size_t n)
{
    struct h2_stream *s = stream;

    s->h2->debt += n;
}

static void op_release(void *stream, size_t n)
{
    struct h2_stream *s = stream;

    if (s->h2->code != FL_OK) {
        return;
    }
    release_connection(s->h2, n);
    if (fl__h2_bulk_takes(s) == NULL) {
        (void)fl__h2_check(s->h2, nghttp2_session_consume_stream(s->h2->session, s->id, n));
    }
    fl__h2_wake_output(s->h2);
}

static void op_reset(void *stream, bool cancel)
{
    struct h2_stream *s = stream;

    if (s->h2->code == FL_OK && s->attached) {
        fl__h2_stream_detach(s);
        (void)fl__h2_check(s->h2,
                           nghttp2_submit_rst_stream(s->h2->session, NGHTTP2_FLAG_NONE, s->id,
                                                     cancel ? NGHTTP2_CANCEL : NGHTTP2_NO_ERROR));
        fl__h2_wake_output(s->h2);
    }
}

static void op_reject(void *stream, enum fl_grpc_status status, const char *message)
{
    struct h2_stream *s = stream;

    if (s->h2->code == FL_OK && s->attached) {
        (void)fl__h2_submit_status(s->h2, s, 200, status, message);
        fl__h2_stream_detach(s);
        fl__h2_wake_output(s->h2);
    }
}

static void op_due(void *stream)
{
    struct h2_stream *s = stream;

    if (!fl_list_is_linked(&s->due)) {
        fl_list_append(&s->h2->due, &s->due);
    }
    fl__h2_wake_dispatch(s->h2);
}

const struct fl_rpc_transport fl__h2_transport = {
    .output = op_output,
    .credit = op_credit,
    .hold = op_hold,
    .release = op_release,
    .reset = op_reset,
    .reject = op_reject,
    .due = op_due,
};
