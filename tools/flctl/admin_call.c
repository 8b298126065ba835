/*
 * Makes one call to the server, at its admin socket or over TLS, and passes the messages of the
 * answer to the command. Main thread, with its own event loop for the time of the call.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/tls/tls.h"
#include "tools/flctl/flctl.h"

#define CONNECT_MS 3000
/* Time limit of a call: a change is answered when it is durable, and the disk may be slow or
   full. */
#define CALL_MS 600000
/* Time after which the user is told that the server, not flctl, is waiting. */
#define SLOW_MS 10000

struct call {
    enum fl_verb verb;
    const struct fl_buf *request;
    fl_ctl_take_cb take;
    void *ctx;
    struct fl_err *err;
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    struct fl_timer *slow_timer;
    const char *where;
    const char *hint;
    bool up, ended;
    uint64_t limit_ms;
    uint32_t ping_after_ms;
    int exit_code;
};

/* Keeps the exit code and the text, one clean line whatever the server sent. */
FL_PRINTF(3, 4) static void call_failed(struct call *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->err->msg, sizeof(c->err->msg), fmt, ap);
    va_end(ap);
    (void)fl_str_clean(c->err->msg);
    c->exit_code = code;
}

static void call_on_slow(void *ctx)
{
    (void)ctx;
    (void)fprintf(
        stderr,
        "flctl: no answer for %d s: the server received the command and is waiting, perhaps "
        "for its disk: see `flctl why` and its log; timing out after %d "
        "min\n",
        SLOW_MS / 1000, CALL_MS / 60000);
}

static bool call_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct call *c = ctx;
    struct fl_err err = {0};
    int rv = c->take(c->ctx, data, len, &err);

    fl_timer_stop(c->slow_timer);
    if (rv != FL_OK) {
        call_failed(c, FL_CTL_FAILED, "%s", fl_err_text(&err, rv));
        fl_call_cancel(call);
    }
    return true;
}

static void call_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct call *c = ctx;

    (void)call;
    c->ended = true;
    fl_timer_stop(c->slow_timer);
    if (status != FL_GRPC_OK && c->exit_code == FL_CTL_OK) {
        call_failed(c, FL_CTL_FAILED, "%s: %s", fl_grpc_status_name(status),
                    message != NULL && message[0] != '\0' ? message : "the call failed");
    }
    fl_grpc_channel_close(c->channel);
}

static const struct fl_call_handler handler = {.on_message = call_on_message,
                                               .on_closed = call_on_closed};

static void call_on_up(void *ctx)
{
    struct call *c = ctx;
    struct fl_piece piece = {.data = c->request->data, .len = c->request->len};
    struct fl_call *call = NULL;

    c->up = true;
    if (fl_grpc_call(c->channel, fl_verbs[c->verb].path, c->limit_ms, &handler, c, &call) != FL_OK)
    {
        call_failed(c, FL_CTL_FAILED, "the call cannot be made: out of memory");
        fl_grpc_channel_close(c->channel);
        return;
    }
    if (fl_call_send(call, &piece, 1) != FL_OK) {
        fl_call_cancel(call);
        return;
    }
    fl_call_end(call);
    fl_timer_start(c->slow_timer, SLOW_MS);
}

static void call_on_down(void *ctx, int code, const char *text)
{
    struct call *c = ctx;

    c->channel = NULL;
    if (!c->up) {
        call_failed(c, FL_CTL_NO_SERVER, "no fl-serverd at '%s': %s (%s)", c->where,
                    text != NULL ? text : fl_strerror(code), c->hint);
    } else if (!c->ended && c->exit_code == FL_CTL_OK) {
        call_failed(c, FL_CTL_FAILED, "the server closed the connection");
    }
    fl_loop_stop(c->loop);
}

static const struct fl_grpc_channel_cbs cbs = {.on_up = call_on_up, .on_down = call_on_down};

