#ifndef FL_NET_CONN_H
#define FL_NET_CONN_H

/*
 * Streams over TCP and unix sockets: listening and connecting. What is above never sees a libuv
 * handle.
 *
 * Addresses: "host:port", "[v6]:port", "*:port", "unix:/path".
 * A stream over a unix socket knows the process that made it (FL_IDENTITY_LOCAL): user, groups and
 * number as they were then, from the kernel. Few unsent bytes stay in the kernel
 * (TCP_NOTSENT_LOWAT), so that control messages never queue behind bulk there.
 *
 * Threading: one loop. Callbacks never run inside the function that caused them.
 */

#include "libfl/net/loop.h"
#include "libfl/net/stream.h"

/*
 * Connect (name resolution included) within `timeout_ms`, to be started at once. The result comes
 * as on_open or on_close.
 */
FL_MUST_CHECK int fl_conn_connect(struct fl_loop *loop, const char *address, uint32_t timeout_ms,
                                  struct fl_stream **ret, struct fl_err *err);

struct fl_listener;
/*
 * A new connection: start it, or close it. Without descriptors or memory the newest connections are
 * closed and listening goes on.
 */
typedef void (*fl_accept_cb)(void *ctx, struct fl_stream *stream);
/*
 * FL_EINUSE, FL_EPERM, FL_EINVAL … with the address. A name is looked up here and now, so
 * only at start. "*" takes IPv6 and IPv4. An old unix socket file that nobody
 * listens on is replaced; the new one has mode 0660. An address that a service manager holds for us
 * is not bound again (inherited.h).
 */
FL_MUST_CHECK int fl_listen(struct fl_loop *loop, const char *address, fl_accept_cb on_accept,
                            void *ctx, struct fl_listener **ret, struct fl_err *err);
/*
 * Could fl_listen() have this address now? It is bound and given up again; a socket file is only
 * looked at. Nobody can connect meanwhile, and nothing is made. FL_EINUSE: another process has it.
 */
FL_MUST_CHECK int fl_listen_check(const char *address, struct fl_err *err);
/* The bound port (after port 0), or 0 for unix sockets. */
unsigned fl_listener_port(const struct fl_listener *listener);
void fl_listener_close(struct fl_listener *listener); /* NULL is allowed */
/* True for 127.0.0.0/8, ::1, "localhost" and unix sockets. */
bool fl_address_is_loopback(const char *address);

#endif
