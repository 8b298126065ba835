#ifndef FL_NET_CONN_H
#define FL_NET_CONN_H

/*
 * Streams over TCP and unix sockets: listening and connecting. Code above this layer never sees a
 * libuv handle.
 *
 * Addresses: "host:port", "[v6]:port", "*:port", "unix:/path".
 * A stream over a unix socket knows the process that connected it (FL_IDENTITY_LOCAL): user, groups
 * and process id at the time of connecting, as the kernel reports them. TCP_NOTSENT_LOWAT keeps few
 * unsent bytes in the kernel, so that control messages never queue behind bulk data there.
 *
 * Threading: one loop. Callbacks never run inside the function that caused them.
 */

#include <stdatomic.h>

#include "libfl/net/loop.h"
#include "libfl/net/stream.h"

/*
 * Connects within `timeout_ms`, name resolution included. Start the stream at once. The result
 * arrives as on_open or on_close.
 */
FL_MUST_CHECK int fl_conn_connect(struct fl_loop *loop, const char *address, uint32_t timeout_ms,
                                  struct fl_stream **ret, struct fl_err *err);

struct fl_listener;
/*
 * What went over the connections of a listener: all bytes of the sockets, with TLS and framing.
 * `out` grows when the kernel has taken the bytes; a write to a full socket counts when all of it
 * was taken, or, as far as it was taken, when the connection closes. Only of a write that fails (a
 * reset by the peer) the part that was taken is not known and not counted: at most 64 KiB.
 * Counted on the loop, read by any thread. Zero-initialized.
 */
struct fl_traffic {
    atomic_uint_fast64_t in, out;
};
/*
 * A new connection: the callback starts it or closes it. When descriptors or memory run out, the
 * newest connections are closed and listening continues.
 */
typedef void (*fl_accept_cb)(void *ctx, struct fl_stream *stream);
/*
 * Errors: FL_EINUSE, FL_EPERM, FL_EINVAL …, with the address in the text. A name is resolved
 * synchronously, so call this at start only. "*" accepts IPv6 and IPv4. A stale unix socket file
 * without a listener is replaced; the new one has mode 0660. An address whose socket was inherited
 * from the service manager is not bound again (inherited.h).
 */
FL_MUST_CHECK int fl_listen(struct fl_loop *loop, const char *address, fl_accept_cb on_accept,
                            void *ctx, struct fl_listener **ret, struct fl_err *err);
/* Count what its connections from now on read and write; `traffic` outlives them. */
void fl_listener_count(struct fl_listener *listener, struct fl_traffic *traffic);
/* The same for a stream of fl_conn_connect() itself, not of a filter over it, before it is started;
   NULL: not counted. */
void fl_conn_count(struct fl_stream *stream, struct fl_traffic *traffic);
/*
 * Checks whether fl_listen() could bind this address now: a TCP address is bound and released, a
 * socket file is only examined. No connection is accepted and no file is created. FL_EINUSE:
 * another process listens there.
 */
FL_MUST_CHECK int fl_listen_check(const char *address, struct fl_err *err);
/* The bound port (after port 0), or 0 for unix sockets. */
unsigned fl_listener_port(const struct fl_listener *listener);
void fl_listener_close(struct fl_listener *listener); /* NULL is allowed */
/* True for 127.0.0.0/8, ::1, "localhost" and unix sockets. */
bool fl_address_is_loopback(const char *address);

#endif
