#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "libfl/net/net_impl.h"

/*
 * Listening sockets, on the thread of the loop: bind (or use an inherited socket), listen, and pass
 * each accepted connection on.
 * Failures: the address is in use or not allowed (reported at once); no descriptor left (libuv
 * closes the newest connections with a descriptor that it keeps in reserve); no memory for a
 * connection (it is accepted into `spare` and closed).
 */

/*
 * All clients of a federation reconnect at once after a restart; the kernel limits this to
 * net.core.somaxconn, which has the same value by default.
 */
#define BACKLOG 4096

union stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct fl_listener {
    struct fl_loop *loop;
    fl_accept_cb on_accept;
    void *ctx;
    struct fl_traffic *traffic; /* NULL: not counted */
    union stream u;
    union stream spare; /* Accepts connections for which there is no memory. */
    unsigned n_handles;
    unsigned port;
    bool is_unix;
    bool spare_busy;
    bool waiting; /* One more connection could not be accepted because the spare was in use. */
    bool closing;
};

static void on_spare_closed(uv_handle_t *handle);

static void listener_on_closed(uv_handle_t *handle)
{
    struct fl_listener *listener = handle->data;

    listener->n_handles--;
    if (listener->n_handles == 0 && listener->closing) {
        fl__loop_closed(listener->loop);
        free(listener);
    }
}

static int init_stream(struct fl_listener *listener, union stream *u)
{
    int status = listener->is_unix ? uv_pipe_init(&listener->loop->uv, &u->pipe, 0)
                                   : uv_tcp_init(&listener->loop->uv, &u->tcp);

    if (status == 0) {
        u->handle.data = listener;
        listener->n_handles++;
    }
    return status;
}

static void accept_and_drop(struct fl_listener *listener)
{
    if (listener->spare_busy) {
        listener->waiting = true; /* libuv stops accepting until this connection is accepted. */
        return;
    }
    if (init_stream(listener, &listener->spare) != 0) {
        return;
    }
    listener->spare_busy = true;
    (void)uv_accept(&listener->u.stream, &listener->spare.stream);
    uv_close(&listener->spare.handle, on_spare_closed);
}

static void on_spare_closed(uv_handle_t *handle)
{
    struct fl_listener *listener = handle->data;
    bool again = listener->waiting && !listener->closing;

    listener->spare_busy = false;
    listener->waiting = false;
    listener_on_closed(handle);
    if (again) {
        accept_and_drop(listener);
    }
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct fl_listener *listener = stream->data;
    struct fl_conn *conn = NULL;

    if (status != 0 || listener->closing) {
        return; /* No descriptor left: libuv has already closed the connection. */
    }
    if (fl__conn_create(listener->loop, FL__CONN_FRESH, &conn) != FL_OK) {
        accept_and_drop(listener);
        return;
    }
    if (fl__conn_stream_init(conn, listener->is_unix) != FL_OK) {
        fl__conn_close(conn);
        accept_and_drop(listener);
        return;
    }
    if (uv_accept(stream, &conn->u.stream) != 0) {
        fl__conn_close(conn);
        return;
    }
    fl__conn_established(conn, listener->is_unix);
    conn->traffic = listener->traffic;
    listener->on_accept(listener->ctx, &conn->stream);
}

/* True when a process accepts connections on this socket file. */
static bool is_served(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    bool served;
    int fd;

    if (fl_str_copy(addr.sun_path, sizeof(addr.sun_path), path) != FL_OK) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true; /* Unknown: leave the file alone. */
    }
    /* ECONNREFUSED: stale socket. EAGAIN: a live server with a full backlog. */
    served =
        connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 || errno != ECONNREFUSED;
    (void)close(fd);
    return served;
}

