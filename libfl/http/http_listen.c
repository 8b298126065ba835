/*
 * Binds an address and starts libmicrohttpd on the socket, without a thread of its own; counts
 * connections and refuses those beyond the limits. The policy and the notes of connections run on
 * the HTTP thread. Does not read requests: http_answer.c does.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libfl/http/http_impl.h"
#include "libfl/net/address.h"

static void peer_text(const struct sockaddr *addr, char *out, size_t size)
{
    const void *bytes = NULL;

    if (addr->sa_family == AF_INET) {
        bytes = &((const struct sockaddr_in *)(const void *)addr)->sin_addr;
    } else if (addr->sa_family == AF_INET6) {
        bytes = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
    }
    if (bytes == NULL || inet_ntop(addr->sa_family, bytes, out, (socklen_t)size) == NULL) {
        (void)snprintf(out, size, "unknown");
    }
}

static enum MHD_Result http_on_accept(void *cls, const struct sockaddr *addr, socklen_t len)
{
    struct fl_http *http = cls;
    const struct fl_http_limits *l = &http->setup.limits;
    const struct fl__http_peer *peer;
    char address[64];
    unsigned same = 0;

    (void)len;
    peer_text(addr, address, sizeof(address));
    FL_LIST_FOREACH (peer, &http->peers, struct fl__http_peer, link) {
        same += strcmp(peer->address, address) == 0;
    }
    if (http->n_peers < l->connections && (l->per_address == 0 || same < l->per_address)) {
        return MHD_YES;
    }
    atomic_fetch_add(&http->n_connections_refused, 1);
    fl_log_peer(http->setup.log, FL_LOG_WARNING, http->setup.component, address,
                "HTTP connection from '%s' closed: %u connections are open, %u of them from this "
                "address (limits %u and %u); readers without progress are closed after %u s",
                address, http->n_peers, same, l->connections, l->per_address, l->idle_s);
    return MHD_NO;
}

static void http_on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                               enum MHD_ConnectionNotificationCode code)
{
    struct fl_http *http = cls;
    struct fl__http_peer *peer = *socket_context;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        http->n_peers++;
        peer = calloc(1, sizeof(*peer));
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        if (peer != NULL) { /* Without memory the connection counts for no address. */
            peer_text(info->client_addr, peer->address, sizeof(peer->address));
            fl_list_append(&http->peers, &peer->link);
        }
        *socket_context = peer;
    } else {
        http->n_peers--;
        if (peer != NULL) {
            fl_list_remove(&peer->link);
            free(peer);
        }
        *socket_context = NULL;
    }
}

FL_PRINTF(2, 0) static void http_on_library_log(void *cls, const char *fmt, va_list ap)
{
    const struct fl_http *http = cls;
    char text[256];
    size_t n;

    (void)vsnprintf(text, sizeof(text), fmt, ap);
    n = strlen(text);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '.')) {
        text[--n] = '\0';
    }
    fl_log_peer(http->setup.log, FL_LOG_DEBUG, http->setup.component, "http", "HTTP connection: %s",
                text);
}

static int http_resolve(const struct fl_address *a, const char *text, struct addrinfo **ret,
                        struct fl_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_family = a->kind == FL_ADDRESS_IP4 ? AF_INET : AF_UNSPEC};
    char port[16];
    int status;

    (void)snprintf(port, sizeof(port), "%u", a->port);
    status = getaddrinfo(a->kind == FL_ADDRESS_ANY ? NULL : a->host, port, &hints, ret);
    if (status != 0) {
        return fl_err_set(err, FL_EUNAVAIL,
                          "http.listen: the host of '%s' is not known: %s; expected an address of "
                          "this machine",
                          text, gai_strerror(status));
    }
    return FL_OK;
}

static int http_bind(struct fl__http_listener *l, const struct addrinfo *info, struct fl_err *err)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int on = 1;

    l->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0) {
        return fl_err_set(err, fl_err_from_errno(errno),
                          "http.listen: cannot make a socket for '%s': %s", l->text,
                          strerror(errno));
    }
    (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(l->fd, info->ai_addr, info->ai_addrlen) != 0 || listen(l->fd, 64) != 0) {
        return errno == EADDRINUSE
                   ? fl_err_set(err, FL_EINUSE,
                                "http.listen: '%s' is used by another process (ss -ltnp shows "
                                "which): end it, or set another port",
                                l->text)
                   : fl_err_set(err, fl_err_from_errno(errno),
                                "http.listen: cannot listen on '%s': %s", l->text, strerror(errno));
    }
    if (getsockname(l->fd, (struct sockaddr *)&bound, &len) == 0) {
        l->port = ntohs(bound.ss_family == AF_INET6
                            ? ((const struct sockaddr_in6 *)(const void *)&bound)->sin6_port
                            : ((const struct sockaddr_in *)(const void *)&bound)->sin_port);
    }
    return FL_OK;
}

static int http_serve(struct fl__http_listener *l, struct fl_err *err)
{
    struct fl_http *http = l->http;
    const struct fl_http_limits *limits = &http->setup.limits;
    const union MHD_DaemonInfo *info;

    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, http_on_accept, http,
        fl__http_on_request, http, MHD_OPTION_EXTERNAL_LOGGER, http_on_library_log, http,
        MHD_OPTION_LISTEN_SOCKET, l->fd, MHD_OPTION_CONNECTION_LIMIT, limits->connections + 8u,
        MHD_OPTION_CONNECTION_TIMEOUT, limits->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        limits->header_bytes, MHD_OPTION_NOTIFY_COMPLETED, fl__http_on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, http, MHD_OPTION_END);
    if (l->daemon == NULL) {
        return fl_err_set(err, FL_ENOMEM,
                          "http.listen: cannot serve '%s': out of memory or of "
                          "descriptors",
                          l->text);
    }
    info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    l->fd = -1;
    l->poll_fd = info->epoll_fd;
    return FL_OK;
}

int fl__http_listen(struct fl_http *http, const char *address, struct fl_err *err)
{
    struct fl__http_listener *l = &http->listeners[http->n_listeners];
    struct addrinfo *found = NULL;
    struct fl_address parsed;
    int rv = fl_address_parse(address, &parsed, err);

    if (rv != FL_OK) {
        return rv;
    }
    *l = (struct fl__http_listener){.http = http, .fd = -1, .poll_fd = -1};
    (void)snprintf(l->text, sizeof(l->text), "%s", address);
    http->n_listeners++;
    rv = http_resolve(&parsed, address, &found, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = http_bind(l, found, err);
    freeaddrinfo(found);
    if (rv != FL_OK) {
        return rv;
    }
    return http_serve(l, err);
}

void fl__http_listener_close(struct fl__http_listener *l)
{
    if (l->daemon != NULL) {
        MHD_stop_daemon(l->daemon);
    }
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    l->daemon = NULL;
    l->fd = -1;
}
