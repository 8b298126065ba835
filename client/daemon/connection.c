/*
 * The connection to the server: one channel, and the control stream (Attend) on it. Runs on the
 * loop. Reconnecting and back-off are the session's (client/core), not done here, except that the
 * next of several servers is tried before the session learns of the failure.
 */

#include "client/daemon/connection.h"

#include <stdlib.h>

#include "client/work/worker.h"
#include "libfl/base/rng.h"

struct fl_connection {
    struct fl_connection_conf conf;
    struct fl_grpc_channel *channel; /* NULL: none */
    struct fl_call *stream;          /* NULL: none */
    size_t queue_bytes;              /* of the control stream */
    struct fl_wire_session token;
    uint32_t chunk_bytes;
    size_t at;              /* the server that is tried or was reached; else where to begin */
    size_t began;           /* where trying began */
    struct fl_timer *timer; /* before another server */
    struct fl_rng rng;      /* its pauses */
    bool waits;             /* for the timer */
    bool reached;           /* the channel was up */
    bool welcomed;          /* this server gave what the connection is for */
    bool closed;            /* by us */
    bool refused;           /* by all servers that were tried */
    bool last;              /* being freed: the loop runs only until the channel is closed */
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

const char *fl_connection_server(const struct fl_connection *c)
{
    return c->conf.servers[c->at];
}

static bool has_next(const struct fl_connection *c)
{
    return c->at + 1 < c->conf.n_servers;
}

static void connection_on_channel_up(void *ctx)
{
    struct fl_connection *c = ctx;
    int rv;

    c->reached = true;
    if (!c->conf.cbs.on_channel(c->conf.ctx)) {
        c->welcomed = true; /* It serves what this connection is for. */
        return;
    }
    rv = fl_grpc_call(c->channel, "/fl.v1.Federation/Attend", 0, &control_handler, c, &c->stream);
    if (rv != FL_OK) {
        fl_grpc_channel_close(c->channel);
        return;
    }
    c->conf.cbs.on_up(c->conf.ctx);
}

static void log_down(const struct fl_connection *c, int code, const char *why, const char *next)
{
    fl_log_peer(c->conf.log, code == FL_EPERM ? FL_LOG_ERROR : FL_LOG_WARNING, "client",
                FL_WORK_SERVER, "no connection to '%s': %s%s%s%s", fl_connection_server(c), why,
                next != NULL ? "; trying '" : "", next != NULL ? next : "",
                next != NULL ? "' next" : "");
}

/* The server was not reached: schedules the next one; false: it was the last. */
static bool try_next(struct fl_connection *c, int code, const char *why)
{
    bool more = has_next(c);

    c->refused = (c->refused || c->at == c->began) && code == FL_EPERM;
    if (code != FL_OK) {
        log_down(c, code, why, more ? c->conf.servers[c->at + 1] : NULL);
    }
    if (!more) {
        return false;
    }
    c->at++;
    c->waits = true;
    fl_timer_start(c->timer, 1 + fl_rng_below(&c->rng, c->conf.pause_ms));
    return true;
}

/* Where connecting begins the next time. */
static void settle_at(struct fl_connection *c)
{
    c->at = c->reached && !c->welcomed && has_next(c) ? c->at + 1 : 0;
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
    if (!c->reached && !c->closed && try_next(c, code, why)) {
        return;
    }
    if (c->reached || c->closed) {
        c->refused = code == FL_EPERM;
        if (code != FL_OK) {
            log_down(c, code, why, NULL);
        }
    }
    settle_at(c);
    c->conf.cbs.on_down(c->conf.ctx, c->refused, why);
}

static const struct fl_grpc_channel_cbs channel_cbs = {.on_up = connection_on_channel_up,
                                                       .on_down = connection_on_channel_down};

static int connect_to_server(struct fl_connection *c, struct fl_err *err)
{
    struct fl_rpc_limits limits;

    c->reached = c->welcomed = c->closed = c->waits = false;
    fl_rpc_limits_default(&limits);
    limits.message_bytes = FL_WIRE_MAX_CONTROL; /* a Welcome can describe thousands of tensors */
    if (limits.stream_window < 2 * FL_WIRE_MAX_CONTROL) {
        limits.stream_window = 2 * FL_WIRE_MAX_CONTROL;
    }
    limits.conn_window = 2 * limits.stream_window;
    limits.send_rate = c->conf.limits->upload_rate;
    limits.take_rate = c->conf.limits->download_rate;
    c->queue_bytes = limits.queue_bytes;
    return fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = c->conf.loop,
                                                           .address = fl_connection_server(c),
                                                           .limits = &limits,
                                                           .traffic = c->conf.traffic,
                                                           .timeout_ms = c->conf.timeout_ms,
                                                           .ping_after_ms = c->conf.ping_after_ms,
                                                           .ping_limit_ms = c->conf.ping_limit_ms,
                                                           .cbs = &channel_cbs,
                                                           .ctx = c,
                                                           .filter = c->conf.filters != NULL
                                                                         ? &c->conf.filters[c->at]
                                                                         : NULL,
                                                           .proxy = c->conf.proxy},
                           &c->channel, err);
}

/* The pause before another server has ended. */
static void connection_on_timer(void *ctx)
{
    struct fl_connection *c = ctx;
    struct fl_err err = {0};
    int rv = connect_to_server(c, &err);

    if (rv != FL_OK && !try_next(c, rv, fl_err_text(&err, rv))) {
        settle_at(c);
        c->conf.cbs.on_down(c->conf.ctx, c->refused, fl_err_text(&err, rv));
    }
}

int fl_connection_open(struct fl_connection *c, struct fl_err *err)
{
    int rv;

    if (c->channel != NULL || c->waits) {
        return FL_OK;
    }
    c->refused = false;
    c->began = c->at;
    rv = connect_to_server(c, err);
    if (rv != FL_OK && !try_next(c, rv, fl_err_text(err, rv))) {
        settle_at(c);
        return rv;
    }
    return FL_OK;
}

void fl_connection_close(struct fl_connection *c)
{
    if (c->channel != NULL) {
        c->closed = true;
        fl_grpc_channel_close(c->channel);
    } else if (c->waits) {
        c->waits = false;
        fl_timer_stop(c->timer);
        settle_at(c);
    }
}

void fl_connection_welcomed(struct fl_connection *c, struct fl_wire_session token,
                            uint32_t chunk_bytes)
{
    c->welcomed = true;
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
    int rv;

    if (c == NULL) {
        return FL_ENOMEM;
    }
    FL_REQUIRE(conf->n_servers > 0);
    c->conf = *conf;
    c->conf.pause_ms = conf->pause_ms > 0 ? conf->pause_ms : 1;
    fl_rng_key(&c->rng, conf->seed, FL_RNG_JITTER, 1, 0);
    rv = fl_timer_create(conf->loop, connection_on_timer, c, &c->timer);
    if (rv != FL_OK) {
        free(c);
        return rv;
    }
    *ret = c;
    return FL_OK;
}

void fl_connection_free(struct fl_connection *c)
{
    if (c == NULL) {
        return;
    }
    c->last = true;
    fl_timer_close(c->timer);
    if (c->channel != NULL) {
        fl_grpc_channel_close(c->channel);
        fl_loop_run(c->conf.loop); /* connection_on_channel_down() stops the loop. */
    }
    free(c);
}