/* `*ret_old`: the file is the stale socket of a process that has ended. */
static int examine_socket(const char *path, bool *ret_old, struct fl_err *err)
{
    struct stat st;

    *ret_old = false;
    if (lstat(path, &st) != 0) {
        return FL_OK; /* There is no file, or bind() reports the error. */
    }
    if (!S_ISSOCK(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST,
                          "cannot listen on unix:%s: the file exists and is not a socket; remove "
                          "it or choose another path",
                          path);
    }
    if (is_served(path)) {
        return fl_err_set(err, FL_EINUSE, "cannot listen on unix:%s: in use by another process",
                          path);
    }
    *ret_old = true;
    return FL_OK;
}

/* Takes the descriptor; on error it is closed. */
static int open_inherited(struct fl_listener *listener, int fd, const char *text,
                          struct fl_err *err)
{
    int status =
        listener->is_unix ? uv_pipe_open(&listener->u.pipe, fd) : uv_tcp_open(&listener->u.tcp, fd);

    if (status != 0) {
        (void)close(fd);
        return fl__uv_fail(err, status, "cannot use the inherited socket for %s", text);
    }
    return FL_OK;
}

static int bind_unix(struct fl_listener *listener, const char *path, struct fl_err *err)
{
    int fd;
    int status;
    bool old = false;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int rv;

    fd = fl_str_copy(addr.sun_path, sizeof(addr.sun_path), path) == FL_OK
             ? fl__inherited_take((const struct sockaddr *)&addr, sizeof(addr))
             : -1;
    if (fd >= 0) {
        return open_inherited(listener, fd, path, err);
    }
    rv = examine_socket(path, &old, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (old && unlink(path) != 0 && errno != ENOENT) {
        return fl_err_set(err, fl_err_from_errno(errno),
                          "cannot listen on unix:%s: the stale socket file cannot be removed: %s",
                          path, strerror(errno));
    }
    status = uv_pipe_bind(&listener->u.pipe, path);
    if (status != 0) {
        return fl__uv_fail(err, status, "cannot listen on unix:%s", path);
    }
    /* No client can connect before listen(), so the socket is never reachable with another mode. */
    if (chmod(path, 0660) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot set the mode of unix:%s: %s", path,
                          strerror(errno));
    }
    return FL_OK;
}

/* The IPv4 address when the name has one: clients look for "localhost" at 127.0.0.1. */
static const struct sockaddr_storage *preferred_address(const struct fl__resolved *found)
{
    unsigned i;

    for (i = 0; i < found->n; i++) {
        if (found->addrs[i].ss_family == AF_INET) {
            return &found->addrs[i];
        }
    }
    return &found->addrs[0];
}

static int listener_resolve(const struct fl_address *address, const char *text,
                            struct fl__resolved *ret, struct fl_err *err)
{
    if (address->kind != FL_ADDRESS_NAME) {
        fl__resolve_literal(address, ret);
        return FL_OK;
    }
    fl__resolve_now(address->host, address->port, ret);
    return ret->status == 0 ? FL_OK
                            : fl_err_set(err, FL_EINVAL, "cannot listen on %s: %s", text,
                                         gai_strerror(ret->status));
}

static int bind_tcp(struct fl_listener *listener, const struct fl_address *address,
                    const char *text, struct fl_err *err)
{
    struct fl__resolved found;
    unsigned i;
    int status;
    int fd;
    int rv = listener_resolve(address, text, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < found.n; i++) {
        fd = fl__inherited_take((const struct sockaddr *)&found.addrs[i], sizeof(found.addrs[i]));
        if (fd >= 0) {
            return open_inherited(listener, fd, text, err);
        }
    }
    if (address->kind == FL_ADDRESS_NAME) {
        found.addrs[0] = *preferred_address(&found);
    }
    status = uv_tcp_bind(&listener->u.tcp, (const struct sockaddr *)&found.addrs[0], 0);
    if (status == UV_EAFNOSUPPORT && address->kind == FL_ADDRESS_ANY) {
        status = uv_tcp_bind(&listener->u.tcp, (const struct sockaddr *)&found.addrs[1], 0);
    }
    return status == 0 ? FL_OK : fl__uv_fail(err, status, "cannot listen on %s", text);
}

