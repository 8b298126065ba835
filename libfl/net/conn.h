#ifndef FL_NET_CONN_H
#define FL_NET_CONN_H

/*
 * Byte streams: TCP and unix sockets, listening and connecting. What is above pulls and
 * pushes bytes through fl_conn_cbs, and never sees a libuv handle.
 *
 * Addresses: "host:port", "[v6]:port", "*:port", "unix:/path".
 * Few unsent bytes stay in the kernel (TCP_NOTSENT_LOWAT), so that control messages
 * never queue behind bulk there.
 *
 * Threading: one loop. Callbacks never run inside the function that caused them.
 */

#include <sys/uio.h>

#include "libfl/net/loop.h"

struct fl_conn;

/*
 * Every callback may call every function below, on its own connection too. After
 * fl_conn_close() and fl_conn_close_flushed() no more on_data comes.
 */
struct fl_conn_cbs {
    /* The connection stands (outgoing ones only). */
    void (*on_open)(void *ctx);
    void (*on_data)(void *ctx, const uint8_t *data, size_t len);
    /* First step after fl_conn_wake(), before `output`, even while the socket takes nothing.
       May be NULL. */
    void (*on_wake)(void *ctx);
    /* Up to `max` runs of bytes to send, valid until `sent`; 0: nothing; negative: close. */
    int (*output)(void *ctx, struct iovec *iov, int max);
    void (*sent)(void *ctx, size_t n);
    /* The last callback, exactly once; `code` FL_OK at the peer's orderly end or after
       fl_conn_close(), else why (FL_EUNAVAIL, FL_ETIMEOUT, FL_EIO, what `output` returned)
       with text, which is borrowed. */
    void (*on_close)(void *ctx, int code, const char *text);
};

/*
 * Connect (name resolution included) within `timeout_ms`. The result comes as on_open
 * or on_close. `ctx` must live until on_close.
 */
FL_MUST_CHECK int fl_conn_connect(struct fl_loop *loop, const char *address, uint32_t timeout_ms,
                                  const struct fl_conn_cbs *cbs, void *ctx, struct fl_conn **ret,
                                  struct fl_err *err);
/* There may be output now. */
void fl_conn_wake(struct fl_conn *conn);
/* Stop and start reading, for backpressure. */
void fl_conn_pause(struct fl_conn *conn, bool paused);
/* Close now, unsent bytes are dropped; on_close follows. Idempotent. */
void fl_conn_close(struct fl_conn *conn);
/*
 * Close after `output` has nothing more and the peer has closed too, or after `timeout_ms`:
 * FL_ETIMEOUT when bytes were still unsent then.
 */
void fl_conn_close_flushed(struct fl_conn *conn, uint32_t timeout_ms);
/* "127.0.0.1:50312" or "unix". */
const char *fl_conn_peer(const struct fl_conn *conn);

struct fl_listener;
/*
 * A new connection: set its callbacks with fl_conn_accept(), or fl_conn_close() it. Without
 * descriptors or memory the newest connections are closed and listening goes on.
 */
typedef void (*fl_accept_cb)(void *ctx, struct fl_conn *conn);
void fl_conn_accept(struct fl_conn *conn, const struct fl_conn_cbs *cbs, void *ctx);
/*
 * FL_EINUSE, FL_EPERM, FL_EINVAL … with the address. A name is looked up here and now, so
 * only at start. "*" takes IPv6 and IPv4. An old unix socket file that nobody
 * listens on is replaced; the new one has mode 0660.
 */
FL_MUST_CHECK int fl_listen(struct fl_loop *loop, const char *address, fl_accept_cb on_accept,
                            void *ctx, struct fl_listener **ret, struct fl_err *err);
/* The bound port (after port 0), or 0 for unix sockets. */
unsigned fl_listener_port(const struct fl_listener *listener);
void fl_listener_close(struct fl_listener *listener); /* NULL is allowed */
/* True for 127.0.0.0/8, ::1, "localhost" and unix sockets. */
bool fl_address_is_loopback(const char *address);

#endif