static int call_run(struct call *c, const char *address, const struct fl_stream_filter *filter,
                    const struct fl_proxy_rule *proxy, struct fl_err *err)
{
    struct fl_rpc_limits limits;
    int rv = fl_loop_create(&c->loop, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_timer_create(c->loop, call_on_slow, c, &c->slow_timer);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot create a timer");
        goto done;
    }
    fl_rpc_limits_default(&limits);
    rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = c->loop,
                                                         .address = address,
                                                         .limits = &limits,
                                                         .timeout_ms = CONNECT_MS,
                                                         .ping_after_ms = c->ping_after_ms,
                                                         .ping_limit_ms = FL_GRPC_PING_LIMIT_MS,
                                                         .cbs = &cbs,
                                                         .ctx = c,
                                                         .filter = filter,
                                                         .proxy = proxy},
                         &c->channel, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_loop_run(c->loop);
done:
    fl_timer_close(c->slow_timer);
    fl_loop_free(c->loop);
    return rv;
}

static void call_socket(struct call *c, const char *socket)
{
    struct fl_err err = {0};
    char address[FL_CTL_PATH + sizeof("unix:")];
    int n = snprintf(address, sizeof(address), "unix:%s", socket);
    int rv;

    if (n < 0 || (size_t)n >= sizeof(address)) {
        call_failed(c, FL_CTL_USAGE, "the path of the socket is too long");
        return;
    }
    c->where = socket;
    c->hint = "is it running? --socket or --state-dir selects another one";
    rv = call_run(c, address, NULL, NULL, &err);
    if (rv != FL_OK) {
        call_failed(c, FL_CTL_NO_SERVER, "cannot use '%s': %s", socket, fl_err_text(&err, rv));
    }
}

static void call_remote(struct call *c, const struct fl_ctl_remote *remote)
{
    struct fl_err err = {0};
    struct fl_tls *tls = NULL;
    struct fl_stream_filter filter;
    int rv = fl_ctl_remote_open(remote, &tls, &err);

    if (rv != FL_OK) {
        call_failed(c, rv == FL_EINVAL ? FL_CTL_USAGE : FL_CTL_FAILED, "%s", fl_err_text(&err, rv));
        return;
    }
    c->where = remote->server;
    c->hint = "is it one of the server's listen_admin addresses?";
    filter = fl_tls_filter(tls);
    rv = call_run(c, remote->server, &filter,
                  &(struct fl_proxy_rule){.proxy = remote->proxy != NULL ? remote->proxy : "",
                                          .credentials = remote->proxy_credentials != NULL
                                                             ? remote->proxy_credentials
                                                             : "",
                                          .key = "--proxy",
                                          .file_key = "--proxy-credentials"},
                  &err);
    fl_tls_unref(tls);
    if (rv != FL_OK) {
        call_failed(c, FL_CTL_NO_SERVER, "cannot use '%s': %s", remote->server,
                    fl_err_text(&err, rv));
    }
}

int fl_ctl_fetch(const struct fl_ctl_args *args, enum fl_verb verb, const struct fl_buf *request,
                 fl_ctl_take_cb take, void *ctx, struct fl_err *err)
{
    struct call c = {.verb = verb,
                     .request = request,
                     .take = take,
                     .ctx = ctx,
                     .err = err,
                     .limit_ms = args->call_ms != 0 ? args->call_ms : CALL_MS,
                     .ping_after_ms = args->remote.ping_after_ms != 0
                                          ? (uint32_t)args->remote.ping_after_ms
                                          : FL_GRPC_PING_AFTER_MS};

    if (args->remote.server != NULL) {
        call_remote(&c, &args->remote);
    } else {
        call_socket(&c, args->socket);
    }
    return c.exit_code;
}

static int call_print(void *ctx, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_ctl_args *args = ctx;

    return fl_ctl_commands[args->verb].answer->message(&args->out, data, len, err);
}

int fl_ctl_call(struct fl_ctl_args *args, const struct fl_buf *request)
{
    struct fl_err err = {0};
    int code = fl_ctl_fetch(args, args->verb, request, call_print, args, &err);

    if (code != FL_CTL_OK) {
        (void)fprintf(stderr, "flctl: %s\n", err.msg);
    }
    return code;
}