static int listener_start(struct fl_listener *listener, const struct fl_address *address,
                          const char *text, struct fl_err *err)
{
    int status;
    int rv;

    rv = listener->is_unix ? bind_unix(listener, address->path, err)
                           : bind_tcp(listener, address, text, err);
    if (rv != FL_OK) {
        return rv;
    }
    status = uv_listen(&listener->u.stream, BACKLOG, on_connection);
    if (status == UV_EADDRINUSE) {
        return fl_err_set(err, FL_EINUSE,
                          "cannot listen on %s: the port is in use by another process", text);
    }
    if (status != 0) {
        return fl__uv_fail(err, status, "cannot listen on %s", text);
    }
    if (!listener->is_unix) {
        struct sockaddr_storage addr;
        int len = sizeof(addr);

        /* sin_port and sin6_port have the same offset. */
        if (uv_tcp_getsockname(&listener->u.tcp, (struct sockaddr *)&addr, &len) == 0) {
            listener->port = ntohs(((struct sockaddr_in *)(void *)&addr)->sin_port);
        }
    }
    return FL_OK;
}

void fl_listener_count(struct fl_listener *listener, struct fl_traffic *traffic)
{
    listener->traffic = traffic;
}

int fl_listen(struct fl_loop *loop, const char *address, fl_accept_cb on_accept, void *ctx,
              struct fl_listener **ret, struct fl_err *err)
{
    struct fl_address parsed;
    struct fl_listener *listener;
    int status;
    int rv;

    rv = fl_address_parse(address, &parsed, err);
    if (rv != FL_OK) {
        return rv;
    }
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return fl_err_set(err, FL_ENOMEM, "listening: out of memory");
    }
    listener->loop = loop;
    listener->on_accept = on_accept;
    listener->ctx = ctx;
    listener->is_unix = parsed.kind == FL_ADDRESS_UNIX;
    status = init_stream(listener, &listener->u);
    if (status != 0) {
        free(listener);
        return fl__uv_fail(err, status, "cannot listen on %s", address);
    }
    fl__loop_opened(loop);
    rv = listener_start(listener, &parsed, address, err);
    if (rv != FL_OK) {
        fl_listener_close(listener);
        return rv;
    }
    *ret = listener;
    return FL_OK;
}

/* Binds in the way libuv does. Returns 0 or errno. */
static int try_bind(const struct sockaddr_storage *at)
{
    const struct sockaddr *addr = (const struct sockaddr *)at;
    socklen_t len =
        at->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int on = 1;
    int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = fd < 0 ? errno : 0;

    if (code == 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
                      bind(fd, addr, len) != 0))
    {
        code = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

static int check_tcp(const struct fl_address *address, const char *text, struct fl_err *err)
{
    struct fl__resolved found;
    int code;
    int rv = listener_resolve(address, text, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    code = try_bind(address->kind == FL_ADDRESS_NAME ? preferred_address(&found) : &found.addrs[0]);
    if (code == EAFNOSUPPORT && address->kind == FL_ADDRESS_ANY) {
        code = try_bind(&found.addrs[1]);
    }
    return code == 0
               ? FL_OK
               : fl_err_set(err, fl_err_from_errno(code), "cannot listen on %s: %s%s", text,
                            strerror(code),
                            code == EACCES ? ": ports below 1024 need root or CAP_NET_BIND_SERVICE"
                            : code == EADDRNOTAVAIL ? ": this machine has no such address"
                                                    : "");
}

int fl_listen_check(const char *address, struct fl_err *err)
{
    struct fl_address parsed;
    bool old;
    int rv = fl_address_parse(address, &parsed, err);

    if (rv != FL_OK) {
        return rv;
    }
    return parsed.kind == FL_ADDRESS_UNIX ? examine_socket(parsed.path, &old, err)
                                          : check_tcp(&parsed, address, err);
}

unsigned fl_listener_port(const struct fl_listener *listener)
{
    return listener->port;
}

void fl_listener_close(struct fl_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    listener->closing = true;
    fl__loop_closing(listener->loop);
    uv_close(&listener->u.handle, listener_on_closed);
}
