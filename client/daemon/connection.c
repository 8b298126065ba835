/*
 * The connection to the server: one channel, and the control stream (Attend) on it. Runs on the
 * loop. Reconnecting and back-off are the session's (client/core), not done here.
 */

#include "client/daemon/connection.h"

#include <stdlib.h>

#include "client/work/worker.h"

struct fl_connection {
    struct fl_connection_conf conf;
    struct fl_grpc_channel *channel; /* NULL: none */
    struct fl_call *stream;          /* NULL: none */
    size_t queue_bytes;              /* of the control stream */
    struct fl_wire_session token;
    uint32_t chunk_bytes;
    bool last; /* being freed: the loop runs only until the channel is closed */
};

/* --- the control stream --- */

static bool connection_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_connection *c = ctx;

    (void)call;
    c->conf.cbs.on_message(c->conf.ctx, data, len);
    return true;
}

static void connection_on_writable(struct fl_call *call, void *ctx)
{
    struct fl_connection *c = ctx;

    (void)call;
    c->conf.cbs.on_writable(c->conf.ctx);
}

static void connection_on_stream_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                                        const char *message)
{
    struct fl_connection *c = ctx;

    (void)call;
    c->stream = NULL;
    if (!c->last) {
        c->conf.cbs.on_ended(c->conf.ctx, status, message);
    }
    fl_connection_close(c);
}

static const struct fl_call_handler control_handler = {.on_message = connection_on_message,
                                                       .on_writable = connection_on_writable,
                                                       .on_closed = connection_on_stream_closed};

void fl_connection_send(struct fl_connection *c, const struct fl_wire_event *event)
{
    struct fl_buf buf;
    struct fl_piece piece;
    int rv;

    if (c->stream == NULL) {
        return;
    }
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    rv = fl_wire_event_encode(event, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    rv = fl_call_send(c->stream, &piece, 1);
done:
    fl_buf_done(&buf);
    if (rv != FL_OK && rv != FL_ECLOSED) {
        fl_log_peer(c->conf.log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "control stream does not accept data (%s), reconnecting", fl_strerror(rv));
        fl_call_cancel(c->stream);
    }
}

bool fl_connection_has_room(const struct fl_connection *c)
{
    return c->stream != NULL && fl_call_queued(c->stream) <= c->queue_bytes / 2;
}

void fl_connection_end(struct fl_connection *c)
{
    if (c->stream != NULL) {
        fl_call_end(c->stream);
    }
}

void fl_connection_give_up(struct fl_connection *c)
{
    if (c->stream != NULL) {
        fl_call_cancel(c->stream);
    }
}

/* --- the channel --- */

static void connection_on_channel_up(void *ctx)
{
    struct fl_connection *c = ctx;
    int rv;

    if (!c->conf.cbs.on_channel(c->conf.ctx)) {
        return;
    }
    rv = fl_grpc_call(c->channel, "/fl.v1.Federation/Attend", 0, &control_handler, c, &c->stream);
    if (rv != FL_OK) {
        fl_grpc_channel_close(c->channel);
        return;
    }
    c->conf.cbs.on_up(c->conf.ctx);
}

static void log_down(const struct fl_connection *c, int code, const char *why)
{
    fl_log_peer(c->conf.log, code == FL_EPERM ? FL_LOG_ERROR : FL_LOG_WARNING, "client",
                FL_WORK_SERVER, "no connection to '%s': %s", c->conf.server, why);
}

static void connection_on_channel_down(void *ctx, int code, const char *text)
{
    struct fl_connection *c = ctx;
    const char *why = text != NULL ? text : fl_strerror(code);

    c->channel = NULL;
    if (c->last) {
        fl_loop_stop(c->conf.loop);
        return;
    }
    if (code != FL_OK) {
        log_down(c, code, why);
    }
    c->conf.cbs.on_down(c->conf.ctx, code == FL_EPERM, why);
}

static const struct fl_grpc_channel_cbs channel_cbs = {.on_up = connection_on_channel_up,
                                                       .on_down = connection_on_channel_down};

int fl_connection_open(struct fl_connection *c, struct fl_err *err)
{
    struct fl_rpc_limits limits;
    int rv;

    if (c->channel != NULL) {
        return FL_OK;
    }
    fl_rpc_limits_default(&limits);
    limits.message_bytes = FL_WIRE_MAX_CONTROL; /* a Welcome can describe thousands of tensors */
    if (limits.stream_window < 2 * FL_WIRE_MAX_CONTROL) {
        limits.stream_window = 2 * FL_WIRE_MAX_CONTROL;
    }
    limits.conn_window = 2 * limits.stream_window;
    limits.send_rate = c->conf.limits->upload_rate_per_s;
    limits.take_rate = c->conf.limits->download_rate_per_s;
    c->queue_bytes = limits.queue_bytes;
    rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = c->conf.loop,
                                                         .traffic = c->conf.traffic,
                                                         .address = c->conf.server,
                                                         .limits = &limits,
                                                         .timeout_ms = c->conf.timeout_ms,
                                                         .cbs = &channel_cbs,
                                                         .ctx = c,
                                                         .filter = c->conf.filter,
                                                         .proxy = c->conf.proxy},
                         &c->channel, err);
    if (rv != FL_OK) {
        log_down(c, rv, fl_err_text(err, rv));
    }
    return rv;
}

void fl_connection_close(struct fl_connection *c)
{
    if (c->channel != NULL) {
        fl_grpc_channel_close(c->channel);
    }
}

void fl_connection_welcomed(struct fl_connection *c, struct fl_wire_session token,
                            uint32_t chunk_bytes)
{
    c->token = token;
    c->chunk_bytes = chunk_bytes < FL_WIRE_CHUNK ? chunk_bytes : FL_WIRE_CHUNK;
}

struct fl_wire_session fl_connection_token(const struct fl_connection *c)
{
    return c->token;
}

size_t fl_connection_chunk(const struct fl_connection *c)
{
    return c->chunk_bytes;
}

int fl_connection_call(struct fl_connection *c, const char *path, uint64_t timeout_ms,
                       const struct fl_call_handler *handler, void *ctx, struct fl_call **ret)
{
    return c->channel == NULL ? FL_ECLOSED
                              : fl_grpc_call(c->channel, path, timeout_ms, handler, ctx, ret);
}

/* --- life --- */

int fl_connection_create(const struct fl_connection_conf *conf, struct fl_connection **ret)
{
    struct fl_connection *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return FL_ENOMEM;
    }
    c->conf = *conf;
    *ret = c;
    return FL_OK;
}

void fl_connection_free(struct fl_connection *c)
{
    if (c == NULL) {
        return;
    }
    c->last = true;
    if (c->channel != NULL) {
        fl_grpc_channel_close(c->channel);
        fl_loop_run(c->conf.loop); /* connection_on_channel_down() stops the loop. */
    }
    free(c);
}
